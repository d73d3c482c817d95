"""Looks by date: which participants they use, in simulations, in logs, and live on the same coins."""

from __future__ import annotations

import math
from copy import deepcopy
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import adaptinf as ai
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.group_sequential.spending import SPENDING
from adaptinf.plans.planning.dates import complete, days_of
from adaptinf.plans.planning.timing import Calendar
from adaptinf.plans.simulated_trials import calendar_for, ends_of, opened, run, trial_of
from adaptinf.sessions.enrolment import Arrivals
from adaptinf.trial import Trial, requests

THOMPSON = ai.designs.Thompson(floor=0.2)
WORLD = ai.environments.BernoulliArms([0.3, 0.6])
DAYS = [30.0, 75.0, 100.0]
BEGUN = datetime(2026, 3, 1, tzinfo=UTC)


def plan_of(**others: Any) -> ai.Plan:
    options: dict[str, Any] = {"arms": ("usual", "new"), "treatment": "new", "control": "usual"}
    options |= {"looks": DAYS, "horizon": 200, "clock": "date", "accrual": 2.0, "least": 3.0}
    return ai.Plan(others.pop("design", THOMPSON), **{**options, **others})


def log_of(
    known: Any = None, count: int = 120, start: Any = None, even: bool = False, **others: Any
) -> ai.AdaptiveLog:
    """A log of one participant a day, whose outcomes are known after `known` days, or at once."""
    run_ = THOMPSON.run(WORLD, horizon=count, rng=3)
    frame = run_.frame.assign(day=np.arange(float(count)))
    frame[["p_0", "p_1"]] = run_.arrays.propensities
    if even:
        frame["action"], frame["reward"] = np.arange(count) % 2, np.arange(count) // 2 % 2
        frame[["p_0", "p_1"]] = 0.5
    if start is not None:
        frame["day"] = pd.Timestamp(start) + pd.to_timedelta(frame["day"], unit="D")
    columns = {}
    if known is not None:
        frame["known"] = frame["day"] + np.asarray(known)
        columns = {"outcome_round": "known"}
    roles = {"action": "action", "reward": "reward", "propensities": "p_{arm}", "round": "day"}
    return ai.AdaptiveLog(frame, **roles, arms=[0, 1], columns=columns, **others)


def test_alpha_is_spent_by_the_share_of_the_days() -> None:
    plan = plan_of(sides=1, alpha=0.025)
    shares = np.array(DAYS) / 100.0
    expected = SPENDING["lan-demets-obrien-fleming"](shares, 0.025, 0.0)
    np.testing.assert_allclose(plan.bounds["spent"], expected, rtol=1e-12)
    np.testing.assert_allclose(plan.bounds["bound"], ai.spending_bounds(shares, 0.025, 1), rtol=1e-9)
    assert plan.bounds["day"].tolist() == DAYS
    assert repr(plan) == "<Plan: new - usual, looks on days 30, 75, 100, lan-demets-obrien-fleming spending>"


def test_a_look_uses_those_before_the_first_pending_outcome() -> None:
    known = np.array([1.0, 9.0, 3.0, np.inf, 5.0])
    assert complete(known, np.array([0.5, 1.0, 8.9, 9.0, 99.0])).tolist() == [0, 1, 1, 3, 3]
    delay = np.zeros(120)
    delay[50] = 30.0
    plan, log = plan_of(), log_of(delay)
    look = plan.look(log, 2)
    assert (look.stage, look.rounds) == (2, 50)
    assert str(look).startswith("Look 2 of 3, on day 75, 50 participants\n")
    rounds = ai.Plan(THOMPSON, arms=(0, 1), treatment=1, control=0, looks=[31, 50, 101], least=3.0)
    np.testing.assert_allclose(look.statistic, rounds.look(log, 2).statistic, rtol=1e-12)
    assert (plan.look(log).rounds, plan.look(log, 1).rounds) == (101, 31)


