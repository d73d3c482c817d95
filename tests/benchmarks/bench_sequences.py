"""Speed of confidence sequences, everything measured within one run on one core.

``python tests/benchmarks/bench_sequences.py`` prints the figures, ``pytest
tests/benchmarks/bench_sequences.py`` asserts them.
Times are processor time, best of three, without compilation.
"""

from __future__ import annotations

import functools
import math
import sys

import numpy as np
import pytest
from bench_private_ucb import best_time

from adaptinf.inference.sequences.confidence_sequence import ConfidenceSequence
from adaptinf.log import AdaptiveLog, LogArrays

pytestmark = pytest.mark.benchmark

HORIZON, LITERAL = 100_000, 2_000
METHODS = ("betting", "empirical-bernstein", "normal-mixture", "asymptotic")


def bernoulli_log(horizon: int) -> AdaptiveLog:
    """Two arms, uniform assignment."""
    rng = np.random.default_rng(0)
    action = rng.integers(0, 2, horizon)
    arrays = LogArrays(
        action=action,
        reward=(rng.random(horizon) < np.array([0.3, 0.4])[action]).astype(float),
        propensity=np.full(horizon, 0.5),
        propensities=np.full((horizon, 2), 0.5),
    )
    return AdaptiveLog.from_arrays(arrays, arms=("a", "b"), reward_range=(0.0, 1.0))


def fit(log: AdaptiveLog, method: str) -> None:
    """Fit, interval, p-value and running table of one arm from all rounds' scores."""
    result = ConfidenceSequence(log, arms=["a"]).fit(method, estimator="ipw")
    result.conf_int()
    assert result.pvalues.iloc[0] < 1.0
    result.table()


def plain_interval(log: AdaptiveLog) -> tuple[float, float]:
    """The last betting interval alone, with floats and loops."""
    arrays = log.arrays
    assert arrays.propensity is not None
    rows = list(zip(arrays.action.tolist(), arrays.reward.tolist(), arrays.propensity.tolist(), strict=True))
    ends = []
    for turned in (False, True):
        x = [(a == 0) * ((1.0 - y) if turned else y) / e for a, y, e in rows]
        bets, total, squares = [], 0.0, 0.0
        for t, value in enumerate(x, start=1):
            variance = (0.25 + squares) / t
            bets.append(math.sqrt(2.0 * math.log(40.0) / (variance * t * math.log(1.0 + t))))
            total += value
            squares += (value - min(max((0.5 + total) / (t + 1), 0.0), 1.0)) ** 2
        low, high = 0.0, 1.0
        while high - low > 1e-14:
            middle, log_wealth, most = 0.5 * (low + high), 0.0, 0.0
            for value, bet in zip(x, bets, strict=True):
                log_wealth += math.log1p(min(bet, 0.5 / middle) * (value - middle))
                most = max(most, log_wealth)
            low, high = (middle, high) if most >= math.log(40.0) else (low, middle)
        ends.append(low)
    return ends[0], 1.0 - ends[1]


@functools.cache
def seconds() -> dict[str, float]:
    """Seconds a run of 100,000 rounds; plain Python's are those of 2,000 rounds, times fifty."""
    log, short = bernoulli_log(HORIZON), bernoulli_log(LITERAL)
    for method in METHODS:
        fit(short, method)
    tasks = [functools.partial(fit, log, method) for method in METHODS]
    model = ConfidenceSequence(log, arms=["a"])
    *times, interval, plain = best_time(
        *tasks, lambda: model.fit("betting", estimator="ipw").conf_int(), lambda: plain_interval(short)
    )
    figures = dict(zip(METHODS, times, strict=True))
    return figures | {"interval": interval, "python": plain * HORIZON / LITERAL}


def test_both_find_the_same_interval() -> None:
    log = bernoulli_log(LITERAL)
    result = ConfidenceSequence(log, arms=["a"]).fit("betting", estimator="ipw")
    assert result.conf_int().iloc[0].tolist() == pytest.approx(list(plain_interval(log)), abs=1e-9)


def test_a_betting_sequence_of_a_hundred_thousand_rounds_under_two_seconds() -> None:
    assert seconds()["betting"] < 2.0


def test_bets_are_far_ahead_of_plain_python() -> None:
    assert seconds()["python"] / seconds()["interval"] > 30.0


def main() -> None:
    figures = seconds()
    out = sys.stdout
    out.write(f"{HORIZON:,} rounds, ipw scores of one arm, best of 3, processor time, one core\n")
    for method in METHODS:
        out.write(f"{method}: fit, interval, p-value and table {figures[method]:.3f} s\n")
    out.write(f"betting, last interval alone: {figures['interval']:.3f} s\n")
    ratio = figures["python"] / figures["interval"]
    out.write(f"  plain Python {figures['python']:.1f} s, {ratio:.0f} times slower\n")


if __name__ == "__main__":
    main()
