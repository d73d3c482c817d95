"""The question about a winner, and how the winner was determined."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adaptinf.parameters import number_array
from adaptinf.texts import unlisted
from adaptinf.typing import FloatArray


@dataclass(frozen=True, slots=True)
class Contest:
    """A question about the winner.

    Attributes
    ----------
    size : int
        Number of estimates.
    won : int
        Position of the winner.
    against : int or None
        Position of the arm with which the winner's mean is compared; None if the mean itself is the target.
    ahead : tuple of (int, int)
        Pairs of positions in which the first arm is ahead of the second: the observations that determined the
        question.
    family : int
        Number of questions that could have been selected, counting a question and its reverse as one.
    """

    size: int
    won: int
    against: int | None
    ahead: tuple[tuple[int, int], ...]
    family: int

    @classmethod
    def of_mean(cls, x: FloatArray, won: int | None = None) -> Contest:
        """The mean of the arm with the highest estimate, or of one selected otherwise; x has shape (k,)."""
        won = int(np.argmax(x)) if won is None else won
        return cls(x.size, won, None, _before(won, range(x.size)), x.size)

    @classmethod
    def against_control(cls, x: FloatArray, control: int, won: int | None = None) -> Contest:
        """The winner's mean relative to a control that is not in the contest; x has shape (k,)."""
        others = [place for place in range(x.size) if place != control]
        won = max(others, key=lambda place: x[place]) if won is None else won
        return cls(x.size, won, control, _before(won, others), len(others))

    @classmethod
    def against_runner_up(cls, x: FloatArray) -> Contest:
        """The mean of the highest arm minus that of the second highest; x has shape (k,)."""
        won, second = (int(place) for place in np.argsort(-x, kind="stable")[:2])
        others = [place for place in range(x.size) if place != won]
        return cls(x.size, won, second, ((won, second), *_before(second, others)), x.size * (x.size - 1) // 2)

    @property
    def direction(self) -> FloatArray:
        """The coefficients of the means in the estimand, shape (k,)."""
        found = np.zeros(self.size)
        found[self.won] = 1.0
        if self.against is not None:
            found[self.against] = -1.0
        return found

    @property
    def ranked(self) -> bool:
        """Whether the winner is compared with the second highest arm."""
        return (self.won, self.against) in self.ahead

    def tied(self, x: FloatArray, sigma: FloatArray, near: float = 0.0) -> bool:
        """Whether a lead is at most `near` standard errors, or rounding error; x (k,), sigma (k, k).

        If estimates are equal, the choice among them was made in some other way. If a lead is only slightly
        above 0, the estimate is so close to the end of its distribution given the choice that intervals
        shrink to a point away from the estimate itself.
        """
        rounding = 1e-12 * max(math.sqrt(float(np.diagonal(sigma).max())), float(np.abs(x).max()))
        for first, second in self.ahead:
            variance = sigma[first, first] + sigma[second, second] - 2.0 * sigma[first, second]
            if x[first] - x[second] <= max(rounding, near * math.sqrt(max(float(variance), 0.0))):
                return True
        return False

    def limits(self, x: FloatArray, sigma: FloatArray) -> tuple[float, float]:
        """Limits of the estimate within which the same arms lead, given the part independent of it.

        Shapes: x (k,), sigma (k, k).
        """
        slope, rest = split(x, sigma, self.direction)
        low, high = -math.inf, math.inf
        for first, second in self.ahead:
            lead, rise = float(rest[first] - rest[second]), float(slope[first] - slope[second])
            if rise > 0.0:
                low = max(low, -lead / rise)
            elif rise < 0.0:
                high = min(high, -lead / rise)
        return low, high


def split(x: FloatArray, sigma: FloatArray, direction: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How the estimates change with a combination of them, and the part that is independent of it.

    Shapes: x (k,), sigma (k, k), direction (k,); returns two arrays of shape (k,).
    """
    along = sigma @ direction
    slope = along / float(direction @ along)
    return slope, x - slope * float(direction @ x)


def asked_of(
    x: FloatArray, arms: Sequence[Any], control: Any, runner_up: bool, winner: Any = None
) -> Contest:
    """The question about these arms, whose estimates have shape (k,)."""
    if runner_up:
        return Contest.against_runner_up(x)
    won = None if winner is None else list(arms).index(winner)
    if control is None:
        return Contest.of_mean(x, won)
    return Contest.against_control(x, list(arms).index(control), won)


def noise_problems(arms: Sequence[Any], noise: Any, winner: Any, control: Any, runner_up: Any) -> list[str]:
    """Problems with the arguments of a choice by noisy estimates."""
    if noise is None:
        return (
            []
            if winner is None
            else ["without noise, the winner is the highest estimate: winner= applies only with noise="]
        )
    problems = []
    scales = number_array(noise)
    if (
        scales is None
        or scales.shape not in ((), (len(arms),))
        or not ((scales > 0) & (scales < 1e100)).all()
    ):
        problems.append("noise must be one positive scale, or one for each estimate")
    if winner is None:
        problems.append("noise requires winner, the arm selected from the noisy estimates")
    elif winner not in arms or winner == control:
        problems.append(unlisted("winner", [arm for arm in arms if arm != control], winner))
    if runner_up is True:
        problems.append(
            "runner_up is not available with noise, which also affects the choice of the runner-up"
        )
    return problems


def variance_problems(sigma: FloatArray, contest: Contest) -> list[str]:
    """Reasons why the estimand has no distribution; sigma has shape (k, k)."""
    direction = contest.direction
    size = float(np.abs(direction) @ np.abs(sigma) @ np.abs(direction))
    if float(direction @ sigma @ direction) > 1e-14 * size:
        return []
    return ["the difference between the two has zero variance: omit one of them"]


def comparison_problems(arms: Sequence[Any], control: Any, runner_up: Any) -> list[str]:
    """Problems with the arguments of a comparison."""
    problems = (
        [] if isinstance(runner_up, bool) else [f"runner_up must be True or False, got {runner_up!r:.60}"]
    )
    if control is not None and control not in arms:
        problems.append(unlisted("control", arms, control))
    if control is not None and runner_up is True:
        problems.append("control and runner_up define two different comparisons: use one at a time")
    if len(arms) < 2 and (control is not None or runner_up is True):
        problems.append("a comparison requires at least two estimates")
    return problems


def _before(first: int, places: range | list[int]) -> tuple[tuple[int, int], ...]:
    return tuple((first, place) for place in places if place != first)
