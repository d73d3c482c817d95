"""Ratio metrics and covariate adjustment on adaptive logs: makes docs/evidence/ratios.md.

Sessions of two arms with earlier spending, orders and their revenue, by simulators in plain NumPy that follow
the revenue. Intervals for revenue per order, its difference and its lift, and for mean revenue with earlier
spending as a covariate, beside the intervals without it.
"""

from __future__ import annotations

import math
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import evidence
import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

SEED, FULL, QUICK, BLOCK = 20261125, 1_000, 64, 64
ROUNDS, BATCH, FLOOR, EXPLORATION, PRICE = 2_000, 100, 0.05, 0.2, 2.0
COMMAND = "python docs/evidence/ratios.py"
DESIGNS = ("epsilon-greedy .2", "Thompson, floor .05", "Thompson, floor .05, batches of 100")
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Cell:
    """A design, orders a session, and by how much the price of the second arm is higher."""

    design: str
    orders: float
    gap: float

    @property
    def name(self) -> str:
        dearer = f"price {self.gap:.0%} higher" if self.gap else "equal"
        return f"{self.design}, {self.orders:g} orders, {dearer}"


CELLS = tuple(Cell(design, orders, gap) for design in DESIGNS for orders in (0.6, 3.0) for gap in (0.0, 0.15))
COLUMNS = ("arm", "difference", "lift", "revenue", "adjusted", "width", "ratio adjusted", "ratio width")


def chance(design: str, count: Array, total: Array, squares: Array) -> Array:
    """Probability of the second arm by what each arm paid so far; (runs, 2) each, returns (runs,)."""
    few = count.min(axis=1) < 2.0
    seen = np.maximum(count, 1.0)
    mean = total / seen
    if design == DESIGNS[0]:
        best = np.where(mean[:, 1] > mean[:, 0], 1.0, 0.0)
        found = EXPLORATION / 2.0 + (1.0 - EXPLORATION) * best
    else:
        variance = np.maximum(squares / seen - mean**2, 1e-9) / seen
        lead = (mean[:, 1] - mean[:, 0]) / np.sqrt(variance.sum(axis=1))
        found = np.clip(ndtr(lead), FLOOR, 1.0 - FLOOR)
    return np.asarray(np.where(few, 0.5, found))


def sessions(cell: Cell, runs: int, rng: np.random.Generator) -> dict[str, Array]:
    """Rounds of some runs, (runs, ROUNDS) each."""
    shape = (runs, ROUNDS)
    prior = rng.gamma(2.0, 0.5, shape)
    orders = rng.poisson(cell.orders * prior).astype(np.float64)
    unit = rng.gamma(np.maximum(orders, 1e-9), 1.0) * (orders > 0.0)  # revenue at a price of 1
    draw, price = rng.random(shape), np.array([PRICE, PRICE * (1.0 + cell.gap)])
    action, share = np.empty(shape, dtype=np.int64), np.empty(shape)
    count, total, squares = (np.zeros((runs, 2)) for _ in range(3))
    rows, now = np.arange(runs), np.full(runs, 0.5)
    for step in range(ROUNDS):
        if cell.design != DESIGNS[2] or step % BATCH == 0:
            now = chance(cell.design, count, total, squares)
        share[:, step] = now
        action[:, step] = chosen = (draw[:, step] < now).astype(np.int64)
        reward = unit[:, step] * price[chosen]
        count[rows, chosen] += 1.0
        total[rows, chosen] += reward
        squares[rows, chosen] += reward**2
    return {
        "prior": prior,
        "orders": orders,
        "action": action,
        "share": share,
        "revenue": unit * price[action],
    }


def log_of(cell: Cell, found: dict[str, Array], run: int) -> Any:
    """The log of a run."""
    import adaptinf as ai
    from adaptinf.log import LogArrays

    share, action = found["share"][run], found["action"][run].astype(np.int64)
    every = np.column_stack([1.0 - share, share])
    arrays = LogArrays(
        action=action,
        reward=found["revenue"][run],
        propensity=every[np.arange(ROUNDS), action],
        propensities=every,
        batch=np.arange(ROUNDS) // BATCH if cell.design == DESIGNS[2] else None,
        context={"prior": found["prior"][run]},
        outcomes={"orders": found["orders"][run]},
    )
    return ai.AdaptiveLog.from_arrays(arrays, arms=("a", "b"), context_free=True)


