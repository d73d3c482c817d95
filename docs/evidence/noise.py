"""What the noise of mechanisms and counters is, in both backends: makes docs/evidence/noise.md.

The simulation backend has a seed; the release backend has none, so its columns change from run to run.
"""

from __future__ import annotations

import itertools
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import evidence
import numpy as np
from scipy import stats

from adaptinf.privacy import (
    Counter,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    SparseVector,
    TruncatedLaplace,
    gaussian_delta,
)

TESTS = Path(__file__).resolve().parents[2] / "tests"
sys.path.append(str(TESTS / "unit" / "privacy"))

import test_counter_objects as trees  # noqa: E402
import test_sparse_vector as vectors  # noqa: E402

SEED = 5_150
COMMAND = "python docs/evidence/noise.py"
COUNTS = (1, 3, 7, 8, 13, 16)
NORMS = ((2, 1), (5, 7), (20, 13), (64, 13), (200, 7))
"""Dimensions and counts of the table of norms."""


@dataclass(frozen=True)
class Size:
    """How much is drawn."""

    simulated: int
    released: int
    counters: int
    runs: int


FULL = Size(simulated=2_000_000, released=200_000, counters=20_000, runs=6_000)
QUICK = Size(simulated=100_000, released=10_000, counters=2_000, runs=500)

PAGE = """\
# The distribution of the noise

Command: `{command}`. Seed of the simulations: {seed}; releases have none. Date: {today}.

Stated figures are computed by `variance`, `quantile`, `stopping_law` and similar functions. Measured figures
are based on {simulated:,} draws of the simulation backend (seedable, not private) and {released:,} of the
release backend (OpenDP's integers on the grid of 2^20 units). The number in parentheses is one standard
error, in units of the last digit shown. p is the p-value for the whole distribution, by a Kolmogorov-Smirnov
test for real numbers and a chi-square test for whole numbers. Within a table, p-values should look uniform.

## Mechanisms

{mechanisms}

## Sparse vector

The statistics are -4, 1, .5 and 3, the thresholds are 1, 3, 0 and 2, epsilon and the sensitivity are 1, and
the share is .4; the table shows the probabilities of stopping at each statistic and of never stopping, from
{svt_runs:,} runs.

{svt}

## Counters

The table shows the noise of a coordinate at epsilon = .5 and sensitivity 1 (horizon 16 if one is needed;
normal noise with delta = 1e-5), from {counters:,} coordinates of one counter of vectors, each of which is a
separate counter. With so many coordinates, allowing for the rounding of each to the grid makes the release
noise wider: by {counters:,} / 2^20 (Laplace) or by the square root of {counters:,} divided by 2^20 (normal).

{counter_table}

## Norms of noise vectors

`norm_bound` is examined for a hybrid counter at epsilon = 1 whose items change one coordinate at a time
(sensitivity 1), at probability .95, over {norm_runs:,} simulated noise vectors: the share beyond the bound
should be at most .05. The last column shows the union bound, sqrt(d) times the two-sided quantile at .05 / d.

{norms}

## Exact privacy losses

The following figures are computed rather than simulated: the largest log ratio of probabilities or densities
between neighbours, at a nominal epsilon of 1. For counters, the ratio is that of all sums up to the horizon
together. "Half the noise" is the result of the same computation for scales divided by 2.

{losses}

## Speed

{speed}
"""


def measured(value: float, error: float) -> str:
    """A figure with its standard error in parentheses, two digits of it."""
    digits = max(0, 1 - math.floor(math.log10(error))) if error > 0 else 3
    shown = error * 10**digits if digits else error
    return f"{value:.{digits}f}({shown:.0f})"


def law_columns(noise: np.ndarray, center: float, variance: float, high: float, p_value: float) -> str:
    """Measured variance, share beyond a stated quantile, and the p-value of the law."""
    squares = (noise - center) ** 2
    error = squares.std() / math.sqrt(noise.size)
    share = float(np.mean(noise > high))
    spread = math.sqrt(max(share * (1 - share), 1e-12) / noise.size)
    ratio = measured(squares.mean() / variance, error / variance)
    return f"{ratio} | {measured(100 * share, 100 * spread)} | {p_value:.3f}"


