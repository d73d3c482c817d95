"""Counters with a fault planted in them: an audit must refute each, and not the right counter beside it.

A faulty counter is the library's own with one method changed. An audit errs for a right counter with a
probability of at most one in 1,000; the seeds are fixed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from adaptinf.audit.privacy.audited_mechanisms import node_ratio
from adaptinf.audit.privacy.epsilon_audit import epsilon_lower_bound
from adaptinf.audit.privacy.lower_bound import EpsilonLowerBound
from adaptinf.privacy import Counter

RUNS = {0.1: 300_000, 1.0: 100_000, 4.0: 100_000}
ROUNDS = 31


class HalfTheNoise(Counter):
    """All noise at half of its scale."""

    def _draw(self, times: int) -> Any:
        return 0.5 * super()._draw(times)


class WithoutLogFactor(Counter):
    """Every node of the binary tree with the scale 1 / epsilon, as if an item lay in one node."""

    def _draw(self, times: int) -> Any:
        return super()._draw(1)


class NotSplit(Counter):
    """The hybrid mechanism with all of epsilon for the trunk, and all of it again for the nodes."""

    def _draw(self, times: int) -> Any:
        return super()._draw(times // 2)


class FreshAtEveryRelease(Counter):
    """Every noisy sum with one new variable, of the scale that a node needs."""

    def _next_noise(self) -> Any:
        return self._draw(self._levels)


def audited(counter: Counter, runs: int) -> EpsilonLowerBound:
    return epsilon_lower_bound(counter, view="releases", runs=runs, rng=0)


def audited_sums(counter: Counter, runs: int) -> EpsilonLowerBound:
    """Audit with the score that fits noise which is new in every sum: item 1 is 0 or 1, all others 0."""

    def every_sum(side: int, number: int, rng: np.random.Generator) -> Any:
        wide, score = counter._abreast(number, rng), np.zeros(number)
        for item in range(ROUNDS):
            noisy = wide.add(np.full(number, 1.0 if item == 0 and side == 1 else 0.0))
            score += node_ratio("laplace", counter.scales[1], noisy[:, None], np.ones(1))
        return score

    return epsilon_lower_bound(every_sum, runs=runs, rng=0, promised=counter.guarantee())


Audit = Callable[[Counter, int], EpsilonLowerBound]
BINARY = {"mechanism": "binary", "horizon": ROUNDS}
HYBRID = {"mechanism": "hybrid"}
LOGARITHMIC = {"mechanism": "logarithmic"}
FAULTS: dict[str, tuple[type[Counter], dict[str, Any], Audit]] = {
    "half the noise, binary": (HalfTheNoise, BINARY, audited),
    "half the noise, hybrid": (HalfTheNoise, HYBRID, audited),
    "half the noise, logarithmic": (HalfTheNoise, LOGARITHMIC, audited),
    "log factor left out": (WithoutLogFactor, BINARY, audited),
    "fresh noise at every release": (FreshAtEveryRelease, BINARY, audited_sums),
    "budget not split": (NotSplit, HYBRID, audited),
}


@functools.cache
def bound_of_the_right_counter(mechanism: str, audit: Audit, epsilon: float) -> float:
    counter = Counter(epsilon=epsilon, mechanism=mechanism, horizon=ROUNDS)
    return audit(counter, RUNS[epsilon]).epsilon


@pytest.mark.parametrize("epsilon", RUNS)
@pytest.mark.parametrize("fault", FAULTS)
def test_the_fault_is_refuted_and_the_right_counter_is_not(fault: str, epsilon: float) -> None:
    faulty, settings, audit = FAULTS[fault]
    caught = audit(faulty(epsilon=epsilon, **settings), RUNS[epsilon])
    assert caught.promised is not None
    assert caught.promised.epsilon == epsilon
    assert caught.epsilon > epsilon
    assert 0.0 < bound_of_the_right_counter(settings["mechanism"], audit, epsilon) <= epsilon


def test_tightness_at_depth_five() -> None:
    for mechanism in ("binary", "hybrid"):
        for epsilon, share in ((1.0, 0.75), (4.0, 0.8)):
            assert bound_of_the_right_counter(mechanism, audited, epsilon) >= share * epsilon
