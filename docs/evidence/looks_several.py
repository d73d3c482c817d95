"""Several treatments in trials with looks: makes docs/evidence/looks_several.md.

All arms are equal, so each rejection is an error of the family, and all intervals after the stop must contain
0. Treatments stay, or leave by rule; the level of all arms stays, or drifts; all outcomes arrive, or some are
lost. Blocks of trials are counted in looks_several_counts.csv, to which later runs add. The last section
times trials with late outcomes.
"""

from __future__ import annotations

import csv
import itertools
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import evidence
import numpy as np
from scipy import stats

import adaptinf as ai
from adaptinf.plans.planning.timing import Calendar
from adaptinf.plans.simulated_trials import opened
from adaptinf.sessions.enrolment import enrol

SEED, BLOCK, ALPHA, ROUNDS, LOST = 20261129, 256, 0.05, 600, 0.2
COMMAND = "python docs/evidence/looks_several.py --blocks 2"
COUNTS = Path(__file__).with_name("looks_several_counts.csv")
LOOKS = {3: (150, 300, 450, 600), 5: (300, 600)}
KINDS, DRIFTS = ("all stay", "drop 0", "20% lost"), ("none", "linear, 1 sd")
CELLS = tuple(itertools.product(LOOKS, KINDS, DRIFTS))
NUMBERS = ("runs", "rejected", "tested", "held")
"""Trials, with an error, with a test; those whose intervals all contain 0."""
Counts = dict[int, list[float]]
TIMED = 1_024


def plan_of(arms: int, kind: str) -> ai.Plan:
    """A two-sided plan by Pocock's spending; the first arm is the control."""
    return ai.Plan(
        ai.designs.Thompson(prior="normal", floor=0.4 / arms),
        arms=tuple(range(arms)),
        treatment=tuple(range(1, arms)),
        control=0,
        looks=LOOKS[arms],
        spending="lan-demets-pocock",
        alpha=ALPHA,
        drop=0.0 if kind == "drop 0" else None,
    )


def world_of(arms: int, drift: str) -> ai.environments.Environment:
    """Normal outcomes of equal arms."""
    slope = 0.0 if drift == "none" else 1.0

    def draw(rng: np.random.Generator, horizon: int) -> np.ndarray[Any, Any]:
        level = slope * np.arange(horizon) / ROUNDS
        return rng.normal(size=(horizon, arms)) + level[:, None]

    return ai.environments.FunctionEnvironment(draw, means=[0.5 * slope] * arms)


def block(place: int, number: int, size: int) -> np.ndarray[Any, Any]:
    """Counts of one block of a cell, in the order of `NUMBERS`."""
    arms, kind, drift = CELLS[place]
    plan, world, seed = plan_of(arms, kind), world_of(arms, drift), [SEED, place, number]
    if kind == "20% lost":
        rng = np.random.default_rng(seed)
        return np.sum([lost(plan, world, rng) for _ in range(size)], axis=0)
    source = np.random.SeedSequence(seed)
    row = plan.operating_characteristics(world, size, source).frame.iloc[0]
    tested = size * (1.0 - row["untested"])
    return np.array([size, size * row["family_error"], tested, tested * row["coverage"]]).round()


