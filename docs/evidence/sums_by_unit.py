"""Errors by unit from sums against those of the rows: makes docs/evidence/sums_by_unit.md.

Logs of plain NumPy with units of several rounds are added up by DuckDB and by Polars, the first of them by
Dask, ibis and Spark too (extras `large`, `cluster`, `spark`; Java); arm means and contrasts from the sums are
held against those of the rows, for which AIPW has the same fixed prediction.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

import evidence
import numpy as np
import pandas as pd
from numpy.typing import NDArray

SEED, FULL, FEW, QUICK, LIMIT = 20261125, 500, 20, 4, 1e-10
COMMAND = "python docs/evidence/sums_by_unit.py"
ESTIMATORS = ("ipw", "aipw")
NAMES = {"action": "arm", "reward": "y", "batch": "day", "unit": "user"}
CENTRES = (0.3517, 0.9043, 7.513, 0.8131)
"""Predictions by kind of rewards, fixed beforehand; no arm has one for its mean, which rows would refuse."""
KINDS = ("0/1", "0/1 with mean 0.97", "normal around 7", "0 with probability 0.7, otherwise gamma")


def rows_of(number: int) -> pd.DataFrame:
    """A log whose propensities vary from row to row, of two to four arms and 8 to 120 units that differ."""
    rng = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(number,)))
    n_arms, units, rounds = int(rng.integers(2, 5)), int(rng.integers(8, 121)), int(rng.integers(200, 601))
    user, day = rng.integers(0, units, rounds), np.sort(rng.integers(0, 4, rounds))
    share = 0.7 * rng.dirichlet(np.full(n_arms, rng.choice([0.3, 4.0])), rounds) + 0.3 / n_arms
    arm = (rng.random(rounds)[:, None] > np.cumsum(share, axis=1)[:, :-1]).sum(axis=1)
    mean = 0.3 + 0.1 * arm + rng.normal(0.0, 0.1, units)[user]
    y = (
        (rng.random(rounds) < mean).astype(float),
        (rng.random(rounds) < 0.97).astype(float),
        7.0 + mean + rng.normal(0.0, 0.5, rounds),
        np.where(rng.random(rounds) < 0.7, 0.0, rng.gamma(2.0, 1.0 + arm)),
    )[number % len(KINDS)]
    frame = pd.DataFrame({"user": user, "day": day, "arm": arm, "y": y})
    return frame.assign(**{f"propensity_{k}": share[:, k] for k in range(n_arms)})


def apart(found: Any, due: Any) -> float:
    """Largest relative difference of two arrays, infinite where only one has a number."""
    one, other = np.asarray(found, dtype=float), np.asarray(due, dtype=float)
    if np.any(np.isnan(one) != np.isnan(other)):
        return float("inf")
    size = np.maximum(np.abs(other), np.nanmax(np.abs(other), initial=0.0) * 1e-3)
    gap = np.abs(one - other) / np.where(size > 0.0, size, 1.0)
    return float(np.nanmax(gap, initial=0.0))


Engines = dict[str, Callable[[pd.DataFrame], Any]]
"""A table of an engine from a frame, by the engine's name."""


def embedded_engines() -> Engines:
    """What adds up all logs."""
    import duckdb
    import polars as pl

    return {"DuckDB": duckdb.from_df, "Polars": lambda frame: pl.DataFrame(frame).lazy()}


@contextmanager
def other_engines() -> Iterator[Engines]:
    """What adds up a few logs; Spark runs until the end of the context."""
    import dask.dataframe as dd
    import ibis
    import pyarrow as pa
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()

    def in_spark(frame: pd.DataFrame) -> Any:
        folder = tempfile.mkdtemp(dir=scratch)
        frame.to_parquet(f"{folder}/rows.parquet", index=False)
        return spark.read.parquet(folder)

    with tempfile.TemporaryDirectory() as scratch:
        yield {
            "Dask": lambda frame: dd.from_pandas(frame, npartitions=3),
            "ibis on DuckDB": lambda frame: ibis.memtable(pa.Table.from_pandas(frame, preserve_index=False)),
            "Spark": in_spark,
        }
        spark.stop()


