"""Confidence sequences: intervals over the rounds, or over the dates in the log."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from adaptinf.errors import ParameterError
from adaptinf.inference.sequences.sequence_results import SequenceResults
from adaptinf.parameters import FLAG, OrNone, alpha_problems, refuse
from adaptinf.plots.frames import draws
from adaptinf.plots.interval_rows import (
    ESTIMANDS,
    chosen_terms,
    limits_problem,
    room,
    row_labels,
    true_values,
    uncovered,
)
from adaptinf.plots.style import (
    axes_problem,
    date_axis,
    ink,
    label_text,
    legend_of,
    look,
    marked_line,
    outer,
    panel_grid,
    prepared,
    quantity,
    round_axis,
    say_uncovered,
    short_names,
    titled,
)
from adaptinf.texts import arm_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# More bands in a panel would hide one another.
_BANDS = 3
# Early intervals are very wide; the axis shows them from where one is at most this many times as wide as at
# the end.
_NEAR = 2.0
# Bands on an axis that is not logarithmic are computed at this many rounds: more would not be visible.
_STEPS = 48


def _sequence(
    problems: list[str],
    sequence: SequenceResults,
    *,
    terms: Sequence[str] | None = None,
    alpha: float = 0.05,
    rounds: Sequence[int] | None = None,
    truth: Any = None,
    log: bool | None = None,
) -> pd.DataFrame:
    """Estimates and intervals over the rounds, as drawn by `plots.confidence_sequence`.

    Parameters
    ----------
    sequence, terms, alpha, rounds, truth, log
        As in `plots.confidence_sequence`.

    Returns
    -------
    DataFrame
        One row per term and round: `round`, `date` (NaT if the log has none), `term`, `label`, for
        differences from a common control `control`, `quantity`, `estimate`, `low`, `high` and `truth`.

    Raises
    ------
    ParameterError
        If arguments are inconsistent; the message lists every problem.

    Examples
    --------
    >>> import adaptinf as ai
    >>> environment = ai.environments.BernoulliArms([0.3, 0.6])
    >>> log = ai.designs.Thompson(floor=0.1).run(environment, horizon=300, rng=1)
    >>> sequence = ai.ConfidenceSequence(log).fit(method="empirical-bernstein")
    >>> frame = ai.plots.confidence_sequence.frame(sequence, rounds=[100, 300])
    >>> frame[["round", "label"]].to_dict("list")
    {'round': [100, 300, 100, 300], 'label': ['arm 0', 'arm 0', 'arm 1', 'arm 1']}
    """
    given: Any = sequence
    if not isinstance(given, SequenceResults):
        problem = f"sequence must be a result of ConfidenceSequence(log).fit(), got {sequence!r:.60}"
        raise ParameterError("plots.confidence_sequence", [problem, *problems])
    problems = [*problems, *alpha_problems(alpha), *OrNone(FLAG)("log", log)]
    known = list(sequence.terms)
    shown = known if terms is None else chosen_terms(terms, known, problems)
    true = true_values(truth, shown, known, problems)
    refuse("plots.confidence_sequence", problems)
    dates = sequence.dates if log is None else None
    scaled = dates is None and log is not False
    table = sequence.table(alpha, _even_rounds(sequence, dates) if rounds is None and not scaled else rounds)
    control, labels = row_labels({"": sequence}, shown)
    parts = []
    for place, term in enumerate(shown):
        part = table[table["term"] == term].rename(columns={"t": "round"})
        kind = ESTIMANDS.get(sequence.estimands[known.index(term)].kind, "estimate")
        part = part.assign(label=labels[place], quantity=kind, truth=np.nan if true is None else true[place])
        part["control"] = pd.Series([control] * len(part), index=part.index, dtype=object)
        at = part["round"].to_numpy() - 1
        part["date"] = pd.NaT if sequence.dates is None else sequence.dates[at]
        parts.append(part)
    return pd.concat(parts, ignore_index=True)[[*_COLUMNS]]


_COLUMNS = (
    *("round", "date", "term", "label", "control", "quantity"),
    *("estimate", "low", "high", "truth"),
)


@draws(_sequence)
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
    """Estimates and intervals as known after each round.

    Parameters
    ----------
    sequence : SequenceResults
        Output of ``ConfidenceSequence(log).fit()``.
    ax : Axes, optional
        Axes on which to draw at most three terms; by default a new figure, with one panel for every three
        terms, or one per difference if there are several from a common control.
    terms : sequence of str, optional
        The terms to draw; by default all.
    alpha : float
        One minus the confidence level, between 0 and 0.5; the level holds for all rounds simultaneously.
    rounds : sequence of int, optional
        Rounds at which the sequence is computed; by default about ten per power of ten, or about fifty on
        other axes.
    truth : float, array_like, Series or mapping of term to float, optional
        True values, drawn as dotted lines.
    limits : (float, float), optional
        Limits of the vertical axis. By default, an interval is shown once it is at most twice as wide as at
        the end; earlier ones extend beyond the axes.
    log : bool, optional
        Whether rounds are on a log scale. By default the axis shows dates if the log's ``round=`` was a
        column of times, and a log scale otherwise.
    unit : str, optional
        Unit of the reward.
    legend : {"above", "best", "upper left", "upper right", "lower left", "lower right", "none"}
        Position of the legend; panels with single differences have titles instead.

    Returns
    -------
    Axes
        The axes of the first panel; ``ax.figure.axes`` contains all.

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    ParameterError
        If arguments are inconsistent; the message lists every problem.

    See Also
    --------
    confidence_sequence.frame : What is drawn, as a tidy frame.

    Notes
    -----
    Differences are drawn against 0, the control. If every value has been excluded, there is no interval, and
    the label states the round at which this occurred. On a log scale, the axis of a new figure begins where
    the first interval becomes visible, unless `rounds` is given.

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
    problems = axes_problem("plots.confidence_sequence", ax, legend) + limits_problem(limits)
    if ax is not None and isinstance(sequence, SequenceResults):
        count = len(sequence.terms if terms is None else terms)
        if count > _BANDS:
            problems.append(
                f"ax has room for {_BANDS} bands, not {count}: name fewer terms, or omit ax to draw panels"
            )
    table = _sequence(problems, sequence, terms=terms, alpha=alpha, rounds=rounds, truth=truth, log=log)
    parts = [part for _, part in table.groupby("term", sort=False)]
    dated = log is None and bool(table["date"].notna().all())
    scaled = not dated and log is not False
    ends = _ends(parts, table["truth"], limits)
    single = ax is None and len(parts) > 1 and table["control"].notna().all()
    axes = panel_grid(len(parts), 4, 1.25) if single else _panels(ax, len(parts))
    for own, places in zip(axes, np.array_split(np.arange(len(parts)), len(axes)), strict=True):
        shown = [0] if single else places.tolist()
        handles = _draw_panel(own, [parts[place] for place in places], shown, ends, dated)
        if scaled and rounds is None and ax is None:
            own.set_xlim(_start(parts), float(table["round"].max()))
        if dated:
            date_axis(own)
        else:
            round_axis(own, float(table["round"].max()), scaled)
        own.set_ylim(*ends)
        own.set_ylabel(_asked(table, unit))
        if single:
            titled([own], [_label(parts[places[0]])])
        legend_of(own, [] if single else handles, legend, grow=ax is None)
    outer(axes)
    say_uncovered(axes[0], uncovered(sequence), own=ax is None)
    return axes[0]


