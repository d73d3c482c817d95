"""DP-ConSE beside ConSE: makes docs/evidence/dp_conse.md.

Regret and estimates where the effects are .3, the guarantee along the number of contexts, and error times
regret along alpha and the number of rounds. The arms were written down once, before anything was measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import evidence
import numpy as np
from scipy import stats

from adaptinf.designs import ConSE, DPConSE, Replications
from adaptinf.designs.contextual.private_conse_kernel import window_ends
from adaptinf.inference.released.effects import released_estimate
from adaptinf.simulation.environments import FiniteContext
from adaptinf.theory import Frontier, difference_in_means, frontier

CONTEXTS = 10
MEANS = [[0.35, 0.65], [0.65, 0.35]] * (CONTEXTS // 2)
ENVIRONMENT = FiniteContext([1.0 / CONTEXTS] * CONTEXTS, MEANS)
EFFECTS = ENVIRONMENT.effects()
EPSILON, ALPHA, HORIZON = 1.0, 0.4, 200_000
PHASES = ("learning", "estimation")
ALPHAS = [round(0.1 * step, 1) for step in range(11)]
HORIZONS = [10**4, 10**5, 10**6]
BEYOND = [10**7, 10**8]
SIZES = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]

PAGE = """\
# DP-ConSE compared with ConSE

Command: `{command}`. Seeds: 1 (ConSE) and 2 (DP-ConSE) for regret and estimates, 3 and 4 for the frontier, 5
for the guarantee. Date: {today}. Each figure is based on {runs:,} runs, by the designs' exact shortcut.

There are ten equally likely contexts, and rewards are 0 or 1, with means (.35, .65) in half of the contexts
and (.65, .35) in the other half, so the gap is always .3. DP-ConSE is the corrected calibration at epsilon =
{epsilon:g} with its defaults, where nothing else is said.

## Regret

For alpha = {alpha:g} and n = {horizon:,}:

{regret}

In the second half, both designs randomise T_min arrivals of each context, and T_min is the same power of the
number of arrivals. The cost of privacy arises in the first half, in which sums are examined only when a
window ends, and not as soon as they are informative.

## Estimates

The table shows errors of the estimated effects for DP-ConSE in the runs above: those of the released estimate
(2 D / N with its correction) and of two that a trusted analyst could compute from the raw log: differences in
means over the randomised arrivals of the second half, and over all of its arrivals. For each context, the
mean error over {runs:,} runs is given as a multiple of its standard error. "Outward" is the error in the
direction of the effect, in which any bias of a ratio would appear.

{bias}

The largest of ten standard normal variables is below {extreme:.2f} in size in 99 of 100 cases. Runs without a
released estimate (a count of at most T_min / 4): {missing}.

## The guarantee by number of contexts

One run for each epsilon and M at n = 20,000; the scales are those in the log's releases.

{guarantee}

`calibration="published"` reports epsilon = inf: see [the errata](../errata/conse.md).

## Error times regret divided by M

The table shows the largest mean squared error of a context's effect, times mean regret, divided by M = 10.
For ConSE and DP-ConSE, the estimate is the difference in means over the randomised arrivals of the second
half; for "released", it is DP-ConSE's own estimate. Standard errors are in parentheses. The largest of ten
estimated errors is biased upwards, by about {upwards:.1%} here.

{frontier}

{highest}

With gaps D and variances v0 and v1, the second half alone gives (v0 + v1) D = .1365, for every alpha and n,
because T_min cancels. The regret r for a context in the first half does not depend on alpha and contributes 2
(v0 + v1) r / T_min, so the product increases with alpha until T_min reaches its floor, which is log n for
ConSE and 10 log(n) / epsilon for DP-ConSE.

## Along n, further out

{beyond}

**For ConSE, the product is bounded.** Its first epoch of 128 log(16 n) randomised arrivals suffices to decide
a context with gap .3, with a regret of r = .15 * 128 log(16 n): at alpha = 1, where T_min = log n, the
product tends to .1365 + .91 * 128 * .15 = 17.6. Convergence is slow, because the convergence of log(16 n) /
log n is slow, and because the arms of a trial with log n arrivals differ in size.

