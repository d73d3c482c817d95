from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from adaptinf.designs import (
    UCB,
    ConSE,
    Design,
    DPConSE,
    EpsilonGreedy,
    LinPriv,
    Mixture,
    PrivateUCB,
    Thompson,
    Uniform,
)
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.arms.models import ArmMeans
from adaptinf.log import AdaptiveLog, read_log
from adaptinf.simulation.environments import BernoulliArms, FiniteContext, LinearArms

ARMS = BernoulliArms([0.7, 0.5, 0.2])
CONTEXTS = FiniteContext([0.5, 0.5], [[0.4, 0.7], [0.6, 0.3]])


def propensities(log: AdaptiveLog) -> np.ndarray:
    values = log.arrays.propensities
    assert values is not None
    return values


@pytest.mark.parametrize("design", [UCB(), PrivateUCB(epsilon=1.0)])
def test_an_arm_without_a_propensity_of_its_own_gets_a_share_of_the_uniform_draw(design: Design) -> None:
    log = Mixture(design, exploration=0.5, decay=0.25).run(ARMS, horizon=400, rng=1)
    share = 0.5 * np.arange(1.0, 401.0) ** -0.25
    values = np.sort(propensities(log), axis=1)
    np.testing.assert_allclose(values[:, 0], share / 3, rtol=1e-14)
    np.testing.assert_allclose(values[:, 1], share / 3, rtol=1e-14)
    np.testing.assert_allclose(values[:, 2], 1.0 - 2.0 * share / 3, rtol=1e-14)
    chosen = propensities(log)[np.arange(400), log.arrays.action]
    np.testing.assert_array_equal(chosen, log.arrays.propensity)
    assert log.propensity_status == "exact"


def test_a_known_propensity_is_mixed_with_the_uniform_draw() -> None:
    log = Mixture(EpsilonGreedy(exploration=0.3), exploration=0.2).run(ARMS, horizon=300, rng=2)
    low, high = 0.8 * 0.1 + 0.2 / 3, 0.8 * 0.8 + 0.2 / 3
    np.testing.assert_allclose(np.sort(propensities(log), axis=1), np.tile([low, low, high], (300, 1)))


def test_rounds_are_overridden_as_often_as_stated() -> None:
    sims = Mixture(UCB(), exploration=0.3).replicate(ARMS, horizon=1_000, replications=64, rng=3)
    overridden = sims.tallies[:, 1, 0, :, 0]
    n = 64_000
    assert abs(overridden.sum() - 0.3 * n) < 4.0 * np.sqrt(n * 0.3 * 0.7)
    by_arm = overridden.sum(axis=0)
    assert np.abs(by_arm - 0.1 * n).max() < 4.2 * np.sqrt(n * 0.1 * 0.9)
    np.testing.assert_array_equal(sims.pulls.sum(axis=1), np.full(64, 1_000.0))


def test_everything_overridden_is_uniform_assignment_with_known_propensities() -> None:
    log = Mixture(PrivateUCB(epsilon=1.0), exploration=1.0).run(ARMS, horizon=600, rng=4)
    np.testing.assert_allclose(propensities(log), 1.0 / 3, rtol=1e-15)
    counts = np.bincount(log.arrays.action, minlength=3)
    assert np.abs(counts - 200).max() < 4.2 * np.sqrt(600 * 2 / 9)


def test_ucb_pulls_an_arm_whose_first_turn_was_overridden() -> None:
    design = Mixture(UCB(), exploration=0.5)
    for log in design.logs(BernoulliArms([1.0] + [0.0] * 9), horizon=60, replications=64, rng=5):
        proposals = propensities(log).argmax(axis=1)
        seen = np.zeros(10, dtype=bool)
        for proposal, arm in zip(proposals, log.arrays.action, strict=True):
            if not seen.all():
                assert proposal == int(np.argmin(seen))
            seen[arm] = True
        assert seen.all()


def test_the_index_learns_from_the_arm_that_was_pulled() -> None:
    log = Mixture(PrivateUCB(epsilon=1.0), exploration=0.4).run(ARMS, horizon=300, rng=6)
    assert isinstance(log.releases, pd.DataFrame)
    np.testing.assert_array_equal(log.releases["group"], log.arrays.action)
    assert len(log.releases) == 300


