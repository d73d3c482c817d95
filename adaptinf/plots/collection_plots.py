"""Plots of data collection: shares of the arms over time, and propensities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.log import AdaptiveLog, PublicLog
from adaptinf.parameters import FLAG, SHARE, refuse
from adaptinf.plots.frames import draws
from adaptinf.plots.plot_periods import (
    Stretches,
    even_stretches,
    every_problem,
    step_path,
    steps_of_sums,
    stretches,
)
from adaptinf.plots.style import (
    BESIDE,
    COLOURS,
    INK,
    axes_problem,
    height_of_names,
    ink,
    log_axis,
    look,
    marked_line,
    most_coloured,
    name_series,
    one_for_each,
    prepared,
    round_axis,
    say_uncovered,
)
from adaptinf.sums import Sums
from adaptinf.texts import absent, arm_label
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Collected = AdaptiveLog | Sums | PublicLog
# Propensities are averaged over this many stretches: with more, lines that cross cannot be followed.
_STRETCHES, _LOG_STRETCHES, _SMOOTH = 40, 24, 120


def _shares(
    problems: list[str],
    logs: Collected | Iterable[Collected],
    *,
    every: int | str | None = None,
    arms: Sequence[Any] | None = None,
    band: float = 0.9,
) -> pd.DataFrame:
    """Share of each arm in each block of rounds, as drawn by `plots.allocation`.

    Parameters
    ----------
    logs, every, arms, band
        As in `plots.allocation`.

    Returns
    -------
    DataFrame
        One row per arm and block. `start` and `end`: dates, midpoints between batch numbers, or the rounds
        before the block and at its end; `arm`; `share` of the rounds; `low` and `high`: the central band over
        several trials, NaN for one; `pulls` and `rounds`: number for the arm and for all arms, per trial.

    Raises
    ------
    ParameterError
        If arguments are inconsistent; the message lists every problem.
    InvalidForLog
        If a public part covers no actions.

    Examples
    --------
    >>> import adaptinf as ai
    >>> environment = ai.environments.BernoulliArms([0.3, 0.6])
    >>> log = ai.designs.Thompson().run(environment, horizon=300, rng=1)
    >>> ai.plots.allocation.frame(log, every=150)[["start", "end", "arm", "pulls", "rounds"]]
       start    end  arm  pulls  rounds
    0    0.0  150.0    0    7.0   150.0
    1  150.0  300.0    0    0.0   150.0
    2    0.0  150.0    1  143.0   150.0
    3  150.0  300.0    1  150.0   150.0
    """
    return _measured(problems, _listed(logs), every, arms, band)[0]


def _measured(
    problems: list[str], given: list[Any], every: int | str | None, arms: Sequence[Any] | None, band: float
) -> tuple[pd.DataFrame, Stretches]:
    """Shares of the arms in each block, and the blocks."""
    problems = [*problems, *_log_problems(given), *SHARE("band", band)]
    if not problems:
        problems += _every_problems(every, given)
    refuse("plots.allocation", problems)
    shown = chosen_arms("plots.allocation", arms, given[0])
    steps, counts = _counted(given, every)
    rounds = counts.sum(axis=2)
    shares = counts / rounds[:, :, None]
    ends = np.quantile(shares, [0.5 - 0.5 * band, 0.5 + 0.5 * band], axis=0)
    if len(given) == 1:
        ends = np.full_like(ends, np.nan)
    parts = []
    for arm in shown:
        code = given[0].arms.index(arm)
        columns = {
            "start": steps.start,
            "end": steps.end,
            "arm": arm,
            "share": shares[:, :, code].mean(axis=0),
        }
        columns |= {"low": ends[0][:, code], "high": ends[1][:, code]}
        columns |= {"pulls": counts[:, :, code].mean(axis=0), "rounds": rounds.mean(axis=0)}
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True), steps


@draws(_shares)
def allocation(
    logs: Collected | Iterable[Collected],
    ax: Axes | None = None,
    *,
    every: int | str | None = None,
    arms: Sequence[Any] | None = None,
    band: float = 0.9,
    legend: str = "beside",
) -> Axes:
    """Each arm's share of the rounds, by day, by batch, or in blocks of rounds.

    Parameters
    ----------
    logs : AdaptiveLog, Sums or PublicLog, or iterable of them
        One trial, or several with the same arms and rounds: their mean share, with a band for the central
        trials.
    ax : Axes, optional
        Axes to draw on; by default a new figure of column width.
    every : {"batch", "hour", "day", "week", "month"} or int, optional
        Step size: a batch, a period of the dates in ``round=``, or a number of rounds. The default is the
        shortest period that gives at most 60 steps; without dates, batches if there are at most 60; otherwise
        about thirty blocks of rounds.
    arms : sequence of labels, optional
        The arms to draw; by default all.
    band : float
        Share of the trials that the band contains in each step, between 0 and 1.
    legend : {"beside", "above", "best", "upper left", "upper right", "lower left", "lower right", "none"}
        Position of the names of arms: next to the ends of their lines, or in a legend.

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
        If a public part covers no actions.

    See Also
    --------
    allocation.frame : What is drawn, as a tidy frame.

    Notes
    -----
    If there are more than eight arms, those with the most rounds are coloured, and the others are grey. A
    step shows the rounds within it, not the cumulative rounds; a gap is a period without rounds. The dates
    and batches of a private trial are not covered by its guarantee: plot ``log.public()`` to show it to
    others.

    Examples
    --------
    >>> import adaptinf as ai
    >>> environment = ai.environments.BernoulliArms([0.3, 0.6])
    >>> log = ai.designs.Thompson().run(environment, horizon=300, rng=1)
    >>> ax = ai.plots.allocation(log)
    >>> ax.get_ylabel(), ax.get_lines()[1].get_label()
    ('share of every 10 rounds', 'arm 1')
    """
    given = _listed(logs)
    problems = axes_problem("plots.allocation", ax, legend, BESIDE)
    table, steps = _measured(problems, given, every, arms, band)
    shown = list(dict.fromkeys(table["arm"]))
    parts = [table[table["arm"] == arm] for arm in shown]
    places = most_coloured([float(part["pulls"].sum()) for part in parts])
    own = prepared(ax, height_of_names(len(shown)) if legend == "beside" else 2.2)
    lines = [
        _draw_steps(own, part, arm_label(arm), place)
        for part, arm, place in zip(parts, shown, places, strict=True)
    ]
    highest = float(np.nanmax(table[["share", "high"]].to_numpy()))
    top = 1.0 if highest > 0.5 else 1.1 * highest
    own.set_ylim(-0.02 * top, 1.02 * top)
    own.set_ylabel("share of every " + steps.name if steps.axis == "round" else f"share of the {steps.name}")
    steps.label(own)
    # Dates and batches are not outputs of a private design, so its guarantee does not cover this plot.
    if steps.axis != "round":
        say_uncovered(own, [given[0].guarantee], own=ax is None)
    name_series(own, lines, [arm_label(arm) for arm in shown], places, legend, grow=ax is None)
    return own


def _draw_steps(ax: Axes, part: pd.DataFrame, label: str, place: int) -> Any:
    x, (share, low, high) = step_path(part, ("share", "low", "high"))
    if not np.isnan(low).all() and place < len(COLOURS):
        ax.fill_between(x, low, high, color=look(place).colour, alpha=0.2, linewidth=0.0)
    line = _line(ax, x, share, label, place, points=3)
    line.set_linestyle("-")  # Dashes would break at the corners of steps.
    return line


def _steps(given: list[Any], every: int | str | None) -> Stretches:
    """The steps for one log; for several, whose dates and batches differ, steps are by rounds."""
    log = given[0]
    if isinstance(log, Sums):
        return steps_of_sums(log)
    if isinstance(log, AdaptiveLog) and len(given) == 1:
        return stretches(log, every)
    assert not isinstance(every, str)
    return even_stretches(log.n_rounds, every)


def _counted(given: list[Any], every: int | str | None) -> tuple[Stretches, FloatArray]:
    """Steps, and the number of rounds of each arm in each step, shape (logs, s, K)."""
    steps = _steps(given, every)
    if isinstance(given[0], Sums):
        return steps, np.stack([log.cells.pulls for log in given])
    size, n_arms = steps.start.size, given[0].n_arms
    counts = []
    for log in given:
        public = isinstance(log, PublicLog)
        action = pd.Index(log.arms).get_indexer(log.rounds["action"]) if public else log.arrays.action
        counts.append(np.bincount(steps.place * n_arms + action, minlength=size * n_arms))
    return steps, np.stack(counts).reshape(len(given), size, n_arms).astype(np.float64)


def _every_problems(every: Any, given: list[Any]) -> list[str]:
    """Explain why the logs cannot be divided in this way."""
    hidden = [log for log in given if isinstance(log, PublicLog) and log.rounds is None]
    if hidden:
        raise InvalidForLog(
            "plots.allocation", hidden[0].left_out.get("action", "no action is covered"), ["plots.forest"]
        )
    log = given[0]
    if isinstance(log, Sums):
        return [] if every in (None, "batch") else [f"every must be 'batch' for sums, got {every!r}"]
    if isinstance(every, str) and (len(given) > 1 or isinstance(log, PublicLog)):
        return [f"every must be a number of rounds for several logs and for public parts, got {every!r}"]
    return every_problem(every, log)


def _propensities(
    problems: list[str],
    log: AdaptiveLog,
    *,
    floor: float | Callable[[FloatArray], ArrayLike] | ArrayLike | None = None,
    arms: Sequence[Any] | None = None,
    log_scale: bool = True,
) -> pd.DataFrame:
    """Propensities of each arm in blocks of rounds, as drawn by `plots.propensities`.

    Parameters
    ----------
    log, floor, arms, log_scale
        As in `plots.propensities`.

    Returns
    -------
    DataFrame
        One row per arm and block: `arm`, `round` (its middle), `propensity` (mean), `low` and `high` (range)
        and `zeros`, the share of the arm's propensities that are 0; and rows for the floor, whose `arm` is
        None.

    Raises
    ------
    ParameterError
        If arguments are inconsistent; the message lists every problem.
    InvalidForLog
        If the log has no propensities.

    Examples
    --------
    >>> import adaptinf as ai
    >>> environment = ai.environments.BernoulliArms([0.3, 0.6])
    >>> log = ai.designs.EpsilonGreedy(exploration=0.2).run(environment, horizon=300, rng=1)
    >>> ai.plots.propensities.frame(log).columns.tolist()
    ['arm', 'round', 'propensity', 'low', 'high', 'zeros']
    """
    problems = [*problems, *FLAG("log_scale", log_scale)]
    given: Any = log
    if not isinstance(given, AdaptiveLog):
        problems.insert(0, f"log must be an AdaptiveLog, got {log!r:.60}")
        raise ParameterError("plots.propensities", problems)
    bound = _floor(floor, log.n_rounds, problems)
    refuse("plots.propensities", problems)
    shown = chosen_arms("plots.propensities", arms, log)
    if log.arrays.propensities is None and log.arrays.propensity is None:
        raise InvalidForLog("plots.propensities", "it has no propensities", ["plots.allocation"])
    names = ["round", "propensity", "low", "high"]
    parts = []
    for arm in shown:
        table, zeros = _ranges(log, arm, log_scale)
        parts.append(pd.DataFrame(table, columns=names).assign(zeros=zeros))
        parts[-1].insert(0, "arm", pd.Series([arm] * len(table), dtype=object))
    if bound is not None:
        rounds = _grid(log.n_rounds, log_scale, _SMOOTH)
        columns = dict(zip(names, (rounds, *[bound[rounds - 1]] * 3), strict=True))
        parts.append(pd.DataFrame({"arm": None, **columns, "zeros": 0.0}))
    return pd.concat(parts, ignore_index=True)


@draws(_propensities)
def propensities(
    log: AdaptiveLog,
    ax: Axes | None = None,
    *,
    floor: float | Callable[[FloatArray], ArrayLike] | ArrayLike | None = None,
    arms: Sequence[Any] | None = None,
    log_scale: bool = True,
    legend: str = "beside",
) -> Axes:
    """Probability with which each arm was chosen, over the rounds.

    Parameters
    ----------
    log : AdaptiveLog
        A log with propensities, of every arm or only of the chosen one.
    ax : Axes, optional
        Axes to draw on; by default a new figure of column width.
    floor : float, callable or array_like of shape (rounds,), optional
        Lower bound on the propensities guaranteed by the design; a callable takes an array of round numbers.
    arms : sequence of labels, optional
        The arms to draw; by default all.
    log_scale : bool
        Whether both axes are logarithmic: a power-law decay is then a straight line.
    legend : {"beside", "above", "best", "upper left", "upper right", "lower left", "lower right", "none"}
        Position of the names of arms: next to the ends of their lines, or in a legend.

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
        If the log has no propensities.

    See Also
    --------
    propensities.frame : What is drawn, as a tidy frame.

    Notes
    -----
    Lines are means over blocks of rounds, at most 40 of them, or 24 on log scales; bands extend from the
    smallest to the largest propensity in a block. A propensity of 0 cannot be shown on a log scale; the label
    of the line gives the number of zeros. If only the chosen arm's propensity is logged, each arm's values
    are those of the rounds in which it was chosen, which tend to be larger than all of its propensities.

    Examples
    --------
    >>> import adaptinf as ai
    >>> environment = ai.environments.BernoulliArms([0.3, 0.6])
    >>> log = ai.designs.EpsilonGreedy(exploration=0.2).run(environment, horizon=300, rng=1)
    >>> ax = ai.plots.propensities(log, floor=0.1)
    >>> ax.get_yscale(), sorted(text.get_text() for text in ax.texts)
    ('log', ['arm 0', 'arm 1', 'floor'])
    """
    problems = axes_problem("plots.propensities", ax, legend, BESIDE)
    frame = _propensities(problems, log, floor=floor, arms=arms, log_scale=log_scale)
    bound = frame[frame["arm"].isna()]
    shown = chosen_arms("plots.propensities", arms, log)
    parts = [frame[frame["arm"] == arm] for arm in shown]
    places = most_coloured([float((log.arrays.action == log.arms.index(arm)).sum()) for arm in shown])
    own = prepared(ax, height_of_names(len(shown)) if legend == "beside" else 2.2)
    names = [
        _with_zeros(arm, float(part["zeros"].max()) if len(part) else 0.0, log_scale)
        for arm, part in zip(shown, parts, strict=True)
    ]
    lines = [
        _draw_range(own, part, name, place) for part, name, place in zip(parts, names, places, strict=True)
    ]
    if len(bound):
        style: dict[str, Any] = {"color": ink(own), "linewidth": 1.1, "linestyle": (0, (1, 1)), "zorder": 4}
        lines += own.plot(bound["round"], bound["propensity"], label="floor", **style)
        names.append("floor")
        places.append(INK)
    round_axis(own, float(log.n_rounds), log_scale)
    if log_scale:
        numbers = frame[["propensity", "low", "high"]].to_numpy()
        highest = numbers.max()
        top = 1.3 if highest > 0.5 else 1.5 * highest
        own.set_ylim(min(1.0, numbers[numbers > 0.0].min()) / 1.5, top)
        log_axis(own, "y")
    else:
        own.set_ylim(-0.02, 1.02)
    whole = log.arrays.propensities is not None
    own.set_ylabel("propensity" if whole else "propensity of the chosen arm")
    name_series(own, lines, names, places, legend, grow=ax is None)
    return own


def _ranges(log: AdaptiveLog, arm: Any, log_scale: bool) -> tuple[FloatArray, float]:
    """Propensities of an arm in blocks of rounds; returns shape (stretches, 4)."""
    code = log.arms.index(arm)
    if log.arrays.propensities is not None:
        rounds, values = np.arange(1, log.n_rounds + 1), log.arrays.propensities[:, code]
    else:
        rows = np.flatnonzero(log.arrays.action == code)
        rounds, values = rows + 1, np.asarray(log.arrays.propensity)[rows]
    if rounds.size == 0:
        return np.empty((0, 4)), 0.0
    stretches = _LOG_STRETCHES if log_scale else _STRETCHES
    starts = np.unique(np.searchsorted(rounds, _grid(log.n_rounds, log_scale, stretches)))
    starts = starts[starts < rounds.size]
    if starts[0] > 0:
        starts = np.append(0, starts)
    counts = np.diff(np.append(starts, rounds.size))
    edges = rounds[starts], rounds[starts + counts - 1]
    middle = np.sqrt(edges[0] * edges[1]) if log_scale else 0.5 * (edges[0] + edges[1])
    mean = np.add.reduceat(values, starts) / counts
    low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    # Rounding error may move an average out of its range.
    table = np.column_stack([middle, np.clip(mean, low, high), low, high])
    return table, float((values == 0.0).mean())


def _grid(last: int, log_scale: bool, points: int) -> IntArray:
    space = np.geomspace if log_scale else np.linspace
    return np.unique(np.round(space(1.0, float(last), min(last, points))).astype(np.int64))


def _draw_range(ax: Axes, part: pd.DataFrame, label: str, place: int) -> Any:
    rounds, low, high = part["round"], part["low"], part["high"]
    if (high > low).any() and place < len(COLOURS):
        ax.fill_between(rounds, low, high, color=look(place).colour, alpha=0.2, linewidth=0.0)
    return _line(ax, rounds, part["propensity"], label, place)


def _line(ax: Axes, x: Any, y: Any, label: str, place: int, points: int = 1) -> Any:
    """Draw a line with markers at some of its steps, avoiding the markers of other lines."""
    steps = max(1, len(x) // points)
    first, every = place % 5 * max(1, steps // 40), max(1, steps // 8)
    return marked_line(ax, x, y, label, place, (points // 2 + points * first, points * every))


def _with_zeros(arm: Any, zeros: float, log_scale: bool) -> str:
    if zeros == 0.0 or not log_scale:
        return arm_label(arm)
    return f"{arm_label(arm)} (0 in {zeros:.1%} of rounds)"


def _listed(logs: Any) -> list[Any]:
    if isinstance(logs, Collected) or not isinstance(logs, Iterable) or isinstance(logs, (str, bytes)):
        return [logs]
    return list(logs)


def _log_problems(logs: list[Any]) -> list[str]:
    if not logs:
        return ["logs must contain at least one log"]
    wrong = [log for log in logs if not isinstance(log, Collected)]
    if wrong:
        return [
            f"logs must be an AdaptiveLog, Sums, a public part, or a list of logs of one of these "
            f"kinds, got {wrong[0]!r:.60}"
        ]
    problems = []
    if len({type(log) for log in logs}) > 1:
        problems.append("the logs must all be of the same kind")
    if len({log.arms for log in logs}) > 1:
        problems.append("the logs must have the same arms in the same order")
    if len({log.n_rounds for log in logs}) > 1:
        sizes = sorted({log.n_rounds for log in logs})
        problems.append(
            f"the logs must have the same number of rounds, but they have {sizes[0]:,} to {sizes[-1]:,}"
        )
    return problems


def chosen_arms(subject: str, arms: Any, log: AdaptiveLog) -> list[Any]:
    """The requested arms."""
    if arms is None:
        return list(log.arms)
    if isinstance(arms, str) or not isinstance(arms, Sequence) or not arms:
        raise ParameterError(subject, [f"arms must be a list of arms, got {arms!r:.60}"])
    unknown = [arm for arm in arms if arm not in log.arms]
    if unknown:
        raise ParameterError(subject, [absent("arm", arm, log.arms, "the log has") for arm in unknown])
    return list(arms)


def _floor(floor: Any, n_rounds: int, problems: list[str]) -> FloatArray | None:
    """The floor in each round."""
    if floor is None:
        return None
    given = floor(np.arange(1.0, n_rounds + 1.0)) if callable(floor) else floor
    values = one_for_each(given, n_rounds)
    if values is None or not ((values >= 0.0) & (values <= 1.0)).all():
        problems.append(f"floor must be between 0 and 1, one number or one for each of {n_rounds:,} rounds")
        return None
    return values
