"""The flow of a trial's participants or rounds, as in the CONSORT statement.

References
----------
Hopewell, S. et al. (2025). CONSORT 2025 statement: updated guideline for reporting randomised trials.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from adaptinf.errors import ParameterError
from adaptinf.inference.inputs.rounds import round_mask
from adaptinf.log import AdaptiveLog, PublicLog
from adaptinf.log.traits import LEFT_OUT
from adaptinf.parameters import refuse
from adaptinf.plots.frames import draws
from adaptinf.plots.style import (
    PAGE,
    axes_problem,
    column,
    figure,
    grey,
    ground,
    ink,
    label_text,
    say_uncovered,
    short_names,
    small,
)
from adaptinf.sums import Sums
from adaptinf.texts import arm_label
from adaptinf.typing import BoolArray, FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Flowing = AdaptiveLog | Sums | PublicLog
_STAGES = {
    "left out": "Left out of the log",
    "in the log": "In the log",
    "assigned": "assigned",
    "received as assigned": "received it",
    "received another arm": "received another arm",
    "outcome recorded": "outcome recorded",
    "outcome missing": "outcome missing",
    "analysed": "analysed",
}
_ASIDE = ("received another arm", "outcome missing")
# With more arms than this, the columns of boxes do not fit, and a table takes their place.
_COLUMNS = 5
# Layout needs the heights in inches of a line of text, of the space around the lines of a box, and of the
# space between boxes.
_LINE, _PAD, _GAP = 0.12, 0.14, 0.22


def _flow(problems: list[str], log: Flowing, *, rounds: Any = None) -> pd.DataFrame:
    """Numbers of rounds at each stage of a trial, as drawn by `plots.flow`.

    Parameters
    ----------
    log, rounds
        As in `plots.flow`.

    Returns
    -------
    DataFrame
        One row per stage and arm: `stage`, `arm` (None for the whole log), `rounds`, and `units`, the number
        of participants in these rounds, if the log identifies them (otherwise missing). Stages on which the
        log has no information are omitted.

    Raises
    ------
    ParameterError
        If arguments are inconsistent; the message lists every problem.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"arm": ["a", "b", "a"], "y": [1, None, 0]})
    >>> log = ai.AdaptiveLog(frame, action="arm", reward="y", missing="drop")
    >>> flow = ai.plots.flow.frame(log)
    >>> flow.loc[flow["stage"] == "outcome missing", ["arm", "rounds"]].to_dict("records")
    [{'arm': 'a', 'rounds': 0}, {'arm': 'b', 'rounds': 1}]
    """
    given: Any = log
    if not isinstance(given, Flowing):
        problems = [f"log must be an AdaptiveLog, Sums or a public part, got {log!r:.60}", *problems]
        raise ParameterError("plots.flow", problems)
    if rounds is not None and not isinstance(log, AdaptiveLog):
        problems = [*problems, "rounds must be omitted: the data do not contain single rounds"]
    refuse("plots.flow", problems)
    rows: list[tuple[str, Any, int, Any]] = []
    left_out = _left_out(log)
    if left_out:
        rows.append(("left out", None, left_out, None))
    rows.append(("in the log", None, log.n_rounds, _units(log, np.ones(log.n_rounds, dtype=np.bool_))))
    if isinstance(log, AdaptiveLog):
        for stage, reached in _reached(log, round_mask("plots.flow", log, rounds)).items():
            for code, arm in enumerate(log.arms):
                own = reached & (log.arrays.action == code)
                rows.append((stage, arm, int(own.sum()), _units(log, own)))
    else:
        rows += [("assigned", arm, count, None) for arm, count in _assigned(log).items()]
    stages, arms, counts, units = zip(*rows, strict=True)
    columns = {"stage": stages, "arm": pd.Series(arms, dtype=object), "rounds": counts}
    return pd.DataFrame({**columns, "units": pd.array(units, dtype="Int64")})


def _reached(log: AdaptiveLog, used: BoolArray | None) -> dict[str, BoolArray]:
    """Which rounds reached each stage known to the log, shape (T,) each."""
    every = np.ones(log.n_rounds, dtype=np.bool_)
    stages = {"assigned": every}
    if log.arrays.received is not None:
        same = log.arrays.received == log.arrays.action
        stages |= {"received as assigned": same, "received another arm": ~same}
    observed = log.arrays.observed
    if observed is not None:
        stages |= {"outcome recorded": observed, "outcome missing": ~observed}
    analysed = every if used is None else used
    if observed is not None and log.missing == "drop":
        analysed = analysed & observed
    return stages | {"analysed": analysed}


def _left_out(log: Flowing) -> int:
    """Number of rounds no longer in the log; unknown for a public part."""
    if not isinstance(log, AdaptiveLog):
        return 0
    parameters = {} if log.design is None else log.design.parameters
    return int(parameters.get(LEFT_OUT, 0)) + log.omitted


def _assigned(log: Sums | PublicLog) -> dict[Any, int]:
    """Number of rounds of each arm; empty if a guarantee does not cover them."""
    if isinstance(log, Sums):
        return dict(zip(log.arms, log.cells.pulls.sum(axis=0).astype(int).tolist(), strict=True))
    return dict(log.facts.get("pulls", {}))


def _units(log: Flowing, own: BoolArray) -> Any:
    if not isinstance(log, AdaptiveLog) or log.units is None:
        return None
    return len(set(log.units[own].tolist()))


@draws(_flow)
def flow(log: Flowing, ax: Axes | None = None, *, rounds: Any = None) -> Axes:
    """CONSORT flow diagram of a log: the number of rounds that reached each stage of the trial, by arm.

    Parameters
    ----------
    log : AdaptiveLog, Sums or PublicLog
        The trial.
    ax : Axes, optional
        Axes to draw on; by default a new figure, as wide and high as the arms require.
    rounds : str or array_like of bool, shape (T,), optional
        The rounds of the analysis, as for `ArmMeans`; by default all.

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
    flow.frame : What is drawn, as a tidy frame.

    Notes
    -----
    A log begins with assignment: it does not contain those who were assessed but not enrolled. Arms received,
    missing outcomes and omitted rounds are shown if the log records them; n counts rounds, and also
    participants if the log has ``unit=`` and some have several rounds. With ``missing="drop"``, rounds
    without an outcome are not analysed; with bounds, they are. Up to five arms are shown as boxes, and more
    as a table.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"arm": ["a", "b", "a"], "y": [1, None, 0]})
    >>> log = ai.AdaptiveLog(frame, action="arm", reward="y", missing="drop")
    >>> ax = ai.plots.flow(log)
    >>> ax.texts[0].get_text().splitlines()
    ['In the log', 'n = 3']
    """
    table = _flow(axes_problem("plots.flow", ax), log, rounds=rounds)
    arms = table.loc[table["arm"].notna(), "arm"].drop_duplicates().tolist()
    stages = table.loc[table["arm"].notna(), "stage"].drop_duplicates().tolist()
    boxed = len(arms) <= _COLUMNS
    texts = _texts(table, arms, stages) if boxed else []
    heights = [_LINE * max(text.count("\n") + 1 for text in row) + _PAD for row in texts]
    height = sum(heights) + _GAP * len(heights) if boxed else 0.16 * (len(arms) + 3)
    width = max(column(), min(PAGE, 1.35 * len(arms))) if boxed else min(PAGE, 1.6 + 0.85 * len(stages))
    own: Axes = figure(width=width, height=height)[1] if ax is None else ax
    own.set_axis_off()
    own.set_xlim(0.0, 1.0)
    own.set_ylim(0.0, 1.0)
    if boxed:
        _boxes(own, texts, np.array(heights) / height, _GAP / height)
        _tell_left_out(own, table)
    else:
        _table(own, table, arms, stages)
    if not isinstance(log, PublicLog) and {"outcome missing", "received another arm"} & set(stages):
        say_uncovered(own, [log.guarantee], own=ax is None)
    return own


def _texts(table: pd.DataFrame, arms: list[Any], stages: list[str]) -> list[list[str]]:
    """The text of the boxes, row by row: the log, then one row per stage with a box per arm."""
    whole = table[table["arm"].isna()].set_index("stage")
    texts = [[f"{_STAGES['in the log']}\n{_counted(whole.loc['in the log'])}"]]
    names = short_names([arm_label(arm) for arm in arms], 56)
    for stage in (stage for stage in stages if stage not in _ASIDE):
        row = []
        for arm, name in zip(arms, names, strict=True):
            own = table[table["arm"] == arm].set_index("stage")
            said = [_STAGES[stage], _counted(own.loc[stage])]
            if stage == "assigned":
                said.insert(0, "\n".join(textwrap.wrap(label_text(name, 80), 20)))
            aside = {"received as assigned": _ASIDE[0], "outcome recorded": _ASIDE[1]}.get(stage)
            if aside is not None:
                said.append(f"({_STAGES[aside]}: {own.loc[aside, 'rounds']:,})")
            row.append("\n".join(said))
        texts.append(row)
    return texts


def _boxes(ax: Axes, texts: list[list[str]], heights: FloatArray, gap: float) -> None:
    """Draw rows of boxes, each joined to the one above; heights and gap are shares of the axes' height."""
    lower = 1.0 - np.cumsum(heights + gap) + 0.5 * gap
    middle = lower + 0.5 * heights
    line: dict[str, Any] = {"color": grey(ax), "linewidth": 0.7, "zorder": 1.0}
    arrow = {"arrowstyle": "-|>", "color": grey(ax), "linewidth": 0.7, "mutation_scale": 6.0}
    arrow |= {"shrinkA": 0.0, "shrinkB": 0.0}
    frame = {"boxstyle": "round,pad=0.3", "facecolor": ground(ax), "edgecolor": grey(ax), "linewidth": 0.7}
    style: dict[str, Any] = {"fontsize": small(ax), "color": ink(ax), "linespacing": 1.25, "zorder": 3.0}
    for row, (said, y) in enumerate(zip(texts, middle, strict=True)):
        xs = (np.arange(len(said)) + 0.5) / len(said)
        bar = lower[row - 1] - 0.5 * gap
        if row == 1:
            ax.plot([0.5, 0.5], [middle[0], bar], **line)
            ax.plot([xs[0], xs[-1]], [bar, bar], **line)
        for x, text in zip(xs, said, strict=True):
            if row:
                above = bar if row == 1 else middle[row - 1]
                ax.annotate("", (x, lower[row] + heights[row]), (x, above), arrowprops=arrow, zorder=1.0)
            ax.annotate(text, (x, y), ha="center", va="center", bbox=frame, **style)