@pytest.mark.parametrize("calibration", ["corrected", "published"])
def test_dp_conse_keeps_its_calendar_and_leaves_overridden_rewards_out(calibration: str) -> None:
    inner = DPConSE(epsilon=5.0, alpha=0.2, calibration=calibration)
    log = Mixture(inner, exploration=0.2).run(CONTEXTS, horizon=20_000, rng=7)
    assert log.phases == ("learning", "estimation", "override")
    phase = np.array(log.phases)[log.arrays.phase]
    assert abs((phase == "override").mean() - 0.2) < 4.2 * np.sqrt(0.16 / 20_000)
    assert log.guarantee == inner.guarantee(20_000, 2)
    if calibration == "corrected":
        last = log.releases[(log.releases["round"] == 20_000) & (log.releases["name"] == "contrast_sum")]
        trial = (phase == "estimation") & log.arrays.randomised
        for feature in (0, 1):
            rows = trial & (log.arrays.context["feature"] == feature)
            exact = ((2 * log.arrays.action - 1) * (log.arrays.reward - 0.5))[rows].sum()
            released = last.loc[last["group"] == feature, "value"].item()
            assert abs(released - exact) < 20.0 / 3.0
    else:
        assert set(log.releases.loc[log.releases["name"] == "estimate", "group"]) == {0, 1}


def test_inverse_weighting_is_possible_where_it_was_not() -> None:
    design = UCB()
    with pytest.raises(InvalidForLog, match="aipw"):
        ArmMeans(design.run(ARMS, horizon=2_000, rng=8)).fit(estimator="aipw")
    result = ArmMeans(Mixture(design, exploration=0.2).run(ARMS, horizon=2_000, rng=8)).fit(estimator="aipw")
    interval = result.conf_int(alpha=1e-4)
    assert ((interval["low"] < [0.7, 0.5, 0.2]) & (interval["high"] > [0.7, 0.5, 0.2])).all()
    assert result.min_propensity == pytest.approx(0.2 / 3)


def test_sample_means_are_refused_where_the_wrapped_design_looks_at_contexts() -> None:
    log = Mixture(ConSE(), exploration=0.2).run(CONTEXTS, horizon=20_000, rng=9)
    with pytest.raises(InvalidForLog, match="Mixture over ConSE uses contexts to assign arms"):
        ArmMeans(log).fit(estimator="sample-mean")


def test_privacy_is_that_of_the_design() -> None:
    for inner in (PrivateUCB(epsilon=0.7), DPConSE(epsilon=1.0), UCB(), Uniform()):
        design = Mixture(inner)
        assert design.guarantee(1_000, 2) == inner.guarantee(1_000, 2)
        assert design.reward_guarantee(1_000, 2) == inner.reward_guarantee(1_000, 2)


def test_a_log_keeps_the_design_through_a_file(tmp_path: object) -> None:
    log = Mixture(Thompson(draws=10), exploration=0.2).run(ARMS, horizon=50, rng=10)
    log.to_parquet(f"{tmp_path}/log.parquet")
    back = read_log(f"{tmp_path}/log.parquet")
    assert back.design is not None
    assert back.design.name == "Mixture"
    assert back.design.parameters["design"] == "Thompson"
    assert back.design.parameters["parameters"]["draws"] == 10
    assert back.design.parameters["exploration"] == 0.2


def test_bad_parameters_are_listed_together() -> None:
    with pytest.raises(ParameterError) as caught:
        Mixture("ucb", exploration=0.0, decay=-1.0)  # type: ignore[arg-type]
    for part in ("design must be a design", "exploration must be above 0", "decay must be at least 0"):
        assert part in str(caught.value)
    with pytest.raises(ParameterError, match="not itself a Mixture"):
        Mixture(Mixture(UCB()))
    with pytest.raises(ParameterError, match="exactly 2 arms"):
        Mixture(ConSE()).run(ARMS, horizon=100)


@pytest.mark.parametrize("calibration", ["corrected", "published"])
def test_linpriv_releases_and_guarantee_are_its_own(calibration: str) -> None:
    environment = LinearArms(
        [[0.9, 0.1, 0.1, 0.1], [0.1, 0.9, 0.1, 0.1]], contexts="orthant", rewards="bernoulli"
    )
    inner = LinPriv(epsilon=1.0, calibration=calibration)
    log = Mixture(inner, exploration=0.3).run(environment, horizon=200, rng=11)
    assert log.guarantee is not None
    assert log.guarantee.epsilon == (1.0 if calibration == "corrected" else 2.0)
    assert sorted(set(log.releases["name"])) == [f"noisy_xy_{k}" for k in (1, 2, 3, 4)]
    np.testing.assert_array_equal(log.releases["group"].to_numpy()[::4], log.arrays.action)
    np.testing.assert_allclose(propensities(log).sum(axis=1), 1.0, rtol=1e-15)
