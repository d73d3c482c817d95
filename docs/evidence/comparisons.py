"""Coverage where arms are compared, on logs of plain simulators, with levels that move and shares that adapt.

    python docs/evidence/comparisons.py                     # all cells, 1,000 logs each
    python docs/evidence/comparisons.py --minutes 60        # stops after an hour, and writes what there is
    python docs/evidence/comparisons.py --quick             # some cells, few logs, printed
    python docs/evidence/comparisons.py --quick --runs 20 --cells 0 7 1000   # these, printed

Cells, and what each table is held to: `comparison_cells.csv` and `comparison_classes.csv`, fixed before the
first run. A log is simulated, read as a user would, and every model is fitted by its default. Counts are kept
in `comparison_counts.csv`, and a run goes on from what is there; the same numbers whatever the number of
workers.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import evidence
import numpy as np
from comparison_cells import LEVELS, Cell, read, read_classes
from comparison_fits import Compared, measure
from comparison_logs import simulate
from comparison_page import page, row_name
from default_blocks import add_to, go_on, missing, work
from default_counts import BLOCK, Counts, Tallies, gather
from default_counts import read as kept
from default_counts import write as keep

SEED, RUNS, ROW_RUNS = 20261126, 1_000, 2_000
QUICK_EVERY, QUICK_RUNS = 9, 20  # no multiple of the number of moves
FILE = Path(__file__).with_name("comparison_counts.csv")


def block(cell: Cell, number: int, runs: int) -> Tallies:
    """Some runs of a cell."""
    rng = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(cell.number, number)))
    simulated, total = simulate(cell, runs, rng), Tallies()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for run, frame in enumerate(simulated.frames()):
            gather(total, measure(simulated, run, frame))
    return total


def store(counts: Counts) -> None:
    keep(counts, FILE, Compared)


def command_line() -> argparse.Namespace:
    parser = evidence.parser(__doc__)
    parser.add_argument(
        "--runs",
        type=int,
        help=f"logs a cell, a multiple of {BLOCK}; by default {RUNS}, {ROW_RUNS} in the first table",
    )
    add_to(parser)
    options = parser.parse_args()
    if not options.quick and (options.runs or BLOCK) % BLOCK:
        parser.error(f"--runs must be a multiple of {BLOCK}, got {options.runs}")
    return options


def main() -> None:
    options = command_line()
    stamp = evidence.stamp()
    cells = [cell for cell in read() if not options.cells or cell.number in options.cells]
    if options.quick:
        if not options.cells:
            short = [cell for cell in cells if cell.n_rounds <= 1000 and not cell.in_first_table]
            first = [cell for cell in cells if cell.in_first_table][:1]
            cells = short[::QUICK_EVERY] + first
        counts: Counts = {}
        size = options.runs or QUICK_RUNS
        failed = work(block, missing([(cell, 1) for cell in cells], counts), size, counts, options, "")
    else:
        counts = kept(FILE, Compared)
        wanted = [(cell, options.runs or (ROW_RUNS if cell.in_first_table else RUNS)) for cell in cells]
        failed = go_on(block, wanted, counts, options, stamp, store)
        cells = read()
    command = f"Command: `python docs/evidence/comparisons.py`. Seed: {SEED}. Date: {stamp}."
    text = page(cells, read_classes(), counts, command)
    evidence.publish(text, __file__, options)
    if options.quick and not options.cells and FILE.exists():
        runs = options.runs or QUICK_RUNS, ROW_RUNS
        evidence.hold_cell(text, __file__, row_name(cells[-1]), LEVELS, runs)
    if failed:
        raise SystemExit("\n".join([f"{len(failed)} blocks failed:", *failed]))


if __name__ == "__main__":
    main()
