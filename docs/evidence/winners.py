"""The winner's interval: makes docs/evidence/winners.md.

Logs of adaptive designs with normal rewards, all arms equal or one of them better. Every arm is estimated by
the default of `ArmMeans`, from rows and, for batches, from sums; the interval of the arm with the highest
estimate is made in four ways, and must hold that arm's own mean.
"""

from __future__ import annotations

import math
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import evidence
import numpy as np
from numpy.typing import NDArray

SEED, FULL, QUICK, BLOCK = 20261129, 5_000, 64, 512
BETTER, ALPHA, MOST = 0.2, 0.05, 1.30
COMMAND = "python docs/evidence/winners.py"
METHODS = ("hybrid", "conditional", "projection")
GREEDY, FLOOR, BATCHES = "epsilon-greedy .2", "Thompson, floor .05", "Thompson, floor .05, batches of 100"
HEAD = (
    "| design | rounds | arms | means | hybrid | sums | conditional | projection | usual | width | above "
    "| cautioned | refused |"
)
HYBRID, RATIO, CAUTIONED, SUMS = 0, 4, 6, 7
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Cell:
    """A design and what it runs on."""

    design: str
    rounds: int
    arms: int
    gap: float

    @property
    def name(self) -> str:
        return f"{self.design} | {self.rounds:,} | {self.arms} | {'one better' if self.gap else 'equal'}"


CELLS = tuple(
    Cell(design, rounds, arms, gap)
    for rounds, sizes in ((1_000, (2, 3, 5, 10, 20)), (10_000, (2, 5, 20)))
    for design in (GREEDY, FLOOR, BATCHES)
    for arms in sizes
    for gap in (0.0, BETTER)
    if (design, rounds, arms) != (FLOOR, 10_000, 20)  # uniform, as in batches, and slow
)


