"""Intervals where units have several rounds: makes docs/evidence/units.md.

Logs of plain NumPy: units take their turns, round by round; a unit has a mean of its own, and an effect of
its own; the arm is drawn by a coin in every round, by one coin a unit, or by Thompson sampling that learns
from all units, with a floor. Every log is read as a user's frame with the unit's name, and fitted by default.
"""

from __future__ import annotations

import math
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import evidence
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr

Array = NDArray[np.float64]

SEED, FULL, QUICK, BLOCK = 20261126, 4_000, 40, 100
COMMAND = "python docs/evidence/units.py"
COIN, ONCE, THOMPSON = "a coin a round", "one arm per unit", "pooled Thompson, floor .05"
SPREAD, EFFECTS = 0.5, 0.25
"""Standard deviations of units' means and effects, rewards have 1; of 0/1 rewards the means are Beta."""
FLOOR = 0.05
MODELS = ("arm means", "contrast", "effects by group")


@dataclass(frozen=True)
class Row:
    """A design, units and their rounds, the rate of 0/1 rewards (None: normal ones), and the promise."""

    design: str
    units: int
    rounds: int
    rate: float | None
    least: float

    @property
    def name(self) -> str:
        reward = "normal" if self.rate is None else f"0/1 at {self.rate:.0%}"
        return f"{self.design} | {self.units} x {self.rounds} | {reward}"


ROWS = tuple(
    Row(design, units, rounds, None, 0.94 if units >= 40 else 0.92)
    for design in (COIN, ONCE, THOMPSON)
    for units, rounds in ((20, 25), (40, 10), (40, 25), (100, 10))
) + tuple(
    Row(design, units, 10, rate, 0.94)
    for design in (COIN, ONCE, THOMPSON)
    for units, rate in ((100, 0.3), (100, 0.1), (40, 0.1), (40, 0.02))
)


def units_of(row: Row, runs: int, rng: np.random.Generator) -> Array:
    """Mean rewards of every unit under both arms; shape (runs, units, 2)."""
    if row.rate is None:
        own = SPREAD * rng.standard_normal((runs, row.units))
        effect = EFFECTS * rng.standard_normal((runs, row.units))
        return np.stack([own, own + effect], axis=2)
    own = rng.beta(4.0 * row.rate, 4.0 * (1.0 - row.rate), (runs, row.units))
    return np.stack([own, own], axis=2)


def simulate(row: Row, runs: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], Array, Array]:
    """Arm, reward and propensity of the second arm, shape (runs, T); round t is of unit t modulo units."""
    total = row.units * row.rounds
    level, every = units_of(row, runs, rng), np.arange(runs)
    arms = np.empty((runs, total), dtype=np.int64)
    rewards, chances = np.empty((runs, total)), np.full((runs, total), 0.5)
    kept = rng.integers(0, 2, (runs, row.units))
    count, sums = np.zeros((runs, 2)), np.zeros((runs, 2))
    spread = 1.0 if row.rate is None else math.sqrt(row.rate * (1.0 - row.rate))
    prior = 0.0 if row.rate is None else row.rate
    for t in range(total):
        unit = t % row.units
        if row.design == THOMPSON:
            center = prior + (sums - prior * count) / (count + 1.0)
            size = spread * np.sqrt((1.0 / (count + 1.0)).sum(axis=1))
            free = ndtr((center[:, 1] - center[:, 0]) / size)
            chances[:, t] = FLOOR + (1.0 - 2.0 * FLOOR) * free
        arm = (rng.random(runs) < chances[:, t]).astype(np.int64)
        arms[:, t] = kept[:, unit] if row.design == ONCE else arm
        mean = level[every, unit, arms[:, t]]
        if row.rate is None:
            rewards[:, t] = mean + rng.standard_normal(runs)
        else:
            rewards[:, t] = rng.random(runs) < mean
        count[every, arms[:, t]] += 1.0
        sums[every, arms[:, t]] += rewards[:, t]
    return arms, rewards, chances


