"""A design, an environment and a user-defined estimator: makes docs/evidence/own_parts.md.

Epsilon-greedy in plain Python as a `FunctionDesign` beside the compiled `EpsilonGreedy`: allocation, regret
and speed. Then an own design in an own environment with an own estimator, through everything that simulates,
with one worker and with two; and what is said of each kind of mistake.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import evidence
import numpy as np
from scipy import stats

import adaptinf as ai

SEED, FULL, QUICK = 20261128, 20_000, 640
MEANS, HORIZON, EXPLORATION = (0.3, 0.5, 0.6), 200, 0.2
COMMAND = "python docs/evidence/own_parts.py"


def choose(state: Any, context: Any, rng: np.random.Generator) -> list[float]:
    """Epsilon-greedy: an arm that was never pulled comes first."""
    pulls, sums = state
    means = [sums[arm] / pulls[arm] if pulls[arm] else np.inf for arm in range(len(pulls))]
    best, share = means.index(max(means)), EXPLORATION / len(pulls)
    return [share + (1.0 - EXPLORATION) * (arm == best) for arm in range(len(pulls))]


def update(state: Any, context: Any, arm: int, reward: float) -> Any:
    pulls, sums = (list(part) for part in state)
    pulls[arm] += 1
    sums[arm] += reward
    return pulls, sums


def start(n_arms: int) -> Any:
    return [0] * n_arms, [0.0] * n_arms


def seasons(rng: np.random.Generator, horizon: int) -> Any:
    day = 0.5 * np.sin(2.0 * np.pi * np.arange(horizon) / 100.0)
    return day[:, None] + np.array([0.0, 0.3]) + rng.standard_t(df=4, size=(horizon, 2))


def later_mean(log: Any) -> Any:
    late = log.frame[log.frame.groupby("action").cumcount() >= 5]
    arms = late.groupby("action")["reward"]
    return ai.result(arms.mean(), arms.std() / np.sqrt(arms.size()), label="later mean", log=log)


OWN = ai.designs.FunctionDesign(choose, update, start)
WORLD = ai.environments.FunctionEnvironment(seasons, means=[0.0, 0.3])


def law(runs: int) -> tuple[list[str], float, float]:
    """Lines of the comparison, and rounds a second of both."""
    env = ai.environments.BernoulliArms(list(MEANS))
    compiled = ai.designs.EpsilonGreedy(exploration=EXPLORATION)
    compiled.replicate(env, HORIZON, 64, rng=0)
    OWN.replicate(env, HORIZON, 64, rng=0)
    began = time.perf_counter()
    own = OWN.replicate(env, HORIZON, runs, rng=SEED)
    middle = time.perf_counter()
    theirs = compiled.replicate(env, HORIZON, runs, rng=SEED + 1)
    end = time.perf_counter()
    parts = {f"pulls of arm {arm}": (own.pulls[:, arm], theirs.pulls[:, arm]) for arm in range(len(MEANS))}
    parts["sum of rewards"] = own.sums.sum(axis=1), theirs.sums.sum(axis=1)
    parts["regret"] = own.regret, theirs.regret
    lines = []
    for name, (mine, other) in parts.items():
        z = (mine.mean() - other.mean()) / np.sqrt((mine.var() + other.var()) / runs)
        apart = stats.ks_2samp(mine, other).pvalue
        error = mine.std() / np.sqrt(runs)
        means = f"{mine.mean():.3f} ({error:.3f}) | {other.mean():.3f} | {z:+.2f}"
        lines.append(f"| {name} | {means} | {mine.std():.3f} | {other.std():.3f} | {apart:.3f} |")
    return lines, runs * HORIZON / (middle - began), runs * HORIZON / (end - middle)


def audits(runs: int) -> dict[str, Callable[[int], Any]]:
    """What is run with one worker and with two; each gives numbers to compare."""
    log = OWN.run(WORLD, 120, rng=SEED)
    world, analyses = {"seasons": WORLD}, {"later mean": later_mean}

    def simulated(name: str) -> Callable[[int], Any]:
        audit, fit = getattr(ai.audit, name), {"fit": later_mean}
        return lambda jobs: audit(OWN, WORLD, horizon=120, replications=runs, rng=1, n_jobs=jobs, **fit).frame

    return {
        "replicate": lambda jobs: OWN.replicate(WORLD, 120, runs, rng=1, n_jobs=jobs).tallies,
        "audit.coverage": simulated("coverage"),
        "audit.power": simulated("power"),
        "audit.operating_characteristics": simulated("operating_characteristics"),
        "audit.study": lambda jobs: (
            ai.audit.study(
                {"own": OWN}, world, analyses, [120], runs, rng=1, n_jobs=jobs, progress=False
            ).frame
        ),
        "audit.randomization_test": lambda jobs: (
            ai.audit.randomization_test(log, OWN, replications=199, rng=1, n_jobs=jobs).pvalue
        ),
    }


def same(one: Any, other: Any) -> bool:
    """Whether two answers hold the same numbers."""
    if hasattr(one, "equals"):
        return bool(one.equals(other))
    return bool(np.array_equal(one, other))


def tick(state: int, context: Any, arm: int, reward: float) -> int:
    return state + 1


def raises(state: Any, context: Any, rng: np.random.Generator) -> Any:
    raise KeyError("x")


def late(answer: Any) -> Callable[..., Any]:
    return lambda state, context, rng: answer if state == 4 else [0.5, 0.5]


MISTAKES: dict[str, tuple[Any, Any, Any]] = {
    "probabilities add up to 1.1": (late([0.5, 0.6]), tick, 0),
    "an arm that does not exist": (lambda state, context, rng: 2, tick, 0),
    "NaN": (late([np.nan, 0.5]), tick, 0),
    "an exception inside": (raises, tick, 0),
    "a state changed in place": (late([0.5, 0.5]), lambda state, *_: (state.append(1), state)[1], []),
    "a forgotten return": (late([0.5, 0.5]), lambda *_: None, 0),
    "arms in some rounds only": (late(1), tick, 0),
}


def said(choose: Any, update: Any, start: Any) -> str:
    """The error that a run ends in."""
    try:
        ai.designs.FunctionDesign(choose, update, start).run(
            ai.environments.BernoulliArms([0.3, 0.6]), 20, rng=0
        )
    except ai.errors.ParameterError as error:
        return str(error).removeprefix("FunctionDesign: ")
    return "nothing"


def main() -> None:
    options = evidence.parser(__doc__).parse_args()
    runs = QUICK if options.quick else FULL
    lines, own, compiled = law(runs)
    repeats = 128 if options.quick else 1_024
    equal = {name: same(audit(1), audit(2)) for name, audit in audits(repeats).items()}
    alike = "\n".join(f"| `{name}` | {'the same' if kept else 'DIFFER'} |" for name, kept in equal.items())
    errors = "\n".join(f"| {name} | {said(*parts)} |" for name, parts in MISTAKES.items())
    table = "\n".join(lines)
    text = f"""# A user-defined design, environment and estimator

