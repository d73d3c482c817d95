"""Looks by information under adaptive designs: makes docs/evidence/looks_information.md.

The arms are equal, so every rejection is an error. Looks are at a third, two thirds and all of the planned
information, which a coin reaches after about 300 participants without drift. A second table shows power and
size if the variance is larger or smaller than expected.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import evidence
import numpy as np

import adaptinf as ai

SEED, TRIALS, ALPHA = 20261128, 2_048, 0.05
DESIGNS = {
    "coin": ai.designs.Uniform(),
    "Thompson, floor .1": ai.designs.Thompson(prior="normal", floor=0.1),
    "Thompson, floor .05": ai.designs.Thompson(prior="normal", floor=0.05),
    "epsilon-greedy .2": ai.designs.EpsilonGreedy(exploration=0.2),
}
SPENDING = ("lan-demets-obrien-fleming", "lan-demets-pocock")
DRIFTS = (0.0, 1.0)
SCALES = (0.75, 1.0, 1.5)
HORIZON, LEVEL = 600, 75.0


@dataclass(frozen=True)
class Cell:
    """Errors of one design, drift and spending function; numbers of trials."""

    design: str
    drift: float
    spending: str
    errors: int
    held: int
    tested: int
    size: float


def plan_of(design: str, spending: str, horizon: int = HORIZON, last: float = LEVEL) -> ai.Plan:
    """Two-sided, at three levels of information."""
    levels = [last / 3.0, 2.0 * last / 3.0, last]
    options: dict[str, Any] = {"clock": "information", "looks": levels, "horizon": horizon}
    return ai.Plan(DESIGNS[design], arms=(0, 1), treatment=1, control=0, spending=spending, **options)


def cells(design: str, drift: float, place: int, trials: int) -> Iterator[Cell]:
    """The same trials under each spending function."""
    plans = [plan_of(design, one) for one in SPENDING]
    found = np.zeros((len(SPENDING), 4))
    rng = np.random.default_rng([SEED, place])
    level = drift * np.arange(HORIZON)[:, None] / HORIZON
    for _ in range(trials):
        world = ai.environments.Tableau(rng.normal(size=(HORIZON, 2)) + level, reward_range=(-40.0, 40.0))
        log = DESIGNS[design].run(world, horizon=HORIZON, rng=rng)
        ends = plans[0].information_ends(log)
        for row, plan in enumerate(plans):
            process = plan.process(log, ends)
            assert process is not None
            course = plan.follow(process, log, ends)
            found[row, :2] += course.decision == "reject", course.rounds
            if course.tests:
                tail = course.stopped().tail(0.0)
                found[row, 2:] += 1.0, 0.5 * ALPHA <= tail <= 1.0 - 0.5 * ALPHA
    for spending, (errors, size, tested, held) in zip(SPENDING, found, strict=True):
        yield Cell(design, drift, spending, int(errors), int(held), int(tested), size / trials)


def limit(rate: float, trials: int) -> float:
    """Three Monte Carlo errors."""
    return 3.0 * math.sqrt(rate * (1.0 - rate) / trials)


def levels(trials: int) -> tuple[str, bool]:
    """The table of errors, and whether all are as they should be."""
    rows, good = [], []
    pairs = list(itertools.product(DESIGNS, DRIFTS))
    for place, (design, drift) in enumerate(pairs):
        for one in cells(design, drift, place, trials):
            error, cover = one.errors / trials, one.held / one.tested
            good.append(error <= 0.055 + limit(0.055, trials) and cover >= 0.94 - limit(0.94, one.tested))
            mark = "" if good[-1] else "**"
            rows.append(
                f"| {design} | {drift:g} sd | {one.spending} | {mark}{error:.3f}{mark} | {cover:.3f} | "
                f"{one.size:.0f} |"
            )
    head = "| design | drift | spending | errors | coverage | mean size |"
    head += "\n| --- | --- | --- | ---: | ---: | ---: |"
    told = (
        f"- Errors are at most .055, and intervals after the stop cover in at least .94 of the trials, both "
        f"with three Monte Carlo\n  errors, in {sum(good)} of {len(good)} rows of {trials:,} trials."
    )
    return f"{told}\n\n{head}\n" + "\n".join(rows), all(good)


def powers(trials: int) -> str:
    """The table of power and size by standard deviation."""
    rows = []
    by_rounds = ai.Plan(DESIGNS["coin"], arms=(0, 1), treatment=1, control=0, looks=[100, 200, 300])
    last = plan_of("coin", SPENDING[0]).required_information(0.4, 0.9)
    plans = {"information": plan_of("coin", SPENDING[0], 1_500, last), "rounds": by_rounds}
    for scale, (clock, plan) in itertools.product(SCALES, plans.items()):
        world = ai.environments.NormalArms([0.0, 0.4], scale)
        row = plan.operating_characteristics(world, trials, rng=SEED).frame.iloc[0]
        rows.append(f"| {scale:g} | {clock} | {row['rejected']:.3f} | {row['size_mean']:.0f} |")
    head = "| standard deviation | looks by | power | mean size |\n| ---: | --- | ---: | ---: |"
    return f"{head}\n" + "\n".join(rows)


def page(trials: int) -> tuple[str, bool]:
    """The page, and whether it is as it should be."""
    begun = time.process_time()
    (first, good), second = levels(trials), powers(trials)
    spent = time.process_time() - begun
    return (
        f"""# Looks by information

Command: `python docs/evidence/looks_information.py`. Seed: {SEED}. Date: {evidence.stamp()}. Processor
time: {spent:.0f} s.

## Errors

Both arms are equal, with normal outcomes; a level that drifts rises linearly by one standard deviation. Looks
are at information 25, 50 and 75, in at most 600 participants, two-sided at 5%. Under an adaptive design, the
time of a look depends on the arms that were drawn.

{first}

## Power if the variance is not as expected

A coin, with a difference of .4. The last level of information is the one required for a power of .9; looks
by rounds are after 100, 200 and 300 participants. {trials:,} trials a row.

{second}
""",
        good,
    )


def main() -> None:
    """Write the page."""
    options = evidence.parser(__doc__).parse_args()
    text, good = page(32 if options.quick else TRIALS)
    assert good or not options.quick
    evidence.publish(text, __file__, options)


if __name__ == "__main__":
    main()
