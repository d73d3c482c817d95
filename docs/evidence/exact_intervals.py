"""Coverage and length of the exact intervals of two-arm trials: makes docs/evidence/exact_intervals.md.

Coverage is that of acceptance regions under the exact law. At each effect the outcomes are ordered by their
distance from it, so those which are accepted end at one distance; it is searched by halving, and one
probability a step, over all nuisance rates. The interval function itself is compared with the regions.
"""

from __future__ import annotations

import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import evidence
import numpy as np
from numpy.typing import NDArray

from adaptinf.audit.binary.count_states import TIE, certified_maximum
from adaptinf.audit.binary.effect_inversion import SCALES, Inversion, Scale
from adaptinf.audit.binary.exact_law import ExactLaw, exact
from adaptinf.designs import EpsilonGreedy, PlayTheWinner, Thompson, Uniform
from adaptinf.errors import InvalidForLog
from adaptinf.inference.arms import Contrast
from adaptinf.simulation.environments import BernoulliArms

Array = NDArray[np.float64]

SEED, ALPHA = 20261124, 0.05
COMMAND = "python docs/evidence/exact_intervals.py"
DESIGNS: dict[str, Any] = {
    "Thompson": Thompson(),
    "Thompson, floor .1": Thompson(floor=0.1),
    "EpsilonGreedy .2": EpsilonGreedy(exploration=0.2),
    "PlayTheWinner": PlayTheWinner(),
    "Uniform": Uniform(),
}
RATES = (np.arange(50) + 0.5) / 50.0
SMALL, SIZES = 20, (50, 100)
STATES = 50
"""Outcomes for each design and size, whose intervals are compared with the regions."""
ARMS = ((0.3, 0.3), (0.3, 0.6))
LOGS = 30
FITS: dict[str, dict[str, Any]] = {
    "ALEE": {"estimator": "alee", "stationary": True},
    "AIPW": {"estimator": "aipw"},
}


@dataclass(frozen=True)
class Region:
    """Outcomes that are accepted at an effect, shape (states,)."""

    effect: float
    accepted: NDArray[np.bool_]


def grid_effects(scale: Scale) -> dict[float, list[tuple[float, float]]]:
    """Pairs of rates, arm 1 first, by their effect."""
    found: dict[float, list[tuple[float, float]]] = defaultdict(list)
    for one in RATES:
        for zero in RATES:
            if scale.name == "difference":
                effect = one - zero
            elif scale.name == "ratio":
                effect = np.log(one / zero)
            else:
                effect = np.log(one / (1.0 - one)) - np.log(zero / (1.0 - zero))
            found[round(float(effect), 9) + 0.0].append((float(one), float(zero)))
    return found


def region(law: ExactLaw, scale: Scale, effect: float) -> Region:
    """Outcomes whose p-value exceeds alpha, by the distance at which they end."""
    inversion = Inversion(law, scale, (law.horizon, 0, 0, 0), 0.0)
    sizes = inversion._size(effect, *inversion.every)
    ranked = np.sort(sizes[inversion.ways > 0.0])
    low, high = -1, ranked.size  # accepted, rejected
    while high - low > 1:
        middle = (low + high) // 2
        least = ranked[middle] - TIE * max(ranked[middle], TIE)
        if inversion._worst(np.where(sizes >= least, inversion.ways, 0.0), effect, ALPHA) > ALPHA:
            low = middle
        else:
            high = middle
    end = np.inf if high == ranked.size else ranked[high] - TIE * max(ranked[high], TIE)
    return Region(effect, np.asarray(sizes < end))


def chance(law: ExactLaw, chosen: NDArray[np.bool_], one: Any, zero: Any) -> Array:
    """Probability of a set of outcomes at pairs of rates."""
    starts = np.cumsum([0] + [(n + 1) * (law.horizon - n + 1) for n in range(law.horizon)])

    def inside(n1: Any, s1: Any, n0: Any, s0: Any) -> Any:
        return chosen[starts[n1] + s1 * (n0 + 1) + s0]

    return law.expectation(inside, np.asarray(one), np.asarray(zero))


def covered(law: ExactLaw, scale: Scale, regions: list[Region]) -> Array:
    """Coverage at every pair of rates."""
    pairs = grid_effects(scale)
    return np.concatenate(
        [chance(law, one.accepted, *zip(*pairs[one.effect], strict=True)) for one in regions]
    )