def lost(plan: ai.Plan, world: ai.environments.Environment, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """One trial in which outcomes are lost at random, neither seen by the design nor replaced."""
    arrival, kept = np.arange(1.0, ROUNDS + 1.0), rng.random(ROUNDS) >= LOST
    calendar = Calendar(arrival, np.where(kept, arrival, np.inf), kept)
    session, people = opened(plan, world, calendar, rng)
    enrol(session, people, ROUNDS, math.inf)
    log = session.log(missing="drop")
    if plan.refusal(log):  # no look had enough data
        return np.array([1.0, 0.0, 0.0, 0.0])
    found = plan.analyse(log)
    low, high = found.conf_int(ALPHA).to_numpy().T
    return np.array([1.0, bool(found.rejected), 1.0, not np.any((low > 0.0) | (high < 0.0))])


def late_plan() -> ai.Plan:
    """Three arms, looks every 40 patients, outcomes after about 30 days, at most 400 patients."""
    return ai.Plan(
        ai.designs.Thompson(floor=0.2),
        arms=("control", "low", "high"),
        treatment=("low", "high"),
        control="control",
        looks=list(range(40, 401, 40)),
        futility=0.0,
        drop=-0.5,
        sides=1,
        alpha=0.025,
        delay=stats.norm(30, 3),
        accrual=2.0,
    )


def timed(size: int) -> tuple[float, float]:
    """Seconds of the processor for 10,000 trials, from `size` of them; and to compile their steps, once."""
    plan, world = late_plan(), ai.environments.BernoulliArms([0.4, 0.4, 0.6])
    seconds = []
    for trials in (256, 256, size):
        start = time.process_time()
        plan.operating_characteristics(world, trials, SEED)
        seconds.append(time.process_time() - start)
    return seconds[2] / size * 10_000, seconds[0] - seconds[1]


def read(path: Path) -> Counts:
    """Counts by cell."""
    counts: Counts = {cell: [0.0] * len(NUMBERS) for cell in range(len(CELLS))}
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                counts[int(row["cell"])] = [float(row[name]) for name in NUMBERS]
    return counts


def write(path: Path, counts: Counts) -> None:
    """One row for each cell."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["cell", *NUMBERS])
        writer.writerows([cell, *(f"{one:.0f}" for one in counts[cell])] for cell in sorted(counts))


def judged(numbers: list[float]) -> tuple[bool, bool]:
    """Whether errors are at most .05 and all intervals hold in .95, each but for three Monte Carlo errors."""
    runs, rejected, tested, held = numbers
    level = rejected / runs <= ALPHA + 3.0 * math.sqrt(ALPHA * (1.0 - ALPHA) / runs)
    return level, held / tested >= 1.0 - ALPHA - 3.0 * math.sqrt(ALPHA * (1.0 - ALPHA) / tested)


def lines(counts: Counts) -> Iterator[str]:
    """One row for each cell."""
    yield "| arms | looks | treatments | drift | trials | errors of the family | all intervals hold |"
    yield "| ---: | ---: | --- | --- | ---: | ---: | ---: |"
    for place, (arms, kind, drift) in enumerate(CELLS):
        runs, rejected, tested, held = counts[place]
        if runs:
            level, holds = judged(counts[place])
            shares = (
                f"{share:.3f}" if fine else f"**{share:.3f}**"
                for share, fine in ((rejected / runs, level), (held / tested, holds))
            )
            yield f"| {arms} | {len(LOOKS[arms])} | {kind} | {drift} | {runs:,.0f} | {' | '.join(shares)} |"


def page(counts: Counts, seconds: float, compiling: float) -> str:
    """The page."""
    cells = [numbers for numbers in counts.values() if numbers[0]]
    level, holds = (sum(one) for one in zip(*(judged(one) for one in cells), strict=True))
    return f"""# Several treatments in trials with looks

Command: `{COMMAND}`. Seed: {SEED}. Date: {evidence.stamp()}.

All arms are equal, so every rejection is an error. Outcomes are normal; if the level drifts, it rises
linearly by one standard deviation. Plans are two-sided at 5%, with a Pocock-type spending function, over
{ROUNDS} rounds of Thompson sampling with a floor of .4 divided by the number of arms. With *drop 0*, a
treatment is dropped at the first look at which its score is at most 0. With *20% lost*, a fifth of the
outcomes never arrive and are not replaced.

- The family-wise error rate is at most .05, plus three Monte Carlo errors, in {level} of {len(cells)} cells.
- All intervals after the stop contain 0 in at least .95 of the trials, less three errors, in {holds} of
  {len(cells)}.

Figures that violate a criterion are bold.

{chr(10).join(lines(counts))}

## Late outcomes

The [plan with three arms](../interim.md#late-outcomes), looks every 40 patients, outcomes after about 30
days, futility, and a treatment that is dropped: 10,000 trials take **{seconds:.0f} seconds** of processor
time, as extrapolated from {TIMED:,} trials on a busy machine. Compiling the design takes another
{compiling:.1f} seconds, once per process.
"""


def main() -> None:
    """Add blocks, and write the page."""
    command = evidence.parser(__doc__)
    command.add_argument("--blocks", type=int, default=0, help="blocks of each cell to have at least")
    options = command.parse_args()
    if options.quick:
        quick()
        return
    counts = read(COUNTS)
    for number, place in itertools.product(range(options.blocks), range(len(CELLS))):
        if number >= counts[place][0] / BLOCK:
            found = block(place, number, BLOCK)
            counts[place] = [a + b for a, b in zip(counts[place], found.tolist(), strict=True)]
            write(COUNTS, counts)
    evidence.publish(page(counts, *timed(TIMED)), __file__, options)


def quick() -> None:
    """Some trials of each kind, whose errors may not be too many."""
    for place, cell in enumerate(CELLS):
        if cell[0] == 3:
            runs, rejected, *_ = block(place, 0, 32)
            print(cell, rejected / runs)
            assert rejected <= ALPHA * runs + 4.0 * math.sqrt(ALPHA * (1.0 - ALPHA) * runs)


if __name__ == "__main__":
    main()
