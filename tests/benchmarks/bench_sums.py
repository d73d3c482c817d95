"""Speed of the query that adds up rows, beside DuckDB's own GROUP BY of eight sums, within one run.

``python tests/benchmarks/bench_sums.py [rows]`` prints the figures, ``pytest tests/benchmarks/bench_sums.py``
asserts them. Times are medians of alternating runs, of the processor, on Parquet of 500 cells.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pytest

import adaptinf as ai

pytestmark = pytest.mark.benchmark

ROWS, BATCHES, RUNS = 10_000_000, 250, 5
NAMES = {"action": "arm", "reward": "y", "batch": "batch", "centre": 1.0}
CONSTANT, MOVING = "constant", "moving"
EVERY = "propensity_0, propensity_1"


class Kind(NamedTuple):
    """A use of `aggregate`: further columns of a file, options, its groupings, and the most of a ratio."""

    told: str
    file: str
    columns: str
    options: dict[str, Any]
    most: float
    keys: tuple[str, ...] = ("batch, arm",)


_BY_SITE, _BY_PERSON, _BY_CROWD = ("batch, arm, site",), ("batch, arm", "person"), ("batch, arm", "crowd")
KINDS = (
    Kind("the chosen arm's propensity, constant in a batch", CONSTANT, "p", {"propensity": "p"}, 1.25),
    Kind("both arms' propensities, constant in a batch", CONSTANT, EVERY, {}, 1.5),
    Kind("no propensities", CONSTANT, "", {}, 1.0),
    Kind("both, and four groups", CONSTANT, f"{EVERY}, site", {"by": "site"}, 2.0, _BY_SITE),
    Kind("both, and units of 5 rows", CONSTANT, f"{EVERY}, person", {"unit": "person"}, 13.0, _BY_PERSON),
    Kind("both, and units of 1,000 rows", CONSTANT, f"{EVERY}, crowd", {"unit": "crowd"}, 4.5, _BY_CROWD),
    Kind("the chosen arm's propensity, moving by row", MOVING, "p", {"propensity": "p"}, 2.2),
    Kind("both arms' propensities, moving by row", MOVING, EVERY, {}, 3.3),
)


def made(folder: Path, rows: int, file: str = CONSTANT) -> Path:
    """Parquet of rows in 250 batches, two arms, with the propensity of each and of the chosen one."""
    path = folder / f"{file}.parquet"
    batch = f"(range * {BATCHES} // {rows})::INT"
    share = "0.1 + 0.8 * random()" if file == MOVING else f"(0.3 + 0.4 * ({batch} % 2))::DOUBLE"
    drawn = (
        f"SELECT range, {batch} AS batch, {share} AS share, random() AS u, -ln(1.0 - random()) AS y "
        f"FROM range({rows})"
    )
    duckdb.sql(
        "COPY (SELECT batch, (u < share)::INT AS arm, y, 1.0 - share AS propensity_0, "
        "share AS propensity_1, CASE WHEN u < share THEN share ELSE 1.0 - share END AS p, "
        "'site ' || range % 4 AS site, range // 5 AS person, range // 1000 AS crowd "
        f"FROM ({drawn}) ORDER BY range) TO '{path}' (FORMAT parquet)"
    )
    return path


def eight_sums(files: str, keys: str = "batch, arm") -> Callable[[], object]:
    """The grouping of eight sums, as an analyst would write it for a weighted mean and its error."""
    powers = ("z", "z * z", "w", "w * z", "w * z * z", "w * w", "w * w * z", "w * w * z * z")
    sql = (
        f"SELECT {keys}, count(*), {', '.join(f'sum({part})' for part in powers)} "
        f"FROM (SELECT {keys}, y - 1.0 AS z, 1.0 / p AS w FROM '{files}') GROUP BY {keys}"
    )
    return lambda: duckdb.sql(sql).df()


def summed(kind: Kind, files: str) -> Callable[[], object]:
    """The call of `aggregate` of a kind."""
    columns = f"batch, arm, y, {kind.columns}".rstrip(", ")
    return lambda: ai.aggregate(duckdb.sql(f"SELECT {columns} FROM '{files}'"), **NAMES, **kind.options)


def timed(call: Callable[[], object]) -> tuple[float, float]:
    """Seconds of the processor, and by the clock."""
    start = time.process_time(), time.perf_counter()
    call()
    return time.process_time() - start[0], time.perf_counter() - start[1]


def medians(calls: list[Callable[[], object]], runs: int) -> list[tuple[float, float]]:
    """Median seconds of alternating calls, after one of each that does not count."""
    times = [[timed(call) for call in calls] for _ in range(runs + 1)][1:]
    return [
        (statistics.median(one[0] for one in column), statistics.median(one[1] for one in column))
        for column in zip(*times, strict=True)
    ]


def ratios(rows: int, runs: int = RUNS) -> dict[str, tuple[float, float]]:
    """Processor time of each kind, relative to eight sums by batch and arm, and to eight of its groupings."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for file in (CONSTANT, MOVING):
            path, kinds = str(made(Path(folder), rows, file)), [kind for kind in KINDS if kind.file == file]
            keys = sorted({key for kind in kinds for key in kind.keys})
            calls = [*(summed(kind, path) for kind in kinds), *(eight_sums(path, key) for key in keys)]
            times = [processor for processor, _ in medians(calls, runs)]
            eight = dict(zip(keys, times[len(kinds) :], strict=True))
            for kind, mine in zip(kinds, times, strict=False):
                found[kind.told] = mine / eight["batch, arm"], mine / sum(eight[key] for key in kind.keys)
    return found


def test_the_query_costs_little_more_than_eight_sums() -> None:
    found = ratios(ROWS, 3)
    assert [kind.told for kind in KINDS if found[kind.told][0] > kind.most] == [], found


if __name__ == "__main__":
    size = int(float(sys.argv[1])) if len(sys.argv) > 1 else ROWS
    for told, (ratio, own) in ratios(size).items():
        sys.stdout.write(f"{size:,} rows, {told}: {ratio:.2f} times eight sums, {own:.2f} by its groups\n")
