"""Confidence sequences: intervals over the rounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from adaptinf.errors import ParameterError
from adaptinf.inference.sequences.results import SequenceResults
from adaptinf.parameters import FLAG, alpha_problems, refuse
from adaptinf.plots.drawing.rows import limits_problem, room
from adaptinf.plots.drawing.style import (
    axes_problem,
    label_text,
    legend_of,
    look,
    prepared,
    quantity,
    round_axis,
)
from adaptinf.plots.drawing.terms import ESTIMANDS, chosen_terms, term_label, true_values
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDEST = 4.0


def confidence_sequence(
    sequence: SequenceResults,
    ax: Axes | None = None,
    *,
    terms: Sequence[str] | None = None,
    alpha: float = 0.05,
    rounds: Sequence[int] | None = None,
    truth: Any = None,
    limits: tuple[float, float] | None = None,
    log: bool = True,
    unit: str | None = None,
    legend: str = "above",
) -> Axes:
    """Estimates and their intervals as they were known after each round.

    Parameters
    ----------
    sequence : SequenceResults
        What ``ConfidenceSequence(log).fit()`` returns.
    ax : Axes, optional
        Where to draw; by default a new figure of column width.
    terms : sequence of str, optional
        Which; by default all.
    alpha : float
        One minus the level, between 0 and 0.5; it holds for all rounds together.
    rounds : sequence of int, optional
        Rounds at which the sequence is computed; by default some ten in each power of ten.
    truth : float, array_like, Series or mapping of term to float, optional
        True values, drawn as dotted lines.
    limits : (float, float), optional
        Ends of the vertical axis. By default the widest of the early intervals run off the axes.
    log : bool
        Whether rounds are on a log scale.
    unit : str, optional
        Unit of the reward.
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
    Where every value has been excluded there is no interval; the legend says from which round on.

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
    problems += limits_problem(limits) + alpha_problems(alpha) + FLAG("log", log)
    known = list(sequence.terms)
    shown = known if terms is None else chosen_terms(terms, known, problems)
    true = true_values(truth, shown, known, problems)
    refuse("plots.confidence_sequence", problems)
    table = sequence.table(alpha, rounds)
    parts = [table[table["term"] == term] for term in shown]
    own = prepared(ax)
    ends = _ends(parts, [] if true is None else true, limits)
    handles = [
        _draw(own, part, term_label(sequence, term), place, ends)
        for place, (term, part) in enumerate(zip(shown, parts, strict=True))
    ]
    round_axis(own, float(table["t"].iloc[-1]), log)
    if true is not None:
        handles += _draw_truth(own, true)
    own.set_ylim(*ends)
    kinds = {sequence.estimands[known.index(term)].kind for term in shown}
    label = ESTIMANDS.get(kinds.pop(), "estimate") if len(kinds) == 1 else "estimate"
    own.set_ylabel(quantity(label, unit))
    legend_of(own, handles, legend, grow=ax is None)
    return own


def _ends(parts: list[pd.DataFrame], true: Any, limits: Any) -> tuple[float, float]:
    """Ends that show all limits, or those of the later half where the early ones are far wider."""
    columns = ["estimate", "low", "high"]
    later = [part[columns].iloc[len(part) // 2 :].to_numpy() for part in parts]
    narrow = room([*later, true], limits, margin=0.15)
    wide = room([*(part[columns].to_numpy() for part in parts), true], limits)
    return wide if wide[1] - wide[0] <= _WIDEST * (narrow[1] - narrow[0]) else narrow


def _draw(ax: Axes, part: pd.DataFrame, label: str, place: int, ends: tuple[float, float]) -> Any:
    shown = look(place)
    rounds = part["t"].to_numpy()
    # infinite limits run off the axes
    far = 10.0 * (ends[1] - ends[0])
    low, high = (part[name].clip(ends[0] - far, ends[1] + far).to_numpy() for name in ("low", "high"))
    gone = rounds[np.isnan(low) | np.isnan(high)]
    if gone.size:
        label = f"{label} (all excluded from round {gone[0]:,})"
    ax.fill_between(rounds, low, high, color=shown.colour, alpha=0.14, linewidth=0.0)
    for limit in (low, high):
        ax.plot(rounds, limit, color=shown.colour, linewidth=0.7, linestyle=shown.line)
    [line] = ax.plot(
        rounds,
        part["estimate"],
        color=shown.colour,
        linewidth=1.3,
        linestyle=shown.line,
        marker=shown.marker,
        markersize=3.5,
        markevery=max(1, len(part) // 6),
        label=label_text(label),
    )
    return line


def _draw_truth(ax: Axes, true: FloatArray) -> list[Any]:
    """A line at each true value, in the colour of its term; the entry of the legend."""
    from matplotlib.lines import Line2D

    style: dict[str, Any] = {"linewidth": 1.1, "linestyle": (0, (1, 1))}
    for place, value in enumerate(true):
        if not np.isnan(value):
            ax.axhline(value, color="black" if true.size == 1 else look(place).colour, zorder=1.5, **style)
    return [Line2D([], [], color="black", label="true value", **style)]
