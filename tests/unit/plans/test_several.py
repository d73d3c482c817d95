"""Plans with several treatments: joint critical values, closed tests, intervals, arms that leave."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says
from scipy import stats

import adaptinf as ai
from adaptinf.claims.logs import plans as claims
from adaptinf.errors import ParameterError
from adaptinf.inference.group_sequential.crossing import crossing
from adaptinf.inference.group_sequential.joint_crossing import JointWalk, factor, limits
from adaptinf.plans.several import SeveralCourse, left
from adaptinf.plans.several_results import RepeatedReference
from adaptinf.plans.simulated_trials import run

THOMPSON = ai.designs.Thompson(prior="normal", floor=0.25)
EQUAL = np.array([[1.0, 0.5], [0.5, 1.0]])


def leaving(bounds: Any, products: list[Any], sides: int = 1) -> np.ndarray[Any, Any]:
    walk, found = JointWalk(len(products[0])), []
    for bound, product in zip(bounds, products, strict=True):
        low, high = limits(product, np.ones(len(product)), sides, bound)
        found.append(walk.leaving(product, low, high))
        walk.proceed(product, low, high)
    return np.array(found)


def normal(products: list[Any]) -> Any:
    """The joint law of all scores at two looks, standardised, with look 1 first."""
    first, second = products
    every = np.block([[first, first], [first, second]])
    root = np.sqrt(np.diag(every))
    return stats.multivariate_normal(
        np.zeros(len(every)), every / np.outer(root, root), abseps=1e-9, releps=1e-9, maxpts=4_000_000, seed=0
    )


def test_published_level_of_two_arms_against_a_control() -> None:
    bounds = 3.886562, 2.748214, 2.243907
    found = leaving(bounds, [EQUAL * look / 3 for look in (1, 2, 3)])
    assert found.sum() == pytest.approx(0.02502, abs=1e-4)


def test_probabilities_are_those_of_the_joint_normal_law() -> None:
    products = [
        np.array([[0.4, 0.1], [0.1, 0.5]]),
        np.array([[1.3, 0.55], [0.55, 0.9]]),
    ]
    found = leaving((2.1, 1.7), products)
    inside = stats.multivariate_normal([0, 0], [[1, 0.1 / 0.2**0.5], [0.1 / 0.2**0.5, 1]], seed=0).cdf(
        [2.1, 2.1]
    )
    assert found[0] == pytest.approx(1.0 - inside, abs=1e-7)
    assert found.sum() == pytest.approx(1.0 - normal(products).cdf([2.1, 2.1, 1.7, 1.7]), abs=1e-6)
    three = np.array([0.9, 0.5, 0.3])
    correlation = np.outer(three, three) + np.diag(1.0 - three**2)
    one = leaving((1.9,), [correlation], 2)
    box = stats.multivariate_normal(
        np.zeros(3), correlation, abseps=1e-9, releps=1e-9, maxpts=4_000_000, seed=0
    )
    assert one[0] == pytest.approx(1.0 - box.cdf([1.9] * 3, lower_limit=[-1.9] * 3), abs=1e-6)


@pytest.mark.parametrize("sides", [1, 2])
def test_independent_arms_and_single_arms(sides: int) -> None:
    bounds, sizes = np.array([2.5, 2.2, 2.0]), np.array([0.2, 0.7, 1.0])
    below, above = crossing(-bounds if sides == 2 else np.full(3, -np.inf), bounds, sizes)
    alone = above + (below if sides == 2 else 0.0)
    np.testing.assert_allclose(leaving(bounds, [np.eye(1) * size for size in sizes], sides), alone, atol=1e-7)
    both = np.diff(1.0 - (1.0 - np.cumsum(alone)) ** 2, prepend=0.0)
    np.testing.assert_allclose(leaving(bounds, [np.eye(2) * size for size in sizes], sides), both, atol=1e-7)


@pytest.mark.parametrize("sides", [1, 2])
def test_critical_values_spend_what_they_may(sides: int) -> None:
    """From levels too small for the rounding error of a probability to those without a positive value."""
    walk, spent = JointWalk(2), (1e-12, 1e-7, 1e-4, 0.02, 0.3)
    for look, may in enumerate(spent):
        products = EQUAL * (look + 1.0)
        bound = walk.critical_value(products, np.ones(2), sides, may)
        region = limits(products, np.ones(2), sides, bound)
        assert walk.leaving(products, *region) == pytest.approx(may, abs=1e-12)
        walk.proceed(products, *region)
    whole = JointWalk(2)
    above = whole.critical_value(EQUAL, np.ones(2), sides, 0.9)
    assert whole.leaving(EQUAL, *limits(EQUAL, np.ones(2), sides, above)) == pytest.approx(0.9, abs=1e-12)


def test_loadings_of_the_control() -> None:
    for loading in ([0.6, 0.6], [0.9, 0.5, 0.3], [0.7, 0.6, 0.5, 0.4]):
        known = np.array(loading)
        np.testing.assert_allclose(factor(np.outer(known, known) + np.diag(1.0 - known**2)), known, atol=1e-9)


def plan_of(**others: Any) -> ai.Plan:
    options = {
        "arms": ("c", "low", "high"),
        "treatment": ("low", "high"),
        "control": "c",
        "looks": [150, 300],
    }
    return ai.Plan(others.pop("design", THOMPSON), **{**options, **others})


def trial_of(plan: ai.Plan, means: list[float], seed: int = 0) -> Any:
    return plan.design.run(ai.environments.NormalArms(means), horizon=plan.horizon, rng=seed)


def test_one_label_in_a_list_is_that_label() -> None:
    one, listed = plan_of(treatment="low"), plan_of(treatment=["low"])
    log = trial_of(one, [0.0, 0.5, 0.0])
    assert one.look(log) == listed.look(log)
    assert one.treatment == listed.treatment == "low"


def test_closed_tests_against_a_literal_version() -> None:
    """One look: Dunnett's critical value for both treatments, then that of a single test."""
    plan, seen = plan_of(looks=[300], least=0.0), set()
    for seed in range(8):
        log = trial_of(plan, [0.0, 0.3, 0.5], seed)
        scores = plan.processes(log)
        size = np.array(
            [abs(plan_of(treatment=one, looks=[300]).look(log).statistic) for one in ("low", "high")]
        )
        root = np.sqrt(np.diag(scores.products[0]))
        law = stats.multivariate_normal([0, 0], scores.products[0] / np.outer(root, root), seed=0)
        adjusted = 1.0 - law.cdf([size.max()] * 2, lower_limit=[-size.max()] * 2)
        alone = 2.0 * stats.norm.sf(size)
        expected = tuple(
            one for one, p in zip(("low", "high"), alone, strict=True) if adjusted <= 0.05 and p <= 0.05
        )
        look = plan.look(log)
        assert look.rejected == expected
        assert look.statistic == pytest.approx(size.max(), abs=1e-9) or look.statistic < 0.0
        assert look.leading == ("low", "high")[size.argmax()]
        seen.add(len(expected))
    assert seen == {0, 1, 2}


