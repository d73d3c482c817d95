"""Claims about how the number of rounds was determined, and about methods that treat it as fixed."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

CONFIDENCE_SEQUENCE = Claim(
    "inference.results.estimates.Estimates.at_any_length",
    "use ConfidenceSequence, which remains valid under any stopping rule",
    "advice",
)
ELLIPSOID = Claim(
    "inference.results.estimates.Estimates.at_any_length",
    'use AdaptiveOLS(...).fit(adjustment="ellipsoid"), which allows any stopping rule',
    "advice",
)
NO_METHOD = Claim(
    "inference.results.estimates.Estimates.at_any_length",
    "no method for this target accounts for early stopping",
    "note",
)
NO_RELEASED_METHOD = Claim(
    "inference.results.estimates.Estimates.at_any_length",
    "methods based on releases do not account for early stopping",
    "note",
)
RERUN = Claim(
    "audit.rerun.logged_rows.rerun_cautions",
    "the design is re-run with a fixed number of rounds, so results are exact only if the stopping "
    "decision did not depend on arm assignments (it may depend on the pooled rewards)",
    "note",
)
REORDERED = Claim(
    "audit.rerun.logged_rows.rerun_cautions",
    "each re-run permutes the rows but keeps their number fixed, so exactness requires a stopping "
    "decision that depended neither on rewards nor on the assigned arms",
    "note",
)
COUNTED = Claim(
    "audit.rerun.logged_rows.length_cautions",
    "the exact distribution of the counts treats the number of rounds as fixed",
    "note",
)

ASSUMED_FIXED = Claim(
    "is_unstated", "the number of rounds was fixed in advance", "assumes", short="fixed number of rounds"
)
STOPPED = Claim(
    "stopped_by_hand",
    "the trial was stopped early, after {rounds} ({reason!r}), so fixed-sample p-values and intervals "
    "are invalid if outcomes influenced stopping; {instead}",
    "caution",
)
DATA_CHOSEN = Claim(
    "chosen_by_data",
    "data collection stopped after {rounds}, at a time determined by the data, so fixed-sample tests "
    "reject too often and intervals undercover; {instead}",
    "caution",
)
PLANNED = Claim(
    "chosen_by_plan",
    "p-values and intervals do not account for the prespecified rule that ended data collection (after "
    "{rounds}), so error rates may exceed their nominal levels; {instead}",
    "caution",
)
FIXED_LENGTH = (ASSUMED_FIXED, STOPPED, DATA_CHOSEN, PLANNED)
"""Claims for a table that is valid only for a fixed number of rounds."""

UNSTATED = Claim(
    "log.report.Stopping.told",
    "the log states no stopping rule, so a fixed sample size is assumed",
    "assumes",
    short="fixed number of rounds (none stated)",
)
