"""The forward recursion over a batch of rounds, whose probability is fixed at the start of the batch."""

from __future__ import annotations

import math

from adaptinf.audit.binary.kernel import NEGLIGIBLE, TINY, RuleTables, Work, fill
from adaptinf.compilation import compiled, kernel
from adaptinf.typing import FloatArray


@kernel
def _pulls_of_arm_one(chances: FloatArray, base: float, share: FloatArray, first: int, rounds: int) -> None:
    """Law of arm 1's pulls among some rounds, with probability `base` before uniform draws."""
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
    """Law of arm 1's pulls in a batch whose probability is fixed at its start."""
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
    """Let a block go through m1 pulls of arm 1 and m0 of arm 0; its rows have n0 + m0 + 1 columns."""
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

    Shapes: old, new (at least the states of the layer,), laws (largest block, rounds + 1), by_count (draws +
    1, rounds + 1).
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