def block(job: tuple[int, int, int]) -> Array:
    """For each model sums over some runs: intervals, covered, without caution, covered of these, logs
    cautioned, terms without an interval; shape (models, 6)."""
    import adaptinf as ai

    number, part, runs = job
    row = ROWS[number]
    rng = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(number, part)))
    arms, rewards, chances = simulate(row, runs, rng)
    unit, found = np.arange(arms.shape[1]) % row.units, np.zeros((len(MODELS), 6))
    truth = 0.0 if row.rate is None else row.rate
    group = np.array(["old", "young"])[np.arange(row.units) % 2][unit]
    for arm, reward, chance in zip(arms, rewards, chances, strict=True):
        frame = pd.DataFrame({"arm": np.array(["A", "B"])[arm], "reward": reward, "person": unit})
        frame = frame.assign(p_A=1.0 - chance, p_B=chance, group=group)
        given = {"action": "arm", "reward": "reward", "propensities": "p_{arm}", "unit": "person"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            log = ai.AdaptiveLog(frame, **given)
            told = ai.AdaptiveLog(frame, context="group", **given, about={"context_free": True})
            results = (
                (ai.ArmMeans(log).fit(), truth),
                (ai.Contrast(log, treatment="B", control="A").fit(), 0.0),
                (ai.CATE(told, by="group", treatment="B", control="A").fit(), 0.0),
            )
        for place, (result, value) in enumerate(results):
            limits, calm = result.conf_int().to_numpy(), not result.cautions
            shown = ~np.isnan(limits).any(axis=1)
            inside = shown & (limits[:, 0] <= value) & (value <= limits[:, 1])
            found[place] += [shown.sum(), inside.sum(), calm * shown.sum(), calm * inside.sum(), not calm, 0]
            found[place, 5] += (~shown).sum()
    return found


def kept(row: Row, counted: Array) -> tuple[bool, str]:
    """Whether a model's intervals keep the promise, all of them or those without a caution, and its cells."""
    shown, inside, calm, calm_inside, cautioned, hidden = counted[:6]
    runs = counted[6]

    def reaches(good: float, of: float) -> bool:
        return of == 0 or good / of >= row.least - 3.0 * math.sqrt(row.least * (1.0 - row.least) / of)

    held = reaches(inside, shown) or reaches(calm_inside, calm)
    covers = f"{inside / shown:.3f}" if shown else "-"
    calmly = f"{calm_inside / calm:.3f}" if calm else "-"
    gone = hidden / (hidden + shown)
    cells = f"{covers} | {calmly} | {cautioned / runs:.2f} | {gone:.2f} | {'yes' if held else '**no**'}"
    return held, cells


def page(counted: dict[int, Array], runs: int) -> str:
    lines, promises = [], []
    for number, found in counted.items():
        row = ROWS[number]
        for name, sums in zip(MODELS, found, strict=True):
            held, cells = kept(row, np.append(sums, runs))
            promises.append(held)
            lines.append(f"| {row.name} | {name} | {cells} |")
    table = "\n".join(lines)
    return f"""# Repeated units

Command: `{COMMAND}`. Seed: {SEED}. Date: {evidence.stamp()}.

There are two arms without an effect on average; each row is based on {runs:,} logs simulated in plain NumPy.
Units have separate means (with a standard deviation of half that of a reward; for 0/1 rewards, the
distribution is Beta with parameters 4 rate and 4 (1 - rate)), and with normal rewards also separate effects
({EFFECTS:g}). The table shows the coverage of nominal 95% intervals by the default method, for all tables and
for those without a caution, the share of logs that are cautioned, and the share of terms without an interval.

The target, minus three standard errors, is .94 from 40 units on and .92 with 20, for all intervals or for
those without a caution: {sum(promises)} of {len(promises)} rows meet it.

| arms | units x rounds | rewards | model | covers | no caution | cautioned | no interval | kept |
| --- | --- | --- | --- | ---: | ---: | ---: | ---: | --- |
{table}
"""


def main() -> None:
    parser = evidence.parser(__doc__)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    rows = range(0, len(ROWS), 5) if options.quick else range(len(ROWS))
    runs = QUICK if options.quick else FULL
    size = min(BLOCK, runs)
    jobs = [(row, part, size) for row in rows for part in range(runs // size)]
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(block, jobs))
    counted = {row: np.zeros((len(MODELS), 6)) for row in rows}
    for (row, _, _), sums in zip(jobs, found, strict=True):
        counted[row] += sums
    evidence.publish(page(counted, runs), __file__, options)


if __name__ == "__main__":
    main()
