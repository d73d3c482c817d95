"""Processor time of requests to a trial's file, beside SQLite transactions of the same rows, within one run.

``python tests/benchmarks/bench_trial.py`` prints the figures, ``pytest tests/benchmarks/bench_trial.py``
asserts the ratios. With ``--against FOLDER``, another version of the library (a work tree) takes turns with
this one. Each version has a process of its own; what is compared takes turns in lots of requests, and the
median of the lots counts.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.benchmark

NAMES = ("Thompson", "PrivateUCB", "DPConSE")
KINDS = ("assign", "record", "assign_many", "record_many")
"""Each lot has all four in this order; the two groups are of the size of the lot."""
LOTS, SIZE, GROUPS = 15, 100, ["f", "m"]
HERE = Path(__file__).resolve().parents[2]
MOST = {"assign": 8.0, "record": 8.0, "assign_many": 2.0, "record_many": 2.0}
"""Most that a request may take, in transactions of SQLite alone that write one request."""
MOST_DRAWS = 3
"""Draws of noise that a request to a private design may take in addition."""


# --- the process of a version ----------------------------------------------------------------------------


def designs() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Designs, with what their trial declares."""
    import adaptinf as ai

    ucb, conse = ai.designs.PrivateUCB(epsilon=1.0), ai.designs.DPConSE(epsilon=1.0, first_window=16)
    return {
        "Thompson": (ai.designs.Thompson(floor=0.1), {}),
        "PrivateUCB": (ai.designs.Mixture(ucb, exploration=0.2), {"outcome_window": 2}),
        "DPConSE": (ai.designs.Mixture(conse, exploration=0.2), {"outcome_window": 2, "features": GROUPS}),
    }


class Lots:
    """A trial that takes one lot of requests after another."""

    def __init__(self, name: str, folder: Path) -> None:
        import adaptinf as ai

        design, declared = designs()[name]
        self.path, self.grouped = folder / f"{name}.db", "features" in declared
        horizon = 2 * SIZE * (LOTS + 2)
        self.trial = ai.Trial.create(self.path, design, ["a", "b"], horizon=horizon, **declared)
        self.came = 0
        self.ids: list[int] = []

    def newcomers(self) -> list[tuple[str, str | None, str]]:
        """Units, contexts and keys of those who come next."""
        numbers = range(self.came, self.came + SIZE)
        self.came += SIZE
        return [(f"participant {n}", GROUPS[n % 2] if self.grouped else None, f"visit {n}") for n in numbers]

    def send(self, kind: str) -> float:
        """Milliseconds of processor a request of one lot."""
        if kind.startswith("assign"):
            units, contexts, keys = map(list, zip(*self.newcomers(), strict=True))
        ids, rewards = self.ids, [float(number % 3 == 0) for number in self.ids]
        begun = time.process_time()
        if kind == "assign":
            made = [self.trial.assign(u, c, key=k) for u, c, k in zip(units, contexts, keys, strict=True)]
        elif kind == "assign_many":
            made = self.trial.assign_many(units, contexts if self.grouped else None, keys=keys)
        elif kind == "record":
            for number, reward in zip(ids, rewards, strict=True):
                self.trial.record(number, reward, key=f"form {number}")
        else:
            self.trial.record_many(ids, rewards, keys=[f"form {number}" for number in ids])
        took = time.process_time() - begun
        if kind.startswith("assign"):
            self.ids = [one.id for one in made]
        return 1e3 * took / SIZE


class Bare:
    """The rows that a trial wrote for one lot, written again by SQLite alone to a file of the same layout."""

    def __init__(self, source: Path, place: Path) -> None:
        place.touch(0o600)
        self.source = sqlite3.connect(source, isolation_level=None)
        self.file = sqlite3.connect(place, isolation_level=None)
        for setting in ("synchronous = FULL", "cell_size_check = ON", "secure_delete = ON"):
            self.file.execute(f"PRAGMA {setting}")
        self.file.execute("PRAGMA journal_mode = WAL")
        for (statement,) in self.source.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL"):
            self.file.execute(statement)
        self.rows, self.secrets = 0, -1

    def send(self, kind: str) -> float:
        """Milliseconds a request to write what the trial has written since, in as many transactions."""
        rows = self.source.execute("SELECT * FROM journal WHERE number > ?", (self.rows,)).fetchall()
        made = "SELECT * FROM secrets WHERE number > ? ORDER BY number"
        secrets = self.source.execute(made, (self.secrets,)).fetchall()
        self.rows, self.secrets = rows[-1][0], max([self.secrets, *(number for number, _ in secrets)])
        count = 1 if kind.endswith("many") else SIZE
        ends = [round(len(rows) * (n + 1) / count) for n in range(count)]
        keys = [round(len(secrets) * (n + 1) / count) for n in range(count)]
        lots = [
            (rows[a:b], secrets[c:d]) for a, b, c, d in zip([0, *ends], ends, [0, *keys], keys, strict=False)
        ]
        begun = time.process_time()
        for entries, sealed in lots:
            self.file.execute("BEGIN IMMEDIATE")
            self.file.executemany("INSERT INTO secrets VALUES (?, ?)", sealed)
            self.file.executemany("INSERT INTO journal VALUES (?, ?, ?)", entries)
            self.file.commit()
        return 1e3 * (time.process_time() - begun) / SIZE