def block(job: tuple[int, int, int]) -> Array:
    """Some runs of a cell; shape (runs, 8), NaN if there is no interval.

    Whether the three methods and the usual interval cover, the width over the usual one's, whether the
    median-unbiased estimate is above the truth, whether there is a caution, whether the hybrid from sums
    covers.
    """
    import adaptinf as ai

    number, start, stop = job
    cell = CELLS[number]
    design = {
        GREEDY: ai.designs.EpsilonGreedy(exploration=0.2),
        FLOOR: ai.designs.Thompson(prior="normal", floor=0.05),
        BATCHES: ai.designs.Thompson(prior="normal", floor=0.05, batch_size=100),
    }[cell.design]
    truth = np.zeros(cell.arms)
    truth[0] = cell.gap
    env, seed = ai.environments.NormalArms(truth), np.random.SeedSequence(SEED, spawn_key=(number,))
    measured = np.full((stop - start, 8), np.nan)
    for row, log in enumerate(design.logs(env, cell.rounds, stop, seed, start=start)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sources: list[ai.AdaptiveLog | ai.Sums] = [log]
            if cell.design == BATCHES:
                sources.append(ai.Sums.of_log(log))
            fits = [ai.ArmMeans(source).fit() for source in sources]
        if any(fit.covariance is None or not np.isfinite(fit.covariance).all() for fit in fits):
            continue  # an arm without an estimate: Winner refuses
        x, sigma = fits[0].estimate, np.asarray(fits[0].covariance)
        every = [ai.winner_interval(x, sigma, ALPHA, method) for method in METHODS]
        hybrid, mean = every[0], truth[every[0].winner]
        low, high = fits[0].conf_int(ALPHA).iloc[hybrid.winner]
        measured[row, :3] = [one.low <= mean <= one.high for one in every]
        measured[row, 3:5] = low <= mean <= high, (hybrid.high - hybrid.low) / (high - low)
        measured[row, 5:7] = hybrid.median_unbiased > mean, bool(fits[0].cautions)
        if len(fits) > 1:
            best = ai.winner_interval(fits[1].estimate, np.asarray(fits[1].covariance), ALPHA)
            measured[row, SUMS] = best.low <= truth[best.winner] <= best.high
    return measured


def means_of(measured: Array) -> Array:
    """Means of the columns over the logs that have an interval; measured (runs, 8)."""
    kept = measured[~np.isnan(measured[:, HYBRID])]
    return np.asarray(kept.mean(axis=0))


def line(cell: Cell, measured: Array) -> str:
    """A row of the table; measured (runs, 8)."""
    refused = np.isnan(measured[:, HYBRID]).mean()
    hybrid, conditional, projection, usual, ratio, above, cautioned, sums = means_of(measured)
    from_sums = "" if math.isnan(sums) else f"{sums:.4f}"
    shares = f"{hybrid:.4f} | {from_sums} | {conditional:.4f} | {projection:.4f} | {usual:.4f}"
    return f"| {cell.name} | {shares} | {ratio:.2f} | {above:.3f} | {cautioned:.2f} | {refused:.4f} |"


def verdict(counted: list[Array], runs: int) -> str:
    """How many rows keep what was promised."""
    least = 0.945 - 3.0 * math.sqrt(0.945 * 0.055 / runs)
    measured = [means_of(part) for part in counted]
    short = [mean for mean in measured if min(mean[HYBRID], np.nan_to_num(mean[SUMS], nan=1.0)) < least]
    told = sum(mean[CAUTIONED] > 0.5 for mean in short)
    lowest = min(np.nanmin([mean[HYBRID], mean[SUMS]]) for mean in measured)
    widths = [mean[RATIO] for cell, mean in zip(CELLS, measured, strict=False) if cell.arms <= 10]
    others = f"; of the others {told} of {len(short)} are cautioned in most logs" if short else ""
    kept = f"{len(counted) - len(short)} of {len(counted)} rows{others}"
    return (
        "Hybrid intervals, from rows and from sums, have coverage of at least .945 minus three Monte "
        f"Carlo errors, {least:.4f}, in {kept}. The lowest coverage is {lowest:.4f}. With up to ten arms, "
        f"their mean width is at most {max(widths):.2f} times the usual one; the target was at most "
        f"{MOST:.2f}."
    )


def page(counted: list[Array], runs: int) -> str:
    lines = "\n".join(line(cell, part) for cell, part in zip(CELLS, counted, strict=False))
    return f"""# The winner's interval

Command: `{COMMAND}`. Seed: {SEED}. Date: {evidence.stamp()}.

Rewards are normal with variance 1 and mean 0, and either one arm is better by {BETTER} or none is; each row
is based on {runs:,} logs. Arm means are computed by the default of `ArmMeans`, with 95% intervals for the
mean of the arm with the highest estimate: *hybrid* is computed from rows; *sums* is the same from sums by
batch; *usual* does not account for the selection. *Width* is the width of the hybrid interval divided by that
of the usual one; *above* is the share of logs whose median-unbiased estimate is above the truth; *cautioned*
is the share of logs whose table carries a caution; *refused* is the share of logs in which an arm has no
estimate, so there is no interval. These logs are omitted from the other columns. With 20 arms, a floor of .05
implies uniform assignment. The Monte Carlo standard error of a proportion of .95 is {
        math.sqrt(0.05 * 0.95 / runs):.4f}.

{verdict(counted, runs)}

{HEAD}
| --- | ---: | ---: | --- |{" ---: |" * 9}
{lines}
"""


def main() -> None:
    parser = evidence.parser(__doc__)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    runs = QUICK if options.quick else FULL
    cells = range(4 if options.quick else len(CELLS))
    jobs = [(cell, start, min(start + BLOCK, runs)) for cell in cells for start in range(0, runs, BLOCK)]
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        parts = list(pool.map(block, jobs))
    counted = [
        np.concatenate([part for part, job in zip(parts, jobs, strict=True) if job[0] == cell])
        for cell in cells
    ]
    text = page(counted, runs)
    evidence.publish(text, __file__, options)
    if options.quick:
        evidence.hold_cell(text, __file__, CELLS[0].name, "hybrid", (runs, FULL))


if __name__ == "__main__":
    main()
