"""A trial opened from its snapshot is the trial of all its rows, and a damaged snapshot is not used."""

from __future__ import annotations

import os
import sqlite3
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crashes import die, entries, fate, flipped, in_child

import adaptinf as ai
from adaptinf.designs import (
    ABSE,
    KLUCB,
    UCB,
    ConSE,
    Design,
    EpsilonGreedy,
    ExplorationSampling,
    FunctionDesign,
    LinUCB,
    Mixture,
    ODLinBAI,
    PlayTheWinner,
    SequentialHalving,
    SuccessiveElimination,
    Thompson,
    TopTwoThompson,
    Uniform,
)
from adaptinf.errors import AdaptinfWarning, JournalError
from adaptinf.sessions.session_rounds import Marks
from adaptinf.trial import Trial, requests
from adaptinf.trial.replay import Replay
from adaptinf.trial.sealing import Snapshots
from adaptinf.trial.snapshot_bytes import pack

PEOPLE, SHARED = 45, {"features": ["f", "g"]}
DESIGNS: list[tuple[Design, dict[str, Any], int]] = [
    *[(design, {}, 2) for design in (Uniform(), EpsilonGreedy(batch_size=10), Thompson(floor=0.1))],
    *[(design, {}, 2) for design in (TopTwoThompson(), ExplorationSampling(), UCB(), KLUCB())],
    *[(design, {}, 2) for design in (PlayTheWinner(), Mixture(Thompson(), exploration=0.3))],
    (EpsilonGreedy(), SHARED, 2),
    (LinUCB(), {"dimension": 2}, 2),
    *[(design, {}, 0) for design in (SuccessiveElimination(), SequentialHalving())],
    (ODLinBAI(features=np.array([[1.0, 0.0], [0.5, 1.0]])), {}, 0),
    (ConSE(), SHARED, 0),
    (ABSE(), {"dimension": 2}, 0),
]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(requests, "EVERY", 12)
    return tmp_path / "trial.db"


def made(path: Path, design: Design, options: dict[str, Any] | None = None, late: int = 2) -> None:
    """A trial of some participants, opened anew for every third, outcomes late by so many."""
    options, draws = options or {}, np.random.default_rng(4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptinfWarning)  # of designs without coins
        trial = Trial.create(path, design, ["a", "b"], horizon=PEOPLE + 5, **options)
    for number in range(PEOPLE):
        context = None
        if "features" in options:
            context = ["f", "g"][number % 2]
        elif "dimension" in options:
            context = (draws.random(2) / 2.0).tolist()
        decision = trial.assign(f"person {number}", context, key=f"assign {number}")
        due = decision.id - late
        if due > 0:
            reward = float(draws.integers(0, 2)) if due % 7 or not late else None
            trial.record(due, reward, key=due)
            if due % 11 == 0:
                trial.amend(
                    due,
                    1.0 if reward is None else 1.0 - reward,
                    key=f"amend {due}",
                    reason="a slip",
                    by="a monitor",
                )
        if number % 9 == 0:
            trial.log("drop")
        if number % 3 == 0:
            trial.close()
            trial = Trial.open(path, design)
    trial.close()


def image(path: Path, design: Design | None = None) -> tuple[bytes, bytes]:
    """All that a trial holds in memory when it has been opened."""
    with Trial.open(path, design) as trial:
        found = trial._requests.read(lambda replay: replay.image(Marks()))
        assert found is not None
        return pack(found[0]), pack(found[1])


def without_snapshot(path: Path) -> Path:
    """A copy whose snapshot was taken away."""
    bare = path.with_name("bare.db")
    bare.write_bytes(path.read_bytes())
    run(bare, "DROP TABLE snapshot_state", "DROP TABLE snapshot_parts")
    return bare


def run(path: Path, *statements: str) -> list[Any]:
    with sqlite3.connect(path, isolation_level=None) as connection:
        rows = [connection.execute(statement).fetchall() for statement in statements]
    connection.close()
    return rows[-1]


