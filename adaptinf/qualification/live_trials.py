"""A live trial on this machine, which is killed, reopened and verified; and the storage of its file."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from adaptinf import designs
from adaptinf.errors import AdaptinfError
from adaptinf.qualification.rows import Known
from adaptinf.trial import Trial

KILLS, ANSWERS, HORIZON = 3, 6, 1_000
_PART = "Live trials"
_KEPT = "every answer kept; verified from the first row"
_SYNCED = "journal_mode wal, synchronous 2, secure_delete 1"
_PROGRAM = """
import sys
from adaptinf.trial import Trial
path, first = sys.argv[1], int(sys.argv[2])
with Trial.open(path) as trial:
    for number in range(first, first + 200):
        made = trial.assign(f"participant {number}", key=f"assign {number}")
        trial.record(made.id, float(number % 2), key=f"record {number}")
        print(made.id, made.arm, flush=True)
"""


def trial_tests() -> Iterator[Known]:
    """Tests of a trial in a temporary folder."""
    yield Known(
        _PART,
        f"A process that assigns and records is killed {KILLS} times in mid-request",
        "every answer that was printed before a kill must be in the file",
        _killed,
        _KEPT,
    )
    yield Known(
        _PART,
        "SQLite writes a commit to the disk before it returns",
        "https://www.sqlite.org/pragma.html: 2 is FULL",
        _pragmas,
        _SYNCED,
    )


def _killed() -> str:
    """The state of a trial whose process was killed repeatedly."""
    with tempfile.TemporaryDirectory(prefix="adaptinf-qualify-") as folder:
        path = Path(folder, "trial.db")
        Trial.create(path, designs.Thompson(floor=0.1), ["a", "b"], HORIZON).close()
        answers: dict[int, tuple[int, str]] = {}
        for kill in range(KILLS):
            answers |= _answers_until_killed(path, 200 * kill)
        with Trial.open(path) as trial:
            lost = [
                number
                for number, (decision, arm) in answers.items()
                if _again(trial, number) != (decision, arm)
            ]
            trial.verify()
    return f"{len(lost)} answers lost" if lost else _KEPT


def _again(trial: Trial, number: int) -> tuple[int, str]:
    """The answer to a repeated request."""
    made = trial.assign(f"participant {number}", key=f"assign {number}")
    return made.id, str(made.arm)


def _answers_until_killed(path: Path, first: int) -> dict[int, tuple[int, str]]:
    """Decisions that a process printed before it was killed, by participant."""
    command = [sys.executable, "-c", _PROGRAM, str(path), str(first)]
    searched = os.pathsep.join(place for place in sys.path if place)
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": searched}
    )
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(ANSWERS)]
    process.kill()
    rest, _ = process.communicate()
    whole = "".join(lines) + rest
    printed = [line.split() for line in whole[: whole.rfind("\n") + 1].splitlines()]
    if len(printed) < ANSWERS:
        raise AdaptinfError("the process that assigns ended before it was killed")
    return {number: (int(made), arm) for number, (made, arm) in enumerate(printed, first)}


def _pragmas() -> str:
    """Settings of the connection that a trial uses."""
    from adaptinf.trial.databases.sqlite_file import SqliteFile

    with tempfile.TemporaryDirectory(prefix="adaptinf-qualify-") as folder:
        path = Path(folder, "trial.db")
        Trial.create(path, designs.Thompson(), 2, HORIZON).close()
        with closing(SqliteFile(path).opened(create=False)) as driver:
            names = "journal_mode", "synchronous", "secure_delete"
            return ", ".join(f"{name} {_pragma(driver, name)}" for name in names)


def _pragma(driver: Any, name: str) -> Any:
    return driver.execute(f"PRAGMA {name}").fetchone()[0]


def disk_facts() -> Iterator[tuple[str, str]]:
    """The database library, and the time that the disk takes for a write."""
    yield "SQLite", sqlite3.sqlite_version
    with tempfile.NamedTemporaryFile() as file:
        times = []
        for _ in range(21):
            begun = time.perf_counter()
            os.write(file.fileno(), b"x" * 512)
            os.fsync(file.fileno())
            times.append(time.perf_counter() - begun)
    yield "Synchronised write", f"{1e3 * sorted(times)[10]:.3f} ms in the temporary folder"
