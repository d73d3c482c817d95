"""Inference from sums by batch and arm: makes docs/evidence/large_logs.md.

Equality: generated logs whose propensities vary from row to row, or stay the same within a batch, are summed
by DuckDB and by Polars, and every estimator and weight that sums allow is compared with the fit of the rows.
Coverage: tables as a platform exports them, of Thompson sampling between periods with 0/1 outcomes of one
rate for all arms, which rises at weekends; beside it GrowthBook's period-weighted means and normal intervals.
"""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import evidence
import numpy as np
import pandas as pd
from numpy.typing import NDArray

Array = NDArray[np.float64]

SEED, BLOCK = 20261123, 100
FULL, QUICK = 10_000, 100
LOGS, QUICK_LOGS = 500, 10
RATE, WEEKEND, FLOOR, DRAWS = 0.1, 1.3, 0.01, 500
Z = 1.959963984540054
CONTRASTS = 4
COMMAND = "python docs/evidence/large_logs.py"
FITS: tuple[tuple[str, dict[str, str]], ...] = (
    ("aipw", {"weights": "uniform"}),
    ("aipw", {"weights": "sqrt"}),
    ("aipw", {"weights": "combined"}),
    ("ipw", {"weights": "uniform"}),
    ("ipw", {"weights": "sqrt"}),
    ("ipw", {"weights": "combined"}),
    ("sample-mean", {}),
    ("batched", {}),
)


@dataclass(frozen=True)
class Row:
    """Arms, periods and users of a period."""

    arms: int
    periods: int
    users: int

    @property
    def name(self) -> str:
        return f"{self.arms} arms, {self.periods} x {self.users}"


ROWS = (Row(5, 20, 500), Row(10, 20, 500), Row(5, 14, 600), Row(10, 14, 600))


def exported(row: Row, rng: np.random.Generator) -> tuple[pd.DataFrame, Array]:
    """A table of sums, and the rate of each period."""
    count, total, lines = np.zeros(row.arms), np.zeros(row.arms), []
    rates = np.where(np.arange(row.periods) % 7 >= 5, RATE * WEEKEND, RATE)
    for period in range(row.periods):
        share = np.full(row.arms, 1.0 / row.arms)
        if period:
            drawn = rng.beta(1.0 + total, 1.0 + count - total, size=(DRAWS, row.arms)).argmax(axis=1)
            share = FLOOR + (1.0 - row.arms * FLOOR) * np.bincount(drawn, minlength=row.arms) / DRAWS
        users = rng.multinomial(row.users, share)
        buyers = rng.binomial(users, rates[period])
        count, total = count + users, total + buyers
        lines += [(period, arm, users[arm], buyers[arm], share[arm]) for arm in range(row.arms)]
    return pd.DataFrame(lines, columns=["period", "arm", "users", "sum", "share"]), rates


def covered(limits: Array, truth: float) -> Array:
    """1 if an interval holds the truth, 0 if not, NaN if there is none; limits (k, 2)."""
    inside = (limits[:, 0] <= truth) & (truth <= limits[:, 1])
    return np.where(np.isnan(limits[:, 0]), np.nan, inside)


def fitted(table: pd.DataFrame, truth: float, arms: int, **options: Any) -> tuple[Array, Array]:
    """What the intervals of sums cover: of arms (arms,), of contrasts with the first (4,)."""
    import adaptinf as ai

    names = {"batch": "period", "arm": "arm", "n": "users", "sum": "sum", "sum_squares": "sum"}
    sums = ai.Sums(table, **names, **options)  # type: ignore[arg-type]
    weights = {"weights": "uniform"}
    means = ai.ArmMeans(sums).fit("aipw", **weights, test="hall")
    pairs = [
        ai.Contrast(sums, treatment=arm, control=0).fit("aipw", test="hall").conf_int()
        for arm in range(1, CONTRASTS + 1)
    ]
    limits = np.concatenate([pair.to_numpy() for pair in pairs])
    return covered(means.conf_int().to_numpy(), truth)[:arms], covered(limits, 0.0)


