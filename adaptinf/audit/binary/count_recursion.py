"""Forward recursion over the counts of a two-arm binary design, by rounds and by batches.

A state is (n1, s1, n0, s0): pulls and successes of either arm. The weight q of a state is the probability
that the design assigns arm 1 to exactly n1 of the t rounds, given that s1 of the first n1 rewards of arm 1
and s0 of the first n0 rewards of arm 0, in random order, are successes. It lies in [0, 1], and P(state) = q
Bin(s1; n1, theta1) Bin(s0; n0, theta0). Every step is a sum of positive products, so rounding errors
accumulate but never cancel.

Layer t contains its states in blocks n1 = 0, ..., t; a block has a row for each s1 and a column for each s0.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from adaptinf.compilation import compiled, kernel
from adaptinf.typing import FloatArray

# Compiled code cannot compare types, so the recursion knows the rule that proposes arm 1 by a number.
UNIFORM, GREEDY, UCB, POSTERIOR, NORMAL, URN, CUSTOM = range(7)

# Smaller weights count as 0: arithmetic with subnormal numbers, which begin at 2e-308, is very slow.
TINY = 1e-290
# Smaller terms of a binomial tail are omitted: the tail is a probability of arm 1, in which they are far
# below rounding error.
NEGLIGIBLE = 1e-20


class RuleTables(NamedTuple):
    """A rule and its parameters.

    Shapes: floor, share (T,), log_gamma (6, T + 2), corner (T + 1, T + 1), custom (states,) or (0,).
    """

    kind: int
    first: float
    second: float
    noise_variance: float
    draws: int
    forced: int
    dealt: bool
    floor: FloatArray
    share: FloatArray
    log_gamma: FloatArray
    corner: FloatArray
    custom: FloatArray


class Work(NamedTuple):
    """Space for one block.

    Shapes: up, down, gained, kept and last (largest block,), rows (2, T + 2).
    """

    up: FloatArray
    down: FloatArray
    gained: FloatArray
    kept: FloatArray
    last: FloatArray
    rows: FloatArray


@kernel
def _overlap(tables: RuleTables, a: int, b: int, c: int, d: int) -> float:
    """B(x + z, y + w) / (B(x, y) B(z, w)) with (x, y, z, w) the prior's parameters plus (a, b, c, d)."""
    table = tables.log_gamma
    upper = table[2, a + c] + table[3, b + d] - table[5, a + b + c + d]
    lower = table[0, a] + table[1, b] - table[4, a + b] + table[0, c] + table[1, d] - table[4, c + d]
    return math.exp(upper - lower)


@kernel
def _posterior_block(tables: RuleTables, n1: int, n0: int, work: Work) -> None:
    """P(theta1 > theta0) and P(theta0 > theta1), each a sum of positive terms from a corner of the block."""
    first, second = tables.first, tables.second
    up, down, column = work.up, work.down, n0 + 1
    increment, above = work.rows[0], work.rows[1]
    up[n0] = tables.corner[n1, n0]
    for s0 in range(n0 - 1, -1, -1):
        inverse = 1.0 / (first + s0) + 1.0 / (second + n0 - s0 - 1)
        up[s0] = up[s0 + 1] + inverse * _overlap(tables, 0, n1, s0, n0 - s0 - 1)
    above[0] = tables.corner[n0, n1]
    for s0 in range(n0):
        inverse = 1.0 / (first + s0) + 1.0 / (second + n0 - s0 - 1)
        above[s0 + 1] = above[s0] + inverse * _overlap(tables, n1, 0, s0, n0 - s0 - 1)
    if n1 > 0:
        for s0 in range(n0 + 1):
            increment[s0] = _overlap(tables, 0, n1 - 1, s0, n0 - s0)
    for s1 in range(n1):
        a, b = first + s1, second + n1 - s1 - 1.0
        inverse, ratio = 1.0 / a + 1.0 / b, (b - 1.0) / a
        here, after = s1 * column, (s1 + 1) * column
        for s0 in range(column):
            step = increment[s0] * inverse
            down[here + s0] = step
            up[after + s0] = up[here + s0] + step
            increment[s0] *= ratio * ((a + first) + s0) / ((b - 1.0 + second) + (n0 - s0))
    for s0 in range(column):
        down[n1 * column + s0] = above[s0]
    for s1 in range(n1 - 1, -1, -1):
        here, after = s1 * column, (s1 + 1) * column
        for s0 in range(column):
            down[here + s0] += down[after + s0]


@kernel
def _normal_probability(tables: RuleTables, n1: int, s1: int, n0: int, s0: int, sign: float) -> float:
    one = 1.0 / tables.second + n1 / tables.noise_variance
    zero = 1.0 / tables.second + n0 / tables.noise_variance
    prior = tables.first / tables.second
    gap = (prior + s1 / tables.noise_variance) / one - (prior + s0 / tables.noise_variance) / zero
    return 0.5 * math.erfc(-sign * gap / math.sqrt(2.0 * (1.0 / one + 1.0 / zero)))


