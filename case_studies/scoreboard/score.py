"""From a tool's intervals to a row of `results.csv`."""

from __future__ import annotations

from typing import Any

import numpy as np

COLUMNS = (
    "cell", "tool", "target", "runs", "answered", "coverage", "below", "above", "width", "seconds", "warned",
)  # fmt: skip
WIDTH = 2 * 1.959964  # of an interval, in standard errors


def row(cell: str, tool: str, target: str, found: dict[str, list[Any]]) -> dict[str, Any]:
    """One row. An interval that was refused is no miss: it lowers `answered`.

    `below` is the share of intervals that lie below the truth, `above` that of those above it; `width` the
    median width over the oracle's, `seconds` the median of processor time, `warned` the share of answers with
    a warning.
    """
    low, high, truth, error = (
        np.array(found[name], dtype=float) for name in ("low", "high", "truth", "error")
    )
    answered = ~np.isnan(low)
    some = answered.any()

    def share(hits: np.ndarray) -> float | str:
        return round(float(hits[answered].mean()), 4) if some else ""

    ratios = (high - low)[answered] / (WIDTH * error[answered])
    return {
        "cell": cell,
        "tool": tool,
        "target": target,
        "runs": len(low),
        "answered": int(answered.sum()),
        "coverage": share((low <= truth) & (truth <= high)),
        "below": share(high < truth),
        "above": share(low > truth),
        "width": float(f"{np.median(ratios):.4g}") if some else "",
        "seconds": float(f"{np.median(found['seconds']):.3g}"),
        "warned": share(np.array(found["warned"], dtype=bool)),
    }
