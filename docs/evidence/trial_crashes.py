"""Trials whose processes are killed, whose files are damaged, and that many write to: makes a page.

The harness is imported from tests/, so the figures are those of the very code that the tests run.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

import evidence
import numpy as np

import adaptinf as ai
from adaptinf.trial import requests
from adaptinf.trial import trial_noise as nodes

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests" / "unit" / "trial")]

from crashes import (  # noqa: E402
    EVERY,
    NAMES,
    SELDOM,
    Scenario,
    arm,
    crashed_run,
    entries,
    fate,
    flipped,
    in_child,
    named_noise,
)
from system_calls import CALLS, arm_call, library  # noqa: E402

SEED = 20261125
Answer = TypeVar("Answer")
COMMAND = "python docs/evidence/trial_crashes.py"
KILLS, FLIPS, PEOPLE, STARTS, WORKERS, TIMED = 10_000, 2_000, 20_000, 32, 4, 1_000
QUICK = {"kills": 60, "flips": 60, "people": 200, "starts": 4, "workers": 1, "timed": 50}
PARTICIPANTS = 16
DESIGNS = {
    "Thompson(floor=0.1)": ai.designs.Thompson(floor=0.1),
    "Mixture(UCB())": ai.designs.Mixture(ai.designs.UCB()),
    "Mixture(LinUCB())": ai.designs.Mixture(ai.designs.LinUCB()),
    "Mixture(DPConSE(epsilon=1, first_window=4))": ai.designs.Mixture(
        ai.designs.DPConSE(epsilon=1.0, first_window=4)
    ),
}
WINDOWS = {"Mixture(DPConSE(epsilon=1, first_window=4))": 2}
"""Outcome windows of private designs."""


def killed(job: tuple[Path, int, int]) -> tuple[Counter[str], int]:
    """Kills by where they struck, and trials; every trial ended as one that nothing stopped."""
    folder, wanted, seed = job
    rng, counts, trials = np.random.default_rng(seed), Counter[str](), 0
    nodes.draw_node = named_noise
    places: list[tuple[str, int, Callable[[int], None]]] = [
        (name, 2 if name.endswith(SELDOM) else 6, lambda count, point=point: arm(point, count))
        for point, name in enumerate(NAMES)
    ]
    if library() is not None:
        places += [
            (f"SQLite's {name}", most, lambda count, name=name: arm_call(name, count))
            for name, most in CALLS.items()
        ]
    while counts.total() < wanted:
        struck: list[str] = []

        def plan(struck: list[str] = struck) -> Callable[[], None]:
            name, most, prepare = places[int(rng.integers(len(places)))]
            count = int(rng.integers(1, most + 1))
            struck.append(name)
            return lambda: prepare(count)

        name = list(DESIGNS)[trials % len(DESIGNS)]
        crashed_run(folder, DESIGNS[name], PARTICIPANTS, rng, plan, struck, WINDOWS.get(name))
        counts.update(name for name in struck if name)
        trials += 1
    return counts, trials


def damage(folder: Path, wanted: int) -> tuple[Counter[str], Counter[str], int]:
    """Fates of files with a changed bit; of write-ahead logs with one, against a head; bytes of the file."""
    path, place, rng = folder / "whole.db", folder / "flipped.db", np.random.default_rng(SEED)
    requests.EVERY = EVERY
    warnings.simplefilter("ignore", ai.errors.AdaptinfWarning)  # of damaged snapshots
    with ai.Trial.create(path, DESIGNS["Thompson(floor=0.1)"], ["a", "b", "c"], horizon=40) as trial:
        for number in range(40):
            told = trial.assign(f"participant {number}", key=f"assign {number}")
            if number % 5:
                trial.record(told.id, float(number % 2), key=f"record {number}")
        trial.remove_arm("b", key="remove", reason="for safety", by="a monitor")
        for number in (7, 30):
            why = {"reason": "asked for", "by": "a monitor"}
            trial.erase(f"participant {number}", key=f"erase {number}", **why)
        trial.unblind("participant 3", reason="an emergency", by="a monitor")
        head = trial.status().head
        for name in ("db", "db-wal"):
            shutil.copyfile(folder / f"whole.{name}", folder / f"open.{name}")
    rows = entries(path)
    fates: Counter[str] = Counter()
    for bit in rng.integers(0, 8 * path.stat().st_size, size=wanted).tolist():
        flipped(path, place, bit)
        fates[fate(place, rows)] += 1
    ahead: Counter[str] = Counter()
    wal = folder / "open.db-wal"
    for bit in rng.integers(0, 8 * wal.stat().st_size, size=wanted // 10).tolist():
        shutil.copyfile(folder / "open.db", place)
        flipped(wal, folder / "flipped.db-wal", bit)
        ahead[fate(place, rows, head)] += 1
    return fates, ahead, path.stat().st_size


def insisted(request: Callable[..., Answer], *given: float, key: int) -> Answer:
    """The answer to a request that is sent again with its key where the file was held for too long."""
    while True:
        try:
            return request(*given, key=key)
        except ai.errors.FileError:
            continue


def side_by_side(folder: Path, people: int, workers: int) -> tuple[float, int]:
    """Requests a second of some processes on one trial, and rows; rounds have no gap, and replay agrees."""
    path = folder / "many.db"
    ai.Trial.create(path, DESIGNS["Thompson(floor=0.1)"], ["a", "b"], horizon=people).close()

    def work(worker: int) -> None:
        with ai.Trial.open(path) as trial:
            for number in range(worker, people, workers):
                told = insisted(trial.assign, number, key=2 * number)
                insisted(trial.record, told.id, float(number % 3 == 0), key=2 * number + 1)

    begun = time.perf_counter()
    children = [in_child(lambda worker=worker: work(worker)) for worker in range(workers)]
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    took = time.perf_counter() - begun
    assert codes == [0] * workers
    rounds = [row["round"] for row in entries(path) if row["kind"] == "assign"]
    assert rounds == list(range(1, people + 1))
    with ai.Trial.open(path) as trial:
        status = trial.verify()
    assert (status.rounds, status.pending) == (people, 0)
    return 2 * people / took, status.rows


def speed(folder: Path, requests: int) -> dict[str, float]:
    """Milliseconds of one synchronisation of the disk, draw of noise, request alone and in a group, also of a
    private design, and row of `open`; and how many nodes a participant of the private design draws."""
    from adaptinf.sessions.steppers import draw_node

    found, numbers = {}, list(range(requests))

    def timed(name: str, work: Callable[[], object], times: int = requests) -> None:
        begun = time.perf_counter()
        work()
        found[name] = 1e3 * (time.perf_counter() - begun) / times

    with (folder / "synced").open("wb", buffering=0) as file:
        timed("synced", lambda: [(file.write(bytes(4_096)), os.fdatasync(file.fileno())) for _ in numbers])
    draw_node("first", 2.0**21)
    timed("draw", lambda: [draw_node("node", 2.0**21) for _ in numbers])
    design = DESIGNS["Thompson(floor=0.1)"]
    with ai.Trial.create(folder / "speed.db", design, ["a", "b"], horizon=2 * requests) as trial:
        timed("alone", lambda: [trial.assign(number, key=number) for number in numbers])
        later = [requests + number for number in numbers]
        timed("grouped", lambda: trial.assign_many(later, keys=later))
        tells = [f"record {number}" for number in numbers]
        timed("told", lambda: trial.record_many([n + 1 for n in numbers], [1.0] * requests, keys=tells))
        rows = trial.status().rows
    timed("opened", lambda: ai.Trial.open(folder / "speed.db").close(), rows)
    private = ai.designs.Mixture(ai.designs.PrivateUCB(epsilon=1.0))
    with ai.Trial.create(folder / "private.db", private, 2, horizon=requests, outcome_window=0) as trial:
        timed("private", lambda: trial.assign_many(numbers, keys=numbers))
        found["drawn"] = sum(row["kind"] == "node" for row in entries(folder / "private.db")) / requests
    return found


def page(folder: Path, disk: Path, sizes: dict[str, int]) -> str:
    """The page of all figures."""
    workers = sizes["workers"]
    jobs = [
        (folder / f"kills{worker}", sizes["kills"] // workers, SEED + worker) for worker in range(workers)
    ]
    for place, _, _ in jobs:
        place.mkdir()
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        many = pool.submit(side_by_side, folder, sizes["people"], 4)
        damaged = pool.submit(damage, folder, sizes["flips"])
        found = list(pool.map(killed, jobs))
        fates, ahead, size = damaged.result()
        each_second, rows = many.result()
    counts, trials = sum((part for part, _ in found), Counter[str]()), sum(made for _, made in found)
    side_by_side(folder / "starts", sizes["starts"] * 2, sizes["starts"])
    took = speed(disk, sizes["timed"])
    group = "a draw and .25 ms", took["draw"] + 0.25
    allowed = {
        "`assign`": ("alone", "3 synchronisations and 1 ms", 3 * took["synced"] + 1),
        "one of `assign_many`": ("grouped", *group),
        "one of `record_many`": ("told", *group),
        "one of `assign_many`, private": (
            "private",
            "its draws and .25 ms",
            took["drawn"] * took["draw"] + 0.25,
        ),
    }
    speeds = "\n".join(
        f"| {name} | {took[kind]:.3f} | {what}: {most:.3f} | {took[kind] / most:.2f} |"
        for name, (kind, what, most) in allowed.items()
    )
    erased = Scenario(PARTICIPANTS, []).erased(10**6)
    lines = [f"| {name} | {count:,} |" for name, count in counts.items()]
    unnoticed = fates["unnoticed"] + ahead["unnoticed"]
    return f"""# Trials: kills, damaged files, processes side by side

