"""Tokens of a trial: given once, kept as digests in chained rows, expired and revoked."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from crashes import entries, rechained
from test_groups_of_requests import made

from adaptinf.errors import JournalError, ParameterError
from adaptinf.trial import Trial, requests
from adaptinf.trial.access import answer_each, rehearse
from adaptinf.trial.served_rows import digest_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trial.db"


def test_a_token_is_given_once_and_its_digest_is_kept(path: Path) -> None:
    with made(path) as trial:
        first, second = trial.add_token("assigner", by="Dr. Ames"), trial.add_token("monitor", days=30)
        assert (first.id, first.role, len(first.text), first.revoked) == (1, "assigner", 43, None)
        lives = [
            datetime.fromisoformat(one.expires) - datetime.fromisoformat(one.issued)
            for one in (first, second)
        ]
        assert [round(life.total_seconds() / 86_400) for life in lives] == [365, 30]
        assert first.text != second.text
        assert "text" not in repr(first)
        assert trial.tokens() == (replace(first, text=""), replace(second, text=""))
        trial.revoke_token(1, by="Dr. Bell")
        trial.revoke_token(1)
        assert [token.serves() for token in trial.tokens()] == [False, True]
        acts = [(act.kind, act.token, act.role, act.by) for act in trial.history()]
        assert acts == [
            ("token", 1, "assigner", "Dr. Ames"),
            ("token", 2, "monitor", None),
            ("revoke", 1, None, "Dr. Bell"),
        ]
        assert trial.verify().rows == 4
        stood = trial.tokens()
    content = b"".join(place.read_bytes() for place in path.parent.glob("trial.db*"))
    assert first.text.encode() not in content
    assert digest_of(first.text).encode() in content
    with Trial.open(path) as trial:
        assert trial.tokens() == stood


def test_all_problems_are_told(path: Path) -> None:
    with made(path) as trial:
        with pytest.raises(ParameterError) as caught:
            trial.add_token("boss", days=0, by="")
        assert caught.value.problems[1] == "days must be a whole number from 1 to 3,650, got 0"
        assert [problem.split()[0] for problem in caught.value.problems] == ["role", "days", "by"]
        with pytest.raises(ParameterError, match="there is no token 1"):
            trial.revoke_token(1)
        assert trial.status().rows == 1
        trial.add_token("monitor")
        trial.backup(path.with_name("copy.db"))
    with Trial.open(path.with_name("copy.db")) as copy:
        for act in (lambda: copy.add_token("monitor"), lambda: copy.revoke_token(1)):
            with pytest.raises(ParameterError, match="a copy made by backup"):
                act()
        assert [token.role for token in copy.tokens()] == ["monitor"]


def test_snapshots_keep_tokens(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "EVERY", 4)
    with made(path) as trial:
        trial.add_token("assigner")
        trial.add_token("monitor")
        trial.revoke_token(2)
        trial.assign_many(["a", "b", "c"], keys=[1, 2, 3])
        stood = trial.tokens()
    with Trial.open(path) as trial:
        assert trial.tokens() == stood
        assert trial.add_token("operator").id == 3
        trial.verify()


FORGED: list[tuple[str, dict[str, Any]]] = [
    ("token", {"role": "boss"}),
    ("token", {"token": 7}),
    ("token", {"digest": "abc"}),
    ("token", {"expires": "soon"}),
    ("token", {"by": ""}),
    ("token", {"site": "Basel"}),
    ("revoke", {"token": 2}),
]


@pytest.mark.parametrize(("kind", "change"), FORGED)
def test_rows_that_cannot_be_right_are_found(path: Path, kind: str, change: dict[str, Any]) -> None:
    with made(path) as trial:
        trial.add_token("assigner")
        trial.revoke_token(1)
    with closing(sqlite3.connect(path)) as file:
        rechained(file, lambda _, entry: {**entry, **change} if entry["kind"] == kind else entry)
    with pytest.raises(JournalError, match="cannot be replayed"):
        Trial.open(path)


@pytest.mark.parametrize("private", [False, True])
def test_each_is_refused_alone(path: Path, private: bool) -> None:
    acts: list[Callable[[Any], Any]] = [
        lambda replay: replay.assign_new("p1", None, "k1"),
        lambda replay: replay.assign_new("p2", None, "k1"),
        lambda replay: replay.assign_new("p1", None, "k1"),
        lambda replay: replay.assign_new("p2", None, "k2"),
        lambda replay: replay.record(1, 7.0, "r1"),
        lambda replay: replay.record(9, 1.0, "r1"),
        lambda replay: replay.record(1, 1.0, "r1"),
        lambda replay: replay.record(1, 1.0, "r1"),
    ]
    with made(path, private) as trial:
        told = answer_each(trial, acts)
        assert [type(one).__name__ for one in told] == [
            *("Decision", "ParameterError", "Decision", "Decision"),
            *("ParameterError", "ParameterError", "Outcome", "Outcome"),
        ]
        assert told[0] == told[2]
        assert [row["kind"] for row in entries(path)] == ["create", "assign", "assign", "record"]
        assert trial.verify().rows == 4
        assert answer_each(trial, []) == []


def test_a_refusal_after_a_draw_leaves_no_draw(path: Path) -> None:
    """What was drawn for a refused act is neither in the file nor in what the next act gets."""

    def refused(replay: Any) -> Any:
        replay.assign_new("p9", None, "k9")
        raise ParameterError("act", ["no"])

    with made(path, private=True) as trial:
        for number in range(4):
            trial.assign(f"p{number}", key=f"k{number}")
            trial.record(number + 1, 1.0, key=f"r{number}")
        nodes = [row for row in entries(path) if row["kind"] == "node"]
        told = answer_each(trial, [refused, lambda replay: replay.assign_new("p4", None, "k4"), refused])
        assert [getattr(one, "id", None) for one in told] == [None, 5, None]
        rows = entries(path)
        assert [row["unit"] for row in rows if row["kind"] == "assign"] == [f"p{n}" for n in range(5)]
        assert len([row for row in rows if row["kind"] == "node"]) == len(nodes) + 1
        assert trial.assign("p9", key="k9").id == 6
        trial.verify()


def test_a_rehearsal_changes_nothing(path: Path) -> None:
    for number, options in enumerate(({}, {"features": ["f", "m"]}, {"dimension": 2})):
        from adaptinf.designs import EpsilonGreedy, LinUCB, Mixture, Thompson

        design = (Thompson(floor=0.1), EpsilonGreedy(), Mixture(LinUCB(), exploration=0.1))[number]
        with Trial.create(path.with_name(f"{number}.db"), design, 2, horizon=9, **options) as trial:
            rehearse(trial)
            assert (trial.status().rows, trial.status().rounds) == (1, 0)
    with made(path, private=True) as trial:
        rehearse(trial)
        assert trial.verify().rows == 1
