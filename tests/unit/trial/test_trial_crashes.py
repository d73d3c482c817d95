"""Kills, damaged files, processes side by side: what was answered is kept, and nothing counts twice."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from crashes import NAMES, POINTS, SELDOM, STEPS, arm, crashed_run, entries, fate, flipped, in_child
from system_calls import CALLS, arm_call, library

import adaptinf as ai
from adaptinf.designs import Thompson
from adaptinf.errors import JournalError
from adaptinf.trial.journal import Journal
from adaptinf.trial.sealing import Sealing

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")


def made(path: Path, participants: int) -> str:
    """A trial of some participants, every other outcome 1; its head."""
    with ai.Trial.create(path, Thompson(), ["a", "b"], horizon=participants) as trial:
        for number in range(participants):
            decision = trial.assign(number, key=f"assign {number}")
            trial.record(decision.id, float(number % 2), key=f"record {number}")
        return trial.status().head


@pytest.mark.slow
def test_a_kill_at_any_step_of_any_request_loses_nothing_and_counts_nothing_twice(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    order = [
        (point, count)
        for point, name in enumerate(NAMES)
        for count in ((1, 2) if name.endswith(SELDOM) else (1, 2, 3))
    ]
    wanted, kills, planned = len(order), 0, 0
    while order:

        def plan():
            if not order:
                return lambda: None
            point, count = order.pop()
            return lambda: arm(point, count)

        planned = len(order)
        kills += crashed_run(tmp_path, Thompson(floor=0.1), 8, rng, plan)
    assert planned < wanted
    assert kills >= 2.5 / 3.0 * wanted


@pytest.mark.slow
@pytest.mark.skipif(library() is None, reason="SQLite is a part of Python here")
def test_a_kill_inside_a_commit_loses_nothing_and_counts_nothing_twice(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    order = [(name, count) for name in CALLS for count in (1, 2, 17)]

    def plan():
        if not order:
            return lambda: None
        name, count = order.pop()
        return lambda: arm_call(name, count)

    kills = 0
    while order:
        kills += crashed_run(tmp_path, Thompson(floor=0.1), 12, rng, plan)
    assert kills >= 12


def test_an_answer_before_its_row_is_seen_as_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The harness notices a journal that does not commit."""
    monkeypatch.setattr(Journal, "commit", Journal.rollback)
    with pytest.raises(Exception, match=r".+"):
        crashed_run(tmp_path, Thompson(), 4, np.random.default_rng(1), lambda: lambda: arm(0, 3))


def test_a_kill_while_a_trial_is_made_leaves_all_of_it_or_none(tmp_path: Path) -> None:
    left = []
    for number, (owner, name, when) in enumerate(POINTS):
        if owner is not Journal or name in ("news", "purge"):
            continue
        path = tmp_path / f"{number}.db"

        def work(point: int = number, path: Path = path) -> None:
            arm(point, 1)
            ai.Trial.create(path, Thompson(), 2, horizon=5)

        os.waitpid(in_child(work), 0)
        try:
            ai.Trial.open(path).close()
            left.append(when)
        except ai.errors.FileError:
            ai.Trial.create(path, Thompson(), 2, horizon=5).close()
            left.append("nothing")
        assert len(entries(path)) == 1
    assert sorted(left) == ["after", *["nothing"] * (len(left) - 1)]
    assert len(STEPS) == 13


@pytest.mark.slow
def test_a_changed_bit_is_detected_or_changes_no_row(tmp_path: Path) -> None:
    source, rng = tmp_path / "source.db", np.random.default_rng(3)
    made(source, 12)
    with ai.Trial.open(source) as trial:
        trial.remove_arm("a", key="remove", reason="for safety", by="a monitor")
        trial.erase(3, key="erase", reason="asked for", by="a monitor")
    rows = entries(source)
    fates = []
    for bit in rng.integers(0, 8 * source.stat().st_size, size=150).tolist():
        flipped(source, tmp_path / "flipped.db", bit)
        fates.append(fate(tmp_path / "flipped.db", rows))
    assert set(fates) == {"detected", "identical"}


def test_a_damaged_name_in_what_sqlite_says_is_told(tmp_path: Path) -> None:
    path = tmp_path / "trial.db"
    made(path, 4)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"CREATE TABLE journal", b"CREATE \xccABLE journal"))
    with pytest.raises(JournalError, match="is damaged"):
        ai.Trial.open(path)


