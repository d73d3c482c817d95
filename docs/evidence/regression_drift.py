"""Coverage of regressions under a drift that all arms share: makes docs/evidence/regression_drift.md.

Equal arms and a normal covariate by simulators in plain NumPy, all propensities told. The logs of a cell are
collected side by side.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context

import evidence
import numpy as np
from numpy.typing import NDArray

from adaptinf.inference.regression.adaptive_ols import AdaptiveOLS
from adaptinf.log import AdaptiveLog, LogArrays

SEED, FULL, QUICK, ROUNDS, SIZE, SLOPE = 20261127, 400, 40, 1_000, 10, 0.5
COMMAND = "OPENBLAS_NUM_THREADS=1 python docs/evidence/regression_drift.py"
WAYS = ("least squares", "sqrt", "h/e", "combined", "uniform")
Array = NDArray[np.float64]
PAGE = """\
# Regressions under a drift that all arms share

Command: `{command}`. Seed: {seed}. Date: {stamp}. {runs} logs of {rounds:,} rounds a cell.

The table shows the coverage of 95% intervals, by coefficient, and in parentheses their mean length divided by
that with square roots of importance weights. The arms are equal and the covariate's slope is .5. The noise
has standard deviation 1; the level of all arms rises by 1 over the log (linear), or rises and falls by 1 with
the time of day, while the shares vary between .15 and .85. *h/e*: all coefficients by least squares with one
weight per round divided by the chosen arm's propensity; *combined*: the default, in which the coefficients of
arms are projections of score differences; *uniform*: the same with equal weights. With several arms, the
figures are means over the arms.

{table}
"""


@dataclass(frozen=True, slots=True)
class Cell:
    """A design, the number of arms, the drift, and the formula's right side."""

    design: str
    n_arms: int
    drift: str
    right: str

    @property
    def name(self) -> str:
        return f"{self.design}, {self.n_arms} arms | {self.drift} | {self.right}"


CELLS = (
    *(
        Cell(design, n_arms, drift, right)
        for design, n_arms, right in (
            ("Thompson, floor .05", 2, "C(action) * x"),
            ("epsilon-greedy .2", 2, "C(action) * x"),
            ("Thompson, floor .05", 4, "C(action) + x"),
        )
        for drift in ("none", "linear")
    ),
    Cell("hourly shares, nothing adapts", 2, "hourly", "C(action) * x"),
)


def level(cell: Cell) -> Array:
    """What moves the rewards of all arms, shape (T,)."""
    t = np.arange(ROUNDS)
    return {"none": np.zeros(ROUNDS), "linear": t / ROUNDS, "hourly": np.sin(2.0 * np.pi * t / 24.0)}[
        cell.drift
    ]


def chances(cell: Cell, t: int, count: Array, total: Array, rng: np.random.Generator) -> Array:
    """Propensities of the arms at a round; count, total (runs, K); returns (runs, K)."""
    if cell.design.startswith("hourly"):
        second = 0.5 + 0.35 * math.sin(2.0 * math.pi * t / 24.0)
        return np.tile([1.0 - second, second], (len(count), 1))
    if cell.design.startswith("epsilon"):
        means = np.where(count > 0.0, total / np.maximum(count, 1.0), np.inf)
        best = np.arange(cell.n_arms) == means.argmax(axis=1)[:, None]
        return 0.2 / cell.n_arms + 0.8 * best
    draws = rng.normal(size=(200, *count.shape)) / np.sqrt(count + 1.0) + total / (count + 1.0)
    best = (draws.argmax(axis=2)[..., None] == np.arange(cell.n_arms)).mean(axis=0)
    return 0.05 + (1.0 - 0.05 * cell.n_arms) * best


