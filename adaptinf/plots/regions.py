"""The partition of a locally private bandit: its bins, and the arms that are left in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.designs.local.bins import bin_sums
from adaptinf.inference.results.base import Results
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import UNIT, refuse
from adaptinf.plots.drawing.style import arm_label, axes_problem, label_text, legend_of, look, prepared, small
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