def chi_square(counts: np.ndarray, probabilities: np.ndarray) -> float:
    """P-value of counts of cells, those with small expectations pooled."""
    expected = probabilities * counts.sum()
    large = expected >= 10.0
    seen = np.append(counts[large], counts[~large].sum())
    mean = np.append(expected[large], counts.sum() - expected[large].sum())
    return float(stats.chi2.sf(np.sum((seen - mean) ** 2 / np.maximum(mean, 1e-9)), large.sum()))


def source(backend: str, key: int) -> dict[str, Any]:
    rng = np.random.default_rng([SEED, key]) if backend == "simulation" else None
    return {"backend": backend, "rng": rng}


def mechanism_table(size: Size) -> str:
    lines = [
        "| mechanism | scale | variance | 99% quantile | backend | measured / stated variance "
        "| % beyond the quantile (stated) | p |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    cases: list[tuple[str, Any, float]] = [
        ("Laplace, epsilon .5, sensitivity 3", Laplace(epsilon=0.5, sensitivity=3.0), 0.0),
        ("Gaussian, epsilon .5, delta 1e-5", Gaussian(epsilon=0.5, delta=1e-5), 0.0),
        ("Gaussian, classical", Gaussian(epsilon=0.5, delta=1e-5, calibration="classical"), 0.0),
        ("discrete Laplace, epsilon .2", DiscreteLaplace(epsilon=0.2), 0.0),
        ("discrete Laplace, epsilon 2", DiscreteLaplace(epsilon=2.0), 0.0),
        ("Lap+ at 0, epsilon .5", TruncatedLaplace(epsilon=0.5), 0.0),
        ("Lap+ at 7, epsilon .5", TruncatedLaplace(epsilon=0.5), 7.0),
        ("Lap+ at 7, published", TruncatedLaplace(epsilon=0.5, calibration="published"), 7.0),
    ]
    for key, (name, mechanism, at) in enumerate(cases):
        truncated = isinstance(mechanism, TruncatedLaplace)
        if truncated:
            center, variance = mechanism.moments(at)
            high = float(mechanism.quantile(0.99, at))
            stated = 100 * float(mechanism.tail(high, at))
        else:
            center, variance, high = 0.0, mechanism.variance, float(mechanism.quantile(0.99))
            stated = 100 * float(mechanism.tail(high))
        for backend, draws in (("simulation", size.simulated), ("release", size.released)):
            grid = {} if isinstance(mechanism, DiscreteLaplace | TruncatedLaplace) else {"on_grid": True}
            noise = mechanism.release(np.full(draws, at), **source(backend, key), **grid)
            if noise.dtype == np.int64:
                lowest = int(noise.min())
                cells = np.arange(lowest, int(noise.max()) + 1)
                law = mechanism.probability(cells, at) if truncated else mechanism.probability(cells)
                p_value = chi_square(np.bincount(noise - lowest), law)
            else:
                p_value = stats.kstest(noise, lambda x, m=mechanism: 1.0 - m.tail(x)).pvalue
            columns = law_columns(noise, center, variance, high, p_value).split(" | ")
            columns[1] += f" ({stated:.3f})"
            lines.append(
                f"| {name} | {mechanism.scale:.4f} | {variance:.4f} | {high:.4f} | {backend} | "
                + " | ".join(columns)
                + " |"
            )
    return "\n".join(lines)