def _tell_left_out(ax: Axes, table: pd.DataFrame) -> None:
    """Write the number of rounds no longer in the log next to the first box."""
    for _, row in table[table["stage"] == "left out"].iterrows():
        style: dict[str, Any] = {"ha": "right", "va": "top", "fontsize": small(ax), "color": grey(ax)}
        ax.annotate(f"{_STAGES['left out']}:\n{_counted(row)}", (1.0, 1.0), **style)


def _table(ax: Axes, table: pd.DataFrame, arms: list[Any], stages: list[str]) -> None:
    """Draw a table with a row for each arm, a column for each stage, and the whole log at the top."""
    step = 1.0 / (len(arms) + 2)
    names = short_names([arm_label(arm) for arm in arms])
    columns = np.linspace(0.45, 1.0, len(stages) + 1)[1:] if len(stages) > 1 else np.array([1.0])
    style: dict[str, Any] = {"va": "center", "fontsize": small(ax), "color": ink(ax)}
    whole = table[table["arm"].isna()]
    told = "; ".join(f"{_STAGES[row['stage']]}: {_counted(row)}" for _, row in whole.iterrows())
    ax.annotate(told, (0.0, 1.0 - 0.5 * step), **style)
    for x, stage in zip(columns, stages, strict=True):
        said = "\n".join(textwrap.wrap(_STAGES[stage], 12))
        ax.annotate(said, (x, 1.0 - 1.5 * step), ha="right", **{**style, "color": grey(ax)})
    by_arm = table[table["arm"].notna()].to_dict("records")
    counts = {(row["stage"], str(row["arm"])): row["rounds"] for row in by_arm}
    for row, (arm, name) in enumerate(zip(arms, names, strict=True)):
        y = 1.0 - (row + 2.5) * step
        ax.annotate(label_text(name), (0.0, y), **style)
        for x, stage in zip(columns, stages, strict=True):
            ax.annotate(f"{counts[stage, str(arm)]:,}", (x, y), ha="right", **style)


def _counted(row: Any) -> str:
    """Number of rounds, and of participants if these are fewer."""
    count, units = int(row["rounds"]), row["units"]
    few = "" if pd.isna(units) or units == count else f" ({int(units):,} participants)"
    return f"n = {count:,}{few}"
