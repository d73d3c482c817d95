"""Classical and analytic normal noise, with the exact delta in 50 digits: makes docs/evidence/gaussian.md."""

from __future__ import annotations

import math
import time
from pathlib import Path

import evidence
import mpmath as mp

from adaptinf.privacy.real_mechanisms import analytic_scale, gaussian_delta

HERE = Path(__file__).resolve().parent
EPSILONS = (0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
DELTAS = (1e-3, 1e-6, 1e-9)
LESS = 1e-6
PAGE = """\
# Normal noise: classical and analytic calibration

Command: `python docs/evidence/gaussian.py`. No random numbers. Date: {today}. Running time: {seconds:.1f} s.

The table shows standard deviations for a sensitivity of 1. Classical: sqrt(2 log(1.25 / delta)) / epsilon,
which is proved only for epsilon below 1; for larger values, `classical_scale` refuses, and the table shows
the formula. Analytic: the smallest valid standard deviation (`analytic_scale`). "Ratio" is classical divided
by analytic. "Attains" is the exact delta of the classical noise at this epsilon, and "valid" states whether
it is at most delta; if this is so without a proof, the word is in parentheses.

{scales}

The classical formula gives up to {most:.2f} times the necessary noise, {invalid}
It does not give enough noise for epsilon above {ends}.

## The smallest valid one

The exact delta, Phi(1/(2 s) - epsilon s) - e^epsilon Phi(-1/(2 s) - epsilon s), is evaluated to {digits}
digits by mpmath, without the library, at the analytic s and at s (1 - 10^-6), both relative to delta. The
first must be at most 1 and the second above 1. `analytic_scale` exceeds the solution by a relative 10^-13,
which explains why the first differs from 1. "Solution" is the root found by mpmath, "apart" is the relative
distance of `analytic_scale` from it, and "`gaussian_delta`" is the largest relative error of the library's
delta at the three scales of the row.

{exact}

The largest distance from the root is {apart:.1e}. The largest error of `gaussian_delta` is {error:.1e}.
"""
DIGITS = 50


def exact_delta(epsilon: float, scale: mp.mpf) -> mp.mpf:
    """Balle and Wang's formula, in the working precision."""
    shift, half = mp.mpf(epsilon) * scale, 1 / (2 * scale)
    return mp.ncdf(half - shift) - mp.exp(mp.mpf(epsilon)) * mp.ncdf(-half - shift)


def exact_scale(epsilon: float, delta: float, near: float) -> mp.mpf:
    """Root of the exact delta, by bisection."""
    low, high = mp.mpf(near) * (1 - mp.mpf(10) ** -6), mp.mpf(near) * (1 + mp.mpf(10) ** -6)
    if not exact_delta(epsilon, low) > mp.mpf(delta) > exact_delta(epsilon, high):
        raise ArithmeticError("the root is not where it was looked for")
    for _ in range(3 * DIGITS):
        middle = (low + high) / 2
        above = exact_delta(epsilon, middle) > mp.mpf(delta)
        low, high = (middle, high) if above else (low, middle)
    return high


def classical_end(delta: float) -> float:
    """Epsilon from which on the classical noise gives more than delta."""
    low, high = 1.0, 100.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        scale = mp.sqrt(2 * mp.log(mp.mpf(1.25) / mp.mpf(delta))) / mp.mpf(middle)
        low, high = (low, middle) if exact_delta(middle, scale) > mp.mpf(delta) else (middle, high)
    return high


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def scales() -> tuple[str, float, list[str]]:
    rows, most, invalid = [], 0.0, []
    for epsilon in EPSILONS:
        for delta in DELTAS:
            classical = math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon
            analytic = analytic_scale(epsilon, delta)
            attained = exact_delta(epsilon, mp.mpf(classical))
            valid = "yes" if attained <= mp.mpf(delta) else "**no**"
            if epsilon >= 1.0 and valid == "yes":
                valid = "(yes)"
            if valid == "**no**":
                invalid.append(f"epsilon = {epsilon:g}, delta = {delta:g}")
            most = max(most, classical / analytic)
            figures = [f"{classical:.4f}", f"{analytic:.4f}", f"{classical / analytic:.3f}"]
            rows.append([f"{epsilon:g}", f"{delta:g}", *figures, mp.nstr(attained, 4), valid])
    head = ["epsilon", "delta", "classical", "analytic", "ratio", "attains", "valid"]
    return table(head, rows), most, invalid


def exact() -> tuple[str, float, float]:
    rows, apart, worst = [], 0.0, 0.0
    for epsilon in EPSILONS:
        for delta in DELTAS:
            scale = analytic_scale(epsilon, delta)
            classical = math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon
            found = exact_delta(epsilon, mp.mpf(scale)) / mp.mpf(delta)
            less = exact_delta(epsilon, mp.mpf(scale) * (1 - mp.mpf(LESS))) / mp.mpf(delta)
            if not found <= 1 < less:
                raise ArithmeticError(f"{scale} is not the smallest at epsilon = {epsilon}, delta = {delta}")
            root = exact_scale(epsilon, delta, scale)
            distance = float(mp.mpf(scale) / root - 1)
            error = max(
                abs(float(gaussian_delta(epsilon, s) / exact_delta(epsilon, mp.mpf(s)) - 1))
                for s in (scale, scale * (1.0 - LESS), classical)
            )
            apart, worst = max(apart, abs(distance)), max(worst, error)
            figures = [mp.nstr(root, 16), f"1 - {mp.nstr(1 - found, 2)}", f"1 + {mp.nstr(less - 1, 3)}"]
            rows.append([f"{epsilon:g}", f"{delta:g}", *figures, f"{distance:.1e}", f"{error:.1e}"])
    head = ["epsilon", "delta", "solution", "at s", "at s (1 - 10^-6)", "apart", "`gaussian_delta`"]
    return table(head, rows), apart, worst


def main() -> None:
    options = evidence.parser(__doc__).parse_args()
    begin = time.perf_counter()
    with mp.workdps(DIGITS):
        by_scale, most, invalid = scales()
        by_delta, apart, error = exact()
        ends = ", ".join(f"{classical_end(delta):.2f} (delta = {delta:g})" for delta in DELTAS)
    told = (
        "and is valid in all of these cells." if not invalid else f"but not enough at {'; '.join(invalid)}."
    )
    page = PAGE.format(
        today=evidence.stamp(),
        seconds=time.perf_counter() - begin,
        scales=by_scale,
        most=most,
        invalid=told,
        ends=ends,
        digits=DIGITS,
        exact=by_delta,
        apart=apart,
        error=error,
    )
    evidence.publish(page, __file__, options)
    if options.quick:  # nothing is omitted: it takes a second
        evidence.hold_cell(page, __file__, "1 | 0.001", "analytic")


if __name__ == "__main__":
    main()
