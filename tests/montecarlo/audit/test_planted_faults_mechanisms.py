"""Mechanisms with a fault planted in them, and the classical Gaussian where its proof does not hold.

An audit errs for a right mechanism with a probability of at most one in 1,000; the seeds are fixed.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from adaptinf.audit.privacy.epsilon_audit import epsilon_lower_bound
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.privacy import (
    DiscreteLaplace,
    Gaussian,
    Laplace,
    SparseVector,
    TruncatedLaplace,
    gaussian_delta,
)

RUNS = 300_000
MECHANISMS = {
    "Laplace": Laplace(epsilon=1.0),
    "DiscreteLaplace": DiscreteLaplace(epsilon=1.0),
    "TruncatedLaplace": TruncatedLaplace(epsilon=1.0),
    "Gaussian": Gaussian(epsilon=1.0, delta=0.01),
    "SparseVector": SparseVector(epsilon=1.0),
}
# a sparse vector's answers reveal little at epsilon = .1: more than 10^6 runs would be needed
CASES = [
    (name, epsilon)
    for name in MECHANISMS
    for epsilon in (0.1, 1.0, 4.0)
    if (name, epsilon) != ("SparseVector", 0.1)
]


@pytest.mark.parametrize(("name", "epsilon"), CASES)
def test_half_the_noise_is_refuted_and_all_of_it_is_not(name: str, epsilon: float) -> None:
    right = replace(MECHANISMS[name], epsilon=epsilon)
    half = replace(MECHANISMS[name], epsilon=2.0 * epsilon)
    assert 0.0 < epsilon_lower_bound(right, runs=RUNS, rng=0).epsilon <= epsilon
    assert epsilon_lower_bound(half, runs=RUNS, rng=0, promised=right.guarantee()).refuted


def normal(scale: float) -> Any:
    def sampler(side: int, runs: int, rng: np.random.Generator) -> Any:
        return side + rng.normal(scale=scale, size=runs)

    return sampler


def test_the_classical_gaussian_beyond_its_proof_is_refuted() -> None:
    epsilon, delta, runs = 8.0, 0.1, 1_000_000
    classical = math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon
    assert gaussian_delta(epsilon, classical) > 2.0 * delta
    promised = PrivacyGuarantee(epsilon, delta)
    found = epsilon_lower_bound(normal(classical), runs=runs, rng=0, promised=promised)
    assert found.delta == delta
    assert found.refuted
    analytic = Gaussian(epsilon=epsilon, delta=delta).scale
    right = epsilon_lower_bound(normal(analytic), runs=runs, rng=0, promised=promised)
    assert 6.0 < right.epsilon <= epsilon


def test_delta_too_small_for_its_noise_is_refuted() -> None:
    # noise for delta = .05, promised as delta = .001
    loose = Gaussian(epsilon=1.0, delta=0.05)
    found = epsilon_lower_bound(loose, runs=RUNS, rng=0, promised=PrivacyGuarantee(1.0, 0.001))
    assert found.refuted
    assert not epsilon_lower_bound(loose, runs=RUNS, rng=0).refuted
