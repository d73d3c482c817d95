"""Private trials: exact noise in rows of the journal, kept before an answer, replayed and not drawn again."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crashes import POINTS, arm, both, crashed_run, die, entries, named_noise

from adaptinf.designs import Design, DPConSE, Mixture, PrivateUCB, Thompson
from adaptinf.errors import JournalError, ParameterError
from adaptinf.privacy import GRID_UNITS
from adaptinf.trial import Trial, requests
from adaptinf.trial import trial_noise as nodes
from adaptinf.trial.journal import Journal
from adaptinf.trial.sealing import Sealing, Snapshots

DESIGN = Mixture(PrivateUCB(epsilon=1.0), exploration=0.2)
WINDOW, PEOPLE = 3, 30
REWARDS = np.random.default_rng(7).random(PEOPLE).tolist()


def no_noise(name: str, scale: float) -> int:
    raise AssertionError(f"a draw for {name}")


def made(path: Path, delays: list[int] | None = None, people: int = PEOPLE) -> None:
    """A trial in which outcomes are told so many participants later, two of them never."""
    waiting: dict[int, list[int]] = {}
    with Trial.create(path, DESIGN, ["a", "b"], horizon=PEOPLE, outcome_window=WINDOW) as trial:
        for number in range(people):
            assert trial.assign(f"unit {number}", key=f"assign {number}").id == number + 1
            if number not in (4, 11):
                waiting.setdefault(number + (delays[number] if delays else 0), []).append(number)
            for told in reversed(waiting.pop(number, [])):
                trial.record(told + 1, REWARDS[told], key=f"record {told}")


@both
def test_what_was_released_follows_from_outcomes_and_rows_in_whole_numbers(path: Path) -> None:
    made(path)
    rows, sums, counts = entries(path), dict.fromkeys("ab", 0), dict.fromkeys("ab", 0)
    units = {row["node"]: row["units"] for row in rows if row["kind"] == "node"}
    arms = [row["arm"] for row in rows if row["kind"] == "assign"]
    with Trial.open(path) as trial:
        log = trial.log(missing="drop")
    assert (log.noise, log.guarantee.epsilon) == ("release", 1.0)  # type: ignore[union-attr]
    assert len(units) == PEOPLE - WINDOW - 1 == sum(row["kind"] == "node" for row in rows)
    assert log.releases is not None
    for number, shown in enumerate(log.releases["value"].tolist()):
        arm = arms[number]
        counts[arm] += 1
        sums[arm] += 0 if number in (4, 11) else round(REWARDS[number] * GRID_UNITS)
        trunk = [1 << k for k in range(counts[arm].bit_length())]
        ends, at = trunk, trunk[-1]
        for bit in reversed(range(len(trunk) - 1)):
            if counts[arm] & (1 << bit):
                at += 1 << bit
                ends = [*ends, at]
        noise = sum(units[f"arm {'ab'.index(arm)}, count {end}"] for end in ends)
        assert Fraction(shown) * GRID_UNITS == sums[arm] + noise


@both
def test_a_row_of_noise_lies_before_its_request_and_is_read_and_not_drawn(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(path)
    kinds = [row["kind"] for row in entries(path)]
    after = {kinds[place + 1] for place, kind in enumerate(kinds) if kind == "node"}
    assert after == {"assign"}
    with Trial.open(path) as trial:
        before = trial.log(missing="drop")
    monkeypatch.setattr(nodes, "draw_node", no_noise)
    with Trial.open(path) as trial:
        assert trial.verify().rows == len(kinds)
        again = trial.log(missing="drop")
        assert trial.assign("unit 0", key="assign 0").id == 1  # a retry draws nothing
    assert again.frame.equals(before.frame)
    assert again.releases.equals(before.releases)  # type: ignore[union-attr]


@both
def test_a_draw_that_fails_leaves_no_row_and_the_retry_draws_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(path, people=10)
    rows = len(entries(path))
    with Trial.open(path) as trial:
        with monkeypatch.context() as broken:
            broken.setattr(nodes, "draw_node", no_noise)
            with pytest.raises(AssertionError, match="a draw for arm"):
                trial.assign("unit 10", key="assign 10")
        assert len(entries(path)) == rows
        assert trial.assign("unit 10", key="assign 10").id == 11
        assert trial.verify().rows == rows + 2


@both
def test_processes_that_take_turns_draw_every_node_once(path: Path) -> None:
    made(path, people=5)
    with Trial.open(path) as one, Trial.open(path) as other:
        for number in range(5, PEOPLE):
            trial = (one, other)[number % 2]
            decision = trial.assign(f"unit {number}", key=f"assign {number}")
            (other, one)[number % 2].record(decision.id, REWARDS[number], key=f"record {number}")
        assert one.log(missing="drop").releases.equals(other.log(missing="drop").releases)  # type: ignore[union-attr]
        one.verify()
    names = [row["node"] for row in entries(path) if row["kind"] == "node"]
    assert len(set(names)) == len(names) == PEOPLE - WINDOW - 1


def test_the_file_itself_takes_no_node_twice(path: Path) -> None:
    made(path)
    row = "SELECT 1000, entry, digest FROM journal WHERE json_extract(entry, '$.kind') = 'node' LIMIT 1"
    with sqlite3.connect(path) as connection, pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        connection.execute(f"INSERT INTO journal {row}")
    connection.close()


@pytest.mark.parametrize("change", ["", "left out", "another value", "another scale", "one too many"])
def test_rows_that_do_not_fit_are_found_even_where_the_digests_do(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setattr(nodes, "draw_node", named_noise)
    monkeypatch.setattr("adaptinf.trial.trial_setup.fresh_seed", lambda: bytes(32))
    made(path)
    rows = entries(path)
    place = next(place for place, row in enumerate(rows) if row["kind"] == "node")
    if change == "left out":
        del rows[place]
    elif change == "another value":  # the arm is far behind then, so that others are proposed
        rows[place]["units"] -= 1_000 * GRID_UNITS
    elif change == "another scale":
        rows[place]["scale"] *= 2.0
    elif change:
        rows.insert(place, {**rows[place], "node": "arm 0, count 999"})
    liar = Journal(tmp_path / "liar.db", create=True)
    sealing = Sealing(liar)
    liar.start(rows[0], sealing.start)
    for row in rows[1:]:
        liar.begin()
        liar.append(sealing.sealed(liar.next, row))
        liar.commit()
    liar.close()
    if not change:
        assert Trial.open(liar.path).status().rounds == PEOPLE
        return
    with pytest.raises(JournalError):
        Trial.open(liar.path)


@pytest.mark.parametrize("delays", [[WINDOW] * PEOPLE, [k % (WINDOW + 1) for k in range(PEOPLE)]])
def test_released_numbers_do_not_change_when_reports_come_earlier(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delays: list[int]
) -> None:
    monkeypatch.setattr(nodes, "draw_node", named_noise)
    monkeypatch.setattr("adaptinf.trial.trial_setup.fresh_seed", lambda: bytes(32))
    made(path)
    made(tmp_path / "late.db", delays)
    logs = []
    for place in (path, tmp_path / "late.db"):
        with Trial.open(place) as trial:
            logs.append(trial.log(missing="drop"))
    assert logs[0].releases.equals(logs[1].releases)  # type: ignore[union-attr]
    assert np.array_equal(logs[0].arrays.action, logs[1].arrays.action)


def test_a_snapshot_holds_what_was_released_and_no_noise_that_is_still_to_come(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "EVERY", 12)
    images = []
    write = Snapshots.write

    def seen(self: Snapshots, part: dict[str, Any], state: dict[str, Any]) -> None:
        images.append(state["memory"])
        write(self, part, state)

    monkeypatch.setattr(Snapshots, "write", seen)
    made(path)
    assert len(images) > 3
    for memory in images:
        assert set(memory) == {"state", "tables"}
        assert set(memory["tables"]) <= {"released", "status", "propensity"}
    released = images[-1]["tables"]["released"]
    with Trial.open(path) as trial:
        shown = trial.log(missing="drop").releases
        assert shown is not None
        assert released[:, 3].tolist() == shown["value"].tolist()[: len(released)]
        trial.verify()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.parametrize(
    "design",
    [DESIGN, Mixture(DPConSE(epsilon=1.0, first_window=2), exploration=0.2)],
    ids=["index", "calendar"],
)
def test_a_kill_at_any_step_leaves_each_node_one_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, design: Design
) -> None:
    monkeypatch.setattr(nodes, "draw_node", named_noise)
    rng = np.random.default_rng(5)
    plans: list[Callable[[], None]] = [
        lambda point=point, count=count: arm(point, count)  # type: ignore[misc]
        for point in range(len(POINTS))
        for count in (2,)
    ]
    for when in ("before", "after"):
        for count in (1, 3):
            plans.append(lambda when=when, count=count: fatal(when, count))  # type: ignore[misc]
    wanted, kills = len(plans), 0
    while plans:
        plan = lambda: plans.pop() if plans else (lambda: None)  # noqa: E731
        kills += crashed_run(tmp_path, design, 8, rng, plan, window=2)
    assert kills >= 0.8 * wanted


def fatal(when: str, count: int) -> None:
    """Die at a draw, before it or when it is known and nothing is written yet."""
    left = [count]

    def draw(name: str, scale: float) -> int:
        left[0] -= 1
        if left[0] == 0 and when == "before":
            die()
        value = named_noise(name, scale)
        if left[0] == 0:
            die()
        return value

    nodes.draw_node = draw


@pytest.mark.parametrize(
    ("design", "window", "words"),
    [
        (PrivateUCB(epsilon=1.0), None, "outcome_window is required: the number of"),
        (PrivateUCB(epsilon=1.0), -1, "outcome_window must be"),
        (Thompson(), 3, "outcome_window must be omitted"),
        (PrivateUCB(epsilon=1e-5), 3, "larger epsilon"),
    ],
)
def test_what_does_not_fit_is_said_before_there_is_a_file(
    path: Path, design: Design, window: int | None, words: str
) -> None:
    with pytest.raises(ParameterError, match=words):
        Trial.create(path, design, 2, horizon=100, outcome_window=window)
    assert not path.exists()


@both
def test_a_unit_has_one_decision_whatever_is_asked(path: Path) -> None:
    """A participant's outcome enters once, so that what is promised for a reward holds for a person."""
    made(path, people=8)
    with Trial.open(path) as trial:
        rows = trial.status().rows
        assert trial.assign("unit 3", key="once more").id == 4
        assert trial.status().rounds == 8
        assert trial.status().rows == rows + 1
        log = trial.log(missing="drop")
    assert len(set(log.units.tolist())) == log.n_rounds == 8  # type: ignore[union-attr]