def test_which_looks_a_log_has_reached() -> None:
    plan, log = plan_of(alpha=1e-9, least=0.0), log_of()
    assert [plan.look(log[:count]).stage for count in (30, 31, 75, 76, 120)] == [0, 1, 1, 2, 3]
    assert plan.look(log[:75], as_of=74.5).stage == 1
    assert plan.look(log[:75], as_of=75).stage == 2
    with pytest.raises(
        InvalidForLog, match="the next look is on day 75; if the log is complete up to that day, set as_of=75"
    ):
        plan.analyse(log[:60])
    assert plan.analyse(log[:60], as_of=100).rounds == 60
    with pytest.raises(ParameterError, match="look 2 has not been reached"):
        plan.look(log[:60], 2)


def test_a_complete_horizon_is_the_last_look_and_spends_what_remains() -> None:
    plan = plan_of(horizon=60, alpha=0.05, spending="lan-demets-pocock", least=0.0)
    log = log_of(count=60, even=True)
    look = plan.look(log)
    assert (look.stage, look.rounds, look.decision) == (2, 60, "no rejection")
    rule = plan.rule_by(np.array([31, 60]))
    assert rule.spent.sum() == pytest.approx(0.025, rel=1e-12)
    assert rule.spent[0] == plan.rule.spent[0]
    assert len(rule.spent) == 2
    assert plan.analyse(log).rounds == 60


def test_dates_are_the_ends_of_days_and_times_are_moments() -> None:
    start = date(2026, 3, 1)
    assert days_of("2026-03-10", start) == pytest.approx(10.0)
    assert days_of("2026-03-10", start) < 10.0
    assert days_of(datetime(2026, 3, 10, 12), start) == 9.5
    assert days_of("2026-03-10T13:00+01:00", start) == 9.5
    assert days_of(np.datetime64("2026-03-02T00:00"), "2026-03-01") == 1.0
    plan = plan_of(looks=["2026-03-30", "2026-05-14", "2026-06-08"], start="2026-03-01", alpha=1e-9)
    np.testing.assert_allclose(plan.looks, DAYS)
    dated = log_of(start=start)
    # Participants 1 to 30 came by the end of 30 March.
    assert [plan.look(dated, stage).rounds for stage in (1, 2, 3)] == [30, 75, 100]
    assert plan.look(dated.until("2026-05-14")).stage == 2
    assert plan.look(dated[:75], as_of="2026-05-13").stage == 1
    again = ai.Plan(THOMPSON, **plan.arguments)
    np.testing.assert_array_equal(again.looks, plan.looks)


def test_simulated_looks_use_the_calendar() -> None:
    arrival = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    calendar = Calendar(
        arrival, np.array([1.5, 3.5, np.inf, 9.0, 6.0]), np.array([1, 1, 0, 1, 1], dtype=bool)
    )
    assert calendar.ends(np.array([1.0, 3.0, 5.0, 8.0, 9.0])).tolist() == [0, 1, 2, 2, 4]
    assert calendar.at_look(2, 5.0) == (5.0, 5.0, 3.0)
    assert calendar.at_look(0, 1.0) == (1.0, 1.0, 1.0)
    plan = plan_of(delay=stats.gamma(4, scale=3), dropout=0.1)
    log, calendar_ = trial_of(plan, WORLD, np.random.default_rng(2))
    assert calendar_ is not None
    assert calendar_.arrival[0] == 0.0
    ends = ends_of(plan, calendar_)
    kept = calendar_.known[calendar_.kept]
    for day, count in zip(DAYS, ends.tolist(), strict=True):
        assert np.all(kept[:count] <= day)
        assert count == 200 or kept[count] > day
    found = plan.operating_characteristics(WORLD, 64, rng=1)
    assert found.looks["day"].tolist() == DAYS
    row = found.frame.iloc[0]
    assert row.enrolled_mean > row.size_mean
    assert row.duration_mean <= 100.0
    assert log.n_rounds == 200


@pytest.mark.slow
def test_the_level_holds_by_date() -> None:
    """Two-sided 20%, Pocock's spending, an arm's outcomes late at random; 512 trials, within 4 errors."""
    plan = plan_of(
        design=ai.designs.EpsilonGreedy(exploration=0.6),
        alpha=0.2,
        spending="lan-demets-pocock",
        least=20.0,
        delay=stats.gamma(2, scale=5),
    )
    row = plan.operating_characteristics(ai.environments.NormalArms([0.0, 0.0]), 512, rng=3).frame.iloc[0]
    assert row.rejected <= 0.2 + 4 * 0.0177
    assert row.rejected >= 0.2 - 5 * 0.0177
    assert row.coverage == pytest.approx(0.8, abs=4 * 0.0177)


