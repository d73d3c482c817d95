"""Thompson sampling: speed beside its draws, and propensities beside theirs. Makes docs/evidence/thompson.md.

    git worktree add --detach /tmp/before a402b76
    python -m venv /tmp/mab && /tmp/mab/bin/pip install mabwiser==2.7.4
    python docs/evidence/thompson.py --before /tmp/before --mabwiser /tmp/mab/bin/python
    python docs/evidence/thompson.py --quick

`--before` is a checkout of adaptinf that makes 100 posterior draws in every round, `--mabwiser` a Python that
has MABWiser; both are timed in processes of their own, in the same run. Without them their columns are empty.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import evidence
import numba
import numpy as np
from scipy import integrate, stats

import adaptinf as ai
from adaptinf.privacy.noise import generator

SEED, BEFORE = 20261127, "a402b76"
COMMAND = "python docs/evidence/thompson.py --before CHECKOUT --mabwiser PYTHON"
ARMS = (2, 5, 20)
PRIORS = ("beta", "normal")
PAST = {"beta": 20_000, "normal": 200_000}
"""Rounds that the earlier code and its process are timed on."""
RUNS, QUICK_RUNS, HORIZON = 1_000_000, 20_000, 60
THETA = (0.35, 0.6)
POSTERIORS, DRAWS = (5, 20, 100, 500, 2_000), 10_000_000
OTHER = """
import sys, time
import numpy as np
{setup}
prior, arms, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
means = np.linspace(0.3, 0.6, arms)
best = float("inf")
for _ in range(3):
    start = time.process_time()
{timed}
    best = min(best, time.process_time() - start)
