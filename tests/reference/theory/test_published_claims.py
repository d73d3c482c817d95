"""Numbers in docs/errata: what the papers' printed statements come to, computed exactly where possible."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from adaptinf.designs import PrivateUCB
from adaptinf.inference.corrections.information import corrected_level, max_information
from adaptinf.privacy.tree_sums import noise_variance
from adaptinf.simulation.environments import BernoulliArms
from adaptinf.typing import FloatArray

# --- Neel and Roth (2018), Corollary 3 ---


def response_probability(epsilon: float) -> float:
    """Probability that a randomised response is true."""
    return math.exp(epsilon) / (1.0 + math.exp(epsilon))


@pytest.mark.parametrize(
    ("beta", "matches", "level", "rejects"),
    [(1.0, 62, 0.0314, 0.0352), (0.5, 64, 0.0127, 0.0133), (0.05, 70, 2.55e-4, 2.75e-4)],
)
def test_corollary_without_its_beta_rejects_too_often(
    beta: float, matches: int, level: float, rejects: float
) -> None:
    epsilon, horizon = 0.1, 101
    nats = epsilon**2 * horizon / 2 + epsilon * math.sqrt(horizon * math.log(2.0 / beta) / 2)
    p_value = stats.binom.sf(matches - 1, horizon - 1, 0.5)
    alpha = p_value * math.exp(nats)
    truth = stats.binom.sf(matches - 1, horizon - 1, response_probability(epsilon))
    assert alpha == pytest.approx(level, rel=5e-3)
    assert truth == pytest.approx(rejects, rel=5e-3)
    assert truth > alpha


@pytest.mark.parametrize("alpha", [0.3, 0.1, 0.05, 0.01, 1e-4])
def test_our_level_keeps_its_promise_on_the_same_design(alpha: float) -> None:
    epsilon, horizon = 0.1, 101
    gamma = float(corrected_level(alpha, epsilon=epsilon, n=horizon - 1))
    cutoff = stats.binom.isf(gamma, horizon - 1, 0.5) + 1
    assert stats.binom.sf(cutoff - 1, horizon - 1, 0.5) <= gamma
    truth = stats.binom.sf(cutoff - 1, horizon - 1, response_probability(epsilon))
    assert 0.0 < truth <= alpha


def test_max_information_is_the_papers_bound_where_that_is_the_smaller() -> None:
    nats = 0.1**2 * 100 / 2 + 0.1 * math.sqrt(100 * math.log(2.0 / 0.05) / 2)
    assert max_information(0.1, 100, 0.05) == pytest.approx(nats * math.log2(math.e), rel=1e-12)


# --- Neel and Roth (2018), Theorem 4 and Algorithm 2 ---


def test_prediction_bias_exceeds_what_the_theorem_allows() -> None:
    epsilon, rounds, dimension = 0.1, 200, 100
    rng = np.random.default_rng(0)
    sphere = rng.standard_normal((rounds, dimension - 1))
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    contexts = np.column_stack([np.full(rounds, 0.5), math.sqrt(0.75) * sphere])
    hat = contexts @ np.linalg.pinv(contexts)
    row = int(np.abs(hat).sum(axis=1).argmax())
    # posterior mean of a fair coin given its randomised response, by Bayes
    truthful = response_probability(epsilon)
    given_one = truthful * 0.5 / (truthful * 0.5 + (1 - truthful) * 0.5)
    means = np.where(hat[row] > 0, given_one, 1 - given_one)
    bias = hat[row] @ means - 0.5
    assert bias == pytest.approx(0.159, abs=1e-3)
    assert bias > math.expm1(epsilon)
    assert bias <= math.expm1(epsilon) * np.abs(hat[row]).sum() * 0.5
    typical = (given_one - 0.5) * math.sqrt(hat[row] @ hat[row])
    assert typical == pytest.approx(0.018, abs=1e-3)


def test_undivided_noise_would_drown_the_index() -> None:
    spread = math.sqrt(float(noise_variance("hybrid", 1.0 / 5, 5000, np.array([1000]))[0]))
    assert spread == pytest.approx(288.1, abs=0.1)


def test_published_relaxation_pulls_the_arms_nearly_in_turn() -> None:
    design = PrivateUCB(epsilon=0.05, calibration="published")
    pulls = design.replicate(BernoulliArms(np.linspace(1.0, 0.05, 20)), 500, 2000, rng=0).pulls
    assert pulls.min() >= 20
    assert pulls.max() <= 30
    # an arm's mean makes no difference: sd of an average of 2,000 pulls is below .025
    assert np.abs(pulls.mean(axis=0) - 25).max() < 0.1


# --- Li, Shi and Simchi-Levi (2024) ---


def positive_laplace(centre: int, epsilon: float, size: int = 900) -> FloatArray:
    """Law of Lap+ on 0, 1, 2, ...: proportional to exp(-epsilon |k - centre| / 2)."""
    weights = np.exp(-0.5 * epsilon * np.abs(np.arange(centre + size) - centre))
    return weights / weights.sum()


def closing_law(lengths: FloatArray, place: int) -> FloatArray:
    """Law of the number of other arrivals at which a batch closes, with a participant as arrival `place`."""
    law = np.zeros_like(lengths)
    for length, probability in enumerate(lengths):
        others = length if length < place else length - 1
        law[others] += probability
    return law


def last_coin_law(closing: FloatArray) -> FloatArray:
    """Law of the last of the others to get the worse arm: fair coins up to the closing, none after it."""
    law = np.zeros_like(closing)
    for index in range(1, closing.size):
        later = np.arange(index, min(index + 200, closing.size))
        law[index] = closing[later] @ 0.5 ** (later - index + 1.0)
    law[0] = closing @ 0.5 ** np.arange(closing.size, dtype=float)
    return law


def excess(first: FloatArray, second: FloatArray, epsilon: float) -> float:
    """Smallest delta at which `first` is within exp(epsilon) of `second`."""
    return float(np.maximum(first - math.exp(epsilon) * second, 0.0).sum())


@pytest.mark.parametrize("centre", [1, 2, 5, 11, 40])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_normaliser_of_the_lengths(centre: int, epsilon: float) -> None:
    weights = sum(math.exp(-0.5 * epsilon * abs(k)) for k in range(-centre, 2000))
    scale = math.expm1(0.5 * epsilon)
    right = (math.exp(0.5 * epsilon) + 1.0 - math.exp(-0.5 * epsilon * centre)) / scale
    printed = (math.exp(0.5 * epsilon) + 1.0 - math.exp(0.5 * epsilon * centre)) / scale
    assert right == pytest.approx(weights, rel=1e-12)
    assert abs(printed / weights - 1.0) > 0.05
    assert (printed < 0) == (epsilon * centre > 2.0 * math.log(1.0 + math.exp(0.5 * epsilon)))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0])
def test_a_closing_position_doubles_in_probability(epsilon: float) -> None:
    lengths = positive_laplace(50, epsilon)
    for place, ratio in ((30, 1 + math.exp(0.5 * epsilon)), (70, 1 + math.exp(-0.5 * epsilon))):
        assert closing_law(lengths, place)[place - 1] / lengths[place - 1] == pytest.approx(ratio)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0])
def test_closing_positions_break_approximate_privacy_at_every_epsilon(epsilon: float) -> None:
    centre, q = 400, math.exp(-0.5 * epsilon)
    lengths = positive_laplace(centre, epsilon)
    with_j, with_k = closing_law(lengths, centre), closing_law(lengths, 1)
    first = with_j[centre - 1] * lengths[centre:].sum()
    second = lengths[centre - 1] * with_k[centre:].sum()
    assert first / second == pytest.approx(math.exp(epsilon) * (1 + q))
    assert first - math.exp(epsilon) * second == pytest.approx(q * (1 - q) / (1 + q) ** 2, rel=1e-6)


def test_closing_position_of_one_feature_at_small_epsilon() -> None:
    lengths = positive_laplace(400, 0.1)
    assert excess(closing_law(lengths, 400), lengths, 0.1) == pytest.approx(0.0225, abs=5e-5)


@pytest.mark.parametrize(
    ("epsilon", "places", "delta"),
    [(0.1, (59, 59), 0.0152), (0.3, (59, 59), 0.0180), (0.5, (59, 1), 0.0133), (1.0, (57, 1), 0.0023)],
)
def test_actions_of_the_others_break_the_claim(epsilon: float, places: tuple[int, int], delta: float) -> None:
    lengths = positive_laplace(60, epsilon)
    absent = last_coin_law(lengths)
    first = np.outer(last_coin_law(closing_law(lengths, places[0])), absent)
    second = np.outer(absent, last_coin_law(closing_law(lengths, places[1])))
    assert excess(first, second, epsilon) == pytest.approx(delta, abs=5e-5)


def test_far_below_the_centre_the_last_coin_gives_the_stated_ratio() -> None:
    epsilon = 0.8
    lengths = positive_laplace(200, epsilon)
    with_j = last_coin_law(closing_law(lengths, 100))[99] / last_coin_law(lengths)[99]
    with_k = last_coin_law(closing_law(lengths, 1))
    far = last_coin_law(lengths)[300] / with_k[300]
    root = math.exp(0.5 * epsilon)
    assert with_j == pytest.approx(1 + 0.5 * root, rel=1e-6)
    assert with_j * far == pytest.approx(root * (1 + 0.5 * root), rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_whoever_closes_a_batch_shows_the_feature(epsilon: float) -> None:
    for centre in (1, 11, 100):
        assert positive_laplace(centre, epsilon).max() > math.tanh(0.25 * epsilon) * (1 - 1e-12)
    assert positive_laplace(800, epsilon).max() == pytest.approx(math.tanh(0.25 * epsilon))


def test_all_lengths_share_a_centre() -> None:
    n_features, epsilon, centre = 10, 0.1, 50
    ratio = positive_laplace(centre, epsilon) / positive_laplace(centre + 1, epsilon)[: centre + 900]
    loss = n_features * np.abs(np.log(ratio)).max()

    def normaliser(m: int) -> float:
        return math.exp(0.5 * epsilon) + 1.0 - math.exp(-0.5 * epsilon * m)

    stated = n_features * (0.5 * epsilon + math.log(normaliser(centre + 1) / normaliser(centre)))
    assert loss == pytest.approx(stated)
    assert loss == pytest.approx(0.520, abs=1e-3)


def test_an_estimate_from_one_arrival() -> None:
    centre = math.floor(math.log(1e5))
    assert centre == 11
    assert positive_laplace(centre, 0.1)[1] == pytest.approx(0.021, abs=5e-4)


@pytest.mark.parametrize(
    ("variance_ratio", "coverage"), [(2.0, 0.834), (2.0 * 2.0, 0.673), (2.0 * 2.0**0.8, 0.706)]
)
def test_coverage_with_the_printed_variance(variance_ratio: float, coverage: float) -> None:
    half_width = stats.norm.isf(0.025) / math.sqrt(variance_ratio)
    assert 1 - 2 * stats.norm.sf(half_width) == pytest.approx(coverage, abs=5e-4)


def test_variance_of_a_trial_with_two_halves() -> None:
    rng = np.random.default_rng(5)
    arms = rng.integers(0, 2, (20_000, 200))
    rewards = (rng.random(arms.shape) < np.where(arms == 1, 0.7, 0.4)).astype(float)
    difference = (rewards * arms).sum(1) / arms.sum(1) - (rewards * (1 - arms)).sum(1) / (1 - arms).sum(1)
    limit = 2 * (0.7 * 0.3 + 0.4 * 0.6)
    # relative sd of a variance from 20,000 draws is .01, and 1/N exceeds its limit by about 1/200
    assert 200 * difference.var() / limit == pytest.approx(1.005, abs=0.045)


def missing_estimate(alpha: float, ratio: float, horizon: int = 100_000) -> float:
    """Two equally likely features; the first falls to `ratio`: probability that its trial is not filled."""
    half = horizon // 2
    first = np.arange(half + 1)
    needed = np.ceil(np.maximum(math.log(horizon), np.minimum(first, half - first) ** (1.0 - alpha)))
    weights = stats.binom.pmf(first, half, 0.5)
    return float(weights @ stats.binom.cdf(needed - 1, half, 0.5 * ratio))


def test_the_second_half_may_not_fill_the_trial() -> None:
    assert missing_estimate(0.0, 1.0) == pytest.approx(0.249, abs=5e-4)
    assert missing_estimate(0.0, 1.0, 10**6) == pytest.approx(0.25, abs=5e-4)
    assert missing_estimate(0.0, 0.9) > 0.9999
    assert missing_estimate(0.2, 0.1) > 0.9999
    assert missing_estimate(0.4, 0.1) < 1e-9
    assert [round(25_000 ** (1.0 - alpha)) for alpha in (0.2, 0.4)] == [3_299, 435]


@pytest.mark.parametrize(("multiple", "missing"), [(1, 0.985), (2, 0.518), (4, 0.004)])
def test_a_rare_feature_does_not_fill_the_shortest_trial(multiple: int, missing: float) -> None:
    horizon = 100_000
    needed = math.ceil(math.log(horizon))
    arrivals = stats.binom(horizon // 2, multiple * math.log(horizon) / horizon)
    assert arrivals.cdf(needed - 1) == pytest.approx(missing, abs=5e-4)
