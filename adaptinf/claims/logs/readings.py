"""What is said of how a frame or a file became a log."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

READ = Claim("log.report.reading_notes", "How the log was read (log.report): {readings}.", "note")

SORTED = Claim(
    "log.validation.order.row_order",
    "rows were put in the order of {role} column {name!r}{newest}: {moved:,} of {rows:,} moved, rows of one "
    "value stay as they stood",
    "note",
)
NEWEST_FIRST = Claim("log.validation.order.row_order", " (it was stored newest first)", "note")
NUMBERS_GO_DOWN = Claim(
    "log.validation.order.tell_numbered",
    "{column} holds labels whose numbers go down, {first!r:.40} first and {last!r:.40} last, and rows are "
    "taken in the order in which they stand: if the file was stored newest first, turn it",
    "caution",
)
DATES = Claim("log.validation.order.date_column", "{column} was {how}{span}", "note")
COUNTED_AS = Claim("log.validation.outcomes.numbered_outcomes", "in {column}, {labels}", "note")
AS_WRITTEN = Claim(
    "log.storage.foreign.as_written", "column {name!r} is text as written, such as {example!r:.40}", "note"
)
UNUSED = Claim("log.reading.named_log", "columns that nothing asked for: {names}", "note")

SKIPPED = Claim(
    "formats.dsjson.read_dsjson",
    "{skipped:,} of {events:,} events were dropped, as they say _skipLearn",
    "note",
)
THROTTLED = Claim(
    "formats.dsjson.read_dsjson",
    "the client left out events with probability {rate:g} (pdrop), which says nothing of outcomes",
    "caution",
)
NO_CONTEXTS = Claim(
    "formats.dsjson.read_dsjson", "shared features that are no contexts of the log: {names}", "note"
)
OUTSIDE_POPULATION = Claim(
    "formats.adam.read_adam",
    "{left:,} of {everyone:,} subjects, who are not in the population {population}, were left out",
    "note",
)
SUBJECTS_SORTED = Claim("formats.adam.read_adam", "subjects were put in the order of {keys}", "note")
OTHER_POSITIONS = Claim(
    "formats.obd.read_open_bandit",
    "{others:,} of {total:,} impressions at positions other than {position!r} were left out",
    "note",
)
IMPRESSIONS_SORTED = Claim(
    "formats.obd.read_open_bandit", "impressions were put in the order of timestamp", "note"
)

BY_ASSIGNMENT = Claim(
    "log.storage.view.LogColumns.reading_notes",
    "By assignment: arms are those assigned, and {count:,} of {rounds:,} rounds received another one.",
    "note",
)
LATE = Claim(
    "log.storage.view.LogColumns.reading_notes",
    "{late:,} outcomes became known only after a later choice. That propensities used only what was known "
    "by then is the design's own statement; a log cannot show it.",
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
KNOWN_OBSERVATION = Claim(
    "log.storage.view.LogColumns.outcomes_told", " with known probabilities of observation", "note"
)
