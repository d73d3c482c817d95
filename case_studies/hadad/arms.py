"""Arm means and contrasts under Thompson sampling with a falling floor: makes docs/evidence/hadad.md."""

from __future__ import annotations

import argparse
import itertools
import math
import time
from datetime import date
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy import special

from adaptinf.designs import Thompson
from adaptinf.inference.alee import alee_means
from adaptinf.inference.estimates import sample_means
from adaptinf.inference.streams import streamed_means
from adaptinf.simulation.environments import UniformArms
from adaptinf.simulation.replicate import iterate_runs

HERE = Path(__file__).resolve().parent
SEED = 20211
ALPHA = 0.1
DECAY = 0.7
SETTINGS = {"no signal": (1.0, 1.0, 1.0), "low signal": (0.9, 1.0, 1.1), "high signal": (0.5, 1.0, 1.5)}
ESTIMATORS = ("sample mean", "uniform", "sqrt", "two-point", "ALEE")
FIGURE = {
    "no signal": {"uniform": 0.878, "sqrt": 0.874, "two-point": 0.894, "sample mean": 0.790},
    "high signal": {"uniform": 0.812, "sqrt": 0.841, "two-point": 0.877, "sample mean": 0.882},
}
"""90% intervals of the contrast at T = 1,000 in the paper, read off a plot: give or take .003."""
READINGS = {"1/3": (math.sqrt(1.0 / 3.0), 100), "1": (1.0, 100), "estimated": (None, 20)}
"""Noise scale that Thompson sampling believes in, and posterior draws a round; the paper does not say."""
CONTRASTS = ("arm 2 minus arm 1", "arm 2 minus arm 0")
BLOCK = 64
PAGE = """\
# Weighted means under Thompson sampling

Command: `python docs/evidence/hadad.py{flags}`. Seed: {seed}. Date: {today}. {runs:,} replications a row;
{minutes:.1f} minutes on {jobs}.

The setting of Hadad, Hirshberg, Zhan, Wager and Athey (2021): three arms, rewards uniform within 1 of the
arm's mean; Thompson sampling with a normal prior N(0, 1), 5 initial rounds an arm on average, propensities at
least t^-0.7 / 3. Means (1, 1, 1), (.9, 1, 1.1) and (.5, 1, 1.5). Intervals are normal, nominal 90%. The floor
makes propensities at T = 1,000 as small as .0026, at 10,000 as small as .0005.

The noise variance in Thompson's posterior is not stated in what the figures were read from. Rows with 1/3,
the rewards' own, and 1 draw 100 times a round from the posterior. Rows marked "estimated" follow the authors'
published simulation code (repository gsbDBI/adaptive-confidence-intervals): the variance that the arm's
rewards have so far, and 20 draws a round. There the first 15 rounds are dealt out in turn and logged as if
drawn with probability 1/3; here they are drawn with that probability.

The contrast is that of arm 2 minus arm 1, counted from 0 in the order of the means: the best arm minus the
middle one. What the figures were read from leaves room for arm 2 minus arm 0, the best minus the worst, which
that code keeps: it was tried as well, and "What it shows" compares both readings with the plot.

## Coverage of the contrast of arm 2 minus arm 1, the best and the middle arm

In brackets what the paper's plot shows at T = 1,000, give or take .003. Binomial standard errors are at most
{error:.4f}.

{contrast}

## Coverage of the mean of the worst arm

{worst}

## Half-width of the contrast's interval, on average

{width}

## Bias of the mean of the worst arm, in hundredths

{bias}

## What it shows

{verdict}
"""


def one_share(
    means: tuple[float, ...], belief: tuple[float | None, int], horizon: int, start: int, stop: int
) -> np.ndarray:
    """Estimates and standard errors of some replications, shape (runs, estimators, 5, 2).

    The last two axes: arm 0 (worst), arm 2 (best), arm 1, arm 2 minus arm 1, arm 2 minus arm 0; estimate and
    standard error.
    """
    noise_scale, draws = belief
    design = Thompson(
        prior="normal", initial_pulls=5, floor=(1.0 / 3.0, DECAY), noise_scale=noise_scale, draws=draws
    )
    environment = UniformArms([m - 1.0 for m in means], [m + 1.0 for m in means])
    codes = np.arange(3)
    found = np.zeros((stop - start, len(ESTIMATORS), 5, 2))
    for row, run in enumerate(iterate_runs(design, environment, horizon, start, stop, SEED)):
        action = np.asarray(run.record.action, dtype=np.int64)
        every = run.record.propensities
        rounds = (action, run.record.reward, run.record.propensity, every, codes)
        sample = sample_means(action, run.record.reward, 3)
        equations = alee_means(action, run.record.reward, codes)
        fits = {"sample mean": (sample.mean, np.diag(sample.std_error**2))}
        for weights in ("uniform", "sqrt", "two-point"):
            means_ = streamed_means(*rounds, weights=weights, decay=DECAY)
            fits[weights] = (means_.estimate, means_.covariance)
        fits["ALEE"] = (equations.estimate, np.diag(equations.std_error() ** 2))
        for column, name in enumerate(ESTIMATORS):
            estimate, covariance = fits[name]
            found[row, column, :3, 0] = estimate[[0, 2, 1]]
            found[row, column, :3, 1] = np.sqrt(np.diag(covariance))[[0, 2, 1]]
            for place, other in ((3, 1), (4, 0)):
                variance = covariance[other, other] + covariance[2, 2] - 2.0 * covariance[other, 2]
                found[row, column, place] = estimate[2] - estimate[other], math.sqrt(variance)
    return found


