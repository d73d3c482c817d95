"""What max-information corrected tests cost, and where they pay: makes docs/evidence/max_information.md."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from adaptinf.designs import DPBAI, Mixture, PrivateUCB
from adaptinf.designs.base import Design
from adaptinf.inference.alee import alee_offset, alee_weights
from adaptinf.inference.maxinfo import Correction, correction_for
from adaptinf.inference.recommend import recommend
from adaptinf.inference.reference import BinomialReference, StudentReference
from adaptinf.inference.tails import normal_quantile
from adaptinf.simulation.environments import BernoulliArms, NormalArms

HERE = Path(__file__).resolve().parent
SEED = 606
ALPHA = 0.05
NULL, BETTER = 0.5, 0.7
SCALE = 0.25
EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0)
HORIZONS = (100, 400, 1_000)
DESIGNS: dict[str, Callable[[float], Design]] = {
    "private UCB": lambda epsilon: PrivateUCB(epsilon=epsilon),
    "DP-BAI": lambda epsilon: DPBAI(epsilon=epsilon, features=np.eye(2)),
    "mixture of private UCB": lambda epsilon: Mixture(design=PrivateUCB(epsilon=epsilon), exploration=0.2),
}
PAGE = """\
# What max-information corrected tests cost

Command: `python docs/evidence/max_information.py{flags}`. Seed: {seed}. Date: {today}. {runs:,}
replications a row; {minutes:.1f} minutes on one process.

Two arms. Under the null both have mean 0.5, and the mean of the arm that was pulled least is tested against
0.5, at alpha = 0.05, two-sided: rewards of 0 and 1 by exact binomial tests, normal rewards (standard
deviation {scale:g}) by t-tests, which given the actions are exact. The correction covers the choice of the
arm, which reads the actions alone. Under the alternative the first arm's mean is 0.7, and it is the one
that is tested. *naive* takes the p-value as it stands, *corrected* by the max-information of the design's
guarantee for rewards. An arm pulled too rarely for a test does not reject.

*level* is what a p-value has to be at most; *length* the mean length of corrected intervals over that of
the conservative ones of ALEE, by pull counts alone, as `recommend` compares them; *first choice* what
`recommend` puts first for a log of the row. Mixtures give propensities, so that inverse weighting competes.

{table}

## What it shows

{verdict}

![Rejections under the null, and lengths of intervals, by epsilon sqrt T](max_information.png)
"""


class Row(NamedTuple):
    """One cell of the table."""

    design: str
    rewards: str
    epsilon: float
    horizon: int
    level: float
    naive: float
    corrected: float
    power_naive: float
    power_corrected: float
    length: float
    first: str


def environment(rewards: str, means: list[float]) -> Any:
    return BernoulliArms(means) if rewards == "0/1" else NormalArms(means, scale=SCALE)


def least_pulled(tallies: np.ndarray) -> np.ndarray:
    """Arm that was pulled least in each run."""
    return tallies.sum(axis=(1, 2))[:, :, 0].argmin(axis=1)


def log_pvalues(tallies: np.ndarray, rewards: str, arm: np.ndarray) -> np.ndarray:
    """Logs of the p-values of one arm's mean against the null, one a run; 0 without a test."""
    count, total, squares = tallies.sum(axis=(1, 2))[np.arange(len(arm)), arm].T
    if rewards == "0/1":
        found = BinomialReference(total, count).log_pvalues(NULL)
    else:
        some = np.maximum(count, 1.0)
        mean = total / some
        spread = np.maximum(squares - total * mean, 0.0) / np.maximum(count - 1.0, 1.0)
        error = np.where(count > 1.0, np.sqrt(spread / some), np.nan)
        found = StudentReference(mean, error, count - 1.0).log_pvalues(NULL)
    return np.nan_to_num(found, nan=0.0)


def lengths(counts: np.ndarray, horizon: int, level: float) -> float:
    """Mean length of corrected intervals over that of ALEE, from counts of the first arm."""
    offset, some = alee_offset(horizon), counts[counts > 0]
    totals = np.concatenate([[0.0], np.cumsum(alee_weights(int(some.max()), offset))])
    usual = float(normal_quantile(math.log(ALPHA / 2.0)))
    wide = float(normal_quantile(level - math.log(2.0)))
    return float(np.mean(wide / np.sqrt(some)) / np.mean(usual / totals[some.astype(int)]))


def one_row(name: str, rewards: str, epsilon: float, horizon: int, runs: int) -> Row:
    design = DESIGNS[name](epsilon)
    null, better = environment(rewards, [NULL, NULL]), environment(rewards, [BETTER, NULL])
    log = design.run(null, horizon, rng=SEED)
    correction = correction_for(log)
    assert isinstance(correction, Correction)
    level = correction.level(math.log(ALPHA))
    under = design.replicate(null, horizon, runs, rng=SEED)
    p_null = log_pvalues(under.tallies, rewards, least_pulled(under.tallies))
    over = design.replicate(better, horizon, runs, rng=SEED + 1)
    p_better = log_pvalues(over.tallies, rewards, np.zeros(runs, dtype=np.int64))
    usual = math.log(ALPHA)
    return Row(
        name,
        rewards,
        epsilon,
        horizon,
        level,
        float(np.mean(p_null <= usual)),
        float(np.mean(p_null <= level)),
        float(np.mean(p_better <= usual)),
        float(np.mean(p_better <= level)),
        lengths(under.tallies.sum(axis=(1, 2))[:, 0, 0], horizon, level),
        recommend(log).best.verdict.name,
    )


