"""Whether draws keep to a lattice that is coarser than the whole numbers, or to one in part."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from adaptinf.privacy.drawn.draws import Draws, Intervals, multiple_probability
from adaptinf.privacy.drawn.looks import ODDS, Look, log_mean, log_products, too_often
from adaptinf.typing import FloatArray

_PRIMES = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61)
_GRIDS = (20, 40)
"""Of 2^-20 and 2^-40, which the units of rewards and of products are."""
_LEAST = 2.5
"""The smallest step of a lattice that is not whole."""


def lattice_looks(draws: Draws, found: Intervals) -> Iterator[Look]:
    """Whole steps with any remainder, decimals and shares of the scale, and a divisor of all draws."""
    largest = 4.0 * float(draws.scales.max(initial=1.0))
    steps = [2**power for power in range(1, 54)] + [*_PRIMES] + [10**power for power in range(1, 16)]
    whole = [step for step in steps if step <= largest]
    if whole:
        bounds = np.array([_remainder_bound(draws, step) for step in whole])
        yield Look(
            "lattices", bounds, lambda at: f"the draws keep to multiples of {whole[at]:,}, up to a remainder"
        )
    decimals = {
        f"10^-{place} of 2^{grid} units": 2.0**grid / 10.0**place for grid in _GRIDS for place in range(1, 13)
    }
    shares = {f"10^-{place} of their scale": 10.0**-place for place in range(1, 13)}
    shares |= {f"2^-{place} of their scale": 2.0**-place for place in range(1, 41)}
    parts = {words: np.full(len(draws), step) for words, step in decimals.items()}
    parts |= {words: draws.scales * share for words, share in shares.items()}
    kept = {
        words: step for words, step in parts.items() if (step >= _LEAST).all() and (step <= largest).all()
    }
    if kept:
        bounds = np.array([_multiple_bound(draws, found, step) for step in kept.values()])
        yield Look("decimals", bounds, lambda at: f"the draws keep to multiples of {list(kept)[at]}")
    yield _divisor(draws)


def _near_chances(found: Intervals, steps: FloatArray) -> FloatArray:
    """At most the chance of a whole number less than 1/2 from a multiple of a step, shape (n,).

    Such numbers lie at least `steps` - 1 apart: the sum of a law that falls on both sides of 0 over them, but
    for 0 and the first on each side, is at most the whole over that distance.
    """
    return np.asarray(np.minimum(3.0 * found.most + 1.0 / (steps - 1.0), 1.0))


def _remainder_bound(draws: Draws, step: int) -> float:
    """Log of a bound of the chance that remainders are as unequal; half of it is for remainder 0."""
    chances = multiple_probability(draws, step)
    remainders, counts = np.unique(draws.units % step, return_counts=True)
    at_zero = np.array([float(counts[remainders == 0].sum())])
    others = counts[remainders != 0].astype(np.float64)
    logs = []
    for one in ODDS:
        logs.append(math.log(0.5) + float(log_products(one, at_zero, chances)[0]))
        if others.size:
            each = log_mean(log_products(one, others, chances))
            logs.append(math.log(0.5 * others.size / (step - 1)) + each)
    return -(log_mean(np.array(logs)) + math.log(len(logs) / ODDS.size))


def _multiple_bound(draws: Draws, found: Intervals, steps: FloatArray) -> float:
    """Log of a bound of the chance of so many draws near multiples of steps."""
    apart = np.abs(draws.units - steps * np.rint(draws.units / steps))
    return too_often(apart < 0.5, _near_chances(found, steps))


def _divisor(draws: Draws) -> Look:
    """A common divisor d of all draws.

    The sum over d of 1 / (d (d - 1)), if d divides all, over the chance of that has mean 1.
    """
    divisor = int(np.gcd.reduce(draws.units)) if len(draws) else 1
    bound = 0.0
    if divisor > 1:
        chances = np.log(multiple_probability(draws, divisor)).sum()
        bound = min(0.0, math.log(divisor) + math.log(divisor - 1.0) + float(chances))
    return Look(
        "divisor", np.array([bound]), lambda _: f"all {len(draws):,} draws are multiples of {divisor:,}"
    )
