"""Measured against promised privacy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.audit.privacy.results import EpsilonLowerBound
from adaptinf.parameters import FLAG, refuse
from adaptinf.plots.drawing.rows import row_axes
from adaptinf.plots.drawing.style import GREY, axes_problem, label_text, legend_of, look, small
from adaptinf.plots.drawing.terms import by_name
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def privacy(bounds: Any, ax: Axes | None = None, *, log_scale: bool = False, legend: str = "above") -> Axes:
    """Measured lower bounds of epsilon against what was promised.

    Parameters
    ----------
    bounds : EpsilonLowerBound, iterable of them, or mapping of str to them
        What ``audit.epsilon_lower_bound`` returned; a row each, by name or by target.
    ax : Axes, optional
        Where to draw; by default a new figure of column width.
    log_scale : bool
        Whether the axis is logarithmic. A bound of 0 is then an arrow at its left end.
    legend : {"above", "best", "upper left", "upper right", "lower left", "lower right", "none"}
        Where the legend goes.

    Returns
    -------
    Axes

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    ParameterError
        Listing everything that does not fit.

    Notes
    -----
    A dot is the bound: with its confidence the true epsilon lies there or to the right. A bar is the promise.
    A dot to the right of its bar refutes the promise, and is drawn as a square in another colour. The line
    between them is what the audit leaves open.

    Examples
    --------
    >>> import adaptinf as ai
    >>> found = ai.audit.EpsilonLowerBound(
    ...     epsilon=0.8,
    ...     confidence=0.95,
    ...     delta=0.0,
    ...     runs=2000,
    ...     tested=1000,
    ...     hits=(300, 120),
    ...     event="output above 1",
    ...     target="Laplace",
    ...     promised=ai.PrivacyGuarantee(epsilon=1.0),
    ... )
    >>> ax = ai.plots.privacy({"laplace": found})
    >>> ax.get_xlabel()
    'epsilon (nats)'
    """
    named, problems = _bounds_named(bounds)
    refuse(
        "plots.privacy", problems + axes_problem("plots.privacy", ax, legend) + FLAG("log_scale", log_scale)
    )
    found = list(named.values())
    measured = np.array([one.epsilon for one in found])
    promised = np.array([math.nan if one.promised is None else one.promised.epsilon for one in found])
    refuted = np.array([one.refuted for one in found])
    own = row_axes(ax, list(named), 1)
    ends = _epsilon_ends(measured, promised, log_scale)
    if log_scale:
        own.set_xscale("log")
    own.set_xlim(*ends)
    shown = np.maximum(measured, ends[0])
    rows = np.arange(len(found), dtype=np.float64)
    between = ~np.isnan(promised)
    own.hlines(
        rows[between], shown[between], np.minimum(promised, ends[1])[between], colors=GREY, linewidths=0.9
    )
    handles = []
    confidences = {one.confidence for one in found}
    level = f", {100.0 * confidences.pop():g}% confidence" if len(confidences) == 1 else ""
    groups = ((~refuted, 0, f"measured: at least{level}"), (refuted, 1, "measured: promise refuted"))
    for chosen, place, label in groups:
        if chosen.any():
            handles += _dots(own, shown[chosen], rows[chosen], place, label)
    low = measured < ends[0]
    own.plot(shown[low], rows[low], linestyle="none", marker="<", color=look(0).colour, clip_on=False)
    finite = between & np.isfinite(promised)
    handles += own.plot(
        promised[finite],
        rows[finite],
        linestyle="none",
        marker="|",
        markersize=11.0,
        markeredgewidth=1.8,
        color="black",
        label="promised",
    )
    _tell_no_promise(own, promised, rows, ends)
    own.set_xlabel("epsilon (nats)")
    legend_of(own, handles, legend, grow=ax is None)
    return own


def _bounds_named(bounds: Any) -> tuple[dict[str, EpsilonLowerBound], list[str]]:
    if isinstance(bounds, Iterable) and not isinstance(bounds, (Mapping, str, bytes)):
        listed = list(bounds)
        targets = [getattr(one, "target", "") for one in listed]
        keys = [
            target if targets.count(target) == 1 else f"{place}: {target}"
            for place, target in enumerate(targets, 1)
        ]
        bounds = dict(zip(keys, listed, strict=True))
    elif isinstance(bounds, EpsilonLowerBound):
        bounds = {bounds.target: bounds}
    return by_name("bounds", bounds, (EpsilonLowerBound,))


def _epsilon_ends(measured: FloatArray, promised: FloatArray, log_scale: bool) -> tuple[float, float]:
    known = np.concatenate([measured, promised])
    known = known[np.isfinite(known)]
    largest = float(known.max(initial=0.0)) or 1.0
    if not log_scale:
        return 0.0, 1.1 * largest
    positive = known[known > 0.0]
    return float(positive.min(initial=largest)) / 2.0, 1.5 * largest


def _dots(ax: Axes, x: FloatArray, y: FloatArray, place: int, label: str) -> list[Any]:
    shown = look(place)
    return ax.plot(
        x, y, linestyle="none", marker=shown.marker, markersize=5.0, color=shown.colour, label=label, zorder=3
    )


def _tell_no_promise(ax: Axes, promised: FloatArray, rows: FloatArray, ends: tuple[float, float]) -> None:
    for row, value in zip(rows, promised, strict=True):
        if not math.isfinite(value):
            text = "nothing promised" if math.isnan(value) else "promised: infinite"
            ax.text(
                ends[1], row, label_text(text), ha="right", va="bottom", fontsize=0.95 * small(ax), color=GREY
            )
