"""Mixture sequences on adaptive logs: makes docs/evidence/mixtures.md.

Two arms with 0/1 rewards, collected by Thompson sampling with a floor and by UCB. A log
counts as a miss if the sequence of either arm ever excludes the arm's mean, at any round: of the two means'
sequences each may do so with probability alpha.
"""

from __future__ import annotations

import math
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import evidence
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SEED, FULL, QUICK, BLOCK, HORIZON = 20261123, 5_000, 100, 50, 1_000
ALPHA = 0.05
COMMAND = "python docs/evidence/mixtures.py"
METHODS = ("beta-binomial", "gamma-exponential")
RATES = ((0.5, 0.5), (0.1, 0.12))
DESIGNS = ("Thompson", "UCB")


def block(job: tuple[int, int, int, int]) -> Array:
    """Misses and widths of each method and arm in some logs of a cell; shape (methods, runs, arms, 2)."""
    import adaptinf as ai

    kind, rate, part, runs = job
    design = (ai.designs.Thompson(floor=0.05), ai.designs.UCB())[kind]
    means = RATES[rate]
    world = ai.environments.BernoulliArms(list(means))
    found = np.empty((len(METHODS), runs, 2, 2))
    for run in range(runs):
        seed = np.random.SeedSequence(SEED, spawn_key=(kind, rate, part, run))
        log = design.run(world, horizon=HORIZON, rng=seed)
        for place, method in enumerate(METHODS):
            result = ai.ConfidenceSequence(log).fit(method, ALPHA, estimator="sample-mean", stationary=True)
            tracks = result.reference.tracks
            limits = result.conf_int(ALPHA).to_numpy()
            for arm, mean in enumerate(means):
                missed = tracks[arm].log_pvalue(mean) <= math.log(ALPHA)
                found[place, run, arm] = missed, limits[arm, 1] - limits[arm, 0]
    return found


def row_name(kind: int, rate: int) -> str:
    one, two = RATES[rate]
    return f"{DESIGNS[kind]}, {one:g} and {two:g}"


def page(cells: dict[tuple[int, int], Array], runs: int, seconds: float) -> str:
    lines, kept = [], 0
    error = math.sqrt(ALPHA * (1.0 - ALPHA) / runs)
    for (kind, rate), found in cells.items():
        told = []
        for method in found:
            missed = method[:, :, 0].mean(axis=0)
            kept += int(np.all(missed <= ALPHA + 3.0 * error))
            told += [f"{missed.max():.4f}", f"{method[:, :, 1].mean():.3f}"]
        lines.append(f"| {row_name(kind, rate)} | {' | '.join(told)} |")
    heads = " | ".join(f"{name} | width" for name in METHODS)
    table = "\n".join(lines)
    return f"""# Mixture sequences

Command: `{COMMAND}`. Seed: {SEED}. Date: {evidence.stamp()}. {seconds:.0f} s.

There are two arms with 0/1 rewards and {HORIZON:,} rounds; each row is based on {runs:,} logs. The table
shows the share of logs in which the sequence ever excluded an arm's mean (the larger of the two arms'
shares), at alpha = {ALPHA:g}, and the mean widths after the last round. The sequences are for sample means,
with default tuning. The Monte Carlo standard error of a proportion of {ALPHA:g} is {error:.4f}: {kept} of
{len(cells) * len(METHODS)} shares are at most {ALPHA:g} plus three standard errors.

| design and rates | {heads} |
| --- |{" ---: |" * 2 * len(METHODS)}
{table}
"""


def main() -> None:
    parser = evidence.parser(__doc__)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    runs = QUICK if options.quick else FULL
    start = time.perf_counter()
    keys = [(kind, rate) for kind in range(len(DESIGNS)) for rate in range(len(RATES))]
    if options.quick:
        keys = keys[:1]
    jobs = [(*key, part, BLOCK) for key in keys for part in range(runs // BLOCK)]
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        parts = list(pool.map(block, jobs))
    each = runs // BLOCK
    cells = {
        key: np.concatenate(parts[place * each : (place + 1) * each], axis=1)
        for place, key in enumerate(keys)
    }
    text = page(cells, runs, time.perf_counter() - start)
    evidence.publish(text, __file__, options)
    if options.quick:
        evidence.hold_cell(text, __file__, row_name(0, 0), METHODS[0], (runs, FULL))


if __name__ == "__main__":
    main()
