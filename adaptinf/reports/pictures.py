"""The pictures of a report, as SVG with a text in their place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf import plots
from adaptinf.claims.reports import page as claims
from adaptinf.log import AdaptiveLog
from adaptinf.plots.drawing.files import drawn
from adaptinf.plots.drawing.style import pyplot
from adaptinf.reports.collection import shown_limits
from adaptinf.reports.page import picture

if TYPE_CHECKING:
    from adaptinf.inference.results.base import Results
    from adaptinf.sums import Sums

_MOST = 40
"""Rows of a forest plot, and arms of a picture over the rounds: more are not legible."""


def pictures(results: Results | None, log: AdaptiveLog | Sums | None, alpha: float) -> str:
    """Allocation and propensities over the rounds, and estimates with their intervals."""
    parts = []
    if isinstance(log, AdaptiveLog) and log.n_arms <= _MOST:
        counts = np.bincount(log.arrays.action, minlength=log.n_arms)
        shares = ", ".join(
            f"{arm} {share:.1%}" for arm, share in zip(log.arms, counts / log.n_rounds, strict=True)
        )
        alt = claims.SHARES_TEXT(shares=shares)
        parts.append(_shown(plots.allocation(log), alt, claims.SHARES()))
        if log.arrays.propensity is not None:
            smallest = float(log.arrays.propensity.min())
            alt = claims.PROPENSITIES_TEXT(smallest=smallest)
            parts.append(_shown(plots.propensities(log), alt, claims.PROPENSITIES()))
    if results is not None and len(results.terms) <= _MOST:
        level = f"{100.0 * (1.0 - alpha):g}%"
        limits = shown_limits(results, alpha)
        ends = zip(results.terms, results.estimate, limits["low"], limits["high"], strict=True)
        told = "; ".join(f"{term}: {at:.4g}, {low:.4g} to {high:.4g}" for term, at, low, high in ends)
        both = "" if results.correction is None else ", naive and corrected"
        caption = f"Estimates with {level} intervals{both}."
        parts.append(_shown(plots.forest(results, alpha=alpha), f"{caption} {told}", caption))
    return "\n".join(parts)


def _shown(axes: Any, alt: str, caption: str) -> str:
    """A picture in the page; its figure is closed."""
    figure = axes.get_figure(root=True)
    try:
        return picture(drawn(figure, "svg"), alt, caption)
    finally:
        pyplot("report").close(figure)
