"""Looks by the exact distribution of counts: against all paths of a small trial, and against simulation."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.audit.binary.count_rules import allocation, path_probabilities
from adaptinf.audit.binary.count_states import pooled_score
from adaptinf.claims.logs import plans as claims
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.plans.planning.count_looks import elevated

URN = ai.designs.PlayTheWinner()


def plan_of(design: Any = URN, **others: Any) -> ai.Plan:
    options = {"arms": ("A", "B"), "treatment": "B", "control": "A", "looks": [4, 8], "law": "exact"}
    return ai.Plan(design, **{**options, "alpha": 0.3, "spending": "lan-demets-pocock", **others})


def paths(plan: ai.Plan, rates: tuple[float, float]) -> list[tuple[float, int, bool]]:
    """Probability, look and rejection of each path, one by one."""
    found = []
    rule, turn = allocation(plan.design, plan.horizon), 1 if plan.treatment == "B" else -1
    for action in itertools.product((0, 1), repeat=plan.horizon):
        for reward in itertools.product((0.0, 1.0), repeat=plan.horizon):
            arms, rewards = np.array(action), np.array(reward)
            up = path_probabilities(rule, arms, rewards)
            success = np.where(arms == 1, rates[1], rates[0])
            chance = np.prod(np.where(arms == 1, up, 1 - up))
            chance *= np.prod(np.where(rewards == 1.0, success, 1 - success))
            for look, rounds in enumerate(plan.looks):
                one, won = arms[:rounds] == 1, rewards[:rounds]
                z = turn * float(pooled_score(one.sum(), won[one].sum(), (~one).sum(), won[~one].sum()))
                bound = plan.count_bounds[look][int(won.sum())]
                if (abs(z) if plan.sides == 2 else z) >= bound or look == len(plan.looks) - 1:
                    found.append((float(chance), look, (abs(z) if plan.sides == 2 else z) >= bound))
                    break
    return found


@pytest.mark.parametrize(("sides", "treatment"), [(2, "B"), (1, "B"), (1, "A")])
def test_rates_are_those_of_all_paths(sides: int, treatment: str) -> None:
    other = "A" if treatment == "B" else "B"
    plan = plan_of(sides=sides, treatment=treatment, control=other, looks=[3, 6], alpha=0.2)
    for rates in ((0.5, 0.5), (0.2, 0.7)):
        every = paths(plan, rates)
        assert sum(chance for chance, *_ in every) == pytest.approx(1.0)
        found = plan.count_looks.rates(plan.count_bounds, rates[1], rates[0])
        for look in range(2):
            rejected = sum(chance for chance, at, stops in every if stops and at == look)
            assert found["reject"][look] == pytest.approx(rejected, abs=1e-12)
            ended = sum(chance for chance, at, _ in every if at == look)
            assert found["reached"][look] == pytest.approx(ended, abs=1e-12)


@pytest.mark.parametrize("design", [URN, ai.designs.Thompson(floor=0.1), ai.designs.DBCD(), ai.designs.UCB()])
def test_the_level_holds_at_every_rate_and_is_nearly_used(design: Any) -> None:
    plan = plan_of(design, looks=[20, 40], alpha=0.05)
    errors = [
        plan.count_looks.rates(plan.count_bounds, theta, theta)["reject"].sum()
        for theta in np.linspace(0.02, 0.98, 13)
    ]
    assert max(errors) <= 0.05 + 1e-12
    if not isinstance(design, ai.designs.UCB):
        assert max(errors) > 0.035


def test_the_p_value_is_small_exactly_when_the_plan_rejects() -> None:
    plan = plan_of(looks=[20, 40], alpha=0.1)
    decisions = set()
    for seed in range(30):
        log = URN.run(ai.environments.BernoulliArms([0.2, 0.55]), horizon=40, rng=seed)
        result = plan.analyse(log)
        assert (result.pvalues.iloc[0] <= 0.1) == (result.decision == "reject")
        decisions.add((result.decision, result.rounds))
    assert {("reject", 20), ("reject", 40), ("no rejection", 40)} <= decisions


def test_one_look_is_the_conditional_test() -> None:
    """The law of the final counts, computed by `audit.exact`, gives the same p-value."""
    plan = plan_of(looks=[30], alpha=0.05)
    law = ai.audit.exact(URN, 30)
    for seed in range(5):
        log = URN.run(ai.environments.BernoulliArms([0.3, 0.6]), horizon=30, rng=seed)
        one = log.arrays.action == 1
        counts = [one.sum(), log.arrays.reward[one].sum(), (~one).sum(), log.arrays.reward[~one].sum()]
        expected = law.conditional_pvalue(*(int(each) for each in counts), statistic="score")
        assert plan.analyse(log).pvalues.iloc[0] == pytest.approx(expected, abs=1e-12)


def test_polynomials_keep_their_values_at_a_higher_degree() -> None:
    from scipy import stats

    low = np.array([0.0, 0.3, 0.1, 0.8])
    high = elevated(low, 7)
    for theta in (0.1, 0.6):
        one = low @ stats.binom.pmf(np.arange(4), 3, theta)
        assert high @ stats.binom.pmf(np.arange(8), 7, theta) == pytest.approx(one, abs=1e-13)


def test_characteristics_are_exact() -> None:
    plan = plan_of(looks=[20, 40], alpha=0.1, futility=0.2)
    arms = ai.environments.BernoulliArms([0.3, 0.6])
    found = plan.operating_characteristics(arms, 640, rng=1)
    row = found.frame.iloc[0]
    assert row.rejected_se == 0.0
    assert says(found.notes, claims.BY_EXACT_LAW)
    assert found.looks["stopped"].sum() == pytest.approx(1.0)
    assert found.looks["rejected_so_far"].iloc[-1] == pytest.approx(row.rejected)
    assert row.rounds_A + row.rounds_B == pytest.approx(row.size_mean)
    # Drifting outcomes are simulated, with the same numbers of the same kind.
    seen = ai.environments.FiniteContext([0.5, 0.5], [[0.3, 0.6], [0.3, 0.6]])
    simulated = plan.operating_characteristics(seen, 640, rng=1).frame.iloc[0]
    assert simulated.rejected_se > 0.0
    assert simulated.rejected == pytest.approx(row.rejected, abs=4 * simulated.rejected_se)
    assert simulated.futility == pytest.approx(row.futility, abs=0.08)
    assert simulated.size_mean == pytest.approx(row.size_mean, abs=4 * simulated.size_sd / 25)
    assert simulated.size_sd == pytest.approx(row.size_sd, rel=0.1)
    assert simulated.bias == pytest.approx(row.bias, abs=4 * row.rmse / 25)
    assert simulated.rmse == pytest.approx(row.rmse, rel=0.15)
    assert simulated.rejected_above == pytest.approx(row.rejected_above, abs=0.08)
    assert simulated.reward_mean == pytest.approx(row.reward_mean, abs=0.02)


def test_what_a_result_says() -> None:
    plan = plan_of(looks=[20, 40], alpha=0.1)
    result = plan.analyse(URN.run(ai.environments.BernoulliArms([0.1, 0.9]), horizon=40, rng=1))
    assert result.validity == "exact"
    assert result.conf_int().isna().all(axis=None)
    for claim in (claims.BY_COUNTS, claims.NO_COUNT_LIMITS, claims.CONSTANT_RATES):
        assert says(result.notes, claim)


def test_what_cannot_be_held_is_refused() -> None:
    with pytest.raises(ParameterError, match="at most 400 rounds, got 401"):
        plan_of(looks=[401])
    with pytest.raises(ParameterError, match="do not depend only on the counts"):
        plan_of(ai.designs.PrivateUCB(epsilon=1.0))
    with pytest.raises(ParameterError, match="looks at the ends of batches, got 15"):
        plan_of(ai.designs.Thompson(batch_size=10), looks=[15, 30])
    with pytest.raises(ParameterError) as caught:
        plan_of(arms=("A", "B", "C"), margin=0.1)
    assert len(caught.value.problems) == 2
    log = ai.designs.Uniform().run(ai.environments.NormalArms([0.0, 0.0]), horizon=8, rng=1)
    with pytest.raises(InvalidForLog) as refused:
        plan_of().look(log)
    assert refused.value.reason == claims.NOT_BINARY()


@pytest.mark.slow
def test_conditional_critical_values_keep_the_power_that_unconditional_ones_lose() -> None:
    law = ai.audit.exact(ai.designs.Thompson(floor=0.1), 200)
    assert law.power("unconditional", 0.3, 0.1) == pytest.approx(0.309, abs=0.0005)
    assert law.power("conditional", 0.3, 0.1) == pytest.approx(0.715, abs=0.0005)
