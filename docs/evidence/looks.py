"""Trials with looks under adaptive designs: makes docs/evidence/looks.md.

Every set of trials has a design, a kind of outcomes, a length, and a level that stays or drifts; nine plans
follow the same trials. Two arms are equal, so each rejection is an error, and the interval after the stop
must contain 0. Blocks of trials are counted in looks_counts.csv, to which later runs add; a full run makes
the page from all of them.
"""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import evidence
import numpy as np

import adaptinf as ai
from adaptinf.errors import InvalidForLog
from adaptinf.inference.group_sequential.score_process import score_process
from adaptinf.plans.decisions import follow

SEED, BLOCK, ALPHA = 20261128, 256, 0.05
COMMAND = "python docs/evidence/looks.py --blocks 3"
COUNTS = Path(__file__).with_name("looks_counts.csv")
DESIGNS = {
    "coin": ai.designs.Uniform(),
    "epsilon-greedy .2": ai.designs.EpsilonGreedy(exploration=0.2),
    "Thompson, floor .05": ai.designs.Thompson(floor=0.05),
    "top-two Thompson": ai.designs.TopTwoThompson(floor=0.05),
    "DBCD, Neyman": ai.designs.DBCD(rule="neyman", burn_in=5),
}
NORMAL = {
    "Thompson, floor .05": ai.designs.Thompson(prior="normal", floor=0.05),
    "top-two Thompson": ai.designs.TopTwoThompson(prior="normal", floor=0.05),
}
OUTCOMES = {"normal": math.nan, "10%": 0.1, "50%": 0.5}
LENGTHS, DRIFTS = (200, 1_000), ("none", "linear, 1 sd")
SPENDING = {
    "O'Brien-Fleming": "lan-demets-obrien-fleming",
    "Pocock": "lan-demets-pocock",
    "HSD -4": "hwang-shih-decani",
}
LOOKS = (2, 5, 10)
NUMBERS = ("runs", "rejected", "untested", "ended", "held", "below", "naive")
"""Trials, with an error, without a test; those with an estimate, intervals with 0, estimates above 0, and
naive tests at the stop that reject."""


@dataclass(frozen=True)
class Trials:
    """A set of trials."""

    design: str
    outcomes: str
    rounds: int
    drift: str

    def rewards(self, rng: np.random.Generator) -> np.ndarray[Any, Any]:
        """Potential rewards of the rounds, the same distribution for both arms; (T, 2)."""
        time = np.arange(self.rounds) / self.rounds if self.drift != "none" else np.zeros(self.rounds)
        rate = OUTCOMES[self.outcomes]
        if math.isnan(rate):
            return rng.normal(size=(self.rounds, 2)) + time[:, None]
        level = rate + time * math.sqrt(rate * (1.0 - rate))
        return (rng.random((self.rounds, 2)) < level[:, None]).astype(float)

    @property
    def made(self) -> Any:
        """The design; with normal outcomes Thompson sampling has a normal prior."""
        return {**DESIGNS, **NORMAL}[self.design] if self.outcomes == "normal" else DESIGNS[self.design]


SETS = tuple(
    Trials(*one)
    for one in itertools.product(DESIGNS, OUTCOMES, LENGTHS, DRIFTS)
    if one[0] != "DBCD, Neyman" or one[1] != "normal"  # its target is that of 0/1 outcomes
)
PLANS = tuple(itertools.product(SPENDING, LOOKS))


