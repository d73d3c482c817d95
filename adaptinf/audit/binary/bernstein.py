"""Largest value of a polynomial in Bernstein form on [0, 1], with a bound that holds everywhere."""

from __future__ import annotations

import heapq

import numpy as np

from adaptinf.typing import FloatArray


def certified_maximum(coefficients: FloatArray, tolerance: float = 1e-9) -> tuple[float, float]:
    """Maximum over theta of the sum of coefficients[s] Bin(s; T, theta).

    Shapes: coefficients (T + 1,).

    A polynomial lies in the range of its Bernstein coefficients on an interval, and takes the first and the
    last of them at its ends. De Casteljau's scheme halves the interval whose range reaches highest, until no
    range reaches more than the tolerance above a value that was found.
    """
    whole = np.asarray(coefficients, dtype=np.float64)
    best, place = max((float(whole[0]), 0.0), (float(whole[-1]), 1.0))
    queue = [(-float(whole.max()), 0.0, 1.0, whole.tobytes())]
    while -queue[0][0] > best + tolerance:
        _, low, high, stored = heapq.heappop(queue)
        middle = 0.5 * (low + high)
        left, right = _halves(np.frombuffer(stored))
        if left[-1] > best:
            best, place = float(left[-1]), middle
        for half, start, end in ((left, low, middle), (right, middle, high)):
            heapq.heappush(queue, (-float(half.max()), start, end, half.tobytes()))
    return place, max(best, -queue[0][0])


def _halves(coefficients: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bernstein coefficients on the first and on the second half of the interval."""
    left, right = np.empty_like(coefficients), np.empty_like(coefficients)
    row = coefficients
    for i in range(len(coefficients)):
        left[i], right[-1 - i] = row[0], row[-1]
        row = 0.5 * (row[:-1] + row[1:])
    return left, right