def measured(cell: Cell, log: Any) -> list[float]:
    """Whether 95% intervals hold, and widths with covariates over those without, by COLUMNS."""
    import adaptinf as ai

    pair, below = {"treatment": "b", "control": "a"}, {"denominator": "orders"}
    price = np.array([PRICE, PRICE * (1.0 + cell.gap)])
    means = price * cell.orders

    def ends(result: Any) -> Array:
        return np.asarray(result.conf_int().to_numpy(), dtype=np.float64)

    def holds(limits: Array, truth: float) -> float:
        low, high = limits[0]
        return math.nan if math.isnan(low) else float(low <= truth <= high)

    arms = ends(ai.ArmMeans(log, **below).fit())
    ratio, revenue = ai.Contrast(log, **pair, **below), ai.Contrast(log, **pair)
    plain, adjusted = ends(revenue.fit()), ends(revenue.fit(covariate="prior"))
    ratio_plain, ratio_adjusted = ends(ratio.fit()), ends(ratio.fit(covariate="prior"))
    lift = ends(ai.Contrasts(log, control="a", **below).fit(lift=True))
    return [
        float(np.mean((arms[:, 0] <= price) & (price <= arms[:, 1]))),
        holds(ratio_plain, price[1] - price[0]),
        holds(lift, price[1] / price[0] - 1.0),
        holds(plain, means[1] - means[0]),
        holds(adjusted, means[1] - means[0]),
        float(np.diff(adjusted)[0, 0] / np.diff(plain)[0, 0]),
        holds(ratio_adjusted, price[1] - price[0]),
        float(np.diff(ratio_adjusted)[0, 0] / np.diff(ratio_plain)[0, 0]),
    ]


def block(job: tuple[int, int, int]) -> Array:
    """Some runs of a cell, shape (runs, 8)."""
    place, start, stop = job
    cell, rng = CELLS[place], np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(place, start)))
    found = sessions(cell, stop - start, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.array([measured(cell, log_of(cell, found, run)) for run in range(stop - start)])


def row(cell: Cell, found: Array) -> str:
    """A line of the table; found (runs, 8)."""
    refused = np.isnan(found[:, COLUMNS.index("lift")]).mean()
    arm, difference, lift, revenue, adjusted, width, ratio, ratio_width = np.nanmean(found, axis=0)
    return (
        f"| {cell.name} | {arm:.4f} | {difference:.4f} | {lift:.4f} | {refused:.4f} | {revenue:.4f} | "
        f"{adjusted:.4f} | {width:.3f} | {ratio:.4f} | {ratio_width:.3f} |"
    )


def page(places: list[int], counted: list[Array], runs: int) -> str:
    lines = "\n".join(row(CELLS[place], found) for place, found in zip(places, counted, strict=True))
    shares = ("arm", "difference", "lift", "revenue", "adjusted", "ratio adjusted")
    error = math.sqrt(0.05 * 0.95 / runs)
    covered = [float(np.nanmean(found[:, COLUMNS.index(name)])) for found in counted for name in shares]
    short = sum(share < 0.95 - 3.0 * error for share in covered)
    return f"""# Ratio metrics and covariate adjustment

Command: `{COMMAND}`. Seed: {SEED}. Date: {evidence.stamp()}.

Sessions with two arms are simulated in plain NumPy, with {ROUNDS:,} rounds and {runs:,} logs per row. Earlier
spending x is gamma with mean 1 and variance 1/2; the number of orders is Poisson with mean 0.6 x or 3 x; and
revenue is a sum of exponential prices with mean {PRICE:g}, which in the second arm is the same or 15% higher.
Designs follow mean revenue: they choose the better arm with probability {1 - EXPLORATION / 2:g}, or choose
each arm with the normal approximation to the probability that it is the better one (but at least {FLOOR:g}),
updated in every round or every {BATCH} rounds.

The table shows the coverage of nominal 95% intervals, all by defaults: *arm* is for revenue per order of an
arm, averaged over both; *difference* and *lift* compare the second arm with the first; *refused* is the share
of logs without a lift, which are excluded. *revenue* is for the difference in mean revenue, and *adjusted* is
the same with x as a covariate; *width* is the mean ratio of the adjusted to the unadjusted width; *ratio
adjusted* and *its width* are the same for revenue per order, which is unrelated to x in this simulation. The
Monte Carlo standard error of a proportion of .95 is {error:.4f}. {len(covered) - short} of {len(covered)}
shares are at least .95 less three such errors.

| design | arm | difference | lift | refused | revenue | adjusted | width | ratio adjusted | its width |
| --- |{" ---: |" * 9}
{lines}
"""


def main() -> None:
    parser = evidence.parser(__doc__)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    runs = QUICK if options.quick else FULL
    places = [0] if options.quick else list(range(len(CELLS)))
    jobs = [(place, start, min(start + BLOCK, runs)) for place in places for start in range(0, runs, BLOCK)]
    if options.quick:
        parts = [block(job) for job in jobs]
    else:
        with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
            parts = list(pool.map(block, jobs))
    counted = [
        np.concatenate([part for part, job in zip(parts, jobs, strict=True) if job[0] == place])
        for place in places
    ]
    text = page(places, counted, runs)
    evidence.publish(text, __file__, options)
    if options.quick:
        evidence.hold_cell(text, __file__, CELLS[0].name, "difference", (runs, FULL))


if __name__ == "__main__":
    main()
