"""How long it takes to open a trial of many decisions: from its snapshot, and with all of them made again."""

from __future__ import annotations

import resource
import shutil
import sqlite3
import tempfile
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median

import evidence

import adaptinf as ai
from adaptinf.trial.requests import EVERY

COMMAND = "python docs/evidence/trial_restarts.py"
DECISIONS, QUICK, LIMIT, REPEATS = 1_000_000, 2_000, 5.0, 3
DESIGN = ai.designs.Thompson(floor=0.1)


def filled(path: Path, decisions: int) -> float:
    """Seconds a request, of a trial with as many outcomes as decisions."""
    begun = time.perf_counter()
    with ai.Trial.create(path, DESIGN, ["letter", "call"], horizon=decisions + EVERY) as trial:
        for number in range(decisions):
            made = trial.assign(f"participant {number}", key=f"visit {number}")
            trial.record(made.id, float(number % 3 == 0), key=f"form {number}")
    return (time.perf_counter() - begun) / (2 * decisions)


def lengthened(path: Path) -> int:
    """Rows behind the snapshot, after as many requests as come before the next one."""
    with sqlite3.connect(path) as connection:
        last = connection.execute("SELECT number FROM snapshot_state").fetchone()[0]
    connection.close()
    with ai.Trial.open(path) as trial:
        rows = trial.status().rows
        for number in range(EVERY - 1 - (rows - last)):
            trial.assign(f"late {number}", key=f"late {number}")
        return trial.status().rows - int(last)


def opened(path: Path) -> tuple[float, float, tuple[int, int, int, str]]:
    """Seconds to open a trial, most gigabytes held, and how it stands, in a process of its own."""
    warnings.simplefilter("error", ai.errors.AdaptinfWarning)
    ai.Trial.create(path.with_name("warm.db"), DESIGN, ["a", "b"], horizon=1).close()
    path.with_name("warm.db").unlink()
    begun = time.perf_counter()
    trial = ai.Trial.open(path)
    took = time.perf_counter() - begun
    status = trial.status()
    trial.close()
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return took, held, (status.rounds, status.pending, status.rows, status.head)


def alone(path: Path) -> tuple[float, float, tuple[int, int, int, str]]:
    """`opened`, in a new process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(opened, path).result()


def page(folder: Path, decisions: int) -> tuple[str, float]:
    """The page of all figures, and the longest time that opening from a snapshot took."""
    path, bare = folder / "trial.db", folder / "bare.db"
    request = filled(path, decisions)
    at_once = [alone(path) for _ in range(REPEATS)]
    behind = lengthened(path)
    later = [alone(path) for _ in range(REPEATS)]
    shutil.copy(path, bare)
    with sqlite3.connect(bare) as connection:
        counted = connection.execute("SELECT count(*), sum(length(content)) FROM snapshot_parts")
        parts, held = counted.fetchone()
        connection.executescript("DROP TABLE snapshot_parts; DROP TABLE snapshot_state;")
    connection.close()
    again = alone(bare)
    assert again[2] == later[0][2], "the two do not come to the same"
    rows = again[2][2]
    times = [median(found[0] for found in runs) for runs in (at_once, later, [again])]
    names = ("as it was closed", f"{behind:,} rows behind the snapshot", "without a snapshot")
    lines = [
        f"| {name} | {took:.2f} | {runs[0][1]:.2f} | {took / times[2]:.4f} |"
        for name, took, runs in zip(names, times, (at_once, later, [again]), strict=True)
    ]
    longest = max(found[0] for found in [*at_once, *later])
    text = f"""# Trials: opened again after many decisions

Command: `{COMMAND}`.
Seed: none, coins of trials are fresh. Date: {evidence.stamp()}.

A trial of {decisions:,} decisions with {type(DESIGN).__name__}(floor=0.1), one outcome per decision, and text
for keys and units: {rows:,} rows, {path.stat().st_size / 1e9:.2f} GB, of which the snapshot, in {parts:,}
parts, is {held / 1e6:.0f} MB. It was opened in a new process, {REPEATS} times from the snapshot (the median
is reported) and once with all decisions recomputed, which gave the same rounds, pending outcomes and head.

| opened | seconds | most memory, GB | ratio |
| --- | ---: | ---: | ---: |
{chr(10).join(lines)}

Longest time from a snapshot: **{longest:.2f} s**; at most {LIMIT:g} s are allowed. Recomputing all decisions
takes {times[2] / times[1]:,.0f} times as long as the second row of the table. One request of the trial took
{1e6 * request:.0f} µs with its file in memory, including the snapshots that are written every {EVERY:,} rows;
opening takes as long as {times[1] / request:,.0f} requests, and recomputing all decisions as long as
{times[2] / request:,.0f}.
"""
    return text, longest


def main() -> None:
    """Make the page."""
    options = evidence.parser(__doc__).parse_args()
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        text, longest = page(Path(folder), QUICK if options.quick else DECISIONS)
    evidence.publish(text, __file__, options)
    if longest > LIMIT:
        raise SystemExit(f"OFF: {longest:.2f} s to open")


if __name__ == "__main__":
    main()
