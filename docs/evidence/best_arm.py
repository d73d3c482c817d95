"""Schedule, noise, collections and speed of best-arm designs: makes docs/evidence/best_arm.md.

Tables are independent of each other: each has a seed of its own, made from its name.
"""

from __future__ import annotations

import itertools
import math
import time
from pathlib import Path

import evidence
import numpy as np

from adaptinf.designs.best_arm.arm_collections import max_det
from adaptinf.designs.best_arm.fixed_budget import max_det_schedule
from adaptinf.privacy.real_mechanisms import analytic_scale, gaussian_delta
from case_studies.best_arm.setting import DELTA, SEED, designs, environment, seed_of

HERE = Path(__file__).resolve().parent
DESIGNS = ("DP-BAI", "baseline", "DP-OD", "DP-BAI-Gauss", "OD-LinBAI", "sequential halving")
PAGE = """\
# Best-arm identification

Command: `python docs/evidence/best_arm.py{flags}`. Seed: {seed} and the name of the table. Date: {today}.
Running time: {minutes:.1f} minutes on one core.

The experiments of Chen et al. (2024), Section 5 and Appendix E, and their Table 1 are a
[case study](../studies/best_arm.md), `python -m case_studies best_arm`.

## The schedule

The example of Appendix B has d = 16 and K = 10,000. "Equations" is a literal reading of (4) to (7), with
lambda by bisection; "library" is `adaptinf.designs.best_arm.fixed_budget.max_det_schedule`; and "printed" is
the paper's table, which does not follow from the paper's equations ([errata](../errata/dp_bai.md)).

{schedule}

For d from 2 to {largest_d} and K from d to {largest_k:,}, {pairs:,} pairs, lambda (to a relative 1e-9), M_1,
M and all s_p of the library agree with the equations in {agreeing:,}.

## Normal noise

The table shows the standard deviation of the noise of a sum at delta = {delta:g}, and the delta that the
classical calibration actually achieves; for more figures, see [normal noise](gaussian.md).

{gaussian}

## MAX-DET

For {cases:,} normal feature matrices each, the table shows the share of cases in which the exchange algorithm
finds the largest of all determinants, the smallest ratio of the two determinants, and the largest absolute
coefficient of any arm in terms of the collection, minus 1; the tolerance is 1e-6, and the error bound allows
for it.

{collections}

## Speed

The table shows processor times for the experiment of Section 5 (K = 30, d = 2) at epsilon = .1 and T = 500,
on one core.

{speed}
"""


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def gaussian() -> str:
    rows = []
    for epsilon in (0.1, 0.5, 0.9, 1.0, 2.0, 5.0, 10.0, 20.0):
        classical = math.sqrt(2.0 * math.log(1.25 / DELTA)) / epsilon
        analytic = analytic_scale(epsilon, DELTA)
        rows.append(
            [
                f"{epsilon:g}",
                f"{classical:.4f}",
                f"{analytic:.4f}",
                f"{gaussian_delta(epsilon, classical):.2e}",
                f"{gaussian_delta(epsilon, analytic):.6e}",
            ]
        )
    return table(["epsilon", "classical", "analytic", "delta of classical", "delta of analytic"], rows)


def collections(cases: int) -> str:
    rows = []
    for n, d in ((8, 2), (20, 2), (10, 3), (12, 4), (12, 6)):
        rng = np.random.default_rng(seed_of(f"collections {n}, {d}"))
        subsets = np.array(list(itertools.combinations(range(n), d)))
        ratios, coefficients = np.empty(cases), np.empty(cases)
        for case in range(cases):
            vectors = rng.normal(size=(n, d))
            collection = vectors[max_det(vectors)]
            ratios[case] = abs(np.linalg.det(collection)) / np.abs(np.linalg.det(vectors[subsets])).max()
            coefficients[case] = np.abs(np.linalg.solve(collection.T, vectors.T)).max()
        above = f"{max(coefficients.max() - 1.0, 0.0):.1e}"
        rows.append([str(n), str(d), f"{(ratios > 1.0 - 1e-9).mean():.3f}", f"{ratios.min():.3f}", above])
    return table(["arms", "dimension", "share", "smallest ratio", "coefficient above 1"], rows)