def replications(
    means: tuple[float, ...], belief: tuple[float | None, int], horizon: int, runs: int, jobs: int
) -> np.ndarray:
    """All replications of one setting."""
    size = BLOCK * max(1, math.ceil(runs / (BLOCK * 8 * jobs)))
    shares = [(start, min(start + size, runs)) for start in range(0, runs, size)]
    parts = Parallel(n_jobs=jobs)(delayed(one_share)(means, belief, horizon, *share) for share in shares)
    return np.concatenate(parts)


def covered(found: np.ndarray, target: float) -> np.ndarray:
    """Share of intervals that hold the target, by estimator; a missing interval does not."""
    quantile = -special.ndtri(ALPHA / 2.0)
    return np.mean(np.abs(found[..., 0] - target) <= quantile * found[..., 1], axis=0)


def table(rows: dict[tuple[str, str, int], list[str]]) -> str:
    """Markdown table with one row a setting and horizon."""
    lines = [
        f"| means | noise variance | T | {' | '.join(ESTIMATORS)} |",
        "| --- | --- | --- |" + " --- |" * len(ESTIMATORS),
        *(
            f"| {name} | {noise} | {horizon:,} | {' | '.join(cells)} |"
            for (name, noise, horizon), cells in rows.items()
        ),
    ]
    return "\n".join(lines)


def judged(figures: dict[tuple[str, str, int], np.ndarray], noise: str, runs: int) -> str:
    """How far one reading of the noise variance is from the paper's figures, for both contrasts."""
    allowed = 0.003 + 3.0 * math.sqrt(0.16 / runs)
    said = []
    for place, contrast in enumerate(CONTRASTS):
        differences = [
            figures[name, noise, 1_000][place, ESTIMATORS.index(kind)] - value
            for name, row in FIGURE.items()
            for kind, value in row.items()
        ]
        near = sum(abs(d) <= allowed for d in differences)
        said.append(
            f"of {contrast}, {near} of {len(differences)} figures are within {allowed:.3f} of the paper's; "
            f"the largest distance is {max(differences, key=abs):+.3f}"
        )
    stable = figures["high signal", noise, 1_000][0, 3]
    return (
        f"- Noise variance {noise} (three standard errors and the reading of the plot are allowed for): "
        f"{'; '.join(said)}. Two-point weights cover {stable:.3f} of arm 2 minus arm 1 with high signal: "
        "stabilised, not exact."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="the committed page; otherwise a quick look")
    parser.add_argument("--long", action="store_true", help="also T = 10,000, ten times as slow")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path, default=HERE / "hadad.md")
    options = parser.parse_args()
    runs = 6_000 if options.full else 640
    began = time.perf_counter()
    contrast, worst, width, bias = ({} for _ in range(4))
    figures = {}
    horizons = (1_000, 10_000) if options.long else (1_000,)
    for horizon, noise, (name, means) in itertools.product(horizons, READINGS, SETTINGS.items()):
        found = replications(means, READINGS[noise], horizon, runs, options.jobs)
        key = (name, noise, horizon)
        share = covered(found[:, :, 3], means[2] - means[1])
        figures[key] = np.stack((share, covered(found[:, :, 4], means[2] - means[0])))
        shown = FIGURE.get(name, {}) if horizon == 1_000 else {}
        contrast[key] = [
            f"{x:.3f}" + (f" ({shown[kind]:.3f})" if kind in shown else "")
            for kind, x in zip(ESTIMATORS, share, strict=True)
        ]
        worst[key] = [f"{x:.3f}" for x in covered(found[:, :, 0], means[0])]
        half = -special.ndtri(ALPHA / 2.0) * np.nanmean(found[:, :, 3, 1], axis=0)
        width[key] = [f"{x:.3f}" for x in half]
        error = 100.0 * np.nanstd(found[:, :, 0, 0], axis=0) / math.sqrt(runs)
        shift = 100.0 * (np.nanmean(found[:, :, 0, 0], axis=0) - means[0])
        bias[key] = [f"{x:.1f} ± {e:.1f}" for x, e in zip(shift, error, strict=True)]
        print(key, contrast[key], flush=True)
    verdict = "\n".join(judged(figures, noise, runs) for noise in READINGS)
    options.output.write_text(
        PAGE.format(
            flags=" --full" * options.full + " --long" * options.long,
            seed=SEED,
            today=date.today().isoformat(),
            runs=runs,
            minutes=(time.perf_counter() - began) / 60.0,
            jobs=f"{options.jobs} processes" if options.jobs > 1 else "one process",
            error=math.sqrt(0.25 * 0.75 / runs),
            contrast=table(contrast),
            worst=table(worst),
            width=table(width),
            bias=table(bias),
            verdict=verdict,
        )
    )
    print(verdict)


if __name__ == "__main__":
    main()
