"""The sparse vector technique: its exact stopping law, what it loses, and how it is asked."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from adaptinf.errors import ParameterError
from adaptinf.privacy.release import GRID_UNITS
from adaptinf.privacy.sparse_vector import SparseVector


def literal_law(threshold_scale: float, query_scale: float, margins: list[float]) -> np.ndarray:
    """Stopping probabilities by adaptive quadrature over the threshold's noise."""
    noise = stats.laplace(scale=query_scale)

    def stops(k: int, b: float) -> float:
        below = math.prod(noise.cdf(b - v) for v in margins[:k])
        return float(below * (noise.sf(b - margins[k]) if k < len(margins) else 1.0))

    def integral(k: int) -> float:
        reach = 45.0 * threshold_scale
        kinks = sorted({-reach, 0.0, reach, *[v for v in margins if abs(v) < reach]})
        threshold = stats.laplace(scale=threshold_scale)
        return math.fsum(
            integrate.quad(lambda b: threshold.pdf(b) * stops(k, b), low, high, epsabs=1e-12, limit=200)[0]
            for low, high in itertools.pairwise(kinks)
        )

    return np.array([integral(k) for k in range(len(margins) + 1)])


@pytest.mark.parametrize("share", [0.2, 1.0 / 3.0, 0.8])
def test_stopping_law_against_adaptive_quadrature(share: float) -> None:
    mechanism = SparseVector(epsilon=1.3, sensitivity=2.0, threshold_share=share)
    values, limits = np.array([0.5, -3.0, 11.0]), np.array([2.0, 1.0, 3.0])
    exact = literal_law(mechanism.threshold_scale, mechanism.query_scale, (values - limits).tolist())
    law = mechanism.stopping_law(values, limits)
    np.testing.assert_allclose(law, exact, atol=1e-10)
    assert law.sum() == pytest.approx(1.0, abs=1e-12)


def test_scales_split_the_budget() -> None:
    mechanism = SparseVector(epsilon=0.6, sensitivity=2.0, threshold_share=0.25)
    assert mechanism.threshold_scale == pytest.approx(2.0 / 0.15)
    assert mechanism.query_scale == pytest.approx(4.0 / 0.45)
    # Sajed and Sheffet: half of epsilon for the questions, sensitivity 2 R, both scales 3 (2 / eps) 2 R
    paper = SparseVector(epsilon=0.5, sensitivity=2.0)
    assert paper.threshold_scale == pytest.approx(3.0 * 2.0 / 1.0 * 2.0)
    assert paper.query_scale == pytest.approx(paper.threshold_scale)
    shares = np.linspace(0.05, 0.95, 181)
    best = shares[np.argmin([SparseVector(epsilon=1.0, threshold_share=s).variance for s in shares])]
    assert best == pytest.approx(1.0 / (1.0 + 2.0 ** (2.0 / 3.0)), abs=0.006)


@pytest.mark.parametrize("share", [0.1, 1.0 / 3.0, 0.333, 2.0 / 3.0])
def test_tail_of_a_single_answer(share: float) -> None:
    mechanism = SparseVector(epsilon=0.9, threshold_share=share)
    for x in (0.0, 0.3, 5.0, 40.0):
        assert mechanism.tail(x) == pytest.approx(mechanism.stopping_law([-x])[0], rel=1e-9, abs=1e-13)
        assert mechanism.tail(-x) == pytest.approx(1.0 - mechanism.tail(x), abs=1e-14)
    p = np.array([1e-6, 0.2, 0.5, 0.77, 1 - 1e-6])
    np.testing.assert_allclose(1.0 - mechanism.tail(mechanism.quantile(p)), p, rtol=1e-9)
    step = mechanism.quantile(1 - 1e-16) * np.linspace(0.0, 1.0, 20_001)
    second = np.trapezoid(4.0 * step * mechanism.tail(step), step)
    assert second == pytest.approx(mechanism.variance, rel=1e-5)


class Faulty(SparseVector):
    """Half of the noise that a statistic needs."""

    @property
    def query_scale(self) -> float:
        return super().query_scale / 2.0