Command: `{COMMAND} --kills {sizes["kills"]} --people {sizes["people"]}`.
Seed: {SEED}, for kills and damage; the coins of trials are new in every run. Date: {evidence.stamp()}.

| | number |
| --- | ---: |
| kills | {counts.total():,} |
| trials that were not as if nothing had stopped them | 0 |
| changed bits that went unnoticed and changed a row | {unnoticed} |

## Kills

{counts.total():,} `kill -9` of forked processes during requests to {trials:,} trials of {PARTICIPANTS}
participants, with {", ".join(DESIGNS)} in turn. Outcomes arrive two participants late, one of three arms is
removed half-way, half of the outcomes are amended, and {len(erased)} participants are erased, one of them
while the outcome is pending; the last two designs use contexts. The last one is private, with a window: no
arm is removed, participants' data are erased when their window ends, and the noise of a node is a function of
its name, so that two runs can be compared; each node has one row. Each process opens the trial and sends the
requests that have not been answered; in three of ten cases, it first repeats a request that was answered. A
kill occurs before or after a named step, or at one of SQLite's system calls during a commit or a recovery, so
that a write may be incomplete. Snapshots are written every {EVERY} rows, and processes use them to open the
trial. After every kill, earlier answers must be repeated; at the end, answers, rows and log must equal those
of a copy of the file that ran undisturbed with the same coins, `verify` must pass, and the files must not
contain the names and keys of erased participants. The script ends with an error if anything differs. Files
are in memory, so kills do not test power loss; a separate test traces system calls to check that each row is
on disk before its answer is given.