Command: `{COMMAND}`. Seed: {SEED}. Date: {evidence.stamp()}.

## The distribution of a Python copy

Epsilon-greedy with exploration {EXPLORATION}, written in plain Python as a `FunctionDesign`, is compared with
the compiled `EpsilonGreedy`, in {runs:,} runs each of {HORIZON} rounds, with reward means of
{", ".join(map(str, MEANS))}. z is the difference between the means in standard errors. P is the p-value of
the two-sample Kolmogorov-Smirnov test, which is conservative because of ties.

| | Python, mean | compiled, mean | z | Python, SD | compiled, SD | p |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
{table}

In one process (load {os.getloadavg()[0]:.1f}), {own:,.0f} rounds per second are run in Python and
{compiled:,.0f} in compiled code, a ratio of {compiled / own:.0f}.

## One worker and two

A user-defined design is run in a user-defined environment with seasons and heavy tails, with a user-defined
estimator, for {repeats:,} runs of 120 rounds.

| | numbers with 1 and 2 workers |
| --- | --- |
{alike}

## Mistakes

| what `choose` or `update` does | what is said |
| --- | --- |
{errors}
"""
    evidence.publish(text, __file__, options)
    assert all(equal.values())
    if options.quick:
        evidence.hold_cell(text, __file__, "sum of rewards", "Python, mean")


if __name__ == "__main__":
    main()
