"""Sums of rows in a database or in files: a query is run in the engine, and its result is checked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.log.log_reading import dialect_from, uses_of
from adaptinf.log.validation import OF_AGGREGATES, Label, group_options
from adaptinf.log.validation.arm_columns import declare_arms
from adaptinf.log.validation.column_checks import check_reward_range
from adaptinf.log.validation.frame_columns import Findings, index_names, read_column
from adaptinf.log.validation.times.time_periods import PERIODS
from adaptinf.parameters import BOOLEAN, FINITE, OneOf, OrNone, check, refuse
from adaptinf.sums.cells import DEGREES, POWERS, Cells, cells_of_shares, left_no_room, sometimes_impossible
from adaptinf.sums.covariate_products import Products, read_sums
from adaptinf.sums.engine.cell_frames import constant, sound, with_powers
from adaptinf.sums.engine.engine_tables import (
    Opened,
    as_number,
    check_files,
    collected,
    naming_failures,
    opened,
    readied,
    waiting,
)
from adaptinf.sums.engine.first_rows import first_rows, moves, usual_values
from adaptinf.sums.engine.movement import moving_pvalue, order_pvalue, together
from adaptinf.sums.engine.periods import WITHIN, check_times, check_zone, in_periods, instants_of
from adaptinf.sums.engine.queries import (
    COUNT,
    HIGHEST,
    cell_query,
    column_of_fault,
    fault_query,
    faults_of,
    highest_power,
)
from adaptinf.sums.engine.query_columns import (
    ARM,
    BATCH,
    GROUP,
    REWARD,
    Columns,
    check_types,
    columns_of,
    selected,
)
from adaptinf.sums.engine.rounded_shares import settled_shares, told_rounding
from adaptinf.sums.engine.supplied_columns import with_entries, with_supplied
from adaptinf.sums.engine.unit_queries import exact_units, totals_of, unit_query
from adaptinf.sums.groups import Parts, read_groups, strata_of
from adaptinf.sums.sums_reading import check_cell_shares, check_centre, is_far, read_arms, read_batches
from adaptinf.sums.sums_table import Sums
from adaptinf.sums.unit_totals import UnitTotals, unit_problem
from adaptinf.typing import FloatArray, IntArray


def aggregate(
    table: Any,
    *,
    action: str | list[Any],
    reward: str,
    batch: str,
    propensity: str | float | None = None,
    propensities: Mapping[Any, str | float] | str | None = None,
    by: str | Sequence[str] = (),
    denominator: str | Sequence[str] = (),
    covariate: str | Sequence[str] = (),
    unit: str | None = None,
    every: str | None = None,
    centre: float | None = None,
    collect: bool = True,
    progress: bool = False,
    arms: Sequence[Any] | None = None,
    reward_range: tuple[float, float] | None = None,
    guarantee: PrivacyGuarantee | Mapping[str, Any] | None = None,
    adaptive: bool | None = None,
    stopping: str | None = None,
    reading: Mapping[str, Any] | None = None,
    about: Mapping[str, Any] | None = None,
) -> Any:
    """Sum a log's rows by batch and arm, in the engine that stores them.

    Parameters
    ----------
    table : lazy or eager frame, path, or glob
        Any table that narwhals supports: a DuckDB relation, a Polars LazyFrame, an ibis table, a Dask or
        PySpark frame, or a pandas or Polars DataFrame. DuckDB reads Parquet and CSV files, several of which
        can be named with ``*``, and folders of parts; anything else that `read_log` supports is read into
        memory.
    action, reward, batch : str
        Columns of the chosen arm, its reward, and the batch, within which weights are constant. If `action`
        is a list of names, these are columns of 0 and 1, one for each arm, named after the arm.
    propensity : str or float, optional
        Column with the propensity of the chosen arm, which may vary between rows, or a single number.
    propensities : mapping of arm to str or float, or str, optional
        The column, or a number, for the propensity of each arm. A string instead of a mapping is a pattern
        for the columns' names with ``{arm}`` in place of the arm, or their common prefix. For a pandas or
        Polars frame, it can also name a column of lists or objects, as for `AdaptiveLog`. By default, columns
        named ``propensity_<arm>``. These columns are required for the combined weights of a contrast. If
        there are no propensities, the arms' shares of each batch are used, and an arm without rounds in a
        batch is treated as unavailable there.
    by : str or list of str
        Columns whose labels define groups, and which are treated as contexts; by default none.
    denominator : str or list of str
        Columns of nonnegative numbers whose means are the denominators of ratio metrics.
    covariate : str or list of str
        Columns that were observed before the choice and can explain rewards; they are treated as contexts.
    unit : str, optional
        Column of the units, such as users, if they have several rounds. A second query then computes the sums
        needed for standard errors clustered by unit. Propensities must be known, and every arm must be
        possible in every row. Units cannot be combined with groups.
    every : {"hour", "day", "week", "month"}, optional
        Period to which the times in `batch` are truncated; weeks begin on Monday. Times with a time zone or
        an offset are truncated in UTC, whatever the zone of the column, the connection or the machine; times
        without one are truncated as they are written. Without propensities, the same query checks whether the
        shares of the arms change within a period.
    centre : float, optional
        Value subtracted from rewards before they are squared; by default, the mean of up to 1,000 rows, which
        requires a small additional query. With `unit`, it also serves as the prediction of AIPW: if there are
        few rows, specify a value chosen before the trial. A centre so far from the rewards that their squares
        would lose precision is refused. If a centre is given, nothing is subtracted from denominators and
        covariates.
    collect : bool
        If False, the query is not run but returned in the engine's own form, so that its plan or SQL can be
        inspected. With `unit`, two queries are returned, and `arms` or `propensities` must name the arms. If
        a centre is given, no rows are read, and the query assumes that propensities are constant within each
        batch and arm.
    progress : bool
        Whether to display the elapsed time of the query.
    arms, reward_range, guarantee, adaptive, stopping : optional
        As in `Sums`.
    reading : dict, optional
        ``"timezone"``, the name of a zone in the IANA database, such as ``"Europe/Berlin"``: times are then
        truncated in this zone instead of UTC, and times without a zone are refused. `Sums.batches` contains
        the times at which periods began, in UTC. An hour that occurs twice because clocks go back forms a
        single batch. ``"sep"``, ``"decimal"``, ``"encoding"`` and ``"missing_values"`` as for `read_log`.
        ``"round_propensities"`` as for `AdaptiveLog`, at the cost of an additional query.
    about : dict, optional
        As in `Sums`.

    Returns
    -------
    Sums
        The sums or, if `collect` is False, the query or the two queries.

    Raises
    ------
    ParameterError
        If an argument is invalid, or `table` is not a table.
    LogValidationError
        If rows are invalid; the message gives the number of rows with each problem, and the position of one
        of them. Nothing is dropped. Also raised if the engine fails or runs out of memory.
    FileNotFoundError
        If no file has this name.
    FileError
        If a file is truncated, empty or damaged.
    MissingDependencyError
        If files are given and DuckDB is not installed.

    Notes
    -----
    The checks and their messages are the same as for the rows of a log, regardless of the engine that stores
    the table. The query groups the rows once and returns one row for each batch and arm. The query sums
    rewards, their squares and their cubes, and computes the smallest and largest value of each propensity. If
    propensities vary within a batch and arm, sums divided by powers of the propensities are also needed. If
    the first 1,000 rows show such variation, the same query computes these sums; otherwise, a second query is
    necessary. Each denominator or covariate adds 7 columns to the query's result (25 if the query divides by
    powers of propensities), for the sums of its products with rewards. Without `unit`, rows are treated as
    independent. With `unit`, an additional row is returned, whose length grows with the square of the number
    of arms. In this case, weights are uniform, and the outcome model of AIPW is the centre.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import pandas as pd
    >>> rows = pd.DataFrame(
    ...     {
    ...         "day": [1, 1, 1, 1, 2, 2, 2, 2],
    ...         "arm": ["a", "b", "a", "b", "a", "b", "b", "b"],
    ...         "y": [1.0, 2.0, 0.0, 3.0, 2.0, 2.0, 4.0, 3.0],
    ...         "p": [0.5, 0.5, 0.5, 0.5, 0.4, 0.6, 0.6, 0.6],
    ...     }
    ... )
    >>> sums = ai.aggregate(rows, action="arm", reward="y", batch="day", propensity="p")
    >>> sums.frame[["batch", "arm", "n", "sum"]]
       batch arm    n  sum
    0      1   a  2.0  1.0
    1      1   b  2.0  5.0
    2      2   a  1.0  2.0
    3      2   b  3.0  9.0
    """
    check(
        "aggregate",
        every=(every, OrNone(OneOf(*PERIODS))),
        centre=(centre, OrNone(FINITE)),
        collect=(collect, BOOLEAN),
        progress=(progress, BOOLEAN),
    )
    found = _findings(table)
    how = group_options("reading", reading, OF_AGGREGATES, found)
    known = group_options("about", about, OF_AGGREGATES, found)
    check_zone(how.get("timezone"), every)
    arms = action if arms is None and isinstance(action, list) else arms
    given: dict[str, Any] = {"action": action, "reward": reward, "batch": batch, "propensity": propensity}
    given |= {"propensities": propensities, "by": by, "denominator": denominator, "covariate": covariate}
    given |= {"unit": unit, "every": every, "timezone": how.get("timezone"), "centre": centre, "arms": arms}
    given |= {"rounded": how.get("round_propensities", False), "collect": collect}
    span, declared = check_reward_range(reward_range, False, found), declare_arms(arms, found)
    table, given = with_entries(table, given, declared, found)
    source = _opened(table, how, given)
    with naming_failures():
        rows, given = with_supplied(source.rows, given, found)
        found.raise_if_any("the table")
        asked = _asked(replace(source, rows=rows), given, declared, span, found)
        if not collect:
            return _uncollected(asked)
        with waiting(progress):
            read, moved, totals = _answered(asked, declared, found)
    shares = asked.columns.shares
    if read is not None and not (shares or known.get("propensity_status") == "estimated"):
        for cells, _ in read[0].by_group.values():
            check_cell_shares(cells, found)
    sums = Sums.__new__(Sums)
    stated = {"guarantee": guarantee, "adaptive": adaptive, "stopping": stopping, **known}
    sums._check(read, span, stated, found, shares=shares, by_unit=totals, moved=moved)
    return sums


def _findings(table: Any) -> Findings:
    """An empty list of findings that knows the names of a frame's index levels."""
    found = Findings()
    found.index = index_names(table)
    return found


