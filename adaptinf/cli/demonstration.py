"""Three simulated experiments, each analysed by a textbook method and by the library: ``adaptinf demo``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from adaptinf.cli.grammar import wrapped
from adaptinf.designs import Thompson
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.inference.results.fit_results import Results
from adaptinf.inference.winners import Winner
from adaptinf.reports import report
from adaptinf.simulation.environments import BernoulliArms
from adaptinf.sums import Sums
from adaptinf.texts import ROOM

_POINTS = 100.0
_NAIVE = "sample-mean"
_OPENING = (
    "All three are simulated, so the truth is known. The textbook compares plain means, as if the shares of "
    "the arms had never changed; adaptinf uses the shares, which were logged. Numbers are percentage "
    'points. "Truth missed" is how often a 95% interval leaves out the truth. The number after ± is the '
    "standard error of the simulation."
)

_CALLS = """\
The first trial of the second experiment in Python, from its sums by week:

    result = ai.Contrast(sums, treatment="new", control="old").fit()
    print(result.sentence(), result.summary(), sep="\\n\\n")
    ai.report(result, "late_page.html", log=sums)"""


@dataclass(frozen=True, slots=True)
class Answer:
    """Result of one analysis of one trial, and the truth."""

    estimate: float
    low: float
    high: float
    truth: float

    @classmethod
    def of(cls, result: Results, truth: float, term: Any = None) -> Answer:
        """The answer in one row of a result, the first by default."""
        row = result.params.index[0] if term is None else term
        low, high = result.conf_int().loc[row]
        return cls(float(result.params[row]), float(low), float(high), truth)

    @property
    def misses(self) -> bool:
        """Whether the truth is outside the interval."""
        return not self.low <= self.truth <= self.high


@dataclass(frozen=True, slots=True)
class Pair:
    """The answers of both analyses for one trial."""

    textbook: Answer
    adaptinf: Answer


@dataclass(frozen=True, slots=True)
class Tally:
    """Numbers of trials and of intervals that miss the truth, and the median and spread of the errors."""

    trials: int
    missed: int
    median: float
    spread: float

    @classmethod
    def of(cls, answers: Iterable[Answer]) -> Tally:
        """The tally for several answers."""
        found = list(answers)
        errors = np.array([answer.estimate - answer.truth for answer in found])
        missed = sum(answer.misses for answer in found)
        return cls(len(found), missed, float(np.median(errors)), float(errors.std()))

    def cells(self) -> tuple[str, str]:
        """Share of misses and median error, in points, each with its standard error."""
        # Adding one success and one failure keeps the standard error above 0 if none or all of the intervals
        # miss.
        smoothed = (self.missed + 1) / (self.trials + 2)
        error = math.sqrt(smoothed * (1 - smoothed) / self.trials)
        # This is the standard error of the median of a normal sample.
        of_median = math.sqrt(math.pi / 2 / self.trials) * self.spread
        return (
            f"{self.missed / self.trials:.1%} ± {_POINTS * error:.1f}",
            f"{_POINTS * self.median:+.2f} ± {_POINTS * of_median:.2f}",
        )


@dataclass(frozen=True, slots=True)
class Experiment:
    """A heading, the setting and the question, the simulation of trials, and recorded tallies."""

    title: str
    story: str
    question: str
    simulated: Callable[[int, int], Iterator[Pair]]
    recorded: tuple[Tally, Tally]


def bandit_trials(rng: int, trials: int) -> Iterator[Pair]:
    """Two equal arms under Thompson sampling, as in docs/from_statsmodels.md, where `rng` is 3."""
    equal = BernoulliArms([0.5, 0.5])
    for log in Thompson(floor=0.05).logs(equal, 1_000, trials, rng=rng):
        contrast = Contrast(log, treatment=1, control=0)
        yield Pair(Answer.of(contrast.fit(_NAIVE), 0.0), Answer.of(contrast.fit(), 0.0))


def late_page(rng: np.random.Generator) -> Sums:
    """Six weeks with two pages: the new page starts in the third, and sales of both rise every week."""
    rows = []
    for week, share in enumerate((0.0, 0.0, 0.3, 0.5, 0.6, 0.7)):
        chances = {"old": 1.0 - share, "new": share}
        visits = rng.multinomial(20_000, list(chances.values()))
        rates = 0.040 + 0.006 * week + np.array([0.0, -0.005])
        bought = rng.binomial(visits, rates)
        columns = zip(chances, visits, bought, chances.values(), strict=True)
        rows += [(week + 1, *column) for column in columns if column[1]]
    return _summed(rows)


def late_trials(rng: int, trials: int) -> Iterator[Pair]:
    """Trials in which the new page sells half a point less than the old one in every week."""
    for generator in _generators(rng, 1, trials):
        contrast = Contrast(late_page(generator), treatment="new", control="old")
        yield Pair(Answer.of(contrast.fit(_NAIVE), -0.005), Answer.of(contrast.fit(), -0.005))


LINES = dict(zip("ABCDEFGHIJ", np.linspace(0.19, 0.21, 10), strict=True))
"""Subject lines of an email, and the shares of readers who open it under each."""


def mailing(rng: np.random.Generator) -> Sums:
    """Two mornings of 10,000 emails: the five lines opened most often get four fifths of the second."""
    rates, even = np.array(list(LINES.values())), np.full(10, 0.1)
    mails = rng.multinomial(10_000, even)
    opened = rng.binomial(mails, rates)
    shares = np.full(10, 0.04)
    shares[np.argsort(-opened / mails)[:5]] = 0.16
    more = rng.multinomial(10_000, shares)
    mornings = [(mails, opened, even), (more, rng.binomial(more, rates), shares)]
    return _summed(
        (morning, *column)
        for morning, parts in enumerate(mornings)
        for column in zip(LINES, *parts, strict=True)
    )


def winner_trials(rng: int, trials: int) -> Iterator[Pair]:
    """Trials about the share of readers who open the line that looks best."""
    for generator in _generators(rng, 2, trials):
        sums = mailing(generator)
        means, winner = ArmMeans(sums).fit(_NAIVE), Winner(sums).fit()
        best = str(means.params.idxmax())
        yield Pair(Answer.of(means, LINES[best], best), Answer.of(winner, LINES[winner.winner]))


def _generators(rng: int, part: int, trials: int) -> Iterator[np.random.Generator]:
    """A generator for each trial."""
    return map(np.random.default_rng, np.random.SeedSequence([rng, part]).spawn(trials))


def _summed(rows: Any) -> Sums:
    """Sums of rewards of 0 or 1: rows of batch, arm, number of rounds, sum of rewards and share."""
    table = pd.DataFrame(rows, columns=["batch", "arm", "n", "sum", "share"])
    return Sums(
        table,
        batch="batch",
        arm="arm",
        n="n",
        sum="sum",
        sum_squares="sum",
        propensity="share",
        reward_range=(0, 1),
    )


EXPERIMENTS = (
    Experiment(
        "Two equal pages",
        "A bandit (Thompson sampling) shows each of 1,000 visitors one of two pages. On either page, 50% of "
        "visitors buy. "
        "A page with bad luck is shown less, so its bad luck is not averaged out.",
        "Difference between the pages",
        bandit_trials,
        (Tally(500, 33, 0.00209, 0.05666), Tally(500, 19, 0.00049, 0.05118)),
    ),
    Experiment(
        "A page that came late",
        "A new page starts in week 3 of 6, and receives a growing share of the 20,000 visits a week. Sales "
        "rise by .6 points a week for both pages; the new one sells .5 points less in every week.",
        "Difference, new page minus old page",
        late_trials,
        (Tally(500, 500, 0.01211, 0.0014), Tally(500, 21, 0.00008, 0.0017)),
    ),
    Experiment(
        "The winner of ten",
        "Ten subject lines of an email, opened by 19% to 21% of readers. Each goes to about 1,000 readers; "
        "the five that do best then get most of 10,000 more. How good is the best one?",
        "Share of readers who open the winner",
        winner_trials,
        (Tally(500, 54, 0.00887, 0.0062), Tally(500, 8, 0.0001, 0.01344)),
    ),
)
RECORDED = 500
"""Number of trials whose results were computed in advance with seed 3; a test recomputes them."""


def demonstration(rng: int, trials: int | None = None) -> str:
    """The experiments' results: the first trial of a seed, and `trials` of them or the `RECORDED` ones."""
    parts = [f"Three experiments that a textbook analysis gets wrong\n{'=' * ROOM}\n{wrapped(_OPENING, '')}"]
    # tqdm writes the progress bar to standard error, and only if that is a terminal, so output that is piped
    # stays clean.
    bar_format = "{percentage:3.0f}%|{bar}|"
    count = trials or 1
    with tqdm(total=count * len(EXPERIMENTS), bar_format=bar_format, disable=None, leave=False) as bar:
        for number, one in enumerate(EXPERIMENTS, start=1):
            pairs = []
            for pair in one.simulated(rng, count):
                pairs.append(pair)
                bar.update()
            table = _table(pairs, None if trials else one.recorded)
            parts.append(f"{number}. {one.title}\n{wrapped(one.story, '')}\n\n{one.question}\n{table}")
    if not trials:
        parts.append(f"To simulate the {RECORDED} trials again: adaptinf demo --rng 3 --trials {RECORDED}")
    return "\n\n".join(parts)


