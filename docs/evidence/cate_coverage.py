"""Coverage of the effects by group under ConSE and DP-ConSE: makes docs/evidence/cate_coverage.md.

Every cell of the grid is kept in a folder as soon as it is done, so a run that was stopped goes on.
"""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import evidence
import numpy as np
import pandas as pd

from adaptinf.audit import coverage, coverage_from_tallies
from adaptinf.designs import ConSE, DPConSE
from adaptinf.designs.base import Design
from adaptinf.designs.run_results import Replications
from adaptinf.inference.distributions.two_samples import difference_intervals
from adaptinf.inference.effects.cate import CATE
from adaptinf.inference.released.effects import released_intervals
from adaptinf.inference.results.fit_results import Results
from adaptinf.log import AdaptiveLog
from adaptinf.simulation.environments import FiniteContext

SEED = 20260
ARRIVALS = [0.5, 0.3, 0.2]
MEANS = [[0.4, 0.7], [0.6, 0.3], [0.3, 0.65]]
EXTREME_MEANS = [[0.05, 0.02], [0.02, 0.05], [0.95, 0.98]]
COMMAND = "python docs/evidence/cate_coverage.py"


@dataclass(frozen=True)
class Cell:
    """One cell of the grid; epsilon is None for ConSE."""

    epsilon: float | None
    alpha: float
    horizon: int
    rewards: str
    means: str = "main"

    @property
    def name(self) -> str:
        design = "conse" if self.epsilon is None else f"dpconse-{self.epsilon:g}"
        return f"{design}_alpha-{self.alpha:g}_n-{self.horizon}_{self.rewards}_{self.means}"

    @property
    def design(self) -> Design:
        if self.epsilon is None:
            return ConSE(alpha=self.alpha)
        return DPConSE(epsilon=self.epsilon, alpha=self.alpha)

    @property
    def environment(self) -> FiniteContext:
        return FiniteContext(ARRIVALS, MEANS if self.means == "main" else EXTREME_MEANS, self.rewards)


def fit_aipw(log: AdaptiveLog) -> dict[str, Results]:
    """AIPW by group over the second half."""
    return {"aipw": CATE(log, by="feature", treatment=1, control=0).fit(estimator="aipw")}


@dataclass(frozen=True)
class FitTallies:
    """The analyses that need sums only, for many runs at once."""

    cell: Cell

    def __call__(self, sims: Replications) -> Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        tallies = sims.phase_tallies("estimation", randomised=True)
        parts = (tallies[..., part] for part in range(3))
        fits = {"difference-in-means": difference_intervals(*parts, binary=self.cell.rewards == "bernoulli")}
        design = self.cell.design
        if isinstance(design, DPConSE):
            released = sims.released
            fits["released"] = released_intervals(
                released["contrast_sum"],
                released["arrivals"],
                epsilon_sum=design.contrast_share * design.epsilon,
                epsilon_count=(1.0 - design.contrast_share) * design.epsilon,
                minimum=released["t_min"] / 4.0,
            )
        return fits


def main_grid() -> Iterator[Cell]:
    for horizon, rewards, epsilon, alpha in itertools.product(
        (20_000, 200_000), ("bernoulli", "uniform"), (None, 1.0, 0.3), (0.0, 0.2, 0.5)
    ):
        yield Cell(epsilon, alpha, horizon, rewards)


def reported_grid() -> Iterator[Cell]:
    """Cells that are reported as they come: alpha above 1/2, and extreme means."""
    for epsilon, alpha in itertools.product((None, 1.0, 0.3), (0.7, 0.9)):
        yield Cell(epsilon, alpha, 20_000, "bernoulli")
    for epsilon, alpha in itertools.product((None, 1.0, 0.3), (0.0, 0.2, 0.5)):
        yield Cell(epsilon, alpha, 20_000, "bernoulli", means="extreme")


def measure(cell: Cell, tally_runs: int, log_runs: int, n_jobs: int) -> pd.DataFrame:
    """Coverage of one cell: sums for the analyses that need no more, logs for AIPW.

    Runs of 0/1 rewards are made of binomial stretches, others round by round.
    """
    key = int.from_bytes(hashlib.sha256(cell.name.encode()).digest()[:4])
    root = np.random.SeedSequence(SEED, spawn_key=(key,))
    place = (cell.design, cell.environment)
    logs = coverage(*place, fit_aipw, cell.horizon, log_runs, root, n_jobs=n_jobs)
    runs = tally_runs if cell.rewards == "bernoulli" else log_runs
    truth = cell.environment.effects()
    tallies = coverage_from_tallies(*place, FitTallies(cell), truth, cell.horizon, runs, root, n_jobs=n_jobs)
    named = tallies.frame.assign(term=[f"feature={term}" for term in tallies.frame["term"]])
    return pd.concat([named, logs.frame], ignore_index=True)


