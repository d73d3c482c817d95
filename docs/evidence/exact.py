"""Exact sizes, power and bias of two-arm binary trials, and what they cost: makes docs/evidence/exact.md."""

from __future__ import annotations

import time
from collections.abc import Iterator
from fractions import Fraction
from math import comb, factorial
from typing import Any

import evidence
import numpy as np

from adaptinf.audit.binary.exact_law import ExactLaw, exact
from adaptinf.designs import UCB, EpsilonGreedy, Mixture, PlayTheWinner, Thompson, Uniform

COMMAND = "python docs/evidence/exact.py"
THETAS = (0.1, 0.25, 0.5, 0.7, 0.9)
PUBLISHED = {
    "wald": (0.1811, 0.1667, 0.1404, 0.1113, 0.0564),
    "score": (0.0168, 0.0700, 0.1097, 0.1343, 0.1698),
}
RULES: dict[str, Any] = {
    "Thompson": Thompson(),
    "Thompson, floor 0.1": Thompson(floor=0.1),
    "Thompson, batches of 10": Thompson(batch_size=10),
    "EpsilonGreedy, 0.1": EpsilonGreedy(exploration=0.1),
    "UCB": UCB(),
    "Mixture of UCB, 0.2": Mixture(UCB(), exploration=0.2),
    "PlayTheWinner": PlayTheWinner(),
    "Uniform": Uniform(),
}
TESTS = ("wald", "score", "fisher", "conditional", "unconditional")
ALTERNATIVES = ((0.35, 0.25), (0.5, 0.3), (0.7, 0.5), (0.9, 0.75))


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def numbers(values: Any, digits: int = 4) -> list[str]:
    return [f"{float(value):.{digits}f}" for value in values]


def anchors(law: ExactLaw) -> str:
    rows = []
    for test, published in PUBLISHED.items():
        rows.append([f"{test}, published", *numbers(published)])
        rows.append([f"{test}, here", *numbers(law.size(test, THETAS), 6)])
    one, zero = law.expected_pulls(0.35, 0.25)
    text = table(["size at", *map(str, THETAS)], rows)
    return text + f"\nE[N1 - N0] at (0.35, 0.25) is 96.10 as published, and {float(one - zero):.4f} here.\n"


def sizes(laws: dict[str, ExactLaw]) -> str:
    rows = []
    for name, law in laws.items():
        for test in TESTS:
            theta, most = law.max_size(test)
            rows.append([f"{name}: {test}", *numbers(law.size(test, THETAS)), f"{most:.4f}", f"{theta:.3f}"])
    return table(["size", *map(str, THETAS), "largest", "at"], rows)


def powers(laws: dict[str, ExactLaw]) -> str:
    one, zero = (np.array(column) for column in zip(*ALTERNATIVES, strict=True))
    rows = []
    for name, law in laws.items():
        pulls = law.expected_pulls(one, zero)[0]
        rows.append([f"{name}: E[N1]", *numbers(pulls, 1)])
        rows += [[f"{name}: {test}", *numbers(law.power(test, one, zero))] for test in TESTS[-2:]]
    return table(["power at", *map(str, ALTERNATIVES)], rows)


def biases(laws: dict[str, ExactLaw]) -> str:
    one, zero = (np.array(column) for column in zip(*ALTERNATIVES, strict=True))
    rows = []
    for name, law in laws.items():
        bias = law.bias(one, zero)
        rows += [[f"{name}: arm 1", *numbers(bias.arm1)], [f"{name}: arm 0", *numbers(bias.arm0)]]
        rows.append([f"{name}: difference", *numbers(bias.difference)])
    return table(["bias at", *map(str, ALTERNATIVES)], rows)


def rational_weights(horizon: int) -> dict[tuple[int, int, int, int], Fraction]:
    """Weighted numbers of paths of Thompson with a uniform prior, in whole numbers."""

    def beta(x: int, y: int) -> Fraction:
        return Fraction(factorial(x - 1) * factorial(y - 1), factorial(x + y - 1))

    layer = {(0, 0, 0, 0): Fraction(1)}
    for _ in range(horizon):
        after: dict[tuple[int, int, int, int], Fraction] = {}
        for (n1, s1, n0, s0), weight in layer.items():
            a, b, c, d = s1 + 1, n1 - s1 + 1, s0 + 1, n0 - s0 + 1
            up = sum((beta(c + i, b + d) / ((b + i) * beta(1 + i, b)) for i in range(a)), Fraction(0)) / beta(
                c, d
            )
            for state, part in (
                ((n1 + 1, s1, n0, s0), weight * up),
                ((n1 + 1, s1 + 1, n0, s0), weight * up),
                ((n1, s1, n0 + 1, s0), weight * (1 - up)),
                ((n1, s1, n0 + 1, s0 + 1), weight * (1 - up)),
            ):
                after[state] = after.get(state, Fraction(0)) + part
        layer = after
    return layer