**For DP-ConSE, the product is bounded.** Its first window is fully randomised; it has n / 64 rounds, but at
most 256 M log n, so the regret of a context in it is at most .15 * 256 log n. Later windows double in length,
so a context is decided after at most about four times the number of arrivals that a single window requires,
which is of order log n. At alpha = 1, where T_min = 10 log(n) / epsilon, the product is then at most of order
.1365 + .91
* .15 * 256 / 10 = 3.6, whatever n is. **Without the upper bound on the first window, it would not be
bounded**, except at alpha = 0: a first window of n / 64 rounds makes the regret linear in n, and the product
then increases like n^alpha, or like n / log n at alpha = 1 (last column).
"""


def replicate(design: ConSE | DPConSE, horizon: int, runs: int, seed: int, n_jobs: int) -> Replications:
    return design.replicate(ENVIRONMENT, horizon, runs, rng=seed, n_jobs=n_jobs)


def released(sims: Replications, design: DPConSE) -> np.ndarray:
    """The estimates that DP-ConSE releases, NaN if it releases none."""
    numbers = sims.released
    return released_estimate(
        numbers["contrast_sum"],
        numbers["arrivals"],
        epsilon_count=(1.0 - design.contrast_share) * design.epsilon,
        minimum=numbers["t_min"] / 4.0,
    )


def phase_regret(sims: Replications, phase: str) -> np.ndarray:
    gaps = sims.truth.max(axis=1, keepdims=True) - sims.truth
    return np.einsum("rfa,fa->r", sims.phase_tallies(phase)[..., 0], gaps)


def mean_se(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(values.size))


def regret_table(plain: Replications, private: Replications) -> str:
    lines = ["| design | regret | first half | second half | mean T_min |", "| --- | --- | --- | --- | --- |"]
    for name, sims in (("ConSE", plain), ("DP-ConSE", private)):
        cells = [mean_se(values) for values in (sims.regret, *(phase_regret(sims, p) for p in PHASES))]
        text = " | ".join(f"{mean:,.1f} ({se:.1f})" for mean, se in cells)
        lines.append(f"| {name} | {text} | {sims.outcomes[:, 0].mean():.1f} |")
    (base, base_se), (cost, cost_se) = mean_se(plain.regret), mean_se(private.regret)
    ratio = cost / base
    ratio_se = ratio * math.hypot(base_se / base, cost_se / cost)
    told = f"The ratio is **{ratio:.4f}** (standard error {ratio_se:.4f}); the target is at most 1.5."
    return "\n".join([*lines, "", told])


def all_arrivals(sims: Replications) -> np.ndarray:
    tallies = sims.phase_tallies("estimation")
    means = tallies[..., 1] / tallies[..., 0]
    return means[..., 1] - means[..., 0]


def bias_table(private: Replications, design: DPConSE) -> tuple[str, int]:
    kinds: dict[str, Callable[[Replications], np.ndarray]] = {
        "released": lambda sims: released(sims, design),
        "randomised arrivals": difference_in_means,
        "all arrivals": all_arrivals,
    }
    contexts = " | ".join(str(context) for context in range(CONTEXTS))
    lines = [
        f"| estimate | {contexts} | pooled error | outward error | standard deviation |",
        "| --- |" + " --- |" * (CONTEXTS + 3),
    ]
    missing = 0
    for name, estimate in kinds.items():
        errors = estimate(private) - EFFECTS
        if name == "released":
            missing = int(np.isnan(errors).sum())
        z = [mean / se for mean, se in (mean_se(column[~np.isnan(column)]) for column in errors.T)]
        pooled = mean_se(np.nanmean(errors, axis=1))
        outward = mean_se(np.nanmean(errors * np.sign(EFFECTS), axis=1))
        cells = " | ".join(f"{value:.1f}" for value in z)
        both = " | ".join(f"{mean:.1e} ({mean / se:.1f} se)" for mean, se in (pooled, outward))
        lines.append(f"| {name} | {cells} | {both} | {np.nanstd(errors):.4f} |")
    return "\n".join(lines), missing


def guarantee_table() -> str:
    lines = [
        "| guarantee | for a reward | scale of sums | scale of counts | found at M = |",
        "| --- | --- | --- | --- | --- |",
    ]
    for epsilon in (0.1, 1.0, 4.0):
        found: dict[str, list[str]] = {}
        for size in SIZES:
            environment = FiniteContext([1.0 / size] * size, [[0.35, 0.65]] * size)
            log = DPConSE(epsilon=epsilon, alpha=ALPHA).run(environment, horizon=20_000, rng=5)
            if not log.guarantee.is_pure or not math.isclose(log.guarantee.epsilon, epsilon):
                raise SystemExit(f"not pure epsilon at M = {size}: {log.guarantee}")
            scales = log.releases.groupby("name")["scale"].unique()
            sums, counts = (
                ", ".join(f"{scale:.4g}" for scale in scales[name]) for name in ("contrast_sum", "arrivals")
            )
            row = f"| {log.guarantee} | {log.reward_guarantee} | {sums} | {counts} |"
            found.setdefault(row, []).append(str(size))
        lines += [f"{row} {', '.join(sizes)} |" for row, sizes in found.items()]
    return "\n".join(lines)


def points(alpha: float, horizon: int, runs: int, n_jobs: int) -> dict[str, Frontier]:
    plain = replicate(ConSE(alpha=alpha), horizon, runs, 3, n_jobs)
    design = DPConSE(epsilon=EPSILON, alpha=alpha)
    private = replicate(design, horizon, runs, 4, n_jobs)
    return {
        "ConSE": frontier(plain),
        "DP-ConSE": frontier(private),
        "released": frontier(private, released(private, design)),
    }


def cell(point: Frontier) -> str:
    return f"{point.product:.3f} ({point.product_se:.3f})"


def frontier_table(runs: int, n_jobs: int) -> tuple[str, str]:
    names = ("ConSE", "DP-ConSE", "released")
    head = " | ".join(f"{name}, n = {horizon:,}" for horizon in HORIZONS for name in names)
    lines = [f"| alpha | {head} |", "| --- |" + " --- |" * (len(names) * len(HORIZONS))]
    highest = dict.fromkeys(names, (0.0, 0.0, 0))
    undefined = dict.fromkeys(names, 0)
    for alpha in ALPHAS:
        cells = []
        for horizon in HORIZONS:
            for name, point in points(alpha, horizon, runs, n_jobs).items():
                cells.append(cell(point))
                undefined[name] += int(point.undefined.sum())
                if point.product > highest[name][0]:
                    highest[name] = (point.product, alpha, horizon)
        lines.append(f"| {alpha:g} | {' | '.join(cells)} |")
    estimates = runs * CONTEXTS * len(ALPHAS) * len(HORIZONS)
    sentences = [
        f"- {name}: at most {value:.2f}, first at alpha = {alpha:g}, n = {horizon:,}; "
        f"{undefined[name]:,} of {estimates:,} estimates do not exist and are in no error."
        for name, (value, alpha, horizon) in highest.items()
    ]
    return "\n".join(lines), "\n".join(sentences)


def beyond_table(runs: int, n_jobs: int) -> str:
    lines = [
        "| alpha | n | ConSE | DP-ConSE | its first window | first_window=64 | first_window=n/64 |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for alpha in (0.0, 0.4, 1.0):
        for horizon in [*HORIZONS, *BEYOND]:
            both = points(alpha, horizon, runs, n_jobs)
            window = window_ends(horizon, n_features=CONTEXTS)[0]
            others = [
                DPConSE(epsilon=EPSILON, alpha=alpha, first_window=length)
                for length in (64, math.ceil(horizon / 64))
            ]
            points_of_others = [frontier(replicate(other, horizon, runs, 4, n_jobs)) for other in others]
            cells = [cell(both["ConSE"]), cell(both["DP-ConSE"]), f"{window:,}"]
            cells += [cell(point) for point in points_of_others]
            lines.append(f"| {alpha:g} | {horizon:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = evidence.parser(__doc__)
    parser.add_argument("--n-jobs", type=int, default=1)
    options = parser.parse_args()
    runs = 1_280 if options.quick else 20_000
    design = DPConSE(epsilon=EPSILON, alpha=ALPHA)
    plain = replicate(ConSE(alpha=ALPHA), HORIZON, runs, 1, options.n_jobs)
    private = replicate(design, HORIZON, runs, 2, options.n_jobs)
    bias, missing = bias_table(private, design)
    table, highest = frontier_table(runs, options.n_jobs)
    page = PAGE.format(
        command="python docs/evidence/dp_conse.py" + (" --quick" if options.quick else ""),
        today=evidence.stamp(),
        runs=runs,
        epsilon=EPSILON,
        alpha=ALPHA,
        horizon=HORIZON,
        regret=regret_table(plain, private),
        bias=bias,
        missing=missing,
        extreme=_extreme(),
        guarantee=guarantee_table(),
        upwards=1.54 * math.sqrt(2.0 / runs),
        frontier=table,
        highest=highest,
        beyond=beyond_table(runs, options.n_jobs),
    )
    evidence.publish(page, __file__, options)
    if options.quick:
        evidence.hold_cell(page, __file__, "DP-ConSE", "regret")


def _extreme() -> float:
    return float(stats.norm.ppf(1.0 - 0.5 * (1.0 - 0.99 ** (1.0 / CONTEXTS))))


if __name__ == "__main__":
    main()
