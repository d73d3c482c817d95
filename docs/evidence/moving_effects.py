"""What weighted and uniform contrasts of a moving effect cover: makes docs/evidence/moving_effects.md.

The cells of the grid of comparisons in which the effect turns, but for those whose design uses contexts.
"""

from __future__ import annotations

import time
import warnings

import evidence
import numpy as np
from comparison_cells import Cell, read
from comparison_fits import Asked, policies
from comparison_logs import lead, simulate, unit_of
from default_logs import Array

SEED, LOGS, QUICK = 20_261_202, 400, 20
HELD = "122"


def weighted(effect: Array, squares: Array, shares: Array) -> float:
    """Mean of an effect (T,) with weights v^(-1/2), v = sum of d^2 / e; squares (K,), shares (T, K)."""
    weight = ((squares / shares).sum(axis=1)) ** -0.5
    return float(weight @ effect / weight.sum())


def answers(cell: Cell, number: int) -> Array:
    """By log: limits of combined weights, limits of uniform weights, and both targets; (n, 6)."""
    import adaptinf as ai

    runs = simulate(cell, number, np.random.default_rng([SEED, cell.number]))
    one, other = policies(cell.n_arms)
    change = other - one
    effect = change[0] * unit_of(cell) * lead(cell)
    found = []
    for run, frame in enumerate(runs.frames()):
        model = ai.PolicyContrast(Asked(cell, frame, runs.truth[run]).rows, other, baseline=one)
        limits = [np.ravel(model.fit(weights=kind).conf_int()) for kind in ("combined", "uniform")]
        found.append([*limits[0], *limits[1], effect.mean(), weighted(effect, change**2, runs.share[run])])
    return np.array(found)


def row(cell: Cell, number: int) -> str:
    """A row of the page."""
    low, high, low_uniform, high_uniform, period, own = answers(cell, number).T
    covers = (
        np.mean((low <= own) & (own <= high)),
        np.mean((low <= period) & (period <= high)),
        np.mean((low_uniform <= period) & (period <= high_uniform)),
    )
    length = np.nanmean(high_uniform - low_uniform) / np.nanmean(high - low)
    arms = "" if "arms" in cell.design else f", {cell.n_arms} arms"
    cells = [str(cell.number), f"{cell.design}{arms}", f"{cell.n_rounds:,}"]
    return f"| {' | '.join([*cells, *(f'{share:.3f}' for share in covers), f'{length:.2f}'])} |"


PAGE = """# Effects that move: two targets

Command: `{command}`. Seed: {seed}. Date: {stamp}. Processor time: {seconds:.0f} s.

In these cells of the [grid of comparisons](comparisons.md), arm A's effect changes sign half way. A
`PolicyContrast` with combined weights, the default, estimates the weighted mean of the effect over rounds, as
its table says; here the weights are v^(-1/2), computed from the true propensities. Uniform weights estimate
the mean over the period. The figures are the shares of {logs} logs whose interval contains the mean named
(nominal .95, Monte Carlo error .011), and the mean length of the uniform interval divided by that of the
other. As the two policies differ in arms A and the last only, the `Contrast` of these two has the same
coverage.

| cell | design | T | combined: weighted mean | combined: period's mean | uniform: period's mean | length |
| ---: | --- | ---: | ---: | ---: | ---: | ---: |
{rows}

The two means differ if propensities follow the effect. `weights="uniform"` estimates the mean over the period
at little cost unless propensities become small.
"""


def main() -> None:
    options = evidence.parser(__doc__).parse_args()
    started, stamp = time.process_time(), evidence.stamp()
    warnings.simplefilter("ignore")
    cells = [cell for cell in read() if cell.move == "the effect turns" and not cell.by_context]
    if options.quick:
        cells = [cell for cell in cells if str(cell.number) == HELD]
    number = QUICK if options.quick else LOGS
    rows = "\n".join(row(cell, number) for cell in cells)
    page = PAGE.format(
        command="python docs/evidence/moving_effects.py",
        seed=SEED,
        rows=rows,
        logs=number,
        stamp=stamp,
        seconds=time.process_time() - started,
    )
    if options.quick:
        evidence.hold_cell(page, __file__, HELD, "combined: weighted mean", (number, LOGS))
    evidence.publish(page, __file__, options)


if __name__ == "__main__":
    main()
