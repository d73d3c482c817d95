"""How many arms enter each phase of a best-arm design, and how many rounds it has."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from adaptinf.parameters import COUNT, Count, check
from adaptinf.typing import IntArray


@dataclass(frozen=True, slots=True)
class Schedule:
    """Phases of DP-BAI; sizes (phases + 1,)."""

    ratio: float
    fast_phases: int
    phases: int
    sizes: IntArray


def max_det_schedule(n_arms: int, dimension: int) -> Schedule:
    """Numbers of arms in the phases of DP-BAI, equations (4) to (8).

    Parameters
    ----------
    n_arms, dimension : int
        K, at least 2, and d.

    Returns
    -------
    Schedule
        With lambda, M_1, M and s_1, ..., s_{M+1}.

    Raises
    ------
    ParameterError
        Listing what is out of range.

    Notes
    -----
    Logarithms are natural, and both minima in (8) are over i = 1, 2, ...: M counts from 1 in the paper, and
    M_1 = 0 for K <= ceil(d^2 / 4) would make s_1 = g_1 although K arms enter. At d = 1 no lambda satisfies
    (4) for K > 2, and it is infinite: one phase.

    Examples
    --------
    >>> from adaptinf.designs.best_arm.schedule import max_det_schedule
    >>> found = max_det_schedule(10_000, 16)
    >>> round(found.ratio, 2), found.fast_phases, found.phases, found.sizes.tolist()
    (27.65, 3, 8, [10000, 423, 77, 32, 16, 8, 4, 2, 1])
    """
    check("max_det_schedule", n_arms=(n_arms, Count(2)), dimension=(dimension, COUNT))
    quarter = -(-dimension * dimension // 4)
    slow = min(n_arms, quarter)
    extra = max(n_arms - quarter, 0)
    ratio = _ratio(extra, dimension)
    sizes = [slow + extra]
    fast_phases = 1
    while (extra := max(0, math.ceil((extra + 1) / ratio - 1.0))) > 0:
        sizes.append(slow + extra)
        fast_phases += 1
    while len(sizes) == fast_phases or sizes[-1] > 1:
        slow = -(-slow // 2)
        sizes.append(slow)
    return Schedule(ratio, fast_phases, len(sizes) - 1, np.array(sizes, dtype=np.int64))


def reserve(schedule: Schedule, dimension: int) -> int:
    """Rounds that DP-BAI sets aside because it rounds pulls up.

    Those in (8), or as many as rounding can cost where (8) has fewer: phase p pulls at most d arms where
    d^2 < s_p, at most s_p elsewhere, whatever the dimension of their span is. Pulling n_1, ..., n_M arms
    ceil(T' / (M n_p)) times each takes at most T' + n_1 + ... + n_M - 1 rounds.
    """
    pulled = [dimension if dimension**2 < size else size for size in schedule.sizes[:-1].tolist()]
    return max(printed_reserve(schedule, dimension), sum(pulled) - 1)


def printed_reserve(schedule: Schedule, dimension: int) -> int:
    """T - T' as (8) has it."""
    quarter = -(-dimension * dimension // 4)
    return schedule.fast_phases * dimension + (schedule.phases - schedule.fast_phases) * quarter


def halving_sizes(n_arms: int) -> IntArray:
    """Arms that enter each round of sequential halving, and the one that is left."""
    sizes = [n_arms]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // 2))
    return np.array(sizes, dtype=np.int64)


def optimal_sizes(n_arms: int, dimension: int) -> IntArray:
    """Arms that enter each round of OD-LinBAI, and the one that is left: K, then d / 2^r, rounded up."""
    sizes = [n_arms]
    while sizes[-1] > 1:
        sizes.append(-(-dimension // 2 ** len(sizes)))
    return np.array(sizes, dtype=np.int64)


def _ratio(extra: int, dimension: int) -> float:
    """The smallest lambda >= 2 with lambda^log(d) >= extra; infinite where there is none."""
    if extra <= 1:
        return 2.0
    return math.inf if dimension == 1 else max(2.0, math.exp(math.log(extra) / math.log(dimension)))
