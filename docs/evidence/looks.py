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
import numba
import numpy as np
from scipy import special

import adaptinf as ai
from adaptinf.errors import InvalidForLog
from adaptinf.inference.distributions.tails import log_student_tail
from adaptinf.inference.group_sequential.score_process import ScoreProcess, score_process
from adaptinf.plans.decisions import follow

SEED, BLOCK, ALPHA = 20261128, 256, 0.05
COMMAND = "python docs/evidence/looks.py --blocks 79"
COUNTS = Path(__file__).with_name("looks_counts.csv")
DESIGNS = {
    "coin": ai.designs.Uniform(),
    "epsilon-greedy .2": ai.designs.EpsilonGreedy(exploration=0.2),
    "Thompson, floor .05": ai.designs.Thompson(floor=0.05),
    "top-two Thompson": ai.designs.TopTwoThompson(floor=0.05),
    "DBCD, Neyman": ai.designs.DBCD(rule="neyman", burn_in=5),
    "private UCB, mixed": ai.designs.Mixture(ai.designs.PrivateUCB(epsilon=1.0), exploration=0.2),
    "private elimination, mixed": ai.designs.Mixture(
        ai.designs.PrivateSuccessiveElimination(epsilon=1.0), exploration=0.2
    ),
}
UNIT_ONLY = ("DBCD, Neyman", "private UCB, mixed", "private elimination, mixed")
"""Designs that require rewards in [0, 1]."""
NORMAL = {
    "Thompson, floor .05": ai.designs.Thompson(prior="normal", floor=0.05),
    "top-two Thompson": ai.designs.TopTwoThompson(prior="normal", floor=0.05),
}
OUTCOMES = {"normal": math.nan, "10%": 0.1, "50%": 0.5}
LENGTHS, LONG, DRIFTS = (200, 1_000), 5_000, ("none", "linear, 1 sd")
"""Rounds, and those of private elimination, which compares arms only after thousands of rounds."""
SPENDING = {
    "O'Brien-Fleming": "lan-demets-obrien-fleming",
    "Pocock": "lan-demets-pocock",
    "HSD -4": "hwang-shih-decani",
}
LOOKS = (2, 5, 10)
NUMBERS = ("runs", "rejected", "untested", "ended", "held", "below", "naive", "medians", "median", "squares")
"""Trials, with an error, without a test; those with an estimate, intervals with 0, estimates above 0, and
naive tests at the stop that reject; blocks with a median estimate, its sum, and that of its squares."""
NAIVE, MANY, MEDIANS = 1.959964, 64, 20
"""Critical value of the naive test; least number of estimates for the median of a block; blocks with one."""
NO_STOP, UNCLEAR = -1, -2
NODE, WEIGHT = np.polynomial.legendre.leggauss(4)
ROOT_HALF, DENSITY = math.sqrt(0.5), 1.0 / math.sqrt(2.0 * math.pi)
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Trials:
    """A set of trials."""

    design: str
    outcomes: str
    rounds: int
    drift: str

    def rewards(self, rng: np.random.Generator, rounds: int) -> Array:
        """Potential rewards of the first rounds, the same distribution for both arms; (rounds, 2)."""
        level = self.start + self.drifts * self.unit * np.arange(rounds) / self.rounds
        if self.outcomes == "normal":
            return rng.normal(size=(rounds, 2)) + level[:, None]
        return (rng.random((rounds, 2)) < level[:, None]).astype(float)

    @property
    def world(self) -> ai.environments.Environment:
        """The environment."""
        means = [self.start + 0.5 * self.drifts * self.unit] * 2
        spread = (-40.0, 40.0) if self.outcomes == "normal" else (0.0, 1.0)
        return ai.environments.FunctionEnvironment(self.rewards, means=means, reward_range=spread)

    @property
    def drifts(self) -> float:
        """By how many standard deviations the level rises."""
        return 0.0 if self.drift == "none" else 1.0

    @property
    def start(self) -> float:
        """The level of the first round."""
        return 0.0 if self.outcomes == "normal" else OUTCOMES[self.outcomes]

    @property
    def name(self) -> str:
        """Design, outcomes, rounds and drift."""
        return f"{self.design}, {self.outcomes}, {self.rounds}, drift {self.drift}"

    @property
    def unit(self) -> float:
        """Standard deviation of one outcome, without drift."""
        return 1.0 if self.outcomes == "normal" else math.sqrt(self.start * (1.0 - self.start))

    @property
    def made(self) -> Any:
        """The design; with normal outcomes Thompson sampling has a normal prior."""
        return {**DESIGNS, **NORMAL}[self.design] if self.outcomes == "normal" else DESIGNS[self.design]