def _asked(table: pd.DataFrame, unit: str | None) -> str:
    """Label of the vertical axis; for differences, with the arm of comparison."""
    names, control = table["quantity"].unique(), table["control"].iloc[0]
    label = quantity(names[0] if len(names) == 1 else "estimate", unit)
    if control is None:
        return label
    [name] = short_names([arm_label(control)], 40)
    return "\n".join(textwrap.wrap(f"{label}, less {label_text(name)}", 36))


def _draw_panel(
    ax: Axes, parts: list[pd.DataFrame], places: Sequence[int], ends: tuple[float, float], dated: bool
) -> list[Any]:
    """Draw bands, true values, and the line for the control; return the legend entries."""
    handles = [_draw(ax, part, int(place), ends, dated) for part, place in zip(parts, places, strict=True)]
    control = parts[0]["control"].iloc[0]
    if control is not None and ends[0] <= 0.0 <= ends[1]:
        ax.axhline(0.0, color=ink(ax), linewidth=0.8, zorder=1.2)
    true = [float(part["truth"].iloc[0]) for part in parts]
    if not np.isnan(true).all():
        handles.append(_draw_truth(ax, true, places))
    return handles


def _even_rounds(sequence: SequenceResults, dates: Any) -> list[int] | None:
    """Rounds evenly spaced on the axis; None for those in the table, if they are the ends of batches."""
    if sequence.reference.ends is not None:
        return None
    last = sequence.reference.n_rounds
    if dates is None:
        return sorted(set(np.linspace(1, last, min(last, _STEPS)).round().astype(int).tolist()))
    times = dates.astype(np.int64)
    begun = np.searchsorted(times, np.linspace(times[0], times[-1], _STEPS), side="right")
    return sorted({*np.clip(begun, 1, last).tolist(), last})


