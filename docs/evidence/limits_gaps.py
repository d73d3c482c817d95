"""Designs, workers, coverage and reports beside their practical limits: a part of the page of limits.py.

Each ratio is that of processor times of two calls that alternate within one process (medians); seconds of the
report, and of a first run with an empty cache of compiled code, are those of processes of their own.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import evidence
import numba
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "benchmarks"))
from bench_designs import alternated, exact_gain, function_costs

import adaptinf as ai

COMMAND = "python docs/evidence/limits_gaps.py"
SEED = 20261128
BEGIN, END = "<!-- made by limits_gaps.py -->", "<!-- end of limits_gaps.py -->"
FEW = [0.3, 0.6]
MANY = [0.75, 0.625, 0.5, 0.375, 0.25]
Row = tuple[str, str, float, str]


@numba.njit(error_model="numpy", nogil=True)
def uniform_loop(
    rng: np.random.Generator, means: np.ndarray, horizon: int, runs: int, kept: np.ndarray
) -> None:
    """Counts, sums and sums of squares by arm, all arms as likely; kept has shape (runs, arms, 3)."""
    for run in range(runs):
        kept[run] = 0.0
        for _ in range(horizon):
            arm = int(rng.random() * means.size)
            reward = 1.0 if rng.random() < means[arm] else 0.0
            kept[run, arm, 0] += 1.0
            kept[run, arm, 1] += reward
            kept[run, arm, 2] += reward * reward


@numba.njit(error_model="numpy", nogil=True)
def elimination_loop(
    rng: np.random.Generator, means: np.ndarray, horizon: int, runs: int, kept: np.ndarray, log_start: float
) -> None:
    """The same numbers of successive elimination, with means compared after every pass."""
    n_arms = means.size
    gone = np.zeros(n_arms)
    for run in range(runs):
        gone[:], kept[run] = 0.0, 0.0
        arm, passes, left = 0, 0.0, n_arms
        for _ in range(horizon):
            reward = 1.0 if rng.random() < means[arm] else 0.0
            kept[run, arm, 0] += 1.0
            kept[run, arm, 1] += reward
            kept[run, arm, 2] += reward * reward
            arm += 1
            while arm < n_arms and gone[arm] > 0.0:
                arm += 1
            if arm < n_arms:
                continue
            passes += 1.0
            if left > 1:
                highest = 0.0
                for other in range(n_arms):
                    if gone[other] == 0.0:
                        highest = max(highest, kept[run, other, 1] / passes)
                bound = np.sqrt(2.0 * (log_start + 2.0 * np.log(passes)) / passes)
                for other in range(n_arms):
                    if gone[other] == 0.0 and highest - kept[run, other, 1] / passes > bound:
                        gone[other] = 1.0
                        left -= 1
            arm = 0
            while gone[arm] > 0.0:
                arm += 1


def loop_rows(horizon: int, runs: int) -> list[Row]:
    """Uniform assignment and elimination beside loops of the same law."""
    rng, found = np.random.default_rng(SEED), []
    uniform, elimination = ai.designs.Uniform(), ai.designs.SuccessiveElimination()
    for design, means in ((uniform, FEW), (elimination, MANY)):
        environment, array = ai.environments.BernoulliArms(means), np.array(means)
        kept = np.zeros((runs, len(means), 3))
        more = ()
        if design is elimination:
            more = (design.program(environment, horizon, recording=False).tables.log_start,)
        loop = functools.partial(
            elimination_loop if more else uniform_loop, rng, array, horizon, runs, kept, *more
        )
        loop()
        name = f"{type(design).__name__}, {len(means)} arms"
        for told, by_rounds in (("every round", True), ("as by default", None)):
            call = functools.partial(
                design.replicate, environment, horizon, runs, rng=SEED, by_rounds=by_rounds
            )
            call()
            found.append((f"{name}, `replicate`, {told}", "loop in Numba", alternated(call, loop), "≤ 1.2"))
    return found


def worker_row(horizon: int) -> Row:
    """Threads: processor time of two workers over that of one."""
    design, environment = ai.designs.UCB(), ai.environments.BernoulliArms(MANY)

    def runs(jobs: int) -> Callable[[], object]:
        return lambda: design.replicate(environment, horizon, 400, rng=SEED, n_jobs=jobs)

    runs(1)(), runs(2)()
    return "UCB, 400 runs, `n_jobs=2`", "`n_jobs=1`", alternated(runs(2), runs(1)), "≤ 1.1"


def estimate(log: ai.AdaptiveLog) -> object:
    return ai.ArmMeans(log).fit()


def coverage_row(replications: int) -> Row:
    """Coverage of arm means after Thompson sampling with a floor, over as many runs and fits."""
    design, environment = ai.designs.Thompson(floor=0.1), ai.environments.BernoulliArms(FEW)

    def covered() -> object:
        return ai.audit.coverage(design, environment, estimate, 1_000, replications, rng=SEED)

    def plain() -> None:
        for seed in range(replications):
            estimate(design.run(environment, 1_000, rng=seed))

    covered(), plain()
    return f"`coverage`, {replications} logs", "`run` and `fit`", alternated(covered, plain), "≤ 1.1"


def report_seconds() -> float:
    """Seconds of processor time of the second report of a process, with its three pictures."""
    environment = ai.environments.BernoulliArms(FEW)
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):
            log = ai.designs.Thompson(floor=0.1).run(environment, 10_000, rng=SEED)
            began = time.process_time()
            ai.report(log, Path(folder, "page.html"))
            spent = time.process_time() - began
    return spent


def first_run_seconds(name: str) -> float:
    """Seconds of processor time of a first run with an empty cache of compiled code."""
    design = getattr(ai.designs, name)()
    environment = ai.environments.BernoulliArms(FEW)
    began = time.process_time()
    design.run(environment, 50, rng=SEED)
    return time.process_time() - began


def alone(what: str) -> float:
    """A number of seconds from a process of its own, whose cache is empty where it is of a first run."""
    with tempfile.TemporaryDirectory() as folder:
        before = os.environ.get("NUMBA_CACHE_DIR")
        if what != "report":
            os.environ["NUMBA_CACHE_DIR"] = folder
        try:
            return float(evidence.alone(__file__, None, what)["seconds"])
        finally:
            os.environ.pop("NUMBA_CACHE_DIR", None)
            if before is not None:
                os.environ["NUMBA_CACHE_DIR"] = before


def page(options: argparse.Namespace) -> str:
    """The part of the page."""
    quick = options.quick
    costs = function_costs()
    rows: list[Row] = [
        ("`FunctionDesign.run`", "loop over the same functions", costs["run"], "≤ 1.5"),
        ("`FunctionDesign.replicate`", "loop over the same functions", costs["replicate"], "≤ 1.5"),
        *loop_rows(*((10_000, 20) if quick else (10_000, 400))),
        worker_row(200 if quick else 2_000),
        coverage_row(10 if quick else 60),
    ]
    for n_arms in (5,) if quick else (2, 5, 20):
        gain = exact_gain(n_arms, 20_000)
        rows.append(
            (f"Thompson, exact propensities, {n_arms} arms", "100 draws a round", 1.0 / gain, "≤ 0.1")
        )
    lines = "\n".join(f"| {what} | {limit} | {ratio:.2f} | {aim} |" for what, limit, ratio, aim in rows)
    seconds = [("`report`", alone("report"), "2")]
    for name, aim in () if quick else (("Thompson", "6.7"), ("Uniform", "3.8")):
        seconds.append((f"first run of {name}, empty cache", alone(name), aim))
    timed = "\n".join(f"| {what} | {spent:.1f} | {aim} |" for what, spent, aim in seconds)
    load = ", ".join(f"{one:.2f}" for one in os.getloadavg())
    return f"""{BEGIN}

Command: `{COMMAND}`. Seed: {SEED}. Date: {evidence.stamp()}. Load of the machine when
this part was written: {load}. Each ratio is of processor times of two calls that alternate within one
process, as a median.

| what | limit | ratio | aim |
| --- | --- | ---: | ---: |
{lines}

| what | processor seconds | aim |
| --- | ---: | ---: |
{timed}

{END}
"""


def main() -> None:
    """Measure and write."""
    parser = evidence.parser(__doc__)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        seconds = report_seconds() if options.one == "report" else first_run_seconds(options.one)
        print(json.dumps({"seconds": seconds}))
        return
    script = str(Path(__file__).with_name("limits.py"))  # of whose page this is a part
    evidence.publish(page(options), script, options, between=(BEGIN, END))


if __name__ == "__main__":
    main()