SETS = tuple(
    Trials(design, *one)
    for design in DESIGNS
    for one in itertools.product(
        tuple(OUTCOMES)[design in UNIT_ONLY :],
        (LONG,) if design == "private elimination, mixed" else LENGTHS,
        DRIFTS,
    )
)
PLANS = tuple(itertools.product(SPENDING, LOOKS))


def plan_of(trials: Trials, spending: str, looks: int) -> ai.Plan:
    """A two-sided plan with equally spaced looks."""
    at = [trials.rounds * (look + 1) // looks for look in range(looks)]
    return ai.Plan(trials.made, arms=(0, 1), treatment=1, control=0, looks=at, spending=SPENDING[spending])


def block(job: tuple[int, int, int]) -> tuple[int, Array]:
    """Counts of one block of a set for all plans; (plans, numbers)."""
    place, number, size = job
    trials = SETS[place]
    at = np.unique(np.concatenate([plan_of(trials, "Pocock", looks).looks for looks in LOOKS]))
    source = np.random.SeedSequence([SEED, place, number])
    logs = (log.arrays for log in trials.made.logs(trials.world, trials.rounds, size, source))
    scores = [score_process(log.action, log.reward, log.propensities, (1, 0), at) for log in logs]
    every = ScoreProcess(*(np.array(column) for column in zip(*scores, strict=True)))
    tail = log_student_tail(every.z, np.maximum(every.effective - 1.0, 1.0))
    z = np.copysign(special.ndtri_exp(tail), every.z)
    plans = [plan_of(trials, *one) for one in PLANS]
    looks = [np.searchsorted(at, plan.looks) for plan in plans]
    unit = trials.unit if number < MEDIANS else math.nan
    return place, np.array([counted(every, z, *one, unit) for one in zip(plans, looks, strict=True)])


def counted(every: ScoreProcess, z: Array, plan: ai.Plan, looks: Array, unit: float) -> Array:
    """Counts of one plan; columns of `every`, and normal scores z, (trials, places), of which it has `looks`.

    Without futility, a two-sided interval contains 0 exactly if the trial does not reject and its last look
    makes a test, and the estimate has the sign of the last score.
    """
    one, z = ScoreProcess(*(column[:, looks] for column in every)), z[:, looks]
    enough = np.minimum(one.effective, one.events) >= plan.rule.least
    stop, ended = decided(one.clock, np.where(enough, z, np.nan), plan.rule.spent, least_bounds(plan))
    runs, last = np.arange(len(z)), len(looks) - 1
    final = z[runs, ended]
    held = stop == NO_STOP
    for number in np.flatnonzero((stop == UNCLEAR) | (held & (ended < last) & (np.abs(final) > 1.9))):
        course = follow(ScoreProcess(*(column[number] for column in one)), plan.rule)
        stop[number] = course.look if course.decision == "reject" else NO_STOP
        ended[number] = course.tests[-1] if course.tests else NO_STOP
        final[number] = z[number, ended[number]]
        held[number] = bool(course.tests) and abs(course.stopped().tail(0.0) - 0.5) <= 0.5 - 0.5 * ALPHA
    rejected, some = stop >= 0, ended >= 0
    counts = [rejected, ~rejected & (ended < last), some, some & held, some & (final > 0.0)]
    counts += [some & (np.abs(final) > NAIVE)]
    found = [float(len(z)), *(float(what.sum()) for what in counts)]
    estimate = np.where(rejected, np.copysign(np.inf, final), (one.score / one.slope)[runs, ended])
    return np.array([*found, *middle(one, plan, np.flatnonzero(some), estimate, unit)])


def least_bounds(plan: ai.Plan) -> Array:
    """Lower limits of the critical values of looks at any clock, also if alpha is carried over; (looks,).

    Let a look and those before it spend a in total on one side. As correlations are positive, a score is
    above the critical value with probability at most a + a P, where P is that probability itself.
    """
    spent = np.cumsum(plan.rule.spent)
    return np.asarray(-special.ndtri(spent / (1.0 - spent)))


def middle(one: ScoreProcess, plan: ai.Plan, some: Array, estimate: Array, unit: float) -> list[float]:
    """Whether there are many estimates, their median, and its square; zeros if there is no unit.

    Estimates near 0 are in the order of those that ignore the looks, so only the middle is computed.
    """
    if len(some) < MANY or math.isnan(unit):
        return [0.0, 0.0, 0.0]
    order = some[np.argsort(estimate[some])]
    both = {int(order[(len(order) - 1) // 2]), int(order[len(order) // 2])}
    courses = [follow(ScoreProcess(*(column[number] for column in one)), plan.rule) for number in both]
    median = float(np.mean([course.stopped().estimate for course in courses])) / unit
    return [1.0, median, median**2]


@numba.njit
def critical(score: Array, mass: Array, root: float, spread: float, may: float) -> float:
    """Critical value that z exceeds with probability `may`, by Newton's method; score, mass (nodes,)."""
    bound = 3.0
    for _ in range(20):
        above, slope = 1e-300, 1e-300
        for node in range(len(score)):
            d = (bound * root - score[node]) / spread
            above += mass[node] * 0.5 * math.erfc(d * ROOT_HALF)
            slope += mass[node] * math.exp(-0.5 * d * d) * DENSITY * root / spread
        change = math.log(above / may) * above / slope
        bound += change
        if abs(change) < 1e-7:
            break
    return bound


@numba.njit
def moved(score: Array, mass: Array, reach: float, spread: float) -> tuple[Array, Array]:
    """Scores between -reach and reach at the next look, and their mass, (nodes,) each."""
    panels = math.ceil(2.0 * reach / spread)
    half = reach / panels
    there, then = np.empty(4 * panels), np.zeros(4 * panels)
    for place in range(4 * panels):
        there[place] = -reach + half * (2 * (place // 4) + 1 + NODE[place % 4])
        for node in range(len(score)):
            d = (there[place] - score[node]) / spread
            then[place] += mass[node] * math.exp(-0.5 * d * d)
        then[place] *= half * WEIGHT[place % 4] * DENSITY / spread
    return there, then


@numba.njit
def stop_of(clock: Array, z: Array, tested: Array, spent: Array) -> int:
    """The look at which a trial rejects; `tested` are those with enough data, and others (looks,)."""
    score, mass, before, first = np.zeros(1), np.ones(1), 0.0, 0
    for look in tested:
        spread, root = math.sqrt(clock[look] - before), math.sqrt(clock[look])
        bound = critical(score, mass, root, spread, spent[first : look + 1].sum())
        if abs(abs(z[look]) - bound) < 1e-3:
            return UNCLEAR
        if abs(z[look]) > bound:
            return int(look)
        if look < tested[-1]:
            score, mass = moved(score, mass, min(bound, 8.0) * root, spread)
        first, before = look + 1, clock[look]
    return NO_STOP


@numba.njit
def decided(clock: Array, z: Array, spent: Array, lowest: Array) -> tuple[Array, Array]:
    """Looks at which trials reject, and those of their last tests: (trials,) each, as `follow` does.

    Shapes: clock, z (trials, looks), spent, lowest (looks,); z is NaN if there are too few data, and critical
    values are at least `lowest`. They are computed with few nodes. If a score is within .001 of one, or the
    clock hardly moves, nothing is decided.
    """
    stop, ended = np.full(len(z), -1), np.full(len(z), -1)
    for run in range(len(z)):
        tested = np.flatnonzero(~np.isnan(z[run]))
        if len(tested):
            ended[run] = tested[-1]
            times, sizes = clock[run][tested], np.abs(z[run][tested])
            near = np.any(sizes >= lowest[tested])
            least = 1.002 if near else 1.0002
            if np.any(times[1:] < least * times[:-1]):
                stop[run] = UNCLEAR
            elif near:
                stop[run] = stop_of(clock[run], z[run], tested, spent)
                ended[run] = stop[run] if stop[run] >= 0 else ended[run]
    return stop, ended


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
                writer.writerow([place, plan, blocks[place], *(f"{one:.10g}" for one in numbers)])


def judged(numbers: list[float]) -> tuple[bool, bool, bool]:
    """Whether errors are at most .055, intervals contain 0 in .94, and the median is at most .02 from 0.

    Each is allowed three Monte Carlo errors.
    """
    runs, rejected, _, ended, held = numbers[:5]
    level = rejected / runs <= 0.055 + 3.0 * math.sqrt(0.055 * 0.945 / runs)
    holds = not ended or held / ended >= 0.94 - 3.0 * math.sqrt(0.94 * 0.06 / ended)
    median, error = median_of(numbers)
    return level, holds, not abs(median) > 0.02 + 3.0 * error


def median_of(numbers: list[float]) -> tuple[float, float]:
    """Median of the estimates, the mean of those of blocks, in standard deviations of one outcome; its error.

    NaN if fewer than two blocks have one.
    """
    blocks, total, squares = numbers[7:]
    if blocks < 2.0:
        return math.nan, math.nan
    mean = total / blocks
    return mean, math.sqrt(max(0.0, squares / blocks - mean * mean) / (blocks - 1.0))


def shown(figure: str, holds: bool) -> str:
    """A figure, bold if it violates a criterion."""
    return figure if holds else f"**{figure}**"


def lines(counts: Counts) -> Iterator[str]:
    """One row for each set and number of looks; the three spending functions beside each other."""
    kinds = " | ".join(SPENDING)
    measured = f"trials | errors: {kinds} | covers: {kinds} | median bias | naive | untested"
    yield f"| design | outcomes | rounds | drift | looks | {measured} |"
    yield "| --- | --- | ---: | --- | ---: | " + " | ".join(["---:"] * (2 * len(SPENDING) + 4)) + " |"
    for (place, trials), looks in itertools.product(enumerate(SETS), LOOKS):
        every = [counts[place, PLANS.index((name, looks))] for name in SPENDING]
        if not every[0][0]:
            continue
        errors, covers = [], []
        for one in every:
            level, holds, _ = judged(one)
            errors.append(shown(f"{one[1] / one[0]:.3f}", level))
            covers.append(shown(f"{one[4] / one[3]:.3f}", holds) if one[3] else "")
        least = max(every, key=lambda one: abs(median_of(one)[0]))
        median = "" if math.isnan(median_of(least)[0]) else f"{median_of(least)[0]:.3f}"
        naive = f"{every[1][6] / every[1][3]:.3f}" if every[1][3] else ""
        cells = [
            trials.design,
            trials.outcomes,
            f"{trials.rounds:,}",
            trials.drift,
            looks,
            f"{every[0][0]:,.0f}",
        ]
        cells += [
            *errors,
            *covers,
            shown(median, judged(least)[2]),
            naive,
            f"{every[0][2] / every[0][0]:.2f}",
        ]
        yield f"| {' | '.join(map(str, cells))} |"


def page(counts: Counts) -> str:
    """The page."""
    cells = [numbers for numbers in counts.values() if numbers[0]]
    level, holds, _ = (sum(one) for one in zip(*(judged(one) for one in cells), strict=True))
    fewest, most = (int(pick(one[0] for one in cells)) for pick in (min, max))
    size = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
    largest = max(one[1] / one[0] for one in cells)
    known = [one for one in cells if not math.isnan(median_of(one)[0])]
    centred = sum(judged(one)[2] for one in known)
    every, tested = (
        max((abs(median_of(one)[0]) for one in known if one[3] >= least * one[0]), default=math.nan)
        for least in (0.0, 0.5)
    )
    return f"""# Trials with looks

Command: `{COMMAND}`. Seed: {SEED}. Date: {evidence.stamp()}.

{len(SETS)} sets of trials, each followed by nine plans: {len(cells)} cells of {size} trials. Both arms are
equal. If the level drifts, it rises linearly by one standard deviation. Plans are two-sided at 5%; a look
makes a test if both arms have at least 20 effective rewards and 20 outcomes of either kind.

- Error rates are at most .055, plus three Monte Carlo errors, in {level} of {len(cells)} cells; the largest
  is {largest:.4f}.
- The interval after the stop contains the difference in at least .94 of the trials that tested, less three
  errors, in {holds} of {len(cells)}.
- The median of the estimates differs from the difference by at most .02 standard deviations of one outcome,
  plus three errors, in {centred} of {len(known)}. At most, it differs by {every:.4f}, and by {tested:.4f}
  if at least half of the trials tested. Where few did, they are selected by their results, because a test
  requires 20 outcomes of either kind.

*Median bias* is the largest of the three plans in a row, in standard deviations of one outcome without drift.
*Naive* is the share of trials, under Pocock's spending, in which a fixed-length 5% test at the stop would
reject; *untested* is the share of trials in which there were not enough data at the last look. Figures that
violate a criterion are bold.

The target of DBCD is that of 0/1 outcomes, and private designs bound each reward; these designs refuse normal
outcomes. Private UCB and private elimination, with epsilon 1, are mixed with a coin in a fifth of the rounds,
because their own choices are not random. Private elimination compares arms only after thousands of rounds.

{chr(10).join(lines(counts))}
"""


def main() -> None:
    """Add blocks, and write the page."""
    command = evidence.parser(__doc__)
    command.add_argument("--blocks", type=int, default=0, help="blocks of each set to have at least")
    command.add_argument(
        "--sets", default="", help="only sets with this in their name, such as 'normal, 200'"
    )
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
        if number >= blocks[place] and options.sets in SETS[place].name
    ]
    with get_context("spawn").Pool(options.jobs) as pool:
        for place, found in pool.imap(block, jobs):
            for plan, numbers in enumerate(found):
                counts[place, plan] = [a + b for a, b in zip(counts[place, plan], numbers, strict=True)]
            blocks[place] += 1
            write(COUNTS, counts, blocks)
    evidence.publish(page(counts), __file__, options)


def quick() -> None:
    """Some trials, whose errors may not be too many; decisions as those of `follow`; and a refusal."""
    place = SETS.index(Trials("epsilon-greedy .2", "50%", 200, "linear, 1 sd"))
    _, found = block((place, 0, 64))
    errors, runs = found[:, 1], found[:, 0]
    print(dict(zip(PLANS, (errors / runs).tolist(), strict=True)))
    assert np.all(errors <= 0.055 * runs + 4.0 * np.sqrt(0.055 * 0.945 * runs))
    as_followed(SETS[0])
    early = ai.designs.Uniform().run(ai.environments.NormalArms([0.0, 0.0]), 50, rng=0)
    try:
        plan_of(SETS[0], "Pocock", 2).analyse(early)
    except InvalidForLog:
        return
    raise AssertionError("a trial that goes on has a result")


def as_followed(trials: Trials, size: int = 64) -> None:
    """Assert that rejections and intervals of all plans are those of `follow`."""
    _, found = block((SETS.index(trials), 0, size))
    source = np.random.SeedSequence([SEED, SETS.index(trials), 0])
    logs = list(trials.made.logs(trials.world, trials.rounds, size, source))
    for (rule, looks), counts in zip(PLANS, found, strict=True):
        plan = plan_of(trials, rule, looks)
        courses = [plan.course(log) for log in logs]
        tails = [one.stopped().tail(0.0) for one in courses if one.tests]
        rejected = sum(one.decision == "reject" for one in courses)
        held = sum(0.5 * ALPHA <= tail <= 1.0 - 0.5 * ALPHA for tail in tails)
        above = sum(tail < 0.5 for tail in tails)
        assert counts[[1, 3, 4, 5]].tolist() == [rejected, len(tails), held, above]


if __name__ == "__main__":
    main()
