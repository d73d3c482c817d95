"""Simulated bias against the true one, and the sizes of a log's diagnostics: makes docs/evidence/bias.md."""

from __future__ import annotations

import math
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import evidence
import numpy as np

from adaptinf.audit.rerun.simulated_bias import conditional_bias, simulate_bias
from adaptinf.designs import UCB, DPConSE, EpsilonGreedy, PrivateUCB, Thompson
from adaptinf.designs.base import Design
from adaptinf.errors import AdaptinfWarning
from adaptinf.inference.diagnostics.diagnosis_results import AGAINST
from adaptinf.inference.diagnostics.log_checks import diagnose
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.simulation.environments import BernoulliArms, Environment, FiniteContext, Tableau

SEED = 60_041
COMMAND = "python docs/evidence/bias.py"


@dataclass(frozen=True)
class Size:
    """How much is run."""

    runs: int
    truth_runs: int
    logs: int
    log_runs: int
    diagnoses: int
    powers: int


FULL = Size(20_000, 100_000, 150, 400, 2_000, 300)
QUICK = Size(1_000, 4_000, 2, 50, 20, 4)


@dataclass(frozen=True)
class Case:
    """A design in a world whose means are known."""

    name: str
    design: Design
    env: Environment
    horizon: int


CASES = (
    Case("epsilon-greedy, exploration .1", EpsilonGreedy(exploration=0.1), BernoulliArms([0.4, 0.6]), 50),
    Case("epsilon-greedy, equal arms", EpsilonGreedy(exploration=0.1), BernoulliArms([0.5, 0.5]), 50),
    Case(
        "Thompson, floor .1 t^-.5, 20 draws",
        Thompson(floor=(0.1, 0.5), draws=20),
        BernoulliArms([0.5, 0.5]),
        200,
    ),
    Case("UCB, width 2", UCB(), BernoulliArms([0.3, 0.5, 0.6]), 300),
    Case("UCB, width .2", UCB(width=0.2), BernoulliArms([0.3, 0.5, 0.6]), 300),
    Case("private UCB, epsilon .1", PrivateUCB(epsilon=0.1), BernoulliArms([0.3, 0.6]), 500),
    Case(
        "private UCB, epsilon 2, width .2", PrivateUCB(epsilon=2.0, width=0.2), BernoulliArms([0.5, 0.6]), 500
    ),
    Case(
        "DP-ConSE, epsilon 1",
        DPConSE(epsilon=1.0, alpha=0.2),
        FiniteContext([0.6, 0.4], [[0.4, 0.6], [0.6, 0.3]]),
        2_000,
    ),
)


# --- the true bias ------------------------------------------------------------------------------------------


def exact_greedy_bias(exploration: float, means: tuple[float, float], horizon: int) -> np.ndarray:
    """Bias of two arms' means and of their difference under epsilon-greedy, over all states."""
    states = {(0, 0, 0, 0): 1.0}
    for _ in range(horizon):
        after: dict[tuple[int, int, int, int], float] = defaultdict(float)
        for (n0, s0, n1, s1), probability in states.items():
            first = (s0 / n0 if n0 else math.inf) >= (s1 / n1 if n1 else math.inf)
            lead = (1.0 - exploration / 2.0, exploration / 2.0)
            for arm, chance in enumerate(lead if first else lead[::-1]):
                for reward, paid in ((0, 1.0 - means[arm]), (1, means[arm])):
                    state = (n0 + 1, s0 + reward, n1, s1) if arm == 0 else (n0, s0, n1 + 1, s1 + reward)
                    after[state] += probability * chance * paid
        states = after
    totals, chances = np.zeros(3), np.zeros(3)
    for (n0, s0, n1, s1), probability in states.items():
        e0 = s0 / n0 - means[0] if n0 else math.nan
        e1 = s1 / n1 - means[1] if n1 else math.nan
        for place, error in enumerate((e0, e1, e1 - e0)):
            if not math.isnan(error):
                totals[place] += probability * error
                chances[place] += probability
    return totals / chances


