"""Linear bandits, private and not: makes docs/evidence/linear.md.

Cells are independent of each other: each has a seed of its own, made from its name.
"""

from __future__ import annotations

import math
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import evidence
import numpy as np
from scipy import stats

from adaptinf.designs import LinPriv, LinUCB, Uniform
from adaptinf.designs.base import Design
from adaptinf.designs.contextual.linear_bands import prediction_bands
from adaptinf.inference.corrections.prediction_bias import linear_bias_bound
from adaptinf.simulation.environments import LinearArms

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[1] / "tests" / "benchmarks"))

import bench_linpriv as bench  # noqa: E402
from bench_private_ucb import REPEATS  # noqa: E402

SEED = 2018
SIZE = 5
THETA = (8.0, 4.0, 2.0, 1.0, 0.0)
DELTA = 1e-8
EPSILONS = (0.1, 1.0, 10.0, 100.0)
PAGE = """\
# Linear bandits

Command: `python docs/evidence/linear.py{flags}`. Seed: {seed} and the name of the cell. Date: {today}.
Running time: {minutes:.1f} minutes on one core.

There are five arms and five coordinates. Contexts are uniform on the nonnegative part of the unit sphere, one
for each arm and round. Rewards are Bernoulli with mean x'theta. The coefficients of the arms are the five
rotations of one nonnegative unit vector, ({theta}): averaged over contexts, all arms are equally good, so
only the context determines which one to pull. `failure` is {failure} in the first table, and its default,
1/T, in the others. All regularisation parameters, and all bounds on theta, are 1. Normal noise has delta =
{delta:g}.

## Do the bands cover?

*Runs with a miss* are those in which |x'(theta_hat - theta)| exceeds the width for some arm in some round.
There are {runs} runs per cell, with T = {horizon}; the share of such runs should be at most {failure}, and
its interval is the 95% interval of Clopper and Pearson. *Bands* is the share of all individual bands that
contain the truth. *Needed* is the factor by which all widths could be multiplied so that {keep:.0%} of the
runs have no miss. Bands are recomputed from actions, contexts and releases (from rewards for LinUCB) by
inverting matrices.

{coverage}

There is no guarantee for the coverage of the published width, because the constants of its noise bound are
unspecified.

## Regret

The table shows mean pseudo-regret and standard error; the last column divides by the regret of LinUCB.
Published noise at a nominal epsilon guarantees sqrt(5) epsilon.

{regret}

{verdict}

If the allowance for noise is large, the band of an arm that has been pulled is wider than that of an arm
without pulls, which has no noise; a run then stays with its first arm for a long time, which in this setting
is neither better nor worse than uniform choice.

## How far predictions can be off

There are 200 contexts in 100 dimensions, with mean reward 1/2 at each, and epsilon = .1; the history reveals
every reward by randomised response, with the signs of a row of the hat matrix. The bias of the prediction at
that row's context, over 20,000 draws, is:

{bias}

## Speed

The table shows processor times with K = d = 5 and T = {speed_horizon:,} on one core, the best of {repeats}
measurements in one run. Contexts are drawn in the loop.

{speed}
"""


def environment() -> LinearArms:
    vector = np.array(THETA) / np.linalg.norm(THETA)
    theta = [np.roll(vector, arm) for arm in range(SIZE)]
    return LinearArms(theta, contexts="orthant", rewards="bernoulli")


def seed_of(name: str) -> np.random.SeedSequence:
    return np.random.SeedSequence([SEED, zlib.crc32(name.encode())])


# --- coverage -----------------------------------------------------------------------------------------------


