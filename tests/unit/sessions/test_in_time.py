"""In-time successes and failures: what is counted, with which noise, and what it costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.audit import epsilon_lower_bound
from adaptinf.claims.privacy import releases
from adaptinf.cli import main
from adaptinf.designs import (
    DPBAI,
    Design,
    DPConSE,
    LinPriv,
    Mixture,
    PrivateUCB,
    Thompson,
)
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.privacy import GRID_UNITS
from adaptinf.sessions import Session, open_session
from adaptinf.sessions.steppers import in_time_release, in_time_units
from adaptinf.trial import requests
from adaptinf.trial import trial_noise as nodes
from adaptinf.trial.trial_setup import declared_entry, session_of

PEOPLE, WINDOW = 60, 3
PAIR = Mixture(PrivateUCB(epsilon=1.0), exploration=0.5)


def no_noise(name: str, scale: float) -> int:
    return 0


def told(session: Any, seed: int = 1, **keys: Any) -> list[tuple[int, float, str]]:
    """Rewards told at once, late, or never; (arm, reward, when) of each round."""
    rng = np.random.default_rng(seed)
    waiting: dict[int, list[tuple[int, float]]] = {}
    rounds = []
    for now in range(PEOPLE):
        decision = session.assign(f"unit {now}", key=f"a{now}")
        reward, when = float(rng.choice([0.0, 0.25, 1.0])), str(rng.choice(["now", "due", "late", "never"]))
        rounds.append((int(decision.arm), reward, when))
        after = {"now": 0, "due": WINDOW, "late": WINDOW + 1, "never": PEOPLE}[when]
        waiting.setdefault(now + after, []).append((decision.id, reward))
        for number, value in waiting.pop(now, []):
            session.record(number, value, key=f"r{number}")
    return rounds


def opened(design: Design, in_time: float | None, draw: Any = no_noise) -> Session:
    declared = 2, None, None, False, (0.0, 1.0)
    return open_session(design, declared, PEOPLE, WINDOW, 1, None, "release", draw, in_time)


@pytest.mark.parametrize(
    "design",
    [
        PAIR,
        PrivateUCB(epsilon=1.0, counter="binary"),
        DPConSE(epsilon=1.0, contrast_share=1),
    ],
    ids=lambda design: type(design).__name__,
)
def test_sums_of_the_outcomes_that_were_in_time(design: Design) -> None:
    session, scales = opened(design, 0.5), dict[str, float]()
    rounds = told(session)
    session.finish()
    log = session.log("drop")
    own = log.releases[log.releases["name"].str.startswith("in_time")]
    expected = {("in_time_successes", arm): 0.0 for arm in (0, 1)} | {
        ("in_time_failures", arm): 0.0 for arm in (0, 1)
    }
    for step, (arm, reward, when) in enumerate(rounds):
        if when == "now" or (when == "due" and step + WINDOW < PEOPLE):
            expected["in_time_successes", arm] += reward
            expected["in_time_failures", arm] += 1.0 - reward
    found = {(name, int(arm)): value for name, arm, value in own[["name", "group", "value"]].values.tolist()}
    assert found == expected
    assert set(own["round"]) == {PEOPLE}
    assert set(own["scale"]) == {4.0}
    assert log.released_rounds == PEOPLE
    plain = opened(design, None)
    told(plain)
    plain.finish()
    without = plain.log("drop")
    assert log.releases.iloc[: len(without.releases)]["value"].equals(without.releases["value"])
    for name in ("guarantee", "reward_guarantee"):
        mine, theirs = getattr(log, name), getattr(without, name)
        assert (mine.epsilon, mine.unit, mine.notion) == (theirs.epsilon + 0.5, theirs.unit, theirs.notion)

    def noted(name: str, scale: float) -> int:
        scales[name] = scale
        return GRID_UNITS if name.startswith("in-time") else 0

    session = opened(design, 0.5, noted)
    told(session)
    assert not any(name.startswith("in-time") for name in scales)
    session.finish()
    session.finish()
    drawn = {name: scale for name, scale in scales.items() if name.startswith("in-time")}
    assert list(drawn) == [
        f"in-time {what} of arm {arm}" for arm in (0, 1) for what in ("successes", "failures")
    ]
    assert all(4.0 * GRID_UNITS <= scale < 4.0 * GRID_UNITS * (1.0 + 1e-12) for scale in drawn.values())
    again = session.log("drop").releases
    shifted = again.loc[again["name"].str.startswith("in_time"), "value"].to_numpy()
    np.testing.assert_array_equal(shifted, own["value"].to_numpy() + 1.0)


@pytest.mark.parametrize(
    ("design", "options", "reason"),
    [
        (DPConSE(epsilon=1.0), {"features": 2, "window": 1}, "DPConSE assigns arms by context"),
        (
            LinPriv(epsilon=1.0),
            {"dimension": 2, "per_arm": True, "window": 1},
            "LinPriv assigns arms by context",
        ),
        (PrivateUCB(epsilon=1.0), {}, "PrivateUCB has no window, so no outcome can be late"),
        (Thompson(), {}, "Thompson has no window, so no outcome can be late"),
        (DPBAI(epsilon=1.0, features=[[1.0, 0.0], [0.0, 1.0]]), {}, "DPBAI has no window, so no outcome"),
    ],
)
def test_designs_that_have_none_say_why(design: Design, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ParameterError, match=reason):
        design.session(2, PEOPLE, in_time=0.5, **options)


@pytest.mark.parametrize("in_time", [0.0, -1.0, float("nan"), "1"])
def test_odd_budgets(in_time: Any) -> None:
    with pytest.raises(ParameterError, match="in_time must be"):
        PAIR.session(2, PEOPLE, window=1, in_time=in_time)


@pytest.mark.parametrize("snapshot", [False, True])
def test_a_trial_draws_them_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: bool) -> None:
    """In the transaction of the finish; opened again, from rows or a snapshot, it has the same."""
    monkeypatch.setattr(requests, "EVERY", 5 if snapshot else 10_000)
    path = tmp_path / "trial.db"
    with ai.Trial.create(path, PAIR, 2, PEOPLE, outcome_window=WINDOW, in_time=0.5) as trial:
        told(trial)
        assert len(trial.log("drop").releases) == PEOPLE - WINDOW - 1
        assert trial.log("drop").guarantee.epsilon == 1.5  # type: ignore[union-attr]
        trial.finish("all came")
        before = trial.log("drop")

    def refused(name: str, scale: float) -> int:
        raise AssertionError(name)

    monkeypatch.setattr(nodes, "draw_node", refused)
    with ai.Trial.open(path) as trial:
        assert trial.log("drop").releases.equals(before.releases)
        trial.verify()
        assert trial.log("drop").releases.equals(before.releases)
    assert len(before.releases) == PEOPLE + 4


def test_the_command_line_asks_for_them(tmp_path: Path) -> None:
    flags = ["--parameters", '{"epsilon": 1.0}', "--arm", "a", "--arm", "b", "--horizon", "20"]
    made = ["trial", "create", str(tmp_path / "t.db"), "--design", "PrivateUCB", *flags]
    assert main([*made, "--outcome-window", "2", "--in-time", "0.5"]) == 0
    with ai.Trial.open(tmp_path / "t.db") as trial:
        trial.assign("one", key="1")
        assert trial.log("drop").guarantee.epsilon == 1.5  # type: ignore[union-attr]


def test_nothing_is_counted_of_a_trial_that_somebody_ended(tmp_path: Path) -> None:
    with ai.Trial.create(tmp_path / "t.db", PAIR, 2, PEOPLE, outcome_window=WINDOW, in_time=0.5) as trial:
        for number in range(9):
            trial.record(trial.assign(number, key=f"a{number}").id, 1.0, key=f"r{number}")
        trial.finish("too few")
        assert not trial.log().releases["name"].str.startswith("in_time").any()


def test_trials_from_before_count_late_outcomes_as_they_did(tmp_path: Path) -> None:
    """DPConSE took a late outcome for 1/2; a file that does not say so still does, and a new one takes 0."""
    values = []
    for late in (None, 0.5, 0.0):
        declared = 2, None, None, False, (0.0, 1.0)
        design = DPConSE(epsilon=1.0, contrast_share=1, first_window=5)
        lost = design.lost_unsaid if late is None else late
        session = open_session(design, declared, PEOPLE, WINDOW, 1, None, "release", no_noise, None, lost)
        told(session)
        session.finish()
        log = session.log("drop")
        values.append(log.releases["value"].tolist())
        assert log.design is not None
        assert log.design.parameters["late_counts_as"] == lost
    assert values[0] == values[1] != values[2]
    assert (DPConSE.lost, DPConSE.lost_unsaid, Mixture(design, exploration=0.1).lost_unsaid) == (
        0.0,
        0.5,
        0.5,
    )


def test_a_file_that_does_not_say_is_of_that_time() -> None:
    design, coins = DPConSE(epsilon=1.0, contrast_share=1), b"0" * 32
    entry = declared_entry(design, 2, PEOPLE, None, None, False, (0.0, 1.0), WINDOW)
    assert entry["late"] == 0.0
    for late, lost in ((0.0, 0.0), (None, 0.5)):
        told = {**entry, "seed": coins.hex(), "late": late}
        if late is None:
            del told["late"]
        assert session_of(told, design, no_noise)[0]._lost == lost
    plain = declared_entry(PAIR, 2, PEOPLE, None, None, False, (0.0, 1.0), WINDOW)
    del plain["late"]
    assert session_of(plain, PAIR, no_noise)[0]._lost == 0.0


PAIRS = {
    "a success for a failure": ([1.0, 1.0], [0.0, 1.0], [True, True], [True, True]),
    "late for in time": ([1.0, 1.0], [1.0, 1.0], [True, True], [False, True]),
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("share", [1.0, 0.4], ids=["right", "too little noise"])
def test_the_histogram_loses_what_is_promised_for_it(name: str, share: float) -> None:
    """The score is the exact log-likelihood ratio, at most epsilon; noise of .4 of its scale is refuted."""
    epsilon, first, second = 2.0, *(PAIRS[name][k::2] for k in (0, 1))
    scale = 2.0 / epsilon * GRID_UNITS
    action = np.zeros(2, dtype=np.int64)
    sides = [
        in_time_units(action, np.array(rewards), np.array(in_time), 1)
        for rewards, in_time in ((first[0], first[1]), (second[0], second[1]))
    ]

    def sample(side: int, runs: int, rng: np.random.Generator) -> Any:
        def draw(name: str, scale: float) -> float:
            return float(rng.laplace(scale=share * scale))

        shown = np.array([in_time_release(sides[side], scale, draw) for _ in range(runs)]) * GRID_UNITS
        return ((np.abs(shown - sides[1]) - np.abs(shown - sides[0])) / scale).sum(axis=(1, 2))

    promised = ai.PrivacyGuarantee(epsilon=epsilon)
    found = epsilon_lower_bound(sample, view="releases", runs=20_000, promised=promised, rng=3)
    assert found.refuted == (share < 1.0)


def test_rates_and_limits_where_outcomes_are_late_by_what_they_are() -> None:
    """Late by .5 of successes and .2 of failures: the rate says .135 for .20, and the limits hold it."""
    rng, people = np.random.default_rng(4), 6_000
    session = Mixture(PrivateUCB(epsilon=1.0), exploration=0.9).session(
        2, people, window=0, in_time=1.0, rng=2
    )
    for _ in range(people):
        decision, success = session.assign(), float(rng.random() < 0.2)
        if rng.random() >= (0.5 if success else 0.2):
            session.record(decision.id, success)
    session.finish()
    log = session.log("drop")
    table = ai.ArmMeans(log).fit("released")
    low, high = table.details["lowest"], table.details["highest"]
    assert table.estimate == pytest.approx([0.1351, 0.1351], abs=0.03)
    assert low == pytest.approx([0.1, 0.1], abs=0.02)
    assert high == pytest.approx([0.36, 0.36], abs=0.03)
    assert ((low < 0.2) & (high > 0.2)).all()
    assert f"Outcome: {releases.IN_TIME_OUTCOME()}" in " ".join(str(table).split())
    text = " ".join(table.explain().texts)
    assert f"0 {low[0]:.3f} to {high[0]:.3f}" in text
    theirs = ai.ArmMeans(log.public()).fit()
    assert str(theirs.summary()) == str(table.summary())
    assert table.validity == "not valid"
    assert table.correction is not None
    with pytest.raises(ParameterError, match="weights does not apply to a table of released successes"):
        ai.ArmMeans(log).fit("released", weights="sqrt")
    with pytest.raises(InvalidForLog) as refused:
        ai.ArmMeans(PAIR.run(ai.environments.BernoulliArms([0.4, 0.6]), 50, rng=0)).fit("released")
    assert says(refused.value.reason, releases.NOTHING_IN_TIME)


@pytest.mark.slow
def test_intervals_of_rates_cover() -> None:
    """4,000 replications a cell: .95 within .0134, four standard errors; tests agree with intervals."""
    from adaptinf.inference.released.in_time import InTimeReference

    rng = np.random.default_rng(20_261_126)
    cells = ((0.2, 300, 1.0), (0.2, 300, 0.2), (0.5, 1_000, 0.3), (0.02, 500, 1.0), (0.9, 100, 2.0))
    for rate, people, epsilon in cells:
        there = rng.binomial(people, 0.7, 4_000)
        won = rng.binomial(there, rate)
        noise = rng.laplace(0.0, 2.0 / epsilon, (2, 4_000))
        law = InTimeReference(won + noise[0], there - won + noise[1], 2.0 / epsilon)
        low, high = law.interval(float(np.log(0.05))).T
        inside = (low <= rate) & (rate <= high)
        assert abs(inside[law.valid].mean() - 0.95) < 0.0139
        np.testing.assert_array_equal(inside[law.valid], law.log_pvalues(rate)[law.valid] > np.log(0.05))
