"""Errors by unit from sums against those of the rows: makes docs/evidence/sums_by_unit.md.

Logs of plain NumPy with units of several rounds are added up by DuckDB and by Polars; arm means and
contrasts from the sums are held against those of the rows, for which AIPW has the same fixed prediction.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import evidence
import numpy as np
import pandas as pd
from numpy.typing import NDArray

SEED, FULL, QUICK, LIMIT = 20261125, 500, 4, 1e-10
COMMAND = "python docs/evidence/sums_by_unit.py"
ENGINES = ("DuckDB", "Polars")
ESTIMATORS = ("ipw", "aipw")
NAMES = {"action": "arm", "reward": "y", "batch": "day", "unit": "user"}
CENTRES = (0.3517, 0.9043, 7.513, 0.8131)
"""Predictions by kind of rewards, fixed beforehand; no arm has one for its mean, which rows would refuse."""
KINDS = ("0/1", "0/1 at 97%", "normal, mean 7", "0 at 70%, else gamma")


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


def block(number: int) -> NDArray[np.float64]:
    """Largest differences of estimates, covariances and intervals; shape (engines, estimators, 3)."""
    import duckdb
    import polars as pl

    import adaptinf as ai

    frame = rows_of(number)
    log = ai.AdaptiveLog(frame, **NAMES, propensities="propensity_{arm}")
    tables = (duckdb.from_df(frame), pl.DataFrame(frame).lazy())
    worst = np.zeros((len(ENGINES), len(ESTIMATORS), 3))
    for place, table in enumerate(tables):
        sums = ai.aggregate(table, **NAMES, centre=CENTRES[number % len(KINDS)])
        fixed = np.full((log.n_rounds, log.n_arms), sums.cells.centre)
        for which, estimator in enumerate(ESTIMATORS):
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
                worst[place, which] = np.maximum(worst[place, which], gaps)
    return worst


def page(found: NDArray[np.float64]) -> str:
    """The page; found (logs, engines, estimators, 3)."""
    largest, logs = found.max(axis=0), len(found)
    same = int(np.count_nonzero(found.max(axis=(1, 2, 3)) <= LIMIT))
    lines = "\n".join(
        f"| {engine} | {estimator} | " + " | ".join(f"{value:.1e}" for value in largest[place, which]) + " |"
        for place, engine in enumerate(ENGINES)
        for which, estimator in enumerate(ESTIMATORS)
    )
    return f"""# Errors by unit from sums

Command: `{COMMAND}`. Seed: {SEED}. Date: {evidence.stamp()}.

{logs:,} logs of plain NumPy, two to four arms, 200 to 600 rounds of 8 to 120 units, propensities that vary
from row to row, rewards of four kinds in turn ({"; ".join(KINDS)}).
`aggregate(unit=)` adds them up; arm means and all contrasts with the first arm from the sums are held against
those of the rows, with uniform weights, AIPW with the centre of the sums as its prediction. In {same} of
{logs} logs all numbers agree to {LIMIT:.0e} relative (entries below a thousandth of the largest, to that).

Largest differences:

| engine | estimator | estimates | covariances | intervals |
| --- | --- | ---: | ---: | ---: |
{lines}
"""


def main() -> None:
    parser = evidence.parser(__doc__)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    logs = range(QUICK if options.quick else FULL)
    if options.quick:
        parts = [block(number) for number in logs]
    else:
        with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
            parts = list(pool.map(block, logs, chunksize=10))
    found = np.array(parts)
    evidence.publish(page(found), __file__, options)
    if not np.all(found <= 100.0 * LIMIT):
        raise SystemExit("sums and rows differ")


if __name__ == "__main__":
    main()
