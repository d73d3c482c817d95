"""Which ranges and laws of noise a counter accepts."""

from __future__ import annotations

from adaptinf.parameters import FINITE, OPEN_SHARE, POSITIVE, Number, OneOf, OrNone


def range_problems(low: float, high: float, sensitivity: float | None) -> list[str]:
    """Problems of the range of an item, and of a stated sensitivity."""
    problems = FINITE("low", low) + FINITE("high", high)
    if not problems and not low < high:
        problems.append(f"low must be below high, got {low} and {high}")
    return problems + OrNone(POSITIVE)("sensitivity", sensitivity)


def noise_problems(noise: str, delta: float, mechanism: str) -> list[str]:
    """Problems of a law of noise, its delta and the mechanism that it goes with."""
    problems = OneOf("laplace", "gaussian")("noise", noise)
    if not problems and noise == "gaussian":
        problems += OPEN_SHARE("delta", delta)
        if mechanism != "binary":
            problems.append("normal noise needs the binary mechanism and its horizon")
    elif Number(0.0, 0.0)("delta", delta):
        problems.append(f"delta must be 0 with Laplace noise, got {delta!r:.60}")
    return problems
