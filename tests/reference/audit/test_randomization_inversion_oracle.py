"""Intervals by inversion: literal re-runs under an effect, classical intervals, and what is impossible."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from adaptinf import designs
from adaptinf.audit.randomization.randomization_intervals import randomization_interval
from adaptinf.audit.randomization.randomization_tests import randomization_test, rank
from adaptinf.audit.randomization.rerun_plan import Runner, make_plan, plan_root
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.simulation.environments import BernoulliArms, NormalArms, UniformArms
from adaptinf.simulation.replicate import block_stream


def literal_ucb(payoffs: np.ndarray, width: float) -> np.ndarray:
    """UCB1 on a table of what either arm would pay."""
    counts, sums = np.zeros(2), np.zeros(2)
    action = np.empty(len(payoffs), dtype=np.int64)
    for t, row in enumerate(payoffs):
        arm = t if t < 2 else int(np.argmax(sums / counts + np.sqrt(width * math.log(t + 1) / counts)))
        counts[arm] += 1
        sums[arm] += row[arm]
        action[t] = arm
    return action


@pytest.mark.parametrize("effect", [-0.4, 0.0, 0.3])
def test_re_runs_under_an_effect_number_for_number(effect: float) -> None:
    log = designs.UCB(width=0.8).run(NormalArms([0.0, 0.4]), horizon=50, rng=3)
    plan = make_plan(log, None, None, None, 5).assuming(effect)
    draws = Runner(plan).block(0, 40)
    baseline = np.where(log.arrays.action == 1, log.arrays.reward - effect, log.arrays.reward)
    root = plan_root(5)
    stream = block_stream(np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, 0)), 0)
    for run in range(40):
        rows = baseline[stream.permutation(50)]
        action = literal_ucb(np.column_stack([rows, rows + effect]), 0.8)
        expected = stats.ttest_ind(rows[action == 1], rows[action == 0], equal_var=True).statistic
        assert draws.values[run] == pytest.approx(expected, rel=1e-8)
    observed = stats.ttest_ind(
        baseline[log.arrays.action == 1], baseline[log.arrays.action == 0], equal_var=True
    )
    assert plan.observed() == pytest.approx(observed.statistic, rel=1e-9)


def test_no_effect_is_the_test_itself() -> None:
    log = designs.EpsilonGreedy(exploration=0.5).run(NormalArms([0.0, 0.3]), 80, rng=1)
    interval = randomization_interval(log, replications=199, rng=9)
    test = randomization_test(log, replications=199, rng=9)
    plan = make_plan(log, None, None, None, 9).assuming(0.0)
    runner = Runner(plan)
    blocks = [runner.block(first, min(64, 199 - first)) for first in range(0, 199, 64)]
    assert rank(plan, blocks, 199).pvalue == test.pvalue
    assert (interval.low < 0.0 < interval.high) == (test.pvalue > 0.05)


@pytest.mark.parametrize("statistic", ["studentised", "difference"])
def test_close_to_the_classical_interval_where_nothing_adapts(statistic: str) -> None:
    log = designs.Uniform().run(NormalArms([0.0, 0.5], scale=2.0), 400, rng=2)
    parts = [log.arrays.reward[log.arrays.action == arm] for arm in (1, 0)]
    low, high = stats.ttest_ind(*parts, equal_var=True).confidence_interval(0.95)
    interval = randomization_interval(log, statistic=statistic, replications=999, rng=0)
    assert interval.estimate == pytest.approx(parts[0].mean() - parts[1].mean())
    half = (high - low) / 2
    assert interval.low == pytest.approx(low, abs=0.16 * half)
    assert interval.high == pytest.approx(high, abs=0.16 * half)
    kept = interval.effects[interval.p_values > 0.05]
    assert interval.low < kept.min() <= interval.low + interval.precision
    assert interval.high - interval.precision <= kept.max() < interval.high


def test_swapped_arms_and_one_sided_limits() -> None:
    log = designs.Uniform().run(NormalArms([0.0, 0.5]), 200, rng=2)
    one = randomization_interval(log, replications=99)
    other = randomization_interval(log, replications=99, treatment=0)
    assert (other.treatment, other.control) == (0, 1)
    assert other.estimate == -one.estimate
    assert other.low == pytest.approx(-one.high, abs=0.5 * (one.high - one.low))
    lower = randomization_interval(log, replications=99, alternative="greater")
    upper = randomization_interval(log, replications=99, alternative="less")
    assert lower.high == math.inf
    assert upper.low == -math.inf
    assert one.low < lower.low < one.estimate < upper.high < one.high


@pytest.mark.slow
def test_effects_at_the_truth_are_rejected_at_the_level() -> None:
    """A true effect of .7, which moves the design: p of that very effect is at most .1 in a tenth of logs."""
    rejected, runs = 0, 1_000
    design = designs.EpsilonGreedy(exploration=0.2)
    for log in design.logs(NormalArms([0.0, 0.7]), 40, runs, rng=4):
        plan = make_plan(log, None, "difference", None, rejected).assuming(0.7)
        rejected += rank(plan, [Runner(plan).block(0, 19)], 19).pvalue <= 0.1
    assert abs(rejected - 0.1 * runs) < 3.9 * math.sqrt(runs * 0.09)


def test_rewards_that_leave_their_range() -> None:
    log = designs.EpsilonGreedy(exploration=0.5).run(BernoulliArms([0.4, 0.6]), 100, rng=0)
    with pytest.raises(InvalidForLog, match=r"lie at the ends of their range \[0, 1\]"):
        randomization_interval(log)
    bounded = designs.Uniform().run(UniformArms([0.0, 0.3], [0.6, 0.9]), 150, rng=0)
    interval = randomization_interval(bounded, replications=99)
    treated = bounded.arrays.action == 1
    expected = (
        max(bounded.arrays.reward[treated].max() - 0.9, 0.0 - bounded.arrays.reward[~treated].min()),
        min(bounded.arrays.reward[treated].min() - 0.0, 0.9 - bounded.arrays.reward[~treated].max()),
    )
    assert interval.possible == pytest.approx(expected)
    assert interval.effects.min() >= expected[0]
    assert interval.effects.max() <= expected[1]


def test_private_designs_clip_and_need_their_range() -> None:
    frame = pd.DataFrame({"arm": [0, 1] * 30, "y": np.linspace(0.3, 0.6, 60)})
    log = AdaptiveLog(frame, action="arm", reward="y")
    interval = randomization_interval(log, designs.PrivateUCB(epsilon=1.0), replications=19, alpha=0.1)
    assert interval.possible[0] == pytest.approx(-0.3)
    assert interval.possible[1] == pytest.approx(0.6 - 0.295, abs=0.01)
    wide = designs.PrivateUCB(epsilon=1.0).run(NormalArms([0.2, 0.8]), 100, rng=0)
    assert randomization_interval(wide, replications=19, alpha=0.1).possible == (-math.inf, math.inf)


def test_limits_that_are_never_reached() -> None:
    """Three rounds: a quarter of the paths tie with the log; and only a few effects are possible."""
    arrays = LogArrays(action=np.array([0, 1, 1]), reward=np.array([0.1, 0.7, 0.4]))
    free = AdaptiveLog.from_arrays(arrays, arms=(0, 1))
    interval = randomization_interval(free, designs.Uniform(), replications=99)
    assert (interval.low, interval.high) == (-math.inf, math.inf)
    assert len(interval.notes) == 2
    bounded = AdaptiveLog.from_arrays(arrays, arms=(0, 1), reward_range=(0.0, 0.8))
    near = randomization_interval(bounded, designs.Uniform(), replications=99)
    assert (near.low, near.high) == near.possible == pytest.approx((-0.1, 0.4))
    assert "limit is the most extreme possible effect" in str(near)


def test_no_constant_effect_fits() -> None:
    rng = np.random.default_rng(0)
    action = np.arange(200) % 2
    reward = np.where(action == 1, 0.8 + 0.05 * rng.random(200), 0.1 + 0.05 * rng.random(200))
    reward[1], reward[0] = 0.0, 0.0
    log = AdaptiveLog.from_arrays(
        LogArrays(action=action, reward=reward), arms=(0, 1), reward_range=(0.0, 0.86)
    )
    with pytest.raises(InvalidForLog):
        randomization_interval(log, designs.Uniform())
    reward[1], reward[0] = 0.01, 0.01
    loose = AdaptiveLog.from_arrays(
        LogArrays(action=action, reward=reward), arms=(0, 1), reward_range=(0.0, 0.86)
    )
    interval = randomization_interval(loose, designs.Uniform(), replications=99)
    assert math.isnan(interval.low)
    assert "no constant effect fits" in str(interval)


def test_what_is_refused() -> None:
    three = designs.Uniform().run(NormalArms([0.0, 0.1, 0.2]), 60, rng=0)
    with pytest.raises(ParameterError) as caught:
        randomization_interval(three, statistic="f", alpha=0.7, replications=0, alternative="up")
    text = str(caught.value)
    for word in (
        "requires two arms, got 3",
        "statistic",
        "alpha",
        "replications",
        "alternative",
    ):
        assert word in text
    with pytest.raises(ParameterError, match="log must be"):
        randomization_interval("log")  # type: ignore[arg-type]
