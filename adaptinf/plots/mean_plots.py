"""Arm means by day, by batch, or in blocks of rounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.arms import ArmMeans
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import alpha_problems, refuse
from adaptinf.plots.collection_plots import chosen_arms
from adaptinf.plots.frames import draws
from adaptinf.plots.interval_rows import limits_problem, room
from adaptinf.plots.plot_periods import Stretches, every_problem, stretches
from adaptinf.plots.style import (
    BESIDE,
    axes_problem,
    label_text,
    look,
    name_series,
    outer,
    panel_grid,
    prepared,
    quantity,
    say_uncovered,
    titled,
)
from adaptinf.texts import arm_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from adaptinf.typing import BoolArray


# With more arms in a panel, or with more steps, intervals would hide one another.
_TOGETHER, _STEPS = 3, 20


def _means(
    problems: list[str],
    log: AdaptiveLog,
    *,
    every: int | str | None = None,
    arms: Sequence[Any] | None = None,
    alpha: float = 0.05,
) -> pd.DataFrame:
    """Means of each arm in each block of rounds, as drawn by `plots.means`.

    Parameters
    ----------
    log, every, arms, alpha
        As in `plots.means`.

    Returns
    -------
    DataFrame
        One row per arm and block. `start` and `end`: dates, midpoints between batch numbers, or the rounds
        before the block and at its end; `arm`; `pulls`; `mean`, `low` and `high`, NaN if they cannot be
        computed; `estimator`, and `validity` of the interval, as in a result.

    Raises
    ------
    ParameterError
        If arguments are inconsistent; the message lists every problem.
    InvalidForLog
        If no estimator of means is valid for the log.

    Examples
    --------
    >>> import adaptinf as ai
    >>> environment = ai.environments.BernoulliArms([0.3, 0.6])
    >>> log = ai.designs.Thompson(floor=0.2).run(environment, horizon=400, rng=1)
    >>> frame = ai.plots.means.frame(log, every=200)
    >>> frame[["end", "arm", "mean"]].round(2).to_dict("list")
    {'end': [200.0, 400.0, 200.0, 400.0], 'arm': [0, 0, 1, 1], 'mean': [0.09, 0.21, 0.61, 0.59]}
    """
    return _measured(problems, log, every, arms, alpha)[0]


def _measured(
    problems: list[str], log: AdaptiveLog, every: int | str | None, arms: Sequence[Any] | None, alpha: float
) -> tuple[pd.DataFrame, Stretches]:
    """Means of the arms in each block, and the blocks."""
    given: Any = log
    if not isinstance(given, AdaptiveLog):
        problem = f"log must be an AdaptiveLog, whose rewards are known by round, got {log!r:.60}"
        raise ParameterError("plots.means", [problem, *problems])
    refuse("plots.means", [*problems, *alpha_problems(alpha), *every_problem(every, log)])
    shown = chosen_arms("plots.means", arms, log)
    steps = stretches(log, every, _STEPS)
    parts, refused = [], []
    for place, (start, end) in enumerate(zip(steps.start, steps.end, strict=True)):
        keep = steps.place == place
        part = _counted(log, keep, shown)
        try:
            part = _estimated(log, keep, part, alpha)
        except InvalidForLog as error:
            refused.append(error)
        parts.append(part.assign(start=start, end=end))
    if len(refused) == len(parts):
        raise refused[0]
    table = pd.concat(parts, ignore_index=True)
    order = {str(arm): place for place, arm in enumerate(shown)}
    ranks = table["arm"].map(lambda arm: order[str(arm)])
    names = ["start", "end", "arm", "pulls", "mean", "low", "high", "estimator", "validity"]
    sorted_table: pd.DataFrame = table.loc[ranks.sort_values(kind="stable").index, names]
    return sorted_table.reset_index(drop=True), steps


def _counted(log: AdaptiveLog, keep: BoolArray, arms: list[Any]) -> pd.DataFrame:
    """Number of rounds of each arm among those selected, before means are added; keep has shape (T,)."""
    action = log.arrays.action[keep]
    pulls = [int((action == log.arms.index(arm)).sum()) for arm in arms]
    frame = pd.DataFrame({"arm": pd.Series(arms, dtype=object), "pulls": pulls})
    return frame.assign(mean=np.nan, low=np.nan, high=np.nan, estimator="", validity="")


def _estimated(log: AdaptiveLog, keep: BoolArray, frame: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """Means of the arms present in the rounds, by the default method for these rounds."""
    seen = (frame["pulls"] > 0).to_numpy()
    if not seen.any():
        return frame
    found = ArmMeans(log, frame.loc[seen, "arm"].tolist(), rounds=keep).fit()
    limits = found.conf_int(alpha)
    numbers = {"mean": found.estimate, "low": limits["low"].to_numpy(), "high": limits["high"].to_numpy()}
    for name, values in numbers.items():
        frame.loc[seen, name] = values
    return frame.assign(estimator=found.estimator, validity=found.validity)


@draws(_means)
def means(
    log: AdaptiveLog,
    ax: Axes | None = None,
    *,
    every: int | str | None = None,
    arms: Sequence[Any] | None = None,
    alpha: float = 0.05,
    limits: tuple[float, float] | None = None,
    unit: str | None = None,
    legend: str = "beside",
) -> Axes:
    """Mean reward of each arm by day, by batch, or in blocks of rounds, with intervals.

    Parameters
    ----------
    log : AdaptiveLog
        The trial.
    ax : Axes, optional
        Axes on which to draw at most three arms; by default a new figure, with one panel per arm if there are
        more arms or more than 20 steps.
    every : {"batch", "hour", "day", "week", "month"} or int, optional
        Step size, as for `plots.allocation`; by default there are at most 20 steps.
    arms : sequence of labels, optional
        The arms to draw; by default all.
    alpha : float
        One minus the confidence level of each interval, between 0 and 0.5.
    limits : (float, float), optional
        Limits of the vertical axis; by default all means are visible, and intervals as well if the means
        remain readable.
    unit : str, optional
        Unit of the reward.
    legend : {"beside", "above", "best", "upper left", "upper right", "lower left", "lower right", "none"}
        Position of the arm names in a common panel; panels with single arms have titles.

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
    InvalidForLog
        If no estimator of means is valid for the log.

    See Also
    --------
    means.frame : What is drawn, as a tidy frame.

    Notes
    -----
    Each step is analysed separately, by ``ArmMeans(log, rounds=...).fit()``. Intervals are not simultaneous:
    of 20 steps, one is expected to miss its mean. If an arm has no rounds in a step, or too few for an
    interval, no interval is shown. Rewards of a private trial are not covered by its guarantee.

    Examples
    --------
    >>> import adaptinf as ai
    >>> environment = ai.environments.BernoulliArms([0.3, 0.6])
    >>> log = ai.designs.Thompson(floor=0.2).run(environment, horizon=400, rng=1)
    >>> ax = ai.plots.means(log, every=100)
    >>> ax.get_ylabel(), len(ax.collections)
    ('mean reward', 2)
    """
    problems = axes_problem("plots.means", ax, legend, BESIDE) + limits_problem(limits)
    if ax is not None and isinstance(log, AdaptiveLog):
        count = log.n_arms if arms is None else len(arms)
        if count > _TOGETHER:
            problems.append(
                f"ax has room for {_TOGETHER} arms, not {count}: name fewer arms in arms=, or omit ax"
            )
    table, steps = _measured(problems, log, every, arms, alpha)
    shown = list(dict.fromkeys(table["arm"]))
    parts = [table[table["arm"] == arm] for arm in shown]
    single = ax is None and len(shown) > 1 and (len(shown) > _TOGETHER or len(parts[0]) > _STEPS)
    across = 4 if len(shown) > _TOGETHER else 1
    panels = panel_grid(len(shown), across, 1.2) if single else [prepared(ax)]
    together = 1 if single else len(shown)
    lines = [
        _draw(panels[place if single else 0], part, arm_label(arm), 0 if single else place, together)
        for place, (part, arm) in enumerate(zip(parts, shown, strict=True))
    ]
    ends = _ends(table, limits)
    for own in panels:
        own.set_xlim(table["start"].min(), table["end"].max())
        own.set_ylim(*ends)
        own.set_ylabel(quantity("mean reward", unit))
        steps.label(own)
    if single:
        titled(panels, [arm_label(arm) for arm in shown])
    else:
        names = [arm_label(arm) for arm in shown]
        name_series(panels[0], lines, names, range(len(shown)), legend, grow=ax is None)
    outer(panels)
    say_uncovered(panels[0], [log.guarantee], own=ax is None)
    return panels[0]


def _draw(ax: Axes, part: pd.DataFrame, label: str, place: int, arms: int) -> Any:
    """Draw means at the middles of their steps, with bars side by side if there are few arms."""
    start, end = part["start"].to_numpy(), part["end"].to_numpy()
    share = 0.5 + 0.2 * (place - 0.5 * (arms - 1))
    x = start + (end - start) * share if start.dtype.kind != "M" else start + _part(end - start, share)
    mean, low, high = (part[name].to_numpy(dtype=np.float64) for name in ("mean", "low", "high"))
    shown = look(place)
    known = ~np.isnan(low) & ~np.isnan(high)
    ax.vlines(x[known], low[known], high[known], color=shown.colour, linewidth=1.1)
    [line] = ax.plot(
        x,
        mean,
        color=shown.colour,
        linestyle="none",
        marker=shown.marker,
        markersize=2.8,
        label=label_text(label),
    )
    return line


def _part(length: Any, share: float) -> Any:
    """A quantile of interval lengths, given as a share."""
    return (length.astype("timedelta64[us]").astype(np.int64) * share).astype("timedelta64[us]")


def _ends(table: pd.DataFrame, limits: Any) -> tuple[float, float]:
    """Axis limits that show all means, and all intervals except those that are much longer than most."""
    width = (table["high"] - table["low"]).to_numpy(dtype=np.float64)
    usual = np.nanmedian(width) if np.isfinite(width).any() else 0.0
    near = np.isfinite(width) & (width <= 3.0 * usual)
    return room([table["mean"], table.loc[near, ["low", "high"]]], limits)