def write_report(place: Path, rng: int) -> str:
    """Write a report on the first trial of the late page, and show the calls and their output."""
    sums = late_page(next(_generators(rng, 1, 1)))
    result = Contrast(sums, treatment="new", control="old").fit()
    report(result, place, log=sums, title="A page that came late")
    return f"{_CALLS}\n\n{wrapped(result.sentence(), '')}\n\n{result}"


def _table(pairs: list[Pair], recorded: tuple[Tally, Tally] | None) -> str:
    textbook, adaptinf = recorded or (
        Tally.of(pair.textbook for pair in pairs),
        Tally.of(pair.adaptinf for pair in pairs),
    )
    many = f"{textbook.trials} trials, run in advance" if recorded else f"{textbook.trials} trials"
    lines = (
        f"{'':20}{'the first trial':^32}{many:^28}",
        _line("", "estimate", "95% interval", "truth", "truth missed", "median error"),
        "-" * ROOM,
        _line("textbook (not valid)", *_first(pairs[0].textbook), *textbook.cells()),
        _line("adaptinf", *_first(pairs[0].adaptinf), *adaptinf.cells()),
        _line("should be", "", "", "", "5.0%      ", "0.00       "),
    )
    return "\n".join(line.rstrip() for line in lines)


def _first(answer: Answer) -> tuple[str, str, str]:
    estimate, low, high, truth = (f"{_POINTS * number:.1f}" for number in astuple(answer))
    return estimate, f"{low} to {high}", truth


def _line(name: str, estimate: str, interval: str, truth: str, missed: str, error: str) -> str:
    return f"{name:20}{estimate:>9}{interval:>15}{truth:>7}{missed:>15}{error:>14}"
