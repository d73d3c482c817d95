"""The numbers behind the max-information correction, on plain arrays and in natural logarithms.

For a collection that is epsilon-differentially private in n rounds, let c = epsilon sqrt(n / 2) and
s = sqrt(ln(2 / beta)). The max-information is at most min(epsilon n, c (c + s)) nats, and a p-value p becomes
the minimum over beta of exp(information) p + beta.

References
----------
Dwork, C., Feldman, V., Hardt, M., Pitassi, T., Reingold, O. and Roth, A. (2015). Generalization in
adaptive data analysis and holdout reuse.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import numpy as np

from adaptinf.typing import FloatArray

Bound: TypeAlias = Literal["max-information", "moment"]

_LN2 = math.log(2.0)
_LN4 = math.log(4.0)
_S_AT_BETA_ONE = math.sqrt(_LN2)
_NEWTON_STEPS = 60
_TOLERANCE = 1e-12


def information(epsilon: float, n: int, beta: float) -> float:
    """Max-information in nats; at beta = 0 only epsilon n bounds it."""
    cap = epsilon * n
    if beta == 0.0:
        return cap
    c = epsilon * math.sqrt(0.5 * n)
    return min(cap, c * (c + math.sqrt(_LN2 - math.log(beta))))


def log_corrected(log_p: FloatArray, epsilon: float, n: int, bound: Bound) -> FloatArray:
    """Logarithm of the smallest corrected p-value."""
    c = epsilon * math.sqrt(0.5 * n)
    if c == 0.0:
        return log_p.copy()
    optimum = _log_moment(log_p, c) if bound == "moment" else _log_smallest_over_beta(log_p, c)
    return np.maximum(log_p, np.minimum(optimum, np.minimum(0.0, epsilon * n + log_p)))


def log_level(log_alpha: float, epsilon: float, n: int, bound: Bound) -> tuple[float, float]:
    """Logarithm of the corrected level, and the share of alpha that is spent on beta."""
    c = epsilon * math.sqrt(0.5 * n)
    capped = log_alpha - epsilon * n
    if c == 0.0 or math.isinf(log_alpha):
        return capped, 0.0
    if bound == "moment":
        root = 0.5 * (c + math.sqrt(c * c - 4.0 * log_alpha))
        return max(capped, -root * root), 0.0
    s = _best_s(log_alpha, c)
    level = log_alpha - math.log1p(0.5 * c / s) - c * (c + s)
    return (level, c / (c + 2.0 * s)) if level > capped else (capped, 0.0)


def _log_moment(log_p: FloatArray, c: float) -> FloatArray:
    """Logarithm of min(1, exp(-l + c sqrt(l))), l = -ln p."""
    root = np.sqrt(-log_p)
    return np.where(np.isinf(root), -np.inf, np.minimum(0.0, root * (c - root)))


def _log_smallest_over_beta(log_p: FloatArray, c: float) -> FloatArray:
    """Logarithm of min over 0 < beta < 1 of exp(c (c + s)) p + beta; 0 where no beta brings it below 1."""
    offset = c * c + log_p + math.log(c) - _LN4
    useful = np.isfinite(offset) & (_stationarity(_S_AT_BETA_ONE, c, offset) < 0.0)
    s = _largest_root(c, offset[useful])
    result = np.where(np.isnan(log_p), np.nan, 0.0)
    result[useful] = np.minimum(0.0, np.logaddexp(c * (c + s) + log_p[useful], _LN2 - s * s))
    return result


def _stationarity(s: FloatArray | float, c: float, offset: FloatArray) -> FloatArray:
    """s^2 + c s - ln s + offset: the sign of d/ds of exp(c (c + s)) p + 2 exp(-s^2)."""
    return s * (s + c) - np.log(s) + offset


def _largest_root(c: float, offset: FloatArray) -> FloatArray:
    """Root of `_stationarity` right of beta = 1, where it is convex and increasing, by Newton."""
    # -ln s >= -s / e: `_stationarity` is not negative at the root of s^2 + (c - 1 / e) s + offset.
    half = 0.5 * (c - math.exp(-1.0))
    spread = np.sqrt(half * half - offset)
    s = spread - half if half < 0.0 else -offset / (half + spread)
    s = np.maximum(s, _S_AT_BETA_ONE)
    for _ in range(_NEWTON_STEPS):
        step = _stationarity(s, c, offset) / (2.0 * s + c - 1.0 / s)
        s = s - step
        if not np.any(np.abs(step) > _TOLERANCE * s):
            break
    return s


def _best_s(log_alpha: float, c: float) -> float:
    """Root s of s^2 = ln(2 / alpha) + ln(1 + 2 s / c), by Newton on a convex function from the right.

    There (alpha - beta) exp(-c (c + s)) is largest: its derivative vanishes at 2 s beta = c (alpha - beta).
    """
    goal = _LN2 - log_alpha
    # 1 + 2 s / c <= (1 + 2 / c) max(1, s), and ln s <= s / e.
    half = 0.5 * math.exp(-1.0)
    s = half + math.sqrt(half * half + goal + math.log1p(2.0 / c))
    for _ in range(_NEWTON_STEPS):
        step = (s * s - goal - math.log1p(2.0 * s / c)) / (2.0 * s - 2.0 / (c + 2.0 * s))
        s -= step
        if abs(step) <= _TOLERANCE * s:
            break
    return s
