"""Rewards that are missing, and arms that were received in place of those assigned.

References
----------
Manski (1990), "Nonparametric bounds on treatment effects".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.inference.results.ends import both_ends

if TYPE_CHECKING:
    from adaptinf.inference.arms.models import ArmMeans, Contrast
    from adaptinf.inference.results.base import Results
    from adaptinf.log import AdaptiveLog


def at_both_ends(
    model: ArmMeans | Contrast, arguments: Mapping[str, Any], opposed: Sequence[Any] = ()
) -> Results:
    """A model's results where missing rewards are at their lowest and at their highest.

    The rewards of `opposed` arms, which are subtracted, are at the other end.
    """
    log = model.log
    assert log.reward_range is not None and log.missing is not None
    low, high = log.reward_range
    ends = {arm: (high, low) if arm in opposed else (low, high) for arm in log.arms}
    lowest = _on(model, log.filled({arm: own[0] for arm, own in ends.items()})).fit(**arguments)
    # the same method at both ends, where it was left to the log
    same = {"estimator": lowest.estimator, "weights": lowest.weights}
    settled = {name: value for name, value in same.items() if arguments.get(name) is None}
    highest = _on(model, log.filled({arm: own[1] for arm, own in ends.items()})).fit(**{**arguments, **settled})
    return both_ends(lowest, highest, log.missing, missing_told(log))


def _on(model: Any, log: AdaptiveLog) -> Any:
    """The same model of another log with the same arms."""
    other = copy(model)
    other.log = log
    return other


def missing_told(log: AdaptiveLog) -> str:
    """How many rewards are missing, by arm."""
    observed = log.arrays.observed
    if observed is None:
        return "No reward is missing"
    drawn = np.bincount(log.arrays.action, minlength=log.n_arms)
    gone = np.bincount(log.arrays.action[~observed], minlength=log.n_arms)
    shares = ", ".join(
        f"{arm} {lost / rounds:.1%} ({lost} of {rounds})" if rounds else f"{arm} never chosen"
        for arm, lost, rounds in zip(log.arms, gone.tolist(), drawn.tolist(), strict=True)
    )
    return f"Rewards missing: {shares}"