def test_intervals_are_simultaneous_and_agree_with_p_values() -> None:
    plan = plan_of(treatment=("high", "low"))
    log = trial_of(plan, [0.0, 0.3, 0.7], 1)
    result = plan.analyse(log)
    assert result.decision == "reject"
    assert result.terms == ("high - c", "low - c")
    assert says(result.notes, claims.REPEATED, looks=result.rounds // 150, planned=2)
    assert says(result.notes, claims.CLOSED, rejected=", ".join(result.rejected))
    for place, p in enumerate(result.pvalues):
        low, high = result.conf_int(min(float(p), 0.4999)).iloc[place]
        edge = min(abs(low), abs(high))
        assert edge == pytest.approx(0.0, abs=1e-6) or p > 0.4999
    single = plan_of(treatment="high").analyse(log)
    wide, narrow = result.conf_int().iloc[0], single.conf_int().iloc[0]
    assert wide["high"] - wide["low"] > narrow["high"] - narrow["low"]


def test_an_arm_that_left_stays_in_the_critical_values() -> None:
    """Propensities of the first treatment end after round 150: the others' critical values do not drop."""
    rng = np.random.default_rng(4)
    chance = np.tile([0.3, 0.3, 0.4], (300, 1))
    chance[150:] = [0.4, 0.0, 0.6]
    action = np.array([rng.choice(3, p=row) for row in chance])
    columns = {f"p_{arm}": chance[:, arm] for arm in range(3)}
    frame = pd.DataFrame({"action": action, "reward": rng.normal(size=300), **columns})
    log = ai.AdaptiveLog(frame, action="action", reward="reward", propensities="p_{arm}")
    plan, alone = plan_of(), plan_of(treatment="high")
    look = plan.look(log)
    assert look.dropped == ("low",)
    assert look.leading == "high"
    assert look.bound > alone.look(log).bound + 0.1
    assert plan.look(log[:150]).dropped == ()
    np.testing.assert_array_equal(left(chance, (1, 2, 0), np.array([100, 200])) > 1, [True, True])
    np.testing.assert_array_equal(
        left(chance, (1, 2, 0), np.array([100, 200, 300])), [2, np.iinfo(np.int64).max]
    )
    tested = plan.follow_several(plan.processes(log), log, plan.looks).closed.scores.tested
    assert tested.tolist() == [[True, True], [False, True]]
    before, after = plan.processes(log).products
    growth = after[1, 1] / before[1, 1]
    grown = plan.follow_several(plan.processes(log), log, plan.looks).closed.scores.products
    np.testing.assert_allclose(grown, [before, [growth * before[0], [growth * before[0, 1], after[1, 1]]]])
    result = plan.analyse(log)
    first = plan.processes(log[:150]).each[0]
    assert result.params["low - c"] == pytest.approx(first.score[0] / first.slope[0], abs=1e-12)


def test_a_treatment_leaves_by_rule() -> None:
    plan = plan_of(drop=0.0, looks=[100, 200, 300])
    log = trial_of(plan, [0.0, -1.0, 0.1], 1)
    assert plan.look(log[:100]).dropped == ("low",)
    assert plan.look(log).dropped == ("low",)
    both = plan.look(trial_of(plan, [0.0, -1.0, -1.0]))
    assert (both.decision, both.stage, both.dropped) == ("futility", 1, ("low", "high"))


def test_ranks_of_the_largest_score() -> None:
    plan = plan_of(law="rerandomization", replays=99, looks=[60])
    result = plan.analyse(trial_of(plan, [0.0, 0.0, 1.5], 2))
    assert result.terms == ("high - c",)
    assert result.pvalues.iloc[0] == pytest.approx(0.01)
    assert claims.ANY_TREATMENT() in result.notes


def test_refusals() -> None:
    with pytest.raises(ParameterError, match="treatments must be one to 4 different arms"):
        plan_of(treatment=("low", "low"))
    with pytest.raises(ParameterError, match="two arms, got 'c' twice"):
        plan_of(treatment=("low", "c"))
    with pytest.raises(ParameterError, match="treatment"):
        plan_of(treatment=())
    with pytest.raises(ParameterError, match="drop requires several treatments and law 'z'"):
        plan_of(treatment="low", drop=0.0)
    with pytest.raises(ParameterError, match="drop must be one number, or one for each look except the last"):
        plan_of(drop=[0.0, 0.0, 0.0])


@pytest.mark.slow
def test_the_family_wise_error_is_alpha() -> None:
    """600 trials of three equal arms: errors within four binomial errors of .05."""
    plan = plan_of(looks=[200, 400], spending="lan-demets-pocock")
    wrong = sum(plan.look(trial_of(plan, [0.0, 0.0, 0.0], seed)).decision == "reject" for seed in range(600))
    assert abs(wrong / 600 - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 600)


def test_characteristics_of_several_treatments() -> None:
    """Against looks and results of the same trials, one by one."""
    plan = plan_of(
        looks=[100, 200], arms=(0, 1, 2), treatment=(1, 2), control=0, spending="lan-demets-pocock"
    )
    world = ai.environments.NormalArms([0.0, 0.0, 0.6])
    found = plan.operating_characteristics({"one": world}, 40, rng=3)
    row = found.frame.iloc[0]
    stream = np.random.SeedSequence(3).spawn(1)[0]
    rng = np.random.default_rng(np.random.SeedSequence(stream.entropy, spawn_key=(*stream.spawn_key, 0)))
    logs = [plan.design.run(world, 200, rng=rng) for _ in range(40)]
    results = [plan.analyse(log) for log in logs]
    assert row["rejected"] == np.mean([bool(result.rejected) for result in results])
    assert row["rejected_2"] == row["rejected_best"] == np.mean([2 in result.rejected for result in results])
    assert row["family_error"] == row["rejected_1"] == np.mean([1 in result.rejected for result in results])
    assert row["rejected_all"] == np.mean([len(result.rejected) == 2 for result in results])
    assert row["size_mean"] == np.mean([plan.look(log).rounds for log in logs])
    inside = [
        all(
            np.isnan(low) or low <= truth <= high
            for truth, (low, high) in zip((0.0, 0.6), result.conf_int().to_numpy(), strict=True)
        )
        for result in results
    ]
    assert row["coverage"] == np.mean(inside)
    assert row["bias_2"] == pytest.approx(np.mean([result.params.iloc[1] for result in results]) - 0.6)
    assert "family error" in str(found)


def test_simulated_trials_drop_arms() -> None:
    plan = plan_of(looks=[60, 120], drop=0.0, least=5.0, sides=1)
    found = plan.operating_characteristics(ai.environments.NormalArms([0.0, -2.0, 0.5]), 6, rng=2).frame.iloc[
        0
    ]
    assert found["dropped_low"] == 1.0
    assert found["rounds_low"] < 35
    followed = run(plan, ai.environments.NormalArms([0.0, -2.0, 0.5]), np.random.default_rng(2))
    assert followed.course.gone.tolist() == [1, np.iinfo(np.int64).max]
    assert len(followed.action) == 120
    assert 1 in followed.action[:60]
    assert 1 not in followed.action[60:]
    with pytest.raises(ParameterError, match="UCB makes no random draws"):
        plan_of(design=ai.designs.UCB(), drop=0.0).operating_characteristics(
            ai.environments.NormalArms([0.0, 0.0, 0.0]), 2
        )


def test_ranks_of_several_treatments_have_no_estimates() -> None:
    plan = plan_of(law="rerandomization", replays=19, looks=[40])
    found = plan.operating_characteristics(ai.environments.NormalArms([0.0, 0.0, 3.0]), 3, rng=1).frame.iloc[
        0
    ]
    assert found["rejected"] == 1.0
    assert np.isnan(found[["difference", "bias", "coverage", "naive_coverage"]].to_numpy(dtype=float)).all()


def test_critical_values_that_cannot_be_reached_are_not_computed() -> None:
    """The value below all critical values, and intervals that contain a difference without their limits."""
    plan = plan_of(looks=[60, 120, 180], least=2.0)
    log = plan.design.run(ai.environments.NormalArms([0.0, 0.1, 0.3]), horizon=180, rng=8)
    course = plan.course(log)
    assert isinstance(course, SeveralCourse)
    for look in range(course.look + 1):
        bounds = [course.closed.bound(members, look) for members in ((0,), (1,), (0, 1))]
        assert course.closed.least(look) < min(bounds)
    reference = RepeatedReference(plan.processes(log), course, plan.spent, 0.0)
    two_sided = reference.tests(0.05)
    limits = reference.limits(two_sided)
    for shift in (-1e-7, 1e-7):
        for side in (0, 1):
            near = limits[:, side] + shift
            held = (limits[:, 0] <= near) & (near <= limits[:, 1])
            assert reference.contains(near, two_sided).tolist() == held.tolist()
    assert reference.contains(limits.mean(axis=1), reference.tests(0.05)).all()