def follows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows that are made again from now on."""
    seen: list[int] = []
    whole = Replay.follow

    def follow(self: Replay, path: str, number: int, entry: Any) -> None:
        seen.append(number)
        whole(self, path, number, entry)

    monkeypatch.setattr(Replay, "follow", follow)
    return seen


@pytest.mark.slow
@pytest.mark.parametrize(
    ("design", "options", "late"),
    DESIGNS,
    ids=[f"{type(design).__name__}-{number}" for number, (design, _, _) in enumerate(DESIGNS)],
)
def test_a_trial_from_its_snapshot_is_that_of_all_its_rows(
    path: Path, monkeypatch: pytest.MonkeyPatch, design: Design, options: dict[str, Any], late: int
) -> None:
    made(path, design, options, late)
    rows = len(entries(path))
    bare = without_snapshot(path)
    monkeypatch.setattr(requests, "EVERY", 10**9)
    seen = follows(monkeypatch)
    shortened = image(path)
    assert 0 <= len(seen) < 12
    seen.clear()
    assert image(bare) == shortened
    assert seen == list(range(2, rows + 1))
    with Trial.open(path) as trial:
        assert trial.verify().rows == rows


def test_a_snapshot_is_written_every_so_many_rows_in_parts(path: Path) -> None:
    made(path, Thompson())
    assert [row[0] for row in run(path, "SELECT number FROM snapshot_parts")] == [12, 24, 36, 48, 60, 72, 84]
    assert run(path, "SELECT number FROM snapshot_state") == [(84,)]
    sizes = run(path, "SELECT length(content) FROM snapshot_parts")
    assert max(sizes)[0] < 1.5 * min(sizes)[0]


def test_a_design_of_ones_own_is_made_again_from_all_rows(path: Path) -> None:
    design = FunctionDesign(lambda state, context, rng: [0.5, 0.5])
    made(path, design)
    assert run(path, "SELECT name FROM sqlite_master WHERE type = 'table'") == [("journal",), ("secrets",)]
    with Trial.open(path, design) as trial:
        assert trial.verify().rounds == PEOPLE


def test_other_versions_of_the_code_make_all_decisions_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(path, Thompson())
    rows = len(entries(path))
    seen = follows(monkeypatch)
    monkeypatch.setattr("adaptinf.trial.sealing.package_hash", lambda: "of a later version")
    Trial.open(path).close()
    assert seen == list(range(2, rows + 1))
    seen.clear()
    Trial.open(path).close()
    assert seen == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE snapshot_state SET number = number - 1",
        "UPDATE snapshot_state SET head = replace(head, substr(head, 5, 1), 'g')",
        "UPDATE snapshot_state SET content = x'00'",
        "UPDATE snapshot_state SET content = zeroblob(length(content))",
        "UPDATE snapshot_state SET digest = 7",
        "UPDATE snapshot_parts SET content = 'text' WHERE number = 36",
        "UPDATE snapshot_parts SET number = 37 WHERE number = 36",
        "UPDATE snapshot_parts SET digest = '' WHERE number = 84",
        "DELETE FROM snapshot_parts WHERE number = 24",
        "DELETE FROM snapshot_parts",
        "DROP TABLE snapshot_parts",
    ],
)
def test_a_damaged_snapshot_is_told_and_all_decisions_made_again(
    path: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    made(path, Thompson())
    right, rows = image(path), len(entries(path))
    run(path, statement)
    seen = follows(monkeypatch)
    with pytest.warns(AdaptinfWarning, match="the snapshot is damaged, so every decision was replayed"):
        assert image(path) == right
    assert seen == list(range(2, rows + 1))
    seen.clear()
    assert image(path) == right  # it was made anew
    assert seen == []


def test_a_snapshot_of_another_journal_is_not_used(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    made(path, Thompson())
    made(other, Thompson())
    right = image(other)
    run(other, f"ATTACH '{path}' AS theirs", *_taken("snapshot_parts"), *_taken("snapshot_state"))
    with pytest.warns(AdaptinfWarning, match="does not follow from its rows"):
        assert image(other) == right


def _taken(table: str) -> list[str]:
    return [f"DELETE FROM {table}", f"INSERT INTO {table} SELECT * FROM theirs.{table}"]


def test_a_snapshot_with_right_digests_and_wrong_content_is_found_by_verify(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Snapshots.write

    def lie(self: Snapshots, part: dict[str, Any], state: dict[str, Any]) -> None:
        whole(self, {**part, "known": part["known"] + np.int32(1)}, state)

    monkeypatch.setattr(Snapshots, "write", lie)
    made(path, Uniform())
    with (
        Trial.open(path) as trial,
        pytest.raises(JournalError, match="not match its rows up to row 84"),
    ):
        trial.verify()


@pytest.mark.slow
def test_a_changed_bit_anywhere_is_detected_or_changes_nothing(path: Path, tmp_path: Path) -> None:
    made(path, Thompson())
    rows, right, rng = entries(path), image(path), np.random.default_rng(2)
    place, told, fates = tmp_path / "flipped.db", 0, []
    for bit in rng.integers(0, 8 * path.stat().st_size, size=300).tolist():
        flipped(path, place, bit)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fates.append(fate(place, rows))
            flipped(path, place, bit)
            try:
                assert image(place) == right
            except (JournalError, ai.errors.FileError):
                continue
        told += len(caught) > 0
    assert set(fates) == {"detected", "identical"}
    assert told > 25


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_around_the_commit_of_a_snapshot_leaves_an_old_one_or_a_new_one(path: Path, when: str) -> None:
    trial = Trial.create(path, Thompson(), ["a", "b"], horizon=50)
    for number in range(22):
        trial.assign(number, key=number)
    trial.close()
    assert run(path, "SELECT number FROM snapshot_state") == [(12,)]

    def work() -> None:
        whole = Snapshots.write

        def write(self: Snapshots, *given: Any) -> None:
            whole(self, *given)
            if when == "before":
                die()
            self._journal.commit()
            die()

        Snapshots.write = write  # type: ignore[method-assign]
        with Trial.open(path) as trial:
            trial.assign(22, key=22)

    os.waitpid(in_child(work), 0)
    assert run(path, "SELECT number FROM snapshot_state") == [(12 if when == "before" else 24,)]
    with Trial.open(path) as trial:
        assert trial.status().rows == 24
        assert trial.assign(22, key=22).round == 23
        assert trial.verify().rows == 24
    assert run(path, "SELECT number FROM snapshot_state") == [(24,)]


def test_a_snapshot_that_cannot_be_written_is_left_and_the_request_answered(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Snapshots, *given: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(Snapshots, "write", full)
        made(path, Thompson())
    rows = len(entries(path))
    with Trial.open(path) as trial:
        assert trial.verify().rows == rows
    assert run(path, "SELECT number FROM snapshot_state") == [(rows,)]


def test_a_process_goes_on_from_the_snapshot_of_another(path: Path) -> None:
    Trial.create(path, Thompson(), ["a", "b"], horizon=90).close()
    with Trial.open(path) as one, Trial.open(path) as other:
        for number in range(80):
            (one if number % 5 else other).assign(number, key=number)
    numbers = [row[0] for row in run(path, "SELECT number FROM snapshot_parts")]
    assert numbers == [12, 24, 36, 48, 60, 72]
    with Trial.open(path) as trial:
        assert trial.verify().rows == 81
