"""How processor time and memory grow over two decades in rows, arms, groups, batches and units.

The exponent is the slope of the logarithm between the smallest and the largest size; the last is that between
the two largest. Sizes take turns within one process, after a first round that loads what they need. Memory is
the peak of what Python and NumPy ask for above the log.
"""

from __future__ import annotations

import math
import os
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import evidence
import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "benchmarks"))
import bench_growth
from bench_growth import Case, analysis, arrays_of, log_of

import adaptinf as ai

COMMAND = "python docs/evidence/growth.py"
MOST = 1.15
ROWS = 100_000
Found = dict[int, tuple[float, float]]


def by_rows(name: str, rows: int) -> tuple[Callable[[], Any], Callable[[Any], object]]:
    case = Case(name, rows)
    arrays = arrays_of(case)
    return lambda: log_of(case, arrays), analysis(case)


def by_arms(name: str, arms: int) -> tuple[Callable[[], Any], Callable[[Any], object]]:
    case = Case(name, ROWS, arms)
    arrays = arrays_of(case)
    return lambda: log_of(case, arrays), analysis(case)


def by_groups(name: str, groups: int) -> tuple[Callable[[], Any], Callable[[Any], object]]:
    case = Case(name, ROWS, groups=groups)
    arrays = arrays_of(case)
    return lambda: log_of(case, arrays), analysis(case)


def by_batches(name: str, batches: int) -> tuple[Callable[[], Any], Callable[[Any], object]]:
    before = bench_growth.BATCHES
    bench_growth.BATCHES = batches
    try:
        return by_rows(name, ROWS)
    finally:
        bench_growth.BATCHES = before


def by_units(name: str, units: int) -> tuple[Callable[[], Any], Callable[[Any], object]]:
    case = Case(name, ROWS)
    arrays = arrays_of(case)
    columns = {"arm": arrays.action, "reward": arrays.reward, "batch": arrays.batch}
    columns |= {"p0": arrays.propensities[:, 0], "p1": arrays.propensities[:, 1]}
    columns["unit"] = np.random.default_rng(bench_growth.SEED).integers(units, size=ROWS)
    frame = pd.DataFrame(columns)

    def log() -> ai.AdaptiveLog:
        return ai.AdaptiveLog(
            frame, action="arm", reward="reward", batch="batch", propensities="p", unit="unit"
        )

    return log, analysis(case)


SIZES = {
    "rows": (
        by_rows,
        (10_000, 100_000, 1_000_000),
        ("ArmMeans", "Contrast", "CATE", "AdaptiveOLS", "diagnose", "recommend"),
    ),
    "arms": (by_arms, (2, 20, 200), ("ArmMeans", "Contrasts", "diagnose")),
    "groups": (by_groups, (20, 200, 2_000), ("CATE",)),
    "batches": (by_batches, (10, 100, 1_000), ("ArmMeans", "Contrast", "diagnose")),
    "units": (by_units, (100, 1_000, 10_000), ("ArmMeans", "Contrast")),
}


def measured(make: Callable[[str, int], Any], name: str, sizes: tuple[int, ...], repeats: int) -> Found:
    """Median milliseconds, and megabytes, by size."""
    cases = {size: make(name, size) for size in sizes}
    memory, times = {}, {size: [] for size in sizes}
    for size, (log, call) in cases.items():
        call(log())
        new = log()
        tracemalloc.start(1)
        call(new)
        memory[size] = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
    for _ in range(repeats):
        for size, (log, call) in cases.items():
            new = log()
            began = time.process_time()
            call(new)
            times[size].append(1e3 * (time.process_time() - began))
    return {size: (float(np.median(times[size])), memory[size]) for size in sizes}


def slope(found: Found, place: int, first: int, last: int) -> float:
    return math.log(found[last][place] / found[first][place]) / math.log(last / first)


def main() -> None:
    """Measure and write."""
    options = evidence.parser(__doc__).parse_args()
    lines, above = [], []
    for of, (make, sizes, names) in SIZES.items():
        for name in names[:1] if options.quick else names:
            chosen = sizes[:2] if options.quick else sizes
            found = measured(make, name, chosen, 1 if options.quick else 5)
            slopes = [slope(found, place, chosen[start], chosen[-1]) for place in (0, 1) for start in (0, -2)]
            times = " / ".join(f"{found[size][0]:,.0f}" for size in chosen)
            lines.append(
                f"| {of}, {' / '.join(f'{size:,}' for size in chosen)} | {name} | {times} | "
                + " | ".join(f"{one:.2f}" for one in slopes)
                + " |"
            )
            print(lines[-1], flush=True)
            if max(slopes[0], slopes[2]) > MOST:
                above.append(f"{name} in {of}")
    load = ", ".join(f"{one:.2f}" for one in os.getloadavg())
    table = "\n".join(lines)
    page = f"""# Growth of time and memory

Command: `{COMMAND}`. Seed: {bench_growth.SEED}. Date: {evidence.stamp()}. Load of the machine
when the page was written: {load}.

Each analysis is made for three sizes over two decades, by turns within one process, of a log on which
nothing has been computed yet; otherwise logs have 100,000 rows, two arms, two groups and 20 batches. Times
are medians of five, in milliseconds of processor time. An exponent of 1 means growth in proportion to the
size; exponents are given from the smallest to the largest size, and over the last decade.

{len(lines) - len(above)} of {len(lines)} rows have exponents of time and memory of at most {MOST} over both
decades. Above it: {", ".join(above) or "none"}.

| in | analysis | ms | time | time, last | memory | memory, last |
| --- | --- | ---: | ---: | ---: | ---: | ---: |
{table}
"""
    evidence.publish(page, __file__, options)


if __name__ == "__main__":
    main()
