"""Speed of the exact law of two-arm binary trials, on one core.

``python tests/benchmarks/bench_exact.py`` prints the figures (with ``--thousand`` also T = 1,000, which takes
minutes and 3 GB), ``pytest tests/benchmarks/bench_exact.py`` asserts them. Times are processor time, best of
three, without compilation.
"""

from __future__ import annotations

import functools
import sys
import time
from typing import Any

import pytest
from bench_private_ucb import best_time

from adaptinf.audit.binary.exact_law import exact
from adaptinf.designs import UCB, EpsilonGreedy, PlayTheWinner, Thompson, Uniform

pytestmark = pytest.mark.benchmark

HORIZON, LONG = 200, 1000
RULES: dict[str, Any] = {
    "Thompson": Thompson(),
    "EpsilonGreedy": EpsilonGreedy(),
    "UCB": UCB(),
    "PlayTheWinner": PlayTheWinner(),
    "Uniform": Uniform(),
}


@functools.cache
def seconds() -> dict[str, float]:
    """Seconds of the recursion at T = 200 by rule, and of what follows from it under Thompson."""
    for rule in RULES.values():
        exact(rule, 10)
    law = exact(Thompson(), HORIZON)
    tasks = {name: functools.partial(exact, rule, HORIZON) for name, rule in RULES.items()}
    tasks["size of the Wald test"] = lambda: law.size("wald", 0.3)
    tasks["size of the conditional test"] = lambda: law.size("conditional", 0.3)
    tasks["conditional p-value"] = lambda: law.conditional_pvalue(120, 50, 80, 20)
    tasks["power on 25 thetas"] = lambda: law.power("wald", [0.1, 0.3, 0.5, 0.7, 0.9] * 5, 0.4)
    return dict(zip(tasks, best_time(*tasks.values()), strict=True))


@pytest.mark.parametrize("name", RULES)
def test_two_hundred_rounds_under_a_second(name: str) -> None:
    assert seconds()[name] < 1.0


def main() -> None:
    out = sys.stdout
    out.write(f"T = {HORIZON}, best of 3, processor time, one core\n")
    for name, spent in seconds().items():
        out.write(f"{name}: {spent:.3f} s\n")
    if "--thousand" in sys.argv:
        start = time.process_time()
        law = exact(Thompson(), LONG)
        out.write(f"Thompson, T = {LONG:,}: {time.process_time() - start:.0f} s, ")
        out.write(f"{2 * law.weights.nbytes / 1e9:.2f} GB for two layers\n")


if __name__ == "__main__":
    main()
