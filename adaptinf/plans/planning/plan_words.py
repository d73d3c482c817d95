"""Names of a plan's characteristics in words, for tables that people read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

_WORDS = {
    "difference": "True difference",
    "rejected": "Null hypothesis rejected",
    "rejected_se": "Null hypothesis rejected, Monte Carlo error",
    "rejected_above": "Rejected in favour of a treatment",
    "futility": "Stopped for futility",
    "untested": "Too few data for any test",
    "size_mean": "Number of rounds, mean",
    "size_sd": "Number of rounds, standard deviation",
    "reward_mean": "Outcome per round, mean",
    "duration_mean": "Duration, mean",
    "duration_q90": "Duration, 90% quantile",
    "enrolled_mean": "Enrolled by the end, mean",
    "overrun_mean": "Enrolled but not used, mean",
    "bias": "Bias of the estimate",
    "median_bias": "Probability of too large an estimate, minus 1/2",
    "rmse": "Root mean squared error of the estimate",
    "coverage": "Coverage of the interval",
    "naive_bias": "Bias if the looks are ignored",
    "naive_coverage": "Coverage if the looks are ignored",
    "family_error": "Any true null hypothesis rejected",
    "rejected_best": "Null hypothesis of the best treatment rejected",
    "rejected_all": "All null hypotheses rejected",
    "failed": "Trials that failed",
}
_JOINT = {"rejected": "Any null hypothesis rejected", "coverage": "Joint coverage of the intervals"}
_JOINT["rejected_se"] = f"{_JOINT['rejected']}, Monte Carlo error"
_OF_ARMS = {
    "rounds": "Rounds of {}, mean",
    "difference": "True difference of {}",
    "rejected": "Null hypothesis of {} rejected",
    "dropped": "{} dropped before the end",
    "bias": "Bias of the estimate for {}",
    "rmse": "Root mean squared error for {}",
}
_QUANTILE = re.compile(r"size_q([\d.]+)")


def characteristic_in_words(name: str, arms: Sequence[Any], *, joint: bool) -> str:
    """A characteristic of a plan in words; its own name if it has none."""
    if joint and name in _JOINT:
        return _JOINT[name]
    if name in _WORDS:
        return _WORDS[name]
    if found := _QUANTILE.fullmatch(name):
        return f"Number of rounds, {found[1]}% quantile"
    kind, _, label = name.partition("_")
    return _OF_ARMS[kind].format(label) if kind in _OF_ARMS and label in map(str, arms) else name