def collect(cells: list[Cell], folder: Path, tally_runs: int, log_runs: int, n_jobs: int) -> pd.DataFrame:
    folder.mkdir(parents=True, exist_ok=True)
    frames = []
    for cell in cells:
        path = folder / f"{cell.name}_{tally_runs}_{log_runs}.csv"
        if not path.exists():
            start = time.perf_counter()
            measure(cell, tally_runs, log_runs, n_jobs).to_csv(path, index=False)
            print(f"{cell.name}: {time.perf_counter() - start:.0f} s", flush=True)
        frame = pd.read_csv(path)
        design = "ConSE" if cell.epsilon is None else f"DPConSE, epsilon = {cell.epsilon:g}"
        described = {"design": design, "alpha": cell.alpha, "n": cell.horizon, "rewards": cell.rewards}
        frames.append(frame.assign(**described, means=cell.means))
    return pd.concat(frames, ignore_index=True)


def markdown(frame: pd.DataFrame) -> str:
    """Coverage by group as a Markdown table."""
    lines = [
        "| design | alpha | n | rewards | analysis | runs | group 0 | group 1 | group 2 | without interval |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    keys = ["design", "alpha", "n", "rewards", "analysis"]
    for key, part in frame.groupby(keys, sort=False):
        cells = " | ".join(f"{value:.4f}" for value in part["coverage"])
        runs = int(part["runs"].max() + part["missing"].min())
        missing = part["missing"].sum() / (part["runs"] + part["missing"]).sum()
        label = " | ".join(f"{value:,}" if isinstance(value, int) else str(value) for value in key)
        lines.append(f"| {label} | {runs:,} | {cells} | {missing:.5f} |")
    return "\n".join(lines)


def judge(frame: pd.DataFrame) -> str:
    """Cells outside [.94, .97] by more than 3 standard errors of the simulation."""
    slack = 3.0 * np.sqrt(frame["coverage"] * (1.0 - frame["coverage"]) / frame["runs"])
    low = frame["coverage"] < 0.94 - slack
    high = frame["coverage"] > 0.97 + slack
    allowed = (frame["analysis"] == "released") & (frame["rewards"] == "uniform")
    outside = frame[low | (high & ~allowed)]
    head = (
        f"Over {len(frame)} cells, the lowest coverage is {frame['coverage'].min():.4f} and the highest is "
        f"{frame.loc[~allowed, 'coverage'].max():.4f} (for released estimates with uniform rewards, for "
        f"which the interval is conservative, up to {frame.loc[allowed, 'coverage'].max():.4f}). "
    )
    if outside.empty:
        return head + "All coverages lie in [.94, .97], up to three Monte Carlo standard errors."
    return head + "Outside [.94, .97] by more than three Monte Carlo standard errors:\n\n" + markdown(outside)


PAGE = """\
# Coverage of effects by group under ConSE and DP-ConSE

Command: `{command}`. Seed: {seed}. Date: {today}.

Three groups arrive with probabilities .5, .3, .2; the arms' means are (.4, .7), (.6, .3), (.3, .65). Nominal
coverage is 95%. Uniform rewards have the largest possible width around their mean in [0, 1].

- Difference in means: Welch's t over the randomised rounds of the second half, or the Agresti-Caffo
  adjustment if an arm has fewer than 10 successes or failures.
- AIPW: all second-half rounds in which both arms have positive propensities; Student's t with the smaller
  arm's count minus 1 degrees of freedom.
- Released: the private estimate with its own interval.

A run without an interval (too few arrivals) is counted in the last column and excluded from the coverage.

{verdict}

The largest bias, in units of its Monte Carlo standard error, is {bias:.2f} over {cells} cells.

{main}

## Reported without a claim

The same groups with alpha above 1/2:

{above}

Extreme means, (.05, .02), (.02, .05), (.95, .98):

{extreme}
"""


def report(main: pd.DataFrame, reported: pd.DataFrame, command: str) -> str:
    """The page of the evidence."""
    return PAGE.format(
        command=command,
        seed=SEED,
        today=evidence.stamp(),
        verdict=judge(main),
        bias=(main["bias"].abs() / main["bias_se"]).max(),
        cells=len(main),
        main=markdown(main),
        above=markdown(reported[reported["means"] == "main"]),
        extreme=markdown(reported[reported["means"] == "extreme"]),
    )


def main() -> None:
    parser = evidence.parser(__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--shards", type=Path, help="for parts, build/cate_coverage by default")
    options = parser.parse_args()
    quick = options.quick
    tally_runs, log_runs = (2_000, 32) if quick else (50_000, 20_000)
    main_cells, further = list(main_grid()), list(reported_grid())
    if quick:  # ConSE and DP-ConSE with 0/1 rewards
        main_cells, further = main_cells[1:6:3], [further[0], further[6]]
    with evidence.folder(options.shards, __file__, quick) as folder:
        main_frame = collect(main_cells, folder, tally_runs, log_runs, options.jobs)
        reported = collect(further, folder, tally_runs, log_runs, options.jobs)
    page = report(main_frame, reported, COMMAND + " --quick" * quick)
    evidence.publish(page, __file__, options)
    if quick:
        row = "ConSE | 0.2 | 20,000 | bernoulli | difference-in-means"
        evidence.hold_cell(page, __file__, row, "group 0", (tally_runs, 50_000))


if __name__ == "__main__":
    main()