def relative_error(horizon: int) -> tuple[float, float]:
    """Largest relative error of a weight, and the smallest weight."""
    law, worst, smallest = exact(Thompson(), horizon), 0.0, 1.0
    expected = rational_weights(horizon)
    for place, *counts in law.states():
        for state, q in zip(zip(*(c.tolist() for c in counts), strict=True), law.weights[place], strict=True):
            true = expected[state] / (comb(state[0], state[1]) * comb(state[2], state[3]))
            worst = max(worst, abs(float(Fraction(float(q)) / true - 1)))
            smallest = min(smallest, float(true))
    return worst, smallest


def off_one(law: ExactLaw) -> float:
    return float(np.abs(law.by_total(np.ones(law.weights.size, dtype=bool)) - 1.0).max())


def scaling(horizons: list[int], small: int) -> str:
    worst, smallest = relative_error(small)
    text = (
        f"For Thompson sampling with T = {small}, compared with exact integer arithmetic, the largest "
        "relative "
        f"error of a weight is {worst:.1e}; the smallest weight is {smallest:.1e}. At any T, the weights "
        f"given S successes should sum to 1:\n\n"
    )
    rows = [[f"{horizon:,}", f"{off_one(exact(Thompson(), horizon)):.1e}"] for horizon in horizons]
    return text + table(["T", "largest deviation from 1"], rows)


def timed(rule: Any, horizon: int) -> tuple[ExactLaw, float, float]:
    wall, spent = time.perf_counter(), time.process_time()
    law = exact(rule, horizon)
    return law, time.perf_counter() - wall, time.process_time() - spent


def times(horizon: int) -> str:
    rows = []
    for name, rule in RULES.items():
        exact(rule, 12)
        best = min((timed(rule, horizon)[1:] for _ in range(2)), key=lambda pair: pair[1])
        rows.append([name, *numbers(best, 2)])
    return table([f"rule, T = {horizon}", "seconds", "processor seconds"], rows)


def thousand() -> str:
    law, wall, spent = timed(Thompson(), 1000)
    start = time.process_time()
    conditional = law.size("conditional", THETAS)
    later = time.process_time() - start
    one, zero = law.expected_pulls(0.35, 0.25)
    text = (
        f"{law.weights.size:,} states in the last layer, {2 * law.weights.nbytes / 1e9:.2f} GB for two. "
        f"{wall:.0f} s, {spent:.0f} s of processor time; sizes of the conditional test {later:.0f} s more. "
        f"Weights given S sum to 1 within {off_one(law):.1e}. E[N1 - N0] at (0.35, 0.25): "
        f"{float(one - zero):.2f}.\n\n"
    )
    rows = [["wald", *numbers(law.size("wald", THETAS))], ["conditional", *numbers(conditional)]]
    return text + table(["size at", *map(str, THETAS)], rows)


def page(full: bool) -> Iterator[str]:
    horizon = 200 if full else 20
    yield "# Exact tests of two-arm binary trials\n"
    command = COMMAND + " --quick" * (not full)
    yield f"Command: `{command}`. Date: {evidence.stamp()}. No random numbers.\n"
    yield "Derivations: [exact tests](../theory/exact.md).\n"
    yield (
        "## Published numbers\n\nThe table is for Thompson sampling with a Beta(1, 1) prior, T = 200, "
        "two-sided "
        "tests at 5%, and equal arms.\n"
    )
    yield anchors(exact(Thompson(), 200))
    yield (
        "At .25, the unpooled Wald test has size .1666488, which is lower by one in the last digit than the "
        "published .1667; rounding twice, via .16665, would explain the difference. If the standard error is "
        "0, the statistic is infinite, or 0 if the proportions are equal; if an arm has no pulls, it is 0. "
        "If the test never rejects when the standard error is 0, or always rejects when an arm has no pulls, "
        "all printed digits are unchanged. However, if the test does not reject whenever the variance of "
        "either arm is 0, they change (.0878 at .10).\n"
    )
    laws = {name: exact(rule, horizon) for name, rule in RULES.items()}
    yield f"## Size, T = {horizon}, nominal 5%\n\nThe tests wald, score and fisher ignore the design.\n"
    yield sizes(laws)
    yield f"## Power of the exact tests, T = {horizon}, at (theta1, theta0)\n"
    yield powers(laws)
    yield f"## Bias of sample means, T = {horizon}\n"
    yield biases(laws)
    yield "## Rounding\n"
    yield scaling([60, 200, 400] if full else [20], 20 if full else 8)
    yield "## Time\n\n"
    yield "The times are for two cores that were shared with other work, and exclude compilation.\n"
    yield times(horizon)
    if full:
        yield "## Thompson at T = 1,000\n"
        yield thousand()


def main() -> None:
    options = evidence.parser(__doc__).parse_args()
    text = "\n".join(page(not options.quick))
    evidence.publish(text, __file__, options)
    if options.quick:  # numbers of an exact law, at the page's own T
        for theta in map(str, THETAS):
            evidence.hold_cell(text, __file__, "wald, here", theta)


if __name__ == "__main__":
    main()