def block(number: int, engines: Engines | None = None) -> dict[tuple[str, str], NDArray[np.float64]]:
    """Largest differences of estimates, covariances and intervals by engine and estimator."""
    import adaptinf as ai

    frame = rows_of(number)
    log = ai.AdaptiveLog(frame, **NAMES, propensities="propensity_{arm}")
    worst: dict[tuple[str, str], NDArray[np.float64]] = {}
    for engine, table in (engines or embedded_engines()).items():
        sums = ai.aggregate(table(frame), **NAMES, centre=CENTRES[number % len(KINDS)])
        fixed = np.full((log.n_rounds, log.n_arms), sums.cells.centre)
        for estimator in ESTIMATORS:
            given = {"estimator": estimator, "weights": "uniform"}
            outcome = fixed if estimator == "aipw" else None
            for got, due in (
                (ai.ArmMeans(sums).fit(**given), ai.ArmMeans(log).fit(**given, outcome=outcome)),
                (
                    ai.Contrasts(sums, control=0).fit(**given),
                    ai.Contrasts(log, control=0).fit(**given, outcome=outcome),
                ),
            ):
                gaps = [
                    apart(got.estimate, due.estimate),
                    apart(got.covariance, due.covariance),
                    apart(got.conf_int(), due.conf_int()),
                ]
                worst[engine, estimator] = np.maximum(worst.get((engine, estimator), 0.0), gaps)
    return worst


def all_blocks(block: Callable[..., Any], options: Any) -> tuple[list[Any], list[Any]]:
    """The blocks of all logs, and of the few that other engines add up, which a quick run leaves out."""
    if options.quick:
        return [block(number) for number in range(QUICK)], []
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        parts = list(pool.map(block, range(FULL), chunksize=10))
    with other_engines() as engines:
        return parts, [block(number, engines) for number in range(FEW)]


def page(parts: list[Any], few: list[Any]) -> str:
    """The page of the differences of all logs and of the few."""
    logs = len(parts)
    same = [sum(max(each.max() for each in part.values()) <= LIMIT for part in some) for some in (parts, few)]
    lines = []
    for some in (parts, few):
        for engine, estimator in some[0] if some else ():
            largest = np.max([part[engine, estimator] for part in some], axis=0)
            cells = " | ".join(f"{value:.1e}" for value in largest)
            lines.append(f"| {engine} | {len(some)} | {estimator} | {cells} |")
    table = "\n".join(lines)
    return f"""# Errors by unit from sums

Command: `{COMMAND}`. Seed: {SEED}. Date: {evidence.stamp()}.

There are {logs:,} logs simulated in plain NumPy, with two to four arms, 200 to 600 rounds of 8 to 120 units,
propensities that vary from row to row, and four kinds of reward in turn ({"; ".join(KINDS)}).
`aggregate(unit=)` computes the sums. Arm means and all contrasts with the first arm from the sums are
compared with those from the rows, with uniform weights and AIPW whose prediction is the centre of the sums.
In {same[0]} of {logs} logs, all numbers agree to a relative {LIMIT:.0e} (entries below a thousandth of the
largest agree to the same absolute difference).
{f"The first {len(few)} logs are also summed by other engines: {same[1]} of {len(few)} agree." if few else ""}

The largest differences are:

| engine | logs | estimator | estimates | covariances | intervals |
| --- | ---: | --- | ---: | ---: | ---: |
{table}
"""


def main() -> None:
    parser = evidence.parser(__doc__)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    parts, few = all_blocks(block, options)
    evidence.publish(page(parts, few), __file__, options)
    if not all(np.all(each <= 100.0 * LIMIT) for part in parts + few for each in part.values()):
        raise SystemExit("sums and rows differ")


if __name__ == "__main__":
    main()