def by_period(table: pd.DataFrame, truth: float, arms: int) -> tuple[Array, Array]:
    """What period-weighted means with normal intervals cover; arms without users in a period are omitted."""
    n, y = (table[name].to_numpy(dtype=float).reshape(-1, arms) for name in ("users", "sum"))
    seen = n > 1.0
    mean = np.divide(y, n, where=n > 0.0, out=np.zeros_like(y))
    weight = n.sum(axis=1, keepdims=True) * seen
    weight = weight / weight.sum(axis=0)
    variance = np.divide(mean * (1.0 - mean), n - 1.0, where=seen, out=np.zeros_like(y))
    center, spread = (weight * mean).sum(axis=0), (weight**2 * variance).sum(axis=0)
    error = Z * np.sqrt(spread)
    own = covered(np.stack([center - error, center + error], axis=1), truth)
    change = center[1 : CONTRASTS + 1] - center[0]
    wide = Z * np.sqrt(spread[1 : CONTRASTS + 1] + spread[0])
    return own, covered(np.stack([change - wide, change + wide], axis=1), 0.0)


def block(job: tuple[int, int]) -> list[tuple[Array, Array]]:
    """Arms and contrasts covered, for known propensities, none, and the other rule; shapes (runs, k)."""
    number, part = job
    row = ROWS[number]
    rng = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(number, part)))
    found: list[list[tuple[Array, Array]]] = [[], [], []]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(BLOCK):
            table, rates = exported(row, rng)
            truth = float(rates.mean())
            found[0].append(fitted(table, truth, row.arms, propensity="share"))
            if table["users"].min() > 0:
                found[1].append(fitted(table, truth, row.arms, sum_cubes="sum", nonzero="sum"))
            found[2].append(by_period(table, truth, row.arms))
    empty = np.empty((0, row.arms)), np.empty((0, CONTRASTS))
    return [
        (np.stack([own for own, _ in kind]), np.stack([pair for _, pair in kind])) if kind else empty
        for kind in found
    ]


def generated(seed: int) -> pd.DataFrame:
    """Rows of a log with propensities that vary by row, or by batch alone."""
    rng = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(99, seed)))
    arms, batches = int(rng.integers(2, 5)), int(rng.integers(1, 7))
    batch = np.repeat(np.arange(batches), rng.integers(20, 200, batches))
    inside = rng.random(len(batch)) if seed % 2 else np.zeros(len(batch))
    share = rng.dirichlet(np.full(arms, 3.0), batches)[batch] * 0.8 + 0.2 / arms
    share *= 1.0 + inside[:, None] * np.arange(arms)
    share /= share.sum(axis=1, keepdims=True)
    arm = (rng.random(len(batch))[:, None] > share.cumsum(axis=1)[:, :-1]).sum(axis=1)
    skewed, scale = rng.gamma(1.5, 1.0 + arm), 10.0 ** rng.integers(-2, 3)
    reward = (rng.normal(arm, 1.0), scale * skewed, (rng.random(len(batch)) < 0.4).astype(float))[seed % 3]
    frame = pd.DataFrame({"batch": batch, "arm": arm, "reward": reward})
    return frame.assign(**{f"propensity_{k}": share[:, k] for k in range(arms)})


