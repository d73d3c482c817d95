"""Type I errors of robust regression tests at few rounds and few units: makes docs/evidence/small_samples.md.

Data in plain NumPy, a coefficient of an arm that has no effect, and its t test by each covariance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import evidence
import numpy as np
from numpy.typing import NDArray
from scipy import stats

from adaptinf.inference.regression.least_squares import bias_reduced, least_squares

SEED, FULL, QUICK, LEVEL, PROMISED = 20261126, 10_000, 400, 0.05, 0.06
COMMAND = "OPENBLAS_NUM_THREADS=1 python docs/evidence/small_samples.py"
NAMES = ("Intercept", "arm", "x")
Array = NDArray[np.float64]
PAGE = """\
# Robust errors at few rounds and few units

Command: `{command}`. Seed: {seed}. Date: {stamp}. {runs:,} runs a cell.

The table shows how often the t test of an arm without effect rejects at .05, in a regression on an intercept,
the arm and a normal covariate. *Share* is the arm's share of the rounds, and *ratio* is the standard
deviation of its noise divided by that of the other arm. {errors}

## By round

The default of `AdaptiveOLS` for designs that do not adapt is HC3 below 250 rounds and HC2 otherwise, with
Student's t with n - p degrees of freedom. "HC1, normal" uses the normal distribution instead.

{rows}

## By unit

Errors share a normal component within units (half of the variance), and the arm is drawn by unit. *Uneven*:
the size of unit j increases like j to the power 1.5. The default is CR2 with Satterthwaite degrees of
freedom; "CR1" has the factor G/(G - 1) (n - 1)/(n - p) and a t distribution with G - 1 degrees of freedom.

{units}