def band_designs(failure: float) -> Iterator[tuple[str, Design]]:
    yield "LinUCB", LinUCB(failure=failure)
    for epsilon in (0.1, 1.0, 10.0):
        yield f"LinPriv, epsilon = {epsilon:g}, Laplace, hybrid", LinPriv(epsilon=epsilon, failure=failure)
    yield "LinPriv, epsilon = 1, Laplace, binary", LinPriv(epsilon=1.0, counter="binary", failure=failure)
    for epsilon in (0.1, 1.0, 10.0):
        normal = LinPriv(epsilon=epsilon, delta=DELTA, noise="gaussian", failure=failure)
        yield f"LinPriv, epsilon = {epsilon:g}, normal", normal
    ridge = LinPriv(epsilon=1.0, noise_width="ridge", failure=failure)
    yield "LinPriv, epsilon = 1, Laplace, width of the ridge", ridge
    published = LinPriv(epsilon=1.0, calibration="published", failure=failure)
    yield "LinPriv, epsilon = 1, published", published


def coverage_table(horizon: int, runs: int, failure: float) -> str:
    lines = [
        "| design | runs with a miss | interval | bands | needed |",
        "| --- | --- | --- | --- | --- |",
    ]
    arms = environment()
    for name, design in band_designs(failure):
        worst, covered = np.empty(runs), np.empty(runs)
        for run, log in enumerate(design.logs(arms, horizon, runs, rng=seed_of(name))):
            bands = prediction_bands(log)
            truth = np.einsum("tak,ak->ta", bands.contexts, arms.theta)
            ratio = np.abs(bands.center - truth) / bands.width
            worst[run], covered[run] = ratio.max(), np.mean(ratio <= 1.0)
        missed = int((worst > 1.0).sum())
        low, high = stats.binomtest(missed, runs).proportion_ci(0.95)
        needed = np.quantile(worst, 1.0 - failure)
        lines.append(
            f"| {name} | {missed / runs:.4f} | {low:.4f} to {high:.4f} | {covered.mean():.6f} "
            f"| {needed:.2f} |"
        )
    return "\n".join(lines)


# --- regret ------------------------------------------------------------------------------------------


def regret_designs() -> Iterator[tuple[str, Design]]:
    yield "uniform", Uniform()
    yield "LinUCB", LinUCB()
    for epsilon in EPSILONS:
        yield f"Laplace, hybrid, epsilon = {epsilon:g}", LinPriv(epsilon=epsilon)
    for epsilon in EPSILONS:
        yield f"Laplace, binary, epsilon = {epsilon:g}", LinPriv(epsilon=epsilon, counter="binary")
    for epsilon in EPSILONS:
        yield f"normal, epsilon = {epsilon:g}", LinPriv(epsilon=epsilon, delta=DELTA, noise="gaussian")
    for epsilon in EPSILONS:
        yield (
            f"Laplace, width of the ridge, epsilon = {epsilon:g}",
            LinPriv(epsilon=epsilon, noise_width="ridge"),
        )
    for epsilon in EPSILONS:
        yield f"published, epsilon = {epsilon:g}", LinPriv(epsilon=epsilon, calibration="published")


