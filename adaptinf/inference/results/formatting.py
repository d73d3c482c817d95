"""Numbers as tables show them."""

from __future__ import annotations

import math


def format_number(x: float) -> str:
    """Number for a table: four decimals, or an exponent where they would mislead."""
    if not math.isfinite(x):
        return str(float(x))
    size = abs(x)
    if size == 0 or 1e-4 <= size < 1e3:
        return f"{x:.4f}"
    return f"{x:.2f}" if 1e3 <= size < 1e6 else f"{x:.2e}"


def format_pvalue(log_p: float) -> str:
    """P-value for a table, also where it underflows."""
    if math.isnan(log_p):
        return "nan"
    if log_p < -300.0 * math.log(10.0):
        return "<1e-300" if log_p > -math.inf else "0"
    if log_p >= math.log(0.001):
        return f"{math.exp(log_p):.3f}"
    exponent = math.floor(log_p / math.log(10.0))
    mantissa = f"{math.exp(log_p - exponent * math.log(10.0)):.1f}"
    if mantissa == "10.0":
        mantissa, exponent = "1.0", exponent + 1
    return f"{mantissa}e{exponent:03d}"


def format_statistic(x: float) -> str:
    """Distance from the null in standard errors."""
    return f"{x:.3f}" if not math.isfinite(x) or abs(x) < 1e4 else f"{x:.2e}"
