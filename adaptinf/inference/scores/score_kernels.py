"""Compiled loops besides the stream: sums over pairs of arms in each round, and running ridge regressions."""

from __future__ import annotations

import math

from adaptinf.compilation import compiled
from adaptinf.typing import FloatArray, IntArray


@compiled
def add_pair_sums(
    scores: FloatArray,
    inverse: FloatArray,
    time: FloatArray,
    first: IntArray,
    second: IntArray,
    sums: FloatArray,
) -> None:
    """Add weights h, h times the differences between scores, and h times time.

    Shapes: scores, inverse (n, k), time (n,), first, second (P,), sums (3, P).
    """
    for t in range(time.shape[0]):
        for p in range(first.shape[0]):
            i, j = first[p], second[p]
            h = 1.0 / math.sqrt(inverse[t, i] + inverse[t, j])
            sums[0, p] += h
            sums[1, p] += h * (scores[t, i] - scores[t, j])
            sums[2, p] += h * time[t]


@compiled
def gather_pairs(
    scores: FloatArray,
    gain: FloatArray,
    inverse: FloatArray,
    time: FloatArray,
    first: IntArray,
    second: IntArray,
    factor: FloatArray,
    contrast: FloatArray,
    centre: FloatArray,
    found: FloatArray,
) -> None:
    """Compute contributions of rounds, by arm, to errors, coefficients of rewards and slopes.

    Shapes: scores, gain, inverse (n, k), time (n,), first, second, factor, contrast, centre (P,), found (3,
    n, k), initially 0.
    """
    for t in range(time.shape[0]):
        for p in range(first.shape[0]):
            i, j = first[p], second[p]
            pull = factor[p] / math.sqrt(inverse[t, i] + inverse[t, j])
            error = pull * (scores[t, i] - scores[t, j] - contrast[p])
            given = pull * (gain[t, i] - gain[t, j])
            slope = error * (time[t] - centre[p])
            found[0, t, i] += error
            found[0, t, j] -= error
            found[1, t, i] += given
            found[1, t, j] -= given
            found[2, t, i] += slope
            found[2, t, j] -= slope


@compiled
def ridge_pass(
    action: IntArray,
    reward: FloatArray,
    context: FloatArray,
    codes: IntArray,
    order: IntArray,
    known: IntArray,
    inverse: FloatArray,
    coefficient: FloatArray,
    direction: FloatArray,
    predicted: FloatArray,
) -> None:
    """Compute `predicted`, shape (T, k), round by round, from the rewards known before each round.

    Shapes: order (n,), the rounds in the order in which their rewards became known; known (T,), the number of
    rewards known before each round. The arrays that follow are the state of the regressions.
    """
    dimension, taken = context.shape[1], 0
    for t in range(action.shape[0]):
        while taken < known[t]:
            s = order[taken]
            taken += 1
            for j in range(codes.shape[0]):
                if codes[j] != action[s]:
                    continue
                scale, value = 1.0, 0.0
                for a in range(dimension):
                    direction[a] = 0.0
                    for b in range(dimension):
                        direction[a] += inverse[j, a, b] * context[s, b]
                    scale += direction[a] * context[s, a]
                    value += coefficient[j, a] * context[s, a]
                error = (reward[s] - value) / scale
                for a in range(dimension):
                    coefficient[j, a] += direction[a] * error
                    for b in range(dimension):
                        inverse[j, a, b] -= direction[a] * direction[b] / scale
        for j in range(codes.shape[0]):
            value = 0.0
            for a in range(dimension):
                value += coefficient[j, a] * context[t, a]
            predicted[t, j] = value