{held}
"""


@dataclass(frozen=True, slots=True)
class Rounds:
    """n rounds, the arm's share of them, the ratio of the noises, and their law."""

    n: int
    share: float = 0.5
    ratio: float = 1.0
    law: str = "normal"

    @property
    def name(self) -> str:
        return f"{self.n} | {self.share:g} | {self.ratio:g} | {self.law}"

    def draw(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Columns and rewards."""
        arm = (np.arange(self.n) < round(self.share * self.n)).astype(float)
        noise = rng.normal(size=self.n) if self.law == "normal" else rng.exponential(size=self.n) - 1.0
        x = np.column_stack([np.ones(self.n), arm, rng.normal(size=self.n)])
        return x, noise * np.where(arm > 0.0, self.ratio, 1.0)

    def tests(self, rng: np.random.Generator) -> dict[str, bool]:
        """Which tests reject."""
        x, y = self.draw(rng)
        fit = least_squares(x, y, NAMES)
        laws = {"classical": "classical", "HC1, normal": "HC1", "HC2": "HC2", "HC3": "HC3"}
        found = {}
        for name, kind in laws.items():
            size = math.sqrt((fit.root @ fit.middle(kind) @ fit.root.T)[1, 1])
            limit = stats.norm.ppf(0.975) if "normal" in name else stats.t.ppf(0.975, self.n - 3)
            found[name] = bool(abs(fit.coefficient[1]) > limit * size)
        return found

    @property
    def default(self) -> str:
        return "HC3" if self.n < 250 else "HC2"


@dataclass(frozen=True, slots=True)
class Units:
    """Rounds of some units, and how many of these have the arm."""

    n: int
    units: int
    treated: int
    uneven: bool = False
    default = "CR2"

    @property
    def name(self) -> str:
        return f"{self.n} | {self.units} | {self.treated} | {'uneven' if self.uneven else 'even'}"

    def tests(self, rng: np.random.Generator) -> dict[str, bool]:
        """Which tests reject."""
        share = np.arange(1.0, self.units + 1.0) ** (1.5 if self.uneven else 0.0)
        unit = np.append(
            np.arange(self.units), rng.choice(self.units, self.n - self.units, p=share / share.sum())
        )
        arm = (rng.permutation(self.units) < self.treated)[unit].astype(float)
        x = np.column_stack([np.ones(self.n), arm, rng.normal(size=self.n)])
        y = rng.normal(size=self.units)[unit] + rng.normal(size=self.n)
        fit = least_squares(x, y, NAMES)
        middle, freedom = bias_reduced(fit.q, fit.residual, unit, fit.root)
        laws = {"CR1": (fit.middle("cluster", unit), self.units - 1.0), "CR2": (middle, freedom.own[1])}
        found = {"HC3": self._rejects(fit.coefficient[1], fit.root, fit.middle("HC3"), self.n - 3.0)}
        for name, (matrix, df) in laws.items():
            found[name] = self._rejects(fit.coefficient[1], fit.root, matrix, df)
        return found

    @staticmethod
    def _rejects(value: float, root: Array, middle: Array, df: float) -> bool:
        size = math.sqrt((root @ middle @ root.T)[1, 1])
        return bool(abs(value) > stats.t.ppf(0.975, df) * size)


ROUNDS = tuple(
    [Rounds(n, share, ratio) for n in (16, 30, 60, 100, 250) for share in (0.5, 0.25) for ratio in (1.0, 2.0)]
    + [Rounds(n, law="exponential") for n in (16, 30, 100)]
)
UNITS = tuple(
    Units(n, units, treated, uneven)
    for n, units, treated in ((40, 8, 4), (60, 12, 4), (100, 10, 5), (200, 20, 5), (400, 40, 20))
    for uneven in (False, True)
)


def shares(cell: Rounds | Units, place: int, runs: int) -> dict[str, float]:
    """Shares of the runs that reject, by covariance."""
    rng = np.random.default_rng([SEED, place])
    counts: dict[str, int] = {}
    for _ in range(runs):
        for name, rejected in cell.tests(rng).items():
            counts[name] = counts.get(name, 0) + rejected
    return {name: count / runs for name, count in counts.items()}


def table(head: str, cells: list[tuple[Rounds | Units, dict[str, float]]], limit: float) -> str:
    """Rows of cells; the default's figure is marked where it is above the limit."""
    names = list(cells[0][1])
    lines = [f"| {head} | {' | '.join(names)} | default |", "| --- " * (len(names) + 5) + "|"]
    for cell, found in cells:
        mark = " (!)" if found[cell.default] > limit else ""
        figures = " | ".join(f"{found[name]:.4f}" for name in names)
        lines.append(f"| {cell.name} | {figures} | {cell.default}{mark} |")
    return "\n".join(lines)


def main() -> None:
    options = evidence.parser(__doc__).parse_args()
    runs = QUICK if options.quick else FULL
    limit = PROMISED + 3.0 * math.sqrt(PROMISED * (1.0 - PROMISED) / runs)
    everything: list[Rounds | Units] = [*ROUNDS, *UNITS]
    chosen = [everything[0], everything[len(ROUNDS)]] if options.quick else everything
    found = [(cell, shares(cell, everything.index(cell), runs)) for cell in chosen]
    by_round = [one for one in found if isinstance(one[0], Rounds)]
    by_unit = [one for one in found if isinstance(one[0], Units)]
    over = [cell.name for cell, one in found if one[cell.default] > limit]
    text = PAGE.format(
        command=COMMAND,
        seed=SEED,
        stamp=evidence.stamp(),
        runs=runs,
        errors=f"The simulation error of a rate of .05 is {math.sqrt(LEVEL * (1 - LEVEL) / runs):.4f}.",
        rows=table("n | share | ratio | noise", by_round, limit),
        units=table("n | units | with the arm | sizes", by_unit, limit),
        held=f"In {len(over)} of {len(found)} cells, the default rejects at a rate above .06 by more than 3 "
        "errors " + (f"({limit:.4f}), marked (!): {'; '.join(over)}." if over else f"({limit:.4f})."),
    )
    evidence.publish(text, __file__, options)
    if options.quick:
        evidence.hold_cell(text, __file__, ROUNDS[0].name, "HC3", (runs, FULL))


if __name__ == "__main__":
    main()
