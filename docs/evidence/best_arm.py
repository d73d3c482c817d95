"""Best-arm identification, private and not: makes docs/evidence/best_arm.md.

Cells are independent of each other: each has a seed of its own, made from its name.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
import zlib
from datetime import date
from pathlib import Path

import numpy as np

from adaptinf.designs.base import Design
from adaptinf.designs.best_arm import DPBAI, DPBAIGauss
from adaptinf.designs.best_arm_halving import SequentialHalving
from adaptinf.designs.best_arm_optimal import DPOD, ODLinBAI
from adaptinf.designs.max_det import max_det
from adaptinf.errors import ParameterError
from adaptinf.privacy.gaussian import analytic_scale, gaussian_delta
from adaptinf.simulation.environments import UniformArms
from adaptinf.theory.best_arm import dp_bai_error, hardness
from adaptinf.theory.best_arm_schedule import max_det_schedule

HERE = Path(__file__).resolve().parent
SEED = 2024
THETA = np.array([0.045, 0.5])
DELTA = 1e-5
PAGE = """\
# Best-arm identification

Command: `python docs/evidence/best_arm.py{flags}`. Seed: {seed} and the name of the cell. Date: {today}.
Running time: {minutes:.1f} minutes on one core. {trials:,} trials a cell: standard
errors of at most {error:.3f}.

## The experiment of Chen et al. (2024), Section 5

K = 30, d = 2, theta = (.045, .5), a_1 = (0, 1), a_2 = (0, .9), a_3 = (10, 0), a_i = (1, w_i) with w_i
uniform on [0, .8], drawn once; rewards uniform on [0, 2 mu_i]. Hardness at epsilon = .1: H_BAI = {bai:,.0f},
H_pri = {privacy:,.0f}. Share of trials that name arm 1, at epsilon = .1:

{by_budget}

"-": the budget leaves less than one pull of an arm in some round. The same at T = 200:

{by_epsilon}

{verdict} The bound of `adaptinf.theory` on the error at epsilon = .1 falls below .05 at
T = {informative:,} (a power of 2).

## Appendix E: two arms

a_1 = (1, 0), a_2 = (0, y), means .55 and .5, rewards uniform on [0, 2 mu]. These leave [0, 1], as mu_1 > .5:
they are divided by 1.1, and epsilon is that of the guarantee. The noise that the text asks for, at its
nominal epsilon and without dividing, guarantees 1.1 epsilon; it is the column "as printed".

{appendix}

## The schedule

d = 16, K = 10,000, the example of Appendix B. "Equations" is a literal reading of (4) to (7), with lambda by
bisection; "library" is `adaptinf.theory.best_arm_schedule.max_det_schedule`; "printed" the paper's table,
which does not follow from its equations ([errata](../errata/dp_bai.md)).

{schedule}

For d from 2 to {largest_d} and K from d to {largest_k:,}, {pairs:,} pairs, lambda (to a relative 1e-9), M_1,
M and all s_p of the library are those of the equations in {agreeing:,}.

## Normal noise

Standard deviation of the noise of a sum at delta = {delta:g}, and the delta that the classical one
really gives; more of it [here](gaussian.md).

{gaussian}

## MAX-DET

Share of cases in which exchange finds the largest determinant of all, {cases:,} normal feature matrices each,
the smallest ratio of the two, and the largest coefficient, in absolute value, of any arm in terms of the
collection, less 1: the tolerance is 1e-6, and the error bound allows for it.

{collections}

## Speed

The experiment above, T = 500, one core, processor time.

