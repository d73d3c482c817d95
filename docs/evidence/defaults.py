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
import warnings
from collections.abc import Callable
from typing import Any

import evidence
import numpy as np
import pandas as pd
from default_blocks import add_to, go_on, missing, work
from default_cells import Cell, read
from default_counts import BLOCK, Counts, Key, Tallies, Tally, gather
from default_counts import read as kept
from default_counts import write as keep
from default_logs import Runs, arm_name, simulate
from default_page import DEFAULT, methods_page, page

SEED, RUNS = 20261124, 2_000
QUICK_CELLS, QUICK_RUNS = 24, 10
ALPHA = 0.05


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
    """What is fitted where nothing is requested, and every method that is labelled valid, for one log."""
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


def command_line() -> argparse.Namespace:
    parser = evidence.parser(__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help=f"runs a cell, a multiple of {BLOCK}")
    add_to(parser)
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
        cells = short[:: max(len(short) // QUICK_CELLS, 1)]
        counts: Counts = {}
        failed = work(block, missing([(cell, 1) for cell in cells], counts), QUICK_RUNS, counts, options, "")
    else:
        counts = kept()
        failed = go_on(block, [(cell, options.runs) for cell in cells], counts, options, stamp, keep)
        cells = read()
    command = f"Command: `python docs/evidence/defaults.py`. Seed: {SEED}. Date: {stamp}."
    for make, part in ((page, ""), (methods_page, "methods")):
        evidence.publish(make(cells, counts, command), __file__, options, part)
    if failed:
        raise SystemExit("\n".join([f"{len(failed)} blocks failed:", *failed]))


if __name__ == "__main__":
    main()
