"""Successive elimination against private UCB: makes docs/evidence/elimination.md.

Every cell, a design at one epsilon, is kept in a folder as soon as it is done: a run that was stopped goes
on, and several may share the folder.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import evidence
import numpy as np
from joblib import Parallel, delayed

from adaptinf.designs.arms.elimination import PrivateSuccessiveElimination, SuccessiveElimination
from adaptinf.designs.arms.elimination_kernel import elimination_epochs
from adaptinf.designs.arms.ucb import PrivateUCB
from adaptinf.designs.base import Design
from adaptinf.simulation.environments import BernoulliArms
from case_studies.private_elimination.regret import EPSILONS, HORIZON, MEANS

SEED = 4_711
N_ARMS = len(MEANS)
COMMAND = "python docs/evidence/elimination.py"

WIDTHS = {
    "published gamma, all of epsilon an arm": {"calibration": "published"},
    "published gamma, epsilon / K an arm": {"calibration": "published"},
    "corrected, tail bound": {"noise_width": "tail-bound"},
}
READINGS = {
    ("published gamma, all of epsilon an arm", "hybrid"): 0,
    ("published gamma, epsilon / K an arm", "hybrid"): 8,
    ("published gamma, epsilon / K an arm", "binary"): 12,
    ("corrected, tail bound", "hybrid"): 16,
}
"""What the study of private elimination leaves out: width and counter, and the number of the first stream."""


@dataclass(frozen=True)
class Size:
    """How much is run."""

    horizon: int
    ucb_runs: int
    elimination_runs: int


FULL = Size(HORIZON, 30, 20_000)
QUICK = Size(50_000, 2, 500)


@dataclass(frozen=True)
class Cell:
    """Private UCB with one width and counter, at one epsilon."""

    width: str
    counter: str
    epsilon: float

    @property
    def name(self) -> str:
        """Name of the cell's file."""
        words = self.width.replace(",", "").replace("/", "over").replace(" ", "-")
        return f"{words}_{self.counter}_{self.epsilon:g}"

    @property
    def design(self) -> PrivateUCB:
        """The design; the published one splits its budget, so K epsilon gives each arm epsilon."""
        times = N_ARMS if self.width == "published gamma, all of epsilon an arm" else 1
        return PrivateUCB(epsilon=times * self.epsilon, counter=self.counter, **WIDTHS[self.width])


def cells() -> Iterator[Cell]:
    """Every cell of the comparison."""
    for width, counter in READINGS:
        for epsilon in EPSILONS:
            yield Cell(width, counter, epsilon)


def measure(cell: Cell, size: Size, folder: Path) -> None:
    """Run a cell and keep the regret of its runs, unless that has been done."""
    path = folder / f"{cell.name}_{size.horizon}_{size.ucb_runs}.npy"
    if path.exists():
        return
    start = time.perf_counter()
    index = READINGS[cell.width, cell.counter] + EPSILONS.index(cell.epsilon)
    root = np.random.SeedSequence(SEED, spawn_key=(index,))
    sims = cell.design.replicate(BernoulliArms(MEANS), size.horizon, size.ucb_runs, rng=root)
    part = path.with_suffix(".part.npy")
    np.save(part, sims.regret)
    part.rename(path)
    print(f"{cell.name}: {time.perf_counter() - start:.0f} s", flush=True)


def collect(size: Size, folder: Path, n_jobs: int) -> dict[Cell, np.ndarray]:
    """Regret of every run of every cell."""
    folder.mkdir(parents=True, exist_ok=True)
    Parallel(n_jobs=n_jobs)(delayed(measure)(cell, size, folder) for cell in cells())
    return {cell: np.load(folder / f"{cell.name}_{size.horizon}_{size.ucb_runs}.npy") for cell in cells()}


