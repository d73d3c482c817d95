"""Accuracy and sample sizes of the stopping rules, measured: makes docs/evidence/stopping.md."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import evidence
import numpy as np
import pandas as pd
from scipy import stats

from adaptinf.designs.stopping.stopping_rules import DPNAS, NAS, StoppingRule
from adaptinf.simulation.environments import BernoulliArms, Environment, Replay, UniformArms
from adaptinf.theory.stopping_bounds import (
    private_stopping_limit,
    stopping_limit,
    stopping_time_bound,
    stopping_time_closed_form,
)

SEED = 20261
COMMAND = "python docs/evidence/stopping.py"
LAWS = {
    "two points, 0.2": 0.2,
    "two points, -0.05": -0.05,
    "0 or 1, 0.5": 0.5,
    "uniform on [-0.4, 1], 0.3": 0.3,
}


def two_points(mean: Fraction) -> Replay:
    """A law on {-1, 1}."""
    share = (1 + mean) / 2
    values = [1.0] * share.numerator + [-1.0] * (share.denominator - share.numerator)
    return Replay(pd.DataFrame({"arm": 0, "y": values}), action="arm", reward="y")


def law(name: str) -> Environment:
    if name.startswith("two points"):
        return two_points(Fraction(name.rpartition(" ")[2]))
    if name.startswith("0 or 1"):
        return BernoulliArms([LAWS[name]])
    return UniformArms(low=[-0.4], high=[1.0])


@dataclass(frozen=True)
class Cell:
    """One row of a table; epsilon is None for NAS."""

    law: str
    alpha: float
    beta: float
    steps: str
    epsilon: float | None

    @property
    def rule(self) -> StoppingRule:
        if self.epsilon is None:
            return NAS(alpha=self.alpha, beta=self.beta, steps=self.steps)
        return DPNAS(epsilon=self.epsilon, alpha=self.alpha, beta=self.beta, steps=self.steps)

    @property
    def enough(self) -> float:
        """Samples within which the rule stops with probability at least 1 - beta."""
        mean = LAWS[self.law]
        return float(stopping_time_bound(mean, self.alpha, self.beta, self.epsilon, steps=self.steps))

    @property
    def looked(self) -> bool:
        """Whether the binomial shortcut serves."""
        return self.steps == "exponential" and not self.law.startswith("uniform")


@dataclass(frozen=True)
class Measured:
    """What the runs of a cell gave."""

    runs: int
    wrong: int
    late: int
    median: float
    upper: float
    mean: float


def measure(cell: Cell, position: int, samples: float, shortcut_runs: int) -> Measured:
    """Runs of a cell: as many as the number of samples allows, or a fixed number by binomial stretches."""
    rule, mean = cell.rule, LAWS[cell.law]
    enough = cell.enough
    runs = shortcut_runs if cell.looked else int(min(max(samples / enough, samples / 3e6, 2), 20_000))
    root = np.random.SeedSequence(SEED, spawn_key=(position,))
    sims = rule.replicate(law(cell.law), runs, rng=root, max_rounds=1 << 40)
    if not sims.stopped.all():
        raise RuntimeError(f"{cell}: a run did not stop")
    return Measured(
        runs=runs,
        wrong=int(sims.wrong(mean).sum()),
        late=int((sims.stopping_time > enough).sum()),
        median=float(np.median(sims.stopping_time)),
        upper=float(np.quantile(sims.stopping_time, 0.95, method="higher")),
        mean=float(sims.stopping_time.mean()),
    )


def main_grid() -> Iterator[Cell]:
    for name, alpha, steps, epsilon in itertools.product(
        LAWS, (0.1, 0.5), ("every", "exponential"), (None, 1.0, 0.1)
    ):
        yield Cell(name, alpha, 0.05, steps, epsilon)


def loose_grid() -> Iterator[Cell]:
    """Where errors are most frequent: little accuracy asked for, at a large beta."""
    for name, beta, epsilon in itertools.product(
        ("two points, 0.2", "0 or 1, 0.5"), (0.3, 0.9), (None, 1.0, 0.1, 0.01)
    ):
        yield Cell(name, 0.9, beta, "exponential", epsilon)


def share(count: int, runs: int) -> str:
    """A share with its standard error, or with an upper limit (99.9%) where it is 0."""
    if count == 0:
        return f"0 (below {stats.beta.ppf(0.999, 1, runs):.1g})"
    rate = count / runs
    return f"{rate:.2g} ± {math.sqrt(rate * (1 - rate) / runs):.1g}"


def labels(cell: Cell) -> str:
    noise = "none" if cell.epsilon is None else f"{cell.epsilon:g}"
    return f"| {cell.law} | {cell.alpha:g} | {cell.beta:g} | {noise} | {cell.steps} "


def main_table(cells: dict[Cell, Measured]) -> str:
    lines = [
        "| law, mean | alpha | beta | epsilon | steps | runs | wrong | median | 95% | mean | to NAS "
        "| to sufficient | to t_U | to private lower bound | to lower bound |",
        "| " + " | ".join(["---"] * 15) + " |",
    ]
    for cell, seen in cells.items():
        asked = LAWS[cell.law], cell.alpha, cell.beta
        plain = cells[Cell(cell.law, cell.alpha, cell.beta, cell.steps, None)]
        to_upper = to_private = to_lower = ""
        if cell.epsilon is not None and cell.steps == "exponential":
            to_upper = f"{seen.median / stopping_time_closed_form(*asked, cell.epsilon):.2g}"
        if cell.law.startswith("two points"):
            to_lower = f"{seen.mean / stopping_limit(*asked):.3g}"
            if cell.epsilon is not None:
                lower = private_stopping_limit(*asked, cell.epsilon)
                to_private = f"{seen.median / lower:.3g}"
        lines.append(
            f"{labels(cell)}| {seen.runs:,} | {share(seen.wrong, seen.runs)} | {seen.median:,.0f} "
            f"| {seen.upper:,.0f} | {seen.mean:,.0f} | {seen.median / plain.median:.3g} "
            f"| {seen.median / cell.enough:.3g} | {to_upper} | {to_private} "
            f"| {to_lower} |"
        )
    return "\n".join(lines)


def loose_table(cells: dict[Cell, Measured]) -> str:
    lines = [
        "| law, mean | alpha | beta | epsilon | steps | runs | wrong | later than sufficient | median |",
        "| " + " | ".join(["---"] * 9) + " |",
    ]
    for cell, seen in cells.items():
        lines.append(
            f"{labels(cell)}| {seen.runs:,} | {share(seen.wrong, seen.runs)} | {share(seen.late, seen.runs)} "
            f"| {seen.median:,.0f} |"
        )
    return "\n".join(lines)


def zero_table(runs: int) -> str:
    lines = ["| beta | epsilon | runs | stopped within 2^36 samples |", "| --- | --- | --- | --- |"]
    for position, (beta, epsilon) in enumerate(itertools.product((0.05, 0.9), (None, 1.0, 0.01))):
        rule = Cell("two points, 0.2", 0.9, beta, "exponential", epsilon).rule
        root = np.random.SeedSequence(SEED, spawn_key=(1_000 + position,))
        sims = rule.replicate(two_points(Fraction(0)), runs, rng=root, max_rounds=1 << 36)
        noise = "none" if epsilon is None else f"{epsilon:g}"
        lines.append(f"| {beta:g} | {noise} | {runs:,} | {share(int(sims.stopped.sum()), runs)} |")
    return "\n".join(lines)


def verdict(cells: dict[Cell, Measured]) -> str:
    """Whether any cell is wrong, or late, more often than beta."""
    bad = [
        f"{cell}: {seen.wrong} wrong and {seen.late} late of {seen.runs}"
        for cell, seen in cells.items()
        if stats.binom.sf(max(seen.wrong, seen.late) - 1, seen.runs, cell.beta) < 1e-3 / len(cells)
    ]
    if bad:
        return "Above beta beyond the error of the simulation: " + "; ".join(bad)
    ratio = max(seen.wrong / seen.runs / cell.beta for cell, seen in cells.items())
    return (
        f"{len(cells)} cells and {sum(seen.runs for seen in cells.values()):,} runs. In no cell were "
        f"estimates wrong, or runs longer than the sufficient number, more often than beta allows; the "
        f"highest "
        f"frequency was {ratio:.3f} beta."
    )


PAGE = """\
# Stopping rules: accuracy and sample sizes