print(rounds / best)
"""
LIBRARY = OTHER.format(
    setup="import adaptinf as ai",
    timed="""
    if best == float("inf"):
        environment = ai.environments.NormalArms(means)
        if prior == "beta":
            environment = ai.environments.BernoulliArms(means)
        design = ai.designs.Thompson(prior=prior)
        design.replicate(environment, 10, 1, rng=0)
        start = time.process_time()
    design.replicate(environment, 1_000, rounds // 1_000, rng=0)
""",
)
MABWISER = OTHER.format(
    setup="from mabwiser.mab import MAB, LearningPolicy",
    timed="""
    rng = np.random.default_rng(0)
    names = list(range(arms))
    bandit = MAB(names, LearningPolicy.ThompsonSampling(), seed=1)
    bandit.fit(names, [0] * arms)
    for _ in range(rounds):
        arm = bandit.predict()
        bandit.partial_fit([arm], [int(rng.random() < means[arm])])
""",
)


@numba.njit(error_model="numpy")
def beta_loop(rng: np.random.Generator, means: np.ndarray, rounds: int) -> float:
    """Thompson sampling with 0/1 rewards, and nothing else."""
    wins, losses = np.ones(means.size), np.ones(means.size)
    for _ in range(rounds):
        best, highest = 0, -1.0
        for arm in range(means.size):
            draw = rng.beta(wins[arm], losses[arm])
            if draw > highest:
                best, highest = arm, draw
        if rng.random() < means[best]:
            wins[best] += 1.0
        else:
            losses[best] += 1.0
    return wins.sum()


@numba.njit(error_model="numpy")
def normal_loop(rng: np.random.Generator, means: np.ndarray, rounds: int) -> float:
    """The same with normal rewards and posteriors."""
    mean, precision, spread = np.zeros(means.size), np.ones(means.size), np.ones(means.size)
    for _ in range(rounds):
        best, highest = 0, -np.inf
        for arm in range(means.size):
            draw = mean[arm] + spread[arm] * rng.standard_normal()
            if draw > highest:
                best, highest = arm, draw
        reward = means[best] + rng.standard_normal()
        precision[best] += 1.0
        mean[best] += (reward - mean[best]) / precision[best]
        spread[best] = 1.0 / np.sqrt(precision[best])
    return mean.sum()


def rate(call: Callable[[], object], rounds: int) -> float:
    """Rounds in a second of processor time, best of three."""
    times = []
    for _ in range(3):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return rounds / min(times)


def thousands(found: float) -> str:
    """A rate in thousands, to three digits."""
    rounded = float(f"{found:.3g}") / 1_000.0
    return f"{rounded:,.0f}" if rounded >= 100.0 else f"{rounded:.3g}"


def elsewhere(python: str, script: str, path: Path | None, prior: str, arms: int, rounds: int) -> float:
    """The rate that a script prints in another process."""
    place = dict(os.environ) | ({"PYTHONPATH": str(path)} if path else {})
    words = [python, "-c", script, prior, str(arms), str(rounds)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=place, cwd="/")
    return float(done.stdout)


def world(prior: str, arms: int) -> ai.environments.BernoulliArms | ai.environments.NormalArms:
    means = np.linspace(0.3, 0.6, arms)
    return ai.environments.BernoulliArms(means) if prior == "beta" else ai.environments.NormalArms(means)


def speeds(options: object, quick: bool) -> list[str]:
    """A row a prior and number of arms; MABWiser has the Beta prior alone."""
    before, python = getattr(options, "before", None), getattr(options, "mabwiser", None)
    rows = []
    for prior in PRIORS:
        for arms in ARMS[: 2 if quick else 3]:
            runs, means = (20 if quick else 400), np.linspace(0.3, 0.6, arms)
            rounds, design, env = 1_000 * runs, ai.designs.Thompson(prior=prior), world(prior, arms)
            rng, loop = generator(np.random.SeedSequence(0)), beta_loop if prior == "beta" else normal_loop
            loop(rng, means, 10)
            design.replicate(env, 10, 1, rng=0)

            def bare(rng=rng, loop=loop, means=means, runs=runs) -> None:  # type: ignore[no-untyped-def]
                for _ in range(runs):
                    loop(rng, means, 1_000)

            own = rate(lambda d=design, e=env, n=runs: d.replicate(e, 1_000, n, rng=0), rounds)  # type: ignore[misc]
            draws = rate(bare, rounds)
            cells = [prior, f"{arms}", thousands(own), thousands(draws), f"{own / draws:.2f}"]
            old = elsewhere(sys.executable, LIBRARY, before, prior, arms, PAST[prior]) if before else None
            cells += [thousands(old), f"{own / old:.3g}"] if old else ["", ""]
            other = python and prior == "beta"
            cells.append(thousands(elsewhere(python, MABWISER, None, prior, arms, 5_000)) if other else "")
            rows.append(f"| {' | '.join(cells)} |")
    return rows


def propensity_speeds(quick: bool) -> list[str]:
    """Rates where every round's propensities are computed, and where they are kept in a log."""
    rows = []
    for prior, draws in (("normal", None), ("normal", 100), ("beta", 100)):
        for arms in ARMS[: 2 if quick else 3]:
            design, env = ai.designs.Thompson(prior=prior, draws=draws), world(prior, arms)
            runs = 10 if quick else 100 if draws is None else 20
            design.run(env, 10, rng=0)
            loop = rate(
                lambda d=design, e=env, n=runs: d.replicate(e, 1_000, n, rng=0, by_rounds=True),  # type: ignore[misc]
                1_000 * runs,
            )
            log = rate(lambda d=design, e=env, n=runs: d.run(e, 1_000 * n, rng=0), 1_000 * runs)  # type: ignore[misc]
            how = "exact" if draws is None else f"{draws} draws"
            rows.append(f"| {prior}, {how} | {arms} | {thousands(loop)} | {thousands(log)} |")
    return rows


def accuracy(draws: int) -> list[str]:
    """Logged propensities of five arms beside draws from their posteriors, and beside an integral."""
    env = ai.environments.NormalArms([0.0, 0.05, 0.1, 0.15, 0.2])
    log = ai.designs.Thompson(prior="normal").run(env, max(POSTERIORS) + 1, rng=SEED)
    rng, rows = np.random.default_rng(SEED), []
    for t in POSTERIORS:
        action, reward = log.arrays.action[:t], log.arrays.reward[:t]
        pulls = np.bincount(action, minlength=5)
        mean = np.bincount(action, reward, minlength=5) / (1.0 + pulls)
        spread = 1.0 / np.sqrt(1.0 + pulls)
        wins = np.zeros(5)
        for _ in range(10):
            block = mean + spread * rng.standard_normal((draws // 10, 5))
            wins += np.bincount(block.argmax(axis=1), minlength=5)
        p = log.arrays.propensities[t]
        z = np.abs(wins / draws - p) / np.sqrt(p * (1.0 - p) / draws)
        off = np.abs([integral(mean, spread, arm) for arm in range(5)] - p)
        shares = ", ".join(f"{share:.4f}" for share in p)
        rows.append(f"| {t:,} | {shares} | {z.max():.1f} | {off.max():.0e} |")
    return rows


def integral(mean: np.ndarray, spread: np.ndarray, arm: int) -> float:
    """P(arm is the largest), by scipy.integrate.quad."""
    others = np.delete(np.arange(5), arm)

    def density(z: float) -> float:
        x = mean[arm] + spread[arm] * z
        return float(stats.norm.pdf(z) * stats.norm.cdf((x - mean[others]) / spread[others]).prod())

    return float(integrate.quad(density, -10.0, 10.0, epsabs=1e-13, limit=400)[0])


def law(runs: int) -> tuple[str, float]:
    """Pulls of the better of two arms: one draw per arm, rounds with frequencies, and the exact law."""
    exact = ai.audit.exact(ai.designs.Thompson(), HORIZON)
    chance = np.array(
        [
            float(exact.expectation(lambda n1, s1, n0, s0, m=m: n1 == m, THETA[1], THETA[0]))  # type: ignore[misc]
            for m in range(HORIZON + 1)
        ]
    )
    env, design = ai.environments.BernoulliArms(THETA), ai.designs.Thompson()
    pulls = design.replicate(env, HORIZON, runs, rng=SEED).pulls[:, 1]
    kept = chance * runs > 5.0
    expected = runs * chance[kept]
    seen = np.bincount(pulls.astype(int), minlength=HORIZON + 1)[kept]
    pvalue = stats.chi2.sf(np.sum((seen - expected) ** 2 / expected), kept.sum() - 1)
    error = pulls.std() / np.sqrt(runs)
    known = float(exact.expected_pulls(THETA[1], THETA[0])[0])
    return f"| one draw per arm | {pulls.mean():.4f} ± {error:.4f} | {known:.4f} | {pvalue:.2f} |", pvalue


def page(options: object, quick: bool) -> str:
    row, pvalue = law(QUICK_RUNS if quick else RUNS)
    if pvalue < 1e-4:
        raise SystemExit(f"OFF: one draw per arm has another law, p = {pvalue:.1e}")
    draws = DRAWS // 50 if quick else DRAWS
    newline = "\n"
    return f"""# Thompson sampling: one draw per arm, and exact propensities

Command: `{COMMAND}`. Seed: {SEED}. Date: {evidence.stamp()}.

The figures are thousands of rounds per second of processor time on one core, the best of three, in runs of
1,000 rounds with means from .3 to .6; the load of the machine was {os.getloadavg()[0]:.1f} on
{os.cpu_count()} cores ({platform.machine()}). CHECKOUT is adaptinf at {BEFORE}, which makes 100 posterior
draws per arm in every round; PYTHON is an environment with MABWiser 2.7.4, whose `predict` and `partial_fit`
are called once per round.

## Without propensities

The first table is for `replicate` without a floor and without batches. *Bare loop* is a Numba function that
only makes the same draws and updates the posterior. *Before*, the propensities of two normal arms were
computed in closed form, without draws.

| prior | arms | thousands/s | bare loop | share of it | before | times as fast | MABWiser |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
{newline.join(speeds(options, quick))}

## With propensities

The next table is for the loop (`by_rounds=True`), and for a log of all rounds (`run`).

| posterior | arms | loop, thousands/s | log, thousands/s |
| --- | ---: | ---: | ---: |
{newline.join(propensity_speeds(quick))}

Logged propensities of five arms with normal posteriors and means from 0 to .2 are compared with {draws:,}
draws from the posterior of that round (largest deviation in standard errors) and with `scipy.integrate.quad`
(largest difference).

| after round | propensities | draws: largest z | quad |
| ---: | --- | ---: | ---: |
{newline.join(accuracy(draws))}

## The same law

Pulls of the better of two arms in {HORIZON} rounds with 0/1 rewards, theta = {THETA[0]:g} and {THETA[1]:g},
in {QUICK_RUNS if quick else RUNS:,} runs are compared with the exact distribution for 100 draws per round
(`ai.audit.exact`), with a chi-squared test of the whole distribution.

| | mean pulls | exact | p-value |
| --- | ---: | ---: | ---: |
{row}
"""


def main() -> None:
    parser = evidence.parser(__doc__)
    parser.add_argument("--before", type=Path, help=f"a checkout of adaptinf at {BEFORE}")
    parser.add_argument("--mabwiser", help="a Python with MABWiser 2.7.4")
    options = parser.parse_args()
    made = page(options, options.quick)
    evidence.publish(made, __file__, options)
    if options.quick:
        evidence.hold_cell(made, __file__, "one draw per arm", "mean pulls")


if __name__ == "__main__":
    main()
