"""Outcomes that arrive after the stop: all data in place of the look at which the plan stopped."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from claims_said import says
from scipy import optimize, stats

import adaptinf as ai
from adaptinf.claims.logs import plans as claims
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.plans.decisions import normal_score

COIN = ai.designs.EpsilonGreedy(exploration=0.6)


def plan_of(**others: Any) -> ai.Plan:
    options: dict[str, Any] = {"arms": (0, 1), "treatment": 1, "control": 0, "looks": [60, 120, 180]}
    return ai.Plan(COIN, **{"spending": "lan-demets-pocock", **options, **others})


def log_of(effect: float = 0.6, seed: int = 30) -> ai.AdaptiveLog:
    return COIN.run(ai.environments.NormalArms([0.0, effect]), horizon=180, rng=seed)


def test_the_interval_is_that_of_the_deletion_method() -> None:
    """Against the bivariate normal law of the look before and the score of all data."""
    plan, log = plan_of(), log_of()[:150]
    stop = plan.analyse(log)
    assert (stop.decision, stop.rounds) == ("reject", 120)
    found = plan.analyse(log, overrun=True)
    assert (found.decision, found.rounds) == ("reject", 150)
    course, whole = plan.course(log), plan.process(log, np.array([150]))
    assert course is not None
    assert whole is not None
    assert course.tests == (0, 1)
    bound, size, slope = float(course.bound[0]), course.information[0], course.slope[0]
    last, reach = float(whole.clock[0]), float(whole.slope[0])
    z = normal_score(float(whole.z[0]), float(whole.effective[0]) - 1.0)
    root = math.sqrt(size / last)

    def tail(effect: float) -> float:
        law = stats.multivariate_normal(cov=[[1.0, root], [root, 1.0]])
        first, second = effect * slope / math.sqrt(size), effect * reach / math.sqrt(last)
        rest = [law.cdf([limit - first, z - second]) for limit in (-bound, bound)]
        inside = stats.norm.cdf(bound - first) - stats.norm.cdf(-bound - first)
        return float(stats.norm.sf(bound - first) + inside - (rest[1] - rest[0]))

    limits = [optimize.brentq(lambda one, at=at: tail(one) - at, -2.0, 3.0) for at in (0.025, 0.5, 0.975)]
    low, high = found.conf_int().to_numpy()[0]
    np.testing.assert_allclose([low, found.params.iloc[0], high], limits, atol=2e-4)
    assert says(found.notes, claims.OVERRUN_USED, more=30)
    assert "including 30 later rounds" in " ".join(found.notes)


def test_without_later_rounds_nothing_changes() -> None:
    plan, log = plan_of(), log_of()[:120]
    stop, again = plan.analyse(log), plan.analyse(log, overrun=True)
    assert stop.to_frame().equals(again.to_frame())
    assert not says(again.notes, claims.OVERRUN_USED)
    assert says(plan.analyse(log_of()).notes, claims.OVERRUN)


@pytest.mark.slow
def test_the_test_keeps_its_level_and_the_interval_its_coverage() -> None:
    """200 trials each without and with an effect, 40 later rounds; within 4 errors."""
    for effect, runs in ((0.0, 200), (0.3, 200)):
        rng, covered, rejected = np.random.default_rng(3), 0, 0
        plan = plan_of(looks=[60, 120, 240], alpha=0.2)
        for _ in range(runs):
            log = COIN.run(ai.environments.NormalArms([0.0, effect]), horizon=240, rng=rng)
            rounds = plan.analyse(log).rounds
            found = plan.analyse(log[: min(rounds + 40, 240)], overrun=True)
            low, high = found.conf_int(0.2).to_numpy()[0]
            covered += low <= effect <= high
            rejected += not low <= 0.0 <= high
        error = 4.0 * math.sqrt(0.16 / runs)
        assert covered / runs >= 0.8 - error
        assert effect > 0.0 or rejected / runs <= 0.2 + error


def test_what_is_refused() -> None:
    log = log_of()
    with pytest.raises(ParameterError, match="overrun must be"):
        plan_of().analyse(log, overrun=3)
    ranked = plan_of(law="rerandomization", replays=39)
    with pytest.raises(InvalidForLog, match="a single treatment and law="):
        ranked.analyse(log, overrun=True)
