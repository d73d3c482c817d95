"""A user's table of sums, a row a batch and arm, read into cells; all that is wrong with it in one error."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adaptinf.errors import ParameterError
from adaptinf.log.validation.arm_columns import (
    ArmColumns,
    check_actions,
    code_actions,
    declare_arms,
    order_arms,
)
from adaptinf.log.validation.column_checks import batch_labels, check_probabilities, read_numbers
from adaptinf.log.validation.column_roles import is_hashable, missing_column
from adaptinf.log.validation.frame_columns import (
    Column,
    Findings,
    Label,
    column_names,
    frame_kind,
    read_column,
)
from adaptinf.log.validation.row_order import check_date_format
from adaptinf.sums.cells import Cells, cells_of_shares, other_value
from adaptinf.sums.checks import check_cells, check_rows
from adaptinf.sums.further_columns import ROLES as FURTHER
from adaptinf.sums.further_columns import check_further, further_products
from adaptinf.sums.groups import Parts, Strata, group_names, read_groups, strata_of
from adaptinf.typing import FloatArray, IntArray

NUMBERS = ("n", "sum", "sum_squares", "sum_cubes", "nonzero")
ROLES = ("batch", "arm", *NUMBERS, "propensity")
_REQUIRED = ("batch", "arm", "n", "sum", "sum_squares")


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table of sums as arrays over its R rows in S strata; arm, sums, further (R,), NaN if unknown."""

    strata: Strata
    arm: IntArray
    batches: NDArray[Any]
    groups: tuple[str, ...]
    arms: tuple[Label, ...]
    sums: Mapping[str, FloatArray]
    propensity: FloatArray | None
    further: Mapping[str, FloatArray]

    def spread(self, values: FloatArray, missing: float = 0.0) -> FloatArray:
        """Values by stratum and arm; values (R,); returns (S, K)."""
        whole = np.full((len(self.strata.batch), len(self.arms)), missing)
        whole[self.strata.code, self.arm] = values
        return whole


def read_parts(
    frame: Any,
    columns: Mapping[str, object],
    *,
    group: object,
    arms: object,
    centre: float,
    reward_range: tuple[float, float] | None,
    date_format: str | None,
    estimated: bool,
    found: Findings,
) -> tuple[Parts, tuple[Label, ...]] | None:
    """Parts and arms of a table, None where it has problems; shares stand in for propensities."""
    if frame_kind(frame) is None:
        raise ParameterError("Sums", [f"frame must be a DataFrame of pandas or polars, got {_kind(frame)}"])
    table = _read(frame, columns, group_names("group", group), arms, date_format, found)
    if table is None:
        return None
    check_rows(table.sums, table.propensity, centre, reward_range, found)
    check_further(table.sums, table.further, found)
    check_cells(
        table.strata.code,
        table.arm,
        table.sums,
        table.propensity,
        arms=table.arms,
        batches=table.strata.named(table.groups, table.batches),
        estimated=estimated,
        ranged=reward_range is not None,
        found=found,
    )
    if found.problems:
        return None
    return Parts(table.groups, table.strata.parts(_cells(table, columns, centre), table.batches)), table.arms


def _kind(frame: object) -> str:
    return f"a {type(frame).__name__}"


def _cells(table: Table, columns: Mapping[str, object], centre: float) -> Cells:
    counts = table.spread(table.sums["n"])
    rounds = counts.sum(axis=1)
    if table.propensity is None:
        propensities = counts / rounds[:, None]
    else:
        propensities = table.spread(table.propensity)
        propensities /= propensities.sum(axis=1, keepdims=True)
    first, squares, cubes, nonzero = (table.spread(table.sums[name]) for name in NUMBERS[1:])
    value = None if centre else other_value(first, squares)
    if value is not None:  # rewards are 0 or this value: what was not counted follows
        cubes = np.where(np.isnan(cubes), value * squares, cubes)
        nonzero = np.where(np.isnan(nonzero), np.rint(first / value), nonzero)
    base = np.stack([counts, first, squares, cubes])
    products = further_products(base, centre, columns, table.further, table.spread)
    return cells_of_shares(base, rounds, propensities, nonzero, centre, products)


