"""How the data were gathered: shares of the arms over time, propensities, and bins of a partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.designs.local.bins import bin_sums
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.results.base import Results
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import COUNT, FLAG, SHARE, UNIT, refuse
from adaptinf.plots.style import (
    arm_label,
    axes_problem,
    label_text,
    legend_of,
    log_axis,
    look,
    marked_line,
    one_for_each,
    prepared,
    round_axis,
    small,
)
from adaptinf.texts import absent
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_POINTS, _SMOOTH = 200, 120
# Stretches over which propensities are averaged: with more of them lines that cross cannot be followed.
_STRETCHES, _LOG_STRETCHES = 40, 24


def allocation(
    logs: AdaptiveLog | Iterable[AdaptiveLog],
    ax: Axes | None = None,
    *,
    window: int | None = None,
    arms: Sequence[Any] | None = None,
    band: float = 0.9,
    legend: str = "above",
) -> Axes:
    """Share of the pulls that each arm has had, over the rounds.

    Parameters
    ----------
    logs : AdaptiveLog, or iterable of them
        One trial, or several of the same arms and rounds: their mean share, with the range of the central
        ones as a band.
    ax : Axes, optional
        Where to draw; by default a new figure of column width.
    window : int, optional
        Share among the last so many rounds; by default among all rounds so far.
    arms : sequence of labels, optional
        Which arms; by default all.
    band : float
        Share of the trials that the band holds in each round, between 0 and 1.
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

    Examples
    --------
    >>> import adaptinf as ai
    >>> environment = ai.environments.BernoulliArms([0.3, 0.6])
    >>> log = ai.designs.Thompson().run(environment, horizon=300, rng=1)
    >>> ax = ai.plots.allocation(log)
    >>> ax.get_ylabel(), ax.get_lines()[1].get_label()
    ('share of pulls so far', 'arm 1')
    """
    given = _listed(logs)
    problems = axes_problem("plots.allocation", ax, legend) + _log_problems(given)
    problems += SHARE("band", band)
    last = 1 if problems else given[0].n_rounds
    if window is not None:
        found = COUNT("window", window)
        problems += found or (
            [] if window <= last else [f"window must be at most {last:,}, the rounds, got {window}"]
        )
    refuse("plots.allocation", problems)
    shown = _arms("plots.allocation", arms, given[0])
    first = 1 if window is None else int(window)
    rounds = np.unique(np.round(np.linspace(first, last, min(last - first + 1, _POINTS))).astype(np.int64))
    own = prepared(ax)
    handles = []
    for place, arm in enumerate(shown):
        shares = np.stack([pull_shares(log, arm, rounds, window) for log in given])
        handles.append(_draw_shares(own, rounds, shares, arm, place, band))
    own.set_ylim(-0.02, 1.02)
    own.set_ylabel("share of pulls so far" if window is None else f"share of the last {window:,} pulls")
    round_axis(own, float(last))
    legend_of(own, handles, legend, grow=ax is None)
    return own


def pull_shares(log: AdaptiveLog, arm: Any, rounds: IntArray, window: int | None = None) -> FloatArray:
    """Share of an arm among the rounds up to each of some rounds, or among the last `window` of them."""
    pulled = np.flatnonzero(log.arrays.action == log.arms.index(arm))
    counts = np.searchsorted(pulled, rounds)
    if window is None:
        return np.asarray(counts / rounds, dtype=np.float64)
    return np.asarray((counts - np.searchsorted(pulled, rounds - window)) / window, dtype=np.float64)


def propensities(
    log: AdaptiveLog,
    ax: Axes | None = None,
    *,
    floor: float | Callable[[FloatArray], ArrayLike] | ArrayLike | None = None,
    arms: Sequence[Any] | None = None,
    log_scale: bool = True,
    legend: str = "above",
) -> Axes:
    """Probability with which each arm was chosen, over the rounds.

    Parameters
    ----------
    log : AdaptiveLog
        With propensities, of every arm or of the chosen one alone.
    ax : Axes, optional
        Where to draw; by default a new figure of column width.
    floor : float, callable or array_like of shape (rounds,), optional
        Lower bound of the propensities that the design keeps; a callable takes an array of round numbers.
    arms : sequence of labels, optional
        Which arms; by default all.
    log_scale : bool
        Whether both axes are logarithmic: a decay like a power of the round is then a straight line.
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
    InvalidForLog
        If the log has no propensities.

    Notes
    -----
    Lines are means over stretches of rounds, at most 40 of them, or 24 on log scales; bands run from the
    smallest to the largest propensity of a stretch. A propensity of 0 has no place on a log scale; the legend
    says how many there are. With the chosen arm's propensity alone each arm's are those of the rounds that
    chose it, which are larger than all of them.

    Examples
    --------
    >>> import adaptinf as ai
    >>> environment = ai.environments.BernoulliArms([0.3, 0.6])
    >>> log = ai.designs.EpsilonGreedy(exploration=0.2).run(environment, horizon=300, rng=1)
    >>> ax = ai.plots.propensities(log, floor=0.1)
    >>> ax.get_yscale(), [text.get_text() for text in ax.get_legend().get_texts()]
    ('log', ['arm 0', 'arm 1', 'floor'])
    """
    problems = axes_problem("plots.propensities", ax, legend) + FLAG("log_scale", log_scale)
    given: Any = log
    if not isinstance(given, AdaptiveLog):
        problems.insert(0, f"log must be an AdaptiveLog, got {log!r:.60}")
        raise ParameterError("plots.propensities", problems)
    bound = _floor(floor, log.n_rounds, problems)
    refuse("plots.propensities", problems)
    shown = _arms("plots.propensities", arms, log)
    if log.arrays.propensities is None and log.arrays.propensity is None:
        raise InvalidForLog("plots.propensities", "it has no propensities", ["plots.allocation"])
    whole = log.arrays.propensities is not None
    own = prepared(ax)
    handles, smallest = [], [1.0]
    for place, arm in enumerate(shown):
        table, zeros = propensity_ranges(log, arm, log_scale)
        handles.append(_draw_range(own, table, _with_zeros(arm, zeros, log_scale), place))
        smallest += table[:, 1:][table[:, 1:] > 0.0].tolist()
    if bound is not None:
        rounds = _grid(log.n_rounds, log_scale, _SMOOTH)
        values = bound[rounds - 1]
        smallest += values[values > 0.0].tolist()
        line: dict[str, Any] = {"color": "black", "linewidth": 1.1, "linestyle": (0, (1, 1)), "zorder": 4}
        handles += own.plot(rounds, values, label="floor", **line)
    round_axis(own, float(log.n_rounds), log_scale)
    if log_scale:
        own.set_ylim(min(smallest) / 1.5, 1.3)
        log_axis(own, "y")
    else:
        own.set_ylim(-0.02, 1.02)
    own.set_ylabel("propensity" if whole else "propensity of the chosen arm")
    legend_of(own, handles, legend, grow=ax is None)
    return own


def propensity_ranges(log: AdaptiveLog, arm: Any, log_scale: bool) -> tuple[FloatArray, float]:
    """Propensities of an arm in stretches of rounds; returns (stretches, 4)."""
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
    # an average may leave its range by rounding
    table = np.column_stack([middle, np.clip(mean, low, high), low, high])
    return table, float((values == 0.0).mean())


def _grid(last: int, log_scale: bool, points: int) -> IntArray:
    space = np.geomspace if log_scale else np.linspace
    return np.unique(np.round(space(1.0, float(last), min(last, points))).astype(np.int64))


def _draw_shares(ax: Axes, rounds: IntArray, shares: FloatArray, arm: Any, place: int, band: float) -> Any:
    shown = look(place)
    if shares.shape[0] > 1:
        low, high = np.quantile(shares, [0.5 - 0.5 * band, 0.5 + 0.5 * band], axis=0)
        ax.fill_between(rounds, low, high, color=shown.colour, alpha=0.2, linewidth=0.0)
    return _line(ax, rounds, shares.mean(axis=0), arm_label(arm), place)


def _draw_range(ax: Axes, table: FloatArray, label: str, place: int) -> Any:
    rounds, mean, low, high = table.T
    if (high > low).any():
        ax.fill_between(rounds, low, high, color=look(place).colour, alpha=0.2, linewidth=0.0)
    return _line(ax, rounds, mean, label, place)


def _line(ax: Axes, x: Any, y: Any, label: str, place: int) -> Any:
    # markers of several lines must not lie on one another
    every = (place % 5 * max(1, len(x) // 40), max(1, len(x) // 8))
    return marked_line(ax, x, y, label, place, every)


def _with_zeros(arm: Any, zeros: float, log_scale: bool) -> str:
    if zeros == 0.0 or not log_scale:
        return arm_label(arm)
    return f"{arm_label(arm)} (0 in {zeros:.1%} of rounds)"


def _listed(logs: Any) -> list[Any]:
    if isinstance(logs, AdaptiveLog) or not isinstance(logs, Iterable) or isinstance(logs, (str, bytes)):
        return [logs]
    return list(logs)


def _log_problems(logs: list[Any]) -> list[str]:
    if not logs:
        return ["there are no logs"]
    wrong = [log for log in logs if not isinstance(log, AdaptiveLog)]
    if wrong:
        return [f"logs must be an AdaptiveLog, or several, got {wrong[0]!r:.60}"]
    problems = []
    if len({log.arms for log in logs}) > 1:
        problems.append("the logs must have the same arms in the same order")
    if len({log.n_rounds for log in logs}) > 1:
        sizes = sorted({log.n_rounds for log in logs})
        problems.append(f"the logs must have as many rounds, they have {sizes[0]:,} to {sizes[-1]:,}")
    return problems


def _arms(subject: str, arms: Any, log: AdaptiveLog) -> list[Any]:
    """Arms that were asked for."""
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


_READABLE = 0.07


@dataclass(frozen=True, slots=True)
class Bins:
    """The bins that were active at the end; low, high (bins, d)."""

    low: FloatArray
    high: FloatArray
    left: tuple[tuple[Any, ...], ...]
    arms: tuple[Any, ...]
    axes: tuple[str, ...]


def partition(
    trial: AdaptiveLog | Results,
    ax: Axes | None = None,
    *,
    at: float = 0.5,
    legend: str = "above",
) -> Axes:
    """The bins of the first two coordinates that a locally private bandit ended with, and their arms.

    Parameters
    ----------
    trial : AdaptiveLog or Results
        A log of `LDPBandit`, or what ``BinMeans(log).fit()`` returned.
    ax : Axes, optional
        Where to draw; by default a new figure of column width.
    at : float
        Where the other coordinates are held, in [0, 1], if there are more than two.
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
    InvalidForLog
        If the log has no sums of reports by bin.

    Notes
    -----
    A bin with one arm left has that arm's colour and hatch; bins with several are the greyer, the more there
    are, and say which where there is room. Bins that nobody came to after they began are drawn as the one
    that they are halves of.

    Examples
    --------
    >>> import adaptinf as ai
    >>> design = ai.designs.LDPBandit(epsilon=8.0, check_every=50)
    >>> log = design.run(ai.environments.SmoothArms(), horizon=20_000, rng=0)
    >>> ax = ai.plots.partition(log)
    >>> ax.get_xlabel(), len(ax.patches) > 1
    ('x1', True)
    """
    problems = axes_problem("plots.partition", ax, legend) + UNIT("at", at)
    kinds = {estimand.kind for estimand in trial.estimands} if isinstance(trial, Results) else set()
    if not isinstance(trial, AdaptiveLog) and kinds != {"bin-mean"}:
        what = "a log of LDPBandit, or what BinMeans(log).fit() returned"
        problems.insert(0, f"trial must be {what}, got {type(trial).__name__}")
    refuse("plots.partition", problems)
    bins = _slice(final_bins(trial), float(at))
    own = prepared(ax, height=3.3 if len(bins.axes) > 1 else 1.3)
    handles = _draw(own, bins)
    own.grid(False)
    own.set_xlim(0.0, 1.0)
    own.set_ylim(0.0, 1.0)
    own.set_xlabel(label_text(bins.axes[0]))
    if len(bins.axes) > 1:
        own.set_aspect("equal")
        own.set_ylabel(label_text(bins.axes[1]))
    else:
        own.set_yticks([])
    legend_of(own, handles, legend, grow=ax is None)
    return own


def final_bins(trial: AdaptiveLog | Results) -> Bins:
    """Bins that hold no other one, and the arms that were reported on until their end."""
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
    # an arm that was not dropped has had all of the bin's participants
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
    """Bins that hold a point of the coordinates from the third on, seen in the first two."""
    rest_low, rest_high = bins.low[:, 2:], bins.high[:, 2:]
    # 1 belongs to the last bin
    holds = (rest_low <= at) & ((at < rest_high) | ((rest_high == 1.0) & (at == 1.0)))
    keep = np.flatnonzero(holds.all(axis=1))
    left = tuple(bins.left[place] for place in keep)
    names = bins.axes[:2]
    return Bins(bins.low[keep, :2], bins.high[keep, :2], left, bins.arms, names)


def _draw(ax: Axes, bins: Bins) -> list[Any]:
    """Rectangles of the bins; one entry of the legend for each way in which one is filled."""
    from matplotlib.patches import Patch, Rectangle

    flat = bins.low.shape[1] == 1
    fills: dict[tuple[int, int], Any] = {}
    for low, high, left in zip(bins.low, bins.high, bins.left, strict=True):
        key = (1, bins.arms.index(left[0])) if len(left) == 1 else (len(left), -1)
        filled = _fill(key, len(bins.arms))
        bottom, top = (0.0, 1.0) if flat else (low[1], high[1])
        corner, width, height = (low[0], bottom), high[0] - low[0], top - bottom
        ax.add_patch(Rectangle(corner, width, height, **filled))
        label = f"{arm_label(left[0])} alone" if len(left) == 1 else f"{len(left)} arms left"
        fills.setdefault(key, Patch(label=label_text(label), **filled))
        text = label_text(", ".join(map(str, left)), 20)
        if len(left) > 1 and width >= 0.03 * (len(text) + 1) and height >= _READABLE:
            place = (corner[0] + 0.5 * width, corner[1] + 0.5 * height)
            ax.text(*place, text, ha="center", va="center", fontsize=small(ax))
    return [fills[key] for key in sorted(fills)]


def _fill(key: tuple[int, int], n_arms: int) -> dict[str, Any]:
    count, arm = key
    common = {"edgecolor": "white" if count == 1 else "0.5", "linewidth": 0.5}
    if count > 1:
        return {"facecolor": str(round(0.98 - 0.25 * (count - 1) / max(1, n_arms - 1), 3)), **common}
    shown = look(arm)
    return {"facecolor": shown.colour, "hatch": shown.hatch, **common}