def test_rows_that_are_cut_off_are_seen_against_a_head_that_was_kept(tmp_path: Path) -> None:
    path = tmp_path / "trial.db"
    head = made(path, 4)
    with ai.Trial.open(path) as trial:
        early = trial.backup(tmp_path / "early.db")
        assert early is None
        assert trial.verify(head).head == head
        trial.pause("for the night")
        assert trial.verify(head).rows == 10
        late = trial.status().head
    with ai.Trial.open(tmp_path / "early.db") as old:
        assert old.verify().rows == 9
        with pytest.raises(JournalError, match="rows were lost or changed"):
            old.verify(late)


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("DELETE FROM journal WHERE number = 4", "row 4 is missing"),
        ("UPDATE journal SET entry = replace(entry, '1.0', '0.0') WHERE number = 5", "row 5 does not follow"),
        ("UPDATE journal SET entry = x'00' WHERE number = 3", "row 3 does not follow"),
        ("UPDATE journal SET digest = 7 WHERE number = 2", "row 2 does not follow"),
        ("UPDATE journal SET number = 99 WHERE number = 9", "row 9 is missing"),
        ("DROP TABLE journal", "contains no trial"),
    ],
)
def test_rows_that_others_changed_are_named(tmp_path: Path, statement: str, problem: str) -> None:
    path = tmp_path / "trial.db"
    made(path, 4)
    journal = Journal(path)
    journal.begin()
    journal.connection.exec_driver_sql(statement)
    journal.commit()
    journal.close()
    with pytest.raises((JournalError, ai.errors.FileError), match=problem):
        ai.Trial.open(path)


def test_a_chain_made_anew_over_another_decision_is_found_by_replay(tmp_path: Path) -> None:
    path, forged = tmp_path / "trial.db", tmp_path / "forged.db"
    made(path, 6)
    rows = entries(path)
    assert rows[9]["kind"] == "assign"
    rows[9]["arm"] = {"a": "b", "b": "a"}[rows[9]["arm"]]
    journal = Journal(forged, create=True)
    sealing = Sealing(journal)
    journal.start(rows[0], sealing.start)
    for number, row in enumerate(rows[1:], 2):
        journal.begin()
        journal.append(sealing.sealed(number, row))
        journal.commit()
    journal.close()
    with pytest.raises(JournalError, match="row 10 differs from what its design decides"):
        ai.Trial.open(forged)


@pytest.mark.slow
def test_processes_side_by_side_leave_no_gap_and_agree(tmp_path: Path) -> None:
    path, workers, each = tmp_path / "trial.db", 4, 40
    ai.Trial.create(path, Thompson(), ["a", "b"], horizon=workers * each).close()

    def work(worker: int) -> None:
        with ai.Trial.open(path) as trial:
            for number in range(each):
                decision = trial.assign(f"{worker}-{number}", key=f"assign {worker} {number}")
                trial.record(decision.id, float(number % 2), key=f"record {worker} {number}")

    children = [in_child(lambda worker=worker: work(worker)) for worker in range(workers)]
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * workers
    rows = entries(path)
    assert [row["round"] for row in rows if row["kind"] == "assign"] == list(range(1, workers * each + 1))
    with ai.Trial.open(path) as trial:
        assert trial.verify().pending == 0
        assert sorted(trial.log().units) == sorted(f"{w}-{n}" for w in range(workers) for n in range(each))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_the_disk_has_each_answer_before_it_is_given(tmp_path: Path) -> None:
    script = (
        "import os, sys, adaptinf as ai\n"
        "trial = ai.Trial.create(sys.argv[1], ai.designs.Uniform(), 2, horizon=9)\n"
        "for n in range(6):\n"
        "    told = trial.assign(n, key=2 * n); os.write(1, b'answer')\n"
        "    trial.record(told.id, 1.0, key=2 * n + 1); os.write(1, b'answer')\n"
    )
    calls = "trace=pwrite64,write,fdatasync,fsync"
    trace, path = tmp_path / "trace", tmp_path / "trial.db"
    command = ["strace", "-f", "-y", "-s", "16", "-e", calls, "-o", str(trace), sys.executable, "-c", script]
    done = subprocess.run([*command, str(path)], capture_output=True, text=True, check=False, timeout=120)
    if done.returncode and "ptrace" in done.stderr:
        pytest.skip("processes may not be traced here")
    assert done.stdout == "answer" * 12, done.stderr
    wal, synced, answers = re.escape(f"{path}-wal"), True, 0
    for line in trace.read_text().splitlines():
        if re.search(rf"pwrite64\(\d+<{wal}>", line):
            synced, written = False, True
        elif re.search(rf"f(?:data)?sync\(\d+<{wal}>\)\s+= 0", line):
            synced = True
        elif '"answer"' in line:
            assert synced
            assert written
            answers, written = answers + 1, False
    assert answers == 12
