"""A plan with several treatments and late outcomes: live, and simulated on the same coins and patients."""

from __future__ import annotations

from copy import deepcopy
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import adaptinf as ai
from adaptinf.plans.planning.timing import Calendar, calendar_of
from adaptinf.plans.simulated_trials import opened, run
from adaptinf.sessions.enrolment import Arrivals, enrol

ARMS = ("control", "low", "high")
PLAN = ai.Plan(
    ai.designs.Thompson(floor=0.2),
    arms=ARMS,
    treatment=("low", "high"),
    control="control",
    looks=[40, 80, 120],
    futility=-1.0,
    drop=0.0,
    sides=1,
    alpha=0.1,
    least=3,
    delay=stats.gamma(4, scale=5),
    accrual=2.0,
)


class SameCoins:
    """The stream of the simulated session instead of coins for each event."""

    stream: np.random.Generator

    def __init__(self, seed: bytes) -> None:
        self.generator = deepcopy(SameCoins.stream)

    def set(self, event: str, number: int) -> None:
        """Continue the stream."""


def live(path: Path, people: Arrivals) -> list[dict[str, Any]]:
    """Participants and outcomes in the order of time, and looks once their outcomes are known."""
    trial = ai.Trial.create(path, PLAN.changed(delay=0))
    events = sorted(
        [(time, 0, number) for number, time in enumerate(people.arrival.tolist())]
        + [(time, 1, number) for number, time in enumerate(people.known.tolist())]
    )
    arms: list[str] = []
    told = np.zeros(len(people.arrival), dtype=bool)
    for _, kind, number in events:
        if kind == 0:
            arms.append(trial.assign(number, key=f"assign {number}").arm)
            continue
        reward = people.reward[number, ARMS.index(arms[number])]
        trial.record(number + 1, float(reward), key=f"record {number}")
        told[number] = True
        due = trial.status().next_look
        if due and told[:due].all() and trial.look().decision != "continue":
            break
    found: list[dict[str, Any]] = trial.looks().to_dict("records")
    log = trial.log(missing="drop")
    trial.close()
    assert PLAN.look(log).decision == found[-1]["decision"]
    return found


@pytest.mark.parametrize(
    ("rates", "seed"), [((0.4, 0.2, 0.8), 1), ((0.4, 0.4, 0.4), 3), ((0.7, 0.2, 0.3), 4)]
)
def test_decisions_are_the_same(
    rates: tuple[float, ...], seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = ai.environments.BernoulliArms(rates)
    rng = np.random.default_rng(seed)
    calendar = calendar_of(PLAN.timing, PLAN.horizon, rng)
    session, people = opened(PLAN, world, calendar, rng)
    monkeypatch.setattr(SameCoins, "stream", deepcopy(session._coins), raising=False)
    monkeypatch.setattr("adaptinf.trial.trial_setup.Coins", SameCoins)
    looks = live(tmp_path / "trial.db", people)
    simulated = run(PLAN, world, np.random.default_rng(seed))
    course, scores = simulated.course, simulated.course.closed.scores
    assert len(looks) == course.look + 1
    assert [look["decision"] for look in looks] == ["continue"] * course.look + [course.decision]
    for stage, look in enumerate(looks):
        lead = ARMS.index(look["leading"]) - 1
        assert look["statistic"] == pytest.approx(scores.z[stage, lead], abs=1e-12)
        assert look["bound"] == pytest.approx(course.closed.bound((0, 1), stage), abs=1e-9)
        gone = course.gone <= stage + (look["decision"] != "reject")
        assert look["dropped"] == list(compress(ARMS[1:], gone))
    assert looks[-1]["rejected"] == list(compress(ARMS[1:], course.rejected))


def test_lost_outcomes_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fifth of the outcomes never come: recorded as None live, never recorded in the simulated session."""
    plan = PLAN.changed(delay=0, drop=None, looks=[60, 120], futility=None)
    rng = np.random.default_rng(7)
    arrival, kept = np.arange(1.0, 121.0), rng.random(120) >= 0.2
    calendar = Calendar(arrival, np.where(kept, arrival, np.inf), kept)
    session, people = opened(plan, ai.environments.BernoulliArms([0.4, 0.2, 0.7]), calendar, rng)
    monkeypatch.setattr(SameCoins, "stream", deepcopy(session._coins), raising=False)
    monkeypatch.setattr("adaptinf.trial.trial_setup.Coins", SameCoins)
    enrol(session, people, 120, np.inf)
    simulated = session.log(missing="drop")
    with ai.Trial.create(tmp_path / "trial.db", plan) as trial:
        for number in range(120):
            arm = trial.assign(number, key=f"assign {number}").arm
            assert arm == ARMS[simulated.arrays.action[number]]
            reward = float(people.reward[number, ARMS.index(arm)]) if kept[number] else None
            trial.record(number + 1, reward, key=f"record {number}")
            if number + 1 in (60, 120):
                look, expected = trial.look(), plan.look(simulated, stage=(number + 1) // 60)
                assert (look.stage, look.decision) == (expected.stage, expected.decision)
                assert look.statistic == pytest.approx(expected.statistic, abs=1e-12, nan_ok=True)
                assert look.bound == pytest.approx(expected.bound, abs=1e-12, nan_ok=True)
                if look.decision != "continue":
                    break
        lost = trial.looks()["lost"].tolist()
    assert lost == [int((~kept[: 60 * (stage + 1)]).sum()) for stage in range(len(lost))]