class SameCoins:
    """The stream of the simulated session instead of coins for each event."""

    stream: np.random.Generator

    def __init__(self, seed: bytes) -> None:
        self.generator = deepcopy(SameCoins.stream)

    def set(self, event: str, number: int) -> None:
        """Continue the stream."""


def live(path: Path, plan: ai.Plan, people: Arrivals, set_clock: Any) -> tuple[list[dict[str, Any]], Any]:
    """Participants, outcomes and looks in the order of time."""
    set_clock(0.0)
    trial = Trial.create(path, plan)
    last = max(plan.looks) + 1.0
    events = sorted(
        [(at, 0, number) for number, at in enumerate(people.arrival.tolist()) if at < last]
        + [(at, 1, number) for number, at in enumerate(people.known.tolist()) if at < last]
        + [(day + 0.25, 2, stage) for stage, day in enumerate(plan.looks.tolist())]
    )
    arms: list[str] = []
    for at, kind, number in events:
        set_clock(at)
        if kind == 0:
            arms.append(trial.assign(number, key=f"assign {number}").arm)
        elif kind == 1:
            reward = people.reward[number, plan.arms.index(arms[number])]
            trial.record(number + 1, float(reward), key=f"record {number}")
        else:
            assert trial.status().next_look is not None
            found = trial.look()
            assert found.stage == number + 1
            if found.decision != "continue":
                break
    trial.close()
    with Trial.open(path) as trial:
        trial.verify()
        return trial.looks().to_dict("records"), trial.log(missing="drop")


