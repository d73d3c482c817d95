"""Thompson sampling against literal posteriors, floors and batches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from claims_said import says
from scipy import integrate, stats

from adaptinf.claims.data import availability
from adaptinf.designs import Thompson
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.log import AdaptiveLog
from adaptinf.simulation.environments import BernoulliArms, NormalArms, UniformArms
from adaptinf.simulation.replicate import block_stream


def lift(probabilities: np.ndarray, floor: float) -> np.ndarray:
    """Raise what is below the floor to it; what is above keeps its share of the excess."""
    k = probabilities.size
    excess = np.clip(probabilities - floor, 0.0, None)
    if excess.sum() == 0.0:
        return np.full(k, 1.0 / k)
    return floor + (1.0 - k * floor) * excess / excess.sum()


def floor_at(floor: Any, t: int, k: int) -> float:
    scale, decay = floor if isinstance(floor, tuple) else (floor or 0.0, 0.0)
    return min(scale * t**-decay, 1.0 / k)


def renewals(horizon: int, initial: int, batch_size: int) -> list[int]:
    """Rounds (from 0) at which the posterior is renewed."""
    return list(range(initial, horizon, batch_size))


def normal_probabilities(
    rewards: list[list[float]], mean: float, variance: float, noise: float | None
) -> np.ndarray:
    """P(arm is best) of two arms with normal posteriors; without a noise scale each arm's own is taken."""
    posterior = []
    for values in rewards:
        square = noise**2 if noise is not None else np.var(values) if len(values) > 1 else variance
        precision = 1 / variance + len(values) / square
        posterior.append(((mean / variance + sum(values) / square) / precision, 1 / precision))
    gap = (posterior[1][0] - posterior[0][0]) / math.sqrt(posterior[0][1] + posterior[1][1])
    return np.array([stats.norm.sf(gap), stats.norm.cdf(gap)])


