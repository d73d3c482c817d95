"""Speed of a study: PrivateUCB (epsilon = 1, K = 5, T = 10,000), 10,000 trials, three analyses of each log.

Sample means with their max-information correction, and empirical Bernstein sequences, on two processes.
``python tests/benchmarks/bench_study.py`` prints the seconds of all 10,000 trials by the clock, ``pytest
tests/benchmarks/bench_study.py`` asserts what follows for them from the processor time of 256, and that no
trial makes a frame.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import pandas as pd
import pytest

from adaptinf.audit.simulation.simulated_coverage import Coverage, coverage
from adaptinf.designs import PrivateUCB
from adaptinf.inference.arms.models import ArmMeans
from adaptinf.inference.sequences.confidence_sequence import ConfidenceSequence
from adaptinf.log import AdaptiveLog
from adaptinf.simulation.environments import BernoulliArms

pytestmark = pytest.mark.benchmark

DESIGN, ENVIRONMENT = PrivateUCB(epsilon=1.0), BernoulliArms([0.5, 0.5, 0.5, 0.5, 0.6])
HORIZON, RUNS, PROCESSES, SECONDS = 10_000, 10_000, 2, 120.0
SEED = 2026


def fit(log: AdaptiveLog) -> dict[str, Any]:
    """Sample means, which carry the correction, and confidence sequences."""
    return {
        "sample mean": ArmMeans(log).fit("sample-mean"),
        "sequence": ConfidenceSequence(log).fit("empirical-bernstein"),
    }


def whole(runs: int) -> tuple[Coverage, float]:
    """The study, and its seconds by the clock."""
    began = time.perf_counter()
    found = coverage(DESIGN, ENVIRONMENT, fit, HORIZON, runs, SEED, n_jobs=PROCESSES)
    return found, time.perf_counter() - began


def frames_built(runs: int = 64) -> int:
    """How many frames `coverage` makes over some trials, all in this process."""
    count = 0
    original = pd.DataFrame.__init__

    def counted(self: Any, *args: Any, **kwargs: Any) -> None:
        nonlocal count
        count += 1
        original(self, *args, **kwargs)

    pd.DataFrame.__init__ = counted  # type: ignore[method-assign]
    try:
        coverage(DESIGN, ENVIRONMENT, fit, HORIZON, runs, SEED)
    finally:
        pd.DataFrame.__init__ = original  # type: ignore[method-assign]
    return count


def milliseconds(runs: int = 256) -> float:
    """Processor time of a trial in one process."""
    coverage(DESIGN, ENVIRONMENT, fit, HORIZON, 64, SEED)
    began = time.process_time()
    coverage(DESIGN, ENVIRONMENT, fit, HORIZON, runs, SEED)
    return 1e3 * (time.process_time() - began) / runs


def test_ten_thousand_trials_take_under_two_minutes_on_two_cores() -> None:
    assert milliseconds() * RUNS / PROCESSES < 1e3 * SECONDS


def test_no_trial_builds_a_frame() -> None:
    few, more = frames_built(64), frames_built(256)
    assert few == more == 1


def main() -> None:
    out = sys.stdout
    out.write(f"{milliseconds():.2f} ms a trial in one process\n")
    out.write(f"{frames_built(64)} frame over 64 trials, {frames_built(256)} over 256\n")
    found, took = whole(RUNS)
    out.write(f"{RUNS:,} trials on {PROCESSES} processes: {took:.1f} s by the clock\n{found}\n")


if __name__ == "__main__":
    main()
