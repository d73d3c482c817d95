"""Violations planted in logs of plain simulators, and what the tables say of them; and of clean logs.

    python docs/evidence/violations.py                    # all kinds, 1,000 logs and 1,000 clean twins each
    python docs/evidence/violations.py --minutes 60       # stops after an hour, and writes what there is
    python docs/evidence/violations.py --quick            # all kinds, few logs, printed
    python docs/evidence/violations.py --quick --runs 50 --cells 0 7 100    # these, printed

Kinds, with sizes, fits and the claim that has to name each: `violation_kinds.csv`, fixed before the first
run. Sizes were set by the coverage that is lost alone. Counts are kept in `violation_counts.csv`, and a run
goes on from what is there; the same numbers whatever the number of workers. Times are taken in one process.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import evidence
import numpy as np
from default_blocks import add_to, go_on, missing, work
from default_counts import BLOCK, Counts, Tallies
from default_counts import read as kept
from default_counts import write as keep
from violation_fits import Named, of_clean, of_pair
from violation_kinds import CLEAN, Kind, read
from violation_page import HEADLINE, NAMED, page, tables
from violation_speed import Timed, timed

SEED, RUNS, QUICK_RUNS = 20261127, 1_000, 10
LONG, SHORT = 10_000_000, 10_000
"""Rounds of the logs that checks are timed on."""
FILE = Path(__file__).with_name("violation_counts.csv")


def block(kind: Kind, number: int, runs: int) -> Tallies:
    """Some logs of a kind, and as many of its twin."""
    rng = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(kind.number, number)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return (of_clean if kind.standard == CLEAN else of_pair)(kind, runs, rng)


def store(counts: Counts) -> None:
    keep(counts, FILE, Named)


def command_line() -> argparse.Namespace:
    parser = evidence.parser(__doc__)
    parser.add_argument("--runs", type=int, help=f"logs a kind, a multiple of {BLOCK}; by default {RUNS}")
    parser.add_argument("--no-times", action="store_true", help="leave out how long checks take")
    add_to(parser)
    options = parser.parse_args()
    if not options.quick and (options.runs or BLOCK) % BLOCK:
        parser.error(f"--runs must be a multiple of {BLOCK}, got {options.runs}")
    return options


def times(kinds: list[Kind], options: argparse.Namespace) -> list[Timed]:
    """How long checks take, unless that is not asked for."""
    if options.no_times:
        return []
    return [one for rounds in ((SHORT,) if options.quick else (SHORT, LONG)) for one in timed(kinds, rounds)]


def main() -> None:
    options = command_line()
    stamp = evidence.stamp()
    kinds = [kind for kind in read() if not options.cells or kind.number in options.cells]
    if options.quick:
        counts: Counts = {}
        size = options.runs or QUICK_RUNS
        failed = work(block, missing([(kind, 1) for kind in kinds], counts), size, counts, options, "")
    else:
        counts = kept(FILE, Named)
        wanted = [(kind, options.runs or RUNS) for kind in kinds]
        failed = go_on(block, wanted, counts, options, stamp, store)
        kinds = read()
    command = f"Command: `python docs/evidence/violations.py`. Seed: {SEED}. Date: {stamp}."
    text = page(tables(kinds, counts), times(kinds, options), command)
    evidence.publish(text, __file__, options)
    if options.quick and not options.cells and FILE.exists():
        evidence.hold_cell(text, __file__, HEADLINE, NAMED, (options.runs or QUICK_RUNS, RUNS))
    if failed:
        raise SystemExit("\n".join([f"{len(failed)} blocks failed:", *failed]))


if __name__ == "__main__":
    main()
