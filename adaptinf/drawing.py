"""The plots of logs and results that are drawn by their own methods, using `adaptinf.plots`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def drawn(picture: str, of: Any, ax: Axes | None, options: dict[str, Any]) -> Axes:
    """Draw an object with the plot of the given name; returns the axes."""
    # Plots import results, so results must not import plots; the name is resolved when something is drawn.
    axes: Axes = getattr(import_module("adaptinf.plots"), picture)(of, ax, **options)
    return axes