@kernel
def _greedy(n1: int, s1: int, n0: int, s0: int) -> float:
    if n0 == 0:
        return 0.0
    return 1.0 if n1 == 0 or s1 / n1 > s0 / n0 else 0.0


@kernel
def _highest_bound(tables: RuleTables, n1: int, s1: int, n0: int, s0: int) -> float:
    if n0 == 0 or n1 == 0:
        return 0.0 if n0 == 0 else 1.0
    width = math.sqrt(tables.first * math.log(n1 + n0 + 1.0))
    one = s1 * (1.0 / n1) + math.sqrt(1.0 / n1) * width
    zero = s0 * (1.0 / n0) + math.sqrt(1.0 / n0) * width
    return 1.0 if one > zero else 0.0


@kernel
def _below(p: float, q: float, draws: int, floor: float, log_count: float) -> float:
    """Mean of max(floor - K / draws, 0) for K ~ Binomial(draws, 1 - q), summed over the smaller tail."""
    k = math.ceil(floor * draws) - 1
    if p <= 0.0:
        return floor
    if q <= 0.0 or k < 0:
        return 0.0
    term = math.exp(log_count + k * math.log(p) + (draws - k) * math.log(q))
    total = 0.0
    # Below the mean of the distribution the lower tail is the small one, and keeps its relative accuracy.
    if k < draws * p:
        while k >= 0 and term > NEGLIGIBLE:
            total += (floor - k / draws) * term
            term *= k / (draws - k + 1.0) * (q / p)
            k -= 1
        return total
    while k < draws and term > NEGLIGIBLE:
        term *= (draws - k) / (k + 1.0) * (p / q)
        k += 1
        total += (k / draws - floor) * term
    return floor - p + total


@kernel
def _largest_count(draws: int, floor: float) -> float:
    """Logarithm of the binomial coefficient of the last count below the floor."""
    k = max(math.ceil(floor * draws) - 1, 0)
    return math.lgamma(draws + 1.0) - math.lgamma(k + 1.0) - math.lgamma(draws - k + 1.0)


@kernel
def _raised(p: float, q: float, draws: int, floor: float, log_count: float) -> float:
    """Increase in the mean of the frequency K / draws, which is p, due to a floor."""
    if draws == 0:
        return min(max(p, floor), 1.0 - floor) - p
    return _below(p, q, draws, floor, log_count) - _below(q, p, draws, floor, log_count)


@compiled
def clipped_frequency(p: float, q: float, draws: int, floor: float) -> float:
    """Mean of K / draws clipped to [floor, 1 - floor], K ~ Binomial(draws, p); of p if draws is 0."""
    return p + _raised(p, q, draws, floor, _largest_count(draws, floor))


@kernel
def fill(tables: RuleTables, n1: int, n0: int, start: int, work: Work) -> None:
    """Probabilities of arm 1 and arm 0 under the rule itself, before floors and uniform draws."""
    if tables.kind == POSTERIOR:
        _posterior_block(tables, n1, n0, work)
        return
    position = 0
    for s1 in range(n1 + 1):
        for s0 in range(n0 + 1):
            chance = 0.5
            if tables.kind == GREEDY:
                chance = _greedy(n1, s1, n0, s0)
            elif tables.kind == UCB:
                chance = _highest_bound(tables, n1, s1, n0, s0)
            elif tables.kind == CUSTOM:
                chance = tables.custom[start + position]
            elif tables.kind == URN:
                balls = 2.0 * tables.first + tables.second * (n1 + n0)
                chance = (tables.first + tables.second * (s1 + n0 - s0)) / balls
            work.down[position] = 1.0 - chance
            if tables.kind == NORMAL:
                chance = _normal_probability(tables, n1, s1, n0, s0, 1.0)
                work.down[position] = _normal_probability(tables, n1, s1, n0, s0, -1.0)
            elif tables.kind == URN:
                work.down[position] = (tables.first + tables.second * (s0 + n1 - s1)) / balls
            work.up[position] = chance
            position += 1


@kernel
def _mix(tables: RuleTables, step: int, size: int, work: Work) -> None:
    """Apply the round's floor and uniform draws to the probabilities of a block."""
    floor, share = tables.floor[step], tables.share[step]
    log_count = _largest_count(tables.draws, floor)
    for i in range(size):
        one, zero = work.up[i], work.down[i]
        if floor > 0.0:
            raised = _raised(one, zero, tables.draws, floor, log_count)
            one, zero = max(one + raised, floor), max(zero - raised, floor)
        work.up[i] = 0.5 * share + (1.0 - share) * one
        work.down[i] = 0.5 * share + (1.0 - share) * zero


