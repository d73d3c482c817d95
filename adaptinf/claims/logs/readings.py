"""What is said of how a frame or a file became a log."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

READ = Claim(
    "log.report.reading_notes", "Details of how the log was read (see log.report): {readings}.", "note"
)

SORTED = Claim(
    "log.validation.order.row_order",
    "rows were sorted by the {role} column {name!r}{newest}: {moved:,} of {rows:,} rows changed "
    "position, and ties kept their original order",
    "note",
)
NUMBERS_GO_DOWN = Claim(
    "log.validation.order.tell_numbered",
    "the numbers in {column} decrease from {first!r:.40} to {last!r:.40}, but rows are read in file "
    "order; if the newest rows come first, reverse the file",
    "caution",
)
DATES = Claim("log.validation.order.date_column", "{column} was {how}{span}", "note")
COUNTED_AS = Claim(
    "log.validation.outcomes.numbered_outcomes",
    "labels in {column} were converted to numbers: {labels}",
    "note",
)
AS_WRITTEN = Claim(
    "log.storage.foreign.as_written", "column {name!r} is read as text (for example, {example!r:.40})", "note"
)
UNUSED_COLUMNS = Claim(
    "cli.commands.with_unused",
    "Columns not used: {names}. If any of them could have influenced the choice of arms, declare it as "
    "a context (--context).",
    "note",
)
UNUSED = Claim("log.reading.named_log", "columns not used: {names}", "note")

SKIPPED = Claim(
    "formats.dsjson.read_dsjson",
    "{skipped:,} of {events:,} events were dropped because _skipLearn was set",
    "note",
)
THROTTLED = Claim(
    "formats.dsjson.read_dsjson",
    "the client dropped events with probability {rate:g} (pdrop); the file does not show whether "
    "dropping depended on outcomes",
    "caution",
)
NO_CONTEXTS = Claim(
    "formats.dsjson.read_dsjson", "features shared by all arms that are not used as contexts: {names}", "note"
)
OUTSIDE_POPULATION = Claim(
    "formats.adam.read_adam",
    "{left:,} of {everyone:,} subjects were excluded because they are not in the population {population}",
    "note",
)
SUBJECTS_SORTED = Claim("formats.adam.read_adam", "subjects were sorted by {keys}", "note")
OTHER_POSITIONS = Claim(
    "formats.obd.read_open_bandit",
    "{others:,} of {total:,} impressions were excluded because their position is not {position!r}",
    "note",
)
IMPRESSIONS_SORTED = Claim("formats.obd.read_open_bandit", "impressions were sorted by timestamp", "note")

BY_ASSIGNMENT = Claim(
    "log.storage.view.LogColumns.reading_notes",
    "Arms are analysed as assigned (intention to treat); a different arm was received in {count:,} of "
    "{rounds:,} rounds.",
    "note",
)
LATE = Claim(
    "log.storage.view.LogColumns.reading_notes",
    "Some outcomes ({late:,}) became known only after the arm of a later round was chosen. It is "
    "assumed, but cannot be verified from a log, that propensities used only outcomes known at the time.",
    "assumes",
)
SHOWN_LATE = Claim(
    "log.storage.view.LogColumns.outcomes_told",
    "outcomes: {late:,} observed only after the arm of a later round had been chosen",
    "note",
)
SHOWN_RECEIVED = Claim(
    "log.storage.view.LogColumns.outcomes_told",
    "received: in {count:,} rounds, the arm received differs from the arm assigned",
    "note",
)
SHOWN_MISSING = Claim(
    "log.storage.view.LogColumns.outcomes_told",
    "rewards: {count:,} missing (missing={meaning!r}){known}",
    "note",
)
