"""What is said of how a frame or a file became a log."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

READ = Claim("log.report.reading_notes", "How the log was read (log.report): {readings}.", "note")

SORTED = Claim(
    "log.validation.order.row_order",
    "rows were sorted by {role} column {name!r}{newest}: {moved:,} of {rows:,} moved, and ties kept "
    "their order",
    "note",
)
NUMBERS_GO_DOWN = Claim(
    "log.validation.order.tell_numbered",
    "{column} has labels whose numbers go down, from {first!r:.40} to {last!r:.40}, and rows are "
    "taken in the order of the file: if it was stored newest first, reverse it",
    "caution",
)
DATES = Claim("log.validation.order.date_column", "{column} was {how}{span}", "note")
COUNTED_AS = Claim("log.validation.outcomes.numbered_outcomes", "in {column}, {labels}", "note")
AS_WRITTEN = Claim(
    "log.storage.foreign.as_written", "column {name!r} is kept as text, such as {example!r:.40}", "note"
)
UNUSED_COLUMNS = Claim(
    "cli.commands.with_unused",
    "Unused columns of the file: {names}. Name those that the choice of arms could depend on with --context.",
    "note",
)
UNUSED = Claim("log.reading.named_log", "unused columns: {names}", "note")

SKIPPED = Claim(
    "formats.dsjson.read_dsjson",
    "{skipped:,} of {events:,} events were dropped because of their _skipLearn",
    "note",
)
THROTTLED = Claim(
    "formats.dsjson.read_dsjson",
    "the client dropped events with probability {rate:g} (pdrop); whether outcomes played a part is "
    "not recorded",
    "caution",
)
NO_CONTEXTS = Claim(
    "formats.dsjson.read_dsjson", "shared features that are not contexts of the log: {names}", "note"
)
OUTSIDE_POPULATION = Claim(
    "formats.adam.read_adam",
    "{left:,} of {everyone:,} subjects were left out, as they are not in the population {population}",
    "note",
)
SUBJECTS_SORTED = Claim("formats.adam.read_adam", "subjects were sorted by {keys}", "note")
OTHER_POSITIONS = Claim(
    "formats.obd.read_open_bandit",
    "{others:,} of {total:,} impressions at positions other than {position!r} were left out",
    "note",
)
IMPRESSIONS_SORTED = Claim("formats.obd.read_open_bandit", "impressions were sorted by timestamp", "note")

BY_ASSIGNMENT = Claim(
    "log.storage.view.LogColumns.reading_notes",
    "By assignment: arms are those assigned; in {count:,} of {rounds:,} rounds another one was received.",
    "note",
)
LATE = Claim(
    "log.storage.view.LogColumns.reading_notes",
    "{late:,} outcomes became known only after a later arm was chosen. That propensities used only "
    "what was known by then is taken from the design; a log cannot show it.",
    "assumes",
)
SHOWN_LATE = Claim(
    "log.storage.view.LogColumns.outcomes_told",
    "outcomes: {late:,} became known after a later choice",
    "note",
)
SHOWN_RECEIVED = Claim(
    "log.storage.view.LogColumns.outcomes_told",
    "received: another arm than the assigned one in {count:,} rounds",
    "note",
)
SHOWN_MISSING = Claim(
    "log.storage.view.LogColumns.outcomes_told",
    "rewards: {count:,} missing, taken as {meaning!r}{known}",
    "note",
)