def true_bias(case: Case, number: int, size: Size) -> tuple[np.ndarray, np.ndarray]:
    """Bias of arms and differences, and its error: exact (0) for epsilon-greedy, else from other runs."""
    if isinstance(case.design, EpsilonGreedy):
        exact = exact_greedy_bias(case.design.exploration, tuple(case.env.means[0]), case.horizon)
        return exact, np.zeros(3)
    root = np.random.SeedSequence(SEED, spawn_key=(1, number))
    sims = case.design.replicate(case.env, case.horizon, size.truth_runs, rng=root)
    means = sims.means if sims.contextual else sims.means[:, None]
    found = []
    for cell, truth in enumerate(case.env.means):
        errors = np.concatenate([means[:, cell], means[:, cell, 1:] - means[:, cell, :1]], axis=1)
        target = np.concatenate([truth, truth[1:] - truth[0]])
        found.append(conditional_bias(errors, target)[:2])
    return np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found])


def bias_rows(size: Size) -> Iterator[str]:
    """Simulated bias at the true means, beside the true one."""
    for number, case in enumerate(CASES):
        truth, error = true_bias(case, number, size)
        log = case.design.run(case.env, case.horizon, rng=np.random.SeedSequence(SEED, spawn_key=(2, number)))
        root = np.random.SeedSequence(SEED, spawn_key=(3, number))
        means = case.env.means if case.env.features else case.env.means[0]
        frame = simulate_bias(log, case.design, size.runs, rng=root, means=means).frame
        for place, row in enumerate(frame.to_dict("records")):
            spread = math.hypot(row["bias_se"], error[place])
            known = "exact" if error[place] == 0.0 else f"± {error[place]:.5f}"
            bound = "" if math.isnan(row["bound"]) else f"{row['bound']:.4f}"
            if bound and row["bound"] >= row["trivial_bound"]:
                bound += " (vacuous)"
            z = (row["bias"] - truth[place]) / spread
            yield (
                f"| {case.name} | {case.horizon:,} | {row['term']} | {row['mean']:.2f} "
                f"| {truth[place]:.5f} {known} | {row['bias']:.5f} ± {row['bias_se']:.5f} "
                f"| {z:.2f} | {bound} |"
            )


# --- at the fitted means ------------------------------------------------------------------------------------


def correction_rows(size: Size) -> Iterator[str]:
    """Mean and root mean square error of naive, corrected and fitted differences over many logs."""
    for number in (1, 2, 4, 6):
        case = CASES[number]
        truth = case.env.means[0, 1:] - case.env.means[0, 0]
        errors = []
        root = np.random.SeedSequence(SEED, spawn_key=(4, number))
        for run, log in enumerate(case.design.logs(case.env, case.horizon, size.logs, rng=root)):
            if np.bincount(log.arrays.action, minlength=log.n_arms).min() == 0:
                continue
            seed = np.random.SeedSequence(SEED, spawn_key=(5, number, run))
            frame = simulate_bias(log, case.design, size.log_runs, rng=seed).frame.query("kind == 'contrast'")
            errors.append(frame[["naive", "corrected", "estimate"]].to_numpy()[-1] - truth[-1])
        table = np.array(errors)
        cells = [
            f"{column.mean():.4f} ± {column.std(ddof=1) / math.sqrt(column.size):.4f} / "
            f"{math.sqrt(np.mean(column**2)):.4f}"
            for column in table.T
        ]
        yield f"| {case.name} | {len(table)} | {' | '.join(cells)} |"


# --- diagnostics --------------------------------------------------------------------------------------------

SIZE_CASES = (
    Case("epsilon-greedy .4", EpsilonGreedy(exploration=0.4), BernoulliArms([0.5, 0.5]), 400),
    Case("epsilon-greedy .1", EpsilonGreedy(exploration=0.1), BernoulliArms([0.5, 0.5]), 400),
    Case("Thompson, floor .3 t^-.2", Thompson(floor=(0.3, 0.2), draws=50), BernoulliArms([0.5, 0.5]), 400),
    Case(
        "Thompson, floor .1 t^-.5, batches of 25",
        Thompson(floor=(0.1, 0.5), batch_size=25),
        BernoulliArms([0.4, 0.5, 0.5]),
        500,
    ),
)
CHECKS = (
    ("propensity calibration", "all arms"),
    ("sample ratio", "all arms"),
    ("sample ratio, anytime", "all arms"),
    ("drift over time", "1"),
    ("drift by batch", "1"),
    ("sample mean against AIPW", "1"),
)