def sparse_vector_table(size: Size) -> tuple[str, int]:
    mechanism = SparseVector(epsilon=1.0, threshold_share=0.4)
    values, limits = [-4.0, 1.0, 0.5, 3.0], [1.0, 3.0, 0.0, 2.0]
    law = mechanism.stopping_law(values, limits)
    lines = [
        "| | first | second | third | fourth | never | p |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines.append("| stated | " + " | ".join(f"{p:.4f}" for p in law) + " | |")
    for backend in ("simulation", "release"):
        options = source(backend, 100)
        counts = np.zeros(5)
        for _ in range(size.runs):
            answers = mechanism.release(values, threshold=limits, **options)
            counts[answers.size - 1 if answers[-1] else 4] += 1
        shares = counts / size.runs
        shown = [measured(p, math.sqrt(max(p * (1 - p), 1e-9) / size.runs)) for p in shares]
        lines.append(f"| {backend} | " + " | ".join(shown) + f" | {chi_square(counts, law):.3f} |")
    return "\n".join(lines), size.runs


def counter_table(size: Size) -> str:
    lines = [
        "| counter | count | variance | 99% quantile | backend | measured / stated variance "
        "| % beyond the quantile | p |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    normal = {"mechanism": "binary", "horizon": 16, "noise": "gaussian", "delta": 1e-5}
    cases: list[tuple[str, dict[str, Any]]] = [
        ("logarithmic", {"mechanism": "logarithmic"}),
        ("binary", {"mechanism": "binary", "horizon": 16}),
        ("hybrid", {"mechanism": "hybrid"}),
        ("binary, normal", normal),
    ]
    for key, (name, options) in enumerate(cases):
        kept: dict[tuple[str, int], np.ndarray] = {}
        counters = {}
        for backend in ("simulation", "release"):
            counters[backend] = Counter(
                epsilon=0.5,
                sensitivity=1.0,
                dimension=size.counters,
                **options,
                **source(backend, 200 + key),
            )
            for count in range(1, max(COUNTS) + 1):
                # items of 0: what is put out is noise
                kept[backend, count] = counters[backend].add(np.zeros(size.counters))
        for count, (backend, counter) in itertools.product(COUNTS, counters.items()):
            noise, cells = kept[backend, count], np.linspace(0.01, 0.99, 99)
            variance, high = counter.noise_variance(count), float(counter.noise_quantile(0.99, count))
            found = np.bincount(np.searchsorted(counter.noise_quantile(cells, count), noise), minlength=100)
            columns = law_columns(noise, 0.0, variance, high, chi_square(found, np.full(100, 0.01)))
            lines.append(f"| {name} | {count} | {variance:.2f} | {high:.3f} | {backend} | {columns} |")
    return "\n".join(lines)


def norms_table(size: Size) -> tuple[str, int]:
    lines = [
        "| coordinates | count | bound | share beyond | simulated 95% quantile | union bound |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    runs = 10 * size.runs
    rng = np.random.default_rng([SEED, 300])
    for dimension, count in NORMS:
        counter = Counter(epsilon=1.0, dimension=dimension, sensitivity=1.0)
        bound = counter.norm_bound(count, 0.95)
        union = math.sqrt(dimension) * counter.noise_quantile(1 - 0.025 / dimension, count)
        squares = np.zeros(runs)
        for _ in range(dimension):
            many = Counter(epsilon=1.0, dimension=runs, sensitivity=1.0, rng=rng)
            for _ in range(count):
                noise = many.add(np.zeros(runs))
            squares += noise**2
        norms = np.sqrt(squares)
        share = float(np.mean(norms > bound))
        shown = measured(share, math.sqrt(share * (1 - share) / runs))
        quantile = np.quantile(norms, 0.95)
        lines.append(f"| {dimension} | {count} | {bound:.2f} | {shown} | {quantile:.2f} | {union:.2f} |")
    return "\n".join(lines), runs


def losses_table() -> str:
    lines = ["| what | exact loss | half the noise |", "| --- | --- | --- |"]
    k = np.arange(-40, 41)

    def discrete(epsilon: float) -> float:
        law = DiscreteLaplace(epsilon=epsilon).probability
        return float(np.abs(np.log(law(k) / law(k - 1))).max())

    def truncated(mechanism: TruncatedLaplace) -> float:
        n = np.arange(60)
        laws = [np.log(mechanism.probability(n, center)) for center in range(30)]
        return float(max(np.abs(a - b).max() for a, b in itertools.pairwise(laws)))

    def stopping(mechanism: SparseVector) -> float:
        many = np.zeros(400)
        first = mechanism.stopping_law(np.append(many, -30.0))
        second = mechanism.stopping_law(np.append(many + 1.0, -31.0))
        return float(abs(math.log(first[400] / second[400])))

    lines.append(f"| discrete Laplace | {discrete(1.0):.9f} | {discrete(2.0):.4f} |")
    for calibration in ("corrected", "published"):
        mechanism = TruncatedLaplace(epsilon=1.0, calibration=calibration)
        other = TruncatedLaplace(epsilon=2 * mechanism.rate, calibration="published")
        half = TruncatedLaplace(epsilon=2 * other.epsilon, calibration="published")
        lines.append(
            f"| Lap+ from 0 on, {calibration} (scale {mechanism.scale:.4f}) "
            f"| {truncated(mechanism):.9f} | {truncated(half):.4f} |"
        )
    lines.append(
        f"| sparse vector, 401 questions | {stopping(SparseVector(epsilon=1.0)):.9f} "
        f"| {stopping(vectors.Faulty(epsilon=1.0)):.4f} (of the statistics) |"
    )
    for name in trees.MECHANISMS:
        for horizon in (8, 32):
            loss = trees.exact_loss(name, horizon)
            lines.append(f"| {name} counter, horizon {horizon} | {loss:.9f} | {2 * loss:.4f} |")
    mechanism = Gaussian(epsilon=1.0, delta=1e-5)
    exact, half_noise = (gaussian_delta(1.0, mechanism.scale / factor) for factor in (1.0, 2.0))
    lines.append(f"| Gaussian, delta 1e-5: delta | {exact:.9e} | {half_noise:.4f} |")
    return "\n".join(lines)


def speed_table() -> str:
    def per_call(work: Callable[[], object], calls: int) -> float:
        start = time.perf_counter()
        work()
        return 1e6 * (time.perf_counter() - start) / calls

    def additions(counter: Counter, items: int) -> Callable[[], object]:
        return lambda: [counter.add(0.5) for _ in range(items)]

    lines = ["| | simulation, microseconds | release, microseconds |", "| --- | --- | --- |"]
    for name, mechanism in (
        ("Laplace", Laplace(epsilon=1.0)),
        ("Gaussian", Gaussian(epsilon=1.0, delta=1e-5)),
    ):
        times = [
            per_call(lambda m=mechanism, b=backend, n=draws: m.release(np.zeros(n), backend=b), draws)
            for backend, draws in (("simulation", 1_000_000), ("release", 20_000))
        ]
        lines.append(f"| a {name} draw in an array | {times[0]:.3f} | {times[1]:.1f} |")
    times = [
        per_call(additions(Counter(epsilon=1.0, backend=backend), items), items)
        for backend, items in (("simulation", 20_000), ("release", 1_000))
    ]
    lines.append(f"| an addition to a hybrid Counter | {times[0]:.0f} | {times[1]:.0f} |")
    return "\n".join(lines)


def main() -> None:
    options = evidence.parser(__doc__).parse_args()
    size = QUICK if options.quick else FULL
    svt, svt_runs = sparse_vector_table(size)
    norms, norm_runs = norms_table(size)
    page = PAGE.format(
        command=COMMAND + (" --quick" if options.quick else ""),
        seed=SEED,
        today=evidence.stamp(),
        simulated=size.simulated,
        released=size.released,
        counters=size.counters,
        mechanisms=mechanism_table(size),
        svt=svt,
        svt_runs=svt_runs,
        counter_table=counter_table(size),
        norms=norms,
        norm_runs=norm_runs,
        losses=losses_table(),
        speed=speed_table(),
    )
    evidence.publish(page, __file__, options)
    if options.quick:
        row = "Laplace, epsilon .5, sensitivity 3"
        evidence.hold_cell(page, __file__, row, "measured / stated variance")


if __name__ == "__main__":
    main()
