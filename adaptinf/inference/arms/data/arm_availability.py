"""Whether the difference between two arms is the same when a third is unavailable.

The question is answered by comparing two parts of a log.

The score of round t is g_t = (1{A = i} (y - m) / e_i) - (1{A = j} (y - m) / e_j), where m is the mean of all
earlier rewards. Its expectation is the difference between arms i and j in the round, even if the level of all
arms changes. Scores are averaged over the rounds in which all arms were possible, and over the other rounds,
with weights h = (1/e_i + 1/e_j)^(-1/2) from the previous round or batch. If the arms differ equally in both
parts, the difference between the two averages has mean zero, and their errors are uncorrelated. The arm with
the most rewards in the other rounds is compared with each arm that was also available there. Rounds in which
an arm could not be chosen contain no information on it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import special

from adaptinf.inference.validity.calibration import some_rounds
from adaptinf.inference.validity.profile import FEW_EFFECTIVE
from adaptinf.typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.validity.profile import LogProfile


ALARM = 1e-3
"""If the p-value times the number of pairs is below this threshold, the difference is taken to depend on
availability."""
_LEAST_REWARDS = 20
"""Minimum number of rewards of each arm in each part, for approximate normality."""


class Apart(NamedTuple):
    """The pair of arms whose difference changes most clearly, with its p-value times the number of pairs."""

    first: int
    second: int
    pvalue: float


class _Parts(NamedTuple):
    """Components for R rounds or batches: the number of rounds in each and, for each arm, sums over them.

    The propensities, the numbers of rewards, and the sums of scores and of their squares have shape (k, R);
    the numbers of rounds have shape (R,).
    """

    rounds: FloatArray
    share: FloatArray
    number: FloatArray
    score: FloatArray
    squares: FloatArray


def differs_elsewhere(profile: LogProfile, codes: IntArray) -> Apart | None:
    """Compare rounds in which all of the given arms were available with other rounds; codes (k,).

    None if no pair can be tested because there are only two arms, unknown propensities, or too few rewards.
    """
    if len(codes) < 3 or profile.repeated_units or profile.incomplete or profile.estimated:
        return None
    if not profile.knows_every_propensity:
        return None
    parts = _of_cells(profile, codes) if profile.sums is not None else _of_rows(profile, codes)
    possible = parts.share > 0.0
    every: BoolArray = np.asarray(possible.all(axis=0))
    outside = parts.number @ ~every
    one = int(outside.argmax())
    found = {
        other: _score(parts, one, other, possible, every)
        for other in range(len(codes))
        if other != one and outside[other] >= _LEAST_REWARDS
    }
    z = {other: value for other, value in found.items() if math.isfinite(value)}
    if not z:
        return None
    other = max(z, key=lambda place: abs(z[place]))
    p = min(1.0, float(2.0 * special.ndtr(-abs(z[other]))) * len(z))
    return Apart(int(codes[one]), int(codes[other]), p)


def _of_rows(profile: LogProfile, codes: IntArray) -> _Parts:
    arrays = profile.log.arrays
    rows = some_rounds(profile.log.n_rounds, profile.log.n_arms)
    assert arrays.propensities is not None
    share = np.ascontiguousarray(arrays.propensities[rows].T[codes])
    reward, ones = arrays.reward[rows], np.ones(len(share[0]))
    chosen = (arrays.action[rows] == codes[:, None]).astype(np.float64)
    score = (reward - _before(reward, ones)) / np.where(share > 0.0, share, 1.0)
    score *= chosen
    return _Parts(ones, share, chosen, score, score**2)


def _of_cells(profile: LogProfile, codes: IntArray) -> _Parts:
    """Components from sums; in weights, propensities that vary within a batch are replaced by their mean."""
    assert profile.sums is not None
    cells = profile.sums.cells
    number, total = cells.moments[0, 0], cells.moments[0, 1]
    away = -_before(total.sum(axis=1), number.sum(axis=1))
    plain, score, squares = (cells.moments[power].transpose(0, 2, 1)[:, codes] for power in (0, 1, 2))
    first = score[1] + away * score[0]
    second = squares[2] + 2.0 * away * squares[1] + away**2 * squares[0]
    possible, rounds = cells.smallest.T[codes] > 0.0, np.asarray(cells.rounds, dtype=np.float64)
    return _Parts(rounds, np.where(possible, cells.expected.T[codes] / rounds, 0.0), plain[0], first, second)


def _before(total: FloatArray, number: FloatArray) -> FloatArray:
    """Mean of earlier rewards, or 0 if there are none yet; total and number have shape (R,)."""
    sums, counts = np.cumsum(total) - total, np.cumsum(number) - number
    return np.asarray(sums / np.maximum(counts, 1.0), dtype=np.float64)


def _score(parts: _Parts, one: int, other: int, possible: BoolArray, every: BoolArray) -> float:
    """Standardised difference between the two parts of a log; NaN if it is not approximately normal."""
    both = np.flatnonzero(possible[one] & possible[other])
    weight = 1.0 / np.sqrt(1.0 / parts.share[one][both] + 1.0 / parts.share[other][both])
    # Weights use the propensities of the previous round, and predictions the rewards before, so the first
    # round has neither.
    weight, places = weight[:-1], both[1:]
    means, variances = [], []
    for part in (every[places], ~every[places]):
        at, h = places[part], weight[part]
        own, others = parts.number[one][at], parts.number[other][at]
        if min(own.sum(), others.sum()) < _LEAST_REWARDS:
            return math.nan
        gap, n = parts.score[one][at] - parts.score[other][at], parts.rounds[at]
        size = float(h @ n)
        mean = float(h @ gap) / size
        squares = parts.squares[one][at] + parts.squares[other][at] - mean * (2.0 * gap - n * mean)
        terms = h**2 * np.maximum(squares, 0.0)
        # The effective number of rounds must be large enough for normality. The sums of a batch count as as
        # many rounds as there are rewards in them.
        fourth = float(terms**2 @ (1.0 / np.maximum(own + others, 1.0)))
        if not terms.sum() ** 2 >= FEW_EFFECTIVE * fourth > 0.0:
            return math.nan
        means.append(mean)
        variances.append(float(terms.sum()) / size**2)
    return (means[0] - means[1]) / math.sqrt(sum(variances))
