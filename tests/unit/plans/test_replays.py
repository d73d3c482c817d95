"""Re-randomisation at looks: ranks by hand, exact levels, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from claims_said import says
from scipy import stats

import adaptinf as ai
from adaptinf.claims.logs import plans as claims
from adaptinf.errors import ParameterError
from adaptinf.inference.group_sequential.score_process import ScoreProcess
from adaptinf.plans.decisions import Rule
from adaptinf.plans.replays import follow_by_rank


def process_of(z: list[float]) -> ScoreProcess:
    one = np.ones(len(z))
    return ScoreProcess(np.array(z), one, one, one, one)


def rule_of(spent: list[float], sides: int = 2, futility: float = -np.inf) -> Rule:
    never = np.full(len(spent), -np.inf)
    gives_up = np.array([*[futility] * (len(spent) - 1), -np.inf])
    return Rule(np.array(spent) / sides, gives_up, sides, 20.0, never)


REPLAYS = np.array([[3.0, 0.0], [-2.0, 5.0], [1.0, 4.0], [0.5, -3.0]])


@pytest.mark.parametrize(
    ("z", "spent", "decision", "look", "pvalue"),
    [
        ([4.0, 0.0], [0.2, 0.2], "reject", 0, 0.2),  # the largest of five at the first look
        ([2.5, 9.0], [0.2, 0.2], "reject", 1, 0.4),  # one stopped before, and it is the largest of the others
        ([2.5, 4.5], [0.2, 0.2], "no rejection", 1, 0.6),
        ([3.0, 9.0], [0.2, 0.2], "reject", 1, 0.2),  # a tie at the first look stops neither
        ([-2.5, 9.0], [0.4, 0.0], "reject", 0, 0.4),  # absolute values
        ([0.1, 9.0], [0.0, 0.0], "no rejection", 1, 0.2),
    ],
)
def test_ranks_by_hand(z: list[float], spent: list[float], decision: str, look: int, pvalue: float) -> None:
    course = follow_by_rank(process_of(z), REPLAYS, rule_of(spent))
    assert (course.decision, course.look) == (decision, look)
    assert course.pvalue == pytest.approx(pvalue)


def test_bounds_separate_those_that_stop() -> None:
    course = follow_by_rank(process_of([2.5, 4.5]), REPLAYS, rule_of([0.2, 0.2]))
    assert course.bound.tolist() == [3.0, 5.0]
    assert follow_by_rank(process_of([0.0]), REPLAYS, rule_of([0.1, 0.3])).bound.tolist() == [np.inf]
    one_sided = follow_by_rank(process_of([-4.0, 0.0]), REPLAYS, rule_of([0.2, 0.2], sides=1))
    assert one_sided.pvalue == pytest.approx(0.8)


def test_futility_stops() -> None:
    course = follow_by_rank(process_of([0.2, 9.0]), REPLAYS, rule_of([0.2, 0.2], futility=0.3))
    assert (course.decision, course.look) == ("futility", 0)


def plan_of(design: Any, **others: Any) -> ai.Plan:
    options = {"looks": [30, 60], "law": "rerandomization", "replays": 99, "spending": "pocock", "alpha": 0.2}
    return ai.Plan(design, arms=("A", "B"), treatment="B", control="A", **{**options, **others})


@pytest.mark.slow
def test_levels_are_exact_in_small_trials() -> None:
    """Outcomes that drift, 400 trials of 60 rounds: rejections at .2 within a binomial error of 1e-4."""
    coin = ai.designs.EpsilonGreedy(exploration=0.3)
    plan, rng, rejected = plan_of(coin), np.random.default_rng(5), 0
    rate = np.linspace(0.02, 0.6, 60)
    for seed in range(400):
        outcomes = (rng.random(60) < rate).astype(float)
        world = ai.environments.Tableau(np.column_stack([outcomes, outcomes]), reward_range=(0, 1))
        rejected += plan.look(coin.run(world, horizon=60, rng=10_000 + seed)).decision == "reject"
    low, high = stats.binom.ppf([5e-5, 1 - 5e-5], 400, 0.2)
    assert low - 400 * 0.03 <= rejected <= high  # ties make it reject a little less


def test_a_look_can_be_repeated_and_sees_only_its_own_rounds() -> None:
    thompson = ai.designs.Thompson(floor=0.1)
    plan = plan_of(thompson, alpha=0.05, replays=49)
    log = thompson.run(ai.environments.BernoulliArms([0.2, 0.3]), horizon=60, rng=3)
    assert plan.look(log[:30]) == plan.look(log[:45]) == plan.look(log[:30])


def test_what_a_result_says() -> None:
    coin = ai.designs.Uniform()
    plan = plan_of(coin, alpha=0.05, replays=199)
    result = plan.analyse(coin.run(ai.environments.BernoulliArms([0.1, 0.8]), horizon=60, rng=1))
    assert result.decision == "reject"
    assert result.validity == "exact"
    assert result.pvalues.iloc[0] <= 0.05
    assert result.conf_int().isna().all(axis=None)
    assert says(result.notes, claims.BY_RANK, replays=199)
    assert claims.NO_LIMITS() in result.notes
    assert says(result.notes, claims.NO_EFFECT_ON_ANYONE)
    found = plan.operating_characteristics(ai.environments.BernoulliArms([0.1, 0.8]), 4, rng=1)
    assert found.frame.loc[0, "rejected"] == 1.0
    assert np.isnan(found.frame.loc[0, "coverage"])


def test_refusals() -> None:
    with pytest.raises(ParameterError, match="margin must be 0"):
        plan_of(ai.designs.Uniform(), margin=0.1)
    with pytest.raises(ParameterError) as caught:
        plan_of(ai.designs.Uniform(), law="t", replays=0, seed=-1)
    assert [problem.split()[0] for problem in caught.value.problems] == ["law", "replays", "seed"]
