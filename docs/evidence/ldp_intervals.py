"""Intervals from the released sums of a locally private run: makes docs/evidence/ldp_intervals.md.

Each cell has a seed of its own, made from its name. Runs are collected in batches, for speed.
"""

from __future__ import annotations

import dataclasses
import math
import time
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import evidence
import numpy as np
from joblib import Parallel, delayed

from adaptinf.designs.base import Design
from adaptinf.designs.local.bins import LDPBandit
from adaptinf.inference.released.bin_tests import (
    AnytimeTest,
    BinReports,
    BudgetTest,
    InvertedTest,
    coins,
    read_reports,
)
from adaptinf.simulation.environments.vector_arms import SmoothArms

HERE = Path(__file__).resolve().parent
SEED = 2026
EPSILONS = (2.0, 4.0, 8.0, 32.0, 1024.0)
BATCH = 64
FEWEST = 100
ARMS = SmoothArms(3, 2)
PAGE = """\
# Intervals from the sums of a locally private run

Command: `python docs/evidence/ldp_intervals.py{flags}`. Seed: {seed} and the name of the cell. Date: {today}.
Running time: {minutes:.1f} minutes, {jobs} processes.

`BinMeans` is applied to `LDPBandit` with K = 3 arms, d = 2, the paper's f_k, Bernoulli rewards, and contexts
that are uniform on the square unless stated otherwise. Nominal coverage is .95; the estimand is the average
of f_k over the bin. A pair consists of a bin that was ever active and one of its initial arms. Every pair in
every run has intervals and is counted. Runs continue until there are {pairs:,} pairs ({more:,} with the
published calibration, for which a run has hundreds). Errors are standard errors over runs, because the pairs
in one run are dependent.

## Coverage

*budget* and *anytime* are the two methods; *ratio* is V/U ± 1.96 standard errors, computed as if the end of
reports did not depend on their own sums, and as if counts clearly exceeded their noise. *whole* and *point*
are the shares of budget intervals that consist of all of [0, 1] and of a single point. Coverage and median
widths (budget / anytime / ratio) are over all pairs.

{coverage}

The largest distance of the coverage of the budget method from .95 over all {cells} cells of this page,
including those of the other trials, is {worst:.4f} ({where}; its standard error is {error:.4f}).

## Who is covered

The table shows the coverage of the budget method, with the number of intervals, by kind of pair. Whether a
bin is the first one or another is known in advance. *kept*, *dropped* and *estimate* select by the outcome:
whether the arm remained until the bin was halved or the trial ended, and whether the counts of the bin allow
an estimate. No method guarantees .95 for these: an arm that was dropped by mistake is one whose sums were
inaccurate, and whether a bin is active for long enough to allow an estimate also depends on the sums.

{kinds}

For the ratio interval, by the same kinds of pairs:

{ratios}

## Other trials

epsilon = 8, n = {other_horizon:,}.

{others}

`check_every` is 1 unless stated otherwise.

- *published*: the paper's radius. Bins are halved and arms are dropped because of noise, and few counts
  exceed it.
- *published, 20*: the same with `check_every=20`.
- *other contexts*: two independent coordinates, Beta(2, 4) and Beta(0.6, 0.6). Averages are over this
  distribution.
- *auxiliary log*: {auxiliary:,} participants at epsilon = 64, with another distribution of contexts, report
  before the trial; the bins and arms that remain at its beginning follow from their reports.
- *checks after 50*: `check_every=50`.

The table shows the coverage of the budget method by kind of pair:

{other_kinds}
"""


@dataclasses.dataclass(frozen=True)
class Cell:
    """A design, its environment, and the number of pairs to see."""

    name: str
    design: Design
    arms: SmoothArms
    horizon: int
    pairs: int


def seed_of(name: str) -> int:
    return SEED + zlib.crc32(name.encode())


def batches(cell: Cell) -> Iterator[list[BinReports]]:
    """Reports of a batch of runs at a time, until there are enough pairs."""
    seen = runs = 0
    batch: list[BinReports] = []
    for log in cell.design.logs(cell.arms, cell.horizon, 100_000, rng=seed_of(cell.name)):
        batch.append(read_reports(log))
        seen, runs = seen + batch[-1].count.size, runs + 1
        done = seen >= cell.pairs and runs >= FEWEST // 4
        if len(batch) == BATCH or done:
            yield batch
            batch = []
        if done:
            return


