"""Looks by date, and outcomes that arrive after the stop: makes docs/evidence/looks_dates.md.

Two arms with normal outcomes. First, looks on four days of a year: participants arrive at random, and a look
uses those before the first pending outcome. Second, trials that stop at a look, with participants whose
outcomes arrive later: analyses at the stop, by the deletion method, and of all data as if there had been no
looks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import evidence
import numpy as np
from scipy import stats

import adaptinf as ai
from adaptinf.inference.distributions.tails import student_quantile

SEED, TRIALS, LATE, ALPHA = 20261128, 1_024, 400, 0.05
COMMAND = "python docs/evidence/looks_dates.py"
SPENDING = ("lan-demets-obrien-fleming", "lan-demets-pocock")
DESIGNS = {
    "Thompson": ai.designs.Thompson(prior="normal", floor=0.2),
    "epsilon-greedy": ai.designs.EpsilonGreedy(exploration=0.4),
}
DELAYS = {"none": 0, "30 days, sd 21": stats.gamma(2, scale=15)}
DRIFTS = (0.0, 1.0)
BY_DATE = tuple(itertools.product(DESIGNS, DELAYS, DRIFTS))
OVERRUN = tuple(itertools.product(SPENDING, (40, 120), (0.0, 0.3)))
WAYS = ("at the stop", "deletion method", "looks ignored")
LENGTH = 400


def world(effect: float, drift: float) -> ai.environments.Environment:
    """Normal outcomes with a common level that rises by `drift` standard deviations."""

    def draw(rng: np.random.Generator, horizon: int) -> np.ndarray[Any, Any]:
        level = drift * np.arange(horizon) / LENGTH
        return rng.normal(size=(horizon, 2)) + level[:, None] + np.array([0.0, effect])

    return ai.environments.FunctionEnvironment(draw, means=[0.5 * drift, 0.5 * drift + effect])


def by_date(place: int, trials: int) -> tuple[float, float]:
    """Error rate and coverage of one cell, without a difference."""
    design, delay, drift = BY_DATE[place]
    plan = ai.Plan(
        DESIGNS[design],
        arms=(0, 1),
        treatment=1,
        control=0,
        looks=[90, 180, 270, 360],
        horizon=LENGTH,
        clock="date",
        spending="lan-demets-pocock",
        alpha=ALPHA,
        accrual=1.1,
        delay=DELAYS[delay],
    )
    source = np.random.SeedSequence([SEED, place])
    row = plan.operating_characteristics(world(0.0, drift), trials, source).frame.iloc[0]
    return float(row["rejected"]), float(row["coverage"])


def overrun(place: int, trials: int) -> np.ndarray[Any, Any]:
    """Coverage, rejections and estimates above the effect, (ways, 3), and as last row the early stops."""
    spending, more, effect = OVERRUN[place]
    plan = ai.Plan(
        DESIGNS["epsilon-greedy"],
        arms=(0, 1),
        treatment=1,
        control=0,
        looks=[100, 200, 300, LENGTH],
        spending=spending,
        alpha=ALPHA,
    )
    rng, found, early = np.random.default_rng([SEED, 100 + place]), np.zeros((len(WAYS), 3)), 0
    for _ in range(trials):
        log = plan.design.run(world(effect, 0.0), horizon=LENGTH, rng=rng)
        stop = plan.analyse(log)
        part = log[: min(stop.rounds + more, LENGTH)]
        early += stop.rounds < LENGTH
        whole = plan.analyse(part, overrun=True)
        rows = [(*one.conf_int(ALPHA).to_numpy()[0], one.params.iloc[0]) for one in (stop, whole)]
        rows.append(ignoring(plan, part))
        for way, (low, high, estimate) in enumerate(rows):
            found[way] += low <= effect <= high, not low <= 0.0 <= high, estimate > effect
    return np.vstack([found / trials, [early / trials] * 3])


def ignoring(plan: ai.Plan, log: ai.AdaptiveLog) -> tuple[float, float, float]:
    """Interval and estimate of all data, as if there had been no looks."""
    process = plan.process(log, np.array([log.n_rounds]))
    assert process is not None
    estimate = float(process.score[0] / process.slope[0])
    quantile = float(student_quantile(math.log(ALPHA / 2.0), process.effective - 1.0)[0])
    reach = quantile * math.sqrt(process.clock[0]) / float(process.slope[0])
    return estimate - reach, estimate + reach, estimate


def error(share: float, trials: int) -> float:
    """Monte Carlo error of a nominal share."""
    return math.sqrt(share * (1.0 - share) / trials)


def date_lines(cells: list[tuple[float, float]], trials: int) -> Iterator[str]:
    """One row for each cell by date."""
    yield "| design | delay | drift | errors | coverage |"
    yield "| --- | --- | ---: | ---: | ---: |"
    for (design, delay, drift), (errors, coverage) in zip(BY_DATE, cells, strict=True):
        high, low = ALPHA + 3.0 * error(ALPHA, trials), 1.0 - ALPHA - 3.0 * error(ALPHA, trials)
        shown = f"{errors:.3f}" if errors <= high else f"**{errors:.3f}**"
        held = f"{coverage:.3f}" if coverage >= low else f"**{coverage:.3f}**"
        yield f"| {design} | {delay} | {drift:g} sd | {shown} | {held} |"


def overrun_lines(cells: list[np.ndarray[Any, Any]]) -> Iterator[str]:
    """One row for each cell and way."""
    yield "| spending | later | effect | stopped early | analysis | coverage | rejected | estimate above |"
    yield "| --- | ---: | ---: | ---: | --- | ---: | ---: | ---: |"
    for (spending, more, effect), found in zip(OVERRUN, cells, strict=True):
        for way, (held, rejected, above) in zip(WAYS, found, strict=False):
            first = f"| {spending.removeprefix('lan-demets-')} | {more} | {effect:g} | {found[-1, 0]:.2f} "
            yield f"{first}| {way} | {held:.3f} | {rejected:.3f} | {above:.2f} |"


def page(dates: list[tuple[float, float]], late: list[np.ndarray[Any, Any]], trials: int, runs: int) -> str:
    """The page."""
    high = ALPHA + 3.0 * error(ALPHA, trials)
    low = 1.0 - ALPHA - 3.0 * error(ALPHA, runs)
    level = sum(errors <= high for errors, _ in dates)
    covers = sum(found[1, 0] >= low for found in late)
    return f"""# Looks by date, and outcomes after the stop

