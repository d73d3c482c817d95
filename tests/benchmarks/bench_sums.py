"""Speed of the query that adds up rows, beside DuckDB's own GROUP BY of the same sums, within one run.

``python tests/benchmarks/bench_sums.py [rows]`` prints the figures, ``pytest tests/benchmarks/bench_sums.py``
asserts them. Times are medians of nine alternating runs, by the clock, on Parquet of 500 cells.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import adaptinf as ai

pytestmark = pytest.mark.benchmark

ROWS, BATCHES, RUNS = 10_000_000, 250, 9
NAMES = {"action": "arm", "reward": "y", "batch": "batch"}


def made(folder: Path, rows: int) -> Path:
    """Parquet of rows in 250 batches, two arms, with the propensity of each."""
    path = folder / "log.parquet"
    share = f"(0.3 + 0.4 * ((range * {BATCHES} // {rows}) % 2))::DOUBLE"
    duckdb.sql(
        f"COPY (SELECT (range * {BATCHES} // {rows})::INT AS batch, (random() < {share})::INT AS arm, "
        f"-ln(1.0 - random()) AS y, 1.0 - ({share}) AS propensity_0, {share} AS propensity_1 "
        f"FROM range({rows})) TO '{path}' (FORMAT parquet)"
    )
    return path


def by_hand(path: Path) -> str:
    """The grouping as one would write it, with the same sums and counts of faults."""
    weights = ("1", "w", "w * w", "w * w * w")
    moments = [f"{w} * {z}" for w in weights for z in ("1", "z", "z * z", "z * z * z")][1:]
    over_all = [
        part
        for e in ("e0", "e1")
        for part in (f"CASE WHEN {e} > 0 THEN 1 / {e} ELSE 0 END", e, f"{e} * (1 - {e})")
    ]
    faults = [
        "y IS NULL",
        "NOT isfinite(y)",
        "NOT (e > 0 AND e <= 1)",
        "NOT (e0 >= 0 AND e0 <= 1 AND e1 >= 0 AND e1 <= 1)",
        "abs(e0 + e1 - 1) > 1e-6",
        "y <> 0",
    ]
    sums = ", ".join(
        [f"sum({part})" for part in (*moments, "w * w * w * w", *over_all)]
        + [f"sum(({part})::BIGINT)" for part in faults]
    )
    rows = (
        "SELECT batch, arm, y, y - 1.0 AS z, propensity_0 AS e0, propensity_1 AS e1, "
        "CASE WHEN arm = 0 THEN propensity_0 WHEN arm = 1 THEN propensity_1 END AS e, 1.0 / e AS w "
        f"FROM '{path}'"
    )
    return f"SELECT batch, arm, count(*), {sums}, min(e0), min(e1) FROM ({rows}) GROUP BY batch, arm"


def timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measured(rows: int) -> dict[str, float]:
    """Median seconds of the query, of the one by hand, and of the fit after it."""
    with tempfile.TemporaryDirectory() as folder:
        path = made(Path(folder), rows)
        sql = by_hand(path)
        sums = ai.aggregate(path, **NAMES, centre=1.0)
        assert sums.n_rounds == rows
        ai.Contrast(sums, treatment=1, control=0).fit()
        ours, theirs, fits = [], [], []
        for _ in range(RUNS):
            ours.append(timed(lambda: ai.aggregate(path, **NAMES, centre=1.0)))
            theirs.append(timed(lambda: duckdb.sql(sql).df()))
            fits.append(timed(lambda: ai.Contrast(sums, treatment=1, control=0).fit()))
    found = {"aggregate": ours, "by hand": theirs, "fit": fits}
    return {name: statistics.median(times) for name, times in found.items()}


def test_the_query_costs_little_more_than_by_hand() -> None:
    found = measured(ROWS)
    assert found["aggregate"] <= 1.15 * found["by hand"]
    assert found["fit"] < 0.1


if __name__ == "__main__":
    size = int(float(sys.argv[1])) if len(sys.argv) > 1 else ROWS
    seconds = measured(size)
    told = ", ".join(f"{name} {value:.4f} s" for name, value in seconds.items())
    ratio = seconds["aggregate"] / seconds["by hand"]
    sys.stdout.write(f"{size:,} rows: {told}; aggregate {ratio:.3f} times the query by hand\n")
