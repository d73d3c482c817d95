"""Histograms of p-values, against the uniform law that they have where nothing is to be found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from adaptinf.parameters import Count, alpha_problems, number_array, refuse
from adaptinf.plots.drawing.style import GREY, axes_problem, label_text, legend_of, look, prepared, small
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TALL = 3.0


def pvalues(
    values: Any, ax: Axes | None = None, *, bins: int = 20, alpha: float = 0.05, legend: str = "above"
) -> Axes:
    """Shares of p-values in bins of one width, beside the uniform law.

    Parameters
    ----------
    values : array_like, or mapping of str to array_like
        P-values of many trials, of any shape; several methods by name. NaN where a trial has none.
    ax : Axes, optional
        Where to draw; by default a new figure of column width.
    bins : int
        Bins of [0, 1], at least 2.
    alpha : float
        The legend tells the share of p-values of at most alpha, and its standard error.
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
    The grey band holds the count of one bin of uniform p-values with probability 0.95 (binomial); that of
    the smallest sample where they differ in size. Shares are of the p-values that there are; the legend
    says how many trials have none. The last bar is cut, and its share written, where it would dwarf the
    others: corrected p-values pile up at 1. A p-value on the edge of two bins is in the upper one, and 1 in
    the last.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import numpy as np
    >>> honest, too_small = np.linspace(0.005, 0.995, 100), np.linspace(0.0, 0.5, 100)
    >>> ax = ai.plots.pvalues({"honest": honest, "too small": too_small})
    >>> for text in ax.get_legend().get_texts()[:2]:
    ...     print(text.get_text())
    honest: 5.0% ± 2.2% at most 0.05
    too small: 10.0% ± 3.0% at most 0.05
    """
    named, problems = _named(values)
    problems += axes_problem("plots.pvalues", ax, legend) + Count(2)("bins", bins)
    refuse("plots.pvalues", problems + alpha_problems(alpha))
    from matplotlib.lines import Line2D

    own = prepared(ax)
    edges = np.linspace(0.0, 1.0, int(bins) + 1)
    handles: list[Any] = []
    tops = []
    for place, (name, sample) in enumerate(named.items()):
        known = sample[~np.isnan(sample)]
        shares = np.histogram(known, edges)[0] / known.size
        tops.append(shares)
        shown = look(place)
        filled: dict[str, Any] = {"fill": True, "alpha": 0.25, "linewidth": 0.0}
        if len(named) == 1:
            own.stairs(shares, edges, color=shown.colour, **filled)
        own.stairs(shares, edges, color=shown.colour, linewidth=1.3, linestyle=shown.line)
        several = len(named) > 1
        marks: dict[str, Any] = {"marker": shown.marker, "markersize": 3.5} if several else {}
        if several:
            middle = 0.5 * (edges[1:] + edges[:-1])
            own.plot(middle, shares, linestyle="none", color=shown.colour, **marks)
        label = label_text(_label(name, sample, known, alpha), 90)
        line: dict[str, Any] = {"color": shown.colour, "linewidth": 1.3, "linestyle": shown.line}
        handles.append(Line2D([], [], label=label, **line, **marks))
    fewest = min(int((~np.isnan(sample)).sum()) for sample in named.values())
    low, high = stats.binom.interval(0.95, fewest, 1.0 / bins)
    text = f"uniform, 95% band of a bin (n = {fewest:,})"
    own.axhspan(low / fewest, high / fewest, color="0.6", alpha=0.35, linewidth=0.0, zorder=0.4)
    handles.append(own.axhline(1.0 / bins, color=GREY, linewidth=1.0, label=text, zorder=0.6))
    own.set_xlim(0.0, 1.0)
    _set_top(own, tops, named)
    own.set_xlabel("p-value")
    own.set_ylabel("share of p-values")
    legend_of(own, handles, legend, grow=ax is None)
    return own


def _set_top(ax: Axes, shares: list[FloatArray], names: Iterable[str]) -> None:
    """Show all bars; but corrected p-values pile up at 1, and that bar is cut and its share written."""
    others = max(float(each[:-1].max()) for each in shares)
    last = max(float(each[-1]) for each in shares)
    if others == 0.0 or last <= _TALL * others:
        ax.set_ylim(0.0, 1.08 * max(others, last))
        return
    ax.set_ylim(0.0, 1.4 * others)
    cut = [
        f"{name}: {each[-1]:.1%}" if name else f"{each[-1]:.1%}"
        for name, each in zip(names, shares, strict=True)
        if each[-1] > 1.4 * others
    ]
    text = "\n".join(["last bin", *map(label_text, cut)])
    edge = 1.0 - 1.3 / shares[0].size
    ax.text(edge, 1.36 * others, text, ha="right", va="top", fontsize=0.95 * small(ax), color=GREY)


def _label(name: str, sample: FloatArray, known: FloatArray, alpha: float) -> str:
    share = float((known <= alpha).mean())
    error = np.sqrt(share * (1.0 - share) / known.size)
    head = f"{name}: " if name else ""
    label = f"{head}{share:.1%} ± {error:.1%} at most {alpha:g}"
    return label if known.size == sample.size else f"{label} ({sample.size - known.size:,} have none)"


def _named(values: Any) -> tuple[dict[str, FloatArray], list[str]]:
    if isinstance(values, Mapping) and not values:
        return {}, ["there are no p-values"]
    given = values.items() if isinstance(values, Mapping) else [("", values)]
    named, problems = {}, []
    for name, sample in given:
        what = f"values[{name!r}]" if name else "values"
        numbers = number_array(sample)
        if numbers is None:
            problems.append(f"{what} must be p-values, got {sample!r:.60}")
            continue
        flat = numbers.ravel()
        known = flat[~np.isnan(flat)]
        if known.size == 0:
            problems.append(f"{what} has no p-value" + (", all are NaN" if flat.size else ""))
        elif known.min() < 0.0 or known.max() > 1.0:
            worst = known.min() if known.min() < 0.0 else known.max()
            problems.append(f"{what} must lie in [0, 1], got {worst:g}")
        named[str(name)] = flat
    return named, problems
