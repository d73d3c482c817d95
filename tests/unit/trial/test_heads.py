"""Heads tell nothing of what they stand for: each row has a salt, and a chain that anybody can check."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from adaptinf.designs import Mixture, PrivateUCB, Thompson
from adaptinf.errors import JournalError
from adaptinf.privacy import GRID_UNITS
from adaptinf.privacy.tree_sums import counter_scales, fresh_scale
from adaptinf.sessions.steppers import unit_scale
from adaptinf.trial import Trial, journal

HORIZON, WINDOW = 14, 2
DESIGN = Mixture(PrivateUCB(epsilon=1.0), exploration=0.2)
OUTCOMES = [1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trial.db"


@pytest.fixture
def unsalted(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Rows as the format before had them, until the patch is undone."""
    monkeypatch.setattr(journal, "salted", lambda entry: entry)
    return monkeypatch


def text_of(entry: dict[str, Any]) -> str:
    return json.dumps(entry, separators=(",", ":"))


def chained(head: str, text: str) -> str:
    return hashlib.sha256(f"{head}{text}".encode()).hexdigest()


def guesses(shown: list[int], count: int) -> Iterator[tuple[int, int]]:
    """What outcomes may sum to since the node before, each with the noise of the node at a count.

    `shown` are the released sums of an arm in units, after each of its outcomes; the hybrid counter's noise
    at a count is that at the node before and a fresh one, so that only whole numbers are left to guess.
    """
    inside = count - (1 << count.bit_length() - 1)
    before = count - inside + (inside & (inside - 1)) if inside else count // 2
    fresh = shown[count - 1] - (shown[before - 1] if before else 0)
    for total in range(count - before + 1):
        yield total, fresh - total * GRID_UNITS


def attack(path: Path) -> tuple[list[int] | None, list[int]]:
    """Sums of outcomes that two heads, the public part and the second of the finish give, and the truth."""
    with Trial.create(path, DESIGN, ["a", "b"], horizon=HORIZON, outcome_window=WINDOW) as trial:
        arms = []
        for number, outcome in enumerate(OUTCOMES):
            arms.append(trial.assign(f"unit {number}", key=f"a{number}").arm)
            trial.record(number + 1, outcome, key=f"r{number}")
        before = trial.status().head
        trial.finish("all are in", by="Dr. Ames")
        after, second = trial.status().head, trial.history()[-1].time[:19]
        public = trial.log().public()
    released = [round(value * GRID_UNITS) for value in public.releases["value"].tolist()]
    shown = {arm: [value for value, its in zip(released, arms, strict=True) if its == arm] for arm in "ab"}
    trunk, node = counter_scales("hybrid", 1.0, HORIZON)
    nodes, truth = [], []
    for step in range(HORIZON - WINDOW - 1, HORIZON):
        count = arms[: step + 1].count(arms[step])
        scale = unit_scale(fresh_scale(True, trunk, node, count))
        names = {"kind": "node", "node": f"arm {'ab'.index(arms[step])}, count {count}", "scale": scale}
        nodes.append(
            [(total, {**names, "units": units}) for total, units in guesses(shown[arms[step]], count)]
        )
        inside = count - (1 << count.bit_length() - 1)
        since = count - inside + (inside & (inside - 1)) if inside else count // 2
        own = [outcome for outcome, arm in zip(OUTCOMES, arms, strict=True) if arm == arms[step]]
        truth.append(int(sum(own[since:count])))
    for guess in itertools.product(*nodes):
        head = before
        for _, row in guess:
            head = chained(head, text_of(row))
        for thousandth in range(1_000):
            time = f"{second}.{thousandth:03d}+00:00"
            row = {"kind": "finish", "time": time, "reason": "all are in", "by": "Dr. Ames"}
            if chained(head, text_of(row)) == after:
                return [total for total, _ in guess], truth
    return None, truth


def test_guessing_between_two_heads_gives_the_outcomes_of_rows_without_salt(
    path: Path, unsalted: pytest.MonkeyPatch
) -> None:
    found, truth = attack(path)
    assert found == truth


def test_guessing_between_two_heads_finds_nothing(path: Path) -> None:
    found, truth = attack(path)
    assert found is None
    assert truth


def rows_of(path: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as file:
        return file.execute("SELECT entry, digest FROM journal ORDER BY number").fetchall()


def test_each_row_has_a_salt_of_its_own_and_the_chain_needs_no_secret(path: Path) -> None:
    with Trial.create(path, DESIGN, ["a", "b"], horizon=9, outcome_window=0) as trial:
        trial.assign_many(["x", "y", "z"], keys=[1, 2, 3])
        trial.record(1, 1.0, key="r")
        trial.pause("a batch was bad", by="Dr. Ames")
        last = trial.status().head
    salts, head = [], ""
    for text, digest in rows_of(path):
        head = chained(head, text)
        assert head == digest
        salts.append(json.loads(text)["salt"])
    assert head == last
    assert len(set(salts)) == len(salts) == 8
    assert all(re.fullmatch("[0-9a-f]{32}", salt) for salt in salts)


def test_a_trial_with_the_same_seed_has_other_heads_and_the_same_decisions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adaptinf.trial.trial_setup.fresh_seed", lambda: bytes(32))
    monkeypatch.setattr("adaptinf.trial.requests.now", lambda: "2026-01-01T00:00:00.000+00:00")
    told = []
    for name in ("one", "other"):
        with Trial.create(tmp_path / name, Thompson(), ["a", "b"], horizon=9) as trial:
            arms = [one.arm for one in trial.assign_many(range(9), keys=range(9))]
            trial.pause("for the night")
            told.append(
                (arms, trial.status().head, [json.loads(text) for text, _ in rows_of(tmp_path / name)])
            )
    assert told[0][0] == told[1][0]
    assert told[0][1] != told[1][1]
    assert not {row["salt"] for row in told[0][2]} & {row["salt"] for row in told[1][2]}


def test_a_running_file_without_salts_goes_on_with_them(path: Path, unsalted: pytest.MonkeyPatch) -> None:
    unsalted.setattr("adaptinf.trial.trial_setup.FORMAT", 2)
    with Trial.create(path, Thompson(), ["a", "b"], horizon=9) as trial:
        first = trial.assign_many(["x", "y"], keys=[1, 2])
        old = trial.status().head
    unsalted.undo()
    with Trial.open(path) as trial:
        assert trial.verify(old).rows == 3
        assert trial.assign("y", key=2) == first[1]
        trial.record(1, 1.0, key="r")
        assert trial.verify(old).rows == 4
    assert ["salt" in json.loads(text) for text, _ in rows_of(path)] == [False] * 3 + [True]


def test_digests_made_anew_are_seen_against_a_head_alone(path: Path) -> None:
    with Trial.create(path, Thompson(), ["a", "b"], horizon=9) as trial:
        trial.assign_many(["x", "y"], keys=[1, 2])
        trial.record(1, 1.0, key="r")
        known = trial.status().head
    texts, head = [text.replace('"reward":1.0', '"reward":0.0') for text, _ in rows_of(path)], ""
    with closing(sqlite3.connect(path)) as file:
        for number, text in enumerate(texts, start=1):
            head = chained(head, text)
            file.execute("UPDATE journal SET entry = ?, digest = ? WHERE number = ?", (text, head, number))
        file.commit()
    with Trial.open(path) as trial:
        assert trial.verify().rows == 4
        with pytest.raises(JournalError, match="no row has the head"):
            trial.verify(known)
