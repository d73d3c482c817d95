"""Compiled passes over the rounds of a regression, for cautions about rare outcomes and trends."""

from __future__ import annotations

from adaptinf.compilation import compiled
from adaptinf.typing import FloatArray, IntArray

SIDES = 7
NUMBER, PULL_SQUARES, PULL_CUBES, FIRST, FIRST_VOTES, SECOND, SECOND_VOTES = range(SIDES)


@compiled
def vote(pull: FloatArray, reward: FloatArray, least: FloatArray, sides: FloatArray) -> None:
    """Add rounds to the sums of each side of a coefficient, and update the votes for a common reward.

    Shapes: pull (n, p), reward (n,), least (p,), sides (SIDES, p, 2), initially 0.

    There are two candidates, each of which loses a vote for every reward that equals neither of them. A
    reward that occurs in more than a third of a side's rounds is therefore one of the candidates at the end.
    """
    for t in range(pull.shape[0]):
        y = reward[t]
        for j in range(pull.shape[1]):
            own = pull[t, j]
            size = abs(own)
            if not size > least[j]:
                continue
            side = 1 if own > 0.0 else 0
            sides[NUMBER, j, side] += 1.0
            sides[PULL_SQUARES, j, side] += size**2
            sides[PULL_CUBES, j, side] += size**3
            if sides[FIRST_VOTES, j, side] > 0.0 and sides[FIRST, j, side] == y:
                sides[FIRST_VOTES, j, side] += 1.0
            elif sides[SECOND_VOTES, j, side] > 0.0 and sides[SECOND, j, side] == y:
                sides[SECOND_VOTES, j, side] += 1.0
            elif sides[FIRST_VOTES, j, side] == 0.0:
                sides[FIRST, j, side] = y
                sides[FIRST_VOTES, j, side] = 1.0
            elif sides[SECOND_VOTES, j, side] == 0.0:
                sides[SECOND, j, side] = y
                sides[SECOND_VOTES, j, side] = 1.0
            else:
                sides[FIRST_VOTES, j, side] -= 1.0
                sides[SECOND_VOTES, j, side] -= 1.0


@compiled
def tally(
    pull: FloatArray, reward: FloatArray, least: FloatArray, sides: FloatArray, counts: FloatArray
) -> None:
    """Count how often the candidates occur; counts (2, p, 2), initially 0; other arguments as in `vote`."""
    for t in range(pull.shape[0]):
        y = reward[t]
        for j in range(pull.shape[1]):
            own = pull[t, j]
            if not abs(own) > least[j]:
                continue
            side = 1 if own > 0.0 else 0
            if sides[FIRST_VOTES, j, side] > 0.0 and sides[FIRST, j, side] == y:
                counts[0, j, side] += 1.0
            elif sides[SECOND_VOTES, j, side] > 0.0 and sides[SECOND, j, side] == y:
                counts[1, j, side] += 1.0


@compiled
def add_grams(action: IntArray, columns: FloatArray, centre: FloatArray, grams: FloatArray) -> None:
    """Add products of columns, minus the arm's centres, to the upper triangles of grams, (K, m, m).

    Shapes: action (n,), columns (n, m), centre (K, m).
    """
    size = columns.shape[1]
    for t in range(action.shape[0]):
        arm = action[t]
        for i in range(size):
            first = columns[t, i] - centre[arm, i]
            for j in range(i, size):
                grams[arm, i, j] += first * (columns[t, j] - centre[arm, j])


@compiled
def add_residuals(
    action: IntArray,
    columns: FloatArray,
    centre: FloatArray,
    slope: FloatArray,
    crossed: FloatArray,
    residual: FloatArray,
) -> None:
    """Compute the residuals of the last two columns, and add their products with the other columns.

    Shapes: action (n,), columns (n, m), centre (K, m), slope (K, m - 2, 2), crossed (K, m - 1, 2), residual
    (n, 2). `crossed` is initially 0, and its last row receives the sums of the residuals.
    """
    size = columns.shape[1] - 2
    for t in range(action.shape[0]):
        arm = action[t]
        for k in range(2):
            left = columns[t, size + k] - centre[arm, size + k]
            for i in range(size):
                left -= slope[arm, i, k] * (columns[t, i] - centre[arm, i])
            residual[t, k] = left
            for i in range(size):
                crossed[arm, i, k] += left * (columns[t, i] - centre[arm, i])
            crossed[arm, size, k] += left


@compiled
def add_columns(action: IntArray, columns: FloatArray, sums: FloatArray, ends: FloatArray) -> None:
    """Add the columns by arm, and update the ranges of the last two columns.

    Shapes: action (n,), columns (n, m), sums (K, m + 1), ends (2, K, 2). The last entry of `sums` is the
    number of rounds; `ends` contains the low ends, followed by the high ends.
    """
    size = columns.shape[1]
    for t in range(action.shape[0]):
        arm = action[t]
        sums[arm, size] += 1.0
        for i in range(size):
            sums[arm, i] += columns[t, i]
        for k in range(2):
            value = columns[t, size - 2 + k]
            ends[0, arm, k] = min(ends[0, arm, k], value)
            ends[1, arm, k] = max(ends[1, arm, k], value)
