"""What a test of noise says: logarithms of false-alarm bounds, and the finding in words.

All tests of a call together raise a false alarm with the probability that is given: each kind of test has an
equal share of it, and its single tests have equal shares of that (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from adaptinf.typing import BoolArray, FloatArray

FALSE_ALARM = 1e-6
"""Probability of any finding, by all tests of a call together, where there is nothing to be found."""
ODDS = np.log([2.0, 4.0, 8.0, 16.0, 64.0, 256.0, 1e3, 1e4, 1e5, 1e6, 1e7])
"""Factors by which an event may be likelier than it should be, in logarithms."""


class Look(NamedTuple):
    """One kind of test, its single tests' bounds, and what each of them finds, in words."""

    kind: str
    log_bounds: FloatArray
    words: Callable[[int], str]

    def finding(self, limit: float) -> str:
        """The most significant one in words, and how many more there are; empty where there is none."""
        number = int((self.log_bounds < limit).sum())
        if not number:
            return ""
        first = self.words(int(np.argmin(self.log_bounds)))
        return first if number == 1 else f"{first} (and {number - 1:,} more)"


def limits(looks: Sequence[Look], alarm: float) -> list[float]:
    """Below which logarithm each look finds something, where all together may raise a false alarm."""
    return [math.log(alarm / len(looks) / max(look.log_bounds.size, 1)) for look in looks]


def too_often(hits: BoolArray, chances: FloatArray) -> float:
    """Log of a bound of the chance of so many hits, where each has at most a chance given those before.

    Shapes: hits, chances (n,). The product of (1 + c (hit)) / (1 + c chance) over draws has mean 1 at most
    for every c, and so has the mean of several: it exceeds 1 / p with probability p at most (Ville).
    """
    if not hits.any():
        return 0.0
    count = np.array([float(hits.sum())])
    return -log_mean(np.concatenate([log_products(one, count, chances) for one in ODDS]))


def log_products(odds: float, hits: FloatArray, chances: FloatArray) -> FloatArray:
    """Logs of these products with one factor, for several numbers of hits."""
    return odds * hits - float(np.log1p(np.expm1(odds) * np.minimum(chances, 1.0)).sum())


def log_mean(logs: FloatArray) -> float:
    """Log of the mean of numbers that are given by their logarithms."""
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).mean()))


def counted(number: int, what: str) -> str:
    """A number of things."""
    return f"{number:,} {what}{'s' if number != 1 else ''}"