def _opened(table: Any, how: Mapping[str, Any], given: Mapping[str, Any]) -> Opened:
    """The rows of a table, read according to the options and to how its columns are used."""
    dialect, _ = dialect_from("aggregate", how)
    return opened(table, dialect, partial(uses_of, _as_of_a_log(given)), _roles(given))


def _as_of_a_log(given: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a query, as the arguments that a log would take."""
    same = ("action", "reward", "batch", "propensity", "propensities", "unit")
    several = {name: _names(given[name]) for name in ("by", "denominator", "covariate")}
    return {
        **{name: given[name] for name in same},
        "context": several["by"],
        "outcomes": [*several["denominator"], *several["covariate"]],
    }


def _roles(given: Mapping[str, Any]) -> dict[str, str]:
    """A log's names for the numeric columns; all other columns are propensities."""
    found = dict.fromkeys(_names(given["denominator"]), "outcome")
    found |= dict.fromkeys(_names(given["covariate"]), "context")
    return defaultdict(lambda: "propensity", {**found, given["reward"]: "reward"})


def _names(given: Any) -> list[str]:
    names = [given] if isinstance(given, str) else given
    return [name for name in names if isinstance(name, str)] if isinstance(names, (list, tuple)) else []


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """A request to an engine: the rows, the columns to read, how rows are grouped, and what is summed."""

    rows: nw.LazyFrame[Any]
    read: nw.LazyFrame[Any]
    keys: Sequence[str]
    columns: Columns
    centres: Sequence[float]
    weighted: bool
    given: Mapping[str, Any]
    reward_range: tuple[float, float] | None

    def query(self, *, weighted: bool) -> nw.LazyFrame[Any]:
        """The query by batch and arm, with or without sums divided by powers of propensities."""
        ends = self.reward_range is not None
        return cell_query(self.read, self.keys, self.columns, self.centres, ends=ends, weighted=weighted)


def _asked(
    source: Opened,
    given: Mapping[str, Any],
    declared: Sequence[Label] | None,
    span: tuple[float, float] | None,
    found: Findings,
) -> _Asked:
    """The request for the query, after a check that columns exist and have suitable types."""
    every, timezone, centre = given["every"], given["timezone"], given["centre"]
    columns = columns_of(source.rows, given, declared, found)
    found.raise_if_any("the table")
    assert columns is not None
    check_files(source.files, columns.names, found)
    found.raise_if_any("the table")
    rows = readied(
        source.rows, columns.names, {name: role != "propensity" for name, role in columns.numbers.values()}
    )
    check_types(rows, columns, found)
    check_times(rows, columns.batch, every, timezone, found)
    found.raise_if_any("the table")
    rows = settled_shares(rows, columns, given["rounded"], found)
    found.raise_if_any("the table")
    cut, period, within = in_periods(rows, columns.batch, every, timezone)
    read, keys = selected(cut, period, within if columns.shares else None, columns)
    looked = centre is None or (given["collect"] and not columns.shares)
    head = first_rows(read) if looked else None
    weighted = head is not None and moves(head, columns)
    centres = [float(centre or 0.0), *[0.0] * len(columns.further.names)]
    if centre is None and head is not None:
        centres = usual_values(head, columns)
    return _Asked(rows, read, keys, columns, centres, weighted, given, span)


def _uncollected(asked: _Asked) -> Any:
    """The engine's query, or its two queries."""
    query = asked.query(weighted=asked.weighted)
    if asked.columns.unit is None:
        return query.to_native()
    arms = _known_arms(asked.columns, declare_arms(asked.given["arms"], Findings()))
    of_units = unit_query(asked.rows, asked.columns, arms, asked.centres[0])
    return query.to_native(), of_units.to_native()


def _answered(
    asked: _Asked, declared: Sequence[Label] | None, found: Findings
) -> tuple[tuple[Parts, tuple[Label, ...]] | None, float | None, UnitTotals | None]:
    """The parts and arms in the engine's result, the p-value for constant shares, and the totals by unit."""
    columns, centre = asked.columns, asked.given["centre"]
    try:
        frame, fine, moved = _summed(asked)
    except Exception:
        # Some engines stop at numbers whose powers overflow; such numbers are faults and are reported as
        # such.
        _find_faults(asked, found)
        found.raise_if_any("the table")
        raise
    if not fine:
        _find_faults(asked, found)
    read = _read(frame, columns, asked.centres, declared, found)
    if read is not None and centre is not None:
        powers = np.array([frame[name].sum() for name in (COUNT, "moment_0_1", "moment_0_2")])
        if is_far(powers):
            check_centre(centre, powers, *_ends(asked), found)
    totals = None
    if columns.unit is not None and read is not None:
        totals = _unit_totals(asked, frame, read, found)
    if read is not None:
        read = read[0].at(partial(instants_of, zone=asked.given["timezone"])), read[1]
    return read, moved, totals


def _summed(asked: _Asked) -> tuple[pd.DataFrame, bool, float | None]:
    """The sums by batch and arm, whether all rows are free of faults, and the p-value for constant shares."""
    columns, moved = asked.columns, None
    about = columns, asked.centres, asked.reward_range
    frame = collected(asked.query(weighted=asked.weighted))
    if WITHIN in frame:
        moved, frame = moving_pvalue(frame), together(frame)
    fine = sound(frame, *about)
    if fine and moved is None and (columns.shares or constant(frame, columns)):
        moved = order_pvalue(asked.read, asked.keys)
    if columns.shares or asked.weighted:
        return frame, fine, moved
    if fine and constant(frame, columns):
        return with_powers(frame, columns), fine, moved
    frame = collected(asked.query(weighted=True))
    return frame, sound(frame, *about), moved


def _ends(asked: _Asked) -> tuple[float, float]:
    """The smallest and the largest reward."""
    reward = asked.rows.select(as_number(asked.columns.reward, asked.rows.collect_schema()).alias(REWARD))
    ends = collected(reward.select(least=nw.col(REWARD).min(), most=nw.col(REWARD).max()))
    return float(ends["least"].iloc[0]), float(ends["most"].iloc[0])


def _known_arms(columns: Columns, declared: Sequence[Label] | None) -> Sequence[Label]:
    """The arms known before any row is read."""
    arms = declared or tuple(columns.every)
    refuse("aggregate", [] if arms else ["collect=False with unit= requires arms= or propensities="])
    return arms


def _unit_totals(
    asked: _Asked, cells: pd.DataFrame, read: tuple[Parts, tuple[Label, ...]], found: Findings
) -> UnitTotals | None:
    """Totals by unit; None if there are problems. The first query has already checked the rows."""
    if (problem := unit_problem(read[0].whole(shares=False)[0])) is not None:
        found.add("impossible-arm", problem)
    if found.problems:
        return None
    rows, unit = asked.rows, asked.columns.unit
    assert unit is not None
    frame = collected(unit_query(rows, asked.columns, read[1], asked.centres[0]))
    return totals_of((cells, frame), unit, exact_units(rows.collect_schema()[unit]), read, found)


def _find_faults(asked: _Asked, found: Findings) -> None:
    """Count the rows with each fault, and report the faults."""
    faults = faults_of(asked.columns, asked.rows.collect_schema(), asked.reward_range)
    counts = collected(fault_query(asked.read, faults))
    _tell_faults(counts, faults | _sums_told(counts, faults, asked), found)


def _sums_told(
    counts: pd.DataFrame, faults: Mapping[str, tuple[str, Any]], asked: _Asked
) -> dict[str, tuple[str, Any]]:
    """The fault of propensities that do not sum to 1, with a message that states their sums, if it occurs."""
    code = "propensities-sum"
    if code not in faults or not counts[column_of_fault(code)].sum():
        return {}
    told, flag = faults[code]
    return {code: (told + told_rounding(asked.rows, asked.columns, asked.given["rounded"]), flag)}


def _tell_faults(counts: pd.DataFrame, faults: Mapping[str, tuple[str, Any]], found: Findings) -> None:
    """Report each fault with the number of rows that have it, and the batch and arm of one of them."""
    for code, (message, _) in faults.items():
        each = np.asarray(counts[column_of_fault(code)], dtype=np.float64)
        if each.sum():
            row, total = int(np.argmax(each > 0.0)), int(each.sum())
            where = f"such as in batch {counts[BATCH].iloc[row]} of arm {counts[ARM].iloc[row]}"
            found.add(code, f"{message} in {total:,} {'row' if total == 1 else 'rows'}, {where}")


def _read(
    frame: pd.DataFrame,
    columns: Columns,
    centres: Sequence[float],
    declared: Sequence[Label] | None,
    found: Findings,
) -> tuple[Parts, tuple[Label, ...]] | None:
    """The parts and arms in the query's result; None if there are problems."""
    if len(frame) == 0:
        found.add("empty-frame", "the table has no rows")
        return None
    place = {name: position for position, name in enumerate(frame.columns)}
    of_cells = found.counted(np.asarray(frame[COUNT], dtype=np.float64))
    what = f"batch column {columns.batch!r}"
    batch = read_batches(read_column(frame, place[BATCH]), what, None, of_cells)
    actions = read_column(frame, place[ARM])
    arm = read_arms(actions, columns.action, "action", declared, of_cells, list(columns.every))
    labels = [read_column(frame, place[f"{GROUP}{one}"]) for one in range(len(columns.groups))]
    named = [f"context column {name!r}" for name in columns.groups]
    group = read_groups(labels, named, len(frame), of_cells)
    if found.problems or batch is None or arm is None or group is None:
        return None
    strata = strata_of(batch[0], group)
    size = len(strata.batch), len(arm[1])
    cells = _cells(frame, columns, (strata.code, arm[0]), size, arm[1], centres)
    if sometimes_impossible(cells):
        where = "of a batch and group" if columns.groups else "of a batch"
        found.add(
            "sometimes-impossible", f"an arm could be chosen only in some rows {where}: use shorter batches"
        )
    elif columns.propensity is not None and not columns.every and _sure_beside_others(cells):
        found.add(
            "sure-arm",
            "some propensities are 1: pass propensities=, in which the propensities of the other arms are 0",
        )
    return Parts(columns.groups, strata.parts(cells, batch[1])), arm[1]


def _sure_beside_others(cells: Cells) -> bool:
    """Whether an arm had propensity 1 in some rounds of a batch in which other arms were also chosen."""
    sure = (cells.pulls > 0.0) & (cells.smallest >= 1.0)
    return bool(np.any(sure.any(axis=1) & (np.count_nonzero(cells.pulls, axis=1) > 1)))


def _cells(
    frame: pd.DataFrame,
    columns: Columns,
    place: tuple[IntArray, IntArray],
    shape: tuple[int, int],
    arms: Sequence[Label],
    centres: Sequence[float],
) -> Cells:
    """Cells from a frame with one row for each batch and arm; both arrays of `place` have shape (R,)."""

    def spread(name: str, missing: float = 0.0) -> FloatArray:
        whole = np.full(shape, missing)
        whole[place] = np.asarray(frame[name], dtype=np.float64)
        return whole

    def over_all(name: str) -> FloatArray:
        """Sums of a function of each arm's propensity over all rows of a batch, whichever arm was chosen."""
        whole = np.zeros(shape)
        for position, arm in enumerate(columns.every):
            whole[:, arms.index(arm)] = spread(f"{name}_{position}").sum(axis=1)
        return whole

    counts, nonzero, centre = spread(COUNT), spread("nonzero"), centres[0]
    rounds = counts.sum(axis=1)
    base = np.stack([counts, *(spread(f"moment_0_{degree}") for degree in range(1, DEGREES))])
    if columns.propensity is None and not columns.every:
        moments = np.broadcast_to(base, (POWERS, *base.shape))
        kept = nonzero, centre, _products(columns, spread, moments, centres)
        return cells_of_shares(base, rounds, counts / rounds[:, None], *kept)
    moments = np.full((POWERS, DEGREES, *shape), np.nan)
    moments[0] = base
    for power in range(1, HIGHEST + 1):
        moments[power] = [spread(f"moment_{power}_{degree}") for degree in range(DEGREES)]
    moments[HIGHEST + 1, 0] = spread(f"moment_{HIGHEST + 1}_0")
    products = _products(columns, spread, moments, centres)
    if not columns.every:
        unknown = np.full(shape, np.nan)
        smallest = spread("least__propensity", np.inf)
        # If the propensities of the chosen arms add up to 1, the other arms of the batch had propensity 0.
        smallest[left_no_room(counts, moments[1, 0], smallest)[:, None] & (counts == 0.0)] = 0.0
        return Cells(moments, rounds, unknown, unknown, unknown, smallest, nonzero, centre, products)
    smallest = np.full(shape, np.inf)
    for position, arm in enumerate(columns.every):
        smallest[:, arms.index(arm)] = spread(f"least__share_{position}", np.inf).min(axis=1)
    inverse = np.where(smallest > 0.0, over_all("inverse"), np.inf)
    sums = inverse, over_all("expected"), over_all("spread")
    return Cells(moments, rounds, *sums, smallest, nonzero, centre, products)


def _products(
    columns: Columns, spread: Callable[[str], FloatArray], moments: FloatArray, centres: Sequence[float]
) -> Products | None:
    """Sums of products with additional columns; None if there are no such columns; moments (5, 4, B, K)."""
    further = columns.further
    if not further.names:
        return None
    told = further.names, further.roles, [0.0, *centres]
    return read_sums(told, spread, moments, highest_power(columns))
