"""Simulated bias: laws fitted to a log, conditional bias, the bound beside it, refusals and tables."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

from adaptinf import designs
from adaptinf.audit.rerun.fitted_environment import fitted_world, log_cells, tilted_pool
from adaptinf.audit.rerun.simulated_bias import conditional_bias, linear_world, simulate_bias
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.inference.arms.models import ArmMeans
from adaptinf.inference.corrections.arm_bias import bias_bound
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.simulation.environments import BernoulliArms, FiniteContext, LinearArms, NormalArms, UniformArms

GREEDY = designs.EpsilonGreedy(exploration=0.2)


@functools.cache
def gathered() -> AdaptiveLog:
    return GREEDY.run(BernoulliArms([0.4, 0.6]), 150, rng=3)


def made(action: list[int], reward: list[float], **options: object) -> AdaptiveLog:
    arrays = LogArrays(action=np.array(action), reward=np.array(reward), context=options.pop("context", {}))
    return AdaptiveLog.from_arrays(arrays, arms=("a", "b"), **options)


def test_the_figures_are_those_of_the_runs() -> None:
    """The bias is the mean error of the sample means of replicate, at the fitted means."""
    found = simulate_bias(gathered(), GREEDY, 500, rng=1)
    fitted = ArmMeans(gathered()).fit().params.to_numpy()
    sims = GREEDY.replicate(BernoulliArms(fitted), 150, 500, rng=1)
    errors = sims.means - fitted
    frame = found.to_frame()
    assert frame["term"].tolist() == ["0", "1", "1 - 0"]
    assert frame["kind"].tolist() == ["arm-mean", "arm-mean", "contrast"]
    assert frame["mean"][:2].tolist() == pytest.approx(fitted.tolist(), rel=1e-12)
    assert frame["bias"][:2].tolist() == pytest.approx(errors.mean(axis=0).tolist(), abs=1e-12)
    difference = errors[:, 1] - errors[:, 0]
    assert frame["bias"][2] == pytest.approx(difference.mean(), abs=1e-12)
    assert frame["bias_se"][2] == pytest.approx(difference.std(ddof=1) / math.sqrt(500), rel=1e-10)
    naive = ArmMeans(gathered()).fit("sample-mean").params.to_numpy()
    assert frame["naive"][:2].tolist() == pytest.approx(naive.tolist())
    assert frame["corrected"].tolist() == pytest.approx((frame["naive"] - frame["bias"]).tolist())
    assert found.source == "aipw, joint weights"
    assert frame["bound"].isna().all()


def test_same_numbers_for_any_number_of_processes() -> None:
    one, two = (simulate_bias(gathered(), GREEDY, 300, rng=5, n_jobs=jobs).frame for jobs in (1, 2))
    assert one.equals(two)


def test_the_log_names_the_design() -> None:
    assert simulate_bias(gathered(), None, 100, rng=2).frame.equals(
        simulate_bias(gathered(), GREEDY, 100, rng=2).frame
    )


@pytest.mark.parametrize(
    ("design", "said"),
    [
        (
            designs.Uniform(),
            "The log was collected by EpsilonGreedy, not by Uniform. Simulated under Uniform()",
        ),
        (
            designs.EpsilonGreedy(exploration=0.9),
            "exploration=0.2 in the log, 0.9 here). Simulated under Eps",
        ),
    ],
)
def test_a_design_that_the_log_does_not_name_is_noted(design: designs.Design, said: str) -> None:
    notes = simulate_bias(gathered(), design, 20, rng=1).notes
    assert said in notes[0]
    assert notes[0].endswith("as given.")
    assert notes[0] in " ".join(str(simulate_bias(gathered(), design, 20, rng=1)).split())
    assert not any("as given" in note for note in simulate_bias(gathered(), GREEDY, 20, rng=1).notes)


def test_propensities_that_are_not_the_designs_are_noted() -> None:
    unnamed = AdaptiveLog.from_arrays(gathered().arrays, arms=gathered().arms)
    other = simulate_bias(unnamed, designs.EpsilonGreedy(exploration=0.9), 20, rng=1)
    assert other.notes[0].startswith(
        "The logged propensities differ from those of EpsilonGreedy(exploration=0.9"
    )
    assert "Simulated under" in other.notes[0]
    assert not any("as given" in note for note in simulate_bias(unnamed, GREEDY, 20, rng=1).notes)
    linear = LinearArms([[0.6, 0.2], [0.1, 0.7]], contexts="orthant", rewards="bernoulli")
    log = designs.LinUCB(noise_scale=0.5).run(linear, 60, rng=0)
    wider = simulate_bias(log, designs.LinUCB(noise_scale=2.0), 5, rng=1)
    assert "noise_scale=0.5 in the log, 2.0 here" in wider.notes[0]


def test_bound_of_a_private_design() -> None:
    design = designs.PrivateUCB(epsilon=0.3)
    log = design.run(BernoulliArms([0.4, 0.6, 0.5]), 300, rng=3)
    found = simulate_bias(log, design, 200, rng=1, control=2)
    frame = found.frame
    assert frame["term"].tolist() == ["0", "1", "2", "0 - 2", "1 - 2"]
    expected = bias_bound(PrivacyGuarantee(0.3), 300, frame["mean"][:3])
    assert frame["bound"][:3].tolist() == pytest.approx(expected.tolist())
    assert frame["bound"][3] == pytest.approx(expected[0] + expected[2])
    assert (frame["bias"].abs() < frame["bound"]).all()
    assert found.guarantee == PrivacyGuarantee(0.3)
    assert frame["pulled"].tolist() == [1.0] * 5


def test_the_bound_is_in_the_units_of_the_rewards() -> None:
    design = designs.PrivateUCB(epsilon=0.3)
    log = made([0, 1, 0, 1] * 5, [0.2, 0.5, 0.3, 0.8] * 5, reward_range=(0.0, 1.0))
    found = simulate_bias(log, design, 64, rng=1)
    assert found.law == "resampled"
    expected = bias_bound(PrivacyGuarantee(0.3), 20, found.frame["mean"][:2])
    assert found.frame["bound"][:2].tolist() == pytest.approx(expected.tolist())


def test_a_vacuous_bound_is_named() -> None:
    design = designs.PrivateUCB(epsilon=3.0)
    log = design.run(BernoulliArms([0.4, 0.6]), 200, rng=3)
    found = simulate_bias(log, design, 64, rng=1)
    assert (found.frame["bound"] > found.frame["trivial_bound"]).all()
    assert any("is uninformative" in note for note in found.notes)


def test_no_bound_where_an_arm_may_stay_unpulled() -> None:
    """A uniform design of three rounds leaves an arm out with probability 1/8, and has guarantee 0."""
    log = made([0, 1, 0], [1.0, 0.0, 0.0])
    found = simulate_bias(log, designs.Uniform(), 4000, rng=1, means=[0.5, 0.25])
    assert found.frame["bound"].isna().all()
    assert found.frame["pulled"][0] == pytest.approx(0.875, abs=0.03)
    assert found.frame["pulled"][2] == pytest.approx(0.75, abs=0.04)
    assert (found.frame["bias"].abs() < 5 * found.frame["bias_se"]).all()
    assert any("the theorem applies to all runs" in note for note in found.notes)


def test_an_arm_that_is_never_pulled_has_no_bias() -> None:
    log = made([0], [1.0])
    found = simulate_bias(log, designs.EpsilonGreedy(exploration=0.0), 10, rng=0, means=[0.5, 0.5]).frame
    assert found["pulled"].tolist() == [1.0, 0.0, 0.0]
    assert math.isnan(found["bias"][1])
    assert math.isnan(found["corrected"][1])


def test_conditional_bias_by_hand() -> None:
    means = np.array([[0.2, np.nan, np.nan], [0.6, 0.5, np.nan]])
    bias, error, share = conditional_bias(means, np.array([0.5, 0.25, 0.1]))
    assert bias[:2].tolist() == pytest.approx([-0.1, 0.25])
    assert error[0] == pytest.approx(0.2)
    assert np.isnan([bias[2], error[1], error[2]]).all()
    assert share.tolist() == [1.0, 0.5, 0.0]


@pytest.mark.parametrize(("env", "law"), [(UniformArms([0, 0], [0.8, 1]), "resampled"),
                                          (NormalArms([0.0, 0.3], 0.5), "normal"),
                                          (BernoulliArms([0.3, 0.4]), "bernoulli")])  # fmt: skip
def test_laws_are_fitted(env: object, law: str) -> None:
    """Means are AIPW's (to the fineness of the quantiles), and standard deviations the arms'."""
    log = GREEDY.run(env, 2000, rng=5)
    world = fitted_world(log, False)
    assert world.law == law
    fitted = ArmMeans(log).fit().params.to_numpy()
    assert world.env.means[0].tolist() == pytest.approx(fitted.tolist(), abs=1e-3)
    draws = designs.Uniform().run(world.env, 20_000, rng=1)
    for arm in (0, 1):
        seen = log.arrays.reward[log.arrays.action == arm]
        drawn = draws.arrays.reward[draws.arrays.action == arm]
        assert drawn.mean() == pytest.approx(world.env.means[0, arm], abs=5 * drawn.std() / 95)
        assert drawn.std() == pytest.approx(seen.std(), rel=0.08)
        if law != "normal":
            assert set(drawn.tolist()) <= set(seen.tolist())


@pytest.mark.parametrize("mean", [0.05, 0.31, 0.5, 0.9, 0.99])
def test_tilted_pools(mean: float) -> None:
    rewards = np.array([0.0, 0.1, 0.4, 0.45, 1.0])
    pool = tilted_pool(rewards, mean)
    assert pool.mean() == pytest.approx(mean, abs=3e-4)
    assert set(pool.tolist()) <= set(rewards.tolist())


def test_tilting_solves_the_exponential_family() -> None:
    """Two values: the tilt is a choice of probability; three: log weights are linear in the reward."""
    assert tilted_pool(np.array([2.0, 6.0]), 3.0, size=1000).mean() == pytest.approx(3.0)
    pool = tilted_pool(np.array([0.0, 1.0, 2.0]), 1.4, size=100_000)
    share = np.bincount(pool.astype(int)) / pool.size
    assert math.log(share[2] / share[1]) == pytest.approx(math.log(share[1] / share[0]), abs=1e-3)


def test_pools_at_the_ends() -> None:
    values = np.array([0.2, 0.8, 0.5])
    assert tilted_pool(values, 0.5).tolist() == [0.2, 0.5, 0.8]
    assert tilted_pool(values, 1.5).tolist() == [0.8]
    assert tilted_pool(values, -1.0).tolist() == [0.2]
    assert tilted_pool(np.array([0.4, 0.4]), 0.9).tolist() == [0.4, 0.4]


def test_contexts_have_means_of_their_own() -> None:
    env = FiniteContext([0.7, 0.3], [[0.4, 0.7], [0.6, 0.3]])
    design = designs.DPConSE(epsilon=1.0)
    log = design.run(env, 3000, rng=3)
    found = simulate_bias(log, design, 200, rng=1)
    assert found.frame["term"].tolist()[:3] == ["feature=0: 0", "feature=0: 1", "feature=0: 1 - 0"]
    assert found.source == "means of the randomised rounds"
    arrays = log.arrays
    kept = arrays.randomised & (arrays.context["feature"] == 1) & (arrays.action == 0)
    assert found.frame["mean"][3] == pytest.approx(arrays.reward[kept].mean())
    epsilon = design.reward_guarantee(3000, 2)
    expected = bias_bound(epsilon, 3000, found.frame["mean"][[0, 1]])
    assert found.frame["bound"][:2].tolist() == pytest.approx(expected.tolist())
    assert (found.frame["bias"].abs() < found.frame["bound"]).all()


def test_cells_of_several_columns() -> None:
    context = {"site": np.array(["x", "y", "x", "x"]), "age": np.array([1, 1, 2, 1])}
    log = made([0, 1, 0, 1], [1.0, 0.0, 1.0, 1.0], context=context)
    cells = log_cells(log, True)
    assert cells.labels == (("x", 1), ("x", 2), ("y", 1))
    assert cells.codes.tolist() == [0, 2, 1, 0]
    assert cells.name == "site_age"
    assert log_cells(log, False).labels == ()


def test_designs_that_ignore_contexts_are_simulated_without() -> None:
    context = {"site": np.array([0, 1] * 10)}
    log = made([0, 1] * 10, [1.0, 0.0] * 9 + [0.0, 1.0], context=context)
    assert simulate_bias(log, designs.UCB(), 20, rng=0).frame["term"].tolist() == ["a", "b", "b - a"]


def test_missing_rewards_are_named() -> None:
    with pytest.raises(ParameterError, match="arm 'b' has no reward to fit a mean to: pass means="):
        simulate_bias(made([0, 0], [1.0, 0.0]), GREEDY, 10)
    context = {"feature": np.array([0, 0, 1])}
    log = made([0, 1, 1], [1.0, 0.0, 1.0], context=context)
    with pytest.raises(ParameterError, match="arm 'a' in context feature=1 has no reward"):
        simulate_bias(log, designs.ConSE(), 10)


def test_wrong_uses_are_listed_at_once() -> None:
    with pytest.raises(ParameterError) as caught:
        simulate_bias(made([0, 1], [1.0, 0.0]), None, 1, control="c")
    text = str(caught.value)
    assert "does not name its design" in text
    assert "replications" in text
    assert "there is no arm 'c'" in text
    with pytest.raises(ParameterError, match="must be an AdaptiveLog"):
        simulate_bias([1, 0], GREEDY)
    with pytest.raises(ParameterError, match=r"means must be finite numbers of shape \(2,\)"):
        simulate_bias(gathered(), GREEDY, 10, means=[0.1, 0.2, 0.3])


ORTHANT = LinearArms([[0.6, 0.2], [0.1, 0.7]], contexts="orthant", rewards="bernoulli")


def test_linear_designs_by_hand() -> None:
    """The figures are those of logs on the same contexts, fitted one by one."""
    rng = np.random.default_rng(0)
    contexts = rng.uniform(0.1, 0.6, size=(80, 2, 2))
    env = LinearArms([[0.6, 0.2], [0.1, 0.7]], contexts=contexts, rewards="bernoulli")
    design = designs.LinUCB()
    log = design.run(env, 80, rng=1)
    found = simulate_bias(log, design, 70, rng=4, means=env.theta)
    average = contexts.mean(axis=0)
    errors = []
    for run in design.logs(env, 80, 70, rng=4):
        row = []
        for arm in (0, 1):
            here = run.arrays.action == arm
            X = contexts[here, arm]
            row.append(
                average[arm] @ (np.linalg.inv(X.T @ X) @ X.T @ run.arrays.reward[here] - env.theta[arm])
            )
        errors.append(row)
    table = np.array(errors)
    assert found.law == "bernoulli"
    assert found.frame["term"].tolist() == ["0", "1", "1 - 0"]
    assert found.frame["bias"][:2].tolist() == pytest.approx(table.mean(axis=0).tolist(), abs=1e-9)
    spread = (table[:, 1] - table[:, 0]).std(ddof=1) / math.sqrt(70)
    assert found.frame["bias_se"][2] == pytest.approx(spread, rel=1e-8)
    assert found.frame["mean"][0] == pytest.approx(average[0] @ env.theta[0])
    assert found.frame["bound"].isna().all()


def test_linear_designs_at_fitted_coefficients() -> None:
    log = designs.LinUCB().run(ORTHANT, 300, rng=0)
    found = simulate_bias(log, replications=300, rng=1)
    assert found.source.startswith("least squares")
    assert found.frame["naive"].tolist() == pytest.approx(found.frame["mean"].tolist())
    two = simulate_bias(log, replications=300, rng=1, n_jobs=2)
    assert two.frame.equals(found.frame)
    shared = LinearArms(
        [[0.6, 0.2], [0.1, 0.7]], contexts="orthant", rewards="normal", noise=0.2, shared=True
    )
    log = designs.LinUCB().run(shared, 200, rng=0)
    found = simulate_bias(log, replications=20, rng=1)
    assert found.law == "normal"
    assert fitted_scale(log) == pytest.approx(0.2, abs=0.03)


def fitted_scale(log: AdaptiveLog) -> float:
    return linear_world(log).env.noise_scale


def test_linear_refusals() -> None:
    log = designs.LinUCB().run(ORTHANT, 3, rng=0)
    with pytest.raises(ParameterError, match="do not determine its 2 coefficients: pass means="):
        simulate_bias(log, replications=10)
    with pytest.raises(ParameterError, match=r"means must be coefficients: finite numbers of shape \(2, 2\)"):
        simulate_bias(log, replications=10, means=[0.1, 0.2])
    with pytest.raises(
        ParameterError, match="the context vectors must be numeric context columns of the log, got none"
    ):
        simulate_bias(gathered(), designs.LinUCB(), 10)
    with pytest.raises(InvalidForLog, match="does not assume linear means"):
        simulate_bias(gathered(), designs.ABSE(), 10)


def test_a_certain_arm_and_a_moved_mean_are_noted() -> None:
    found = simulate_bias(made([0, 1, 1, 0], [1.0, 0.0, 1.0, 1.0]), GREEDY, 10, rng=0)
    assert any(note.startswith("Arm 'a': its reward is constant") for note in found.notes)
    record = designs.EpsilonGreedy(exploration=0.2).record()
    arrays = LogArrays(
        action=np.array([0, 1, 1]),
        reward=np.array([1.0, 0.0, 1.0]),
        propensity=np.array([0.1, 0.9, 0.1]),
        propensities=np.array([[0.1, 0.9], [0.1, 0.9], [0.9, 0.1]]),
    )
    log = AdaptiveLog.from_arrays(arrays, arms=("a", "b"), design=record)
    found = simulate_bias(log, replications=10, rng=0)
    assert any("mean was moved into [0, 1]" in note for note in found.notes)
    assert found.frame["estimate"].max() > 1.0
    assert found.frame["mean"][:2].max() == 1.0


def test_an_arm_with_one_reward_takes_the_spread_of_the_others() -> None:
    log = made([0, 0, 1], [0.1, 2.1, 3.0])
    world = fitted_world(log, False)
    assert world.env.tables(1).scale[0].tolist() == pytest.approx([math.sqrt(2.0)] * 2)
    assert any("standard deviation is taken from the other arms, 1.41" in note for note in world.notes)


def test_tables_in_every_form() -> None:
    found = simulate_bias(gathered(), GREEDY, 100, rng=0)
    text = str(found)
    assert "Simulated Bias of Sample Means" in text
    assert "100 runs of 150 rounds of EpsilonGreedy" in text
    summary = found.summary()
    assert "| 1 - 0 |" in summary.as_markdown()
    assert r"\caption{Simulated Bias" in summary.as_latex()
    assert found._repr_html_() == summary.as_html()
    changed = found.to_frame()
    changed.loc[0, "bias"] = 9.0
    assert found.frame.loc[0, "bias"] != 9.0
