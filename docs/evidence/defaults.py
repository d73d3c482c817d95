"""Coverage of every default, and of every method that `recommend` labels valid, on logs of plain simulators.

    python docs/evidence/defaults.py                     # all cells, 2,000 runs each: six hours of processor
    python docs/evidence/defaults.py --minutes 60        # stops after an hour, and writes what there is
    python docs/evidence/defaults.py --quick             # some cells, few runs, printed

Cells and their list: `default_cells.csv`, fixed before the first run. A run simulates a file, reads it as a
user would, asks `recommend` for arm means, the contrast of B and A and, where the file has groups, for the
effects by group, and fits every method that is labelled valid. Counts are kept in `default_counts.csv`, and a
run goes on from what is there; the same numbers whatever the number of workers.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any

import evidence
import numpy as np
import pandas as pd
from default_cells import Cell, read
from default_counts import BLOCK, Counts, Key, Measured, Tallies, Tally, blocks_of, gather
from default_counts import read as kept
from default_counts import write as keep
from default_logs import Runs, arm_name, simulate
from default_page import DEFAULT, methods_page, page

SEED, RUNS = 20261124, 2_000
QUICK_CELLS, QUICK_RUNS = 24, 10
ALPHA = 0.05
EVERY_SECONDS = 60.0
"""Counts are written this often."""


def log_of(cell: Cell, frame: pd.DataFrame) -> Any:
    """The log that a user would make of the file."""
    import adaptinf as ai

    given: dict[str, Any] = {"action": "arm", "reward": "reward"}
    if cell.told == "every propensity":
        given["propensities"] = {arm_name(k): f"p_{arm_name(k)}" for k in range(cell.n_arms)}
    else:
        given["arms"] = [arm_name(k) for k in range(cell.n_arms)]
    if cell.told == "the chosen arm's":
        given["propensity"] = "p"
    if cell.n_units:
        given["unit"] = "person"
    if cell.contexts_told:
        given["context"] = "group"
    if cell.design.startswith("batched"):
        given["batch"] = "batch"
    if cell.binary:
        given["reward_range"] = (0.0, 1.0)
    return ai.AdaptiveLog(frame, **given)


def questions(cell: Cell, runs: Runs) -> dict[str, tuple[dict[str, Any], dict[str, float]]]:
    """What is asked of each log, and the truth by the name of a term; every effect is the gap."""
    effect = float(runs.truth[1] - runs.truth[0])
    pair = {"treatment": "B", "control": "A"}
    means = {arm_name(k): float(runs.truth_where_possible[k]) for k in range(2)}
    asked: dict[str, tuple[dict[str, Any], dict[str, float]]] = {
        "arm-means": ({}, means),
        "contrast": (pair, {"": effect}),
    }
    if cell.contexts_told:
        asked["cate"] = ({"by": "group", **pair}, {"": effect})
    return asked


def score(result: Any, truth: dict[str, float], tally: Tally) -> None:
    """Count the intervals of one result."""
    limits = result.conf_int(ALPHA)
    cautioned = bool(result.cautions)
    tally.logs += 1
    tally.cautioned += cautioned
    for place, term in enumerate(result.terms):
        value = truth.get(term, truth.get(""))
        if value is None:
            continue
        low, high = (float(limit) for limit in limits.iloc[place])
        if math.isnan(low) or math.isnan(high):
            continue
        inside = low <= value <= high
        tally.intervals += 1
        tally.covered += inside
        tally.clean += not cautioned
        tally.clean_covered += inside and not cautioned


def measure(cell: Cell, log: Any, runs: Runs, run: int) -> Tallies:
    """What is fitted where nothing is asked for, and every method that is labelled valid, for one log."""
    import adaptinf as ai

    found: Tallies = {}
    for target, (asked, truth) in questions(cell, runs).items():
        rows = [row for row in ai.recommend(log, target, **asked).methods if row.verdict.valid]
        for row in rows:
            own = Tally()
            sequence = row.call.startswith("ConfidenceSequence") and target == "arm-means"
            logged = {arm_name(k): float(runs.logged_truth[run, k]) for k in range(2)}
            fitted(row.run, logged if sequence else truth, own)
            own.belied = own.logs * belied(cell, row)
            found[Key(target, row.verdict.name, row.verdict.label)] = own
        model = {"arm-means": ai.ArmMeans, "contrast": ai.Contrast, "cate": ai.CATE}[target]
        first = Tally(methods={rows[0].verdict.name if rows else "none": 1})
        fitted(lambda model=model, asked=asked: model(log, **asked).fit(), truth, first)
        found[Key(target, DEFAULT, rows[0].verdict.label if rows else "none valid")] = first
    return found


def belied(cell: Cell, row: Any) -> bool:
    """Whether the call states that means stay, and in the cell they do not, at an arm's pulls or at all."""
    by_pull = row.verdict.name.startswith("alee") or row.verdict.name.endswith("on sample means")
    return "stationary=True" in row.call and (cell.drift != "none" or (by_pull and cell.by_context))


