"""Laws, parameters and exact privacy losses of the mechanisms that add noise once."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from adaptinf import PrivacyGuarantee
from adaptinf.errors import ParameterError
from adaptinf.privacy import DiscreteLaplace, Gaussian, Laplace, SparseVector, TruncatedLaplace
from adaptinf.privacy.real_mechanisms import analytic_scale, classical_scale, gaussian_delta

PROBABILITIES = np.array([1e-9, 0.01, 0.3, 0.5, 0.50001, 0.9, 1 - 1e-9])


@pytest.mark.parametrize(
    ("mechanism", "law"),
    [
        (Laplace(epsilon=0.5, sensitivity=3.0), stats.laplace(scale=6.0)),
        (
            Gaussian(epsilon=2.0, delta=1e-3, sensitivity=0.5),
            stats.norm(scale=analytic_scale(2.0, 1e-3, 0.5)),
        ),
        (DiscreteLaplace(epsilon=0.7), stats.dlaplace(0.7)),
        (DiscreteLaplace(epsilon=1e-3, sensitivity=5), stats.dlaplace(2e-4)),
    ],
)
def test_tails_quantiles_and_variances_are_those_of_the_law(mechanism: Any, law: Any) -> None:
    x = np.linspace(-4, 4, 41) * law.std()
    np.testing.assert_allclose(mechanism.tail(x), law.sf(x), rtol=1e-12)
    np.testing.assert_allclose(mechanism.tail(np.rint(x)), law.sf(np.rint(x)), rtol=1e-12)
    np.testing.assert_allclose(
        mechanism.quantile(PROBABILITIES), law.ppf(PROBABILITIES), rtol=1e-7, atol=1e-4
    )
    assert mechanism.variance == pytest.approx(law.var(), rel=1e-7)
    assert mechanism.quantile(0.5) == 0.0


def test_far_tails_keep_their_relative_accuracy() -> None:
    assert Laplace(epsilon=1.0).tail(600.0) == pytest.approx(0.5 * math.exp(-600.0), rel=1e-13)
    assert DiscreteLaplace(epsilon=1.0).tail(599) == pytest.approx(
        math.exp(-600.0) / (1 + math.exp(-1.0)), rel=1e-12
    )
    assert Gaussian(epsilon=1.0, delta=0.1).tail(
        37.0 * Gaussian(epsilon=1.0, delta=0.1).scale
    ) == pytest.approx(5.725571222524577e-300, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.05, math.log(2.0), 3.0])
def test_quantiles_of_counts_are_the_smallest_that_reach_their_probability(epsilon: float) -> None:
    mechanism = DiscreteLaplace(epsilon=epsilon)
    k = np.arange(-2000, 2001)
    below = np.cumsum(mechanism.probability(k))
    assert below[-1] == pytest.approx(1.0, abs=1e-12)
    assert mechanism.probability([0.5, -1.2]).tolist() == [0.0, 0.0]
    p = np.random.default_rng(0).uniform(0.001, 0.999, 500)
    assert np.array_equal(mechanism.quantile(p), k[np.searchsorted(below, p)])
    np.testing.assert_allclose(1.0 - mechanism.tail(k), below, atol=1e-12)
    assert np.sum(k**2 * mechanism.probability(k)) == pytest.approx(mechanism.variance, rel=1e-9)


def literal_truncated(mechanism: TruncatedLaplace, center: float, upto: int = 3000) -> np.ndarray:
    weights = np.exp(-np.abs(np.arange(upto) - math.floor(center)) / mechanism.scale)
    return np.asarray(weights / weights.sum())


@pytest.mark.parametrize("calibration", ["corrected", "published"])
@pytest.mark.parametrize("center", [0.0, 0.99, 1.0, 4.5, 60.0])
def test_truncated_law_against_its_weights(calibration: str, center: float) -> None:
    mechanism = TruncatedLaplace(epsilon=0.4, calibration=calibration)
    exact = literal_truncated(mechanism, center)
    n = np.arange(exact.size)
    np.testing.assert_allclose(mechanism.probability(n, center), exact, atol=1e-15)
    assert mechanism.probability([-1.0, 0.5], center).tolist() == [0.0, 0.0]
    np.testing.assert_allclose(mechanism.tail(n, center), 1.0 - np.cumsum(exact), atol=1e-12)
    assert mechanism.tail(-0.5, center) == 1.0
    p = np.random.default_rng(1).uniform(0.001, 0.999, 500)
    assert np.array_equal(mechanism.quantile(p, center), np.searchsorted(np.cumsum(exact), p))
    mean, variance = mechanism.moments(center)
    assert mean == pytest.approx(n @ exact, rel=1e-12)
    assert variance == pytest.approx((n - mean) ** 2 @ exact, rel=1e-11)


def test_normaliser_of_the_truncated_law_is_the_mended_one() -> None:
    """e^(eps/2) + 1 - e^(-(eps/2) m) over e^(eps/2) - 1, with the minus sign that the paper lacks."""
    epsilon, m = 0.8, 3
    published = TruncatedLaplace(epsilon=epsilon, calibration="published")
    root = math.exp(epsilon / 2)
    normaliser = (root + 1 - math.exp(-epsilon / 2 * m)) / (root - 1)
    for k in range(-m, 5):
        expected = math.exp(-epsilon / 2 * abs(k)) / normaliser
        assert published.probability(m + k, m) == pytest.approx(expected, rel=1e-13)


def exact_loss(first: np.ndarray, second: np.ndarray) -> float:
    """Largest |log ratio| of two probability vectors."""
    return float(np.abs(np.log(first) - np.log(second)).max())


@pytest.mark.parametrize("sensitivity", [1, 2])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_discrete_laplace_loses_exactly_epsilon(epsilon: float, sensitivity: int) -> None:
    mechanism = DiscreteLaplace(epsilon=epsilon, sensitivity=sensitivity)
    k = np.arange(-30, 31)
    losses = [
        exact_loss(mechanism.probability(k), mechanism.probability(k - s)) for s in range(sensitivity + 1)
    ]
    assert max(losses) == pytest.approx(epsilon, rel=1e-12)
    # the same change, spread over two coordinates
    apart = losses[sensitivity - sensitivity // 2] + losses[sensitivity // 2]
    assert apart == pytest.approx(epsilon, rel=1e-12)
    planted = DiscreteLaplace(epsilon=2.0 * epsilon, sensitivity=sensitivity)  # half the noise
    assert exact_loss(planted.probability(k), planted.probability(k - sensitivity)) > 1.9 * epsilon


@pytest.mark.parametrize("lowest", [0, 1, 7])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("calibration", ["corrected", "published"])
def test_truncated_laplace_loses_exactly_what_it_says(calibration: str, epsilon: float, lowest: int) -> None:
    for sensitivity in (1, 2):
        mechanism = TruncatedLaplace(
            epsilon=epsilon, sensitivity=sensitivity, lowest=lowest, calibration=calibration
        )
        n = np.arange(60)
        laws = [mechanism.probability(n, center) for center in range(lowest, lowest + 25)]
        once = max(exact_loss(first, second) for first, second in itertools.pairwise(laws))
        twice = max(exact_loss(first, second) for first, second in zip(laws, laws[2:], strict=False))
        guarantee = mechanism.guarantee().epsilon
        # two coordinates that move by 1 attain it; one that moves by 2 does not
        assert sensitivity * once == pytest.approx(guarantee, rel=1e-11)
        assert twice <= 2 * once * (1 + 1e-12)
        if calibration == "corrected":
            assert guarantee == epsilon
        else:
            assert epsilon / 2 < guarantee <= epsilon
            assert mechanism.scale == 2.0 * sensitivity / epsilon


def test_a_floor_of_the_centres_saves_noise() -> None:
    scales = [TruncatedLaplace(epsilon=0.5, lowest=lowest).scale for lowest in (0, 1, 5, 50)]
    assert scales[0] == pytest.approx(1.0 / math.asinh(math.expm1(0.5) / 2), rel=1e-12)
    assert scales == sorted(scales, reverse=True)
    assert scales[-1] == pytest.approx(2.0, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_laplace_loses_exactly_epsilon_on_half_lines(epsilon: float) -> None:
    mechanism = Laplace(epsilon=epsilon, sensitivity=2.0)
    t = np.linspace(-50, 50, 1001)
    ratio = np.log(mechanism.tail(t - 2.0) / mechanism.tail(t))
    assert ratio.max() == pytest.approx(epsilon, rel=1e-12)
    assert ratio.min() >= 0.0
    planted = Laplace(epsilon=epsilon, sensitivity=1.0)
    assert np.log(planted.tail(t - 2.0) / planted.tail(t)).max() > 1.9 * epsilon


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-5), (1.0, 0.01), (4.0, 1e-9)])
def test_gaussian_fails_with_exactly_delta_on_half_lines(epsilon: float, delta: float) -> None:
    def worst(mechanism: Gaussian, sensitivity: float) -> float:
        middle = mechanism.variance * epsilon / sensitivity + sensitivity / 2
        t = middle + np.linspace(-1, 1, 2001) * mechanism.scale
        return float((mechanism.tail(t - sensitivity) - math.exp(epsilon) * mechanism.tail(t)).max())

    mechanism = Gaussian(epsilon=epsilon, delta=delta, sensitivity=3.0)
    assert worst(mechanism, 3.0) == pytest.approx(delta, rel=1e-9)
    assert worst(mechanism, 2.9) < 0.99 * delta
    assert worst(mechanism, 6.0) > 2.0 * delta  # half the noise
    assert gaussian_delta(epsilon, mechanism.scale, 3.0) == pytest.approx(delta, rel=1e-10)


def test_classical_scale_is_refused_where_it_is_not_proved_and_never_smaller() -> None:
    for epsilon, delta in itertools.product([0.01, 0.3, 0.999], [1e-10, 1e-5, 0.1]):
        classical = Gaussian(epsilon=epsilon, delta=delta, calibration="classical")
        assert classical.scale == math.sqrt(2 * math.log(1.25 / delta)) / epsilon
        assert classical.scale > Gaussian(epsilon=epsilon, delta=delta).scale
    with pytest.raises(ParameterError, match="proved only for epsilon below 1: use the analytic one"):
        Gaussian(epsilon=1.0, delta=1e-5, calibration="classical")
    with pytest.raises(ParameterError, match="proved only for epsilon below 1"):
        classical_scale(1.0, 1e-5)
    # and rightly so: at epsilon = 10 it would give delta = 2.3e-5 for a nominal 1e-5
    assert gaussian_delta(10.0, math.sqrt(2 * math.log(1.25e5)) / 10.0) > 2e-5


@pytest.mark.parametrize(
    ("mechanism", "expected"),
    [
        (Laplace(epsilon=0.5), PrivacyGuarantee(0.5)),
        (DiscreteLaplace(epsilon=2), PrivacyGuarantee(2.0)),
        (Gaussian(epsilon=0.5, delta=1e-6), PrivacyGuarantee(0.5, delta=1e-6)),
        (SparseVector(epsilon=0.5), PrivacyGuarantee(0.5)),
    ],
)
def test_guarantees(mechanism: Any, expected: PrivacyGuarantee) -> None:
    assert mechanism.guarantee() == expected
    record = mechanism.guarantee(unit="record", notion="anticipating", model="local")
    assert (record.unit, record.notion, record.model) == ("record", "anticipating", "local")
    with pytest.raises(ParameterError, match="unit must be"):
        mechanism.guarantee(unit="row")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Laplace(epsilon=-1.0, sensitivity=math.nan), ["2 problems", "epsilon", "sensitivity"]),
        (lambda: Laplace(epsilon=math.inf), ["epsilon"]),
        (
            lambda: DiscreteLaplace(epsilon=0.0, sensitivity=1.5),
            ["2 problems", "sensitivity must be a whole number"],
        ),
        (
            lambda: TruncatedLaplace(epsilon=1.0, lowest=-1, calibration="mended"),
            ["2 problems", "lowest", "published"],
        ),
        (lambda: Gaussian(epsilon="1", delta=1.0), ["2 problems", "delta must be below 1"]),
        (lambda: Gaussian(epsilon=True, delta=0.0, calibration="x"), ["3 problems"]),
        (lambda: SparseVector(epsilon=1.0, threshold_share=1.0), ["the statistics also require noise"]),
        (lambda: SparseVector(epsilon=1.0, threshold_share=0.0, sensitivity=-1), ["2 problems"]),
        (lambda: analytic_scale(0.0, 2.0), ["2 problems"]),
        (lambda: gaussian_delta(-1.0, 0.0), ["2 problems"]),
    ],
)
def test_bad_parameters_are_all_listed(make: Any, words: list[str]) -> None:
    with pytest.raises(ParameterError) as info:
        make()
    for word in words:
        assert word in str(info.value)


EVERY = [
    Laplace(epsilon=1.0),
    DiscreteLaplace(epsilon=1.0),
    TruncatedLaplace(epsilon=1.0),
    Gaussian(epsilon=1.0, delta=0.1),
]


@pytest.mark.parametrize("mechanism", [*EVERY, SparseVector(epsilon=1.0)])
def test_releases_refuse_seeds_and_unknown_backends(mechanism: Any) -> None:
    with pytest.raises(ParameterError, match="never seeded"):
        mechanism.release([1.0], rng=0, backend="release")
    with pytest.raises(ParameterError, match="backend must be one of 'simulation', 'release'"):
        mechanism.release([1.0], backend="exact")
    with pytest.raises(ParameterError, match="finite"):
        mechanism.release([np.nan])


@pytest.mark.parametrize("mechanism", EVERY)
@pytest.mark.parametrize("backend", ["simulation", "release"])
def test_shapes_go_through(mechanism: Any, backend: str) -> None:
    for shape in [(), (3,), (2, 4), (0,)]:
        noisy = mechanism.release(np.ones(shape), backend=backend)
        assert isinstance(noisy, np.ndarray)
        assert noisy.shape == shape
    whole = isinstance(mechanism, DiscreteLaplace | TruncatedLaplace)
    assert noisy.dtype == (np.int64 if whole else np.float64)


@pytest.mark.parametrize("mechanism", EVERY)
def test_simulations_repeat_with_their_seed(mechanism: Any) -> None:
    first = mechanism.release(np.arange(50.0), rng=4)
    assert np.array_equal(first, mechanism.release(np.arange(50.0), rng=np.random.SeedSequence(4)))
    assert np.array_equal(first, mechanism.release(np.arange(50.0), rng=np.random.default_rng(4)))
    assert not np.array_equal(first, mechanism.release(np.arange(50.0), rng=5))


def test_counts_must_be_whole_and_centres_high_enough() -> None:
    with pytest.raises(ParameterError, match="whole numbers"):
        DiscreteLaplace(epsilon=1.0).release([1.5])
    for centers in ([2.9], [np.inf], [2.0**53]):
        with pytest.raises(ParameterError, match="TruncatedLaplace"):
            TruncatedLaplace(epsilon=1.0, lowest=3).release(centers)


def test_probabilities_outside_are_refused() -> None:
    for mechanism in (Laplace(epsilon=1.0), Gaussian(epsilon=1.0, delta=0.1), SparseVector(epsilon=1.0)):
        for p in (0.0, 1.0, math.nan):
            with pytest.raises(ParameterError, match="strictly between 0 and 1"):
                mechanism.quantile(p)