{speed}
"""


def seed_of(name: str) -> np.random.SeedSequence:
    return np.random.SeedSequence([SEED, zlib.crc32(name.encode())])


def features() -> np.ndarray:
    shares = np.random.default_rng(seed_of("features")).uniform(0.0, 0.8, 27)
    return np.vstack([[[0.0, 1.0], [0.0, 0.9], [10.0, 0.0]], np.column_stack([np.ones(27), shares])])


def environment() -> UniformArms:
    return UniformArms(np.zeros(30), 2.0 * features() @ THETA)


def designs(epsilon: float) -> dict[str, Design]:
    rows = features()
    return {
        "DP-BAI": DPBAI(epsilon=epsilon, features=rows),
        "baseline": DPBAI(epsilon=epsilon, features=rows, max_det=False),
        "DP-OD": DPOD(epsilon=epsilon, features=rows),
        "DP-BAI-Gauss": DPBAIGauss(epsilon=epsilon, delta=DELTA, features=rows),
        "OD-LinBAI": ODLinBAI(features=rows),
        "sequential halving": SequentialHalving(),
    }


def share(name: str, design: Design, env: UniformArms, horizon: int, trials: int) -> float:
    """Share of trials that name the first arm, NaN where the budget is too small."""
    try:
        return float((design.replicate(env, horizon, trials, rng=seed_of(name)).recommended == 0).mean())
    except ParameterError:
        return math.nan


def shown(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def experiment(trials: int) -> tuple[str, str, str]:
    env = environment()
    rows, at = [], {}
    for horizon in range(50, 501, 50):
        for name, design in designs(0.1).items():
            at[name, horizon] = share(f"{name}, T = {horizon}", design, env, horizon, trials)
        rows.append([str(horizon), *(shown(at[name, horizon]) for name in designs(0.1))])
    by_budget = table(["T", *designs(0.1)], rows)
    rows, by = [], {}
    for tenth in range(1, 20, 2):
        epsilon = tenth / 10.0
        for name, design in designs(epsilon).items():
            by[name, tenth] = share(f"{name}, epsilon = {epsilon:g}", design, env, 200, trials)
        rows.append([f"{epsilon:g}", *(shown(by[name, tenth]) for name in designs(0.1))])
    by_epsilon = table(["epsilon", *designs(0.1)], rows)
    ordered = [
        horizon
        for horizon in range(50, 501, 50)
        if at["DP-BAI", horizon] > max(at["DP-OD", horizon], at["baseline", horizon])
    ]
    distant = by["OD-LinBAI", 19] - by["DP-BAI", 19]
    verdict = (
        f"At epsilon = .1 DP-BAI is above both DP-OD and the baseline at {len(ordered)} of 10 budgets. At "
        f"epsilon = 1.9 and T = 200 it is {distant:.3f} below OD-LinBAI."
    )
    return by_budget, by_epsilon, verdict


def appendix(trials: int) -> str:
    env = UniformArms([0.0, 0.0], [1.0, 1.0 / 1.1])
    rows = []
    for horizon, epsilon in itertools.product((250, 500), (0.2, 0.4)):
        for ratio in (1, 4, 7, 10, 19, 28):
            arms = [[1.0, 0.0], [0.0, float(ratio)]]
            cells = [
                share(
                    f"{horizon}, {epsilon}, {ratio}, {factor}, {kind.__name__}", design, env, horizon, trials
                )
                for kind in (DPBAI, DPOD)
                for factor in (1.0, 1.1)
                for design in [kind(epsilon=factor * epsilon, features=arms)]
            ]
            rows.append([str(horizon), f"{epsilon:g}", str(ratio), *map(shown, cells)])
    return table(["T", "epsilon", "y", "DP-BAI", "DP-BAI as printed", "DP-OD", "DP-OD as printed"], rows)


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
    env, rows = environment(), []
    for name, design in designs(0.1).items():
        design.replicate(env, 500, 64, rng=0)
        best = math.inf
        for _ in range(3):
            begin = time.process_time()
            design.replicate(env, 500, runs, rng=0)
            best = min(best, time.process_time() - begin)
        rows.append([name, f"{runs / best:,.0f}"])
    return table(["design", "runs/s"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few trials; printed, not kept")
    quick = parser.parse_args().quick
    begin = time.perf_counter()
    trials, cases = (200, 50) if quick else (1_000, 1_000)
    by_budget, by_epsilon, verdict = experiment(trials)
    hard = hardness(features(), THETA, 0.1)
    informative = 512
    while dp_bai_error(features(), THETA, informative, 0.1) > 0.05:
        informative *= 2
    largest_d, largest_k = (8, 100) if quick else (20, 600)
    pairs, agreeing = schedules(largest_d, largest_k)
    page = PAGE.format(
        schedule=schedule(),
        largest_d=largest_d,
        largest_k=largest_k,
        pairs=pairs,
        agreeing=agreeing,
        informative=informative,
        flags=" --quick" if quick else "",
        seed=SEED,
        today=date.today().isoformat(),
        trials=trials,
        error=0.5 / math.sqrt(trials),
        bai=hard.bai,
        privacy=hard.privacy,
        by_budget=by_budget,
        by_epsilon=by_epsilon,
        verdict=verdict,
        appendix=appendix(trials),
        delta=DELTA,
        gaussian=gaussian(),
        cases=cases,
        collections=collections(cases),
        speed=speed(2_000 if quick else 20_000),
        minutes=(time.perf_counter() - begin) / 60.0,
    )
    if quick:
        print(page)
    else:
        (HERE / "best_arm.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
