"""The winner's intervals side by side: with no allowance for the choice, and with each of three."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.claims.reports.pictures import TIED
from adaptinf.inference.distributions.tails import normal_quantile
from adaptinf.inference.winners.exact import ProjectedLaw
from adaptinf.inference.winners.winner_law import WinnerLaw
from adaptinf.inference.winners.winner_results import WinnerResults
from adaptinf.parameters import alpha_problems, number_array, refuse
from adaptinf.plots.drawing.rows import Series, draw_rows, limits_problem, room, row_axes
from adaptinf.plots.drawing.style import GREY, arm_label, axes_problem, label_text, legend_of, look, quantity
from adaptinf.plots.drawing.terms import ESTIMANDS, MEANS, by_name
from adaptinf.texts import absent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROWS = ("naive", "conditional", "projection", "hybrid")
_LONG = 1.6
"""The axis is at most so many times as long to show a conditional interval whole."""


def winner(
    results: WinnerResults | Mapping[str, WinnerResults],
    ax: Axes | None = None,
    *,
    alpha: float = 0.05,
    truth: Any = None,
    limits: tuple[float, float] | None = None,
    unit: str | None = None,
    legend: str = "above",
) -> Axes:
    """Intervals of the winner, one row each: naive, conditional, projection and hybrid.

    Parameters
    ----------
    results : WinnerResults, or mapping of str to WinnerResults
        What ``Winner(log).fit()`` returned, by whichever method; several by name.
    ax : Axes, optional
        Where to draw; by default a new figure of column width.
    alpha : float
        One minus the level of the intervals, between 0 and 0.5.
    truth : float, or mapping of name to float, optional
        True mean, or difference, of the arm that won, drawn as a dotted line.
    limits : (float, float), optional
        Ends of the axis; arrows stand for what lies beyond. By default all intervals are shown whole, but for
        conditional ones that are far longer than the others.
    unit : str, optional
        Unit of the reward, for the label of the axis.
    legend : {"above", "best", "upper left", "upper right", "lower left", "lower right", "none"}
        Where the legend goes, of several results.

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
    The naive interval takes no notice of the choice, and is about the estimate that won. The others are drawn
    with the median-unbiased estimate, as they stand in the table of a fit by that method. Between tied arms
    something else chose: the projection alone is then valid, and is drawn.

    Examples
    --------
    >>> import adaptinf as ai
    >>> arms = ai.environments.BernoulliArms([0.30, 0.32, 0.35])
    >>> log = ai.designs.EpsilonGreedy(exploration=0.3).run(arms, horizon=3_000, rng=0)
    >>> ax = ai.plots.winner(ai.Winner(log).fit(), truth=0.35)
    >>> ax.get_xlabel(), [label.get_text() for label in ax.get_yticklabels()]
    ('mean reward of the winner, arm 2', ['naive', 'conditional', 'projection', 'hybrid'])
    """
    named, problems = by_name("results", results, (WinnerResults,), "what Winner(log).fit() returned")
    problems += axes_problem("plots.winner", ax, legend) + limits_problem(limits) + alpha_problems(alpha)
    problems += [
        f"{f'results[{name!r}]' if name else 'results'} {_alone(one)}: plots.forest draws it"
        for name, one in named.items()
        if not isinstance(one.reference, WinnerLaw)
    ]
    true = _true_values(truth, list(named), problems)
    refuse("plots.winner", problems)
    series = [_series(one, name, alpha, place) for place, (name, one) in enumerate(named.items())]
    own = row_axes(ax, _ROWS, len(named))
    nulls = [] if {one.estimands[0].kind for one in named.values()} <= MEANS else [0.0]
    ends = _ends(series, [*true.values(), *nulls], limits)
    for null in nulls:
        own.axvline(null, color=GREY, linewidth=0.8, linestyle=(0, (1, 1)), zorder=0.5)
    handles = draw_rows(own, series, ends)
    for name, value in true.items():
        colour = "black" if len(named) == 1 else look(list(named).index(name)).colour
        own.axvline(value, color=colour, linewidth=1.1, linestyle=(0, (1, 1)), zorder=0.6)
    own.set_xlabel(quantity(_asked(named), unit))
    legend_of(own, handles if len(named) > 1 else [], legend, grow=ax is None)
    return own


def _alone(one: WinnerResults) -> str:
    """Why a result has one interval alone."""
    if isinstance(one.reference, ProjectedLaw):
        return "is of counts too small for normal laws, and has the projection alone"
    return "is of held-out rounds, whose usual interval needs no allowance"


def _series(one: WinnerResults, name: str, alpha: float, place: int) -> Series:
    """The intervals of one result in the order of the rows."""
    law = one.reference
    assert isinstance(law, WinnerLaw)
    estimate, limits = np.full(len(_ROWS), np.nan), np.full((len(_ROWS), 2), np.nan)
    estimate[0] = law.own * law.scale
    limits[0] = (
        estimate[0] + np.array([-1.0, 1.0]) * abs(float(normal_quantile(math.log(0.5 * alpha)))) * law.scale
    )
    remarks = [""] * len(_ROWS)
    for row, method in enumerate(_ROWS[1:], start=1):
        if law.tied and method != "projection":
            remarks[row] = TIED()
            continue
        own = replace(law, method=method)
        estimate[row], limits[row] = own.median, own.interval(math.log(alpha))[0]
    every = np.ones(len(_ROWS), dtype=np.bool_)
    return Series(name, estimate, limits[:, 0], limits[:, 1], every, place, remarks=tuple(remarks))


def _ends(series: list[Series], others: list[float], limits: Any) -> tuple[float, float]:
    """Ends that show all intervals, but a conditional one only where they are not far apart for its sake."""
    firm = np.array([row != "conditional" for row in _ROWS])
    near, every = (
        room([others, *(part[rows] for one in series for part in (one.estimate, one.low, one.high))], limits)
        for rows in (firm, np.ones(len(_ROWS), dtype=np.bool_))
    )
    long = any(np.isinf([*one.low, *one.high]).any() for one in series)
    return near if long or every[1] - every[0] > _LONG * (near[1] - near[0]) else every


def _asked(named: Mapping[str, WinnerResults]) -> str:
    """What the axis shows: of a single result with the arm that won."""
    kinds = {ESTIMANDS.get(one.estimands[0].kind, "estimate") for one in named.values()}
    label = kinds.pop() if len(kinds) == 1 else "estimate"
    if len(named) > 1:
        return label
    [one] = named.values()
    arm = label_text(arm_label(one.winner))
    if one.against is None:
        return f"{label} of the winner, {arm}"
    return f"{label}, {arm} less {label_text(arm_label(one.against))}"


def _true_values(truth: Any, names: list[str], problems: list[str]) -> dict[str, float]:
    """True values by the name of their result."""
    if truth is None or not names:
        return {}
    given = truth if isinstance(truth, Mapping) else dict.fromkeys(names, truth)
    problems += [f"truth: {absent('result', name, names)}" for name in given if name not in names]
    values = {name: number_array(value) for name, value in given.items()}
    if any(value is None or value.shape != () or not np.isfinite(value) for value in values.values()):
        problems.append(f"truth must be a finite number, or a dict of them by name, got {truth!r:.60}")
        return {}
    return {name: float(value) for name, value in values.items() if value is not None}
