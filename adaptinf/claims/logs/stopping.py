"""What is said of how a log came to have its number of rounds, and of methods that take it to be fixed."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

CONFIDENCE_SEQUENCE = Claim(
    "inference.results.base.Results.at_any_length",
    "use ConfidenceSequence, which is valid under any stopping rule",
    "advice",
)
ELLIPSOID = Claim(
    "inference.results.base.Results.at_any_length",
    'use AdaptiveOLS(...).fit(adjustment="ellipsoid"), which allows any stopping rule',
    "advice",
)
NO_METHOD = Claim(
    "inference.results.base.Results.at_any_length",
    "no method for this target accounts for early stopping",
    "note",
)
NO_RELEASED_METHOD = Claim(
    "inference.results.base.Results.at_any_length",
    "methods based on releases do not account for early stopping",
    "note",
)
RERUN = Claim(
    "audit.rerun.fixed_length.rerun_cautions",
    "re-runs of the design always have this number of rounds, so the results are exact only if the decision "
    "to stop did not depend on which arms were assigned (it may have depended on rewards pooled over arms)",
    "note",
)
REORDERED = Claim(
    "audit.rerun.fixed_length.rerun_cautions",
    "re-runs of the design permute the rows and always have this number of rounds, so the results are exact "
    "only if the decision to stop depended neither on rewards nor on the assigned arms",
    "note",
)
COUNTED = Claim(
    "audit.rerun.fixed_length.length_cautions",
    "the exact distribution of the counts is that of a trial with exactly this number of rounds",
    "note",
)

ASSUMED_FIXED = Claim("is_unstated", "the number of rounds was fixed in advance", "assumes")
STOPPED = Claim(
    "stopped_by_hand",
    "the trial was stopped early, after {rounds} ({reason!r}); if outcomes influenced that decision, "
    "p-values that assume a fixed sample size are too small and intervals undercover; {instead}",
    "caution",
)
DATA_CHOSEN = Claim(
    "chosen_by_data",
    "the data determined when to stop (after {rounds}), so tests for a fixed number of rounds reject "
    "too often and intervals undercover; {instead}",
    "caution",
)
PLANNED = Claim(
    "chosen_by_plan",
    "a prespecified rule ended data collection (after {rounds}); p-values and intervals ignore this "
    "rule, so error rates may exceed their nominal levels; {instead}",
    "caution",
)
FIXED_LENGTH = (ASSUMED_FIXED, STOPPED, DATA_CHOSEN, PLANNED)
"""Of a table that holds at a fixed number of rounds."""

UNSTATED = Claim(
    "log.stopping.Stopping.told",
    "rule not stated; a length fixed in advance is assumed",
    "assumes",
)
