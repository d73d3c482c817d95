"""The plots that a log and results draw of themselves, using `adaptinf.plots`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def drawn(picture: str, of: Any, ax: Axes | None, options: dict[str, Any]) -> Axes:
    """The axes with a plot of an object, by the name of the plot."""
    # Plots import results, so results must not import plots; the name is resolved when something is drawn.
    axes: Axes = getattr(import_module("adaptinf.plots"), picture)(of, ax, **options)
    return axes
