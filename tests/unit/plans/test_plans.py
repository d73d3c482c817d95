"""Plans: scores and decisions against a literal version, results, operating characteristics, refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says
from scipy import stats

import adaptinf as ai
from adaptinf.claims.logs import plans as claims
from adaptinf.claims.propensities import EVERY_ONE_NEEDED, NOT_FOLLOWED
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.group_sequential import Boundary
from adaptinf.inference.group_sequential.score_process import score_process, score_processes
from adaptinf.plans.decisions import normal_score

COIN = ai.designs.Uniform()
THOMPSON = ai.designs.Thompson(prior="normal", floor=0.2)


def plan_of(design: Any = COIN, **others: Any) -> ai.Plan:
    options = {"arms": ("usual", "new"), "treatment": "new", "control": "usual", "looks": [100, 200, 300]}
    return ai.Plan(design, **{**options, **others})


def trial_of(plan: ai.Plan, difference: float = 0.0, seed: int = 0, horizon: int | None = None) -> Any:
    arms = ai.environments.NormalArms([0.0, difference])
    return plan.design.run(arms, horizon=plan.horizon if horizon is None else horizon, rng=seed)


def literal(log: Any, treatment: int, control: int, until: int, null: float) -> tuple[float, ...]:
    """Score, slope and clock, round by round, from the formula, with the better prediction so far."""
    score = slope = clock = 0.0
    seen: dict[int, list[float]] = {treatment: [], control: []}
    away: dict[int, list[float]] = {treatment: [], control: []}
    order: list[float] = []
    squares = {"own": 0.0, "level": 0.0}
    arrays = log.arrays
    for t in range(until):
        e, arm, y = arrays.propensities[t], arrays.action[t], arrays.reward[t]
        recent = 0.98 ** np.arange(len(order))[::-1]
        level = recent @ order / recent.sum() if order else y
        if order and e[treatment] > 0 and e[control] > 0:
            h, steps = (1 / e[treatment] + 1 / e[control]) ** -0.5, {}
            for rule in squares:
                gamma = {}
                for one in (treatment, control):
                    own = np.mean(seen[one] + 10 * [np.mean(order)])
                    mean = own if rule == "own" else level + np.mean(away[one] + 10 * [0.0])
                    gamma[one] = mean + (arm == one) * (y - mean) / e[one]
                steps[rule] = h * (gamma[treatment] - gamma[control] - null)
            step = steps["level" if squares["level"] < squares["own"] else "own"]
            squares = {rule: squares[rule] + steps[rule] ** 2 for rule in squares}
            score, slope, clock = score + step, slope + h, clock + step**2
        if arm in seen:
            seen[arm].append(y)
            away[arm].append(y - level)
            order.append(y)
    return score, slope, clock


@pytest.mark.parametrize("null", [0.0, -0.3])
def test_scores_are_those_of_the_formula(null: float) -> None:
    rises = np.arange(120)[:, None] / 40 + np.random.default_rng(6).normal(size=(120, 3)) + [0.0, 0.2, 1.0]
    world = ai.environments.Tableau(rises, reward_range=(-9, 9))
    log = THOMPSON.run(world, horizon=120, rng=3)
    looks = np.array([1, 2, 40, 120])
    arrays = log.arrays
    found = score_process(arrays.action, arrays.reward, arrays.propensities, (2, 0), looks, null)
    for place, look in enumerate(looks):
        expected = literal(log, 2, 0, look, null)
        got = found.score[place], found.slope[place], found.clock[place]
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)
    assert np.all(found.events == np.inf)


def test_several_scores_are_those_of_each_with_products() -> None:
    log = THOMPSON.run(ai.environments.NormalArms([0.0, 0.2, 1.0]), horizon=120, rng=3)
    known, looks = (log.arrays.action, log.arrays.reward, log.arrays.propensities), np.array([40, 120])
    both = score_processes(*known, (2, 1), 0, looks)
    for place, arm in enumerate((2, 1)):
        np.testing.assert_array_equal(both.each[place], score_process(*known, (arm, 0), looks))
        np.testing.assert_array_equal(both.products[:, place, place], both.each[place].clock)
    ends = [
        [score_process(*known, (arm, 0), np.array([t])).score[0] for t in range(1, 121)] for arm in (2, 1)
    ]
    steps = np.diff(ends, axis=1, prepend=0.0)
    np.testing.assert_allclose(both.products[1, 0, 1], steps[0] @ steps[1], rtol=1e-9)
    assert both.products[1, 0, 1] == both.products[1, 1, 0] > 0.0


def test_predictions_follow_a_level_that_drifts() -> None:
    """Rarely drawn arm, level up by 3: the clock per round is that of a known level within a tenth."""
    rng, rounds = np.random.default_rng(2), 2_000
    level, chance = 3.0 * np.arange(rounds) / rounds, np.tile([0.95, 0.05], (rounds, 1))
    action = (rng.random(rounds) < 0.05).astype(int)
    reward = level + rng.normal(size=rounds)
    clock = score_process(action, reward, chance, (1, 0), np.array([rounds])).clock[0]
    known = score_process(action, reward - level, chance, (1, 0), np.array([rounds])).clock[0]
    assert 0.9 * known < clock < 1.1 * known


def test_effective_numbers_and_events() -> None:
    log = COIN.run(ai.environments.BernoulliArms([0.2, 0.7]), horizon=200, rng=5)
    found = score_process(
        log.arrays.action, log.arrays.reward, log.arrays.propensities, (1, 0), np.array([200])
    )
    arms = log.frame[1:].groupby("action")["reward"]
    assert found.effective[0] == pytest.approx(arms.size().min())
    counts = log.frame.groupby("action")["reward"].value_counts()
    assert found.events[0] == counts.min()


def test_decisions_follow_the_critical_values_of_the_clock_seen() -> None:
    """Two looks: the second critical value from the bivariate normal law with the correlation seen."""
    plan = plan_of(THOMPSON, looks=[150, 300])
    for seed in range(4):
        log = trial_of(plan, 0.1, seed)
        process = plan.process(log)
        first, second = (
            normal_score(float(z), float(n) - 1.0) for z, n in zip(process.z, process.effective, strict=True)
        )
        look = plan.look(log[:150])
        assert look.statistic == pytest.approx(first, abs=1e-12)
        assert look.bound == pytest.approx(stats.norm.isf(plan.rule.spent[0]), abs=1e-9)
        look = plan.look(log)
        assert (look.stage, look.rounds) == (2, 300)
        assert look.statistic == pytest.approx(second, abs=1e-12)
        root = math.sqrt(process.clock[0] / process.clock[1])
        joint = stats.multivariate_normal([0, 0], [[1, root], [root, 1]], abseps=1e-12, releps=1e-12)
        b1 = stats.norm.isf(plan.rule.spent[0])
        inside = [[b1, look.bound], [-b1, look.bound]]
        above = stats.norm.cdf(b1) - stats.norm.cdf(-b1) - (joint.cdf(inside[0]) - joint.cdf(inside[1]))
        assert above == pytest.approx(plan.rule.spent[1], abs=1e-7)


def test_statistics_are_compared_as_students_t() -> None:
    for z, df in ((2.5, 19.0), (-4.0, 30.0), (0.0, 25.0)):
        assert stats.norm.sf(normal_score(z, df)) == pytest.approx(stats.t.sf(z, df), rel=1e-10)


def test_a_rejection_is_a_small_p_value_and_an_interval_without_the_margin() -> None:
    decisions = set()
    for margin in (0.0, -0.2):
        plan = plan_of(THOMPSON, margin=margin)
        for seed in range(12):
            result = plan.analyse(trial_of(plan, 0.25, seed))
            low, high = result.conf_int().iloc[0]
            rejected = result.decision == "reject"
            assert (result.pvalues.iloc[0] <= 0.05) == rejected
            assert (not low <= margin <= high) == rejected
            assert low < result.params.iloc[0] < high
            decisions.add(result.decision)
    assert decisions == {"reject", "no rejection"}


def test_one_look_is_the_usual_analysis() -> None:
    plan = plan_of(looks=[300])
    log = trial_of(plan, 0.3)
    result, contrast = plan.analyse(log), ai.Contrast(log, treatment=1, control=0).fit()
    assert result.params.iloc[0] == pytest.approx(contrast.params.iloc[0], abs=0.01)
    np.testing.assert_allclose(result.conf_int(), contrast.conf_int(), atol=0.02)
    assert result.at_any_length


def test_rounds_after_the_stop_are_not_used() -> None:
    plan = plan_of(spending="pocock")
    log = trial_of(plan, 1.0)
    whole, cut = plan.analyse(log), plan.analyse(log[:100])
    assert whole.rounds == 100
    assert whole.decision == "reject"
    np.testing.assert_array_equal(whole.conf_int(), cut.conf_int())
    assert claims.OVERRUN(more=200) in whole.notes
    assert not says(cut.notes, claims.OVERRUN)


def test_futility_stops_and_spends_nothing() -> None:
    plan, usual = plan_of(futility=0.5), plan_of()
    assert plan.bounds.equals(usual.bounds)
    log = next(log for log in (trial_of(plan, 0.0, seed) for seed in range(9)) if plan.look(log).stage < 3)
    assert abs(plan.look(log).statistic) <= 0.5
    assert plan.look(log).decision == "futility"
    assert usual.look(log).decision == "no rejection"
    assert plan.analyse(log).decision == "futility"
    one_sided = plan_of(futility=[0.0, 1.0], sides=1)
    assert one_sided.rule.futility.tolist() == [0.0, 1.0, -np.inf]
    worse = trial_of(one_sided, -1.0)
    assert one_sided.look(worse).decision == "futility"
    assert one_sided.look(worse).stage == 1


def test_a_look_with_too_few_data_carries_its_alpha() -> None:
    plan = plan_of(looks=[20, 200], spending="lan-demets-pocock")
    log = trial_of(plan)
    assert plan.look(log[:20]).decision == "continue"
    assert math.isnan(plan.look(log[:20]).bound)
    assert plan.look(log).bound == pytest.approx(stats.norm.isf(0.025), abs=1e-9)
    rare = ai.environments.BernoulliArms([0.01, 0.01])
    never = plan.design.run(rare, horizon=200, rng=0)
    assert plan.look(never).decision == "too few data"
    with pytest.raises(InvalidForLog) as caught:
        plan.analyse(never)
    assert says(caught.value.reason, claims.UNTESTED)


def test_classical_designs_spend_what_their_critical_values_spend() -> None:
    for spending in ("obrien-fleming", "pocock"):
        bounds = plan_of(spending=spending, looks=[100, 200, 300, 400, 500]).bounds
        expected = ai.spending_bounds(np.arange(1, 6) / 5, spending=spending)
        np.testing.assert_allclose(bounds["bound"], expected, atol=1e-9)
        assert bounds["spent"].iloc[-1] == pytest.approx(0.05, abs=1e-10)


def test_arms_by_label_and_by_position() -> None:
    plan = plan_of()
    log = trial_of(plan, 0.3)
    frame = log.frame.assign(action=np.array(["usual", "new"])[log.frame["action"].astype(int)])
    frame[["p_usual", "p_new"]] = log.arrays.propensities
    named = ai.AdaptiveLog(
        frame[["action", "reward", "p_usual", "p_new"]],
        action="action",
        reward="reward",
        propensities="p_{arm}",
        arms=["new", "usual"],
    )
    np.testing.assert_array_equal(plan.analyse(named).conf_int(), plan.analyse(log).conf_int())
    with pytest.raises(ParameterError, match="the log has the arms"):
        plan_of(arms=("new", "usual", "other")).look(named)


def test_what_a_result_says() -> None:
    plan = plan_of()
    result = plan.analyse(trial_of(plan, 0.1, 1))
    assert says(result.notes, claims.STAGEWISE, looks=3, planned=3)
    assert says(result.notes, claims.CONSTANT_EFFECT)
    assert "stage-wise ordering after 3 of 3 looks" in str(result.summary())
    log = trial_of(plan, 0.1, 1)
    frame = pd.DataFrame({"action": log.arrays.action, "reward": log.arrays.reward, "p_0": 0.2, "p_1": 0.8})
    wrong = ai.AdaptiveLog(frame, action="action", reward="reward", propensities="p_{arm}")
    assert says(plan.analyse(wrong).cautions, NOT_FOLLOWED)


def test_refusals() -> None:
    with pytest.raises(ParameterError) as caught:
        ai.Plan(
            "coin",  # type: ignore[arg-type]
            arms=("a", "b"),
            treatment="a",
            control="a",
            looks=[10, 5],
            spending="fleming",
            sides=3,
            alpha=0.7,
            margin=math.nan,
            least=-1.0,
            futility="no",  # type: ignore[arg-type]
        )
    text = str(caught.value)
    for part in (
        "design must be",
        "two arms",
        "looks must",
        "spending must",
        "sides",
        "alpha",
        "margin",
        "least",
    ):
        assert part in text
    for looks in ([], [0, 10], [1.5, 3], "abc"):
        with pytest.raises(ParameterError, match="looks must be"):
            plan_of(looks=looks)
    with pytest.raises(ParameterError, match="last look must be at the horizon"):
        plan_of(horizon=500)
    with pytest.raises(
        ParameterError, match="futility must be one number, or one for each look except the last"
    ):
        plan_of(futility=[0.1])
    log = trial_of(plan_of(), horizon=150)
    with pytest.raises(InvalidForLog) as refused:
        plan_of().analyse(log)
    assert refused.value.reason == claims.GOES_ON(rounds=150, after=200)
    assert plan_of().look(log[:50]).stage == 0
    chosen = ai.AdaptiveLog(log.frame[["action", "reward"]], action="action", reward="reward")
    with pytest.raises(InvalidForLog) as refused:
        plan_of().look(chosen)
    assert refused.value.reason == EVERY_ONE_NEEDED()
    for design in (ai.designs.UCB(), ai.designs.PrivateUCB(epsilon=1.0)):
        with pytest.raises(InvalidForLog) as refused:
            plan_of(design).operating_characteristics(ai.environments.BernoulliArms([0.5, 0.5]), 2)
        assert says(refused.value.reason, claims.WITHOUT_PROPENSITIES, design=type(design).__name__)
    with pytest.raises(ParameterError, match="has 3 arms, but the plan has 2"):
        plan_of().operating_characteristics(ai.environments.NormalArms([0.0, 0.0, 0.0]), 2)


def test_characteristics_do_not_depend_on_workers() -> None:
    plan, arms = plan_of(), {"equal": ai.environments.NormalArms([0.0, 0.0])}
    one = plan.operating_characteristics(arms, 160, rng=4)
    two = plan.operating_characteristics(arms, 160, rng=4, n_jobs=2)
    pd.testing.assert_frame_equal(one.frame, two.frame)
    pd.testing.assert_frame_equal(one.looks, two.looks)
    assert one.to_frame() is one.frame
    assert "160 simulated trials" in str(one)
    assert one.looks["stopped"].sum() == pytest.approx(1.0)
    assert one.looks["rejected_so_far"].iloc[-1] == pytest.approx(one.frame.loc[0, "rejected"])


@pytest.mark.slow
def test_a_coin_has_the_power_and_size_of_theory() -> None:
    """Known law of fixed allocation at 1,000 trials a scenario, within 4 Monte Carlo errors and .01."""
    plan = plan_of(looks=[200, 400, 600])
    effects = {"none": 0.0, "some": 0.25}
    environments = {name: ai.environments.NormalArms([0.0, effect]) for name, effect in effects.items()}
    found = plan.operating_characteristics(environments, 1_024, rng=8)
    bound = plan.bounds["bound"].to_numpy()
    boundary = Boundary(plan.looks / 600, -bound, bound, 2)
    for row, effect in zip(found.frame.itertuples(), effects.values(), strict=True):
        drift = effect * math.sqrt(600 / 4)
        expected = boundary.rejection(drift)
        error = math.sqrt(expected * (1 - expected) / 1_024)
        assert row.rejected == pytest.approx(expected, abs=4 * error + 0.01)
        size = 600 * boundary.expected_information(drift)
        assert row.size_mean == pytest.approx(size, abs=4 * row.size_sd / 32 + 6)
        assert row.coverage == pytest.approx(0.95, abs=4 * math.sqrt(0.05 * 0.95 / 1_024) + 0.01)
        assert abs(row.median_bias) <= 4 * 0.5 / 32 + 0.01