def test_sizes(law: ExactLaw) -> list[str]:
    """Largest size over all rates, of the two exact tests and of the one that is inverted."""
    found = [law.max_size(test)[1] for test in ("conditional", "unconditional")]
    equal = region(law, SCALES["difference"], 0.0)
    found.append(float(certified_maximum(law.by_total(~equal.accepted))[1]))
    return [f"{size:.4f}" for size in found]


def outcomes(law: ExactLaw, count: int, rng: np.random.Generator) -> list[tuple[int, int, int, int]]:
    """Outcomes under pairs of rates from the grid."""
    every = np.concatenate([np.stack(counts) for _, *counts in law.states()], axis=1)
    inversion = Inversion(law, SCALES["difference"], (law.horizon, 0, 0, 0), 0.0)
    found = []
    for _ in range(count):
        one, zero = rng.choice(RATES, size=2)
        n1, s1, n0, s0 = every
        weights = inversion.ways * one**s1 * (1 - one) ** (n1 - s1) * zero**s0 * (1 - zero) ** (n0 - s0)
        place = rng.choice(weights.size, p=weights / weights.sum())
        found.append(tuple(int(count) for count in every[:, place]))
    return found


def held(
    law: ExactLaw, scale: Scale, regions: list[Region], count: int, rng: np.random.Generator
) -> tuple[int, int, list[float]]:
    """Accepted effects of the grid, how many of them lie outside the intervals, and seconds."""
    inside = outside = 0
    seconds = []
    starts = np.cumsum([0] + [(n + 1) * (law.horizon - n + 1) for n in range(law.horizon)])
    for n1, s1, n0, s0 in outcomes(law, count, rng):
        start = time.process_time()
        low, high = law.interval(n1, s1, n0, s0, scale.name)
        seconds.append(time.process_time() - start)
        place = starts[n1] + s1 * (n0 + 1) + s0
        for one in regions:
            if one.accepted[place]:
                inside += 1
                outside += not low <= scale.shown(one.effect) <= high
    return inside, outside, seconds


def lengths(design: Any, law: ExactLaw, arms: tuple[float, float], logs: int, seed: int) -> list[str]:
    """Mean length and coverage of the exact interval, and of those of FITS; arms (arm 0, arm 1)."""
    streams = np.random.SeedSequence(seed).spawn(logs)
    truth = arms[1] - arms[0]
    known: dict[tuple[int, ...], tuple[float, float]] = {}
    limits: dict[str, list[tuple[float, float]]] = {name: [] for name in ("exact", *FITS)}
    for stream in streams:
        log = design.run(BernoulliArms(list(arms)), horizon=law.horizon, rng=stream)
        action, reward = log.arrays.action, log.arrays.reward
        state = tuple(int(x) for k in (1, 0) for x in ((action == k).sum(), reward[action == k].sum()))
        if state not in known:
            known[state] = law.interval(*state)
        limits["exact"].append(known[state])
        for name, options in FITS.items():
            try:
                result = Contrast(log, treatment=1, control=0).fit(**options)
            except InvalidForLog:
                continue
            low, high = np.asarray(result.conf_int(ALPHA), dtype=float)[0]
            limits[name].append((max(low, -1.0), min(high, 1.0)))
    cells = []
    for found in limits.values():
        ends = np.array(found).reshape(-1, 2)
        known_ends = ends[np.isfinite(ends).all(axis=1)]
        if not len(known_ends):
            cells += ["-", "-"]
            continue
        hit = (known_ends[:, 0] <= truth) & (truth <= known_ends[:, 1])
        note = "" if len(known_ends) == logs else f" of {len(known_ends)}"
        cells += [f"{np.diff(known_ends, axis=1).mean():.3f}{note}", f"{hit.mean():.2f}"]
    return cells


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


@dataclass
class Rows:
    """Rows of the page for one design and horizon."""

    tested: list[list[str]]
    coverage: list[list[str]]
    checked: list[list[str]]
    measured: list[list[str]]
    seconds: list[float]