def regret_runs(horizons: tuple[int, ...], quick: bool) -> dict[str, dict[int, tuple[float, float]]]:
    """Mean regret and its standard error, by design and horizon."""
    arms = environment()
    figures: dict[str, dict[int, tuple[float, float]]] = {}
    for name, design in regret_designs():
        figures[name] = {}
        for horizon in horizons:
            runs = 16 if quick else max(16, min(256, 8_000_000 // horizon))
            regret = design.replicate(arms, horizon, runs, rng=seed_of(f"{name}, {horizon}")).regret
            figures[name][horizon] = float(regret.mean()), float(regret.std(ddof=1) / math.sqrt(runs))
    return figures


def regret_table(figures: dict[str, dict[int, tuple[float, float]]], horizons: tuple[int, ...]) -> str:
    lines = ["| design | " + " | ".join(f"T = {horizon:,}" for horizon in horizons) + " | ratio |"]
    lines.append("| --- |" + " --- |" * (len(horizons) + 1))
    plain = figures["LinUCB"][horizons[-1]][0]
    for name, cells in figures.items():
        shown = [f"{cells[horizon][0]:,.0f} ± {cells[horizon][1]:,.0f}" for horizon in horizons]
        lines.append(f"| {name} | " + " | ".join([*shown, f"{cells[horizons[-1]][0] / plain:,.1f}"]) + " |")
    return "\n".join(lines)


def verdict(figures: dict[str, dict[int, tuple[float, float]]], horizons: tuple[int, ...]) -> str:
    """In words: where a private design does not learn enough to beat uniform choice by a tenth."""
    lines = [
        "The following are not better than uniform choice by at least a tenth (allowing for two standard "
        "errors):",
        "",
    ]
    for horizon in horizons:
        uniform, spread = figures["uniform"][horizon]
        useless: dict[str, list[str]] = {}
        for name, cells in figures.items():
            mean, error = cells[horizon]
            kind, _, epsilon = name.partition(", epsilon = ")
            if epsilon and mean > 0.9 * uniform - 2.0 * math.hypot(error, spread):
                useless.setdefault(kind, []).append(epsilon)
        told = "; ".join(f"{kind}: epsilon = {', '.join(values)}" for kind, values in useless.items())
        lines.append(f"- T = {horizon:,}. {told or 'None'}.")
    return "\n".join(lines)


# --- bias and speed -----------------------------------------------------------------------------------------


def bias_table() -> str:
    n, d, epsilon = 200, 100, 0.1
    rng = np.random.default_rng(seed_of("bias"))
    rest = rng.normal(size=(n, d - 1))
    rest *= math.sqrt(0.75) / np.linalg.norm(rest, axis=1)[:, None]
    X = np.column_stack([np.full(n, 0.5), rest])
    theta = np.eye(d)[0]
    bound = linear_bias_bound(epsilon, X, theta)
    row = (X @ np.linalg.pinv(X))[int(np.argmax(bound.by_context))]
    answered = 1.0 / (1.0 + math.exp(-epsilon))
    draws = rng.random((20_000, n)) < np.where(row > 0.0, answered, 1.0 - answered)
    predicted = draws @ row
    error = predicted.std(ddof=1) / math.sqrt(predicted.size)
    return "\n".join(
        [
            "| bias | bound | (e^epsilon - 1) times absolute weights | published: e^epsilon - 1 |",
            "| --- | --- | --- | --- |",
            f"| {predicted.mean() - 0.5:.4f} ± {error:.4f} | {bound.bound:.4f} "
            f"| {bound.absolute_weights:.4f} | {bound.published:.4f} |",
        ]
    )


def speed_table() -> str:
    figures = bench.speeds()
    names = {
        "draws": "random numbers alone: 25 normal, 1 uniform, 5 Laplace a round",
        "python": f"the same decisions in plain Python (T = {bench.LITERAL:,})",
    }
    lines = ["| what | rounds/s | LinPriv is so many times as fast |", "| --- | --- | --- |"]
    for name, value in figures.items():
        lines.append(f"| {names.get(name, name)} | {value:,.0f} | {figures['LinPriv'] / value:.2f} |")
    return "\n".join(lines)


def main() -> None:
    options = evidence.parser(__doc__).parse_args()
    quick = options.quick
    begin = time.perf_counter()
    failure, horizon, runs = 0.1, 200 if quick else 1000, 40 if quick else 1000
    horizons = (1_000, 10_000) if quick else (1_000, 10_000, 100_000, 1_000_000)
    coverage = coverage_table(horizon, runs, failure)
    figures = regret_runs(horizons, quick)
    page = PAGE.format(
        flags=" --quick" if quick else "",
        seed=SEED,
        today=evidence.stamp(),
        failure=failure,
        keep=1.0 - failure,
        theta=", ".join(f"{value:.3f}" for value in environment().theta[0]),
        delta=DELTA,
        horizon=horizon,
        runs=runs,
        coverage=coverage,
        regret=regret_table(figures, horizons),
        verdict=verdict(figures, horizons),
        bias=bias_table(),
        speed_horizon=bench.HORIZON,
        repeats=REPEATS,
        speed="Left out of a quick run." if quick else speed_table(),
        minutes=(time.perf_counter() - begin) / 60.0,
    )
    evidence.publish(page, __file__, options)
    if quick:
        evidence.hold_cell(page, __file__, "LinUCB", "T = 10,000")


if __name__ == "__main__":
    main()