def share_of(found: list[bool]) -> str:
    """A share with its binomial standard error, and the number of runs where some had no test."""
    if not found:
        return ""
    share = float(np.mean(found))
    return f"{share:.3f} ± {math.sqrt(share * (1.0 - share) / len(found)):.3f} ({len(found):,})"


def size_rows(size: Size) -> Iterator[str]:
    """Rejections at .05 where nothing is wrong, and of any test after Holm."""
    for number, case in enumerate(SIZE_CASES):
        root = np.random.SeedSequence(SEED, spawn_key=(6, number))
        rejected: dict[tuple[str, str], list[bool]] = {key: [] for key in CHECKS}
        family = []
        for log in case.design.logs(case.env, case.horizon, size.diagnoses, rng=root):
            found = diagnose(log)
            for name, term in CHECKS:
                for check in found.check(name, term):
                    if not math.isnan(check.log_pvalue):
                        rejected[name, term].append(check.log_pvalue <= math.log(0.05))
            family.append(any(check.verdict == AGAINST for check in found.checks))
        cells = " | ".join(share_of(rejected[key]) for key in CHECKS)
        yield f"| {case.name} | {case.horizon} | {cells} | {share_of(family)} |"


def shrunk(log: AdaptiveLog, rng: np.random.Generator) -> AdaptiveLog:
    """Propensities a third of the way to uniform ones."""
    arrays = log.arrays
    e = arrays.propensities * 2.0 / 3.0 + 1.0 / (3.0 * log.n_arms)
    return relogged(log, arrays.action, arrays.reward, e)


def one_late(log: AdaptiveLog, rng: np.random.Generator) -> AdaptiveLog:
    """Propensities of the round after."""
    e = log.arrays.propensities
    return relogged(log, log.arrays.action, log.arrays.reward, np.vstack([e[1:], e[-1:]]))


def thinned(log: AdaptiveLog, rng: np.random.Generator) -> AdaptiveLog:
    """A quarter of arm 1's rounds are lost."""
    kept = (log.arrays.action == 0) | (rng.random(log.n_rounds) >= 0.25)
    arrays = log.arrays
    return relogged(log, arrays.action[kept], arrays.reward[kept], arrays.propensities[kept])


def relogged(log: AdaptiveLog, action: np.ndarray, reward: np.ndarray, e: np.ndarray) -> AdaptiveLog:
    """A log of two arms from its columns."""
    own = e[np.arange(action.size), action]
    return AdaptiveLog.from_arrays(LogArrays(action, reward, own, e), arms=log.arms)