def _read(
    frame: Any,
    columns: Mapping[str, object],
    groups: tuple[str, ...],
    arms: object,
    date_format: object,
    found: Findings,
) -> Table | None:
    names = column_names(frame)
    places = _places(names, columns, found)
    shared = [name for name in groups if name in columns.values()]
    found.add("bad-group", f"group columns have other roles: {', '.join(shared)}") if shared else None
    by = _places(names, {f"group {name!r}": name for name in groups}, found)
    checked_format = check_date_format(date_format, found)
    declared = declare_arms(arms, found)
    if found.problems:
        return None
    if len(frame) == 0:
        found.add("empty-frame", "the table has no rows")
        return None
    read = {role: read_column(frame, place) for role, place in places.items()}
    told = {role: f"{role} column {columns[role]!r}" for role in places}
    sums = {role: _numbers(read, role, told.get(role, ""), found) for role in NUMBERS}
    further = {role: _numbers(read, role, told[role], found) for role in read if role.startswith(FURTHER)}
    propensity = None
    if "propensity" in read:
        what = told["propensity"]
        found.add_rows("missing-propensity", f"{what} has no value", read["propensity"].missing)
        propensity = check_probabilities(read["propensity"], what, "[0", found)
    batch = read_batches(read["batch"], told["batch"], checked_format, found)
    arm = read_arms(read["arm"], columns["arm"], "arm", declared, found)
    labels = [read_column(frame, place) for place in by.values()]
    group = read_groups(labels, [f"group column {name!r}" for name in groups], len(frame), found)
    if found.problems or batch is None or arm is None or group is None:
        return None
    strata = strata_of(batch[0], group)
    return Table(strata, arm[0], batch[1], groups, arm[1], sums, propensity, further)


def _places(names: list[Hashable], columns: Mapping[str, object], found: Findings) -> dict[str, int]:
    """Positions of the columns of the roles; several sums may be one column, as those of 0/1 rewards are."""
    places = {}
    for role, name in columns.items():
        if name is None and role in _REQUIRED:
            found.add("bad-column-name", f"{role}= must name a column")
        elif not is_hashable(name):
            found.add("bad-column-name", f"{role}= must name one column, got {name!r:.80}")
        elif name is not None and name not in names:
            missing_column(name, role, names, found)
        elif names.count(name) > 1:
            found.add("duplicate-columns", f"several columns are named {name!r}; rename or drop them")
        elif name is not None:
            places[role] = names.index(name)
    return places


def _numbers(read: Mapping[str, Column], role: str, what: str, found: Findings) -> FloatArray:
    """Finite numbers of a column, NaN where there is none."""
    if role not in read:
        return np.full(len(read["n"].missing), np.nan)
    values = read_numbers(read[role], what, role, found, booleans=False)
    return np.full(len(read["n"].missing), np.nan) if values is None else values


def read_batches(
    column: Column, what: str, date_format: str | None, found: Findings
) -> tuple[IntArray, NDArray[Any]] | None:
    """Positions of the rows' batches in order, and the batches: numbers, or times; (R,), (B,)."""
    read = batch_labels(column, what, date_format, found)
    if read is None:
        return None
    labels, values, dated = read
    if values is None and set(map(type, labels.values)) == {bool}:
        values = np.array(labels.values, dtype=np.int64)
    if values is None and labels.values:
        found.add(
            "bad-batch",
            f"{what} must hold numbers, dates or times, whose order is known, not text such as "
            f"{str(labels.values[0])!r:.40}: number the batches in time order",
        )
    if found.problems or values is None:
        return None
    batches, place = np.unique(values.astype("datetime64[us]") if dated else values, return_inverse=True)
    return place.astype(np.int64)[labels.codes], batches


def read_arms(
    column: Column,
    name: object,
    role: str,
    declared: Sequence[Label] | None,
    found: Findings,
    having: Sequence[Label] = (),
) -> tuple[IntArray, tuple[Label, ...]] | None:
    """Positions of the rows' arms, shape (R,), and all arms; `having` have columns of propensities."""
    labels = check_actions(column, name, role, False, found)
    arms = order_arms(labels.values, declared, ArmColumns(labels=list(having)), found)
    codes = code_actions(labels, arms, declared is not None, found)
    if len(arms) < 2:
        found.add("one-arm", f"there must be two arms or more, got {list(arms)!r}")
    return None if found.problems else (codes, arms)
