"""Both backends draw the laws that the mechanisms and counters state.

The release backend cannot be seeded: every comparison with it is made at a level of 1e-9 or of seven standard
errors, so that a false alarm in any of them has a probability below 1e-6.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from adaptinf.privacy import Counter, DiscreteLaplace, Gaussian, Laplace, SparseVector, TruncatedLaplace
from adaptinf.privacy.counter_noise import laplace_sum_log_tail

LEVELS = {"simulation": 1e-4, "release": 1e-9}
BACKENDS = [pytest.param("simulation", id="simulation"), pytest.param("release", id="release")]
DRAWS = 20_000


def source(backend: str, seed: int) -> dict[str, Any]:
    return {"backend": backend, "rng": seed if backend == "simulation" else None}


def chi_square(counts: np.ndarray, probabilities: np.ndarray) -> float:
    """P-value of counts of cells, those with small expectations pooled."""
    expected = probabilities * counts.sum()
    large = expected >= 20.0
    seen = np.append(counts[large], counts[~large].sum())
    mean = np.append(expected[large], max(counts.sum() - expected[large].sum(), 1e-9))
    return float(stats.chi2.sf(np.sum((seen - mean) ** 2 / mean), large.sum()))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "mechanism",
    [Laplace(epsilon=0.5, sensitivity=3.0), Gaussian(epsilon=0.5, delta=1e-4, sensitivity=0.3)],
    ids=["laplace", "gaussian"],
)
def test_noise_of_real_numbers(mechanism: Any, backend: str) -> None:
    values = np.linspace(-5.0, 5.0, DRAWS)
    noise = mechanism.release(values, **source(backend, 1)) - values
    assert stats.kstest(noise, lambda x: 1.0 - mechanism.tail(x)).pvalue > LEVELS[backend]
    share = np.mean(noise > mechanism.quantile(0.999)) * DRAWS
    assert stats.binom.sf(share - 1, DRAWS, 0.001) > LEVELS[backend]
    assert stats.binom.cdf(share, DRAWS, 0.001) > LEVELS[backend]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("epsilon", "sensitivity"), [(0.2, 1), (1.5, 1), (1.0, 4)])
def test_noise_of_counts(backend: str, epsilon: float, sensitivity: int) -> None:
    mechanism = DiscreteLaplace(epsilon=epsilon, sensitivity=sensitivity)
    noise = mechanism.release(np.full(DRAWS, 17), **source(backend, 2)) - 17
    k = np.arange(-400, 401)
    counts = np.bincount(noise + 400, minlength=801)
    assert chi_square(counts, mechanism.probability(k)) > LEVELS[backend]
    half = DiscreteLaplace(epsilon=2 * epsilon, sensitivity=sensitivity)
    assert chi_square(counts, half.probability(k)) < 1e-12


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("center", [0.0, 2.9, 40.0])
def test_truncated_numbers(backend: str, center: float) -> None:
    mechanism = TruncatedLaplace(epsilon=0.5, calibration="published")
    numbers = mechanism.release(np.full(DRAWS, center), **source(backend, 3))
    counts = np.bincount(numbers, minlength=400)
    assert chi_square(counts, mechanism.probability(np.arange(counts.size), center)) > LEVELS[backend]
    mean, variance = mechanism.moments(center)
    assert abs(numbers.mean() - mean) < 7.0 * math.sqrt(variance / DRAWS)


@pytest.mark.parametrize("backend", BACKENDS)
def test_stopping_times_of_the_sparse_vector(backend: str) -> None:
    mechanism = SparseVector(epsilon=1.0, threshold_share=0.4)
    values, limits = np.array([-4.0, 1.0, 0.5, 3.0]), np.array([1.0, 3.0, 0.0, 2.0])
    runs = 1500
    rng = np.random.default_rng(4)
    counts = np.zeros(5)
    for _ in range(runs):
        seed = rng if backend == "simulation" else None
        answers = mechanism.release(values, rng=seed, backend=backend, threshold=limits)
        counts[answers.size - 1 if answers[-1] else 4] += 1
    assert chi_square(counts, mechanism.stopping_law(values, limits)) > LEVELS[backend]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mechanism", ["binary", "hybrid", "logarithmic"])
def test_noise_of_counters(mechanism: str, backend: str) -> None:
    """The coordinates of one vector counter are as many independent counters."""
    size = 4000
    horizon = 7 if mechanism == "binary" else None
    counter = Counter(
        epsilon=0.5,
        mechanism=mechanism,
        horizon=horizon,
        dimension=size,
        sensitivity=1.0,
        **source(backend, 5),
    )
    trunk, node = counter.scales
    for count in range(1, 8):
        noise = counter.add(np.full(size, 0.25)) - 0.25 * count
        known = 1 << (count.bit_length() - 1) if mechanism == "logarithmic" else count
        noise += 0.25 * (count - known)
        _, node_terms, level = counter._law(count)
        trunk_terms = counter._law(count)[0]
        scales = np.tile([[trunk, node * level]], (size, 1))
        terms = np.tile([[float(trunk_terms), float(node_terms)]], (size, 1))
        upper = np.exp(laplace_sum_log_tail(np.abs(noise), scales, terms))
        uniform = np.where(noise > 0, 1.0 - upper, upper)
        assert stats.kstest(uniform, "uniform").pvalue > LEVELS[backend]
        squares = (noise - noise.mean()) ** 2
        error = 7.0 * squares.std() / math.sqrt(size)
        assert abs(squares.mean() - counter.noise_variance(count)) < error
        below = np.mean(noise <= counter.noise_quantile(0.9, count)) * size
        assert min(stats.binom.sf(below - 1, size, 0.9), stats.binom.cdf(below, size, 0.9)) > LEVELS[backend]


@pytest.mark.parametrize("backend", BACKENDS)
def test_normal_noise_of_counters(backend: str) -> None:
    size = 4000
    counter = Counter(
        epsilon=0.5,
        delta=1e-5,
        noise="gaussian",
        mechanism="binary",
        horizon=7,
        dimension=size,
        sensitivity=1.0,
        **source(backend, 6),
    )
    noises = [counter.add(np.full(size, 0.5)) - 0.5 * count for count in range(1, 8)]
    for count, noise in enumerate(noises, start=1):
        spread = math.sqrt(counter.noise_variance(count))
        assert stats.kstest(noise, stats.norm(scale=spread).cdf).pvalue > LEVELS[backend]
    # counts 6 and 7 share the nodes 1..4 and 5..6
    product = noises[5] * noises[6]
    shared = counter.noise_variance(6)
    assert abs(product.mean() - shared) < 7.0 * product.std() / math.sqrt(size)


def test_norms_of_counters_stay_below_their_bound() -> None:
    runs, dimension, probability = 2000, 4, 0.9
    beyond = np.zeros(6)
    rng = np.random.default_rng(7)
    for _ in range(runs):
        counter = Counter(epsilon=1.0, dimension=dimension, low=-1.0, rng=rng)
        for count in range(1, 7):
            noise = counter.add(np.zeros(dimension))
            beyond[count - 1] += np.linalg.norm(noise) > bound(count, probability)
    # at most the probability, and nearly that
    assert (stats.binom.sf(beyond - 1, runs, 1 - probability) > 1e-5).all()
    assert (stats.binom.cdf(beyond, runs, 0.98 * (1 - probability)) > 1e-5).all()


BOUNDS: dict[int, float] = {}


def bound(count: int, probability: float) -> float:
    if count not in BOUNDS:
        BOUNDS[count] = Counter(epsilon=1.0, dimension=4, low=-1.0).norm_bound(count, probability)
    return BOUNDS[count]