def clock_of(monkeypatch: pytest.MonkeyPatch) -> Any:
    def set_clock(day: float) -> None:
        at = (BEGUN + timedelta(days=day)).isoformat(timespec="microseconds")
        monkeypatch.setattr(requests, "now", lambda: at)

    return set_clock


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("seed", [1, 4])
def test_live_looks_are_the_simulated_ones(
    several: bool, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(delay=stats.gamma(4, scale=3), alpha=0.1, futility=-1.0, sides=1)
    world = WORLD
    if several:
        plan = plan.changed(arms=("usual", "low", "new"), treatment=("low", "new"), drop=0.3)
        world = ai.environments.BernoulliArms([0.4, 0.3, 0.7])
    rng = np.random.default_rng(seed)
    session, people = opened(plan, world, calendar_for(plan, rng), rng)
    monkeypatch.setattr(SameCoins, "stream", deepcopy(session._coins), raising=False)
    monkeypatch.setattr("adaptinf.trial.trial_setup.Coins", SameCoins)
    looks, log = live(tmp_path / "trial.db", plan.changed(delay=0), people, clock_of(monkeypatch))
    if several:
        course: Any = run(plan, world, np.random.default_rng(seed)).course
        bounds = [course.closed.bound((0, 1), stage) for stage in range(course.look + 1)]
    else:
        simulated, calendar = trial_of(plan, world, np.random.default_rng(seed))
        ends = ends_of(plan, calendar)
        course = plan.follow(plan.process(simulated, ends), simulated, ends)
        bounds = [math.nan] * (course.look + 1)
        for place, bound in zip(course.tests, course.bound.tolist(), strict=True):
            bounds[place] = bound
        scores = [looks[place]["statistic"] for place in course.tests]
        np.testing.assert_allclose(scores, course.z, atol=1e-12)
        assert len(scores) >= 1
    assert len(looks) == course.look + 1
    assert [look["rounds"] for look in looks] == course.ends[: len(looks)].tolist()
    assert [look["decision"] for look in looks] == ["continue"] * course.look + [course.decision]
    infinite = [math.nan if math.isinf(bound) else bound for bound in bounds]
    np.testing.assert_allclose([look["bound"] for look in looks], infinite, atol=1e-9)
    result = ai.Plan.of(log).analyse(log)
    assert (result.decision, result.rounds) == (course.decision, course.rounds)


def test_a_live_trial_waits_for_its_dates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_clock, plan = clock_of(monkeypatch), plan_of(horizon=60, looks=[10.0, 20.0, 30.0])
    set_clock(0.0)
    trial = Trial.create(tmp_path / "trial.db", plan)
    assert str(trial.look()) == "No look yet: the first of 3 is on day 10"
    assert trial.status().next_look is None
    for number in range(1, 41):
        set_clock(0.25 * (number - 1))
        trial.assign(number, key=f"assign {number}")
        if number != 30:
            trial.record(number, float(number % 2), key=f"record {number}")
    assert trial.status().next_look == "2026-03-11T00:00:00+00:00"
    assert trial.look().stage == 0
    # The outcome that was pending on the day of the look is not used, although it is known when it is taken.
    set_clock(12.0)
    trial.record(30, 1.0, key="record 30")
    look = trial.look()
    assert (look.stage, look.rounds, look.clock, look.next) == (1, 29, "date", 20.0)
    assert trial.looks()["rounds"].tolist() == [29]
    for number in range(41, 61):
        trial.assign(number, key=f"assign {number}")
        trial.record(number, float(number % 2), key=f"record {number}")
    # All 60 participants are known: the next look is the last, and need not wait for its day.
    set_clock(13.0)
    last = trial.look()
    assert (last.stage, last.rounds, last.decision in ("reject", "no rejection")) == (2, 60, True)
    assert trial.status().next_look is None
    assert trial.look() == last
    trial.close()


def test_a_look_without_outcomes_makes_no_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_clock = clock_of(monkeypatch)
    set_clock(0.0)
    with Trial.create(tmp_path / "trial.db", plan_of(looks=[1.0, 2.0])) as trial:
        trial.assign("first", key="assign")
        set_clock(1.5)
        look = trial.look()
        assert (look.stage, look.rounds, look.decision) == (1, 0, "continue")
        set_clock(2.5)
        assert trial.look().decision == "too few data"
        assert trial.verify().state == "paused"


def test_a_snapshot_keeps_the_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_clock = clock_of(monkeypatch)
    monkeypatch.setattr(requests, "EVERY", 8)
    set_clock(0.0)
    path = tmp_path / "trial.db"
    with Trial.create(path, plan_of(looks=[10.0, 20.0])) as trial:
        for number in range(1, 13):
            set_clock(float(number))
            trial.assign(number, key=f"assign {number}")
            trial.record(number, float(number % 2), key=f"record {number}")
    set_clock(11.5)
    with Trial.open(path) as trial:
        assert trial.look().rounds == 11
        trial.verify()


def test_what_is_refused() -> None:
    with pytest.raises(ParameterError) as caught:
        plan_of(looks=["2026-03-01", "2026-04-01"], horizon=None, accrual=None, law="rerandomization")
    problems = " ".join(caught.value.problems)
    assert "ascending days since the first participant, or dates after start=" in problems
    assert "looks by date require horizon, the largest number of participants, or accrual" in problems
    assert "looks by date require law=\"z\", got 'rerandomization'" in problems
    with pytest.raises(ParameterError, match="start must be a date or a time"):
        plan_of(start="soon")
    with pytest.raises(ParameterError, match='start requires clock="date"'):
        plan_of(clock="rounds", looks=[50, 200], start="2026-03-01")
    with pytest.raises(ParameterError, match="clock must be"):
        plan_of(clock="days")
    with pytest.raises(ParameterError, match="requires accrual"):
        plan_of(accrual=None).operating_characteristics(WORLD, 4)
    with pytest.raises(
        ParameterError, match='sample_size finds a number of rounds: plan must have clock="rounds"'
    ):
        plan_of().sample_size(WORLD, replications=4)
    with pytest.raises(ParameterError, match="looks by date need the days or times of participants"):
        plan_of().look(THOMPSON.run(WORLD, horizon=20, rng=1))
    with pytest.raises(ParameterError, match="as_of must be a number of days since the start, or a date"):
        plan_of().look(log_of(), as_of="soon")
    rounds = ai.Plan(THOMPSON, arms=(0, 1), treatment=1, control=0, looks=[50, 100])
    with pytest.raises(ParameterError, match='as_of requires clock="date"'):
        rounds.look(log_of(), as_of=3)
    assert plan_of(horizon=None).horizon == 200