Command: `{COMMAND}`. Seed: {SEED}. Date: {evidence.stamp()}.

## Looks by date

Looks are on days 90, 180, 270 and 360, with Pocock's spending at 5%, two-sided. About 1.1 participants arrive
per day, up to {LENGTH}; the arms are equal, and drift raises the level of both. {trials:,} trials a row.

- Error rates are at most .05, plus three Monte Carlo errors, in {level} of {len(dates)} rows.

{chr(10).join(date_lines(dates, trials))}

## Outcomes after the stop

Looks are after 100, 200, 300 and {LENGTH} rounds. When a trial stops at a look, 40 or 120 further
participants have been assigned, whose outcomes arrive later. {runs:,} trials a cell.

- Intervals by the deletion method contain the difference in at least .95 of the trials, less three Monte
  Carlo errors, in {covers} of {len(late)} cells.
- *Estimate above* is the share of estimates above the effect; it is .5 if they are median-unbiased.

{chr(10).join(overrun_lines(late))}
"""


def main() -> None:
    """Simulate and write the page."""
    options = evidence.parser(__doc__).parse_args()
    trials, runs = (64, 16) if options.quick else (TRIALS, LATE)
    dates = [by_date(place, trials) for place in range(2 if options.quick else len(BY_DATE))]
    late = [overrun(place, runs) for place in range(1 if options.quick else len(OVERRUN))]
    if options.quick:
        print(dates, late)
        assert all(errors <= ALPHA + 4.0 * error(ALPHA, trials) for errors, _ in dates)
        assert all(found[1, 0] >= 1.0 - ALPHA - 4.0 * error(ALPHA, runs) for found in late)
        return
    evidence.publish(page(dates, late, trials, runs), __file__, options)


if __name__ == "__main__":
    main()
