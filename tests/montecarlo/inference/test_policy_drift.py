"""Policies on logs whose level drifts for all arms alike: no difference is seen where there is none.

Arms are equal unless it is said otherwise. False alarms are below 1e-4 a test: 250 logs, of which at least
the binomial quantile for a true coverage of .93 has to be covered.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says
from scipy import special, stats

from adaptinf.claims import policies
from adaptinf.inference.policies.policy_models import PolicyContrast, PolicyValue
from adaptinf.log import AdaptiveLog, LogArrays

LOGS = 250
FEWEST = stats.binom.ppf(1e-4, LOGS, 0.93)


def level_of(kind: str, horizon: int) -> np.ndarray:
    """What the rewards of all arms share in each round."""
    time = np.arange(horizon)
    return {
        "none": np.zeros(horizon),
        "linear": time / horizon,
        "hourly": 0.5 * np.sin(2.0 * np.pi * time / 24.0),
    }[kind]


def thompson(
    level: np.ndarray, floor: float = 0.05, *, every: int = 1, by_context: bool = False, effect: Any = 0.0
) -> dict[str, np.ndarray]:
    """Logs of two arms: arm 1 by the chance that it is better, above a floor, anew at every so many rounds.

    Shapes: level, effect of arm 1 (T,); returns (T, logs). Two contexts may learn each alone (`by_context`).
    """
    rng, horizon = np.random.default_rng(77), len(level)
    effect = np.broadcast_to(effect, horizon)
    x = rng.integers(0, 2, (horizon, LOGS))
    cell = x if by_context else np.zeros_like(x)
    count, total = np.ones((2, LOGS, 2)), np.zeros((2, LOGS, 2))
    share, log = np.full((2, LOGS), 0.5), np.arange(LOGS)
    found = {name: np.zeros((horizon, LOGS)) for name in ("share", "action", "reward")}
    for t in range(horizon):
        if t % every == 0:
            gap = np.diff(total / count, axis=2)[:, :, 0] / np.sqrt((1.0 / count).sum(axis=2))
            share = floor + (1.0 - 2.0 * floor) * special.ndtr(gap)
        now = share[cell[t], log]
        action = (rng.random(LOGS) < now).astype(int)
        reward = level[t] + effect[t] * action + 0.5 * x[t] + rng.normal(size=LOGS)
        np.add.at(count, (cell[t], log, action), 1.0)
        np.add.at(total, (cell[t], log, action), reward)
        found["share"][t], found["action"][t], found["reward"][t] = now, action, reward
    return found | {"x": x}


def hourly(level: np.ndarray) -> dict[str, np.ndarray]:
    """Nothing adapts: the share of arm 1 follows the hour, from .15 to .85; returns (T, logs)."""
    rng, horizon = np.random.default_rng(78), len(level)
    share = np.repeat((0.5 + 0.35 * np.sin(2.0 * np.pi * np.arange(horizon) / 24.0))[:, None], LOGS, axis=1)
    action = (rng.random(share.shape) < share).astype(int)
    reward = level[:, None] + rng.normal(size=share.shape)
    return {"share": share, "action": action, "reward": reward, "x": np.zeros_like(action)}


def logs(found: dict[str, np.ndarray], **known: Any) -> list[AdaptiveLog]:
    """One log a column, with the context where it is `told`, and batches of so many rounds."""
    told, size = known.pop("told", False), known.pop("batch", 0)
    horizon = len(found["x"])
    batch = np.arange(horizon) // size if size else None
    columns, made = (found[name].T for name in ("share", "action", "reward", "x")), []
    for share, action, reward, x in zip(*columns, strict=True):
        code, both = action.astype(np.int64), np.column_stack([1.0 - share, share])
        own = both[np.arange(horizon), code]
        context = {"x": x.astype(float)} if told else {}
        arrays = LogArrays(code, reward, propensity=own, propensities=both, batch=batch, context=context)
        made.append(AdaptiveLog.from_arrays(arrays, arms=("a", "b"), **known))
    return made


def covered(made: list[AdaptiveLog], truth: Any, **options: Any) -> int:
    """How many intervals of b - a hold the truth, a number or one by log."""
    count = 0
    for log, value in zip(made, np.broadcast_to(truth, len(made)), strict=True):
        low, high = PolicyContrast(log, "b", baseline="a").fit(**options).conf_int().to_numpy()[0]
        count += bool(low <= value <= high)
    return count


DESIGNS: dict[str, Any] = {
    "Thompson": lambda: logs(thompson(level_of("linear", 1000))),
    "Thompson that no context moves": lambda: logs(thompson(level_of("linear", 1000)), context_free=True),
    "Thompson in batches": lambda: logs(thompson(level_of("linear", 1000), every=50), batch=50),
    "Thompson by a context that the log has": lambda: logs(
        thompson(level_of("linear", 1000), by_context=True), told=True
    ),
    "Thompson by a context that it lacks, in batches": lambda: logs(
        thompson(level_of("linear", 1000), by_context=True, every=50), batch=50
    ),
    "shares by the hour, nothing adapts": lambda: logs(hourly(level_of("hourly", 960))),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_equal_arms_are_not_told_apart(name: str) -> None:
    assert covered(DESIGNS[name](), 0.0) >= FEWEST


@pytest.mark.parametrize("name", ["Thompson", "shares by the hour, nothing adapts"])
def test_own_weights_tell_them_apart_and_say_what_they_assume(name: str) -> None:
    made = DESIGNS[name]()
    assert covered(made, 0.0, weights="stable-variance") < 0.7 * LOGS
    result = PolicyContrast(made[0], "b", baseline="a").fit("stable-variance")
    assert says(result.cautions, policies.OWN_WEIGHTS_OF_PAIR)


@pytest.mark.parametrize("name", ["Thompson", "shares by the hour, nothing adapts"])
def test_a_value_is_the_mean_of_the_period(name: str) -> None:
    made = DESIGNS[name]()
    level = level_of("linear", 1000) + 0.25 if name == "Thompson" else level_of("hourly", 960)
    counts = {}
    for stationary in (False, True):
        limits = [PolicyValue(log, "b").fit(stationary=stationary).conf_int().to_numpy()[0] for log in made]
        counts[stationary] = sum(bool(low <= level.mean() <= high) for low, high in limits)
    assert counts[False] >= FEWEST
    assert counts[True] < 0.8 * LOGS


def test_units_of_several_rounds() -> None:
    """40 units in turn, 15 rounds each, that differ in level: uniform weights tie no units together."""
    found, count = thompson(level_of("linear", 600), floor=0.2), 0
    levels = np.random.default_rng(79).normal(size=(LOGS, 40))
    for log, level in zip(logs(found), levels, strict=True):
        who, arrays = np.arange(600) % 40, log.arrays
        frame = pd.DataFrame({"arm": arrays.action, "y": arrays.reward + level[who], "who": who})
        frame[["a", "b"]] = arrays.propensities
        by_unit = AdaptiveLog(frame, action="arm", reward="y", propensities={0: "a", 1: "b"}, unit="who")
        result = PolicyContrast(by_unit, 1, baseline=0).fit()
        low, high = result.conf_int().to_numpy()[0]
        count += bool(low <= 0.0 <= high)
    assert result.weights == "uniform"
    assert count >= FEWEST


def test_a_policy_that_differs_in_some_rounds() -> None:
    """It takes b where x is 1, the baseline always a; b is better by .3 there and elsewhere."""
    found = thompson(level_of("linear", 1500), floor=0.1, by_context=True, effect=0.3)
    count = 0
    for log in logs(found, told=True):
        x = log.arrays.context["x"]
        policy = PolicyContrast(log, np.column_stack([1.0 - x, x]), baseline="a")
        low, high = policy.fit().conf_int().to_numpy()[0]
        count += bool(low <= 0.15 <= high)
    assert count >= FEWEST


def test_an_effect_that_turns_is_seen_and_one_that_stays_is_not() -> None:
    """The period's mean is 0; uniform weights estimate it, combined ones the mean by their precision."""
    turns = np.where(np.arange(2000) < 1000, 0.5, -0.5)
    made = logs(thompson(level_of("none", 2000), effect=turns))
    said = [PolicyContrast(log, "b", baseline="a").fit().cautions for log in made]
    seen = sum(says(told, policies.DIFFERENCE_MOVES) for told in said)
    assert seen >= stats.binom.ppf(1e-4, LOGS, 0.9)
    assert covered(made, 0.0, weights="uniform") >= FEWEST
    same = DESIGNS["Thompson"]()
    seen = sum(bool(PolicyContrast(log, "b", baseline="a").fit().cautions) for log in same)
    assert seen <= stats.binom.ppf(1.0 - 1e-4, LOGS, 0.02)
