"""Contrasts under drift that is common to the arms: makes docs/evidence/drift.md.

Logs of plain NumPy: two arms with normal rewards of standard deviation 1, a level that rises in a line from
start to end, and an effect that is the same in every round; epsilon-greedy, and Thompson sampling with normal
posteriors whose share is mixed with a floor. Every log is read as a user's frame with both propensities, and
`Contrast` is fitted by its default, with uniform weights, and with the weights that `stationary=True` allows.
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

SEED, FULL, QUICK, BLOCK = 20261125, 20_000, 200, 200
ALPHA = 0.05
COMMAND = "python docs/evidence/drift.py"
FITS: dict[str, dict[str, object]] = {
    "default": {},
    "uniform": {"estimator": "aipw", "weights": "uniform"},
    "stationary": {"stationary": True},
}


@dataclass(frozen=True)
class Row:
    """A design and a drift; the share of intervals that may miss."""

    design: str
    rounds: int
    drift: float
    effect: float
    most: float

    @property
    def name(self) -> str:
        return f"{self.design}, T = {self.rounds:,} | {self.drift:g} | {self.effect:g}"


GREEDY, FLOOR, FALLING = "epsilon-greedy .2", "Thompson, floor .05", "Thompson, floor .5 t^-.7"
ROWS = (
    Row(GREEDY, 1_000, 0.5, 0.0, 0.06),
    Row(FLOOR, 4_000, 0.5, 0.0, 0.06),
    Row(FLOOR, 4_000, 2.0, 0.2, 0.06),
    Row(FLOOR, 1_000, 0.0, 0.0, 0.06),
    Row(FALLING, 4_000, 0.0, 0.5, 0.07),
    Row(FALLING, 4_000, 0.5, 0.0, 0.07),
)


def share_of_second(row: Row, t: int, count: Array, total: Array, rng: np.random.Generator) -> Array:
    """Propensity of the second arm in round t, counted from 0; count and total have shape (runs, 2)."""
    if row.design == GREEDY:
        mean = np.where(count > 0, total / np.maximum(count, 1.0), np.inf)
        ahead = mean[:, 1] - np.where(np.isinf(mean[:, 0]) & np.isinf(mean[:, 1]), mean[:, 1], mean[:, 0])
        tied = np.isnan(ahead) | (ahead == 0.0)
        best = np.where(tied, rng.random(len(count)) < 0.5, ahead > 0.0)
        return np.asarray(0.1 + 0.8 * best)
    floor = 0.05 if row.design == FLOOR else 0.5 * (t + 1.0) ** -0.7
    center, variance = total / (count + 1.0), 1.0 / (count + 1.0)
    free = ndtr((center[:, 1] - center[:, 0]) / np.sqrt(variance.sum(axis=1)))
    return np.asarray(floor + (1.0 - 2.0 * floor) * free)


def simulate(row: Row, runs: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], Array, Array]:
    """Arm, reward and propensity of the second arm, shape (runs, rounds)."""
    arms = np.empty((runs, row.rounds), dtype=np.int64)
    rewards, chances = np.empty((runs, row.rounds)), np.empty((runs, row.rounds))
    count, total = np.zeros((runs, 2)), np.zeros((runs, 2))
    every = np.arange(runs)
    for t in range(row.rounds):
        chances[:, t] = share_of_second(row, t, count, total, rng)
        arms[:, t] = rng.random(runs) < chances[:, t]
        level = row.drift * t / row.rounds + row.effect * arms[:, t]
        rewards[:, t] = level + rng.standard_normal(runs)
        count[every, arms[:, t]] += 1.0
        total[every, arms[:, t]] += rewards[:, t]
    return arms, rewards, chances


def block(job: tuple[int, int, int]) -> NDArray[np.float64]:
    """Miss, length and caution of each fit in some runs of a row; shape (fits, runs, 3)."""
    import adaptinf as ai

    number, part, runs = job
    row = ROWS[number]
    rng = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(number, part)))
    arms, rewards, chances = simulate(row, runs, rng)
    labels, found = np.array(["A", "B"]), np.empty((len(FITS), runs, 3))
    for run, (arm, reward, chance) in enumerate(zip(arms, rewards, chances, strict=True)):
        frame = pd.DataFrame({"arm": labels[arm], "reward": reward, "p_A": 1.0 - chance, "p_B": chance})
        log = ai.AdaptiveLog(frame, action="arm", reward="reward", propensities="p_{arm}")
        for place, options in enumerate(FITS.values()):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = ai.Contrast(log, treatment="B", control="A").fit(**options)  # type: ignore[arg-type]
            low, high = (float(limit) for limit in result.conf_int(ALPHA).iloc[0])
            found[place, run] = not low <= row.effect <= high, high - low, bool(result.cautions)
    return found


def cells(row: Row, found: Array) -> str:
    """A line of the table; found (fits, runs, 3)."""
    told = []
    for misses, lengths, cautions in found.transpose(0, 2, 1):
        told += [f"{misses.mean():.4f}", f"{np.median(lengths):.3f}", f"{cautions.mean():.3f}"]
    return f"| {row.name} | {' | '.join(told)} |"


def page(counted: list[Array], runs: int) -> str:
    heads = " | ".join(f"{name} | length | cautioned" for name in FITS)
    lines = "\n".join(cells(row, found) for row, found in zip(ROWS, counted, strict=True))
    kept = sum(
        found[0, :, 0].mean() <= row.most + 3.0 * math.sqrt(row.most * (1.0 - row.most) / runs)
        for row, found in zip(ROWS, counted, strict=True)
    )
    return f"""# Contrasts under drift

Command: `{COMMAND}`. Seed: {SEED}. Date: {evidence.stamp()}.

There are two arms with normal rewards, and each row is based on {runs:,} logs, simulated in plain NumPy.
*Drift* is the increase in the level of both arms from start to end, in standard deviations; the effect is
constant. The table shows the shares of nominal 95% intervals that miss the effect, median lengths, and shares
of logs whose table carries a caution. The Monte Carlo standard error of a proportion of .06 is
{math.sqrt(0.06 * 0.94 / runs):.4f}. With the default, the share of intervals that miss must be at most .06,
or .07 if the floor decays, plus three standard errors: {kept} of {len(ROWS)} rows satisfy this.

*Default*: one weight for both arms. *Uniform*: the same weight for every round. *Stationary*: separate
weights for each arm, which users declare to be harmless by setting `stationary=True`; under drift, they are
not harmless.

| design | drift | effect | {heads} |
| --- | ---: | ---: |{" ---: |" * 3 * len(FITS)}
{lines}
"""


def main() -> None:
    parser = evidence.parser(__doc__)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    runs = QUICK if options.quick else FULL
    jobs = [(row, part, BLOCK) for row in range(len(ROWS)) for part in range(runs // BLOCK)]
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(block, jobs))
    counted = [
        np.concatenate([part for part, job in zip(found, jobs, strict=True) if job[0] == row], axis=1)
        for row in range(len(ROWS))
    ]
    text = page(counted, runs)
    evidence.publish(text, __file__, options)
    if options.quick:
        name = ROWS[0].name
        evidence.hold_cell(text, __file__, name, "default", (runs, FULL))


if __name__ == "__main__":
    main()