@kernel
def _probabilities(tables: RuleTables, n1: int, n0: int, start: int, work: Work) -> None:
    size = (n1 + 1) * (n0 + 1)
    if n1 + n0 < tables.forced and tables.dealt:
        share, turn = tables.share[n1 + n0], float((n1 + n0) % 2)
        for i in range(size):
            work.up[i] = 0.5 * share + (1.0 - share) * turn
            work.down[i] = 0.5 * share + (1.0 - share) * (1.0 - turn)
        return
    if n1 + n0 < tables.forced or tables.kind == UNIFORM:
        for i in range(size):
            work.up[i] = 0.5
            work.down[i] = 0.5
        return
    fill(tables, n1, n0, start, work)
    if tables.floor[n1 + n0] > 0.0 or tables.share[n1 + n0] > 0.0:
        _mix(tables, n1 + n0, size, work)


@compiled
def rule_block(tables: RuleTables, n1: int, n0: int, work: Work) -> None:
    """Write the probabilities of arms 1 and 0 to ``work.up`` and ``work.down``, a row per s1; n1 + n0 < T."""
    _probabilities(tables, n1, n0, 0, work)


@kernel
def _gather_row(
    row: FloatArray, above: FloatArray, here: FloatArray, kept: FloatArray, won: float, lost: float
) -> None:
    """Compute one row of a block by last round: a success or failure of arm 1, or a pull of arm 0."""
    n0 = kept.shape[0]
    for s0 in range(n0 + 1):
        row[s0] = won * above[s0] + lost * here[s0]
    if n0 > 0:
        inverse = 1.0 / n0
        row[0] += kept[0]
        row[n0] += kept[n0 - 1]
        for s0 in range(1, n0):
            row[s0] += (n0 - s0) * inverse * kept[s0] + s0 * inverse * kept[s0 - 1]
    for s0 in range(n0 + 1):
        row[s0] = row[s0] if row[s0] > TINY else 0.0


@compiled
def advance_round(tables: RuleTables, step: int, old: FloatArray, new: FloatArray, work: Work) -> None:
    """Weights after round `step` + 1 from those after `step` rounds.

    Shapes: old, new (at least the number of states in the layer,).
    """
    start = target = 0
    for n1 in range(step + 2):
        n0 = step + 1 - n1
        if n1 <= step:
            size = (n1 + 1) * n0
            _probabilities(tables, n1, n0 - 1, start, work)
            for i in range(size):
                weight = old[start + i]
                work.gained[i] = weight * work.up[i]
                work.kept[i] = weight * work.down[i]
            start += size
        for s1 in range(n1 + 1):
            row = target + s1 * (n0 + 1)
            above, here = max(s1 - 1, 0) * (n0 + 1), min(s1, max(n1 - 1, 0)) * (n0 + 1)
            _gather_row(
                new[row : row + n0 + 1],
                work.last[above : above + n0 + 1],
                work.last[here : here + n0 + 1],
                work.kept[s1 * n0 : (s1 + 1) * n0],
                s1 / n1 if n1 > 0 else 0.0,
                (n1 - s1) / n1 if n1 > 0 else 0.0,
            )
        target += (n1 + 1) * (n0 + 1)
        for i in range((n1 + 1) * n0):
            work.last[i] = work.gained[i]


@compiled
def sum_by_total(
    weights: FloatArray, chosen: np.ndarray, log_factorial: FloatArray, total: FloatArray, rounds: int
) -> None:
    """Write to `total` the probability of the chosen states given S = s1 + s0 successes under equal arms.

    Shapes: weights (states,), chosen (states,), log_factorial (T + 1,), total (T + 1,).
    """
    total[:] = 0.0
    table = log_factorial
    i = 0
    for n1 in range(rounds + 1):
        n0 = rounds - n1
        pulls = table[n1] + table[n0] - table[rounds]
        for s1 in range(n1 + 1):
            for s0 in range(n0 + 1):
                if chosen[i] and weights[i] > 0.0:
                    s = s1 + s0
                    ways = pulls + table[s] + table[rounds - s]
                    ways -= table[s1] + table[n1 - s1] + table[s0] + table[n0 - s0]
                    total[s] += weights[i] * math.exp(ways)
                i += 1


@kernel
def _pulls_of_arm_one(chances: FloatArray, base: float, share: FloatArray, first: int, rounds: int) -> None:
    """Distribution of arm 1's pulls over several rounds, with probability `base` before uniform draws."""
    chances[0] = 1.0
    for j in range(rounds):
        up = 0.5 * share[first + j] + (1.0 - share[first + j]) * base
        chances[j + 1] = chances[j] * up
        for i in range(j, 0, -1):
            chances[i] = chances[i] * (1.0 - up) + chances[i - 1] * up
        chances[0] *= 1.0 - up


