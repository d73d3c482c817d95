"""Sums over pairs of arms, compiled: what `joint` does with arrays of all pairs, round by round."""

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
    """Add weights h, h times gaps of scores, and h times time.

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
    """Fill what rounds add to arms: to errors, to coefficients of rewards, and to slopes.

    Shapes: scores, gain, inverse (n, k), time (n,), first, second, factor, contrast, centre (P,), found
    (3, n, k), of zeros.
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
