"""Ratio metrics and their differences on adaptive logs of a simulator of their own."""

from __future__ import annotations

import functools

import numpy as np

from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.typing import FloatArray, IntArray

ORDERS = np.array([0.6, 0.9])
PRICE = np.array([2.0, 2.3])
TRUTH = PRICE
"""Revenue per order: prices do not depend on how many orders there are."""


def sessions(
    runs: int, rounds: int, batches: int, seed: int
) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Sessions with orders and their revenue; shares by batch follow mean revenue; (runs, rounds) each.

    The better arm of all earlier batches gets 80%; orders are Poisson, prices exponential.
    """
    rng = np.random.default_rng(seed)
    size = rounds // batches
    count, total = np.zeros((runs, 2)), np.zeros((runs, 2))
    parts = []
    for _ in range(batches):
        mean = total / np.maximum(count, 1.0)
        share = np.where(count.min(axis=1) < 1, 0.5, np.where(mean[:, 1] > mean[:, 0], 0.8, 0.2))
        chance = np.repeat(share[:, None], size, axis=1)
        arm = (rng.random((runs, size)) < chance).astype(np.int64)
        orders = rng.poisson(ORDERS[arm]).astype(np.float64)
        revenue = rng.gamma(np.maximum(orders, 1e-9), PRICE[arm]) * (orders > 0)
        for k in (0, 1):
            count[:, k] += (arm == k).sum(axis=1)
            total[:, k] += (revenue * (arm == k)).sum(axis=1)
        parts.append((arm, revenue, orders, chance))
    arm, revenue, orders, chance = (np.concatenate(found, axis=1) for found in zip(*parts, strict=True))
    return arm.astype(np.int64), revenue, orders, chance


@functools.cache
def misses(runs: int, rounds: int, seed: int) -> FloatArray:
    """Shares of nominal 95% intervals that miss: both ratios, and their difference; shape (3,)."""
    found = np.zeros(3)
    batch = np.arange(rounds) * 5 // rounds
    for arm, revenue, orders, chance in zip(*sessions(runs, rounds, 5, seed), strict=True):
        every = np.column_stack([1.0 - chance, chance])
        arrays = LogArrays(
            action=arm,
            reward=revenue,
            propensity=every[np.arange(rounds), arm],
            propensities=every,
            batch=batch,
        )
        log = AdaptiveLog.from_arrays(arrays, arms=("a", "b"), context_free=True)
        limits = ArmMeans(log, denominator=orders).fit().conf_int().to_numpy()
        found[:2] += (limits[:, 0] > TRUTH) | (limits[:, 1] < TRUTH)
        pair = Contrast(log, treatment="b", control="a", denominator=orders).fit()
        low, high = pair.conf_int().to_numpy()[0]
        found[2] += not low <= TRUTH[1] - TRUTH[0] <= high
    return found / runs


def test_intervals_of_ratios_cover() -> None:
    """2,000 sessions in 5 batches that follow the better arm: near 5% miss, within 3 binomial errors.

    Over 800 runs of another seed .056, .048 and .041 missed; of 500 sessions, where the worse arm has about
    100, .063, .048 and .051 over 1,500 runs, as the law of a ratio is skewed.
    """
    error = np.sqrt(0.05 * 0.95 / 600)
    assert (np.abs(misses(600, 2_000, 21) - 0.05) < 3.0 * error).all()
