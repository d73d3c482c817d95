"""What is said of how a log came to have its number of rounds, and of methods that take it to be fixed."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

CONFIDENCE_SEQUENCE = Claim(
    "inference.results.base.Results.at_any_length",
    "ConfidenceSequence holds whatever stopped the log",
    "advice",
)
ELLIPSOID = Claim(
    "inference.results.base.Results.at_any_length",
    'AdaptiveOLS(...).fit(adjustment="ellipsoid") holds whatever stopped the log',
    "advice",
)
NO_METHOD = Claim(
    "inference.results.base.Results.at_any_length", "no method for this target allows for such a stop", "note"
)
NO_RELEASED_METHOD = Claim(
    "inference.results.base.Results.at_any_length", "no method from releases allows for such a stop", "note"
)

ASSUMED_FIXED = Claim("is_unstated", "the number of rounds was fixed beforehand", "assumes")
STOPPED = Claim(
    "stopped_by_hand",
    "the trial was stopped early, after {rounds} ({reason!r}): if outcomes played a part in that decision, "
    "p-values and intervals for a fixed number of rounds reject too often and undercover; {instead}",
    "caution",
)
DATA_CHOSEN = Claim(
    "chosen_by_data",
    "the data chose when to stop (after {rounds}), and p-values and intervals for a fixed number of rounds "
    "then reject too often and undercover; {instead}",
    "caution",
)
PLANNED = Claim(
    "chosen_by_plan",
    "a rule planned beforehand chose when to stop (after {rounds}), and p-values and intervals for a fixed "
    "number of rounds do not allow for such a rule: they may reject too often and undercover; {instead}",
    "caution",
)
FIXED_LENGTH = (ASSUMED_FIXED, STOPPED, DATA_CHOSEN, PLANNED)
"""Of a table that holds at a fixed number of rounds."""

UNSTATED = Claim("log.stopping.Stopping.told", "not stated, taken as fixed", "assumes")