def _panels(ax: Axes | None, terms: int) -> list[Axes]:
    """The given axes, or those of a new figure with one panel for every three terms."""
    count = -(-terms // _BANDS)
    if ax is not None or count == 1:
        return [prepared(ax)]
    return panel_grid(count, 1, 1.7)


def _in_sight(part: pd.DataFrame) -> Any:
    """Whether each interval is at most twice as wide as the last one, shape (rounds,)."""
    width = (part["high"] - part["low"]).to_numpy()
    finite = width[np.isfinite(width)]
    return np.isfinite(width) & (width <= _NEAR * (finite[-1] if finite.size else 0.0))


def _start(parts: list[pd.DataFrame]) -> float:
    """The first round at which an interval is visible."""
    seen = [part["round"].to_numpy()[_in_sight(part)] for part in parts]
    first, last = parts[0]["round"].iloc[[0, -1]]
    found = min((rounds[0] for rounds in seen if rounds.size), default=first)
    return float(found if found < last else first)


def _ends(parts: list[pd.DataFrame], true: Any, limits: Any) -> tuple[float, float]:
    """Axis limits that show the visible intervals, or the requested ones."""
    near = [part.loc[_in_sight(part), ["estimate", "low", "high"]].to_numpy() for part in parts]
    return room([*near, true], limits)


def _draw(ax: Axes, part: pd.DataFrame, place: int, ends: tuple[float, float], dated: bool) -> Any:
    shown = look(place)
    rounds = part["round"].to_numpy()
    x = part["date"].to_numpy() if dated else rounds
    # Infinite limits cannot be drawn, so bands end far outside the axes.
    far = 10.0 * (ends[1] - ends[0])
    low, high = (part[name].clip(ends[0] - far, ends[1] + far).to_numpy() for name in ("low", "high"))
    ax.fill_between(x, low, high, color=shown.colour, alpha=0.14, linewidth=0.0)
    for limit in (low, high):
        ax.plot(x, limit, color=shown.colour, linewidth=0.7, linestyle=shown.line)
    return marked_line(ax, x, part["estimate"], _label(part), place, max(1, len(part) // 6))


def _label(part: pd.DataFrame) -> str:
    """The label of a term, and the round from which its interval is empty."""
    label = str(part["label"].iloc[0])
    gone = part.loc[part[["low", "high"]].isna().any(axis=1), "round"]
    return f"{label} (all excluded from round {gone.iloc[0]:,})" if len(gone) else label


def _draw_truth(ax: Axes, true: Sequence[float], places: Sequence[int]) -> Any:
    """Draw a line at each true value in a panel, in the colour of its term; return the legend entry."""
    from matplotlib.lines import Line2D

    style: dict[str, Any] = {"linewidth": 1.1, "linestyle": (0, (1, 1))}
    for place, value in zip(places, true, strict=True):
        if not np.isnan(value):
            colour = ink(ax) if len(true) == 1 else look(int(place)).colour
            ax.axhline(value, color=colour, zorder=1.5, **style)
    return Line2D([], [], color=ink(ax), label="true value", **style)
