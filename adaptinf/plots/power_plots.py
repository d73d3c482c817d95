"""Power curves: rejection rates of a planned analysis by number of rounds or by true effect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from adaptinf.audit.simulation.sample_sizes import SampleSize
from adaptinf.audit.simulation.simulated_power import NO_TEST, POWER, TYPE_I, Power
from adaptinf.errors import ParameterError
from adaptinf.parameters import OneOf, OrNone, refuse
from adaptinf.plots.frames import draws
from adaptinf.plots.style import (
    BESIDE,
    axes_problem,
    grey,
    ground,
    label_text,
    look,
    marked_line,
    name_series,
    prepared,
    round_axis,
    small,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_OVER = ("rounds", "effect")


def _power(problems: list[str], plan: Power | SampleSize, *, over: str | None = None) -> pd.DataFrame:
    """Rejection rates under a plan, as drawn by `plots.power`.

    Parameters
    ----------
    plan, over
        As in `plots.power`.

    Returns
    -------
    DataFrame
        One row per curve and point: `name` of the curve, `scenario`, `analysis`, `term`, `rounds`, `effect`
        (the true value minus the null; NaN if unknown), `x` (one of these two), `kind` ("power" or "type-I
        error"), `rejected`, and its exact 95% simulation limits, `low` and `high`.

    Raises
    ------
    ParameterError
        If arguments are inconsistent; the message lists every problem.

    Examples
    --------
    >>> import adaptinf as ai
    >>> arms = ai.environments.BernoulliArms([0.2, 0.8])
    >>> found = ai.audit.sample_size(ai.designs.Uniform(), arms, "conditional")
    >>> ai.plots.power.frame(found)["kind"].unique().tolist()
    ['power', 'type-I error']
    """
    problems = [*problems, *OrNone(OneOf(*_OVER))("over", over)]
    given: Any = plan
    if not isinstance(given, (Power, SampleSize)):
        problems.insert(0, f"plan must be a result of audit.power or audit.sample_size, got {plan!r:.60}")
        raise ParameterError("plots.power", problems)
    refuse("plots.power", problems)
    table = _of_size(plan) if isinstance(plan, SampleSize) else _of_power(plan)
    if over is None:
        over = "effect" if table["rounds"].nunique() == 1 and table["effect"].nunique() > 1 else "rounds"
    if table.empty or table[over].isna().all():
        raise ParameterError("plots.power", [f"the plan has no shares of rejections to draw over the {over}"])
    others = ["scenario", "analysis", "term"] if over == "rounds" else ["analysis", "term"]
    varying = [name for name in others if table[name].nunique() > 1]
    if over == "effect" and table["rounds"].nunique() > 1:
        told = table["rounds"].map("{:,} rounds".format)
        names = [", ".join(row) for row in table[varying].assign(rounds=told).astype(str).to_numpy()]
    elif isinstance(plan, SampleSize) or not varying:
        names = table["kind"].tolist() if over == "rounds" else ["power"] * len(table)
    else:
        names = [", ".join(row) for row in table[varying].astype(str).to_numpy()]
    columns = ["name", "scenario", "analysis", "term", "rounds", "effect", "x", "kind", "rejected"]
    return table.assign(name=names, x=table[over])[[*columns, "low", "high"]].sort_values(
        "x", kind="stable", ignore_index=True
    )


def _of_power(plan: Power) -> pd.DataFrame:
    frame = plan.frame[plan.frame["kind"] != NO_TEST]
    own = {"horizon": "rounds", "rejection": "rejected", "rejection_low": "low", "rejection_high": "high"}
    renamed = frame.rename(columns=own)
    return renamed.assign(effect=renamed["truth"] - renamed["null"])


def _of_size(plan: SampleSize) -> pd.DataFrame:
    frame = plan.frame
    parts = []
    for name, kind in (("power", POWER), ("type_i", TYPE_I)):
        if name in frame and frame[name].notna().any():
            numbers = {"rejected": frame[name], "low": frame[f"{name}_low"], "high": frame[f"{name}_high"]}
            parts.append(pd.DataFrame({"rounds": frame["horizon"], "kind": kind, **numbers}))
    table = pd.concat(parts, ignore_index=True)
    return table.assign(scenario="", analysis="", term="", effect=np.nan)


@draws(_power)
def power(
    plan: Power | SampleSize, ax: Axes | None = None, *, over: str | None = None, legend: str = "beside"
) -> Axes:
    """Power and type I error of a plan, as a function of the number of rounds or the true effect.

    Parameters
    ----------
    plan : Power or SampleSize
        Output of ``audit.power`` or ``audit.sample_size``.
    ax : Axes, optional
        Axes to draw on; by default a new figure of column width.
    over : {"rounds", "effect"}, optional
        The variable on the horizontal axis; by default rounds, unless there is only a single number of them.
    legend : {"beside", "above", "best", "upper left", "upper right", "lower left", "lower right", "none"}
        Position of the names of curves: next to their ends, or in a legend.

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
    power.frame : What is drawn, as a tidy frame.

    Notes
    -----
    Bands are the exact 95% limits of the simulation. Type I errors are drawn as dotted lines. Grey lines mark
    the level of the tests and, for a `SampleSize`, the requested power and the number of rounds that attains
    it.

    Examples
    --------
    >>> import adaptinf as ai
    >>> arms = ai.environments.BernoulliArms([0.2, 0.8])
    >>> ax = ai.plots.power(ai.audit.sample_size(ai.designs.Uniform(), arms, "conditional"))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('rounds', 'share of rejections')
    """
    table = _power(axes_problem("plots.power", ax, legend, BESIDE), plan, over=over)
    own = prepared(ax)
    names = list(dict.fromkeys(table["name"]))
    lines = [_draw(own, table[table["name"] == name], str(name), place) for place, name in enumerate(names)]
    own.set_ylim(-0.02, 1.02)
    own.set_ylabel("share of rejections")
    ends = float(table["x"].min()), float(table["x"].max())
    _mark(own, plan.alpha, ends, f"level {plan.alpha:g}")
    if isinstance(plan, SampleSize):
        _mark(own, plan.target, ends, f"power {plan.target:g}")
        if plan.horizon is not None:
            own.axvline(plan.horizon, color=grey(own), linewidth=0.8, linestyle=(0, (1, 1)), zorder=0.6)
    if table["x"].equals(table["effect"]):
        own.set_xlabel("true effect less the null")
    else:
        round_axis(own, ends[1])
        own.set_xlabel("rounds")
    name_series(own, lines, names, range(len(names)), legend, grow=ax is None)
    return own


def _draw(ax: Axes, part: pd.DataFrame, name: str, place: int) -> Any:
    shown = look(place)
    x = part["x"].to_numpy()
    if part["low"].notna().any():
        ax.fill_between(x, part["low"], part["high"], color=shown.colour, alpha=0.15, linewidth=0.0)
    line = marked_line(ax, x, part["rejected"], name, place, max(1, len(part) // 10))
    line.set_linestyle((0, (1, 1)) if (part["kind"] == TYPE_I).all() else "-")
    return line


def _mark(ax: Axes, height: float, ends: tuple[float, float], text: str) -> None:
    """Draw a grey line labelled at its left end."""
    ax.axhline(height, color=grey(ax), linewidth=0.8, linestyle=(0, (4, 2)), zorder=0.6)
    ax.annotate(
        label_text(text),
        (0.0, height),
        xycoords=("axes fraction", "data"),
        xytext=(2.0, 1.5),
        textcoords="offset points",
        va="bottom",
        fontsize=0.9 * small(ax),
        color=grey(ax),
        bbox={"facecolor": ground(ax), "edgecolor": "none", "pad": 0.5, "alpha": 0.7},
    )
