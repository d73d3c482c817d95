"""Speed of arm means: one long log against a copy of its propensities, and thousands of short ones.

``python tests/benchmarks/bench_inference.py`` prints the figures, ``pytest`` with the same path asserts them.
Times are processor time: on a machine that others use too, wall-clock time says little. Of single calls it is
the best of several; of two processes, the sum of both over two.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from joblib import Parallel, delayed

from adaptinf.designs import Thompson
from adaptinf.inference.arms.models import ArmMeans
from adaptinf.inference.recommend.recommendation import recommend
from adaptinf.inference.scores.means import sample_means
from adaptinf.inference.scores.outcome_predictions import running_ridge
from adaptinf.inference.scores.score_stream import streamed_means
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.simulation.environments import UniformArms
from adaptinf.simulation.replicate import BLOCK, iterate_runs

pytestmark = pytest.mark.benchmark

ROUNDS, ARMS = 1_000_000, 10
COPIES = 15.0
RUNS, HORIZON, PROCESSES, SECONDS = 6_000, 1_000, 2, 20.0
DECAY = 0.7


def best(function: Callable[[], object], repeats: int = 7) -> float:
    times = []
    for _ in range(repeats):
        began = time.process_time()
        function()
        times.append(time.process_time() - began)
    return min(times)


@cache
def long_log() -> AdaptiveLog:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(ARMS, 5.0), size=ROUNDS) * 0.9 + 0.1 / ARMS
    action = (p.cumsum(axis=1) > rng.random((ROUNDS, 1))).argmax(axis=1)
    arrays = LogArrays(
        action=action, reward=rng.normal(size=ROUNDS), propensity=p[np.arange(ROUNDS), action], propensities=p
    )
    return AdaptiveLog.from_arrays(arrays, arms=tuple(range(ARMS)))


def long_times() -> tuple[float, float]:
    """Seconds of AIPW with two-point weights, and of a plain copy of the propensities."""
    log = long_log()
    model, propensities = ArmMeans(log), log.arrays.propensities
    assert propensities is not None
    model.fit("aipw", "two-point", DECAY)
    return best(lambda: model.fit("aipw", "two-point", DECAY)), best(propensities.copy)


def ridge_time() -> float:
    """Seconds of a running ridge on five covariates."""
    log = long_log()
    x = np.random.default_rng(1).normal(size=(ROUNDS, 5))
    rounds = (log.arrays.action, log.arrays.reward, x, np.arange(ARMS), 1.0)
    running_ridge(*rounds)
    return best(lambda: running_ridge(*rounds), 3)


def many(start: int, stop: int) -> tuple[np.ndarray, float]:
    """Estimates of the best arm by four estimators in every replication of Hadad's Thompson sampling.

    With the seconds of processor time that they took.
    """
    began = time.process_time()
    design = Thompson(prior="normal", initial_pulls=5, floor=(1.0 / 3.0, DECAY), draws=100)
    environment = UniformArms([-0.5, 0.0, 0.5], [1.5, 2.0, 2.5])
    found = np.zeros((stop - start, 4))
    for row, run in enumerate(iterate_runs(design, environment, HORIZON, start, stop, 1)):
        record = run.record
        action = np.asarray(record.action, dtype=np.int64)
        rounds = (action, record.reward, record.propensity, record.propensities, np.arange(3))
        found[row, 0] = sample_means(action, record.reward, 3).mean[2]
        for column, weights in enumerate(("uniform", "sqrt", "two-point"), start=1):
            found[row, column] = streamed_means(*rounds, weights=weights, decay=DECAY).estimate[2]
    return found, time.process_time() - began


def many_time() -> tuple[float, float]:
    """Processor time of all replications over the number of processes, and the mean estimate."""
    shares = [(start, min(start + 8 * BLOCK, RUNS)) for start in range(0, RUNS, 8 * BLOCK)]
    with Parallel(n_jobs=PROCESSES) as pool:
        pool(delayed(many)(0, BLOCK) for _ in range(2 * PROCESSES))
        parts = pool(delayed(many)(*share) for share in shares)
    took = sum(seconds for _, seconds in parts) / PROCESSES
    return took, float(np.concatenate([found for found, _ in parts]).mean())


def answers_over_parts() -> dict[str, float]:
    """Time of `recommend` for several contrasts and for the winner, over that for one contrast and for means.

    By the rounds of a log of three arms: each table is made of a log that was not looked at before.
    """
    found = {}
    for rounds in (1_000, 200_000):
        whole = long_log().arrays
        rows = slice(0, rounds)
        three = np.flatnonzero(whole.action[rows] < 3)
        assert whole.propensities is not None
        assert whole.propensity is not None
        arrays = LogArrays(
            action=whole.action[three],
            reward=whole.reward[three],
            propensity=whole.propensity[three],
            propensities=np.ascontiguousarray(whole.propensities[three, :3]),
        )

        def table(target: str, arrays: LogArrays = arrays, **own: object) -> float:
            def made() -> None:
                recommend(AdaptiveLog.from_arrays(arrays, arms=(0, 1, 2)), target, **own)

            made()
            return best(made)

        several = table("contrasts", control=0) / table("contrast", treatment=1, control=0)
        found[f"contrasts over contrast, {rounds:,} rounds"] = several
        found[f"winner over arm means, {rounds:,} rounds"] = table("winner") / table("arm-means")
    return found


def test_rows_for_contrasts_and_winners_cost_little() -> None:
    assert max(answers_over_parts().values()) < 1.2


def test_a_million_rounds_within_fifteen_copies() -> None:
    fit, copy = long_times()
    assert fit <= COPIES * copy


def test_running_ridge_takes_seconds() -> None:
    assert ridge_time() < 5.0


def test_replications_on_two_processes() -> None:
    took, mean = many_time()
    assert took < SECONDS
    assert mean == pytest.approx(1.5, abs=0.05)


def main() -> None:
    fit, copy = long_times()
    took, _ = many_time()
    lines = [
        f"AIPW, two-point, {ROUNDS:,} x {ARMS}: {fit:.3f} s; copy {copy:.4f} s; ratio {fit / copy:.1f}",
        *(f"recommend, {name}: {ratio:.2f}" for name, ratio in answers_over_parts().items()),
        f"running ridge, 5 covariates: {ridge_time():.2f} s",
        f"{RUNS:,} replications, T = {HORIZON:,}, four estimators, {PROCESSES} processes: {took:.1f} s each",
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
