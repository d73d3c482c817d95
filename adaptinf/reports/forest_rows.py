"""The plot of a report: a row for each estimate, with its interval and its numbers next to it.

The plot is a table, so names of any length wrap, numbers can be copied, and print, dark screens and screen
readers need no separate plot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adaptinf.markup import escaped
from adaptinf.plots.interval_rows import room
from adaptinf.reports.shown_numbers import Shown
from adaptinf.texts import arm_label

_LONG, _WIDEST = 9, 36
"""Label lengths, in characters, above which names are placed above rows on a phone, or wrapped everywhere."""
_TICKS = 2.5
_FAR = 8.0
"""Largest number of median interval lengths shown by the axis on either side of the estimates."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Limits of the plot's axis."""

    begin: float
    end: float

    @classmethod
    def of(cls, shown: Shown, places: Sequence[int]) -> Axis:
        """Limits that show the intervals, and the value against which differences are tested."""
        estimate = shown.results.estimate[list(places)]
        low, high = shown.limits.to_numpy(dtype=np.float64)[list(places)].T
        nulls = [] if shown.is_of_means else [float(shown.results.null)]
        length = high - low
        length = length[np.isfinite(length)]
        if length.size:
            far = _FAR * float(np.median(length))
            known = [*estimate[np.isfinite(estimate)], *nulls]
            if known:
                low, high = np.maximum(low, min(known) - far), np.minimum(high, max(known) + far)
        return cls(*room([estimate, low, high, nulls]))

    def share(self, value: float) -> float:
        """Position of a value along the axis, in percent."""
        return 100.0 * (value - self.begin) / (self.end - self.begin)

    @property
    def ticks(self) -> list[float]:
        """Round values along the axis."""
        size = (self.end - self.begin) / _TICKS
        unit = 10.0 ** math.floor(math.log10(size))
        step = next(unit * factor for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if unit * factor >= size)
        first = math.ceil(self.begin / step)
        return [at * step for at in range(first, math.floor(self.end / step) + 1)]


def forest(shown: Shown, caption: str) -> str:
    """The table that makes up the plot, with the control as its axis."""
    places = shown.chosen
    axis = Axis.of(shown, places)
    names = [shown.row_name(place) for place in places]
    told = [_told(shown, place) for place in places]
    longest = max(map(len, names))
    kind = "forest stacked" if longest > _LONG else "forest"
    widths = [min(longest, _WIDEST), *(max(map(len, column)) for column in zip(*told, strict=True))]
    style = "".join(f"--w{place}:{width}ch;" for place, width in enumerate(widths))
    if not shown.is_of_means:
        style += f"--zero:{axis.share(float(shown.results.null)):.2f}%;"
    rows = "\n".join(_row(shown, axis, *row) for row in zip(places, names, told, strict=True))
    head = (
        '<th scope="col"><span class="unseen">term</span></th><th scope="col" class="drawn">'
        + _head(shown, axis)
        + "</th>"
    )
    for name in ("estimate", f"{shown.level} interval"):
        head += f'<th scope="col" class="number">{name}</th>'
    return (
        f'<table class="{kind}" style="{style}" data-begin="{axis.begin!r}" data-end="{axis.end!r}">\n'
        f"<caption>{escaped(caption)}</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n"
        f'<tfoot aria-hidden="true"><tr><td></td><td class="drawn">{_scale(axis)}</td><td></td><td></td></tr>'
        "</tfoot>\n</table>"
    )


def _head(shown: Shown, axis: Axis) -> str:
    """Label of the axis; above the line of a control, its name."""
    if shown.control is None:
        return escaped(shown.target)
    name = arm_label(shown.control)
    name = name if len(name) <= _LONG else "control"
    at = axis.share(float(shown.results.null))
    text = f'<text x="{at:.2f}%" y="13" text-anchor="{_side(at, 12.0)}">{escaped(name)}</text>'
    return f'<svg role="img" aria-label="{escaped(shown.target)}" width="100%" height="17">{text}</svg>'


def _told(shown: Shown, place: int) -> tuple[str, str]:
    """Estimate and interval of a row."""
    at, low, high, _ = shown.cells(place)
    missing = np.isnan(shown.limits.iloc[place]).any()
    return at, "no interval" if missing else f"{low} to {high}"


def _side(at: float, near: float) -> str:
    """Alignment of a text at its position along the axis, so that it stays inside the plot."""
    return "start" if at < near else "end" if at > 100.0 - near else "middle"


def _row(shown: Shown, axis: Axis, place: int, name: str, told: tuple[str, str]) -> str:
    ends = shown.limits.iloc[place]
    return (
        f'<tr><th scope="row">{escaped(name)}</th>'
        f'<td class="drawn">{_drawn(shown.results.estimate[place], ends["low"], ends["high"], axis)}</td>'
        f'<td class="number">{escaped(told[0])}</td><td class="number">{escaped(told[1])}</td></tr>'
    )


def _drawn(at: float, low: float, high: float, axis: Axis) -> str:
    """One interval, in percent of the axis; an arrow indicates an end beyond it."""
    parts = []
    if not (math.isnan(low) or math.isnan(high)):
        start, stop = axis.share(max(low, axis.begin)), axis.share(min(high, axis.end))
        parts.append(f'<line x1="{start:.2f}%" x2="{stop:.2f}%" y1="11" y2="11"/>')
        parts += [_arrow("0%", 1)] if low < axis.begin else []
        parts += [_arrow("100%", -1)] if high > axis.end else []
    if axis.begin <= at <= axis.end:
        parts.append(f'<circle cx="{axis.share(at):.2f}%" cy="11" r="4.5"/>')
    return f'<svg aria-hidden="true" width="100%" height="22">{"".join(parts)}</svg>'


def _arrow(x: str, way: int) -> str:
    return f'<svg x="{x}" overflow="visible"><path d="M0 11 l{6 * way} -5 v10 z"/></svg>'


def _scale(axis: Axis) -> str:
    """The ticks below the last row."""
    ticks = axis.ticks
    shown = [f"{tick:.6g}" for tick in ticks]
    parts = []
    for tick, text in zip(ticks, shown, strict=True):
        at = axis.share(tick)
        parts.append(f'<line x1="{at:.2f}%" x2="{at:.2f}%" y1="0" y2="4"/>')
        parts.append(f'<text x="{at:.2f}%" y="17" text-anchor="{_side(at, 6.0)}">{text}</text>')
    return f'<svg aria-hidden="true" width="100%" height="20">{"".join(parts)}</svg>'