def plan_of(trials: Trials, spending: str, looks: int) -> ai.Plan:
    """A two-sided plan with equally spaced looks."""
    at = [trials.rounds * (look + 1) // looks for look in range(looks)]
    return ai.Plan(trials.made, arms=(0, 1), treatment=1, control=0, looks=at, spending=SPENDING[spending])


def block(job: tuple[int, int, int]) -> tuple[int, np.ndarray[Any, Any]]:
    """Counts of one block of a set for all plans; (plans, numbers)."""
    place, number, size = job
    trials, found = SETS[place], np.zeros((len(PLANS), len(NUMBERS)))
    plans = [plan_of(trials, *one) for one in PLANS]
    rng = np.random.default_rng([SEED, place, number])
    spread = (-40.0, 40.0) if trials.outcomes == "normal" else (0.0, 1.0)
    for _ in range(size):
        world = ai.environments.Tableau(trials.rewards(rng), reward_range=spread)
        arrays = trials.made.run(world, horizon=trials.rounds, rng=rng).arrays
        for row, plan in enumerate(plans):
            scores = score_process(arrays.action, arrays.reward, arrays.propensities, (1, 0), plan.looks)
            course = follow(scores, plan.rule)
            found[row, :3] += 1.0, course.decision == "reject", course.decision == "too few data"
            if course.tests:
                tail = course.stopped().tail(0.0)
                held = 0.5 * ALPHA <= tail <= 1.0 - 0.5 * ALPHA
                found[row, 3:] += 1.0, held, tail < 0.5, abs(course.z[-1]) > 1.959964
    return place, found


Counts = dict[tuple[int, int], list[float]]


def read(path: Path) -> tuple[Counts, list[int]]:
    """Counts by set and plan, and the number of blocks of each set."""
    cells = itertools.product(range(len(SETS)), range(len(PLANS)))
    counts: Counts = {cell: [0.0] * len(NUMBERS) for cell in cells}
    blocks = [0] * len(SETS)
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                key = int(row["set"]), int(row["plan"])
                counts[key] = [float(row[name]) for name in NUMBERS]
                blocks[key[0]] = int(row["blocks"])
    return counts, blocks


def write(path: Path, counts: Counts, blocks: list[int]) -> None:
    """One row for each set and plan."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["set", "plan", "blocks", *NUMBERS])
        for (place, plan), numbers in sorted(counts.items()):
            if numbers[0]:
                writer.writerow([place, plan, blocks[place], *(f"{one:.0f}" for one in numbers)])


def judged(numbers: list[float]) -> tuple[bool, bool]:
    """Whether errors are at most .055 and intervals contain 0 in .94, each by three Monte Carlo errors."""
    runs, rejected, _, ended, held, *_ = numbers
    level = rejected / runs <= 0.055 + 3.0 * math.sqrt(0.055 * 0.945 / runs)
    holds = not ended or held / ended >= 0.94 - 3.0 * math.sqrt(0.94 * 0.06 / ended)
    return level, holds


def lines(counts: Counts) -> Iterator[str]:
    """One row for each set and number of looks; the three spending functions beside each other."""
    kinds = " | ".join(SPENDING)
    measured = f"errors: {kinds} | covers: {kinds} | naive | untested"
    yield f"| design | outcomes | rounds | drift | looks | {measured} |"
    yield "| --- | --- | ---: | --- | ---: | " + " | ".join(["---:"] * (2 * len(SPENDING) + 2)) + " |"
    for place, trials in enumerate(SETS):
        for looks in LOOKS:
            every = [counts[place, PLANS.index((name, looks))] for name in SPENDING]
            if not every[0][0]:
                continue
            errors, covers = [], []
            for one in every:
                level, holds = judged(one)
                errors.append(f"{one[1] / one[0]:.3f}" if level else f"**{one[1] / one[0]:.3f}**")
                share = f"{one[4] / one[3]:.3f}" if one[3] else ""
                covers.append(share if holds else f"**{share}**")
            naive = f"{every[1][6] / every[1][3]:.3f}" if every[1][3] else ""
            who = f"{trials.design} | {trials.outcomes} | {trials.rounds:,} | {trials.drift} | {looks}"
            yield f"| {who} | {' | '.join([*errors, *covers, naive])} | {every[0][2] / every[0][0]:.2f} |"


def page(counts: Counts) -> str:
    """The page."""
    cells = [numbers for numbers in counts.values() if numbers[0]]
    level, holds = (sum(one) for one in zip(*(judged(one) for one in cells), strict=True))
    fewest, most = (int(pick(one[0] for one in cells)) for pick in (min, max))
    size = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
    size = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
    tested = [one for one in cells if one[3] >= 0.5 * one[0]]
    median = max(0.0, *(abs(one[5] / one[3] - 0.5) - 1.5 / math.sqrt(one[3]) for one in tested))
    return f"""# Trials with looks

Command: `{COMMAND}`. Seed: {SEED}. Date: {evidence.stamp()}.

{len(SETS)} sets of trials, each followed by nine plans: {len(cells)} cells of {size} trials. Both arms are
equal. If the level drifts, it rises linearly by one standard deviation. Plans are two-sided at 5%; a look
makes a test if both arms have at least 20 effective rewards and 20 outcomes of either kind.

- Error rates are at most .055, plus three Monte Carlo errors, in {level} of {len(cells)} cells.
- The interval after the stop contains the difference in at least .94 of the trials that tested, less three
  errors, in {holds} of {len(cells)}.
- The probability that the estimate is too large differs from 1/2 by at most {median:.3f}, beyond three
  errors, in cells where at least half of the trials tested.

*Naive* is the share of trials, under Pocock's spending, in which a fixed-length 5% test at the stop would
reject; *untested* is the share of trials in which there were not enough data at any look. Figures that
violate a criterion are bold.

{chr(10).join(lines(counts))}
"""


def main() -> None:
    """Add blocks, and write the page."""
    command = evidence.parser(__doc__)
    command.add_argument("--blocks", type=int, default=0, help="blocks of each set to have at least")
    command.add_argument("--jobs", type=int, default=2, help="worker processes")
    options = command.parse_args()
    if options.quick:
        quick()
        return
    counts, blocks = read(COUNTS)
    jobs = [
        (place, number, BLOCK)
        for number in range(options.blocks)
        for place in range(len(SETS))
        if number >= blocks[place]
    ]
    with get_context("spawn").Pool(options.jobs) as pool:
        for place, found in pool.imap(block, jobs):
            for plan, numbers in enumerate(found):
                counts[place, plan] = [a + b for a, b in zip(counts[place, plan], numbers, strict=True)]
            blocks[place] += 1
            write(COUNTS, counts, blocks)
    evidence.publish(page(counts), __file__, options)


def quick() -> None:
    """Some trials, whose errors may not be too many; and a refusal."""
    place = SETS.index(Trials("epsilon-greedy .2", "50%", 200, "linear, 1 sd"))
    _, found = block((place, 0, 64))
    errors, runs = found[:, 1], found[:, 0]
    print(dict(zip(PLANS, (errors / runs).tolist(), strict=True)))
    assert np.all(errors <= 0.055 * runs + 4.0 * np.sqrt(0.055 * 0.945 * runs))
    early = ai.designs.Uniform().run(ai.environments.NormalArms([0.0, 0.0]), 50, rng=0)
    try:
        plan_of(SETS[0], "Pocock", 2).analyse(early)
    except InvalidForLog:
        return
    raise AssertionError("a trial that goes on has a result")


if __name__ == "__main__":
    main()
