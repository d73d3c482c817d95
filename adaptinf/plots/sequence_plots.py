"""Confidence sequences: intervals over the rounds, or over the dates that the log has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from adaptinf.errors import ParameterError
from adaptinf.inference.sequences.sequence_results import SequenceResults
from adaptinf.parameters import FLAG, OrNone, alpha_problems, refuse
from adaptinf.plots.interval_rows import (
    ESTIMANDS,
    chosen_terms,
    limits_problem,
    room,
    term_label,
    true_values,
)
from adaptinf.plots.style import (
    axes_problem,
    date_axis,
    figure,
    legend_of,
    look,
    marked_line,
    prepared,
    quantity,
    round_axis,
)
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Bands that a panel has at most: more of them hide one another.
_BANDS = 3
# Intervals are in sight from where one is at most so many times as wide as it is in the end.
_NEAR = 2.0
# Rounds at which bands are computed on an axis that is not logarithmic.
_STEPS = 48


def confidence_sequence(
    sequence: SequenceResults,
    ax: Axes | None = None,
    *,
    terms: Sequence[str] | None = None,
    alpha: float = 0.05,
    rounds: Sequence[int] | None = None,
    truth: Any = None,
    limits: tuple[float, float] | None = None,
    log: bool | None = None,
    unit: str | None = None,
    legend: str = "above",
) -> Axes:
    """Estimates and their intervals as they were known after each round.

    Parameters
    ----------
    sequence : SequenceResults
        What ``ConfidenceSequence(log).fit()`` returns.
    ax : Axes, optional
        Where to draw at most three terms; by default a new figure of column width, with a panel for every
        three.
    terms : sequence of str, optional
        Which; by default all.
    alpha : float
        One minus the level, between 0 and 0.5; it holds for all rounds together.
    rounds : sequence of int, optional
        Rounds at which the sequence is computed; by default some ten in each power of ten, and on other axes
        some fifty.
    truth : float, array_like, Series or mapping of term to float, optional
        True values, drawn as dotted lines.
    limits : (float, float), optional
        Ends of the vertical axis. By default it shows each interval from where it is at most twice as wide as
        in the end; those before run off the axes.
    log : bool, optional
        Whether rounds are on a log scale. By default the axis has the dates of the rounds, where the log's
        ``round=`` was a column of times, and else a log scale.
    unit : str, optional
        Unit of the reward.
    legend : {"above", "best", "upper left", "upper right", "lower left", "lower right", "none"}
        Where the legend goes.

    Returns
    -------
    Axes
        The first panel; ``ax.figure.axes`` are all.

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    ParameterError
        Listing everything that does not fit.

    Notes
    -----
    Where every value has been excluded there is no interval; the legend says from which round on. On a log
    scale the axis of a new figure begins where the first interval comes into sight, unless `rounds` are
    given.

    Examples
    --------
    >>> import adaptinf as ai
    >>> environment = ai.environments.BernoulliArms([0.3, 0.6])
    >>> log = ai.designs.Thompson(floor=0.1).run(environment, horizon=300, rng=1)
    >>> sequence = ai.ConfidenceSequence(log).fit(method="empirical-bernstein")
    >>> ax = ai.plots.confidence_sequence(sequence, terms=["1"], truth=0.6)
    >>> ax.get_xscale(), ax.get_ylabel()
    ('log', 'mean reward')
    """
    problems = axes_problem("plots.confidence_sequence", ax, legend)
    given: Any = sequence
    if not isinstance(given, SequenceResults):
        problem = f"sequence must be what ConfidenceSequence(log).fit() returned, got {sequence!r:.60}"
        raise ParameterError("plots.confidence_sequence", [problem, *problems])
    problems += limits_problem(limits) + alpha_problems(alpha) + OrNone(FLAG)("log", log)
    known = list(sequence.terms)
    shown = known if terms is None else chosen_terms(terms, known, problems)
    true = true_values(truth, shown, known, problems)
    if ax is not None and len(shown) > _BANDS:
        problems.append(
            f"ax has room for {_BANDS} bands, not {len(shown)}: name the terms, or leave ax out for panels"
        )
    refuse("plots.confidence_sequence", problems)
    dates = sequence.dates if log is None else None
    scaled = dates is None and log is not False
    table = sequence.table(alpha, _even_rounds(sequence, dates) if rounds is None and not scaled else rounds)
    parts = [table[table["term"] == term] for term in shown]
    ends, last = _ends(parts, [] if true is None else true, limits), float(table["t"].iloc[-1])
    axes = _panels(ax, len(shown))
    split = np.array_split(np.arange(len(shown)), len(axes))
    kinds = {sequence.estimands[known.index(term)].kind for term in shown}
    label = ESTIMANDS.get(kinds.pop(), "estimate") if len(kinds) == 1 else "estimate"
    for own, places in zip(axes, split, strict=True):
        handles = [
            _draw(own, parts[place], term_label(sequence, shown[place]), int(place), ends, dates)
            for place in places
        ]
        if true is not None:
            handles += _draw_truth(own, true, places)
        if scaled and rounds is None and ax is None:
            own.set_xlim(_start(parts), last)
        if dates is None:
            round_axis(own, last, scaled)
        else:
            date_axis(own)
        own.set_ylim(*ends)
        own.set_ylabel(quantity(label, unit))
        legend_of(own, handles, legend, grow=ax is None)
    for own in axes[:-1]:
        own.set_xlabel("")
        own.tick_params(labelbottom=False)
    return axes[0]


def _even_rounds(sequence: SequenceResults, dates: Any) -> list[int] | None:
    """Rounds that are even on the axis; None, those of the table, where they are the ends of batches."""
    if sequence.reference.ends is not None:
        return None
    last = sequence.reference.n_rounds
    if dates is None:
        return sorted(set(np.linspace(1, last, min(last, _STEPS)).round().astype(int).tolist()))
    times = dates.astype(np.int64)
    begun = np.searchsorted(times, np.linspace(times[0], times[-1], _STEPS), side="right")
    return sorted({*np.clip(begun, 1, last).tolist(), last})


def _panels(ax: Axes | None, terms: int) -> list[Axes]:
    """The axes given, or those of a new figure with a panel for every three terms."""
    count = -(-terms // _BANDS)
    if ax is not None or count == 1:
        return [prepared(ax)]
    panels = figure(count, 1, height=0.3 + 1.7 * count)[1].tolist()
    for own in panels:
        own.set_axisbelow(True)
        own.grid(axis="y", color="0.9", linewidth=0.5)
    return list(panels)


def _in_sight(part: pd.DataFrame) -> Any:
    """Whether each interval is at most twice as wide as the last one, shape (rounds,)."""
    width = (part["high"] - part["low"]).to_numpy()
    finite = width[np.isfinite(width)]
    return np.isfinite(width) & (width <= _NEAR * (finite[-1] if finite.size else 0.0))


def _start(parts: list[pd.DataFrame]) -> float:
    """The first round at which an interval is in sight."""
    seen = [part["t"].to_numpy()[_in_sight(part)] for part in parts]
    first, last = parts[0]["t"].iloc[[0, -1]]
    found = min((rounds[0] for rounds in seen if rounds.size), default=first)
    return float(found if found < last else first)


def _ends(parts: list[pd.DataFrame], true: Any, limits: Any) -> tuple[float, float]:
    """Ends of the axis that show the intervals in sight, or those that were asked for."""
    near = [part.loc[_in_sight(part), ["estimate", "low", "high"]].to_numpy() for part in parts]
    return room([*near, true], limits)


def _draw(ax: Axes, part: pd.DataFrame, label: str, place: int, ends: tuple[float, float], dates: Any) -> Any:
    shown = look(place)
    rounds = part["t"].to_numpy()
    x = rounds if dates is None else dates[rounds - 1]
    # infinite limits run off the axes
    far = 10.0 * (ends[1] - ends[0])
    low, high = (part[name].clip(ends[0] - far, ends[1] + far).to_numpy() for name in ("low", "high"))
    gone = rounds[np.isnan(low) | np.isnan(high)]
    if gone.size:
        label = f"{label} (all excluded from round {gone[0]:,})"
    ax.fill_between(x, low, high, color=shown.colour, alpha=0.14, linewidth=0.0)
    for limit in (low, high):
        ax.plot(x, limit, color=shown.colour, linewidth=0.7, linestyle=shown.line)
    return marked_line(ax, x, part["estimate"], label, place, max(1, len(part) // 6))


def _draw_truth(ax: Axes, true: FloatArray, places: IntArray) -> list[Any]:
    """A line at each true value of a panel, in the colour of its term; the entry of the legend."""
    from matplotlib.lines import Line2D

    style: dict[str, Any] = {"linewidth": 1.1, "linestyle": (0, (1, 1))}
    for place in places:
        if not np.isnan(true[place]):
            colour = "black" if true.size == 1 else look(int(place)).colour
            ax.axhline(true[place], color=colour, zorder=1.5, **style)
    return [Line2D([], [], color="black", label="true value", **style)]
