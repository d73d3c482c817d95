"""A lower confidence bound of epsilon from the scores of runs on two neighbouring data sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from adaptinf.errors import ParameterError
from adaptinf.typing import FloatArray, IntArray

_CUTS = 2_048
"""Thresholds that are tried: all values where there are fewer, quantiles of both tails else."""


class Found(NamedTuple):
    """The event that was chosen, and the bound that it gives."""

    epsilon: float
    cut: float
    upper: bool
    swapped: bool
    hits: tuple[int, int]
    tested: int


def log_ratio_bound(likelier: IntArray, rarer: IntArray, runs: int, delta: float, level: float) -> FloatArray:
    """Lower bound of log((p - delta) / q) from counts of an event, at confidence 1 - `level`.

    An event of probability p on one data set and q on its neighbour refutes every epsilon below
    log((p - delta) / q).

    Clopper, C. J. and Pearson, E. S. (1934). The use of confidence or fiducial limits illustrated in the case
    of the binomial. Biometrika 26.

    Ding, Z., Wang, Y., Wang, G., Zhang, D. and Kifer, D. (2018). Detecting violations of differential
    privacy. CCS.
    """
    likelier, rarer = np.asarray(likelier), np.asarray(rarer)
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(likelier > 0, special.betaincinv(likelier, runs - likelier + 1.0, level / 2.0), 0.0)
        high = np.where(rarer < runs, special.betaincinv(rarer + 1.0, runs - rarer, 1.0 - level / 2.0), 1.0)
        return np.asarray(np.log(np.maximum(low - delta, 0.0)) - np.log(high))


def counts_at(scores: FloatArray, cuts: FloatArray, upper: bool) -> IntArray:
    """Scores that are at least (or at most) each cut; `scores` are sorted."""
    if upper:
        return np.asarray(scores.size - np.searchsorted(scores, cuts, side="left"))
    return np.asarray(np.searchsorted(scores, cuts, side="right"))


def bound_from_scores(
    first: FloatArray,
    second: FloatArray,
    *,
    delta: float = 0.0,
    confidence: float = 0.999,
    decimals: int | None = 9,
    n_chosen: int | None = None,
) -> Found:
    """Choose an event on one half of the runs, and bound the ratio of its probabilities on the other.

    Shapes: first, second (runs,).

    In each direction the first runs choose the threshold whose own bound is largest, and only the others
    bound it: the choice costs no confidence. The two directions share the level
    (Bonferroni).
    """
    if decimals is not None:
        first, second = np.round(first, decimals), np.round(second, decimals)
    half = first.size // 2 if n_chosen is None else n_chosen
    if first.shape != second.shape or first.ndim != 1 or not 0 < half < first.size:
        raise ParameterError("bound_from_scores", ["first and second must hold one score for each of n runs"])
    if np.isnan(first).any() or np.isnan(second).any():
        raise ParameterError("bound_from_scores", ["scores must not be NaN"])
    chosen = [np.sort(first[:half]), np.sort(second[:half])]
    tested = [np.sort(first[half:]), np.sort(second[half:])]
    level = (1.0 - confidence) / 2.0
    found = [_one_direction(chosen, tested, swapped, delta, level) for swapped in (False, True)]
    return max(found, key=lambda event: event.epsilon)


def _one_direction(
    chosen: list[FloatArray], tested: list[FloatArray], swapped: bool, delta: float, level: float
) -> Found:
    rarer, likelier = (1, 0) if swapped else (0, 1)
    cuts = _cuts(np.concatenate(chosen))
    best = (-np.inf, 0.0, True)
    for upper in (True, False):
        counts = [counts_at(scores, cuts, upper) for scores in chosen]
        bounds = log_ratio_bound(counts[likelier], counts[rarer], chosen[0].size, delta, level)
        place = int(np.argmax(bounds))
        best = max(best, (float(bounds[place]), float(cuts[place]), upper))
    _, cut, upper = best
    runs = tested[0].size
    hits = [int(counts_at(scores, np.array([cut]), upper)[0]) for scores in tested]
    bound = log_ratio_bound(np.array(hits[likelier]), np.array(hits[rarer]), runs, delta, level)
    return Found(max(0.0, float(bound)), cut, upper, swapped, (hits[0], hits[1]), runs)


def _cuts(scores: FloatArray) -> FloatArray:
    """Thresholds to try: every value where they are few, else quantiles that are dense in both tails."""
    values = np.unique(scores)
    if values.size <= _CUTS:
        return values
    tail = np.geomspace(1.0 / scores.size, 0.5, _CUTS // 2)
    return np.asarray(np.unique(np.quantile(scores, np.r_[tail, 1.0 - tail], method="nearest")))


_BINS = 64
_DISTINCT = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class LearnedScore:
    """Sum over coordinates of the log-ratio of a value's frequency on the second and the first data set."""

    values: tuple[Any, ...]
    ratios: tuple[FloatArray, ...]
    exact: tuple[bool, ...]

    def scores(self, outputs: Any) -> FloatArray:
        """Score of each run, shape (runs,)."""
        total = np.zeros(outputs.shape[0])
        for column, (values, ratios, exact) in enumerate(
            zip(self.values, self.ratios, self.exact, strict=True)
        ):
            total += ratios[_places(outputs[:, column], values, exact)]
        return total

    def members(self, found: Found) -> Any:
        """Values of the one coordinate that make the event, the most telling first."""
        ratios = np.round(self.ratios[0][:-1], 9)
        inside = ratios >= found.cut if found.upper else ratios <= found.cut
        order = np.argsort(-ratios if found.upper else ratios, kind="stable")
        return self.values[0][order[inside[order]]]

    def event(self, found: Found, subject: str) -> str:
        """The event in words."""
        return (
            f"the log-ratio of {subject}, learned from the first quarter of the runs, is at "
            f"{'least' if found.upper else 'most'} {found.cut:.6g}"
        )


def learn(first: Any, second: Any) -> LearnedScore:
    """Learn a score from outputs on two data sets, each of shape (runs, coordinates)."""
    values, ratios, exact = [], [], []
    for column in range(first.shape[1]):
        pooled = np.concatenate([first[:, column], second[:, column]])
        seen = np.unique(pooled)
        is_exact = seen.size <= _DISTINCT
        if not is_exact:
            seen = np.unique(np.quantile(pooled, np.arange(_BINS) / _BINS))
        counts = [
            np.bincount(_places(side[:, column], seen, is_exact), minlength=seen.size + 1)
            for side in (first, second)
        ]
        values.append(seen)
        ratios.append(np.log((counts[1] + 0.5) / (counts[0] + 0.5)))
        exact.append(is_exact)
    return LearnedScore(tuple(values), tuple(ratios), tuple(exact))


def _places(outputs: Any, values: Any, exact: bool) -> Any:
    """Row of each output in a table of values (the last row for unseen ones) or of bins."""
    if not exact:
        return np.clip(np.searchsorted(values, outputs, side="right") - 1, 0, values.size - 1)
    place = np.minimum(np.searchsorted(values, outputs), values.size - 1)
    return np.where(values[place] == outputs, place, values.size)
