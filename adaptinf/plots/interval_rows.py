"""Items drawn by name and term: rows of estimates with intervals, several series per row."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from adaptinf.claims.tables import LIFTS, NO_UNIT
from adaptinf.inference.results.fit_results import Results
from adaptinf.parameters import number_array
from adaptinf.plots.style import (
    grey,
    ground,
    label_text,
    look,
    one_for_each,
    prepared,
    short_names,
    small,
)
from adaptinf.texts import absent, arm_label
from adaptinf.typing import BoolArray, FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


ESTIMANDS = {
    "arm-mean": "mean reward",
    "bin-mean": "mean reward in the bin",
    "policy-value": "mean reward of the policy",
    "coefficient": "coefficient",
    "projection": "coefficient of the effect",
    "contrast": "difference in mean reward",
    "lift": "relative lift",
    "ratio": "ratio of means",
    "ratio-contrast": "difference of ratios of means",
    "ratio-lift": "relative lift of the ratio",
    "cate": "difference in mean reward",
    "interaction": "difference of effects",
    "policy-contrast": "difference in mean reward",
}
MEANS = {"arm-mean", "bin-mean", "policy-value"}
_SCALES = {
    **dict.fromkeys(("arm-mean", "bin-mean", "policy-value"), "rewards"),
    **dict.fromkeys(("contrast", "cate", "interaction", "policy-contrast", "received-contrast"), "rewards"),
    **dict.fromkeys(("ratio", "ratio-contrast"), "ratios"),
    **dict.fromkeys(("lift", "ratio-lift"), "shares of the control"),
}
"""The scale of each kind of estimate; a coefficient has its own scale."""
_DIFFERENCES = ("contrast", "lift", "ratio-contrast", "ratio-lift", "cate", "policy-contrast")


def by_name(
    name: str, given: Any, kinds: tuple[type, ...], known: str | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Items to be drawn by name, and problems with them; `known` lists the kinds."""
    if isinstance(given, kinds):
        return {"": given}, []
    if known is None:
        known = " or ".join(kind.__name__ for kind in kinds)
    if not isinstance(given, Mapping) or not given:
        return {}, [f"{name} must be {known}, or a dict that maps names to such values, got {given!r:.60}"]
    problems = [
        f"{name}[{key!r}] must be {known}, got {value!r:.60}"
        for key, value in given.items()
        if not isinstance(value, kinds)
    ]
    return {str(key): value for key, value in given.items() if isinstance(value, kinds)}, problems


def unit_problems(results: Any, unit: str | None) -> list[str]:
    """The problem that a unit is given for lifts, which have no unit."""
    several = results.values() if isinstance(results, Mapping) else [results]
    kinds = {one.kind for each in several if isinstance(each, Results) for one in each.estimands}
    return [NO_UNIT()] if unit is not None and not kinds.isdisjoint(LIFTS) else []


def scale_problems(named: Mapping[str, Results], rows: Sequence[str]) -> list[str]:
    """The problem with rows on one axis whose scales differ."""
    kinds = {
        one.kind
        for each in named.values()
        for one, term in zip(each.estimands, each.terms, strict=True)
        if term in rows
    }
    scales = {_SCALES[kind]: kind for kind in sorted(kinds) if kind in _SCALES}
    if len(scales) < 2:
        return []
    told = " and ".join(f"{ESTIMANDS.get(kind, kind)} ({scale})" for scale, kind in scales.items())
    return [f"one axis cannot show {told}: draw each in a separate picture or panel (ax=)"]


def uncovered(results: Any) -> list[Any]:
    """The guarantees of logs whose results use more than private releases."""
    several = results.values() if isinstance(results, Mapping) else [results]
    return [one.facts.guarantee for one in several if not one.private]


def term_label(one: Results, term: str) -> str:
    """Label of a term: for arm means the arm, otherwise unchanged."""
    estimand = one.estimands[one.terms.index(term)]
    own = estimand.kind in ("arm-mean", "ratio") and term == str(estimand.arm)
    return arm_label(estimand.arm) if own else term