Command: `{command}`. Seed: {seed}. Date: {today}.

Samples lie in [-1, 1] (the bound is 1). NAS is the row without epsilon. *Wrong*: the run stopped with an
estimate that is off by at least alpha |mean|, which is allowed in a share beta of the runs; ± is one binomial
standard error, and if no run was wrong, the upper end of a 99.9% interval is in parentheses. For the bounds
and their proofs, see [theory](../theory/stopping.md).

{verdict}

## Where they stop

The table shows the median, the 95% quantile and the mean of the number of samples. The ratios are:

- *to NAS*: the ratio of the medians with and without privacy, for the same steps;
- *to sufficient*: the ratio of the median to the number of samples that is sufficient unless an event of
  probability beta occurs (`adaptinf.theory.stopping_time_bound`);
- *to t_U*: the ratio of the median to 2000 (t_0 + t_1 + t_2) of the corrected Theorem 3.3;
- *to private lower bound*: the ratio of the median to the number of samples that every epsilon-private rule
  exceeds with probability above 1 - sqrt(beta) - beta = {tail:.3f};
- *to lower bound*: the ratio of the mean to the average number that every rule, private or not, needs.

Both lower bounds are for distributions on two points.

{main}

## Where errors are most frequent

{loose}

## A mean of zero

Samples are fair coins on -1 and 1, alpha = 0.9, exponential steps. Every estimate of a mean of 0 is wrong, so
the rule may stop in a share beta of the runs.

{zero}
"""


def hold() -> None:
    """Mean number of samples of the first cell, against the committed one with the spread of these runs."""
    first = next(main_grid())
    root = np.random.SeedSequence(SEED, spawn_key=(500,))
    times = first.rule.replicate(law(first.law), 60, rng=root, max_rounds=1 << 40).stopping_time
    spread = float(np.std(times, ddof=1))
    row = labels(first).strip().removeprefix("| ")
    mean, _ = evidence.measured(evidence.committed(__file__, row, "mean"))
    runs, _ = evidence.measured(evidence.committed(__file__, row, "runs"))
    now = float(np.mean(times)), spread / math.sqrt(60)
    evidence.hold("samples until NAS stops, first row", now, (mean, spread / math.sqrt(runs)))


def main() -> None:
    options = evidence.parser(__doc__).parse_args()
    samples, runs = (1e6, 1_000) if options.quick else (6e8, 200_000)
    table = {cell: measure(cell, position, samples, runs) for position, cell in enumerate(main_grid())}
    loose = {cell: measure(cell, 100 + position, samples, runs) for position, cell in enumerate(loose_grid())}
    page = PAGE.format(
        command=COMMAND + (" --quick" if options.quick else ""),
        seed=SEED,
        today=evidence.stamp(),
        verdict=verdict({**table, **loose}),
        tail=1 - math.sqrt(0.05) - 0.05,
        main=main_table(table),
        loose=loose_table(loose),
        zero=zero_table(runs),
    )
    evidence.publish(page, __file__, options)
    if options.quick:
        hold()


if __name__ == "__main__":
    main()
