"""Run one tool on cells, in the tool's own environment: `python -m case_studies.scoreboard.work TOOL ...`.

One file a tool and cell, written at once when it is complete: what is there is not run again. It needs NumPy
and pyarrow besides the tool.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
import warnings
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

from case_studies.scoreboard.cells import Cell, oracle_error, read_cells, truth
from case_studies.scoreboard.logs import LOGS, Log, read

FAST = 0.003  # seconds of a fit, under which all logs are used
LEAST = 200
TRIED = 10


def place(cache: Path, tool: str, cell: Cell) -> Path:
    """The file of a tool's intervals in a cell."""
    return cache / "found" / tool / f"{cell.cell.replace('/', '-')}-{cell.target}.json"


def enough(seconds: float, budget: float, most: int) -> int:
    """Logs to run if a fit takes so long: all if it is fast, else what the budget allows, at least 200."""
    if seconds <= FAST:
        return most
    return min(most, max(LEAST, int(budget / seconds)))


def empty() -> dict[str, list[Any]]:
    """Lists of what is found for each log."""
    return {name: [] for name in ("low", "high", "truth", "error", "seconds", "warned")}


def add(found: dict[str, list[Any]], cell: Cell, log: Log, answer: Any, seconds: float, warned: bool) -> None:
    """A log's answer: two ends and perhaps the arm, or None."""
    low, high, *named = (math.nan, math.nan) if answer is None else tuple(answer)
    arm = int(named[0]) if named else log.arm
    bad = math.isnan(low) or math.isnan(high)
    found["low"].append(None if bad else float(low))
    found["high"].append(None if bad else float(high))
    found["truth"].append(truth(cell, arm))
    found["error"].append(oracle_error(cell, log.n.sum(axis=0), log.agreeing, arm))
    found["seconds"].append(seconds)
    found["warned"].append(bool(warned))


def save(path: Path, content: dict[str, Any]) -> None:
    """Write a whole file, or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps(content), encoding="utf-8")
    part.replace(path)


def run(adapter: Any, cell: Cell, logs: Path, budget: float, most: int) -> dict[str, Any]:
    """A tool's intervals in one cell."""
    found, refusals, runs = empty(), Counter(), most
    for number, log in enumerate(read(cell, logs)):
        if number == runs:
            break
        start, answer = time.process_time(), None
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                answer = adapter.interval(log, cell.target)
            except Exception as error:  # whatever a tool raises is its refusal, and is kept in its words
                refusals[f"{type(error).__name__}: {error}"[:300]] += 1
        add(found, cell, log, answer, time.process_time() - start, bool(told))
        if number + 1 == TRIED:
            runs = enough(sorted(found["seconds"])[TRIED // 2], budget, most)
    return {"found": found, "refusals": dict(refusals.most_common(3))}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tool")
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--cells", nargs="*", default=[], help="cell/target; all by default")
    parser.add_argument("--seconds", type=float, default=1_200, help="for a cell, where fits are slow")
    parser.add_argument("--most", type=int, default=LOGS, help="logs of a cell")
    parser.add_argument("--until", type=float, default=math.inf, help="time after which no cell is begun")
    options = parser.parse_args(arguments)
    adapter = import_module(f"case_studies.scoreboard.adapters.{options.tool}")
    for cell in read_cells():
        path = place(options.cache, options.tool, cell)
        if f"{cell.cell}/{cell.target}" not in options.cells or path.exists():
            continue
        if time.time() > options.until:
            break
        logs = options.cache / "logs" / f"{cell.logs}.parquet"
        save(path, run(adapter, cell, logs, options.seconds, options.most))
        print(f"{options.tool} {cell.cell} {cell.target}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