def fitted(fit: Callable[[], Any], truth: dict[str, float], tally: Tally) -> None:
    """Score what a fit gives; a refusal counts as one."""
    import adaptinf as ai

    try:
        score(fit(), truth, tally)
    except ai.errors.InvalidForLog:
        tally.logs = tally.refused = 1


def block(cell: Cell, number: int, runs: int) -> Tallies:
    """Some runs of a cell."""
    rng = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(cell.number, number)))
    simulated, total = simulate(cell, runs, rng), Tallies()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for run, frame in enumerate(simulated.frames()):
            gather(total, measure(cell, log_of(cell, frame), simulated, run))
    return total


def work(
    cells: Sequence[Cell], counts: Counts, options: argparse.Namespace, commit: str, size: int = BLOCK
) -> list[str]:
    """Add the blocks that are missing, the first of every cell before the second of any; what went wrong."""
    missing = [
        (cell, number)
        for number in range(options.runs // size)
        for cell in cells
        if number not in blocks_of(counts, cell.number)
    ]
    began = written = time.monotonic()
    failed, taken = list[str](), set[Future[Tallies]]()
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(block, cell, number, size): (cell, number) for cell, number in missing}

        def take(done: Future[Tallies]) -> None:
            cell, number = waiting[done]
            taken.add(done)
            error = done.exception()
            if error is not None:
                failed.append(f"block {number} of cell {cell.number}: {type(error).__name__}: {error}")
                return
            measured = counts.setdefault((cell.number, commit), Measured())
            measured.blocks.add(number)
            gather(measured.tallies, done.result())

        for done in as_completed(waiting):
            take(done)
            now = time.monotonic()
            if not options.quick and now - written > EVERY_SECONDS:
                keep(counts)
                written = now
            if now - began > 60.0 * options.minutes:
                pool.shutdown(wait=True, cancel_futures=True)
                break
        for done in waiting:
            if done not in taken and done.done() and not done.cancelled():
                take(done)
    return failed


def command_line() -> argparse.Namespace:
    parser = evidence.parser(__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help=f"runs a cell, a multiple of {BLOCK}")
    parser.add_argument("--minutes", type=float, default=math.inf, help="when to stop and to write")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cells", type=int, nargs="+", help="numbers of cells; by default all")
    options = parser.parse_args()
    if options.runs < BLOCK or options.runs % BLOCK:
        parser.error(f"--runs must be a multiple of {BLOCK}, got {options.runs}")
    return options


def main() -> None:
    options = command_line()
    stamp = evidence.stamp()
    cells = [cell for cell in read() if not options.cells or cell.number in options.cells]
    if options.quick:
        short = [cell for cell in cells if cell.n_rounds <= 1000]
        cells, options.runs = short[:: max(len(short) // QUICK_CELLS, 1)], QUICK_RUNS
        counts: Counts = {}
        failed = work(cells, counts, options, "", QUICK_RUNS)
    else:
        if stamp.endswith("changes"):
            raise SystemExit("counts are kept by commit: commit what changed first")
        counts = kept()
        failed = work(cells, counts, options, stamp.rpartition(" ")[2])
        keep(counts)
        cells = read()
    command = f"Command: `python docs/evidence/defaults.py`. Seed: {SEED}. Date: {stamp}."
    for make, part in ((page, ""), (methods_page, "methods")):
        evidence.publish(make(cells, counts, command), __file__, options, part)
    if failed:
        raise SystemExit("\n".join([f"{len(failed)} blocks failed:", *failed]))


if __name__ == "__main__":
    main()