@pytest.mark.parametrize("floor", [None, 0.1, (0.5, 0.7), (1 / 2, 0.0)])
@pytest.mark.parametrize(("initial_pulls", "batch_size"), [(0, 1), (5, 1), (0, 25), (3, 10)])
@pytest.mark.parametrize("noise", [1.5, None])
def test_two_normal_arms_in_closed_form(
    floor: Any, initial_pulls: int, batch_size: int, noise: float | None
) -> None:
    design = Thompson(
        prior="normal",
        prior_parameters=(0.2, 2.0),
        noise_scale=noise,
        floor=floor,
        initial_pulls=initial_pulls,
        batch_size=batch_size,
    )
    horizon, initial = 300, 2 * initial_pulls
    log = design.run(NormalArms([0.0, 0.3], scale=1.5), horizon=horizon, rng=7)
    rewards: list[list[float]] = [[], []]
    expected, current = np.zeros((horizon, 2)), np.array([0.5, 0.5])
    for t in range(horizon):
        if t in renewals(horizon, initial, batch_size):
            current = normal_probabilities(rewards, 0.2, 2.0, noise)
            current = lift(current, floor_at(floor, t + 1, 2)) if floor is not None else current
        expected[t] = current
        rewards[log.arrays.action[t]].append(log.arrays.reward[t])
    np.testing.assert_allclose(log.arrays.propensities, expected, rtol=1e-9, atol=1e-15)
    check_log(log)
    if batch_size > 1:
        batch = np.array(
            [0 if t < initial else (t - initial) // batch_size + bool(initial) for t in range(horizon)]
        )
        np.testing.assert_array_equal(log.arrays.batch, batch)
    else:
        assert log.arrays.batch is None


def check_log(log: AdaptiveLog) -> None:
    p = log.arrays.propensities
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    assert (p >= 0).all()
    np.testing.assert_array_equal(log.arrays.propensity, p[np.arange(log.n_rounds), log.arrays.action])
    assert (log.arrays.propensity > 0).all()
    assert log.propensity_status == "exact"
    assert log.guarantee is None


def beta_best(successes: np.ndarray, failures: np.ndarray) -> np.ndarray:
    """P(arm is best) of independent Beta posteriors, by integration."""
    x = np.linspace(0.0, 1.0, 4_001)
    cdf = np.array([stats.beta.cdf(x, a, b) for a, b in zip(successes, failures, strict=True)])
    best = []
    for arm in range(len(successes)):
        others = np.prod(np.delete(cdf, arm, axis=0), axis=0)
        mass = np.diff(cdf[arm])
        best.append(np.sum(mass * (others[1:] + others[:-1]) / 2))
    return np.array(best)


def test_the_integral_is_right() -> None:
    exact, _ = integrate.quad(lambda x: stats.beta.pdf(x, 3, 2) * stats.beta.cdf(x, 2, 4), 0, 1)
    assert beta_best(np.array([3.0, 2.0]), np.array([2.0, 4.0]))[0] == pytest.approx(exact, abs=1e-6)
    assert beta_best(np.ones(3), np.ones(3)) == pytest.approx(np.full(3, 1 / 3), abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("rewards", ["bernoulli", "uniform", "clipped"])
def test_frequencies_of_beta_posteriors(rewards: str) -> None:
    """Frequencies among the draws: whole numbers, and around the posterior probabilities of the past."""
    environment = {
        "bernoulli": BernoulliArms([0.4, 0.5, 0.6]),
        "uniform": UniformArms(low=[0.0, 0.1, 0.2], high=[0.8, 0.9, 1.0]),
        "clipped": NormalArms([0.4, 0.5, 0.6], scale=1.0),
    }[rewards]
    design = Thompson(prior_parameters=(2.0, 1.0), draws=40)
    deviations, variances = np.zeros(3), np.zeros(3)
    for log in design.logs(environment, horizon=60, replications=4, rng=3):
        p = log.arrays.propensities
        np.testing.assert_allclose(p * 40, np.round(p * 40), atol=1e-9)
        check_log(log)
        clipped = np.clip(log.arrays.reward, 0.0, 1.0)
        for t in range(60):
            chosen = [log.arrays.action[:t] == arm for arm in range(3)]
            successes = np.array([clipped[:t][rows].sum() for rows in chosen])
            pulls = np.array([rows.sum() for rows in chosen])
            exact = beta_best(2.0 + successes, 1.0 + pulls - successes)
            deviations += p[t] - exact
            variances += exact * (1 - exact) / 40
    assert (np.abs(deviations) < 4.5 * np.sqrt(variances)).all()


def test_no_propensity_exceeds_one() -> None:
    """A log's own frame is a log again: frequencies of all draws are 1, not the sum of their shares."""
    for log in Thompson(draws=100).logs(BernoulliArms([0.2, 0.5, 0.8]), 200, replications=10, rng=0):
        assert log.arrays.propensities.max() == 1.0
        again = AdaptiveLog(log.frame, action="action", reward="reward")
        np.testing.assert_array_equal(again.arrays.propensities, log.arrays.propensities)


def test_frequencies_of_three_normal_posteriors() -> None:
    design = Thompson(prior="normal", noise_scale=0.7, draws=50)
    deviations, variances = np.zeros(3), np.zeros(3)
    x = np.linspace(-12.0, 12.0, 8_001)
    for log in design.logs(NormalArms([0.0, 0.1, 0.2], scale=0.7), horizon=40, replications=4, rng=5):
        for t in range(40):
            cdf = []
            for arm in range(3):
                values = log.arrays.reward[:t][log.arrays.action[:t] == arm]
                precision = 1.0 + values.size / 0.49
                cdf.append(stats.norm.cdf(x, values.sum() / 0.49 / precision, precision**-0.5))
            exact = np.array(
                [
                    np.sum(
                        np.diff(cdf[a])
                        * np.prod([(c[1:] + c[:-1]) / 2 for b, c in enumerate(cdf) if b != a], axis=0)
                    )
                    for a in range(3)
                ]
            )
            deviations += log.arrays.propensities[t] - exact
            variances += exact * (1 - exact) / 50
    assert (np.abs(deviations) < 4.5 * np.sqrt(variances)).all()


def test_three_normal_arms_number_for_number() -> None:
    """The same stream read literally: for each draw one normal an arm, then the choice, then the reward."""
    noise, draws, horizon = 0.7, 25, 80
    design = Thompson(
        prior="normal", prior_parameters=(0.2, 2.0), noise_scale=noise, draws=draws, batch_size=3
    )
    locations = np.array([0.0, 0.1, 0.2])
    log = design.run(NormalArms(locations, scale=1.3), horizon=horizon, rng=11)
    stream = block_stream(np.random.SeedSequence(11), 0)
    counts, sums = np.zeros(3), np.zeros(3)
    p = np.zeros(3)
    for t in range(horizon):
        if t % 3 == 0:
            precision = 1.0 / 2.0 + counts / noise**2
            mean = (0.2 / 2.0 + sums / noise**2) / precision
            p = np.zeros(3)
            for _ in range(draws):
                p[np.argmax(mean + np.sqrt(1.0 / precision) * stream.standard_normal(3))] += 1.0
            p /= draws
        np.testing.assert_array_equal(log.arrays.propensities[t], p)
        arm = int(np.argmax(np.cumsum(p) > stream.random()))
        reward = locations[arm] + 1.3 * stream.standard_normal()
        assert (log.arrays.action[t], log.arrays.reward[t]) == (arm, reward)
        counts[arm] += 1.0
        sums[arm] += reward


@pytest.mark.parametrize("floor", [0.2, (0.3, 0.5)])
def test_the_floor_is_respected_and_lifts_frequencies(floor: Any) -> None:
    design = Thompson(draws=30, floor=floor, batch_size=7)
    log = design.run(BernoulliArms([0.1, 0.9, 0.5]), horizon=400, rng=1)
    check_log(log)
    for t in range(0, 400, 7):
        batch = log.arrays.propensities[t : t + 7]
        low = floor_at(floor, t + 1, 3)
        assert (batch == batch[0]).all()
        assert batch[0].min() >= low - 1e-15
        # undo the lift: what is above the floor is in proportion to (count / 30 - floor)
        shares = (batch[0] - low) / (1.0 - 3 * low)
        candidates = np.array([[a, b, 30 - a - b] for a in range(31) for b in range(31 - a)]) / 30
        lifted = np.array([lift(row, low) for row in candidates])
        assert np.abs(lifted - batch[0]).max(axis=1).min() < 1e-12
        assert shares.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("design", "environment"),
    [
        (Thompson(draws=20), BernoulliArms([0.45, 0.5, 0.55])),
        (
            Thompson(draws=20, floor=(1 / 3, 0.7), batch_size=10, initial_pulls=2),
            BernoulliArms([0.2, 0.5, 0.55]),
        ),
        (Thompson(prior="normal", batch_size=4), NormalArms([0.0, 0.1])),
    ],
)
def test_arms_are_drawn_with_the_logged_propensities(design: Thompson, environment: Any) -> None:
    """Over many runs, in cells of the propensity: pulls against the sum of propensities."""
    propensity, pulled = [], []
    for log in design.logs(environment, horizon=150, replications=150, rng=2):
        propensity.append(log.arrays.propensities)
        pulled.append(np.eye(environment.n_arms)[log.arrays.action])
    p, a = np.concatenate(propensity), np.concatenate(pulled)
    assert not a[p == 0.0].any()
    assert a[p == 1.0].all()
    z = []
    for arm in range(environment.n_arms):
        cells = np.digitize(p[:, arm], [0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98])
        for cell in range(8):
            rows = cells == cell
            variance = (p[rows, arm] * (1 - p[rows, arm])).sum()
            if variance > 10.0:
                z.append((a[rows, arm] - p[rows, arm]).sum() / math.sqrt(variance))
    assert len(z) >= 6
    assert stats.chi2.sf(np.sum(np.square(z)), len(z)) > 1e-4
    assert np.abs(z).max() < 4.8


def test_initial_rounds_are_uniform() -> None:
    log = Thompson(initial_pulls=4).run(BernoulliArms([0.1, 0.9, 0.5]), horizon=20, rng=0)
    np.testing.assert_allclose(log.arrays.propensities[:12], 1 / 3)
    assert not np.allclose(log.arrays.propensities[12:], 1 / 3)


def test_initial_rounds_may_be_dealt_in_turn() -> None:
    design = Thompson(initial_pulls=4, initial="dealt", floor=0.2, batch_size=5)
    log = design.run(BernoulliArms([0.1, 0.9, 0.5]), horizon=20, rng=0)
    np.testing.assert_array_equal(log.arrays.action[:12], np.arange(12) % 3)
    np.testing.assert_array_equal(log.arrays.propensities[:12], np.eye(3)[np.arange(12) % 3])
    assert (log.arrays.propensities[12:] >= 0.2 - 1e-12).all()
    np.testing.assert_array_equal(log.arrays.batch, [0] * 12 + [1] * 5 + [2] * 3)
    assert (design.traits.dealt, Thompson(initial_pulls=4).traits.dealt) == (4, 0)
    one = Thompson(initial_pulls=3, initial="dealt").replicate(BernoulliArms([0.1, 0.9]), 6, 70, rng=0)
    np.testing.assert_array_equal(one.pulls, 3.0)


def test_inverse_weighting_leaves_dealt_rounds_to_their_arms() -> None:
    """Scores by hand: an arm's own dealt rounds count with propensity 1, those of the others not at all."""
    design = Thompson(initial_pulls=5, initial="dealt", floor=0.2)
    log = design.run(BernoulliArms([0.3, 0.5]), horizon=400, rng=3)
    reward, action, p = log.arrays.reward, log.arrays.action, log.arrays.propensities
    found = ArmMeans(log).fit("ipw", "uniform")
    for arm in range(2):
        used = p[:, arm] > 0.0
        assert used.sum() == 395
        scores = (action == arm)[used] * reward[used] / p[used, arm]
        assert found.estimate[arm] == pytest.approx(scores.mean(), rel=1e-12)
    assert says(found.notes, availability.LEFT_OUT, rounds=400, left="5 for 0, 5 for 1")
    assert not says(found.cautions, availability.GONE)
    pair = Contrast(log, treatment=1, control=0).fit("aipw")
    assert says(pair.notes, availability.LEFT_OUT, rounds=400, left="10")
    assert not says(pair.cautions, availability.GONE)
    p[200, :] = [0.0, 1.0]
    action[200] = 1
    learnt = AdaptiveLog(
        log.frame.assign(propensity=p[np.arange(400), action]),
        action="action",
        reward="reward",
        about={"design": design},
    )
    with pytest.raises(InvalidForLog) as caught:
        ArmMeans(learnt).fit("ipw")
    assert says(caught.value.reason, availability.TAKEN_AWAY)


def test_a_floor_above_one_over_the_arms_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"floor must be at most 1/K = 0\.25 for 4 arms, got 0\.3"):
        Thompson(floor=0.3).run(BernoulliArms([0.1, 0.2, 0.3, 0.4]), horizon=10, rng=0)
