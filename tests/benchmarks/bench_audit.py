"""Speed of an audit of one counter, and of the checks of designs, measured within one run on one core.

``python tests/benchmarks/bench_audit.py`` prints the figures, ``pytest tests/benchmarks/bench_audit.py``
asserts them. Times are processor time, without compilation. The loop that an audit stands against makes a
`Counter` for every run and adds the items one by one; it is timed on fewer runs.
"""

from __future__ import annotations

import functools
import sys
import time

import numpy as np
import pytest

from adaptinf.audit.privacy.epsilon_audit import epsilon_lower_bound, neighbouring_inputs, privacy_scores
from adaptinf.audit.privacy.trial_checks import design_checks
from adaptinf.designs import LinPriv, PrivateSuccessiveElimination, PrivateUCB
from adaptinf.privacy import Counter

pytestmark = pytest.mark.benchmark

RUNS, LOOPED = 1_000_000, 1_000
COUNTERS = {
    "binary": Counter(epsilon=1.0, mechanism="binary", horizon=31),
    "hybrid": Counter(epsilon=1.0, mechanism="hybrid"),
    "logarithmic": Counter(epsilon=1.0, mechanism="logarithmic"),
}
DESIGNS = {
    "PrivateUCB": PrivateUCB(epsilon=1.0),
    "LinPriv": LinPriv(epsilon=1.0),
    "PrivateSuccessiveElimination": PrivateSuccessiveElimination(epsilon=1.0),
}


def loop(counter: Counter, runs: int) -> np.ndarray:
    """Noisy sums of both streams, a counter for each run."""
    sums = []
    for stream in neighbouring_inputs(counter):
        rng = np.random.default_rng(0)
        for _ in range(runs):
            alone = Counter(
                epsilon=counter.epsilon, mechanism=counter.mechanism, horizon=counter.horizon, rng=rng
            )
            sums.append([alone.add(item) for item in stream[:, 0].tolist()])
    return np.array(sums)


@functools.cache
def seconds(mechanism: str) -> dict[str, float]:
    """Seconds for 10^6 runs on each of two streams: the audit, its scores alone, and the loop."""
    counter = COUNTERS[mechanism]
    epsilon_lower_bound(counter, runs=1_000, rng=0)
    figures = {}
    for name, task, factor in (
        ("audit", lambda: epsilon_lower_bound(counter, runs=RUNS, rng=0), 1.0),
        ("scores", lambda: privacy_scores(counter, runs=RUNS, rng=0), 1.0),
        ("loop", lambda: loop(counter, LOOPED), RUNS / LOOPED),
    ):
        start = time.process_time()
        task()
        figures[name] = (time.process_time() - start) * factor
    return figures


@pytest.mark.parametrize("mechanism", COUNTERS)
def test_a_million_runs_under_twenty_seconds(mechanism: str) -> None:
    assert seconds(mechanism)["audit"] < 20.0


@functools.cache
def seconds_of_checks(name: str) -> float:
    """Seconds for the replays of a design and the tests of its noise."""
    design_checks(DESIGNS[name], np.random.SeedSequence(0))
    start = time.process_time()
    design_checks(DESIGNS[name], np.random.SeedSequence(1))
    return time.process_time() - start


@pytest.mark.parametrize("name", DESIGNS)
def test_replays_and_tests_of_noise_under_ten_seconds(name: str) -> None:
    assert seconds_of_checks(name) < 10.0


@pytest.mark.parametrize("mechanism", COUNTERS)
def test_far_ahead_of_counters_one_by_one(mechanism: str) -> None:
    assert seconds(mechanism)["loop"] / seconds(mechanism)["scores"] > 50.0


def main() -> None:
    out = sys.stdout
    out.write(f"{RUNS:,} runs on each of two streams, processor time, one core\n")
    for mechanism, counter in COUNTERS.items():
        figures = seconds(mechanism)
        out.write(
            f"{mechanism}, {len(neighbouring_inputs(counter)[0])} items: audit {figures['audit']:.2f} s, of "
            f"which scores {figures['scores']:.2f} s; counters one by one {figures['loop']:.0f} s, "
            f"{figures['loop'] / figures['scores']:.0f} times as long as the scores\n"
        )
    for name in DESIGNS:
        out.write(f"{name}: replays and tests of noise {seconds_of_checks(name):.1f} s\n")


if __name__ == "__main__":
    main()
