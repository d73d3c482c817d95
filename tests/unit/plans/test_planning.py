"""Sizes, power curves, calibration, and trials that fail."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims.logs import plans as claims
from adaptinf.errors import ParameterError
from adaptinf.plans.planning.sizes import at_horizon, fixed_law

COIN = ai.designs.Uniform()
BIASED = ai.designs.Thompson(prior="normal", floor=0.1)


def plan_of(design: Any = COIN, **others: Any) -> ai.Plan:
    options = {"arms": ("usual", "new"), "treatment": "new", "control": "usual", "looks": [50, 100, 200]}
    return ai.Plan(design, **{**options, **others})


def test_a_changed_plan_keeps_its_other_arguments() -> None:
    plan = plan_of(alpha=0.1, sides=1, futility=0.2)
    other = plan.changed(alpha=0.01)
    assert (other.alpha, other.sides, other.design) == (0.01, 1, COIN)
    np.testing.assert_array_equal(other.rule.futility, plan.rule.futility)
    with pytest.raises(ParameterError, match="alpha must be"):
        plan.changed(alpha=0.7)


def test_looks_keep_their_fractions() -> None:
    assert at_horizon(plan_of(), 400).looks.tolist() == [100, 200, 400]
    assert at_horizon(plan_of(), 3).looks.tolist() == [1, 2, 3]


@pytest.mark.parametrize("sides", [1, 2])
def test_one_look_is_the_textbook_formula(sides: int) -> None:
    """N = (z_alpha + z_power)^2 2 (p1 q1 + p0 q0) / difference^2; the other tail adds 1e-6 at most."""
    plan = plan_of(looks=[100], sides=sides, alpha=0.025 * sides)
    found = plan.sample_size(ai.environments.BernoulliArms([0.3, 0.45]), 0.9)
    variance = 0.3 * 0.7 + 0.45 * 0.55
    rounds = (1.959964 + 1.281552) ** 2 * 2 * variance / 0.15**2
    assert found.horizon == math.ceil(rounds)
    assert found.frame.loc[0, "size_mean"] == found.horizon
    assert found.replications == 0
    assert says(found.notes, claims.SIZE_BY_LAW)
    assert "by the joint normal distribution of the test statistics" in str(found)


def test_the_law_needs_constant_shares_and_means() -> None:
    normal = ai.environments.NormalArms([0.0, 0.5])
    assert fixed_law(plan_of(), normal) is not None
    assert fixed_law(plan_of(BIASED), normal) is None
    assert fixed_law(plan_of(ai.designs.PermutedBlocks()), normal) is None
    assert fixed_law(plan_of(law="rerandomization"), normal) is None
    assert fixed_law(plan_of(futility=0.1), normal) is None
    one_sided = fixed_law(plan_of(futility=0.1, sides=1), normal)
    assert one_sided is not None
    assert one_sided.power(200) < fixed_law(plan_of(sides=1), normal).power(200)  # type: ignore[union-attr]
    seasons = ai.environments.FiniteContext(
        probabilities=[[1.0, 0.0], [0.0, 1.0]], means=[[0.2, 0.4], [0.5, 0.7]], period=10
    )
    assert fixed_law(plan_of(), seasons) is None


def test_contexts_add_the_variance_between_them() -> None:
    mixed = ai.environments.FiniteContext(probabilities=[0.25, 0.75], means=[[0.2, 0.4], [0.6, 0.8]])
    law = fixed_law(plan_of(), mixed)
    assert law is not None
    p0, p1 = 0.25 * 0.2 + 0.75 * 0.6, 0.25 * 0.4 + 0.75 * 0.8
    assert law.unit == pytest.approx(0.2**2 / (2 * (p0 * (1 - p0) + p1 * (1 - p1))))


def test_inflation_divides_scores_and_multiplies_standard_errors() -> None:
    plan = plan_of()
    log = COIN.run(ai.environments.NormalArms([0.0, 0.3]), horizon=200, rng=2)
    usual, wide = plan.analyse(log), plan.changed(inflation=1.5).analyse(log)
    assert wide.bse.iloc[0] == pytest.approx(1.5 * usual.bse.iloc[0])
    one, other = plan.look(log[:100]), plan.changed(inflation=1.5).look(log[:100])
    assert other.bound == pytest.approx(one.bound)
    z = plan.process(log[:100]).z[-1]  # type: ignore[union-attr]
    assert plan.changed(inflation=1.5).process(log[:100]).z[-1] == pytest.approx(z / 1.5)  # type: ignore


def test_the_search_ends_near_the_law() -> None:
    """A coin by simulation: the horizon of the law within 3 errors."""
    plan, world = plan_of(looks=[60, 120]), ai.environments.NormalArms([0.0, 0.5])
    by_law = plan.sample_size(world, 0.8).horizon
    hidden = plan.changed(
        design=ai.designs.FunctionDesign(lambda s, c, r: [0.5, 0.5], lambda s, c, a, y: s, start=0)
    )
    found = hidden.sample_size(world, 0.8, replications=400, rng=3)
    assert found.replications == 400
    assert abs(found.horizon - by_law) <= 3 * found.horizon_error + 3
    assert says(found.notes, claims.SIZE_BY_SIMULATION)
    again = hidden.sample_size(world, 0.8, replications=400, rng=3)
    assert again.frame.equals(found.frame)


def test_a_size_that_is_not_reached() -> None:
    world = ai.environments.NormalArms([0.0, 0.05])
    found = plan_of().sample_size(world, longest=500)
    assert (found.horizon, found.horizon_error) == (None, 0.0)
    assert says(found.notes, claims.SIZE_NOT_REACHED, longest=500)
    found = plan_of(BIASED).sample_size(world, longest=300, replications=64, rng=0)
    assert found.horizon is None


def test_sizes_that_are_refused() -> None:
    equal = ai.environments.NormalArms([0.2, 0.2])
    with pytest.raises(ParameterError, match="the margin 0, which the plan is to detect, got 0"):
        plan_of().sample_size(equal)
    with pytest.raises(ParameterError, match=r"difference above the margin 0, which .*, got -0\.5"):
        plan_of(sides=1).sample_size(ai.environments.NormalArms([0.5, 0.0]))
    assert plan_of(sides=1, margin=-0.5).sample_size(equal).horizon > 0
    with pytest.raises(ParameterError) as caught:
        plan_of().sample_size({"a": equal, "b": equal}, power=1.0, longest=0)
    problems = " ".join(caught.value.problems)
    for part in ("power must be below 1", "longest must be", "a single environment"):
        assert part in problems


def test_a_power_curve_is_ordered_by_the_difference() -> None:
    worlds = {f"{gap}": ai.environments.NormalArms([0.0, gap]) for gap in (0.5, 0.0, 0.25)}
    curve = plan_of().power_curve(worlds, 256, rng=1)
    assert curve.frame["difference"].tolist() == [0.0, 0.25, 0.5]
    assert curve.frame.loc[0, "law"] == pytest.approx(0.05, abs=1e-9)
    for row in curve.frame.itertuples():
        assert abs(row.power - row.law) <= 4 * max(row.power_se, 0.014) + 0.01
    assert "law" not in str(plan_of(BIASED).power_curve(worlds["0.5"], 64, rng=1)).split("\n")[4]
    full = plan_of().operating_characteristics(worlds["0.25"], 256, rng=1).frame
    alone = plan_of().power_curve(worlds["0.25"], 256, rng=1).frame
    assert alone.loc[0, "power"] == full.loc[0, "rejected"]
    assert alone.loc[0, "size_mean"] == full.loc[0, "size_mean"]


def test_calibration_makes_the_error_rate_the_target() -> None:
    worlds = {name: ai.environments.NormalArms([at, at]) for name, at in (("low", 0.0), ("high", 3.0))}
    found = ai.calibrate(plan_of(BIASED), 0.05, worlds, replications=512, rng=1)
    assert found.frame["after"].max() == pytest.approx(0.05, abs=1 / 512)
    assert found.factor == found.frame["factor"].max()
    assert found.plan.inflation == found.factor
    assert says(found.notes, claims.CALIBRATED)
    assert f"times {found.factor:.4f}, plus or minus" in str(found)
    # The plan itself rejects in exactly these trials.
    assert found.frame["factor"].idxmax() == 0
    direct = found.plan.power_curve({"low": worlds["low"]}, 512, rng=1)
    assert direct.frame.loc[0, "power"] == found.frame.loc[0, "after"]


def test_calibration_of_a_coin_by_hand() -> None:
    """One look: the factor is a quantile of |z| over the critical value of Student's t."""
    from scipy import stats

    plan, world = plan_of(looks=[100], least=0.0), ai.environments.NormalArms([0.0, 0.0])
    found = ai.calibrate(plan, 0.1, world, replications=64, rng=5)
    seed = np.random.SeedSequence(np.random.SeedSequence(5).entropy, spawn_key=(0, 0))
    rng, sizes = np.random.default_rng(seed), []
    for _ in range(64):
        process = plan.process(COIN.run(world, horizon=100, rng=rng))
        assert process is not None
        sizes.append(abs(process.z[0]) / stats.t.isf(0.025, process.effective[0] - 1))
    assert found.factor == pytest.approx(np.mean(sorted(sizes)[::-1][5:7]), rel=1e-9)
    assert found.frame.loc[0, "before"] == np.mean(np.array(sizes) >= 1)


