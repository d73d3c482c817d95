"""Speed and memory of sums: the query of `aggregate` on Parquet beside DuckDB's own, and frames in memory.

Both queries alternate in one process on the same files, of 250 batches and 2 arms; clock time, as DuckDB uses
all cores. Memory is the peak of the resident set of a process of its own above its imports.

    python docs/evidence/large_logs_speed.py            # 15 minutes, 3 GB of disk, 6 of memory; the page
    python docs/evidence/large_logs_speed.py --quick    # smaller files, printed
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import evidence
from default_speed import resident

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "benchmarks"))

import bench_sums

SIZES, QUICK_SIZES = (1_000_000, 3_000_000, 10_000_000, 40_000_000, 100_000_000), (100_000, 300_000)
PIECE, EAGER, QUICK_EAGER = 10_000_000, 10_000_000, 100_000
ENGINES = ("DuckDB, files", "Polars, eager", "pandas")


@dataclass(frozen=True)
class Timed:
    """Rows, runs, and median seconds of the query of `aggregate`, of that by hand, and of a fit after it."""

    rows: int
    runs: int
    ours: float
    theirs: float
    fit: float


@dataclass(frozen=True)
class Held:
    """An engine on some rows: seconds with reading the files, megabytes above the imports."""

    engine: str
    rows: int
    seconds: float
    megabytes: float


def made(folder: Path, rows: int) -> str:
    """Files of rows in pieces, and the pattern of their names."""
    for place, start in enumerate(range(0, rows, PIECE)):
        piece = folder / str(rows) / str(place)
        piece.mkdir(parents=True)
        bench_sums.made(piece, min(PIECE, rows - start))
    return str(folder / str(rows) / "*" / "log.parquet")


def query(files: str) -> Any:
    """The sums of some files."""
    import adaptinf as ai

    return ai.aggregate(files, **bench_sums.NAMES, centre=1.0)


def measure(files: str, rows: int, runs: int) -> Timed:
    """Medians of alternating runs."""
    import duckdb

    import adaptinf as ai

    sql, sums = bench_sums.by_hand(Path(files)), query(files)
    assert sums.n_rounds == rows
    calls = (
        lambda: query(files),
        lambda: duckdb.sql(sql).df(),
        lambda: ai.Contrast(sums, treatment=1, control=0).fit(),
    )
    times = [[bench_sums.timed(call) for call in calls] for _ in range(runs)]
    return Timed(rows, runs, *(statistics.median(column) for column in zip(*times, strict=True)))


def hold(engine: str, files: str, rows: int) -> Held:
    """Time and memory of one query in a fresh process."""
    import pandas as pd
    import polars as pl

    import adaptinf as ai

    few = pd.DataFrame({"batch": 1, "arm": [0, 1, 0, 1], "y": 1.0, "propensity_0": 0.5, "propensity_1": 0.5})
    ai.aggregate(few, **bench_sums.NAMES)  # loads what it uses
    readers = {"DuckDB, files": lambda: files, "Polars, eager": lambda: pl.read_parquet(files)}
    reader = readers.get(engine, lambda: pd.concat(map(pd.read_parquet, sorted(Path("/").glob(files[1:])))))
    reset = Path("/proc/self/clear_refs")
    if reset.exists():
        reset.write_text("5")  # the peak starts again
    before = resident("VmRSS")
    seconds = bench_sums.timed(lambda: ai.aggregate(reader(), **bench_sums.NAMES, centre=1.0))
    return Held(engine, rows, seconds, resident("VmHWM") - before)


def alone(engine: str, files: str, rows: int) -> Held:
    """`hold` in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(hold, engine, files, rows).result()


def page(times: list[Timed], held: list[Held]) -> str:
    """The page."""
    load = ", ".join(f"{one:.2f}" for one in os.getloadavg())
    speed = "\n".join(
        f"| {row.rows:,} | {row.runs} | {row.ours:.3f} | {row.theirs:.3f} | {row.ours / row.theirs:.3f} | "
        f"{1e9 * row.ours / row.rows:.0f} | {1e3 * row.fit:.1f} |"
        for row in times
    )
    memory = "\n".join(
        f"| {row.engine} | {row.rows:,} | {row.seconds:.2f} | {row.megabytes:.0f} |" for row in held
    )
    return f"""# Speed of sums from files

Command: `python docs/evidence/large_logs_speed.py`. Seeds: none, DuckDB draws the rows.
Date: {evidence.stamp()}. Clock time on a machine of two cores; its load when the page was
written: {load}, at nice {os.nice(0)}. Parquet in pieces of up to {PIECE:,} rows, 250 batches x 2 arms,
the propensity of each.

## Beside DuckDB's own GROUP BY

Medians of runs in which `aggregate` alternates with a grouping of the same sums and counts of faults that is
written by hand (`tests/benchmarks/bench_sums.py`). The aim for 10,000,000 and 40,000,000 rows is a ratio of
at most 1.15, and .1 s for the fit of a contrast that follows.

| rows | runs | aggregate, s | by hand, s | ratio | ns a row | fit, ms |
| --- | --- | --- | --- | --- | --- | --- |
{speed}

![Seconds against rows on logarithmic axes, with a line of slope one](large_logs_speed.svg)

## Memory

The peak of a separate process above what its imports need; the aim for files is at most 300 MB. Frames are
loaded completely from the files, so their seconds and megabytes include the reading.

| engine | rows | seconds | MB |
| --- | --- | --- | --- |
{memory}
"""


def picture(times: list[Timed], path: Path) -> None:
    """Seconds against rows."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "adaptinf"
    figure = Figure(figsize=(5.5, 3.6), layout="constrained")
    axes = figure.add_subplot()
    rows = [row.rows for row in times]
    axes.loglog(rows, [row.ours for row in times], "o-", label="aggregate")
    axes.loglog(rows, [row.theirs for row in times], "x", label="GROUP BY by hand")
    last = times[-1]
    axes.loglog(rows, [last.ours * each / last.rows for each in rows], "k:", label="slope 1")
    axes.set(xlabel="rows", ylabel="seconds")
    axes.legend(frameon=False)
    figure.savefig(path, format="svg", metadata={"Date": None})


def main() -> None:
    """Measure and write."""
    options = evidence.parser(__doc__).parse_args()
    sizes, eager = (QUICK_SIZES, QUICK_EAGER) if options.quick else (SIZES, EAGER)
    times, held = [], []
    with tempfile.TemporaryDirectory() as folder:
        for rows in sizes:
            files = made(Path(folder), rows)
            runs = 3 if options.quick else 5 if rows > 4 * PIECE else bench_sums.RUNS
            times.append(measure(files, rows, runs))
            engines = ENGINES if rows == eager else ENGINES[:1]
            held += [alone(engine, files, rows) for engine in engines]
    evidence.publish(page(times, held), __file__, options)
    if not options.quick:
        picture(times, Path(options.output or __file__).with_suffix(".svg"))
    if wrong := [row for row in times if options.quick and row.ours > 2.0 * row.theirs + 0.1]:
        raise SystemExit(f"OFF: {wrong}")


if __name__ == "__main__":
    main()
