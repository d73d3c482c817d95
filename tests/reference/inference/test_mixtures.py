"""Beta-binomial and gamma-exponential mixtures: confseq's values, formulas, all paths of a trial."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from claims_said import says
from scipy.integrate import quad
from scipy.special import gammainc
from scipy.stats import beta

from adaptinf.claims import sequences as claims
from adaptinf.errors import InvalidForLog
from adaptinf.inference.arms.arm_order import ORDER
from adaptinf.inference.sequences.confidence_sequence import ConfidenceSequence
from adaptinf.inference.sequences.mixtures import (
    BetaBinomialSide,
    beta_size,
    gamma_boundary,
    gamma_side,
    gamma_wealth,
)
from adaptinf.inference.sequences.sequence_methods import METHODS
from adaptinf.inference.sequences.sequence_verdicts import sequence_verdicts
from adaptinf.inference.sequences.sides import MixtureSide
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log import AdaptiveLog, LogArrays

LOG20 = math.log(20.0)


def confseq_scale(variance: float, alpha: float) -> float:
    return variance / (2 * math.log(1 / alpha) + math.log(1 + 2 * math.log(1 / alpha)))


def one_arm(reward: np.ndarray, reward_range: tuple[float, float] = (0.0, 1.0)) -> AdaptiveLog:
    arrays = LogArrays(action=np.zeros(len(reward), dtype=np.int64), reward=np.asarray(reward, dtype=float))
    return AdaptiveLog.from_arrays(arrays, arms=("a",), reward_range=reward_range)


def test_values_of_confseq() -> None:
    """Its unit tests: v 100, tuned for 100 at .05; s 10 and c 2, or g .2 and h .8."""
    normal = confseq_scale(100.0, 0.05)
    assert normal == pytest.approx(12.60056, abs=1e-5)
    side = MixtureSide.of_scores(np.array([10.0]), np.array([100.0]), normal, -math.inf)
    assert 10.0 - side.bounds(LOG20, np.array([1]))[0] == pytest.approx(30.35209, abs=1e-5)
    wealth = 100 / (2 * (100 + normal)) - 0.5 * math.log((100 + normal) / normal)
    assert wealth == pytest.approx(-0.6510052, abs=1e-6)
    assert side.peak(-30.35209) == pytest.approx(
        40.35209**2 / 2 / (100 + normal) + wealth - 50 / (100 + normal)
    )

    scale = confseq_scale(100.0, 0.1) / 4  # a scale of c divides excess by c, and variances by its square
    assert gamma_wealth(np.array([5.0]), np.array([25.0]), scale)[0] == pytest.approx(-0.2490165, abs=1e-6)
    assert 2 * gamma_boundary(np.array([25.0]), LOG20, scale)[0] == pytest.approx(33.02017, abs=1e-5)


def test_beta_binomial_values_of_confseq() -> None:
    """n = 625 scores have variance 100 at a claim of .2: a bound of 31.4308 on their sum."""
    size = confseq_scale(100.0, 0.05) / 0.16 - 1.0
    high = [0, 1]
    for wins, reached in ((125 + 31, False), (125 + 32, True)):
        score = np.concatenate((np.zeros(625 - wins), np.ones(wins)))
        high[int(reached)] = BetaBinomialSide(score, size).peak(0.2) >= LOG20
    assert high == [False, True]
    score = np.concatenate((np.ones(135), np.zeros(490)))
    assert literal_beta(score, 0.2, size)[-1] == pytest.approx(-0.6941012, abs=1e-6)


def literal_beta(score: np.ndarray, mean: float, size: float) -> list[float]:
    """Log wealth after each score, from gamma functions."""

    def log_beta(a: float, b: float) -> float:
        return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)

    path, wins = [], 0.0
    a, b = size * mean, size * (1 - mean)
    for n, value in enumerate(score, 1):
        wins += value
        odds = wins * math.log(mean) + (n - wins) * math.log(1 - mean)
        path.append(log_beta(a + wins, b + n - wins) - log_beta(a, b) - odds)
    return path


@pytest.mark.slow
@pytest.mark.parametrize(("share", "n"), [(0.3, 400), (0.02, 3_000), (0.97, 150)])
def test_beta_binomial_sequence_is_the_literal_one(share: float, n: int) -> None:
    rng = np.random.default_rng(7)
    score = (rng.random(n) < share).astype(float)
    size = beta_size(1000.0, 0.05)
    counts = np.arange(1, n + 1)
    above = np.cumsum(score) / counts
    for mean in (0.001, 0.01, 0.2, 0.5, 0.9, 0.999):
        path = np.array(literal_beta(score, mean, size))
        expected = max(path[above > mean], default=0.0)
        assert BetaBinomialSide(score, size).peak(mean) == pytest.approx(max(expected, 0.0), abs=1e-8)
    result = ConfidenceSequence(one_arm(4.0 * score - 1.0, (-1.0, 3.0))).fit("beta-binomial")
    rounds = [1, 10, n // 2, n]
    table = result.table(rounds=rounds)
    grid = np.linspace(0.0005, 0.9995, 1000)
    paths = np.array([literal_beta(score, mean, size) for mean in grid])
    for t, low, high in table[["t", "low", "high"]].itertuples(index=False):
        kept = grid[paths[:, :t].max(axis=1) < LOG20]
        assert (low + 1) / 4 == pytest.approx(kept.min(), abs=0.00101)
        assert (high + 1) / 4 == pytest.approx(kept.max(), abs=0.00101)
    for null in (0.0, 1.0):
        peak = max(literal_beta(score, (null + 1) / 4, size))
        tested = ConfidenceSequence(one_arm(4.0 * score - 1.0, (-1.0, 3.0))).fit("beta-binomial", null=null)
        assert tested.log_pvalues.iloc[0] == pytest.approx(min(0.0, -peak), abs=1e-8)


def test_beta_binomial_wealth_is_the_prior_average() -> None:
    score = np.array([1.0, 1.0, 0.0, 1.0, 1.0, 1.0])
    prior = beta(3.0 * 0.2, 3.0 * 0.8)
    average = quad(lambda p: prior.pdf(p) * (p / 0.2) ** 5 * (1 - p) / 0.8, 0.0, 1.0)[0]
    assert BetaBinomialSide(score, 3.0).peak(0.2) == pytest.approx(math.log(average), abs=1e-7)


def test_gamma_exponential_wealth_is_the_prior_average() -> None:
    scale, excess, variance = 1.7, 6.0, 9.0

    def density(share: float) -> float:
        rest = 1.0 - share
        body = scale * math.log(scale) + (scale - 1) * math.log(rest) - scale * rest - math.lgamma(scale)
        return math.exp(body) / float(gammainc(scale, scale))

    average = quad(lambda b: density(b) * math.exp(b * excess + (math.log1p(-b) + b) * variance), 0.0, 1.0)[0]
    wealth = gamma_wealth(np.array([excess]), np.array([variance]), scale)[0]
    assert wealth == pytest.approx(math.log(average), abs=1e-9)


def test_gamma_exponential_sequence_is_the_literal_one() -> None:
    rng = np.random.default_rng(3)
    score = rng.beta(2.0, 5.0, size=700)
    side = gamma_side(score, np.zeros(700), 1000.0, 0.05)
    total, squares, sums, centre, swing = 0.0, 0.0, [], 0.5, []
    for n, value in enumerate(score, 1):
        squares += (value - centre) ** 2
        total += value
        centre = (0.5 + total) / (n + 1)
        sums.append(total)
        swing.append(squares)
    threshold = math.log(40.0)
    for count in (1, 30, 700):
        bound = side.bounds(threshold, np.array([count]))[0]
        wealth = gamma_wealth(
            np.maximum(np.array(sums) - bound * np.arange(1, 701), 0.0), np.array(swing), side.scale
        )
        if bound == 0.0:
            assert wealth[:count].max() < threshold
        else:
            assert wealth[:count].max() == pytest.approx(threshold, abs=1e-7)
    assert side.peak(0.2) == pytest.approx(
        gamma_wealth(
            np.maximum(np.array(sums) - 0.2 * np.arange(1, 701), 0.0), np.array(swing), side.scale
        ).max(),
        abs=1e-9,
    )


@pytest.mark.parametrize("mean", [0.1, 0.5])
def test_over_all_paths_wealth_is_fair_and_misses_are_rare(mean: float) -> None:
    n, size = 12, 0.7
    ends, alpha, missed = [], 0.3, 0.0
    for path in itertools.product((0.0, 1.0), repeat=n):
        score = np.array(path)
        chance = mean ** score.sum() * (1 - mean) ** (n - score.sum())
        ends.append(chance * math.exp(literal_beta(score, mean, size)[-1]))
        peaks = BetaBinomialSide(score, size).peak(mean), BetaBinomialSide(1 - score, size).peak(1 - mean)
        missed += chance * (max(peaks) >= -math.log(alpha))
    assert math.fsum(ends) == pytest.approx(1.0, abs=1e-12)
    assert 0.0 < missed <= alpha


def test_boundary_of_many_rounds_meets_its_threshold() -> None:
    variance = np.cumsum(np.random.default_rng(0).random(50_000)) * 0.2
    boundary = gamma_boundary(variance, 3.7, 30.0)
    np.testing.assert_allclose(gamma_wealth(boundary, variance, 30.0), 3.7, atol=1e-6)


def test_extreme_logs() -> None:
    none, every = (
        ConfidenceSequence(one_arm(np.full(20_000, value))).fit("beta-binomial").conf_int().to_numpy()[0]
        for value in (0.0, 1.0)
    )
    assert none[0] == 0.0
    assert 0.0 < none[1] < 0.002
    np.testing.assert_allclose(every, 1.0 - none[::-1], atol=1e-13)
    impossible = ConfidenceSequence(one_arm(np.array([0.0, 1.0]))).fit("beta-binomial", null=0.0)
    assert impossible.log_pvalues.iloc[0] == -math.inf


def test_beta_binomial_wants_rewards_at_the_ends_and_sample_means() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidForLog) as caught:
        ConfidenceSequence(one_arm(rng.random(50))).fit("beta-binomial")
    assert says(caught.value.reason, claims.NOT_AT_ENDS, low=0.0, high=1.0)
    binary = one_arm((rng.random(50) < 0.4).astype(float))
    with pytest.raises(InvalidForLog) as caught:
        ConfidenceSequence(with_propensities(binary)).fit("beta-binomial", estimator="ipw")
    assert says(caught.value.reason, claims.NO_COUNTS, estimator="ipw")


def with_propensities(log: AdaptiveLog) -> AdaptiveLog:
    ones = np.ones(log.n_rounds)
    arrays = LogArrays(
        action=log.arrays.action, reward=log.arrays.reward, propensity=ones, propensities=ones[:, None]
    )
    return AdaptiveLog.from_arrays(arrays, arms=log.arms, reward_range=log.reward_range)


@pytest.mark.parametrize(("share", "n"), [(0.5, 100), (0.5, 10_000), (0.1, 1_000), (0.02, 10_000)])
def test_verdicts_order_by_the_widths_that_come_out(share: float, n: int) -> None:
    log = one_arm((np.random.default_rng(11).random(n) < share).astype(float))
    model = ConfidenceSequence(log)
    found = {
        one.arguments["method"]: one.length
        for one in sequence_verdicts(profile_of(log), model.quantities, ORDER)
        if one.valid and one.label == "anytime" and one.arguments["estimator"] == "sample-mean"
    }
    assert set(found) == {name for name, method in METHODS.items() if method.anytime}
    widths = {name: float(np.ptp(model.fit(name).conf_int().to_numpy())) for name in found}
    for name, expected in found.items():
        assert expected == pytest.approx(widths[name], rel=0.25), name
    first = min(found, key=found.__getitem__)
    assert widths[first] <= 1.01 * min(widths.values())
    assert first == "betting" or n > 100