def test_calibrations_that_are_refused() -> None:
    equal, better = ai.environments.NormalArms([0.0, 0.0]), ai.environments.NormalArms([0.0, 0.5])
    with pytest.raises(ParameterError, match=r"must have a difference equal to the margin, 0, got 0\.5"):
        ai.calibrate(plan_of(), 0.05, {"equal": equal, "better": better}, replications=64)
    with pytest.raises(ParameterError, match=r"law=.z., because .*, got 'rerandomization'"):
        ai.calibrate(plan_of(law="rerandomization"), 0.05, equal, replications=64)
    with pytest.raises(ParameterError, match="environment"):
        ai.calibrate(plan_of(), 0.05)
    rare = ai.environments.BernoulliArms([0.01, 0.01])
    with pytest.raises(ParameterError, match=r"fewer than 5% of its trials reach a test"):
        ai.calibrate(plan_of(), 0.05, rare, replications=64, rng=0)


def broken(state: Any, context: Any, rng: np.random.Generator) -> list[float]:
    """A coin that fails once in 400 rounds."""
    if rng.random() < 1 / 400:
        raise ValueError("no coin")
    return [0.5, 0.5]


def test_errors_are_raised_or_counted() -> None:
    plan = plan_of(ai.designs.FunctionDesign(broken), looks=[30, 60])
    world = ai.environments.NormalArms([0.0, 0.0])
    with pytest.raises(ParameterError, match="no coin"):
        plan.operating_characteristics(world, 128, rng=1)
    found = plan.operating_characteristics(world, 128, rng=1, on_error="count")
    failed = found.frame.loc[0, "failed"]
    assert 5 <= failed <= 35
    assert says(found.notes, claims.FAILED, failed=failed, trials=128)
    assert "ValueError: no coin" in found.notes[0]
    assert found.looks["stopped"].sum() == pytest.approx(1.0)
    with pytest.raises(ParameterError, match="on_error"):
        plan.operating_characteristics(world, 2, on_error="ignore")
    always = ai.designs.FunctionDesign(lambda s, c, r: 1 / 0)
    with pytest.raises(ai.audit.AnalysisError, match="every simulated trial failed"):
        plan.changed(design=always).operating_characteristics(world, 8, rng=1, on_error="count")
