"""Blocks of runs, spread over workers and counted: the same numbers whatever the number of workers.

What is counted is kept once a minute, and a run goes on from what is there.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any

from default_counts import BLOCK, Counts, Measured, Tallies, blocks_of, gather

EVERY_SECONDS = 60.0
"""Counts are written this often."""
Block = tuple[Any, int]
"""A cell, which has a number, and the number of a block of its runs."""


def add_to(parser: argparse.ArgumentParser) -> None:
    """The options of a run by blocks."""
    parser.add_argument("--minutes", type=float, default=math.inf, help="when to stop and to write")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cells", type=int, nargs="+", help="numbers of cells; by default all")


def missing(wanted: Iterable[tuple[Any, int]], counts: Counts) -> list[Block]:
    """Blocks that lack, of cells and how many each shall have; the first of all before the second of any."""
    found = [
        (cell, number)
        for cell, blocks in wanted
        for number in range(blocks)
        if number not in blocks_of(counts, cell.number)
    ]
    return sorted(found, key=lambda block: block[1])


def work(
    run: Callable[[Any, int, int], Tallies],
    blocks: Iterable[Block],
    size: int,
    counts: Counts,
    options: argparse.Namespace,
    commit: str,
    keep: Callable[[Counts], None] = lambda counts: None,
) -> list[str]:
    """Add what `run` finds for a cell, the number of a block and its size; what went wrong."""
    began = written = time.monotonic()
    failed, taken = list[str](), set[Future[Tallies]]()
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(run, cell, number, size): (cell, number) for cell, number in blocks}

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
            if now - written > EVERY_SECONDS:
                keep(counts)
                written = now
            if now - began > 60.0 * options.minutes:
                pool.shutdown(wait=True, cancel_futures=True)
                break
        for done in waiting:
            if done not in taken and done.done() and not done.cancelled():
                take(done)
    return failed


def go_on(
    run: Callable[[Any, int, int], Tallies],
    wanted: Iterable[tuple[Any, int]],
    counts: Counts,
    options: argparse.Namespace,
    stamp: str,
    keep: Callable[[Counts], None],
) -> list[str]:
    """Add the blocks that kept counts lack, of cells and how many runs each shall have; what went wrong."""
    if stamp.endswith("changes"):
        raise SystemExit("counts are kept by commit: commit what changed first")
    blocks = missing([(cell, runs // BLOCK) for cell, runs in wanted], counts)
    failed = work(run, blocks, BLOCK, counts, options, stamp.rpartition(" ")[2], keep)
    keep(counts)
    return failed
