"""The max-information correction against a search in 50 digits, and its validity by exact enumeration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest
from scipy.stats import binom

from adaptinf.inference.corrections.information import (
    correct_pvalues,
    corrected_level,
    log_correct_pvalues,
    log_corrected_level,
    max_information,
)

EPSILONS = (1e-3, 0.01, 0.02, 0.05, 0.1, 0.3, 1.0)
ROUNDS = (1, 10, 100, 1000, 20_190, 1_000_000)
PVALUES = (1e-300, 1e-120, 1e-40, 1e-9, 1e-3, 0.03, 0.4)
GOLDEN = (mp.sqrt(5) - 1) / 2


def _nats(epsilon: float, n: int, log_beta: mp.mpf) -> mp.mpf:
    exact = mp.mpf(epsilon)
    return min(exact * n, exact**2 * n / 2 + exact * mp.sqrt(mp.mpf(n) * (mp.log(2) - log_beta) / 2))


def _minimum(function: Callable[[mp.mpf], mp.mpf], low: mp.mpf, high: mp.mpf) -> mp.mpf:
    """Smallest value on a grid, refined by golden section around it."""
    grid = [low + (high - low) * i / 150 for i in range(151)]
    values = [function(point) for point in grid]
    best = min(range(151), key=values.__getitem__)
    left, right = grid[max(best - 1, 0)], grid[min(best + 1, 150)]
    inner = [right - GOLDEN * (right - left), left + GOLDEN * (right - left)]
    tried = [function(point) for point in inner]
    for _ in range(60):
        if tried[0] < tried[1]:
            right, inner[1], tried[1] = inner[1], inner[0], tried[0]
            inner[0] = right - GOLDEN * (right - left)
            tried[0] = function(inner[0])
        else:
            left, inner[0], tried[0] = inner[0], inner[1], tried[1]
            inner[1] = left + GOLDEN * (right - left)
            tried[1] = function(inner[1])
    return min(values[best], *tried)


def _searched_pvalue(log_p: mp.mpf, epsilon: float, n: int) -> mp.mpf:
    """Minimum over beta, at most 1; beta = 0 is tried by itself."""
    searched = _minimum(
        lambda log_beta: mp.exp(_nats(epsilon, n, log_beta) + log_p) + mp.exp(log_beta), log_p - 60, mp.mpf(0)
    )
    return min(mp.mpf(1), searched, mp.exp(mp.mpf(epsilon) * n + log_p))


def _searched_level(log_alpha: mp.mpf, epsilon: float, n: int) -> mp.mpf:
    searched = -_minimum(
        lambda log_beta: -(mp.exp(log_alpha) - mp.exp(log_beta)) * mp.exp(-_nats(epsilon, n, log_beta)),
        log_alpha - 60,
        log_alpha,
    )
    return max(searched, mp.exp(log_alpha - mp.mpf(epsilon) * n))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("n", ROUNDS)
@pytest.mark.filterwarnings("ignore::adaptinf.inference.corrections.information.VacuousCorrectionWarning")
def test_corrected_pvalues_are_the_searched_minimum(epsilon: float, n: int) -> None:
    with mp.workdps(50):
        expected = [float(_searched_pvalue(mp.log(mp.mpf(p)), epsilon, n)) for p in PVALUES]
    np.testing.assert_allclose(correct_pvalues(PVALUES, epsilon=epsilon, n=n), expected, rtol=1e-11)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("n", ROUNDS)
def test_corrected_level_is_the_searched_supremum(epsilon: float, n: int) -> None:
    for alpha in (0.49, 0.05, 1e-12):
        with mp.workdps(50):
            searched = mp.log(_searched_level(mp.log(mp.mpf(alpha)), epsilon, n))
        level = log_corrected_level(math.log(alpha), epsilon=epsilon, n=n)
        # The log itself is as far as 5e5 from 0, where doubles are 6e-11 apart.
        assert abs(level - float(searched)) < max(1e-11, 2e-15 * abs(level))
        assert corrected_level(alpha, epsilon=epsilon, n=n) == pytest.approx(
            math.exp(level), rel=1e-11, abs=0
        )


def test_logarithms_far_below_the_smallest_double() -> None:
    for log_p in (-1200.0, -5_000.0, -60_000.0):
        with mp.workdps(50):
            expected = float(mp.log(_searched_pvalue(mp.mpf(log_p), 0.3, 20_190)))
        assert float(log_correct_pvalues(log_p, epsilon=0.3, n=20_190)) == pytest.approx(expected, rel=1e-13)


def _cube(n: int) -> np.ndarray:
    return np.array(list(itertools.product((0, 1), repeat=n)))


def _worst_rejection(level: float, epsilon: float, n: int, success: float) -> float:
    """Largest rejection probability of tests of this level chosen from randomised responses.

    Rewards are n independent Bernoulli(success) bits, the output repeats each with probability
    e^epsilon / (1 + e^epsilon). For each output the best region of null probability ``level`` holds the
    rewards of the largest likelihood (a fraction of the last one).
    """
    cube = _cube(n)
    null = np.prod(np.where(cube == 1, success, 1.0 - success), axis=1)
    agreements = (cube[:, None, :] == cube[None, :, :]).sum(axis=2)
    channel = np.exp(epsilon * agreements) / (1.0 + math.exp(epsilon)) ** n
    total = 0.0
    for likelihood in channel:
        order = np.argsort(-likelihood)
        before = np.concatenate([[0.0], np.cumsum(null[order])[:-1]])
        share = np.clip((level - before) / null[order], 0.0, 1.0)
        total += float(np.sum(share * null[order] * likelihood[order]))
    return total


@pytest.mark.parametrize("bound", ["max-information", "moment"])
@pytest.mark.parametrize("success", [0.5, 0.2])
def test_no_choice_of_test_rejects_more_often_than_alpha(bound: str, success: float) -> None:
    n = 8
    for epsilon in (0.05, 0.3, 1.0, 2.5):
        for alpha in (0.001, 0.05, 0.3):
            level = corrected_level(alpha, epsilon=epsilon, n=n, bound=bound)  # type: ignore[arg-type]
            assert _worst_rejection(level, epsilon, n, success) <= alpha
    # Without a correction the same tests reject far too often.
    assert _worst_rejection(0.05, 1.0, n, success) > 0.25


def test_both_bounds_hold_in_a_long_run_and_the_moment_bound_is_the_closer_one() -> None:
    """Fair bits and 400 responses: agreements are binomial, whatever the output."""
    n, epsilon = 400, 0.1
    agreements = np.arange(n + 1)
    naive = binom.sf(agreements - 1, n, 0.5)
    rejection = binom.sf(agreements - 1, n, math.exp(epsilon) / (1.0 + math.exp(epsilon)))
    optimal = correct_pvalues(naive, epsilon=epsilon, n=n)
    moment = correct_pvalues(naive, epsilon=epsilon, n=n, bound="moment")
    assert np.all(rejection <= moment)
    assert np.all(moment <= optimal)
    tail = (rejection < 0.05) & (rejection > 1e-9)
    assert np.max(moment[tail] / rejection[tail]) < 2.5
    assert np.min(optimal[tail] / rejection[tail]) > 8.0


def test_leaving_beta_out_of_the_correction_is_invalid() -> None:
    """alpha / 2^k(beta) in place of (alpha - beta) / 2^k(beta), at beta = 1, on a hundred fair bits.

    Each is revealed by randomised response. The test counts agreements with the responses. It rejects from
    62 on, with probability .0352 at alpha = .0312.
    """
    n, epsilon, alpha = 100, 0.1, 0.0312
    printed_level = alpha / 2.0 ** max_information(epsilon, n, beta=1.0)
    naive = binom.sf(np.arange(n + 1) - 1, n, 0.5)
    rejects = naive <= printed_level
    agree = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    probability = float(np.sum(binom.pmf(np.arange(n + 1), n, agree)[rejects]))
    assert int(np.argmax(rejects)) == 62
    assert probability == pytest.approx(0.03515, abs=5e-6)
    assert probability > 1.12 * alpha
    honest = naive <= corrected_level(alpha, epsilon=epsilon, n=n)
    assert float(np.sum(binom.pmf(np.arange(n + 1), n, agree)[honest])) < alpha
