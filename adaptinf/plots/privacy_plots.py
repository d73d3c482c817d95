"""Measured privacy compared with the guarantee, and the bins of a locally private bandit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from adaptinf.audit.privacy.lower_bound import EpsilonLowerBound
from adaptinf.designs.local.bins import bin_sums
from adaptinf.inference.results.fit_results import Results
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import FLAG, UNIT, refuse
from adaptinf.plots.frames import draws
from adaptinf.plots.interval_rows import by_name, row_axes
from adaptinf.plots.style import (
    axes_problem,
    grey,
    ground,
    ink,
    label_text,
    legend_of,
    look,
    prepared,
    shade,
    small,
)
from adaptinf.texts import arm_label
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_READABLE = 0.07


@dataclass(frozen=True, slots=True)
class Bins:
    """The bins that were active at the end; low and high have shape (bins, d)."""

    low: FloatArray
    high: FloatArray
    left: tuple[tuple[Any, ...], ...]
    arms: tuple[Any, ...]
    axes: tuple[str, ...]


def _partition(problems: list[str], trial: AdaptiveLog | Results, *, at: float = 0.5) -> pd.DataFrame:
    """Bins and the remaining arms in each, as drawn by `plots.partition`.

    Parameters
    ----------
    trial, at
        As in `plots.partition`.

    Returns
    -------
    DataFrame
        One row per bin: its ends `low_x1` and `high_x1` and, for a second coordinate, `low_x2` and `high_x2`,
        using the names of the coordinates; `left`, the number of remaining arms, and `arms`, a tuple of them.

    Raises
    ------
    ParameterError
        If arguments are inconsistent; the message lists every problem.
    InvalidForLog
        If the log has no sums of reports by bin.

    Examples
    --------
    >>> import adaptinf as ai
    >>> design = ai.designs.LDPBandit(epsilon=8.0, check_every=50)
    >>> log = design.run(ai.environments.SmoothArms(), horizon=20_000, rng=0)
    >>> ai.plots.partition.frame(log).columns.tolist()
    ['low_x1', 'high_x1', 'low_x2', 'high_x2', 'left', 'arms']
    """
    problems = [*problems, *UNIT("at", at)]
    kinds = {estimand.kind for estimand in trial.estimands} if isinstance(trial, Results) else set()
    if not isinstance(trial, AdaptiveLog) and kinds != {"bin-mean"}:
        what = "a log of LDPBandit, or a result of BinMeans(log).fit()"
        problems.insert(0, f"trial must be {what}, got {type(trial).__name__}")
    refuse("plots.partition", problems)
    bins = _slice(final_bins(trial), float(at))
    columns: dict[str, Any] = {}
    for axis, name in enumerate(bins.axes):
        columns |= {f"low_{name}": bins.low[:, axis], f"high_{name}": bins.high[:, axis]}
    return pd.DataFrame({**columns, "left": [len(left) for left in bins.left], "arms": list(bins.left)})


@draws(_partition)
def partition(
    trial: AdaptiveLog | Results,
    ax: Axes | None = None,
    *,
    at: float = 0.5,
    legend: str = "above",
) -> Axes:
    """The final bins of a locally private bandit in the first two coordinates, with their arms.

    Parameters
    ----------
    trial : AdaptiveLog or Results
        A log of `LDPBandit`, or the output of ``BinMeans(log).fit()``.
    ax : Axes, optional
        Axes to draw on; by default a new figure of column width.
    at : float
        Values in [0, 1] at which the other coordinates are held, if there are more than two.
    legend : {"above", "best", "upper left", "upper right", "lower left", "lower right", "none"}
        Position of the legend.

    Returns
    -------
    Axes

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    ParameterError
        If arguments are inconsistent; the message lists every problem.
    InvalidForLog
        If the log has no sums of reports by bin.

    See Also
    --------
    partition.frame : What is drawn, as a tidy frame.

    Notes
    -----
    A bin with one remaining arm has that arm's colour and hatch; a bin with several is greyer the more of
    them remain, and lists them if space permits. A bin that no one entered after it was created is drawn as
    the bin from which it was split.

    Examples
    --------
    >>> import adaptinf as ai
    >>> design = ai.designs.LDPBandit(epsilon=8.0, check_every=50)
    >>> log = design.run(ai.environments.SmoothArms(), horizon=20_000, rng=0)
    >>> ax = ai.plots.partition(log)
    >>> ax.get_xlabel(), len(ax.patches) > 1
    ('x1', True)
    """
    table = _partition(axes_problem("plots.partition", ax, legend), trial, at=at)
    names = [name.removeprefix("low_") for name in table.columns if name.startswith("low_")]
    own = prepared(ax, height=3.3 if len(names) > 1 else 1.3)
    handles = _draw(own, table, names, _arms_of(trial))
    own.grid(False)
    own.set_xlim(0.0, 1.0)
    own.set_ylim(0.0, 1.0)
    own.set_xlabel(label_text(names[0]))
    if len(names) > 1:
        own.set_aspect("equal")
        own.set_ylabel(label_text(names[1]))
    else:
        own.set_yticks([])
    legend_of(own, handles, legend, grow=ax is None)
    return own


def _arms_of(trial: AdaptiveLog | Results) -> tuple[Any, ...]:
    """All arms, in the order of their styles."""
    if isinstance(trial, AdaptiveLog):
        return tuple(trial.arms)
    return tuple(dict.fromkeys(estimand.arm for estimand in trial.estimands))


def final_bins(trial: AdaptiveLog | Results) -> Bins:
    """Bins that contain no other bin, and their arms at the time of the last reports."""
    if isinstance(trial, AdaptiveLog):
        table = bin_sums(trial)
        names = tuple(name.removeprefix("low_") for name in table.columns if name.startswith("low_"))
        low = table[[f"low_{name}" for name in names]].to_numpy()
        high = table[[f"high_{name}" for name in names]].to_numpy()
        arms, labels = tuple(trial.arms), table["arm"].tolist()
        participants = table["participants"].to_numpy(dtype=np.float64)
    else:
        boxes = np.array([estimand.group for estimand in trial.estimands], dtype=np.float64)
        low, high = boxes[..., 0], boxes[..., 1]
        names = tuple(f"x{axis}" for axis in range(1, low.shape[1] + 1))
        labels = [estimand.arm for estimand in trial.estimands]
        arms = tuple(dict.fromkeys(labels))
        participants = trial.details["participants"]
    corners, owner = np.unique(np.hstack([low, high]), axis=0, return_inverse=True)
    low, high = np.hsplit(corners, 2)
    # An arm that was not dropped was available to all participants of the bin, so it has the largest number
    # of them.
    most = np.zeros(len(corners))
    np.maximum.at(most, owner, participants)
    stayed = participants == most[owner]
    final = [place for place in range(len(corners)) if not _holds_another(low, high, place)]
    left = tuple(
        tuple(arm for arm, own, here in zip(labels, owner, stayed, strict=True) if own == place and here)
        for place in final
    )
    return Bins(low[final], high[final], left, arms, names)


def _holds_another(low: FloatArray, high: FloatArray, place: int) -> bool:
    inside = (low >= low[place]).all(axis=1) & (high <= high[place]).all(axis=1)
    return int(inside.sum()) > 1


def _slice(bins: Bins, at: float) -> Bins:
    """Bins that contain a point with the given third and later coordinates, projected on the first two."""
    rest_low, rest_high = bins.low[:, 2:], bins.high[:, 2:]
    # Bins include their lower limits only, except that the last one also includes 1.
    holds = (rest_low <= at) & ((at < rest_high) | ((rest_high == 1.0) & (at == 1.0)))
    keep = np.flatnonzero(holds.all(axis=1))
    left = tuple(bins.left[place] for place in keep)
    names = bins.axes[:2]
    return Bins(bins.low[keep, :2], bins.high[keep, :2], left, bins.arms, names)


def _draw(ax: Axes, table: pd.DataFrame, names: list[str], arms: tuple[Any, ...]) -> list[Any]:
    """Draw rectangles for the bins; return one legend entry for each style of filling."""
    from matplotlib.patches import Patch, Rectangle

    low = table[[f"low_{name}" for name in names]].to_numpy()
    high = table[[f"high_{name}" for name in names]].to_numpy()
    if len(names) == 1:
        low, high = np.column_stack([low, np.zeros(len(low))]), np.column_stack([high, np.ones(len(low))])
    fills: dict[tuple[int, int], Any] = {}
    for corner, size, left in zip(low, high - low, table["arms"], strict=True):
        key = (1, arms.index(left[0])) if len(left) == 1 else (len(left), -1)
        filled = _fill(ax, key, len(arms))
        ax.add_patch(Rectangle((corner[0], corner[1]), size[0], size[1], **filled))
        label = f"{arm_label(left[0])} alone" if len(left) == 1 else f"{len(left)} arms left"
        fills.setdefault(key, Patch(label=label_text(label), **filled))
        text = label_text(", ".join(map(str, left)), 20)
        if len(left) > 1 and size[0] >= 0.03 * (len(text) + 1) and size[1] >= _READABLE:
            middle = corner + 0.5 * size
            ax.text(middle[0], middle[1], text, ha="center", va="center", fontsize=small(ax))
    return [fills[key] for key in sorted(fills)]


def _fill(ax: Axes, key: tuple[int, int], n_arms: int) -> dict[str, Any]:
    count, arm = key
    common = {"edgecolor": ground(ax) if count == 1 else shade(ax, 0.5), "linewidth": 0.5}
    if count > 1:
        return {"facecolor": shade(ax, 0.02 + 0.25 * (count - 1) / max(1, n_arms - 1)), **common}
    shown = look(arm)
    return {"facecolor": shown.colour, "hatch": shown.hatch, **common}


def _privacy(problems: list[str], bounds: Any) -> pd.DataFrame:
    """Measured lower bounds on epsilon, as drawn by `plots.privacy`.

    Parameters
    ----------
    bounds
        As in `plots.privacy`.

    Returns
    -------
    DataFrame
        One row per audit: `name`, `measured`, its `confidence`, `promised` (NaN without a guarantee) and
        `refuted`. Epsilons are in nats.

    Raises
    ------
    ParameterError
        If there is no bound.

    Examples
    --------
    >>> import adaptinf as ai
    >>> laplace = lambda side, runs, rng: side + rng.laplace(size=runs)
    >>> found = ai.audit.epsilon_lower_bound(laplace, runs=2_000, rng=0)
    >>> ai.plots.privacy.frame({"laplace": found}).columns.tolist()
    ['name', 'measured', 'confidence', 'promised', 'refuted']
    """
    named, found = _bounds_named(bounds)
    refuse("plots.privacy", [*problems, *found])
    columns = ["name", "measured", "confidence", "promised", "refuted"]
    rows = [
        (
            name,
            float(one.epsilon),
            one.confidence,
            math.nan if one.promised is None else float(one.promised.epsilon),
            one.refuted,
        )
        for name, one in named.items()
    ]
    return pd.DataFrame(rows, columns=columns)


@draws(_privacy)
def privacy(bounds: Any, ax: Axes | None = None, *, log_scale: bool = False, legend: str = "above") -> Axes:
    """Measured lower bounds on epsilon compared with the guarantees.

    Parameters
    ----------
    bounds : EpsilonLowerBound, iterable of them, or mapping of str to them
        Output of ``audit.epsilon_lower_bound``; one row each, named by key or by target.
    ax : Axes, optional
        Axes to draw on; by default a new figure of column width.
    log_scale : bool
        Whether the axis is logarithmic. A bound of 0 is then shown as an arrow at the left end.
    legend : {"above", "best", "upper left", "upper right", "lower left", "lower right", "none"}
        Position of the legend.

    Returns
    -------
    Axes

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    ParameterError
        If arguments are inconsistent; the message lists every problem.

    See Also
    --------
    privacy.frame : What is drawn, as a tidy frame.

    Notes
    -----
    A dot is the lower bound: at its confidence level, the true epsilon is at least as large. A bar is
    the guarantee. A dot to the right of its bar refutes the guarantee, and is drawn as a square in another
    colour. The line between the bound and the guarantee is the range that the audit does not exclude.

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
    problems = axes_problem("plots.privacy", ax, legend) + FLAG("log_scale", log_scale)
    table = _privacy(problems, bounds)
    measured, promised = (table[name].to_numpy(dtype=np.float64) for name in ("measured", "promised"))
    refuted = table["refuted"].to_numpy(dtype=bool)
    own = row_axes(ax, table["name"].tolist(), 1)
    ends = _epsilon_ends(measured, promised, log_scale)
    if log_scale:
        own.set_xscale("log")
    own.set_xlim(*ends)
    shown = np.maximum(measured, ends[0])
    rows = np.arange(len(table), dtype=np.float64)
    between = ~np.isnan(promised)
    limit = np.minimum(promised, ends[1])[between]
    own.hlines(rows[between], shown[between], limit, colors=grey(own), linewidths=0.9)
    handles = []
    confidences = set(table["confidence"])
    level = f", {100.0 * confidences.pop():g}% confidence" if len(confidences) == 1 else ""
    groups = ((~refuted, 0, f"measured: at least{level}"), (refuted, 1, "measured: promise refuted"))
    for chosen, place, label in groups:
        if chosen.any():
            handles += _dots(own, shown[chosen], rows[chosen], place, label)
    low = measured < ends[0]
    own.plot(shown[low], rows[low], linestyle="none", marker="<", color=look(0).colour, clip_on=False)
    finite = between & np.isfinite(promised)
    bar: dict[str, Any] = {"linestyle": "none", "marker": "|", "markersize": 11.0, "markeredgewidth": 1.8}
    handles += own.plot(promised[finite], rows[finite], color=ink(own), label="promised", **bar)
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
            style: dict[str, Any] = {"fontsize": 0.95 * small(ax), "color": grey(ax)}
            ax.text(ends[1], row, label_text(text), ha="right", va="bottom", **style)
