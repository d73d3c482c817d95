"""Plans whose looks were changed before they took place: what earlier looks spent stays spent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import adaptinf as ai
from adaptinf.errors import ParameterError
from adaptinf.inference.group_sequential.crossing import crossing
from adaptinf.inference.group_sequential.spending import SPENDING

COIN = ai.designs.Uniform()


def plan_of(**others: Any) -> ai.Plan:
    options: dict[str, Any] = {"arms": (0, 1), "treatment": 1, "control": 0, "looks": [100, 200, 300]}
    return ai.Plan(COIN, **{**options, **others})


@pytest.mark.parametrize("looks", [[100, 200, 300, 450], [100, 250], [100, 120, 600]])
def test_all_looks_together_spend_alpha(looks: list[int]) -> None:
    plan = plan_of(spending="lan-demets-pocock").amended(1, looks)
    shares = np.array([100 / 300, *(np.array(looks[1:]) / looks[-1])])
    spent = SPENDING["lan-demets-pocock"](np.maximum.accumulate(shares), 0.025, 0.0)
    np.testing.assert_allclose(plan.bounds["spent"], 2.0 * spent, rtol=1e-12)
    bounds = plan.bounds["bound"].to_numpy()
    assert bounds[0] == plan_of(spending="lan-demets-pocock").bounds["bound"].iloc[0]
    below, above = crossing(-bounds, bounds, np.array(looks) / looks[-1])
    assert below.sum() + above.sum() == pytest.approx(0.05, abs=1e-9)


def test_a_look_may_have_nothing_left_to_spend() -> None:
    """Look 1 was planned at a third; at 120 of 600 no more is allowed, and the look makes no rejection."""
    plan = plan_of().amended(1, [100, 120, 600])
    assert plan.bounds["bound"].iloc[1] == np.inf
    assert plan.bounds["fraction"].tolist() == [1 / 3, 1 / 3, 1.0]
    log = COIN.run(ai.environments.NormalArms([0.0, 3.0]), horizon=120, rng=1)
    assert plan.changed(alpha=1e-9).look(log).decision == "continue"
    several = ai.Plan(
        COIN, arms=(0, 1, 2), treatment=(1, 2), control=0, looks=[100, 120, 600], earlier=[1 / 3], alpha=1e-9
    )
    log = COIN.run(ai.environments.NormalArms([0.0, 0.0, 0.0]), horizon=120, rng=1)
    assert several.look(log).decision == "continue"


@pytest.mark.slow
def test_the_level_holds_if_the_size_follows_the_pooled_variance() -> None:
    """640 trials; after look 1 the length is changed by the pooled standard deviation; within 4 errors."""
    plan, rejected = plan_of(alpha=0.2, spending="lan-demets-pocock", looks=[60, 120]), 0
    longer, shorter = plan.amended(1, [60, 120, 180]), plan.amended(1, [60, 90])
    rng = np.random.default_rng(6)
    for _ in range(640):
        log = COIN.run(ai.environments.NormalArms([0.0, 0.0]), horizon=180, rng=rng)
        if plan.look(log[:60]).decision == "reject":
            rejected += 1
            continue
        chosen = longer if log.arrays.reward[:60].std() > 1.0 else shorter
        rejected += chosen.look(log).decision == "reject"
    assert abs(rejected / 640 - 0.2) <= 4 * 0.0158


def test_stored_and_refused() -> None:
    plan = plan_of().amended(2, [100, 200, 250], futility=0.1)
    again = ai.Plan(COIN, **plan.arguments)
    assert again.bounds.equals(plan.bounds)
    assert plan.horizon == 250
    assert plan_of(spending="pocock").amended(0, [50]).horizon == 50
    for taken, looks in ((1, [120, 200]), (3, [100, 200, 300, 400]), (-1, [50])):
        with pytest.raises(ParameterError, match=r"looks must begin with|taken must be"):
            plan_of().amended(taken, looks)
    with pytest.raises(ParameterError, match="can be changed if it has a spending function"):
        plan_of(spending="pocock").amended(1, [100, 400])
    for fixed in ({"alpha": 0.2}, {"spending": "power", "sides": 1}, {"clock": "date"}, {"treatment": 0}):
        with pytest.raises(ParameterError, match=f"{next(iter(fixed))} cannot be changed"):
            plan_of().amended(1, [100, 400], **fixed)
    for earlier in ([0.5, 0.4], [0.2, 0.4, 0.6], [1.0], "half"):
        with pytest.raises(ParameterError, match="earlier must be ascending shares"):
            plan_of(earlier=earlier)
    dated = plan_of(looks=[30, 60], clock="date", horizon=90).amended(1, [30, 90], horizon=120)
    assert (dated.horizon, dated.fractions.tolist()) == (120, [0.5, 1.0])