| where | kills |
| --- | ---: |
{chr(10).join(sorted(lines))}

## Damaged files

Single bits in the file of a finished trial, of {size:,} bytes, including its snapshot, are drawn at random
and changed; in this trial, an arm was removed and two participants were erased. Either `open` or `verify`
reports the change, or all rows that are read are identical (the bit is not used, or the snapshot was
recreated from the rows). Bits in the write-ahead log of an open trial are changed as well; a row that is lost
in this way is detected by comparison with the head of the trial.

| file | bits | detected | identical | unnoticed |
| --- | ---: | ---: | ---: | ---: |
| trial.db | {fates.total():,} | {fates["detected"]:,} | {fates["identical"]:,} | {fates["unnoticed"]} |
| trial.db-wal | {ahead.total():,} | {ahead["detected"]:,} | {ahead["identical"]:,} | {ahead["unnoticed"]} |

## Processes side by side

Four processes assigned {sizes["people"]:,} participants and recorded their outcomes, {each_second:,.0f}
requests per second in total, while other parts of this script were running: rounds 1 to {sizes["people"]:,}
without a gap, {rows:,} rows, and every decision could be recomputed from them. If {sizes["starts"]} processes
start simultaneously on one trial, all of them succeed. A client that has waited for the others for a minute
sends its request again with its key.

## Speed

The table shows the time of one request in milliseconds, on the disk of a machine that was also doing other
work; in the same run, a synchronised write took {took["synced"]:.3f} ms, and a draw by OpenDP
{took["draw"]:.3f} ms. The answer is sent after the commit. Groups consist of {sizes["timed"]:,} requests. The
private design draws {took["drawn"]:.2f} nodes per participant. `open` took {1e3 * took["opened"]:.0f} µs per
row.

| request | ms | allowed | ratio |
| --- | ---: | --- | ---: |
{speeds}
"""


def main() -> None:
    """Make the page."""
    parser = evidence.parser(__doc__)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--people", type=int, default=PEOPLE)
    options = parser.parse_args()
    asked = {"kills": options.kills, "people": options.people}
    full = {**asked, "flips": FLIPS, "starts": STARTS, "workers": WORKERS, "timed": TIMED}
    memory = Path("/dev/shm")
    with (
        tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder,
        tempfile.TemporaryDirectory() as disk,
    ):
        (Path(folder) / "starts").mkdir()
        text = page(Path(folder), Path(disk), QUICK if options.quick else full)
    evidence.publish(text, __file__, options)
    for row in ("trials that were not as if", "changed bits that went unnoticed"):
        line = next(line for line in text.splitlines() if row in line)
        if not line.endswith("| 0 |"):
            raise SystemExit(f"OFF: {line}")


if __name__ == "__main__":
    main()