def serve(name: str, folder: Path) -> None:
    """Answer each line of input, a kind, by milliseconds a request of the trial and of SQLite alone."""
    warnings.simplefilter("ignore")
    lots = Lots(name, folder)
    bare = Bare(lots.path, folder / "bare.db")
    for line in sys.stdin:
        kind = line.strip()
        took = [lots.send(kind), bare.send(kind)]
        sys.stdout.write(f"{json.dumps(took)}\n")
        sys.stdout.flush()
    lots.trial.verify()
    lots.trial.close()


# --- versions by turns -----------------------------------------------------------------------------------


def child(name: str, version: Path, folder: str) -> subprocess.Popen[str]:
    """The process of a version."""
    environment = {**os.environ, "PYTHONPATH": str(version), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--serve", name, folder]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, text=True)


def asked(process: subprocess.Popen[str], kind: str) -> list[float]:
    """The answer of a version's process about one lot."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{kind}\n")
    process.stdin.flush()
    found: list[float] = json.loads(process.stdout.readline())
    return found


@functools.cache
def measured(name: str, versions: tuple[Path, ...], lots: int = LOTS) -> dict[str, list[list[list[float]]]]:
    """Milliseconds of each kind, by version and lot: of the trial and of SQLite alone."""
    with tempfile.TemporaryDirectory() as root:
        folders = [tempfile.mkdtemp(dir=root) for _ in versions]
        processes = [child(name, *each) for each in zip(versions, folders, strict=True)]
        found: dict[str, list[list[list[float]]]] = {kind: [[] for _ in versions] for kind in KINDS}
        for lot in range(lots + 1):
            for kind in KINDS:
                for place, process in enumerate(processes):
                    took = asked(process, kind)
                    if lot:  # the first one loads what is used
                        found[kind][place].append(took)
        for process in processes:
            process.communicate()  # ends its input, and closes its output
            assert process.returncode == 0
    return found


def ratio(ours: list[float], theirs: list[float]) -> float:
    """Median ratio of lots that took turns."""
    return statistics.median(one / other for one, other in zip(ours, theirs, strict=True))


def of(lots: list[list[float]], column: int) -> list[float]:
    """Of each lot the trial's figure (0) or SQLite's (1)."""
    return [lot[column] for lot in lots]


@functools.cache
def draw_milliseconds() -> float:
    """Processor time of a draw of noise."""
    from adaptinf.sessions.steppers import draw_node

    draw_node("", 1e6)
    begun = time.process_time()
    for _ in range(200):
        draw_node("", 1e6)
    return 1e3 * (time.process_time() - begun) / 200


# --- what must hold --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_requests_take_little_more_than_sqlite(name: str, kind: str) -> None:
    found = measured(name, (HERE,))
    one = statistics.median(of(found["assign"][0], 1))
    draws = 0.0 if name == "Thompson" else MOST_DRAWS * draw_milliseconds()
    assert statistics.median(of(found[kind][0], 0)) <= MOST[kind] * one + draws


def report(names: list[str], against: list[Path], lots: int) -> Iterator[str]:
    """Every figure, a line each."""
    draw = f"a draw of noise {draw_milliseconds():.3f} ms"
    yield f"milliseconds of processor a request, medians of {lots} lots of {SIZE} requests; {draw}"
    for name in names:
        found = measured(name, (HERE, *against), lots)
        for kind in KINDS:
            ours = found[kind][0]
            mine, bare = of(ours, 0), of(ours, 1)
            line = f"{name}, {kind}: {statistics.median(mine):.3f}, SQLite alone "
            line += f"{statistics.median(bare):.3f}, ratio {ratio(mine, bare):.2f}"
            for path, lots_there in zip(against, found[kind][1:], strict=True):
                there = of(lots_there, 0)
                line += f"; {path.name} {statistics.median(there):.3f}, ratio {ratio(mine, there):.2f}"
            yield line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, action="append", default=[], help="a work tree")
    parser.add_argument("--design", choices=NAMES, action="append", help="all by default")
    parser.add_argument("--lots", type=int, default=LOTS)
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve[0], Path(options.serve[1]))
        return
    against = [path.resolve() for path in options.against]
    for line in report(options.design or list(NAMES), against, options.lots):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