def differences(seed: int) -> dict[tuple[str, str], float]:
    """Largest relative difference to rows, of estimates, errors and limits, by engine and fit."""
    import duckdb
    import polars as pl

    import adaptinf as ai
    from adaptinf.errors import InvalidForLog

    frame, found = generated(seed), defaultdict(float)
    arms = list(range(frame.shape[1] - 3))
    log = ai.AdaptiveLog(frame, action="arm", reward="reward", batch="batch", arms=arms)
    names = {"action": "arm", "reward": "reward", "batch": "batch"}
    mixed = frame.sample(frac=1.0, random_state=seed)
    engines = {"DuckDB": duckdb.connect().from_df(mixed), "Polars": pl.DataFrame(mixed).lazy()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for engine, rows in engines.items():
            sums = ai.aggregate(rows, **names, arms=arms)  # type: ignore[arg-type]
            for estimator, options in FITS:
                outcome = {"outcome": "batch-mean"} if estimator == "aipw" else {}
                for model in ("ArmMeans", "Contrast"):
                    try:
                        due = fit_of(ai, model, log, estimator, {**options, **outcome})
                        got = fit_of(ai, model, sums, estimator, {**options, **outcome})
                    except (InvalidForLog, ValueError):
                        continue
                    key = engine, f"{model}, {estimator} {' '.join(options.values())}".strip()
                    scale = np.nanmax(np.abs(due))
                    worst = np.nanmax(np.abs(got - due)) / scale if scale > 0.0 else 0.0
                    found[key] = max(found[key], float(worst), float(np.any(np.isnan(got) != np.isnan(due))))
    return dict(found)


def fit_of(ai: Any, model: str, data: Any, estimator: str, options: dict[str, str]) -> Array:
    """Estimates, standard errors and limits of a fit."""
    made = ai.ArmMeans(data) if model == "ArmMeans" else ai.Contrast(data, treatment=1, control=0)
    result = made.fit(estimator, test="normal" if estimator == "batched" else "t", **options)
    return np.concatenate([result.estimate, result.std_error, result.conf_int().to_numpy().ravel()])


def cells(parts: list[tuple[Array, Array]]) -> str:
    """Mean and worst coverage of arms and of contrasts, with the error of the mean over runs."""
    told = []
    for place in (0, 1):
        every = np.concatenate([part[place] for part in parts])
        if not len(every):
            return "| - | - | - | -"
        each = np.nanmean(every, axis=1)
        error = float(np.nanstd(each)) / math.sqrt(len(each))
        told.append(f"| {np.nanmean(every):.4f} ± {error:.4f} | {np.nanmean(every, axis=0).min():.4f}")
    return " ".join(told)


def page(
    found: list[list[list[tuple[Array, Array]]]], gaps: list[dict[tuple[str, str], float]], runs: int
) -> str:
    worst: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    counts: dict[str, int] = defaultdict(int)
    for one in gaps:
        for (engine, fit), size in one.items():
            worst[fit][engine] = max(worst[fit][engine], size)
            counts[fit] += engine == "DuckDB"
    same = "\n".join(
        f"| {fit} | {counts[fit]} | {by['DuckDB']:.1e} | {by['Polars']:.1e} |" for fit, by in worst.items()
    )
    most = max(max(by.values()) for by in worst.values())
    kinds = ("known propensities", "shares alone", "period-weighted, normal")
    lines = "\n".join(
        f"| {row.name} | {kind} {cells([part[place] for part in parts])} |"
        for row, parts in zip(ROWS, found, strict=True)
        for place, kind in enumerate(kinds)
    )
    return f"""# Large logs: sums in place of rows

Command: `{COMMAND}`. Seed: {SEED}. Date: {evidence.stamp()}.

## Coverage

Each row is based on {runs:,} runs (for shares alone, on the runs in which every arm had users in every
period). 0/1 outcomes have rate {RATE:g}, and {RATE * WEEKEND:g} at weekends, for all arms; Thompson sampling
adapts between periods, with no share below {FLOOR:g}. The table is based on nominal 95% intervals for the
mean rate over the period, and for the differences between {CONTRASTS} arms and the first, which are 0. *Known
propensities* and *shares alone* are `ArmMeans` with uniform weights and the default of `Contrast`, both with
`test="hall"`; *period-weighted, normal* are means of the arm by period, weighted by all users of the period,
with the normal distribution. Shares are based on the available intervals; an arm with fewer than five buyers
has none.

| table | fit | arms | worst arm | contrasts | worst contrast |
| --- | --- | ---: | ---: | ---: | ---: |
{lines}

## Equality with rows

There are {len(gaps)} generated logs with 2 to 4 arms and 1 to 6 batches, half of them with propensities that
vary from row to row; rewards are normal, skewed or 0/1. The table shows the largest difference between
estimates, standard errors or limits and those from the rows with `outcome="batch-mean"`, relative to the
largest of them. The overall maximum is {most:.1e}.

| fit | logs | DuckDB | Polars |
| --- | ---: | ---: | ---: |
{same}
"""


def main() -> None:
    parser = evidence.parser(__doc__)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    runs, logs = (QUICK, QUICK_LOGS) if options.quick else (FULL, LOGS)
    jobs = [(row, part) for row in range(len(ROWS)) for part in range(runs // BLOCK)]
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        parts = list(pool.map(block, jobs))
        gaps = list(pool.map(differences, range(logs), chunksize=10))
    found = [
        [part for part, job in zip(parts, jobs, strict=True) if job[0] == row] for row in range(len(ROWS))
    ]
    text = page(found, gaps, runs)
    evidence.publish(text, __file__, options)
    if options.quick:
        evidence.hold_cell(text, __file__, f"{ROWS[0].name} | known propensities", "arms")


if __name__ == "__main__":
    main()