@kernel
def _batch_law(
    tables: RuleTables, p: float, q: float, step: int, rounds: int, by_count: FloatArray, chances: FloatArray
) -> None:
    """Distribution of arm 1's pulls in a batch whose probability is fixed at its start."""
    if tables.draws == 0:
        base = p if tables.floor[step] <= 0.0 else min(max(p, tables.floor[step]), 1.0 - tables.floor[step])
        _pulls_of_arm_one(chances, base, tables.share, step, rounds)
        return
    draws = tables.draws
    for m1 in range(rounds + 1):
        chances[m1] = 0.0
    if p <= 0.0 or q <= 0.0:
        count = 0 if p <= 0.0 else draws
        for m1 in range(rounds + 1):
            chances[m1] = by_count[count, m1]
        return
    mode = min(int((draws + 1) * p), draws)
    log_count = math.lgamma(draws + 1.0) - math.lgamma(mode + 1.0) - math.lgamma(draws - mode + 1.0)
    top = math.exp(log_count + mode * math.log(p) + (draws - mode) * math.log(q))
    term, count = top, mode
    while count <= draws and term > NEGLIGIBLE:
        for m1 in range(rounds + 1):
            chances[m1] += term * by_count[count, m1]
        term *= (draws - count) / (count + 1.0) * (p / q)
        count += 1
    term, count = top * mode / (draws - mode + 1.0) * (q / p), mode - 1
    while count >= 0 and term > NEGLIGIBLE:
        for m1 in range(rounds + 1):
            chances[m1] += term * by_count[count, m1]
        term *= count / (draws - count + 1.0) * (q / p)
        count -= 1


@kernel
def _pull(block: FloatArray, n1: int, n0: int, m1: int, m0: int) -> None:
    """Add m1 pulls of arm 1 and m0 pulls of arm 0 to a block whose rows have n0 + m0 + 1 columns."""
    column = n0 + m0 + 1
    for n in range(n1 + 1, n1 + m1 + 1):
        for s0 in range(n0 + 1):
            block[n * column + s0] = block[(n - 1) * column + s0]
        for s1 in range(n - 1, -1, -1):
            below = s1 / n
            for s0 in range(n0 + 1):
                weight = (n - s1) / n * block[s1 * column + s0]
                if s1 > 0:
                    weight += below * block[(s1 - 1) * column + s0]
                block[s1 * column + s0] = weight
    for n in range(n0 + 1, n0 + m0 + 1):
        for s1 in range(n1 + m1 + 1):
            row = s1 * column
            block[row + n] = block[row + n - 1]
            for s0 in range(n - 1, 0, -1):
                block[row + s0] = (n - s0) / n * block[row + s0] + s0 / n * block[row + s0 - 1]


@compiled
def advance_batch(
    tables: RuleTables,
    step: int,
    rounds: int,
    old: FloatArray,
    new: FloatArray,
    work: Work,
    laws: FloatArray,
    by_count: FloatArray,
) -> None:
    """Weights after a batch of rounds whose probability is fixed at its start.

    Shapes: old, new (at least the number of states in the layer,), laws (largest block, rounds + 1), by_count
    (draws + 1, rounds + 1).
    """
    total = step + rounds
    for i in range((total + 1) * (total + 2) * (total + 3) // 6):
        new[i] = 0.0
    for count in range(tables.draws + 1 if tables.draws > 0 else 0):
        base = min(max(count / tables.draws, tables.floor[step]), 1.0 - tables.floor[step])
        _pulls_of_arm_one(by_count[count], base, tables.share, step, rounds)
    start = 0
    for n1 in range(step + 1):
        n0 = step - n1
        size = (n1 + 1) * (n0 + 1)
        fill(tables, n1, n0, start, work)
        for i in range(size):
            _batch_law(tables, work.up[i], work.down[i], step, rounds, by_count, laws[i])
        target = 0
        for block in range(n1):
            target += (block + 1) * (total - block + 1)
        for m1 in range(rounds + 1):
            column = n0 + rounds - m1 + 1
            for i in range((n1 + m1 + 1) * column):
                work.gained[i] = 0.0
            for s1 in range(n1 + 1):
                for s0 in range(n0 + 1):
                    i = s1 * (n0 + 1) + s0
                    work.gained[s1 * column + s0] = old[start + i] * laws[i, m1]
            _pull(work.gained, n1, n0, m1, rounds - m1)
            for i in range((n1 + m1 + 1) * column):
                new[target + i] += work.gained[i] if work.gained[i] > TINY else 0.0
            target += (n1 + m1 + 1) * column
        start += size