# --- tables ---------------------------------------------------------------------------------------------


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """Mean and its Monte Carlo standard error."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(values.size))


def ratio_and_error(above: np.ndarray, below: np.ndarray) -> tuple[float, float]:
    """Ratio of two independent means and its standard error to first order."""
    (top, top_error), (bottom, bottom_error) = mean_and_error(above), mean_and_error(below)
    ratio = top / bottom
    return ratio, ratio * float(np.hypot(top_error / top, bottom_error / bottom))


def elimination_runs(design: Design, size: Size, runs: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Round after which one arm was left (the horizon where it never was), and regret."""
    root = np.random.SeedSequence(SEED, spawn_key=(1_000 + number,))
    sims = design.replicate(BernoulliArms(MEANS), size.horizon, runs, rng=root)
    decided = sims.released["decided_at"][:, 0]
    return np.where(np.isnan(decided), float(size.horizon), decided), sims.regret


def settings_table(size: Size) -> str:
    """Rounds and regret, of 200 runs and of many."""
    lines = ["| epsilon | runs | one arm left after round | regret |", "| --- | --- | --- | --- |"]
    for number, epsilon in enumerate((1.0, 0.1)):
        for more, runs in enumerate((200, size.elimination_runs)):
            design = PrivateSuccessiveElimination(epsilon=epsilon)
            decided, costs = elimination_runs(design, size, runs, 10 * number + more)
            at, at_error = mean_and_error(decided)
            cost, cost_error = mean_and_error(costs)
            lines.append(
                f"| {epsilon:g} | {runs:,} | {at:,.0f} ± {at_error:,.0f} | {cost:,.0f} ± {cost_error:,.0f} |"
            )
    return "\n".join(lines)


def rounds_table(size: Size) -> str:
    """The few rounds at which one arm is left, and how often."""
    lines = ["| epsilon | one arm left after round | share of runs |", "| --- | --- | --- |"]
    for number, epsilon in enumerate(EPSILONS):
        design = PrivateSuccessiveElimination(epsilon=epsilon)
        decided, _ = elimination_runs(design, size, size.elimination_runs, 100 + number)
        for value, count in zip(*np.unique(decided, return_counts=True), strict=True):
            lines.append(f"| {epsilon:g} | {value:,.0f} | {count / decided.size:.4f} |")
    return "\n".join(lines)


def lengths_table(size: Size) -> str:
    """Passes and thresholds of the first two epochs."""
    lines = [
        "| epsilon | epoch | arms | pulls an arm | a mean this far below the highest is dropped |",
        "| --- | --- | --- | --- | --- |",
    ]
    for epsilon in EPSILONS:
        lengths, thresholds = elimination_epochs(N_ARMS, size.horizon, 1.0 / size.horizon, epsilon)
        for epoch, arms in ((1, N_ARMS), (2, 3), (2, 2)):
            place = arms, epoch - 1
            lines.append(
                f"| {epsilon:g} | {epoch} | {arms} | {lengths[place]:,.0f} | {thresholds[place]:.4f} |"
            )
    return "\n".join(lines)


def elimination_regrets(size: Size) -> dict[float, np.ndarray]:
    """Regret of private elimination at each epsilon."""
    return {
        epsilon: elimination_runs(
            PrivateSuccessiveElimination(epsilon=epsilon), size, size.elimination_runs, 200 + number
        )[1]
        for number, epsilon in enumerate(EPSILONS)
    }


def ratios_table(measured: dict[Cell, np.ndarray], regrets: dict[float, np.ndarray]) -> str:
    """Mean regret of private UCB over that of private elimination."""
    head = " | ".join(f"epsilon = {epsilon:g}" for epsilon in EPSILONS)
    lines = [f"| width of private UCB | counter | {head} |", "| --- " * (len(EPSILONS) + 2) + "|"]
    for width, counter in READINGS:
        ratios = [
            ratio_and_error(measured[Cell(width, counter, epsilon)], regrets[epsilon]) for epsilon in EPSILONS
        ]
        text = " | ".join(f"{ratio:.2f} ± {error:.2f}" for ratio, error in ratios)
        lines.append(f"| {width} | {counter} | {text} |")
    return "\n".join(lines)