def row_labels(named: Mapping[str, Results], rows: Sequence[str]) -> tuple[Any, list[str]]:
    """The common control of all terms, None if there is none, and the name of the rows."""
    owners = [next(one for one in named.values() if row in one.terms) for row in rows]
    shown = [one.estimands[one.terms.index(row)] for one, row in zip(owners, rows, strict=True)]
    labels = [term_label(one, row) for one, row in zip(owners, rows, strict=True)]
    controls = {str(one.control): one.control for one in shown}
    if not shown or len(controls) > 1 or any(one.kind not in _DIFFERENCES for one in shown):
        return None, labels
    control = shown[0].control
    treatments = [str(one.treatment) for one in shown]
    if control is not None and all(one.group is None for one in shown) and len(set(treatments)) == len(rows):
        labels = [arm_label(one.treatment) for one in shown]
    return control, labels


def chosen_terms(terms: Any, known: list[str], problems: list[str]) -> list[str]:
    """Terms that were requested; problems with them are added to `problems`."""
    if isinstance(terms, str) or not isinstance(terms, Sequence) or not terms:
        problems.append(f"terms must be a list of terms, got {terms!r:.60}")
        return known
    unknown = [term for term in terms if term not in known]
    problems += [absent("term", term, known) for term in unknown]
    if len(set(terms)) < len(terms):
        problems.append("terms must differ")
    return list(terms)


def true_values(truth: Any, rows: list[str], known: list[str], problems: list[str]) -> FloatArray | None:
    """True values of the rows, NaN if none was given."""
    if truth is None or not rows:
        return None
    if isinstance(truth, (Mapping, pd.Series)):
        given = {str(key): value for key, value in truth.items()}
        unknown = [key for key in given if key not in known]
        problems += [f"truth: {absent('term', key, known)}" for key in unknown]
        truth = [given.get(row, np.nan) for row in rows]
    values = one_for_each(truth, len(rows))
    if values is None or np.isinf(values).any():
        problems.append(
            f"truth must be a finite number, a sequence of {len(rows)} finite numbers (one per row), or a "
            f"dict with terms as keys"
        )
        return None
    return values


_LABEL, _LINES, _REMARK = 22, 6, 54


@dataclass(frozen=True, slots=True)
class Series:
    """One estimate with its interval in each of n rows; estimate, low, high and present have shape (n,)."""

    label: str
    estimate: FloatArray
    low: FloatArray
    high: FloatArray
    present: BoolArray
    place: int
    thin: bool = False
    remarks: tuple[str, ...] = ()


def series_of(part: pd.DataFrame, label: str, rows: Any, place: int, *, thin: bool = False) -> Series:
    """A series from the rows of a frame with a `row` column; rows has shape (n,)."""
    own = part.set_index("row").reindex(rows)
    present = np.isin(rows, part["row"].to_numpy())
    estimate, low, high = (own[name].to_numpy(dtype=np.float64) for name in ("estimate", "low", "high"))
    remarks = tuple(text if isinstance(text, str) else "" for text in own["remark"])
    return Series(label, estimate, low, high, present, place, thin, remarks)


