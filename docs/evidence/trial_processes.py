"""One trial used by many processes at once: what is lost, and what each request costs; makes a page.

Every process replays the rows of all others before it answers, so that the processor time of a request grows
with their number. The server and the harness are those of the tests.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import evidence

import adaptinf as ai

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests" / "unit" / "trial")]

from crashes import entries, in_child  # noqa: E402
from postgres_server import programs, server  # noqa: E402

COMMAND = "python docs/evidence/trial_processes.py"
PROCESSES, PAIRS = (1, 2, 4, 32), 960
QUICK_PROCESSES, QUICK_PAIRS = (1, 4), 64
DESIGN = ai.designs.Thompson(floor=0.1)
NAME = "Thompson(floor=0.1)"


def client(place: Any, folder: Path, number: int, pairs: int) -> None:
    """Assign participants and record their outcomes; keep all answers, and the processor time of a pair."""
    answers, trial = [], ai.Trial.open(place)
    (folder / f"{number}.ready").touch()
    while not (folder / "go").exists():
        time.sleep(0.01)
    used = time.process_time()
    for who in range(pairs):
        told = trial.assign(f"unit {number}-{who}", key=f"assign {number}-{who}")
        trial.record(told.id, float(who % 2), key=f"record {number}-{who}")
        answers.append([f"assign {number}-{who}", told.id, told.arm])
    used = time.process_time() - used
    (folder / f"{number}.json").write_text(json.dumps([used, answers]), encoding="utf-8")


def shared(place: Any, folder: Path, processes: int, pairs: int) -> dict[str, float]:
    """What became of a trial that so many processes used at once."""
    folder.mkdir()
    ai.Trial.create(place, DESIGN, ["a", "b"], horizon=pairs).close()
    each = pairs // processes
    children = [in_child(partial(client, place, folder, number, each)) for number in range(processes)]
    while len(list(folder.glob("*.ready"))) < processes:
        time.sleep(0.05)
    begun = time.perf_counter()
    (folder / "go").touch()
    failed = sum(os.waitpid(child, 0)[1] != 0 for child in children)
    took = time.perf_counter() - begun
    told = [json.loads(file.read_text(encoding="utf-8")) for file in folder.glob("*.json")]
    rows = entries(place)
    stored = [row for row in rows if row["kind"] == "assign"]
    keyed = {row["key"]: [row["key"], row["round"], row["arm"]] for row in stored}
    answers = [answer for _, its in told for answer in its]
    with ai.Trial.open(place) as trial:
        assert trial.verify().rounds == len(stored)
    return {
        "lost": failed + sum(keyed.get(answer[0]) != answer for answer in answers),
        "twice": len(rows) - 1 - 2 * len(keyed),
        "cost": 1e3 * sum(used for used, _ in told) / (2.0 * each * processes),
        "rate": 2.0 * each * processes / took,
    }


def page(folder: Path, processes: tuple[int, ...], pairs: int, command: str) -> str:
    """The page."""
    rows, faults = [], 0
    with ai.Trial.create(folder / "warm.db", DESIGN, ["a", "b"], horizon=2) as trial:
        trial.record(trial.assign("one", key="one").id, 0.0, key="its outcome")
    # What is compiled and loaded above, no client has to load.
    kinds = {"SQLite": lambda: folder / f"{len(rows)}.db", "PostgreSQL": lambda: server().database()}
    for kind, made in kinds.items():
        first = 0.0
        for count in processes:
            found = shared(made(), folder / f"{kind} {count}", count, pairs)
            first = first or found["cost"]
            faults += int(found["lost"] + found["twice"])
            figures = [count, found["lost"], found["twice"]]
            cells = [kind, *(f"{figure:.0f}" for figure in figures), f"{found['cost']:.2f}"]
            cells += [f"{found['cost'] / first:.1f}", f"{found['rate']:.0f}"]
            rows.append(f"| {' | '.join(cells)} |")
    table = "\n".join(rows)
    return f"""# One trial, many processes

Command: `{command}`. Seed: none, coins of trials are fresh. Date: {evidence.stamp()}.

{pairs:,} participants of a trial of {NAME} are assigned, and their outcomes recorded, by the stated number of
processes at once, each of which opens the trial itself. A request is an assignment or an outcome. Processor
time is that of all processes, excluding the database server. Answers lost or changed, or requests stored
twice: **{faults}**.

| database | processes | lost or changed | twice | ms of processor a request | ratio | requests a second |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
{table}

Every process reads and recomputes the rows that the others wrote, before it answers: this reveals immediately
if another process decides differently, and costs processor time in proportion to the number of processes.
Requests wait for one another in any case, so more processes do not answer more requests. If many programs use
one trial, let one process [serve](../theory/trial_service.md) it: it stores requests that arrive together in
one write, and recomputes nothing. The number of requests per second depends on the other work of the machine.
"""


def main() -> None:
    """Make the page."""
    options = evidence.parser(__doc__).parse_args()
    if programs() is None:
        raise SystemExit("PostgreSQL is not installed")
    sizes = (QUICK_PROCESSES, QUICK_PAIRS) if options.quick else (PROCESSES, PAIRS)
    with tempfile.TemporaryDirectory() as folder:
        text = page(Path(folder), *sizes, f"{COMMAND} --quick" if options.quick else COMMAND)
    evidence.publish(text, __file__, options)
    if "stored twice:\n**0**" not in text:
        raise SystemExit("OFF: an answer was lost, or a request stored twice")


if __name__ == "__main__":
    main()