def regrets_table(measured: dict[Cell, np.ndarray], regrets: dict[float, np.ndarray], size: Size) -> str:
    """Mean regrets with their standard errors."""
    head = " | ".join(f"epsilon = {epsilon:g}" for epsilon in EPSILONS)
    lines = [f"| design | {head} |", "| --- " * (len(EPSILONS) + 1) + "|"]

    def line(label: str, values: list[np.ndarray]) -> None:
        text = " | ".join("{:,.0f} ± {:,.0f}".format(*mean_and_error(value)) for value in values)
        lines.append(f"| {label} | {text} |")

    line("private elimination", [regrets[epsilon] for epsilon in EPSILONS])
    for number, check in enumerate(("epochs", "every-round")):
        design = SuccessiveElimination(check=check)
        costs = elimination_runs(design, size, min(size.elimination_runs, 2_000), 300 + number)[1]
        line(f"elimination without privacy, {check}", [costs] * len(EPSILONS))
    for width, counter in READINGS:
        label = f"private UCB, {width}, {counter}"
        line(label, [measured[Cell(width, counter, epsilon)] for epsilon in EPSILONS])
    return "\n".join(lines)


PAGE = """\
# Successive elimination: rounds, regret, and the comparison with private UCB

Command: `{command}`. Seed: {seed}. Date: {today}.

Five arms pay 1 with probabilities .75, .625, .5, .375 and .25, and 0 otherwise; the horizon is T =
{horizon:,}, and beta = 1 / T. Regret is pseudo-regret. A figure after ± is one Monte Carlo standard error.

## Two settings

`tests/reference/designs/test_elimination_oracle.py` compares the design with literal implementations of the
papers, round by round on the same rewards and noise.

{settings}

Epochs have fixed lengths, so the last round of an arm takes few values; if it takes more than one value, some
gap lies within a few standard deviations of a threshold. Of {many:,} runs:

{rounds}

The lengths and thresholds of the relevant epochs are:

{lengths}

## Against private UCB

The [study](../studies/private_elimination.md) compares binary counters at equal guarantees: the published
width with all of epsilon on each arm, the tail bound and the exact quantile, and the exact quantile also with
the hybrid counter. This page contains the interpretations that the study omits.

The table shows the mean regret of private UCB ({ucb_runs} runs per cell) divided by that of private
elimination ({many:,} runs). Both have the same guarantee for the actions, except when each arm has epsilon /
K: with this published split of the budget, UCB is K times more private than stated.

{ratios}

"Published" means that `PrivateUCB(epsilon=K * epsilon, calibration="published")` has a budget of epsilon and
gamma = log(T)^2 log(K T log(T) / delta) / epsilon on each arm, with delta = 1 / T; with `epsilon=epsilon`,
the budget is epsilon / K, and gamma is K times as large. "Tail bound" means epsilon on each arm and noise
widths that fail with probability 1 / t, according to the closed-form bound of Chan, Shi and Song. With the
hybrid counter, an arm can rest at counts that are powers of two, where its sum has little noise.

Mean regrets:

{regrets}
"""


def main() -> None:
    parser = evidence.parser(__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--shards", type=Path, help="for parts, build/elimination by default")
    options = parser.parse_args()
    size = QUICK if options.quick else FULL
    with evidence.folder(options.shards, __file__, options.quick) as folder:
        measured = collect(size, folder, options.jobs)
    regrets = elimination_regrets(size)
    page = PAGE.format(
        command=COMMAND + (" --quick" if options.quick else ""),
        seed=SEED,
        today=evidence.stamp(),
        horizon=size.horizon,
        settings=settings_table(size),
        rounds=rounds_table(size),
        lengths=lengths_table(size),
        many=size.elimination_runs,
        ucb_runs=size.ucb_runs,
        ratios=ratios_table(measured, regrets),
        regrets=regrets_table(measured, regrets, size),
    )
    evidence.publish(page, __file__, options)
    if options.quick:  # private elimination alone takes little time at the full horizon
        design = PrivateSuccessiveElimination(epsilon=1.0)
        _, regret = elimination_runs(design, FULL, FULL.elimination_runs, 1)  # the stream of that row
        then = evidence.measured(evidence.committed(__file__, "1 | 20,000", "regret"))
        evidence.hold("regret of private elimination, epsilon = 1", mean_and_error(regret), then)


if __name__ == "__main__":
    main()
