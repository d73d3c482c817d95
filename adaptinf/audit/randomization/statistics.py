"""Statistics of randomisation tests: from counts, sums and sums of squares by arm, or from whole paths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from adaptinf.errors import ParameterError
from adaptinf.typing import FloatArray, IntArray

STATISTICS = ("studentised", "difference", "largest-studentised", "f", "pulls")
ALTERNATIVES = ("two-sided", "greater", "less")

_ROUNDING = 1e-9


def studentised(tallies: FloatArray, treatment: int, control: int) -> FloatArray:
    """Difference of two means over its standard error with the pooled variance of the two arms.

    Shapes: tallies (runs, arms, 3); returns (runs,).
    """
    count, total, square = np.moveaxis(tallies[:, [treatment, control]], -1, 0)
    inside = np.maximum(square - _over(total * total, count), 0.0).sum(axis=1)
    freedom = count.sum(axis=1) - 2.0
    scale = _over(1.0, count).sum(axis=1)
    return _ratio(difference(tallies, treatment, control), inside, freedom, scale, square.sum(axis=1))


def difference(tallies: FloatArray, treatment: int, control: int) -> FloatArray:
    """Difference of two means, shape (runs,); 0 where an arm was not pulled."""
    count, total = tallies[..., 0], tallies[..., 1]
    means = _over(total, count)
    both = (count[:, treatment] > 0.0) & (count[:, control] > 0.0)
    return np.where(both, means[:, treatment] - means[:, control], 0.0)


def largest_studentised(tallies: FloatArray) -> FloatArray:
    """Largest absolute studentised contrast over all pairs of arms, shape (runs,)."""
    n_arms = tallies.shape[1]
    pairs = [
        np.abs(studentised(tallies, first, second)) for first in range(n_arms) for second in range(first)
    ]
    return np.asarray(np.max(pairs, axis=0), dtype=np.float64)


def variance_ratio(tallies: FloatArray) -> FloatArray:
    """F statistic of a one-way analysis of variance over the arms that were pulled, shape (runs,)."""
    count, total, square = np.moveaxis(tallies, -1, 0)
    whole = count.sum(axis=1)
    explained = _over(total * total, count).sum(axis=1) - total.sum(axis=1) ** 2 / whole
    inside = np.maximum(square - _over(total * total, count), 0.0).sum(axis=1)
    groups = (count > 0.0).sum(axis=1)
    explained = np.where(explained > _ROUNDING**1.5 * square.sum(axis=1), explained, 0.0)
    inside = np.where(inside > _ROUNDING**1.5 * square.sum(axis=1), inside, 0.0)
    between = _over(explained, np.maximum(groups - 1.0, 0.0))
    within = _over(inside, np.maximum(whole - groups, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(between > 0.0, between / within, 0.0)


def pulls(tallies: FloatArray, treatment: int, control: int) -> FloatArray:
    """Pulls of one arm minus pulls of another, shape (runs,)."""
    return np.asarray(tallies[:, treatment, 0] - tallies[:, control, 0], dtype=np.float64)


def shifted(tallies: FloatArray, treatment: int, effect: float) -> FloatArray:
    """Tallies after `effect` is taken from every reward of an arm."""
    moved = tallies.copy()
    count, total = tallies[:, treatment, 0], tallies[:, treatment, 1]
    moved[:, treatment, 1] = total - effect * count
    moved[:, treatment, 2] += effect * (effect * count - 2.0 * total)
    return moved


def tally_path(action: IntArray, reward: FloatArray, n_arms: int) -> FloatArray:
    """Counts, sums and sums of squares of a path by arm, shape (arms, 3)."""
    parts = [np.bincount(action, weights=w, minlength=n_arms) for w in (None, reward, reward * reward)]
    return np.stack(parts, axis=1).astype(np.float64)


def _over(top: Any, bottom: FloatArray) -> FloatArray:
    return np.asarray(np.where(bottom > 0.0, top / np.where(bottom > 0.0, bottom, 1.0), 0.0))


def _ratio(
    gap: FloatArray, inside: FloatArray, freedom: FloatArray, scale: FloatArray, square: FloatArray
) -> FloatArray:
    """Ratio gap / sqrt(inside / freedom * scale), where rounding errors of sums count as 0."""
    variance = np.where(inside > _ROUNDING**1.5 * square, inside, 0.0) / np.maximum(freedom, 1.0)
    nothing = (variance == 0.0) & (np.abs(gap) <= _ROUNDING * np.sqrt(square))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(nothing, 0.0, gap / np.sqrt(variance * scale))


@dataclass(frozen=True, slots=True)
class TallyStatistic:
    """A statistic of counts, sums and sums of squares: large values speak against the hypothesis."""

    name: str
    treatment: int
    control: int
    alternative: str

    def signed(self, tallies: FloatArray) -> FloatArray:
        """The statistic as it is reported, shape (runs,)."""
        if self.name == "studentised":
            return studentised(tallies, self.treatment, self.control)
        if self.name == "difference":
            return difference(tallies, self.treatment, self.control)
        if self.name == "largest-studentised":
            return largest_studentised(tallies)
        if self.name == "f":
            return variance_ratio(tallies)
        return pulls(tallies, self.treatment, self.control)

    def evidence(self, values: FloatArray) -> FloatArray:
        """Reported values turned so that larger ones speak against the hypothesis."""
        if self.name in ("largest-studentised", "f") or self.alternative == "greater":
            return values
        return np.abs(values) if self.alternative == "two-sided" else -values


@dataclass(frozen=True, slots=True)
class PathStatistic:
    """A user's function of whole paths; larger values speak against the hypothesis."""

    function: Callable[..., Any]
    vectorised: bool

    @property
    def name(self) -> str:
        """Name of the function."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def __call__(self, action: IntArray, reward: FloatArray, context: dict[str, Any]) -> FloatArray:
        """Values of the runs; arrays have shape (runs, rounds)."""
        # Copies: a function that writes into its arrays must not change the log, or the next run.
        if self.vectorised:
            own = {name: column.copy() for name, column in context.items()}
            values = self.function(action.copy(), reward.copy(), own)
        else:
            values = [
                self.function(a.copy(), r.copy(), {name: c[run].copy() for name, c in context.items()})
                for run, (a, r) in enumerate(zip(action, reward, strict=True))
            ]
        try:
            found = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise ParameterError("statistic", [f"must return numbers, got {values!r:.60}"]) from None
        if found.shape != (action.shape[0],):
            shape = "one number per run" if self.vectorised else "one number"
            raise ParameterError("statistic", [f"must return {shape}, got an array of shape {found.shape}"])
        if np.isnan(found).any():
            count = int(np.isnan(found).sum())
            raise ParameterError(
                "statistic",
                [
                    f"is NaN in {count} of {found.size} runs: return a number for every path, such as -inf "
                    "where an arm was never pulled"
                ],
            )
        return found