def together(batch: list[BinReports]) -> BinReports:
    """One set of pairs of several runs."""
    stages = max(part.spent.shape[1] for part in batch)
    joined: dict[str, Any] = {}
    for field in dataclasses.fields(BinReports):
        parts = [getattr(part, field.name) for part in batch]
        if field.name in ("scale", "words"):
            joined[field.name] = parts[0]
        elif field.name == "arms":
            joined[field.name] = tuple(arm for part in parts for arm in part)
        else:
            if parts[0].ndim == 2 and field.name not in ("low", "high"):
                parts = [np.pad(part, ((0, 0), (0, stages - part.shape[1]))) for part in parts]
            joined[field.name] = np.concatenate(parts)
    return BinReports(**joined)


def truths(arms: SmoothArms, known: BinReports) -> np.ndarray:
    """f_k's averages over the bins; over the given contexts in them where those are given."""
    chosen = np.array([arms.arms.index(arm) for arm in known.arms])
    if arms.rows is None:
        return arms.averages(known.low, known.high)[np.arange(chosen.size), chosen]
    points = arms.tables(1).vectors[:, : arms.dimension]
    f = arms.expected(points)
    boxes, where = np.unique(np.hstack([known.low, known.high]), axis=0, return_inverse=True)
    means = np.full((len(boxes), arms.n_arms), np.nan)
    for number, box in enumerate(boxes):
        inside = ((points >= box[:2]) & ((points < box[2:]) | (box[2:] == 1.0))).all(axis=1)
        if inside.any():
            means[number] = f[inside].mean(axis=0)
    return means[where, chosen]


COLUMNS = (
    "run",
    "estimate",
    "root",
    "kept",
    "budget",
    "anytime",
    "ratio",
    "w_budget",
    "w_anytime",
    "w_ratio",
)


def study(cell: Cell) -> np.ndarray:
    """One row a pair, with the columns above."""
    rows, first = [], 0
    for batch in batches(cell):
        known = together(batch)
        run = first + np.repeat(np.arange(len(batch)), [part.count.size for part in batch])
        first += len(batch)
        truth = truths(cell.arms, known)
        coin = np.concatenate([coins(part, 0) for part in batch])
        estimate = np.concatenate([part.clear() for part in batch])
        limits = [
            InvertedTest(BudgetTest(known, coin), "budget", False).interval(math.log(0.05)),
            InvertedTest(AnytimeTest(known), "anytime", True).interval(math.log(0.05)),
            ratio_interval(known),
        ]
        place = np.unique(run * 100_000 + known.bins, return_inverse=True)[1]
        longest = np.zeros(place.max() + 1)
        np.maximum.at(longest, place, known.participants)
        table = [run, estimate, known.bins == 0, known.participants == longest[place]]
        table += [(low <= truth) & (truth <= high) for low, high in (part.T for part in limits)]
        table += [part[:, 1] - part[:, 0] for part in limits]
        rows.append(np.column_stack(table)[np.isfinite(truth)])
    return np.concatenate(rows)


def ratio_interval(known: BinReports) -> np.ndarray:
    """V / U and 1.96 standard errors to each side."""
    count = np.maximum(known.count, known.scale * np.sqrt(2.0 * known.participants))
    ratio = known.total / count
    inside = np.clip(ratio, 0.0, 1.0)
    noise = 2.0 * known.scale**2 * known.participants * (1.0 + inside**2)
    size = 1.96 * np.sqrt(noise + count * inside * (1.0 - inside)) / count
    return np.column_stack([ratio - size, ratio + size])


def share(table: np.ndarray, column: str) -> tuple[float, float]:
    """Coverage and its standard error over runs."""
    run, hit = table[:, 0].astype(int), table[:, COLUMNS.index(column)]
    mean = hit.mean()
    parts = np.bincount(np.unique(run, return_inverse=True)[1], hit - mean)
    return float(mean), float(math.sqrt((parts**2).sum()) / hit.size)


def figure(number: float) -> str:
    return f"{number:.3f}".lstrip("0") if number < 1.0 else f"{number:.3f}"


def coverage_line(cell: Cell, table: np.ndarray) -> str:
    mean, error = share(table, "budget")
    width = {name: table[:, COLUMNS.index(f"w_{name}")] for name in ("budget", "anytime", "ratio")}
    shown = [
        cell.name,
        f"{len(table):,}",
        f"{len(np.unique(table[:, 0])):,}",
        f"{figure(mean)} ± {figure(error)}",
        figure(share(table, "anytime")[0]),
        figure(share(table, "ratio")[0]),
        figure(float((width["budget"] >= 1.0).mean())),
        figure(float((width["budget"] == 0.0).mean())),
        " / ".join(figure(float(np.median(part))) for part in width.values()),
    ]
    return "| " + " | ".join(shown) + " |"


def kind_line(cell: Cell, table: np.ndarray, column: str) -> str:
    estimate, root, kept = (table[:, place] > 0.0 for place in (1, 2, 3))
    shown = [
        f"{figure(float(part[:, COLUMNS.index(column)].mean()))} ({len(part):,})" if len(part) else "none"
        for part in (table[root], table[~root], table[kept], table[~kept], table[estimate])
    ]
    return f"| {cell.name} | " + " | ".join(shown) + " |"


