"""Pictures of the pages, as SVG on a light or a dark background."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from adaptinf import plots
from adaptinf.inference.sequences import SequenceResults
from adaptinf.log import AdaptiveLog
from adaptinf.plots.picture_files import drawn
from adaptinf.plots.style import COLOURS, date_axis, grey, lined, pyplot

_WIDTH, _MOST = 3.8, 8
"""Width in inches at which a phone does not shrink the text; largest number of arms in a picture."""


def in_theme(theme: str, draw: Callable[[], Any]) -> bytes:
    """A plot as SVG; its figure is closed."""
    with plots.theme(theme, width=_WIDTH):
        figure = draw().get_figure(root=True)
        try:
            return drawn(figure, "svg")
        finally:
            pyplot("the pages of a trial").close(figure)


def enrolment(times: Sequence[float], horizon: int, looks: Sequence[int]) -> Any:
    """Participants over time, with the planned number and the planned looks."""
    _, axes = plots.figure()
    lined(axes)
    dates = [datetime.fromtimestamp(one, UTC) for one in times]
    axes.step(dates, range(1, len(dates) + 1), where="post", color=COLOURS[0], linewidth=1.4)
    for after in sorted({*looks, horizon}):
        axes.axhline(after, color=grey(axes), linewidth=0.8, linestyle="-" if after == horizon else ":")
    axes.set_ylim(0, 1.05 * horizon)
    axes.set_ylabel("participants")
    date_axis(axes)
    return axes


def allocation(log: AdaptiveLog) -> Any:
    """Shares of the arms; if there are many, of those with the most participants."""
    counts = log._rounds_by_arm()
    order = sorted(sorted(range(log.n_arms), key=lambda place: -counts[place])[:_MOST])
    return plots.allocation(log, arms=[log.arms[place] for place in order])


def sequence(found: SequenceResults) -> Any:
    """The sequence of each arm; if there are many, of the first ones."""
    return plots.confidence_sequence(found, terms=found.terms[:_MOST])