def draw_control(ax: Axes, name: str) -> None:
    """Label the line at 0 with the arm of comparison, above the axes."""
    ax.axvline(0.0, color=grey(ax), linewidth=0.9, zorder=0.5)
    [short] = short_names([name], 30)
    ax.annotate(
        label_text(short),
        (0.0, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(0.0, 2.0),
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontsize=small(ax),
        color=grey(ax),
        annotation_clip=True,
    )


def limits_problem(limits: Any) -> list[str]:
    """List problems with axis limits given by the user."""
    if limits is None:
        return []
    ends = number_array(limits)
    if ends is not None and ends.shape == (2,) and np.isfinite(ends).all() and ends[0] < ends[1]:
        return []
    return [f"limits must be (low, high), finite and low < high, got {limits!r:.60}"]


def room(values: Iterable[Any], limits: Any = None, margin: float = 0.06) -> tuple[float, float]:
    """Axis limits that show all finite values, or the requested ones."""
    if limits is not None:
        return float(limits[0]), float(limits[1])
    known = np.concatenate([np.ravel(np.asarray(value, dtype=np.float64)) for value in values])
    known = known[np.isfinite(known)]
    if known.size == 0:
        return -1.0, 1.0
    low, high = float(known.min()), float(known.max())
    size = high - low if high > low else max(abs(low), 1.0)
    return low - margin * size, high + margin * size


def row_axes(ax: Axes | None, labels: Sequence[str], series: int) -> Axes:
    """Axes with one row per label, from top to bottom, in a figure of sufficient height."""
    wrapped = [_wrapped(label) for label in labels]
    tall = max(0.24, 0.13 * series + 0.04, 0.125 * max(label.count("\n") + 1 for label in wrapped) + 0.06)
    own = prepared(ax, height=0.55 + tall * len(labels), grid="x")
    own.set_yticks(range(len(labels)), wrapped)
    own.set_ylim(len(labels) - 0.5, -0.5)
    own.tick_params(axis="y", length=0.0)
    return own


def draw_rows(ax: Axes, series: Sequence[Series], ends: tuple[float, float]) -> list[Any]:
    """Draw the series below one another in each row; an arrow marks values beyond the limits."""
    ax.set_xlim(*ends)
    step = min(0.8 / len(series), 0.3)
    handles = []
    rows = np.arange(series[0].estimate.size, dtype=np.float64)
    for place, one in enumerate(series):
        height = (place - 0.5 * (len(series) - 1)) * step
        draw_series(ax, one, rows + height, ends)
        handles.append(series_handle(one, ground(ax)))
    return handles


def series_handle(one: Series, below: str, colour: str | None = None) -> Any:
    """Appearance of a series in a legend on a coloured background."""
    from matplotlib.lines import Line2D

    shown = look(one.place)
    own = colour or shown.colour
    return Line2D(
        [],
        [],
        color=own,
        marker=shown.marker,
        markersize=4.0,
        markerfacecolor=below if one.thin else own,
        linewidth=0.9 if one.thin else 1.6,
        linestyle=(0, (3, 1.5)) if one.thin else "-",
        label=label_text(one.label),
    )


def draw_series(ax: Axes, one: Series, y: FloatArray, ends: tuple[float, float]) -> None:
    """Draw a series at heights y (n,); an arrow marks values beyond the limits."""
    shown = look(one.place)
    begin, end = ends
    inside = one.present & ~np.isnan(one.low) & ~np.isnan(one.high)
    inside &= (one.low <= end) & (one.high >= begin)
    if not one.present.any():
        return
    ax.hlines(
        y[inside],
        np.maximum(one.low, begin)[inside],
        np.minimum(one.high, end)[inside],
        colors=shown.colour,
        linewidths=0.9 if one.thin else 1.6,
        linestyles=(0, (3, 1.5)) if one.thin else "solid",
        label=label_text(one.label),
    )
    marked = one.present & (one.estimate >= begin) & (one.estimate <= end)
    ax.plot(
        one.estimate[marked],
        y[marked],
        linestyle="none",
        marker=shown.marker,
        markersize=4.0,
        markerfacecolor=ground(ax) if one.thin else shown.colour,
        markeredgecolor=shown.colour,
        markeredgewidth=0.9,
        zorder=3,
    )
    # Artists that are not clipped count for the layout, and an empty one counts as a point in the corner of
    # the figure, so it must not be drawn.
    beyond = (one.present & (np.fmin(one.low, one.estimate) < begin), "<", begin)
    above = (one.present & (np.fmax(one.high, one.estimate) > end), ">", end)
    for rows, arrow, edge in (beyond, above):
        if not rows.any():
            continue
        ax.plot(
            np.full(int(rows.sum()), edge),
            y[rows],
            linestyle="none",
            marker=arrow,
            markersize=4.0,
            color=shown.colour,
            clip_on=False,
            zorder=3,
        )
    for row, remark in enumerate(one.remarks):
        if remark and one.present[row]:
            _remark(ax, remark, one, row, float(y[row]), ends)


def _remark(ax: Axes, text: str, one: Series, row: int, y: float, ends: tuple[float, float]) -> None:
    """Write text into a row, on the side away from the estimate."""
    begin, end = ends
    left = not (math.isfinite(one.estimate[row]) and one.estimate[row] < 0.5 * (begin + end))
    ax.text(
        begin + 0.01 * (end - begin) if left else end,
        y,
        "\n".join(textwrap.wrap(label_text(text, 2 * _REMARK), _REMARK)),
        ha="left" if left else "right",
        va="center",
        fontsize=0.95 * small(ax),
        fontstyle="italic",
        color=grey(ax),
        zorder=4,
    )


def _wrapped(label: str) -> str:
    lines = textwrap.wrap(label_text(label, _LINES * _LABEL), _LABEL) or [""]
    return "\n".join(lines)
