"""Claims about how a frame or a file became a log."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

READ = Claim(
    "log.report.reading_notes", "Details of how the log was read (see log.report): {readings}.", "note"
)

SORTED = Claim(
    "log.validation.row_order.row_order",
    "rows were sorted by the {role} column {name!r}{newest}: {moved:,} of {rows:,} rows changed "
    "position, and tied rows kept their original order",
    "note",
)
TIES = Claim(
    "log.validation.row_order.tell_ties",
    "{tied:,} of {rows:,} rows have the same value in {column} as the row before; the order of tied rows is "
    "assumed to be chronological",
    "note",
)
COARSE = Claim(
    "log.validation.row_order.tell_ties",
    "{tied:,} of {rows:,} rows are tied with the previous row in {column}, and row order is assumed to "
    "be the order in which arms were chosen; if all arms with the same value were chosen before any of "
    "their rewards were known, set batch= to this column",
    "caution",
)
PERIODS = Claim(
    "log.validation.times.timed_rows.TimedRows.batches",
    "each {every} of {column} ({clock}) is one batch ({batches:,} batches)",
    "note",
)
IN_ZONE = Claim(
    "log.validation.times.timed_rows.TimedRows.put_in_zone",
    "times in {column} were interpreted as local times in {zone} and converted to UTC",
    "note",
)
NUMBERS_GO_DOWN = Claim(
    "log.validation.row_order.tell_numbered",
    "the numbers in {column} decrease from {first!r:.40} to {last!r:.40}, although rows are assumed to "
    "be in chronological order; reverse the file if the newest rows come first",
    "caution",
)
DATES = Claim("log.validation.row_order.date_column", "{column} was {how}{span}", "note")
COUNTED_AS = Claim(
    "log.validation.column_checks.numbered_outcomes",
    "labels in {column} were converted to numbers: {labels}",
    "note",
)
RENORMALISED = Claim(
    "log.validation.propensity_rounding.tell_rounding",
    "propensities are rounded to {decimals}: {changed:,} of {rows:,} rows were renormalised to sum to "
    "1; the smallest propensity of a chosen arm, {least:.3g}, is known to within {share:.2%}",
    "note",
)
NO_ENTRY = Claim(
    "log.validation.propensity_shapes.read_entries",
    "{column} has no entry for arms {arms}; in these rows, their propensities are assumed to be 0",
    "note",
)
AS_WRITTEN = Claim(
    "formats.typed_csv.as_written", "column {name!r} is read as text (for example, {example!r:.40})", "note"
)
MISSING_TEXT = Claim(
    "log.storage.text_columns.typed",
    "the text {text!r} in column {name!r} is treated as a label, not as a missing value ({count:,} rows)",
    "note",
)
SEPARATED = Claim("log.storage.delimited.delimited", "fields are separated by {sep}", "note")
DECODED = Claim("log.storage.dialects.decoded", "the text is encoded as {encoding}", "note")
DECIMAL_COMMA = Claim(
    "log.storage.text_columns.decimal_mark",
    "numbers have a decimal comma, such as {example} in column {name!r}",
    "note",
)
PARTS = Claim(
    "log.storage.table_sources.read_table",
    "{count:,} files in a folder were read in order of file name",
    "note",
)
FILES = Claim(
    "log.storage.table_sources.read_table",
    "{count:,} files were read in the order given",
    "note",
)
UNUSED_COLUMNS = Claim(
    "cli.analyze_command.with_unused",
    "Columns not used: {names}. If a column could have influenced the choice of arms, declare the "
    "column as a context (--context).",
    "advice",
    short="columns not used: {names}",
)
UNUSED = Claim("log.log_reading.named_log", "columns not used: {names}", "note")

BEGINNING = Claim(
    "log.interim.Interim.until",
    "only the first {kept:,} of {rounds:,} rounds are used{pending}{releases}",
    "note",
)
PENDING = Claim(
    "log.interim.Interim.until", "; outcomes that became known later ({count:,}) count as missing", "phrase"
)
LATER_RELEASES = Claim("log.interim.Interim.until", "; later releases ({count:,}) were dropped", "phrase")

SKIPPED = Claim(
    "formats.dsjson.read_dsjson",
    "events with _skipLearn set were dropped ({skipped:,} of {events:,} events)",
    "note",
)
WITHOUT_SLOT = Claim(
    "formats.dsjson.read_dsjson",
    "events without the slot were excluded ({absent:,} of {events:,} events)",
    "note",
)
THROTTLED = Claim(
    "formats.dsjson.read_dsjson",
    "the client dropped events with probability {rate:g} (pdrop); the file does not show whether "
    "dropping depended on outcomes",
    "caution",
)
NO_CONTEXTS = Claim(
    "formats.dsjson.read_dsjson",
    "features shared by all arms but not used as context variables: {names}",
    "note",
)
OUTSIDE_POPULATION = Claim(
    "formats.adam.read_adam",
    "subjects outside the population {population} were excluded ({left:,} of {everyone:,})",
    "note",
)
SUBJECTS_SORTED = Claim("formats.adam.read_adam", "subjects were sorted by {keys}", "note")
OTHER_POSITIONS = Claim(
    "formats.obd.read_open_bandit",
    "impressions at positions other than {position!r} were excluded ({others:,} of {total:,})",
    "note",
)
IMPRESSIONS_SORTED = Claim("formats.obd.read_open_bandit", "impressions were sorted by timestamp", "note")

OTHER_EXPERIMENTS = Claim(
    "formats.platforms.platform_tables.Table.only",
    "rows whose {column} is not {wanted!r} were excluded ({others:,} of {rows:,})",
    "note",
)
ROWS_SORTED = Claim("formats.platforms.platform_tables.Table.in_time", "rows were sorted by {column}", "note")
SEVERAL_ARMS = Claim(
    "formats.platforms.platform_tables.Table.first_of_units",
    "units that were assigned to several arms were excluded ({moved:,} of {units:,} units)",
    "caution",
)
LATER_EXPOSURES = Claim(
    "formats.platforms.platform_tables.Table.first_of_units",
    "only the first row of each unit was kept (excluded: {later:,} of {rows:,} rows)",
    "note",
)
UNUSED_OUTCOMES = Claim(
    "formats.platforms.platform_tables.Table.join",
    "outcomes without a matching assignment were not used ({unused:,} of {rows:,})",
    "note",
)
ABSENT_OUTCOMES = Claim(
    "formats.platforms.platform_tables.Table.join",
    "rows without an outcome were assigned the value {absent:g} ({rows:,} rows)",
    "note",
)
NO_PROPENSITIES = Claim(
    "formats.platforms.platform_tables.shares_of",
    "the export has no propensities, so the log has none",
    "caution",
)
BEFORE_PERIODS = Claim(
    "formats.platforms.growthbook.read_growthbook",
    "propensities are the weights of the period in which a unit was first exposed; the export does not show "
    "whether a client was still using older weights",
    "caution",
)
VERSIONS_OVERLAP = Claim(
    "formats.platforms.eppo.read_eppo",
    "versions of the model overlap in time, so the log has no batches",
    "caution",
)
REPLACED_FEEDBACK = Claim(
    "formats.platforms.tensorzero.read_tensorzero",
    "feedback that was replaced by later feedback on the same target was not used ({replaced:,} of {rows:,} "
    "rows)",
    "note",
)
NOT_AVAILABLE = Claim(
    "formats.platforms.mrt.read_mrt",
    "decision points at which a participant was unavailable were excluded ({absent:,} of {rows:,} rows), "
    "because treatment was not randomised there",
    "note",
)

BY_ASSIGNMENT = Claim(
    "log.storage.view.LogColumns.reading_notes",
    "Arms are analysed as assigned (intention to treat); a different arm was received in {count:,} of "
    "{rounds:,} rounds.",
    "note",
)
LATE = Claim(
    "log.storage.view.LogColumns.reading_notes",
    "In {late:,} of the rounds, the outcome was observed only after a later assignment. Propensities "
    "are assumed to depend only on outcomes observed by the time of assignment, which cannot be checked "
    "from a log.",
    "assumes",
    short="propensities ignore late outcomes",
)
SHOWN_LATE = Claim(
    "log.storage.view.LogColumns.outcomes_told",
    "outcomes: {late:,} were observed only after the arm for a later round had been chosen",
    "note",
)
SHOWN_RECEIVED = Claim(
    "log.storage.view.LogColumns.outcomes_told",
    "received: the arm received differs from the arm assigned in {count:,} of the rounds",
    "note",
)
SHOWN_MISSING = Claim(
    "log.storage.view.LogColumns.outcomes_told",
    "rewards: {count:,} missing (missing={meaning!r}){known}",
    "note",
)
