"""Arms that are taken out while a design goes on: what its probabilities become, and what it must be."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from adaptinf.typing import FloatArray

_INSTEAD = "pause or finish, and begin anew without the arm"


def without(probabilities: FloatArray, removed: Sequence[int]) -> FloatArray:
    """Probabilities of the arms given that it is none of those removed; both shapes (arms,).

    An arm that is left gets p_a / (1 - p_removed). Where all of them have 0, they share equally: somebody is
    there to be assigned, and the design has no opinion on these arms.
    """
    left = probabilities.copy()
    left[list(removed)] = 0.0
    total = float(left.sum())
    if total > 0.0:
        return np.asarray(left / total, dtype=np.float64)
    left[:] = 1.0 / (len(left) - len(set(removed)))
    left[list(removed)] = 0.0
    return left


def drawn(probabilities: FloatArray, draw: float) -> int:
    """The arm that a number in [0, 1) stands for; never one of probability 0."""
    possible = np.flatnonzero(probabilities > 0.0)
    place = int(np.searchsorted(np.cumsum(probabilities[possible]), draw, side="right"))
    return int(possible[min(place, len(possible) - 1)])


def unfit(name: str, pending: str, own_coins: bool, known: bool) -> list[str]:
    """Why a design cannot go on without an arm; `known` says whether its probabilities are."""
    if pending != "any":
        reason = "waits for outcomes before it chooses, and plans with all of its arms"
    elif not own_coins:
        reason = "has no coins of its own, whose probabilities the other arms could share (a Mixture has)"
    elif not known:
        reason = "names arms without their probabilities, which the other arms could share"
    else:
        return []
    return [f"{name} {reason}: {_INSTEAD}"]