def studied(job: tuple[str, int, bool]) -> Rows:
    """A design at a horizon."""
    name, horizon, full = job
    design, rows = DESIGNS[name], Rows([], [], [], [], [])
    law, title = exact(design, horizon), f"{name}, T = {horizon}"
    rng = np.random.default_rng([SEED, list(DESIGNS).index(name), horizon])
    rows.tested.append([title, *test_sizes(law)])
    for scale in SCALES.values():
        if scale.name != "difference" and not (full and horizon == SMALL):
            continue
        regions = [region(law, scale, effect) for effect in grid_effects(scale)]
        found = covered(law, scale, regions)
        cells = [f"{found.min():.5f}", f"{found.mean():.4f}", f"{(found < 1.0 - ALPHA).sum()}"]
        rows.coverage.append([f"{title}: {scale.label}", f"{len(regions):,}", f"{found.size:,}", *cells])
        if scale.name == "difference" and horizon in SIZES:
            inside, outside, rows.seconds = held(law, scale, regions, STATES, rng)
            rows.checked.append([title, str(STATES), f"{inside:,}", str(outside)])
    for i, arms in enumerate(ARMS if horizon in SIZES else ()):
        cells = lengths(design, law, arms, LOGS, SEED + i)
        rows.measured.append([f"{title}, rates {arms[0]}, {arms[1]}", *cells])
    return rows


def page(full: bool, workers: int) -> str:
    jobs = [(name, horizon, full) for horizon in ((SMALL, *SIZES) if full else (SMALL,)) for name in DESIGNS]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(studied, jobs))
    spent = {
        size: [one for rows, job in zip(found, jobs, strict=True) for one in rows.seconds if job[1] == size]
        for size in (SIZES if full else ())
    }
    tested, coverage, checked, measured = (
        [row for rows in found for row in getattr(rows, part)]
        for part in ("tested", "coverage", "checked", "measured")
    )
    rows = [f"T = {horizon}" for horizon in spent]
    times = [[f"{np.median(s):.2f}", f"{np.quantile(s, 0.9):.2f}", f"{max(s):.2f}"] for s in spent.values()]
    return f"""# Exact intervals of two-arm binary trials

Command: `{COMMAND}{" --quick" * (not full)}`. Seed: {SEED}. Date: {evidence.stamp()}.

Derivations: [exact tests](../theory/exact.md). Intervals are two-sided, with alpha = {ALPHA:g}. The designs
are the following, with Beta(1, 1) priors for Thompson sampling and an urn with one ball of each kind for
play-the-winner: {"; ".join(DESIGNS)}.

## Tests of equal arms

The table shows the largest size over all common success rates, computed as an upper bound on the maximum.

{table(["test", "conditional", "unconditional, by Wald", "unconditional, as inverted"], tested)}
## Coverage under the exact distribution

The table shows the smallest and mean coverage over {RATES.size} x {RATES.size} pairs of rates, {RATES[0]:g},
{RATES[1]:g}, ..., {RATES[-1]:g}: coverage at a pair is the probability of the outcomes for which its effect
is accepted. Nothing is simulated.

{table(["coverage", "effects", "pairs", "smallest", "mean", "below nominal"], coverage)}
## The interval function against the regions

Outcomes are drawn at pairs of rates from the grid, and their intervals for the difference must contain every
effect in the grid that is accepted for the outcome.

{table(["outcomes", "drawn", "accepted effects", "outside the interval"], checked)}
Processor seconds for one interval after the distribution has been computed:

{table(["seconds", "median", "nine tenths", "longest"], [[a, *b] for a, b in zip(rows, times, strict=True)])}
## Length

The table shows mean lengths of 95% intervals for the difference over {LOGS} simulated logs per row, and the
shares that contain the truth (Monte Carlo error .04), with the default of AIPW, and ALEE for
`stationary=True`. Limits are cut at -1 and 1. "of n": the others had none, because events or propensities
were missing, while the exact ones are for all logs; -: none has.

{table(["rates of arm 0, arm 1", "exact", "covers", *(x for n in FITS for x in (n, "covers "))], measured)}"""


def main() -> None:
    parser = evidence.parser(__doc__)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    text = page(not options.quick, options.workers)
    evidence.publish(text, __file__, options)
    if options.quick:
        for name in DESIGNS:
            evidence.hold_cell(text, __file__, f"{name}, T = {SMALL}: risk difference", "smallest")


if __name__ == "__main__":
    main()
