"""Calendar time: when outcomes are known, what designs have seen by then, durations and over-running."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import adaptinf as ai
from adaptinf.errors import ParameterError
from adaptinf.plans.planning.timing import Calendar, Timing, calendar_of
from adaptinf.plans.simulated_trials import trial_of

THOMPSON = ai.designs.Thompson(floor=0.2)
ARMS = ai.environments.BernoulliArms([0.3, 0.6])


def plan_of(design: Any = THOMPSON, **others: Any) -> ai.Plan:
    options = {"arms": ("usual", "new"), "treatment": "new", "control": "usual", "looks": [40, 80]}
    return ai.Plan(design, **{**options, **others})


def counting() -> ai.designs.FunctionDesign:
    """The probability of arm 1 states how many outcomes are known."""
    return ai.designs.FunctionDesign(
        lambda seen, context, rng: [1 - 0.5 / (1 + seen), 0.5 / (1 + seen)],
        lambda seen, context, arm, reward: seen + 1,
        start=0,
    )


def outcomes_known(log: Any) -> list[int]:
    return np.rint(0.5 / log.arrays.propensities[:, 1] - 1).astype(int).tolist()


def test_a_delay_in_rounds() -> None:
    plan = plan_of(counting(), delay=3, looks=[10])
    log, calendar = trial_of(plan, ARMS, np.random.default_rng(1))
    assert outcomes_known(log) == [0, 0, 0, 0, 1, 2, 3, 4, 5, 6]
    assert calendar is not None
    assert calendar.at_look(10) == (13.0, 10.0, 0.0)
    assert calendar.at_look(4) == (7.0, 7.0, 3.0)


def test_a_delay_in_days() -> None:
    """What is known at each arrival is counted from the calendar of the same random numbers."""
    timing = {"delay": stats.gamma(2, scale=5), "accrual": 1.5, "dropout": 0.2}
    plan = plan_of(counting(), looks=[60], **timing)
    log, calendar = trial_of(plan, ARMS, np.random.default_rng(4))
    assert calendar is not None
    assert log.n_rounds == 60 == calendar.kept.sum()
    assert len(calendar.kept) > 60
    known = [int((calendar.known[:t] < calendar.arrival[t]).sum()) for t in range(len(calendar.arrival))]
    assert outcomes_known(log) == np.array(known)[calendar.kept].tolist()


def test_the_calendar_has_the_stated_rates() -> None:
    rng = np.random.default_rng(5)
    calendar = calendar_of(Timing(stats.expon(scale=30.0), 2.0, 0.25), 4_000, rng)
    assert calendar.kept.sum() == 4_000
    assert calendar.kept[-1]
    assert len(calendar.kept) == pytest.approx(4_000 / 0.75, rel=0.03)
    assert np.diff(calendar.arrival).mean() == pytest.approx(0.5, rel=0.05)
    waits = (calendar.known - calendar.arrival)[calendar.kept]
    assert waits.mean() == pytest.approx(30.0, rel=0.05)
    assert np.isinf(calendar.known[~calendar.kept]).all()


def test_over_running_counts_those_after_the_last_one_used() -> None:
    arrival = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    known = np.array([1.5, 3.5, np.inf, 4.2, 9.0])
    calendar = Calendar(arrival, known, np.array([True, True, False, True, True]))
    assert calendar.at_look(2) == (3.5, 3.0, 1.0)
    assert calendar.at_look(3) == (4.2, 4.0, 0.0)
    assert calendar.at_look(4) == (9.0, 5.0, 0.0)


def test_characteristics_in_time() -> None:
    usual = plan_of().operating_characteristics(ARMS, 64, rng=1).frame
    assert "duration_mean" not in usual
    slow = plan_of(delay=30, accrual=0.5).operating_characteristics(ARMS, 64, rng=1).frame.iloc[0]
    # 80 participants, and the 30 that it would take to know the last outcome, at one in two days.
    assert slow.duration_mean == pytest.approx(2.0 * (slow.size_mean + 30), rel=0.1)
    assert slow.enrolled_mean == slow.size_mean + slow.overrun_mean
    always = plan_of(delay=30, looks=[40, 80], futility=50.0, least=0.0)
    early = always.operating_characteristics(ARMS, 64, rng=1).frame.iloc[0]
    assert (early.size_mean, early.duration_mean, early.enrolled_mean) == (40.0, 70.0, 70.0)
    assert early.overrun_mean == 30.0
    same = plan_of(accrual=3.0, design=THOMPSON).operating_characteristics(ARMS, 64, rng=1).frame.iloc[0]
    assert same.overrun_mean == 0.0


def test_a_trial_in_which_nothing_is_ever_known_does_not_adapt() -> None:
    log, _ = trial_of(plan_of(delay=80), ARMS, np.random.default_rng(2))
    # Frequencies of 100 posterior draws, whose standard deviation is .05.
    assert log.arrays.propensities[:, 1].mean() == pytest.approx(0.5, abs=0.03)
    assert log.arrays.propensities[:, 1].std() < 0.07
    log, _ = trial_of(plan_of(delay=2), ARMS, np.random.default_rng(2))
    assert log.arrays.propensities[:, 1].std() > 0.1


def test_windows_and_contexts() -> None:
    private = ai.designs.PrivateUCB(epsilon=1.0)
    log, _ = trial_of(plan_of(private, delay=5), ARMS, np.random.default_rng(2))
    assert log.n_rounds == 80
    centres = ai.environments.FiniteContext([0.5, 0.5], [[0.1, 0.2], [0.6, 0.7]])
    log, _ = trial_of(plan_of(counting(), delay=5, dropout=0.2), centres, np.random.default_rng(2))
    assert set(log.frame["feature"]) == {0, 1}


def test_the_level_holds_with_late_outcomes() -> None:
    """A two-sided 20% test at normal outcomes; 512 trials, within 4 errors."""
    plan = plan_of(
        ai.designs.EpsilonGreedy(exploration=0.6), looks=[60, 120], delay=25, alpha=0.2, spending="pocock"
    )
    found = plan.power_curve(ai.environments.NormalArms([0.0, 0.0]), 512, rng=3).frame.iloc[0]
    assert found.power <= 0.2 + 4 * 0.0177


def test_calibration_uses_late_outcomes() -> None:
    plan = plan_of(delay=40, looks=[60, 120], least=0.0)
    equal = ai.environments.NormalArms([0.0, 0.0])
    late = ai.calibrate(plan, 0.05, equal, replications=64, rng=1)
    soon = ai.calibrate(plan.changed(delay=0), 0.05, equal, replications=64, rng=1)
    assert late.factor != soon.factor


def test_what_is_refused() -> None:
    with pytest.raises(ParameterError) as caught:
        plan_of(delay=stats.expon(), dropout=0.95)
    problems = " ".join(caught.value.problems)
    assert "a delay in days requires accrual" in problems
    assert "dropout must be" in problems
    for delay in (-1, "month", True):
        with pytest.raises(ParameterError, match="delay must be"):
            plan_of(delay=delay, accrual=1.0)
    best = ai.designs.SequentialHalving()
    for design, options, told in (
        (best, {"delay": 3}, "needs each outcome before the next choice"),
        (ai.designs.PrivateUCB(epsilon=1.0), {"dropout": 0.1}, "after a fixed number of rounds"),
        (THOMPSON, {"delay": 3, "law": "rerandomization"}, 'require law="z"'),
        (THOMPSON, {"delay": 3, "law": "exact"}, 'require law="z"'),
    ):
        with pytest.raises(ParameterError, match=told):
            plan_of(design, **options).operating_characteristics(ARMS, 4)
    vectors = ai.environments.LinearArms(np.eye(2))
    with pytest.raises(ParameterError, match="has context vectors, so delay and dropout must be 0"):
        plan_of(delay=2).operating_characteristics(vectors, 4)