def table(rows: list[Row]) -> str:
    """Markdown table of the rows."""
    names = ("design", "rewards", "epsilon", "T", "epsilon sqrt T", "level")
    names += ("naive", "corrected", "power, naive", "power, corrected", "length", "first choice")
    lines = [f"| {' | '.join(names)} |", "| --- " * len(names) + "|"]
    for row in rows:
        ten = row.level / math.log(10.0)
        level = f"{math.exp(row.level):.1e}" if ten > -300 else f"1e{math.floor(ten)}"
        cells = (row.design, row.rewards, f"{row.epsilon:g}", f"{row.horizon:,}")
        cells += (f"{row.epsilon * math.sqrt(row.horizon):.2f}", level)
        cells += (f"{row.naive:.4f}", f"{row.corrected:.4f}", f"{row.power_naive:.3f}")
        cells += (f"{row.power_corrected:.3f}", f"{row.length:.2f}", row.first)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def verdict(rows: list[Row], runs: int) -> str:
    """The claims, counted."""
    above = sum(
        stats.binomtest(round(r.corrected * runs), runs, ALPHA, "greater").pvalue < 1e-4 for r in rows
    )
    naive = sum(stats.binomtest(round(r.naive * runs), runs, ALPHA, "greater").pvalue < 1e-4 for r in rows)
    first = [r for r in rows if r.first == "sample-mean with its corrected columns"]
    useful = [r.epsilon * math.sqrt(r.horizon) for r in first]
    shorter = [r.epsilon * math.sqrt(r.horizon) for r in rows if r.length <= 1.0]
    longer = [r.epsilon * math.sqrt(r.horizon) for r in rows if r.length > 2.0]
    highest = max(rows, key=lambda r: r.corrected)
    said = [
        f"Corrected tests reject a true null in more than 5% of runs in {above} of {len(rows)} rows "
        f"(binomial tests at 1e-4); the highest rate is {highest.corrected:.4f}. Naive ones do in {naive}.",
        f"Corrected intervals are shorter than ALEE's up to epsilon sqrt T = {max(shorter, default=0):.2f}, "
        f"and more than twice as long from {min(longer, default=math.inf):.2f} on: there the correction "
        "still promises an exact level, and another method wins.",
        f"`recommend` puts corrected sample means first in {len(first)} rows, with epsilon sqrt T up to "
        f"{max(useful, default=0):.2f}.",
    ]
    return "\n".join(f"- {one}" for one in said)


def picture(rows: list[Row], path: Path) -> None:
    """Rejections under the null, and relative lengths, against epsilon times the root of T."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), constrained_layout=True)
    for horizon, marker in zip(HORIZONS, "osv", strict=True):
        mine = [r for r in rows if r.horizon == horizon and r.rewards == "0/1" and r.design == "private UCB"]
        x = [r.epsilon * math.sqrt(r.horizon) for r in mine]
        left.plot(x, [r.naive for r in mine], marker + "--", color="tab:red", label=f"naive, T = {horizon:,}")
        left.plot(
            x,
            [r.corrected for r in mine],
            marker + "-",
            color="tab:blue",
            label=f"corrected, T = {horizon:,}",
        )
        right.plot(x, [r.length for r in mine], marker + "-", color="tab:blue", label=f"T = {horizon:,}")
    left.axhline(ALPHA, color="grey", linewidth=0.8)
    left.set(xscale="log", ylim=(0, None), title="True nulls rejected", ylabel="share of runs")
    right.axhline(1.0, color="grey", linewidth=0.8)
    right.set(xscale="log", yscale="log", title="Corrected intervals", ylabel="length over that of ALEE")
    for axis in (left, right):
        axis.set_xlabel("epsilon sqrt T")
        axis.legend(fontsize=8)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="the committed page; otherwise a quick look")
    parser.add_argument("--output", type=Path, default=HERE / "max_information.md")
    options = parser.parse_args()
    runs = 20_032 if options.full else 640
    began = time.perf_counter()
    rows = [
        one_row(name, rewards, epsilon, horizon, runs)
        for name in DESIGNS
        for rewards in ("0/1", "normal")
        for horizon in HORIZONS
        for epsilon in EPSILONS
    ]
    options.output.write_text(
        PAGE.format(
            flags=" --full" * options.full,
            seed=SEED,
            today=date.today().isoformat(),
            runs=runs,
            minutes=(time.perf_counter() - began) / 60.0,
            scale=SCALE,
            table=table(rows),
            verdict=verdict(rows, runs),
        )
    )
    picture(rows, options.output.with_suffix(".png"))
    print(verdict(rows, runs))


if __name__ == "__main__":
    main()
