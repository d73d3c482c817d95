"""A corrected interval excludes the null exactly when the corrected p-value is at most alpha.

Thousands of random cases for every reference; only those within 1e-9 of the boundary are set aside, and they
have to be few.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.inference.corrections.information import Correction
from adaptinf.inference.distributions.bounded import BoundedDifferenceReference
from adaptinf.inference.distributions.references import (
    BinomialReference,
    NormalReference,
    Reference,
    StudentReference,
)
from adaptinf.inference.results.base import Results
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.results.log_facts import LogFacts

TERMS = 40
MARGIN = 1e-9
Maker = Callable[[np.random.Generator], Reference]


def normal(rng: np.random.Generator) -> Reference:
    return NormalReference(rng.normal(size=TERMS), np.exp(rng.normal(size=TERMS)))


def student(rng: np.random.Generator) -> Reference:
    df = np.exp(rng.uniform(0.0, np.log(1e5), size=TERMS))
    return StudentReference(rng.normal(size=TERMS), np.exp(rng.normal(size=TERMS)), df)


Counts = tuple[np.ndarray, np.ndarray]


def counts(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Counts of all sizes, with none and all among them."""
    trials = np.floor(np.exp(rng.uniform(0.0, np.log(1e4), size=TERMS)))
    successes = rng.binomial(trials.astype(int), rng.beta(0.7, 0.7, size=TERMS)).astype(float)
    successes[:5], successes[5:10] = 0.0, trials[5:10]
    return successes, trials


def binomial(rng: np.random.Generator) -> Reference:
    return BinomialReference(*counts(rng))


def difference(first: Counts, second: Counts) -> BoundedDifferenceReference:
    return BoundedDifferenceReference(first[0] / first[1], first[1], second[0] / second[1], second[1])


def binomial_difference(rng: np.random.Generator) -> Reference:
    return difference(counts(rng), counts(rng))


def nulls(rng: np.random.Generator, limits: np.ndarray) -> list[float]:
    """Values anywhere, and values near the ends of intervals (terms, 2), where tests change their minds."""
    near = limits[np.isfinite(limits)]
    near = near[np.abs(near) < 1e6]
    chosen = [0.0, 1.0, -1.0, 0.5, *rng.normal(size=2)]
    if near.size:
        relative = 10.0 ** rng.uniform(-6, -0.5, size=4) * rng.choice([-1.0, 1.0], size=4)
        chosen += list(rng.choice(near, size=4) * (1.0 + relative))
    return [float(x) for x in chosen]


def disagreements(limits: np.ndarray, null: float, log_alpha: float, log_p: np.ndarray) -> tuple[int, int]:
    """Terms whose p-value and interval (terms, 2) disagree, and terms that are too close to call."""
    low, high = limits.T
    rejected, excluded = log_p <= log_alpha, (null < low) | (null > high)
    scale = max(1.0, abs(null))
    close = (
        (np.abs(log_p - log_alpha) <= MARGIN * max(1.0, abs(log_alpha)))
        | (np.abs(null - low) <= MARGIN * scale)
        | (np.abs(null - high) <= MARGIN * scale)
    )
    assert not np.isnan(log_p).any()
    at_the_end = np.isinf(log_p) | (log_p == 0.0)  # a boundary that is hit exactly is no close call
    close &= ~at_the_end
    return int(np.sum((rejected != excluded) & ~close)), int(close.sum())


MAKERS = [normal, student, binomial, pytest.param(binomial_difference, marks=pytest.mark.slow)]


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("alpha", [0.05, 0.3, 1e-4])
def test_corrected_pvalues_and_intervals_agree(maker: Maker, alpha: float) -> None:
    rng = np.random.default_rng(20)
    cases = close = rejected = 0
    for epsilon, n in [(0.0, 10), (0.01, 20_000), (0.05, 500), (0.1, 100), (0.1, 1000), (0.3, 2000)]:
        reference = maker(rng)
        correction = Correction(epsilon, n, PrivacyGuarantee(epsilon=epsilon))
        log_level = correction.level(math.log(alpha))
        limits = reference.interval(log_level)
        for null in nulls(rng, limits):
            plain = reference.log_pvalues(null)
            wrong, near = disagreements(limits, null, log_level, plain)
            assert wrong == 0
            # The corrected p-value compared with alpha is the same decision as p compared with the level.
            corrected = correction.apply(plain)
            apart = np.abs(plain - log_level) > MARGIN * max(1.0, abs(log_level))
            np.testing.assert_array_equal((corrected <= math.log(alpha))[apart], (plain <= log_level)[apart])
            cases, close = cases + TERMS, close + near
            rejected += int(np.sum(corrected <= math.log(alpha)))
    assert cases >= 2000
    assert close <= 0.02 * cases
    assert 0.02 * cases < rejected < 0.98 * cases


@pytest.mark.slow
@given(
    st.integers(0, 400),
    st.integers(1, 400),
    st.integers(0, 400),
    st.integers(1, 400),
    st.floats(-1.2, 1.2),
    st.floats(-900.0, -0.7),
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_exact_references_agree_at_any_level(
    first: int, first_trials: int, second: int, second_trials: int, null: float, log_alpha: float
) -> None:
    one = np.array([min(first, first_trials)]), np.array([first_trials])
    two = np.array([min(second, second_trials)]), np.array([second_trials])
    for reference in (BinomialReference(*one), difference(one, two)):
        limits = reference.interval(log_alpha)
        assert disagreements(limits, null, log_alpha, reference.log_pvalues(null))[0] == 0


@given(
    st.floats(-1e3, 1e3),
    st.floats(1e-3, 1e3),
    st.floats(2.0, 1e6),
    st.floats(-1e3, 1e3),
    st.floats(-900.0, -0.7),
)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_symmetric_references_agree_at_any_level(
    estimate: float, std_error: float, df: float, null: float, log_alpha: float
) -> None:
    point, size = np.array([estimate]), np.array([std_error])
    for reference in (NormalReference(point, size), StudentReference(point, size, np.array([df]))):
        limits = reference.interval(log_alpha)
        assert disagreements(limits, null, log_alpha, reference.log_pvalues(null))[0] == 0


@pytest.mark.parametrize("maker", MAKERS)
def test_results_pass_the_agreement_on(maker: Maker) -> None:
    rng = np.random.default_rng(8)
    reference = maker(rng)
    labels = tuple(map(str, range(TERMS)))
    for null in (0.3171, 0.1093, -0.4):
        result = Results(
            model="ArmMeans",
            estimands=tuple(Estimand("arm-mean", arm=label) for label in labels),
            terms=labels,
            estimate=np.zeros(TERMS),
            std_error=np.ones(TERMS),
            reference=reference,
            estimator="sample-mean",
            facts=LogFacts(200),
            null=null,
            correction=Correction(0.1, 200, PrivacyGuarantee(epsilon=0.1)),
        )
        for alpha in (0.05, 0.2):
            interval = result.conf_int_corrected(alpha)
            outside = (null < interval["low"]) | (null > interval["high"])
            np.testing.assert_array_equal(outside, result.pvalues_corrected <= alpha)
            plain = result.conf_int(alpha)
            np.testing.assert_array_equal(
                (null < plain["low"]) | (null > plain["high"]), result.pvalues <= alpha
            )
