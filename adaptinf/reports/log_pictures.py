"""Pictures of how rounds were allocated over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf import plots
from adaptinf.claims.reports import page as claims
from adaptinf.errors import MissingDependencyError, ParameterError
from adaptinf.log import AdaptiveLog
from adaptinf.plots.picture_files import drawn
from adaptinf.plots.style import pyplot
from adaptinf.reports.report_page import paragraph, picture

if TYPE_CHECKING:
    from adaptinf.sums import Sums

_MOST = 8
"""Arms of a picture over the rounds: more are not legible."""


def allocation_pictures(log: AdaptiveLog | Sums | None) -> str:
    """Shares and propensities over the rounds; why there are none."""
    if not isinstance(log, AdaptiveLog):
        return paragraph(claims.NEEDS_LOG() if log is None else claims.NO_ROUNDS())
    try:
        return "\n".join(_pictures(log))
    except (MissingDependencyError, ParameterError) as error:
        return paragraph(str(error))


def _pictures(log: AdaptiveLog) -> list[str]:
    counts = np.bincount(log.arrays.action, minlength=log.n_arms)
    order = sorted(np.argsort(-counts, kind="stable")[:_MOST].tolist())
    arms = [log.arms[place] for place in order]
    few = claims.MOST_ASSIGNED(shown=_MOST, arms=log.n_arms) if log.n_arms > _MOST else ""
    shares = ", ".join(f"{log.arms[place]} {counts[place] / log.n_rounds:.1%}" for place in order)
    told = f"{claims.SHARES_TEXT(shares=shares)} {few}".strip()
    parts = [_shown(plots.allocation(log, arms=arms), claims.SHARES(), told)]
    if log.arrays.propensity is not None:
        told = claims.PROPENSITIES_TEXT(smallest=float(log.arrays.propensity.min()))
        picture_of = plots.propensities(log, arms=arms)
        parts.append(_shown(picture_of, claims.PROPENSITIES(), f"{told} {few}".strip()))
    return parts


def _shown(axes: Any, alt: str, caption: str) -> str:
    """A picture in the page; its figure is closed."""
    figure = axes.get_figure(root=True)
    try:
        return picture(drawn(figure, "svg"), alt, caption)
    finally:
        pyplot("report").close(figure)