def logs(cell: Cell, runs: int, rng: np.random.Generator) -> list[AdaptiveLog]:
    """Logs of a cell; the chances move every ten rounds, those by the hour every round."""
    x, noise, coin = (
        rng.normal(size=(runs, ROUNDS)),
        rng.normal(size=(runs, ROUNDS)),
        rng.random((runs, ROUNDS)),
    )
    count, total = np.zeros((runs, cell.n_arms)), np.zeros((runs, cell.n_arms))
    every = np.empty((runs, ROUNDS, cell.n_arms))
    action, reward, drift = np.empty((runs, ROUNDS), dtype=np.int64), np.empty((runs, ROUNDS)), level(cell)
    step = 1 if cell.drift == "hourly" else SIZE
    for t in range(ROUNDS):
        if t % step == 0:
            share = chances(cell, t, count, total, rng)
        every[:, t] = share
        action[:, t] = np.minimum((share.cumsum(axis=1) < coin[:, t, None]).sum(axis=1), cell.n_arms - 1)
        reward[:, t] = drift[t] + SLOPE * x[:, t] + noise[:, t]
        chosen = action[:, t, None] == np.arange(cell.n_arms)
        count += chosen
        total += chosen * reward[:, t, None]
    found = []
    for run in range(runs):
        own = every[run, np.arange(ROUNDS), action[run]]
        arrays = LogArrays(
            action[run], reward[run], propensity=own, propensities=every[run], context={"x": x[run]}
        )
        arms = tuple("abcdef"[: cell.n_arms])
        found.append(AdaptiveLog.from_arrays(arrays, arms=arms, context_free=True, propensity_status="exact"))
    return found


def block(job: tuple[int, int, int]) -> tuple[Array, Array]:
    """Whether intervals cover, and their lengths, of some runs of a cell; shape (runs, ways, terms) each."""
    place, first, runs = job
    cell = CELLS[place]
    rng = np.random.default_rng([SEED, place, first])
    covered, length = [], []
    for log in logs(cell, runs, rng):
        model = AdaptiveOLS.from_formula(f"reward ~ {cell.right}", log)
        fits = {
            "least squares": model.fit("none", "HC2"),
            "sqrt": model.fit("weighted", stationary=True),
            "combined": model.fit("weighted"),
            "uniform": model.fit("weighted", weights="uniform"),
        }
        model.data = replace(model.data, rows_of=None)
        fits["h/e"] = model.fit("weighted")
        truth = np.array([SLOPE if name == "x" else 0.0 for name in model.data.names])
        limits = np.array([fits[way].conf_int().to_numpy() for way in WAYS])
        covered.append((limits[..., 0] <= truth) & (truth <= limits[..., 1]))
        length.append(limits[..., 1] - limits[..., 0])
    return np.array(covered, dtype=float), np.array(length)


def table(found: dict[int, tuple[Array, Array]]) -> str:
    """Rows of cells and coefficients; of each cell shape (runs, ways, terms)."""
    lines = [
        f"| design | drift | formula | coefficient | {' | '.join(WAYS)} |",
        "| --- " * (4 + len(WAYS)) + "|",
    ]
    for place, (covered, length) in found.items():
        cell = CELLS[place]
        terms = ["Intercept", *["arm"] * (cell.n_arms - 1), "x", *["arm : x"] * ("*" in cell.right)]
        for kind in ("arm", "x", "arm : x"):
            own = [j for j, term in enumerate(terms) if term == kind]
            if not own:
                continue
            share = covered[..., own].mean(axis=(0, 2))
            ratio = length[..., own].mean(axis=(0, 2)) / length[:, WAYS.index("sqrt"), own].mean()
            cells = [f"{a:.3f} ({b:.2f})" for a, b in zip(share, ratio, strict=True)]
            lines.append(f"| {cell.name} | {kind} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = evidence.parser(__doc__)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    runs, size = (QUICK if options.quick else FULL), 40
    places = [1] if options.quick else list(range(len(CELLS)))
    jobs = [(place, first, min(size, runs - first)) for place in places for first in range(0, runs, size)]
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if options.quick:
        parts = [block(job) for job in jobs]
    else:
        with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
            parts = list(pool.map(block, jobs))
    found = {}
    for place in places:
        own = [part for part, job in zip(parts, jobs, strict=True) if job[0] == place]
        found[place] = tuple(np.concatenate([part[k] for part in own]) for k in range(2))
    text = PAGE.format(
        command=COMMAND, seed=SEED, stamp=evidence.stamp(), runs=runs, rounds=ROUNDS, table=table(found)
    )
    evidence.publish(text, __file__, options)
    if options.quick:
        evidence.hold_cell(text, __file__, f"{CELLS[1].name} | arm", "combined", (runs, FULL))


if __name__ == "__main__":
    main()
