"""Speed and memory of sums: the query of `aggregate` on Parquet beside DuckDB's own, and frames in memory.

Queries alternate in one process on the same files, of 250 batches and 2 arms; time of the processor. Memory
is the peak of the resident set of a process of its own above its imports.

    python docs/evidence/large_logs_speed.py            # 6 minutes, 2 GB of disk, 6 of memory; the page
    python docs/evidence/large_logs_speed.py --quick    # smaller files, printed
"""

from __future__ import annotations

import os
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

SIZES, QUICK_SIZES = (1_000_000, 3_000_000, 10_000_000, 20_000_000), (100_000, 300_000)
PIECE, EAGER, QUICK_EAGER = 10_000_000, 10_000_000, 100_000
UNIT_SUMS = 12  # for two arms: rows, rewards, the ends of propensities, and four for each arm
ENGINES = ("DuckDB, files", "Polars, eager", "pandas")


@dataclass(frozen=True)
class Timed:
    """Rows, and median seconds of the query of `aggregate`, by the clock too, of eight sums, and of a fit."""

    rows: int
    ours: float
    clock: float
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
    return str(folder / str(rows) / "*" / f"{bench_sums.CONSTANT}.parquet")


def query(files: str) -> Any:
    """The sums of some files."""
    import adaptinf as ai

    return ai.aggregate(files, **bench_sums.NAMES)


def measure(files: str, rows: int, runs: int) -> Timed:
    """Medians of alternating runs."""
    import adaptinf as ai

    sums = query(files)
    assert sums.n_rounds == rows
    fit = lambda: ai.Contrast(sums, treatment=1, control=0).fit()  # noqa: E731
    times = bench_sums.medians([lambda: query(files), bench_sums.eight_sums(files), fit], runs)
    return Timed(rows, *times[0], times[1][0], times[2][0])


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
    _, seconds = bench_sums.timed(lambda: ai.aggregate(reader(), **bench_sums.NAMES))
    return Held(engine, rows, seconds, resident("VmHWM") - before)


def alone(engine: str, files: str, rows: int) -> Held:
    """`hold` in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(hold, engine, files, rows).result()


def page(times: list[Timed], ratios: dict[str, tuple[float, float]], eager: int, held: list[Held]) -> str:
    """The page."""
    load = ", ".join(f"{one:.2f}" for one in os.getloadavg())
    speed = "\n".join(
        f"| {row.rows:,} | {row.ours:.3f} | {row.theirs:.3f} | {row.ours / row.theirs:.3f} | "
        f"{1e9 * row.ours / row.rows:.0f} | {row.clock:.3f} | {1e3 * row.fit:.1f} |"
        for row in times
    )
    kinds = "\n".join(f"| {told} | {ratio:.2f} | {own:.2f} |" for told, (ratio, own) in ratios.items())
    memory = "\n".join(
        f"| {row.engine} | {row.rows:,} | {row.seconds:.2f} | {row.megabytes:.0f} |" for row in held
    )
    return f"""# Speed of sums from files

Command: `python docs/evidence/large_logs_speed.py`. Seeds: none, because DuckDB draws the rows. Date:
{evidence.stamp()}. Times are processor times on a machine with two cores; its load when the page was written:
{load}, at nice {os.nice(0)}. The rows are stored as Parquet in pieces of up to {PIECE:,} rows, with 250
batches x 2 arms.

## Beside DuckDB's own GROUP BY

The table shows medians of runs in which `aggregate`, with the propensities of both arms, alternates with a
grouped query of eight sums, such as an analyst would write for a weighted mean and its standard error
(`tests/benchmarks/bench_sums.py`): w^a z^b for a and b up to 2, where z is a reward and w the inverse
propensity of its arm. The fit is that of a contrast.

| rows | aggregate, s | eight sums, s | ratio | ns a row | by the clock, s | fit, ms |
| --- | --- | --- | --- | --- | --- | --- |
{speed}

![Seconds against rows on logarithmic axes, with a line of slope one](large_logs_speed.svg)

## What costs more

The ratios of processor time are relative to eight sums by batch and arm, and to eight sums by the groups of
the query in question, for {eager:,} rows.

| what is known, and asked for | to eight sums | to its own groups |
| --- | --- | --- |
{kinds}

- If propensities are constant in each batch and arm, the sums of rewards, of their squares and of their cubes
  are sufficient. To verify this, the query also computes the minimum and maximum of each propensity.
- If they vary, a fit needs 17 sums of powers, including third powers for the skewness of scores and fourth
  powers for degrees of freedom. Each arm adds three sums of its propensities.
- The cost of groups is that of using their column as a key in the engine.
- Units require a second grouping, by unit, of {UNIT_SUMS} sums. Four for each arm are conditional. The fewer
  rows units have, the larger is the share of the time that the engine spends on its table of units.

## Memory

Memory is the peak of a separate process, above that needed for its imports; the target for files is at most
300 MB. Frames are loaded completely from the files, so their seconds and megabytes include the reading.

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
    axes.loglog(rows, [row.theirs for row in times], "x", label="GROUP BY of eight sums")
    last = times[-1]
    axes.loglog(rows, [last.ours * each / last.rows for each in rows], "k:", label="slope 1")
    axes.set(xlabel="rows", ylabel="seconds of the processor")
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
            times.append(measure(files, rows, 3 if options.quick else bench_sums.RUNS))
            engines = ENGINES if rows == eager else ENGINES[:1]
            held += [alone(engine, files, rows) for engine in engines]
    ratios = bench_sums.ratios(eager, 3 if options.quick else bench_sums.RUNS)
    evidence.publish(page(times, ratios, eager, held), __file__, options)
    if not options.quick:
        picture(times, Path(options.output or __file__).with_suffix(".svg"))
    if wrong := [row for row in times if options.quick and row.ours > 2.0 * row.theirs + 0.2]:
        raise SystemExit(f"OFF: {wrong}")


if __name__ == "__main__":
    main()
