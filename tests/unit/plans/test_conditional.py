"""Conditional and predictive power: closed forms with one look left, and simulation with several."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from claims_said import says
from scipy import stats

import adaptinf as ai
from adaptinf.claims.logs import plans as claims
from adaptinf.errors import InvalidForLog
from adaptinf.plans.planning.conditional import _later

COIN = ai.designs.Uniform()


def plan_of(**others: Any) -> ai.Plan:
    options = {"arms": ("usual", "new"), "treatment": "new", "control": "usual", "looks": [100, 200]}
    return ai.Plan(COIN, **{**options, **others})


def log_of(difference: float = 0.2, rounds: int = 100, seed: int = 1) -> Any:
    return COIN.run(ai.environments.NormalArms([0.0, difference]), horizon=rounds, rng=seed)


@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize("margin", [0.0, -0.2])
def test_one_look_left(sides: int, margin: float) -> None:
    plan, log = plan_of(sides=sides, margin=margin, alpha=0.025 * sides), log_of()
    course = plan.course(log)
    assert course is not None
    before, slope = float(course.information[0]), float(course.slope[0])
    score = float(course.z[0]) * math.sqrt(before)
    [(size, bound)] = _later(plan, course)
    assert size == pytest.approx(2 * before)
    for difference in (0.0, 0.4):
        mean = score + (difference - margin) * slope
        end = stats.norm(mean, math.sqrt(before))
        expected = end.sf(bound * math.sqrt(size))
        expected += end.cdf(-bound * math.sqrt(size)) if sides == 2 else 0.0
        assert plan.conditional_power(log, difference) == pytest.approx(expected, abs=1e-10)
    # About the estimate, the score at the end has twice the variance of its own steps.
    end = stats.norm(2 * score, math.sqrt(2 * before))
    expected = end.sf(bound * math.sqrt(size)) + (end.cdf(-bound * math.sqrt(size)) if sides == 2 else 0.0)
    assert plan.predictive_power(log) == pytest.approx(expected, abs=1e-6)
    estimate = margin + score / slope
    assert plan.conditional_power(log) == pytest.approx(plan.conditional_power(log, estimate))


def test_several_looks_left_by_simulation() -> None:
    """100,000 walks, within 4 errors."""
    plan, log = plan_of(looks=[100, 200, 300, 400], spending="pocock"), log_of()
    course = plan.course(log)
    assert course is not None
    later = list(_later(plan, course))
    sizes = np.array([float(course.information[0]), *(size for size, _ in later)])
    steps = np.diff(sizes)
    drift = 0.3 * float(course.slope[0]) / sizes[0]
    rng = np.random.default_rng(3)
    walks = rng.normal(drift * steps, np.sqrt(steps), (100_000, 3)).cumsum(axis=1)
    walks += float(course.z[0]) * math.sqrt(sizes[0])
    bounds = np.array([bound for _, bound in later]) * np.sqrt(sizes[1:])
    share = float((np.abs(walks) >= bounds).any(axis=1).mean())
    assert plan.conditional_power(log, 0.3) == pytest.approx(share, abs=4 * 0.5 / math.sqrt(100_000))


def test_what_is_refused() -> None:
    for plan, log, decision in (
        (plan_of(), log_of(2.0), "reject"),
        (plan_of(), log_of(0.0, 200), "no rejection"),
        (plan_of(), log_of(rounds=50), "continue, but no look has made a test so far"),
    ):
        for power in (plan.conditional_power, plan.predictive_power):
            with pytest.raises(InvalidForLog) as caught:
                power(log)
            assert says(caught.value.reason, claims.NOT_UNDER_WAY, decision=decision)
    with pytest.raises(InvalidForLog) as caught:
        plan_of(law="rerandomization").conditional_power(log_of())
    assert says(caught.value.reason, claims.NORMAL_ONLY)
