"""Intervals of arms' means and differences with rare outcomes: makes docs/evidence/rare_arms.md.

Logs are runs of the library's designs with two equal arms. "Exact" is the width of the exact or Agresti-Caffo
intervals of sample means, which exist if the design does not adapt.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import evidence
import numpy as np

from adaptinf import ArmMeans, Contrast
from adaptinf.claims.laws import GAMMA
from adaptinf.designs import Design, EpsilonGreedy, Thompson, Uniform
from adaptinf.errors import AdaptinfWarning
from adaptinf.inference.results.fit_results import Results
from adaptinf.log import AdaptiveLog
from adaptinf.simulation.environments import BernoulliArms
from adaptinf.sums import Sums

SEED = 20_261_130
DESIGNS: dict[str, Callable[[], Design]] = {
    "Thompson, floor .1": lambda: Thompson(floor=0.1),
    "epsilon-greedy, .1": lambda: EpsilonGreedy(exploration=0.1),
    "uniform": Uniform,
}
RATES, ROUNDS, LOGS, QUICK, BATCHES = (0.005, 0.01, 0.02), (500, 2_000, 5_000), 250, 60, 20
HEADS = "| log | coverage | below | above | given | width | exact | counted | cautioned |"
HELD = "Thompson, floor .1, 1.0%, T = 500, means"


def row(name: str, fits: list[Results], truth: float, exact: list[Results]) -> str:
    """A row of the page."""
    ends = np.concatenate([fit.conf_int().to_numpy() for fit in fits])
    given = np.isfinite(ends).all(axis=1)
    low, high = ends[given].T
    shares = [
        np.mean((low <= truth) & (truth <= high)), np.mean(high < truth), np.mean(low > truth),
        given.mean(), np.median(high - low),
        np.median(np.diff(np.concatenate([fit.conf_int().to_numpy() for fit in exact]))) if exact else np.nan,
        np.mean([GAMMA() in fit.reference.name for fit in fits]),
        np.mean([bool(fit.cautions) for fit in fits]),
    ]  # fmt: skip
    digits = (3, 3, 3, 3, 4, 4, 2, 2)
    cells = [f"{one:.{n}f}" if np.isfinite(one) else "" for one, n in zip(shares, digits, strict=True)]
    return f"| {' | '.join([name, *cells])} |"


def batched(log: AdaptiveLog) -> AdaptiveLog:
    """The log in batches of equal size."""
    batch = np.arange(log.n_rounds) * BATCHES // log.n_rounds
    arrays = replace(log.arrays, batch=batch)
    return AdaptiveLog.from_arrays(arrays, arms=log.arms, reward_range=log.reward_range, design=log.design)


def rows_of(design: str, rate: float, rounds: int, number: int) -> list[str]:
    """The rows of one kind of log: means and the difference."""
    seeds = np.random.SeedSequence([SEED, rounds, int(1e4 * rate), *design.encode()]).spawn(number)
    arms = BernoulliArms([rate, rate])
    logs = [DESIGNS[design]().run(arms, horizon=rounds, rng=np.random.default_rng(seed)) for seed in seeds]
    fixed = design == "uniform"
    name = f"{design}, {100 * rate:.1f}%, T = {rounds}"

    def difference(log: AdaptiveLog | Sums, estimator: str | None) -> Results:
        return Contrast(log, treatment=1, control=0).fit(estimator)

    # A design that does not adapt has exact intervals by default, so scores are requested.
    asked = "aipw" if fixed else None
    means = [ArmMeans(log).fit(asked) for log in logs]
    pairs = [difference(log, asked) for log in logs]
    exact = [ArmMeans(log).fit() for log in logs] if fixed else []
    of_sums = [] if fixed else [Sums.of_log(batched(log)) for log in logs]
    adjusted = [difference(log, None) for log in logs] if fixed else []
    found = [row(f"{name}, means", means, rate, exact), row(f"{name}, difference", pairs, 0.0, adjusted)]
    if of_sums:
        found.append(row(f"{name}, means, sums", [ArmMeans(sums).fit() for sums in of_sums], rate, []))
        found.append(row(f"{name}, difference, sums", [difference(one, None) for one in of_sums], 0.0, []))
    return found


def kept(folder: Path, design: str) -> list[str]:
    """The rows of a design, from an earlier run if it was stopped after these."""
    path = folder / f"{design.split(',')[0]}_{LOGS}.json"
    if not path.is_file():
        found = [line for rate in RATES for rounds in ROUNDS for line in rows_of(design, rate, rounds, LOGS)]
        path.write_text(json.dumps(found), encoding="utf-8")
    return list(json.loads(path.read_text(encoding="utf-8")))


def rows(options: argparse.Namespace) -> list[str]:
    """All rows."""
    if options.quick:
        return rows_of("Thompson, floor .1", 0.01, 500, QUICK)
    with evidence.folder(options.folder, __file__, options.quick) as folder:
        folder.mkdir(parents=True, exist_ok=True)
        return [line for design in DESIGNS for line in kept(folder, design)]


def lowest(found: list[str]) -> str:
    """The lowest coverage of a page's rows."""
    return f"{min(float(line.split('|')[2]) for line in found):.3f}"


PAGE = """# Means and differences of arms with rare outcomes

Command: `{command}`. Seed: {seed}. Date: {stamp}.

Two equal arms with outcomes of .5%, 1% or 2%. Each row is based on {number} logs. If an arm's effective
number of uncommon rewards is below 10, or it has fewer than 5, intervals treat these rewards as Poisson
counts with weights (Fay and Feuer 1997), as those of [policy values](rare_policies.md) do; *counted* is
the share of such fits. *Given* is the share of arms or differences with an interval, *below* and *above*
are shares of intervals on either side of the truth, and widths are medians. Under the uniform design,
AIPW is requested, and *exact* is the width of the default: exact binomial, or Agresti-Caffo for
differences. *Sums* are those of the same logs in 20 batches of equal size.

The lowest coverage is {lowest}.

{heads}
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
{rows}
"""


def main() -> None:
    parser = evidence.parser(__doc__)
    parser.add_argument("--folder", type=Path, help="for rows that a stopped run goes on from")
    options = parser.parse_args()
    warnings.simplefilter("ignore", AdaptinfWarning)
    found = rows(options)
    page = PAGE.format(
        command="python docs/evidence/rare_arms.py",
        seed=SEED,
        stamp=evidence.stamp(),
        number=LOGS,
        lowest=lowest(found),
        heads=HEADS,
        rows="\n".join(found),
    )
    if options.quick:
        now = evidence.measured(evidence.cell(page, HELD, "coverage"), 2 * QUICK)
        then = evidence.measured(evidence.committed(__file__, HELD, "coverage"), 2 * LOGS)
        evidence.hold("coverage of means", now, then)
    evidence.publish(page, __file__, options)


if __name__ == "__main__":
    main()