def power_rows(size: Size) -> Iterator[str]:
    """Share of logs with evidence against each check, after Holm, where one thing is wrong."""
    design, horizon = EpsilonGreedy(exploration=0.4), 1_000
    arms = BernoulliArms([0.5, 0.5])
    for number, (name, spoil) in enumerate(
        {
            "nothing": lambda log, rng: log,
            "propensities a third of the way to uniform": shrunk,
            "propensities of the round after": one_late,
            "a quarter of arm 1's rounds lost": thinned,
            "arm 1's mean rises from .4 to .6 halfway": None,
        }.items()
    ):
        rng = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(7, number)))
        counts = dict.fromkeys(dict.fromkeys(check for check, _ in CHECKS), 0)
        for _ in range(size.powers):
            if spoil is None:
                means = np.where(np.arange(horizon) < horizon // 2, 0.4, 0.6)
                draws = rng.random((horizon, 2)) < np.stack([np.full(horizon, 0.5), means], axis=1)
                log = design.run(Tableau(draws.astype(float)), horizon, rng)
            else:
                log = spoil(design.run(arms, horizon, rng), rng)
            found = diagnose(log)
            for check in counts:
                counts[check] += any(row.verdict == AGAINST for row in found.check(check))
        cells = " | ".join(
            f"{counts[check] / size.powers:.2f}" for check in counts if check != "drift by batch"
        )
        yield f"| {name} | {cells} |"


SIZE_HEADS = (
    "design",
    "T",
    "calibration",
    "sample ratio",
    "sample ratio, anytime",
    "drift of arm 1, slope",
    "by batch",
    "sample mean against AIPW, arm 1",
    "any, after Holm",
)
POWER_HEADS = (
    "what is wrong",
    "calibration",
    "sample ratio",
    "sample ratio, anytime",
    "drift, halves",
    "sample mean against AIPW",
)


def head(names: tuple[str, ...]) -> str:
    """Header of a Markdown table."""
    return f"| {' | '.join(names)} |\n|{' --- |' * len(names)}"


PAGE = """\
# Bias: simulated against true, and the sizes of the diagnostics

Command: `{command}`. Seed: {seed}. Date: {today}.

Throughout, the number after ± is one Monte Carlo standard error.

## Simulated bias where the truth is known

`audit.simulate_bias` at the true means, with {runs:,} runs, is compared with the true bias, which is exact
for epsilon-greedy (by recursion over all states, that is, pulls and successes of both arms), and is otherwise
computed from {truth_runs:,} other runs. *z* is their difference divided by its standard error; *bound* is
that of the theorem, if the design protects the privacy of the rewards. The bound for a difference is the sum
of the bounds for the two arms. It is vacuous once it exceeds the largest possible bias.

| design | T | sample mean of | mean | true bias | simulated bias | z | bound |
| --- | --- | --- | --- | --- | --- | --- | --- |
{bias}

Largest |z|: {largest:.2f} of {count}; normal errors exceed {limit:.2f} in 1% of such tables.

## At fitted means

In practice, only fitted means are available. The table shows results over many logs: the mean error ± its
standard error / the root mean square error of the last arm's difference from arm 0. These are given for the
sample means, for the sample means minus the simulated bias ({log_runs} runs per log), and for the estimates
at which the bias was simulated (AIPW or ALEE; sample means if privacy corrects them). Logs in which an arm
has no reward are omitted.

| design | logs | naive | corrected | fitted |
| --- | --- | --- | --- | --- |
{corrections}

## Diagnostics when nothing is wrong

The table shows the share of p-values that are at most .05, before Holm's adjustment, and the share of logs in
which any check finds evidence after the adjustment. The number of logs with a test is in parentheses, because
tests are skipped if there are too few rewards or random choices. The anytime test is exact, with level .05
simultaneously over all rounds; the others are asymptotic, and the last test assumes that arm counts converge.

{size_head}
{sizes}

## Diagnostics when one thing is wrong

The table shows the share of {powers} logs (epsilon-greedy with exploration .4, T = 1,000, equal arms) in
which each check finds evidence, after Holm's adjustment.

{power_head}
{power}
"""


def main() -> None:
    options = evidence.parser(__doc__).parse_args()
    size = QUICK if options.quick else FULL
    warnings.simplefilter("ignore", AdaptinfWarning)
    began = time.perf_counter()
    tables = {}
    for name, make in {
        "bias": bias_rows,
        "corrections": correction_rows,
        "sizes": size_rows,
        "power": power_rows,
    }.items():
        tables[name] = list(make(size))
        print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)
    distances = [abs(float(row.split("|")[7])) for row in tables["bias"]]
    share = 1.0 - 0.99 ** (1.0 / len(distances))
    from scipy.stats import norm

    page = PAGE.format(
        command=COMMAND + (" --quick" if options.quick else ""),
        seed=SEED,
        today=evidence.stamp(),
        runs=size.runs,
        truth_runs=size.truth_runs,
        log_runs=size.log_runs,
        powers=size.powers,
        largest=max(distances),
        count=len(distances),
        size_head=head(SIZE_HEADS),
        power_head=head(POWER_HEADS),
        limit=float(norm.isf(share / 2.0)),
        **{name: "\n".join(rows) for name, rows in tables.items()},
    )
    evidence.publish(page, __file__, options)
    if options.quick:
        for row in ("epsilon-greedy, exploration .1 | 50 | 1", "UCB, width .2 | 300 | 1"):
            evidence.hold_cell(page, __file__, row, "simulated bias")


if __name__ == "__main__":
    main()