def literal_schedule(n_arms: int, dimension: int) -> tuple[float, int, int, list[int]]:
    """Lambda, M_1, M and s_1, ..., s_(M + 1) by equations (4) to (7), all minima over i = 1, 2, ..."""
    quarter = -(-(dimension**2) // 4)
    rest, power = n_arms - quarter, math.log(dimension)
    low, high = 2.0, 2.0 if rest <= 2.0**power else 1e200
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if power * math.log(middle) >= math.log(max(rest, 1)) else (middle, high)
    g, h = [min(n_arms, quarter)], [max(rest, 0)]
    while g[-1] > 1 or h[-1] > 0 or len(g) < 3:
        g.append(-(-g[-1] // 2))
        h.append(math.ceil((h[-1] + 1) / high - 1.0))
    fast = next(i for i in range(1, len(h)) if h[i] == 0)
    phases = fast + next(i for i in range(1, len(g)) if g[i] == 1) - 1
    return high, fast, phases, [g[0] + h[p - 1] if p <= fast else g[p - fast] for p in range(1, phases + 2)]


def schedule() -> str:
    """The example of Appendix B."""
    ratio, fast, phases, sizes = literal_schedule(10_000, 16)
    ours = max_det_schedule(10_000, 16)
    rows = [
        ["lambda", f"{ratio:.4f}", f"{ours.ratio:.4f}", "27.65"],
        ["M_1", str(fast), str(ours.fast_phases), "4"],
        ["M", str(phases), str(ours.phases), "10"],
    ]
    printed = [1000, 423, 77, 64, 32, 16, 8, 4, 2, 1]
    for p in range(len(printed)):
        cells = [str(found[p]) if p < len(found) else "" for found in (sizes, ours.sizes.tolist(), printed)]
        rows.append([f"s_{p + 1}", *cells])
    return table(["", "equations", "library", "printed"], rows)


def schedules(largest_d: int, largest_k: int) -> tuple[int, int]:
    """Pairs of d and K that were compared, and those in which the library agrees with the equations."""
    pairs = agreeing = 0
    for dimension in range(2, largest_d + 1):
        for n_arms in range(max(2, dimension), largest_k + 1):
            ratio, *literal = literal_schedule(n_arms, dimension)
            ours = max_det_schedule(n_arms, dimension)
            same = [ours.fast_phases, ours.phases, ours.sizes.tolist()] == literal
            pairs += 1
            agreeing += same and math.isclose(ours.ratio, ratio, rel_tol=1e-9)
    return pairs, agreeing


def speed(runs: int) -> str:
    env, known, rows = environment(), designs(0.1), []
    for name in DESIGNS:
        design = known[name]
        design.replicate(env, 500, 64, rng=0)
        best = math.inf
        for _ in range(3):
            begin = time.process_time()
            design.replicate(env, 500, runs, rng=0)
            best = min(best, time.process_time() - begin)
        rows.append([name, f"{runs / best:,.0f}"])
    return table(["design", "runs/s"], rows)


def main() -> None:
    options = evidence.parser(__doc__).parse_args()
    quick = options.quick
    begin = time.perf_counter()
    cases = 50 if quick else 1_000
    largest_d, largest_k = (8, 100) if quick else (20, 600)
    pairs, agreeing = schedules(largest_d, largest_k)
    page = PAGE.format(
        schedule=schedule(),
        largest_d=largest_d,
        largest_k=largest_k,
        pairs=pairs,
        agreeing=agreeing,
        flags=" --quick" if quick else "",
        seed=SEED,
        today=evidence.stamp(),
        delta=DELTA,
        gaussian=gaussian(),
        cases=cases,
        collections=collections(cases),
        speed=speed(2_000 if quick else 20_000),
        minutes=(time.perf_counter() - begin) / 60.0,
    )
    evidence.publish(page, __file__, options)
    evidence.hold("share of schedules that are those of the equations", (agreeing / pairs, 0.0), (1.0, 0.0))


if __name__ == "__main__":
    main()
