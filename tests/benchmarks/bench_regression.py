"""Speed of the regression adjustments on a long log.

``python tests/benchmarks/bench_regression.py`` prints the figures, ``pytest`` with the same path asserts
them. Times are processor time, the best of several.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import pytest

from adaptinf.inference.regression.batched_regression import batched_coefficients
from adaptinf.inference.regression.decorrelation import decorrelated
from adaptinf.inference.regression.ellipsoid import confidence_ellipsoid
from adaptinf.inference.regression.least_squares import batch_regressions
from adaptinf.inference.regression.weighted.own_weights import weighted_least_squares

pytestmark = pytest.mark.benchmark

ROUNDS, COLUMNS, SECONDS = 1_000_000, 10, 5.0


def best(function: Callable[[], object], repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        began = time.process_time()
        function()
        times.append(time.process_time() - began)
    return min(times)


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROUNDS, COLUMNS))
    x[:, 0] = 1.0
    return x, x @ np.arange(1.0, COLUMNS + 1.0) + rng.normal(size=ROUNDS)


def decorrelation_time() -> float:
    """Seconds of W-decorrelation of a million rounds on ten columns, the least-squares fit included."""
    x, y = data()
    decorrelated(x[:100], y[:100])
    return best(lambda: decorrelated(x, y))


def test_a_million_rounds_are_decorrelated_within_five_seconds() -> None:
    assert decorrelation_time() < SECONDS


def main() -> None:
    x, y = data()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, ROUNDS)
    batch = np.repeat(np.arange(1_000), ROUNDS // 1_000)
    figures = {
        "W-decorrelation": decorrelation_time(),
        "weighted": best(lambda: weighted_least_squares(x, y, weight)),
        "ellipsoid": best(lambda: confidence_ellipsoid(x, y, 1.0, 20.0)),
        "batched, 1,000 batches": best(
            lambda: batched_coefficients(batch_regressions(batch, x, y), np.eye(COLUMNS))
        ),
    }
    lines = [f"{ROUNDS:,} rounds, {COLUMNS} columns, processor time"]
    lines += [f"{name}: {seconds:.2f} s" for name, seconds in figures.items()]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
