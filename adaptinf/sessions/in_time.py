"""Successes and failures within the window, by arm: one histogram that is released when the last one ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.parameters import POSITIVE
from adaptinf.privacy.release import GRID_UNITS, to_grid
from adaptinf.sessions.releasing import Draw, unit_scale
from adaptinf.typing import BoolArray, FloatArray, IntArray

SENSITIVITY = 2.0
"""A record that is replaced takes at most 1 from one cell and gives at most 1 to another."""


def in_time_problems(design: Any, epsilon: Any, window: int | None) -> list[str]:
    """Why in-time outcomes cannot be counted; nothing where nobody asks for that."""
    if epsilon is None:
        return []
    name, problems = type(design).__name__, POSITIVE("in_time", epsilon)
    if design.pending != "window" or window is None:
        return [*problems, f"in_time must be left out: without a window no outcome of {name} can miss it"]
    if design.traits.uses_context != "no":
        problems.append(
            f"in_time must be left out: {name} assigns arms by context, so that the arms' rounds are "
            "different mixes of contexts, whose rates cannot be compared"
        )
    return problems


def with_in_time(guarantee: PrivacyGuarantee | None, epsilon: float | None) -> PrivacyGuarantee | None:
    """What is promised with the histogram beside all else that is released."""
    if guarantee is None or epsilon is None:
        return guarantee
    own = PrivacyGuarantee(epsilon, unit=guarantee.unit, model=guarantee.model, notion=guarantee.notion)
    return guarantee.compose(own)


def in_time_units(action: IntArray, reward: FloatArray, in_time: BoolArray, n_arms: int) -> IntArray:
    """Sums of r and of 1 - r over the rounds of each arm whose outcome was in time, in units of the grid.

    Shapes: action, reward, in_time (T,); returns (n_arms, 2).
    """
    won = to_grid(np.clip(reward[in_time], 0.0, 1.0))
    sums = np.zeros((n_arms, 2), dtype=np.int64)
    np.add.at(sums[:, 0], action[in_time], won)
    np.add.at(sums[:, 1], action[in_time], GRID_UNITS - won)
    return sums


def in_time_releaser(
    epsilon: float | None, draw: Draw | None, coins: np.random.Generator
) -> Callable[[IntArray], FloatArray] | None:
    """What releases the sums, with the noise of `draw` or simulated from coins; None where nobody asks."""
    if epsilon is None:
        return None
    scale = unit_scale(SENSITIVITY / epsilon)

    def simulated(name: str, scale: float) -> float:
        return float(coins.laplace(scale=scale))

    return lambda units: in_time_release(units, scale, draw or simulated)


def in_time_release(units: IntArray, scale: float, draw: Draw) -> FloatArray:
    """The sums with noise of this scale in units on each, all drawn first; both shapes (n_arms, 2)."""
    noise = [
        [draw(f"in-time {what} of arm {arm}", scale) for what in ("successes", "failures")]
        for arm in range(len(units))
    ]
    return np.array(
        [
            [(int(total) + each) / GRID_UNITS for total, each in zip(*row, strict=True)]
            for row in zip(units.tolist(), noise, strict=True)
        ],
        dtype=np.float64,
    )