def farthest(done: list[tuple[Cell, np.ndarray]]) -> tuple[Cell, float, float]:
    """The cell in which the budget method's coverage is farthest from .95, how far, and the error of it."""
    found = [(cell, *share(table, "budget")) for cell, table in done]
    cell, mean, error = max(found, key=lambda one: abs(one[1] - 0.95))
    return cell, abs(mean - 0.95), error


def ruled(head: Iterable[str], lines: list[str]) -> str:
    columns = list(head)
    return "\n".join(["| " + " | ".join(columns) + " |", "| --- |" + " --- |" * (len(columns) - 1), *lines])


def main_cells(pairs: int, horizons: tuple[int, ...]) -> list[Cell]:
    return [
        Cell(
            f"{epsilon:g}, {horizon:,}, {refinement:g}",
            LDPBandit(epsilon=epsilon, refinement=refinement),
            ARMS,
            horizon,
            pairs,
        )
        for refinement in (0.1, 0.4)
        for horizon in horizons
        for epsilon in EPSILONS
    ]


def other_cells(pairs: int, more: int, horizon: int, auxiliary: int) -> list[Cell]:
    draws = np.random.default_rng(SEED)
    points = np.column_stack([draws.beta(2.0, 4.0, 20_000), draws.beta(0.6, 0.6, 20_000)])
    others = SmoothArms(3, 2, contexts=points, order="resampled")
    log = ARMS.auxiliary(auxiliary, gamma=1.0, kappa=0.5, epsilon=64.0, rng=SEED)
    return [
        Cell("published", LDPBandit(epsilon=8.0, calibration="published"), ARMS, horizon, more),
        Cell(
            "published, 20",
            LDPBandit(epsilon=8.0, calibration="published", check_every=20),
            ARMS,
            horizon,
            more,
        ),
        Cell("other contexts", LDPBandit(epsilon=8.0), others, horizon, pairs),
        Cell("auxiliary log", LDPBandit(epsilon=8.0, auxiliary=(log,)), ARMS, horizon, pairs),
        Cell("checks after 50", LDPBandit(epsilon=8.0, check_every=50), ARMS, horizon, pairs),
    ]


def main() -> None:
    parser = evidence.parser(__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    given = parser.parse_args()
    begin = time.time()
    pairs, more, horizons = (400, 800, (2_000,)) if given.quick else (10_000, 100_000, (20_000, 80_000))
    other_horizon, auxiliary = horizons[0], horizons[0] // 4
    cells = main_cells(pairs, horizons)
    others = other_cells(pairs, more, other_horizon, auxiliary)
    tables = Parallel(n_jobs=given.jobs, batch_size=1)(delayed(study)(cell) for cell in cells + others)
    done = list(zip(cells + others, tables, strict=True))
    figures = ["pairs", "runs", "budget", "anytime", "ratio", "whole", "point", "widths"]
    head = ["epsilon, n, refinement", *figures]
    kinds = ["epsilon, n, refinement", "first bin", "other bins", "kept", "dropped", "estimate"]
    where, worst, error = farthest(done)
    main_part, other_part = done[: len(cells)], done[len(cells) :]
    page = PAGE.format(
        flags=" --quick" if given.quick else "",
        seed=SEED,
        today=evidence.stamp(),
        minutes=(time.time() - begin) / 60.0,
        jobs=given.jobs,
        pairs=pairs,
        more=more,
        coverage=ruled(head, [coverage_line(*part) for part in main_part]),
        cells=len(done),
        worst=worst,
        where=where.name,
        error=error,
        kinds=ruled(kinds, [kind_line(cell, t, "budget") for cell, t in main_part]),
        ratios=ruled(kinds, [kind_line(cell, t, "ratio") for cell, t in main_part]),
        other_horizon=other_horizon,
        auxiliary=auxiliary,
        others=ruled(["trial", *figures], [coverage_line(*part) for part in other_part]),
        other_kinds=ruled(["trial", *kinds[1:]], [kind_line(cell, t, "budget") for cell, t in other_part]),
    )
    evidence.publish(page, __file__, given)
    if given.quick:
        design = LDPBandit(epsilon=8.0, refinement=0.1)
        found = study(Cell("headline", design, ARMS, 20_000, 1_000))
        then = evidence.measured(evidence.committed(__file__, "8, 20,000, 0.1", "budget"))
        evidence.hold("coverage by the budget, epsilon = 8, n = 20,000", share(found, "budget"), then)


if __name__ == "__main__":
    main()