def largest_loss(mechanism: SparseVector, n: int) -> float:
    """Largest log ratio of stopping probabilities over neighbours: each statistic moves by at most 1."""
    worst = 0.0
    for base in (-8.0, -1.0, 0.0, 1.5):
        for last in (-20.0, 0.0, 3.0):
            values = np.array([base] * (n - 1) + [last])
            law = mechanism.stopping_law(values)
            for shift in itertools.product([-1.0, 1.0], repeat=n):
                moved = mechanism.stopping_law(values + np.array(shift))
                seen = np.minimum(law, moved) > 1e-10
                worst = max(worst, float(np.abs(np.log(law[seen] / moved[seen])).max()))
    return worst


@pytest.mark.parametrize("share", [0.25, 1.0 / 3.0, 0.7])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_privacy_loss_of_the_answers_stays_below_epsilon(epsilon: float, share: float) -> None:
    for n in (1, 2, 4):
        assert largest_loss(SparseVector(epsilon=epsilon, threshold_share=share), n) <= epsilon * (1 + 1e-6)


def test_the_bound_is_reached_and_half_the_noise_breaks_it() -> None:
    """Many statistics that rise, then one far below that falls: the noises have to move as in the proof."""

    def loss(mechanism: SparseVector) -> float:
        many = np.zeros(400)
        first = mechanism.stopping_law(np.append(many, -30.0))
        second = mechanism.stopping_law(np.append(many + 1.0, -31.0))
        return float(abs(math.log(first[400] / second[400])))

    assert loss(SparseVector(epsilon=1.0)) == pytest.approx(1.0, abs=1e-9)
    assert loss(Faulty(epsilon=1.0)) > 1.6


def test_questions_one_at_a_time_are_those_of_a_sequence() -> None:
    mechanism = SparseVector(epsilon=0.5)
    values = np.arange(40.0) - 20.0
    for seed in range(20):
        answers = mechanism.release(values, rng=seed, threshold=3.0)
        questions = mechanism.start(rng=seed)
        one_by_one = []
        while not questions.stopped and questions.asked < values.size:
            one_by_one.append(questions.above(values[questions.asked], threshold=3.0))
        assert answers.tolist() == one_by_one
        assert not answers[:-1].any()
        if questions.stopped:
            assert answers[-1]
            with pytest.raises(ParameterError, match="spends epsilon again"):
                questions.above(0.0)


@pytest.mark.parametrize("backend", ["simulation", "release"])
def test_clear_cases_are_answered_clearly(backend: str) -> None:
    mechanism = SparseVector(epsilon=1.0)
    assert mechanism.release([-1e4, -1e4, 1e4, 1e4], backend=backend).tolist() == [False, False, True]
    assert mechanism.release([-1e4, -1e4], backend=backend).tolist() == [False, False]
    assert mechanism.release([], backend=backend).shape == (0,)


def test_release_noise_is_that_of_the_shares_on_the_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def note(scale: float, size: int) -> np.ndarray:
        asked.append(scale)
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr("adaptinf.privacy.sparse_vector.discrete_laplace", note)
    mechanism = SparseVector(epsilon=0.5, sensitivity=3.0, threshold_share=0.25)
    answers = mechanism.release([1.0, 2.0 - 2.0**-20, 2.0], backend="release", threshold=2.0)
    assert answers.tolist() == [False, False, True]  # equality is above
    assert asked == [8.0 * GRID_UNITS] + [math.nextafter(2.0 * GRID_UNITS / 0.375, math.inf)] * 3
    assert asked[1] == pytest.approx(mechanism.query_scale / 3.0 * GRID_UNITS)


@pytest.mark.parametrize(
    ("values", "threshold"), [([[1.0]], 0.0), ([1.0, 2.0], [1.0]), ([math.inf], 0.0), ([1.0], math.nan)]
)
def test_bad_sequences_are_refused(values: Any, threshold: Any) -> None:
    with pytest.raises(ParameterError, match="SparseVector"):
        SparseVector(epsilon=1.0).release(values, threshold=threshold)
