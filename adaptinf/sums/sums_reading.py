"""Reading a user's table of sums, with one row per batch and arm, into cells, and checking its rewards.

References
----------
Bhatia, Davis (2000), "A better bound on the variance".
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from adaptinf.log.storage.dialects import PLAIN, Dialect
from adaptinf.log.storage.table_sources import TableSource, read_table
from adaptinf.log.storage.text_columns import Use
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
    SUM_TOLERANCE,
    Column,
    Findings,
    Label,
    column_names,
    index_names,
    read_column,
)
from adaptinf.log.validation.propensity_rounding import ROUND_HINT, no_flag, rounding_of, told_sums
from adaptinf.log.validation.propensity_shapes import constant_column, is_constant
from adaptinf.log.validation.row_order import check_date_format
from adaptinf.sums.cells import Cells, cells_of_shares, other_value
from adaptinf.sums.covariate_columns import ROLES as FURTHER
from adaptinf.sums.covariate_columns import check_further, further_products
from adaptinf.sums.groups import Parts, Strata, group_names, read_groups, strata_of
from adaptinf.typing import BoolArray, FloatArray, IntArray

_SLACK = 1e-9
"""Largest relative rounding error allowed for in sums of floats."""
_IMPOSSIBLE = 1e-12
"""If the p-value times the number of cells is below this, shares contradict the propensities."""
_LOST = 1e-3
"""If the chance of no rounds, times the number of batches, is below this, the row of an arm is missing.
"""
_LEAST_VARIANCE = 25.0
_CLEAR = 25.0
"""Squared z statistic above which a cell's mean clearly differs from 0."""
_UNITS = 20.0
"""Ratio of the typical sizes of rewards in two cells above which they are taken to be in different units."""
_FAR = 1e4
"""Distance of a centre from the mean, in standard deviations, at which variances keep only eight digits."""
_SHOWN = 5


def check_rows(
    sums: Mapping[str, FloatArray],
    propensity: FloatArray | None,
    centre: float,
    reward_range: tuple[float, float] | None,
    found: Findings,
) -> None:
    """Check each row of a table by itself; sums and propensity have shape (R,)."""
    n, first, squares, cubes, nonzero = sums.values()
    size = np.maximum(n, 0.0)
    found.add_rows("negative-count", "n must be at least 0", n < 0.0)
    found.add_rows("broken-count", "n must be a whole number of rounds", (n >= 0.0) & (n % 1.0 != 0.0))
    empty = (n == 0.0) & ((first != 0.0) | (squares != 0.0) | (np.nan_to_num(cubes) != 0.0))
    found.add_rows("sums-of-nobody", "n is 0, but the sums are not", empty)
    found.add_rows("negative-squares", "sum_squares must be at least 0", squares < 0.0)
    least = first * first
    found.add_rows(
        "impossible-squares",
        "the squared sum exceeds n * sum_squares, which is impossible for any rewards: check for a mean "
        "instead of a sum, squares of rounded rewards, or columns from different rounds",
        (n > 0.0) & (squares >= 0.0) & (least > size * squares * (1.0 + _SLACK)),
    )
    with np.errstate(invalid="ignore"):
        found.add_rows(
            "impossible-cubes",
            "sum_cubes is larger than sum_squares ** 1.5, which is impossible for any rewards",
            np.abs(cubes) > np.maximum(squares, 0.0) ** 1.5 * (1.0 + _SLACK),
        )
        counted = (nonzero < 0.0) | (nonzero > n) | (np.isfinite(nonzero) & (nonzero % 1.0 != 0.0))
        few = (centre == 0.0) & (least > nonzero * squares * (1.0 + _SLACK))
        found.add_rows(
            "impossible-nonzero",
            "nonzero, the number of nonzero rewards, must be a whole number from 0 to n, and at least sum "
            "** 2 / sum_squares",
            counted | few,
        )
    if reward_range is not None:
        low, high = reward_range[0] - centre, reward_range[1] - centre
        slack = _SLACK * np.maximum(size * max(abs(low), abs(high)), 1e-300)
        # For rewards within [low, high], the sum of (y - low) (high - y) cannot be negative.
        wide = squares - ((low + high) * first - size * low * high) > slack * max(abs(low), abs(high))
        outside = (first < size * low - slack) | (first > size * high + slack) | wide
        found.add_rows(
            "reward-out-of-range",
            f"rewards within reward_range [{reward_range[0]:g}, {reward_range[1]:g}] cannot have these sums; "
            "correct them or widen the range",
            outside & (n > 0.0),
        )
    if propensity is not None:
        found.add_rows(
            "chosen-propensity-zero",
            "n is above 0 although the propensity is 0",
            (propensity == 0.0) & (n > 0.0),
        )


def check_cells(
    batch: IntArray,
    arm: IntArray,
    sums: Mapping[str, FloatArray],
    propensity: FloatArray | None,
    *,
    arms: Sequence[Any],
    batches: NDArray[Any],
    estimated: bool,
    ranged: bool,
    batched: bool,
    rounded: bool,
    found: Findings,
) -> None:
    """Check the rows of a table against each other; batches has shape (B,), and all other arrays (R,)."""
    cell, n_arms = batch * len(arms) + arm, len(arms)
    counts = np.bincount(cell, minlength=len(batches) * n_arms)
    found.add_rows(
        "repeated-cell",
        "a batch and arm have several rows: sum them if they come from different rounds, drop copies "
        "otherwise (a + b merges Sums of different rounds)"
        if batched
        else "an arm has several rows: name the batch column in batch=, or sum each arm's rows",
        counts[cell] > 1,
    )
    if np.any(counts > 1) or found.problems:
        return
    rounds = np.bincount(batch, weights=sums["n"], minlength=len(batches)).astype(np.float64)
    found.add_rows("empty-batch", "a batch has no rounds: remove it", rounds[batch] == 0.0)
    absent = ~counts.reshape(-1, n_arms).astype(bool)
    if propensity is not None:
        _check_totals(batch, arms, batches, absent, rounds, propensity, rounded, found)
        if not estimated and not found.problems:
            _check_shares(batch, arm, n_arms, rounds, sums["n"], propensity, found)
    if not ranged:
        _check_units(sums, found)


def _check_totals(
    batch: IntArray,
    arms: Sequence[Any],
    batches: NDArray[Any],
    absent: BoolArray,
    rounds: FloatArray,
    propensity: FloatArray,
    rounded: bool,
    found: Findings,
) -> None:
    """Check that propensities sum to 1 in each batch, and that only impossible arms lack a row.

    A batch may lack the row of one arm if that arm may have had no rounds by chance; it then has the
    remaining probability.
    """
    total = np.bincount(batch, weights=propensity, minlength=len(batches))
    off = np.abs(total - 1.0) > SUM_TOLERANCE
    left = np.maximum(1.0 - total, 0.0)
    # If n propensities average to p, the probability that nobody gets the arm is at most (1 - p)^n.
    with np.errstate(divide="ignore"):
        log_chance = rounds * np.log1p(-np.minimum(left, 1.0))
    nobody = (absent.sum(axis=1) == 1) & (log_chance > math.log(_LOST / len(batches)))
    lacking = off & absent.any(axis=1) & (total < 1.0)
    off &= ~(lacking & nobody)
    lacking &= ~nobody
    rounding = rounding_of(propensity[:, None]) if np.any(off) else None
    size = np.bincount(batch, minlength=len(batches))
    explained = (
        np.zeros_like(off) if rounding is None else np.abs(total - 1.0) <= rounding.unit * size + _SLACK
    )
    if rounded:
        off, lacking = off & ~explained, lacking & ~explained
    if np.any(lacking):
        found.add(
            "missing-arm",
            f"{_missing(arms, batches, absent & lacking[:, None])}, but the propensities of the others "
            f"leave it a positive share ({1.0 - total[np.argmax(lacking)]:.3g} in the first batch): add its "
            f"row, "
            "with n = 0 if it was never assigned",
        )
    wrong = off & ~lacking
    if np.any(wrong):
        hint = f"; if they were rounded to {rounding}, {ROUND_HINT}" if np.all(explained[wrong]) else ""
        found.add_rows(
            "propensities-sum",
            f"the propensities of a batch do not sum to 1 (tolerance {SUM_TOLERANCE:g}) "
            f"{told_sums(total[wrong])}{hint}",
            wrong[batch],
        )


def _missing(arms: Sequence[Any], batches: NDArray[Any], absent: BoolArray) -> str:
    """Text that names the batches that lack an arm, with those arms; absent has shape (B, K)."""
    pairs = [f"batch {batches[b]} has no row of arm {arms[k]!r}" for b, k in np.argwhere(absent)[:_SHOWN]]
    more = int(absent.sum()) - len(pairs)
    return "; ".join(pairs) + (f" and {more} more" if more else "")


def _check_shares(
    batch: IntArray,
    arm: IntArray,
    n_arms: int,
    rounds: FloatArray,
    n: FloatArray,
    propensity: FloatArray,
    found: Findings,
) -> None:
    """Report cells and arms whose counts contradict their propensities; all arrays have shape (R,)."""
    expected = rounds[batch] * propensity
    variance = expected * (1.0 - propensity)
    tests = len(n) + n_arms
    cells = improbable(n - expected, variance, tests)
    gaps, spreads = (
        np.bincount(arm, weights=each, minlength=n_arms).astype(np.float64)
        for each in (n - expected, variance)
    )
    wrong = cells | improbable(gaps, spreads, tests)[arm]
    found.add_rows(
        "shares-against-propensities",
        f"arms have shares that are practically impossible under their propensities (p < {_IMPOSSIBLE:g}): "
        "check for propensities from another period, lost rounds, or averages over batches (set "
        "'propensity_status' to 'estimated' if they are estimates)",
        wrong,
    )


def check_centre(centre: float, powers: FloatArray, least: float, most: float, found: Findings) -> None:
    """Refuse a centre that is so far from the rewards that squared deviations lose all digits.

    `powers` has shape (3,): the number of rewards, and the sums of the rewards and of their squares after the
    centre was subtracted. `least` and `most` are the smallest and the largest reward. If all rewards are
    equal, no digits are lost.
    """
    if most > least and is_far(powers):
        found.add(
            "far-centre",
            f"centre={centre:g} is so far from the rewards, which range from {least:g} to {most:g}, that "
            "centred squares would lose precision: omit it, or give a value within this range",
        )


def is_far(powers: FloatArray) -> bool:
    """Whether the mean reward is many standard deviations from the centre; powers as in `check_centre`."""
    count, first, squares = powers
    away = first / count
    return bool(away * away > _FAR**2 * (squares / count - away * away))


def check_cell_shares(cells: Cells, found: Findings) -> None:
    """Report cells and arms whose counts contradict their propensities."""
    if not cells.knows_every:
        return
    gap, variance = cells.pulls - cells.expected, cells.spread
    tests = gap.size + gap.shape[1]
    by_arm = improbable(gap.sum(axis=0), variance.sum(axis=0), tests)
    if np.any(improbable(gap.ravel(), variance.ravel(), tests)) or np.any(by_arm):
        found.add(
            "shares-against-propensities",
            "arms were chosen in shares that are practically impossible under their propensities: check for "
            "lost rows, or propensities from another period",
        )


def improbable(gap: FloatArray, variance: FloatArray, tests: int) -> BoolArray:
    """Whether counts differ from their expectations by more than chance allows; gap and variance (n,)."""
    usable = variance >= _LEAST_VARIANCE
    z = np.abs(gap) / np.sqrt(np.where(usable, variance, 1.0))
    return np.asarray(usable & (2.0 * special.ndtr(-z) * tests < _IMPOSSIBLE))


def _check_units(sums: Mapping[str, FloatArray], found: Findings) -> None:
    """Check that all rewards have the same unit: their typical size, sum_squares / sum, varies little."""
    first, squares = sums["sum"], sums["sum_squares"]
    clear = (squares > 0.0) & (first * first >= _CLEAR * squares)
    if np.count_nonzero(clear) < 2:
        return
    size = np.where(clear, squares / np.where(clear, np.abs(first), 1.0), np.nan)
    usual = math.exp(float(np.nanmedian(np.log(np.where(clear, size, np.nan)))))
    # If two units of measurement are about equally frequent, the median lies between them.
    ratio = np.where(clear, np.maximum(size / usual, usual / np.where(clear, size, 1.0)), 1.0)
    spread = float(np.nanmax(size) / np.nanmin(size))
    if spread < _UNITS:
        return
    wrong = ratio >= math.sqrt(_UNITS)
    found.add_rows(
        "mixed-units",
        "rewards seem to be in different units of measurement: their typical size, sum_squares / sum, is "
        f"{usual:.3g} in the table and {spread:.3g} times as large at its maximum as at its minimum (such "
        f"as 0/1 and 0/100, or cents and dollars); use one unit, or pass reward_range= if this is correct",
        wrong,
    )


NUMBERS = ("n", "sum", "sum_squares", "sum_cubes", "nonzero")
ROLES = ("batch", "arm", *NUMBERS, "propensity")
_REQUIRED = ("arm", "n", "sum", "sum_squares")


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table of sums as arrays over its R rows, which belong to S strata; unknown sums are NaN."""

    strata: Strata
    arm: IntArray
    batches: NDArray[Any]
    groups: tuple[str, ...]
    arms: tuple[Label, ...]
    sums: Mapping[str, FloatArray]
    propensity: FloatArray | None
    further: Mapping[str, FloatArray]

    def spread(self, values: FloatArray, missing: float = 0.0) -> FloatArray:
        """Arrange the values of the rows, shape (R,), by stratum and arm, shape (S, K)."""
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
    rounded: object,
    estimated: bool,
    found: Findings,
    dialect: Dialect = PLAIN,
) -> tuple[Parts, tuple[Label, ...]] | None:
    """The parts and arms in a table, or None if it has problems; shares replace absent propensities."""
    frame = _typed(frame, columns, group, dialect, found)
    table = _read(frame, columns, group_names("group", group), arms, date_format, found)
    if table is None:
        return None
    check_rows(table.sums, table.propensity, centre, reward_range, found)
    if not isinstance(rounded, (bool, np.bool_)):
        found.add(*no_flag(rounded))
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
        batched=columns["batch"] is not None,
        rounded=bool(rounded),
        found=found,
    )
    if found.problems:
        return None
    cells = _cells(table, columns, centre, bool(rounded))
    return Parts(table.groups, table.strata.parts(cells, table.batches)), table.arms


def _typed(
    source: Any, columns: Mapping[str, object], group: object, dialect: Dialect, found: Findings
) -> Any:
    """A table as a frame; a text file's columns are converted to the types that their roles require."""
    groups = [group] if isinstance(group, str) else list(group) if isinstance(group, (list, tuple)) else []
    roles = {name: role for role, name in columns.items() if isinstance(name, str)}
    wanted = [name for name in (*roles, *groups) if isinstance(name, str)]
    opened = isinstance(source, TableSource)
    table = source if opened else read_table(source, dialect, wanted, "Sums", "frame")
    uses: dict[str, Use] = dict.fromkeys(groups, "context")
    uses |= {name: _USES.get(role, "number") for name, role in roles.items()}
    frame, _ = table.typed(uses)
    found.index = index_names(frame)
    if table.of_file:
        found.located = partial(table.located, what="the table of sums")
    return frame


_USES: dict[str, Use] = {"arm": "label", "batch": "order"}
"""How the non-numeric columns of a table of sums are used."""


def _cells(table: Table, columns: Mapping[str, object], centre: float, rounded: bool) -> Cells:
    counts = table.spread(table.sums["n"])
    rounds = counts.sum(axis=1)
    if table.propensity is None:
        propensities = counts / rounds[:, None]
    else:
        propensities = table.spread(table.propensity) + _left_to_one(table, rounded)
        propensities /= propensities.sum(axis=1, keepdims=True)
    first, squares, cubes, nonzero = (table.spread(table.sums[name]) for name in NUMBERS[1:])
    value = None if centre else other_value(first, squares)
    if value is not None:  # If rewards are 0 or this value, missing counts follow from the sums.
        cubes = np.where(np.isnan(cubes), value * squares, cubes)
        nonzero = np.where(np.isnan(nonzero), np.rint(first / value), nonzero)
    base = np.stack([counts, first, squares, cubes])
    products = further_products(base, centre, columns, table.further, table.spread)
    return cells_of_shares(base, rounds, propensities, nonzero, centre, products)


def _left_to_one(table: Table, rounded: bool) -> FloatArray:
    """The remaining probability, for each arm that alone lacks a row in its batch; shape (S, K)."""
    assert table.propensity is not None
    rounding = rounding_of(table.propensity[:, None]) if rounded else None
    least = SUM_TOLERANCE if rounding is None else rounding.unit * len(table.arms)
    absent = table.spread(np.ones(len(table.arm))) == 0.0
    left = 1.0 - table.spread(table.propensity).sum(axis=1)
    one = (absent.sum(axis=1) == 1) & (left > least)
    return np.where(absent & one[:, None], left[:, None], 0.0)


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
    found.add("bad-group", f"group columns already have other roles: {', '.join(shared)}") if shared else None
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
    constant = columns["propensity"]
    if "propensity" not in places and is_constant(constant):
        told["propensity"] = "propensity="
        read["propensity"] = constant_column(constant, "propensity=", "[0", len(frame), found)
    sums = {role: _numbers(read, role, told.get(role, ""), found) for role in NUMBERS}
    further = {role: _numbers(read, role, told[role], found) for role in read if role.startswith(FURTHER)}
    propensity = None
    if "propensity" in read:
        what = told["propensity"]
        found.add_rows("missing-propensity", f"{what} has no value", read["propensity"].missing)
        propensity = check_probabilities(read["propensity"], what, "[0", found)
    batch: tuple[IntArray, NDArray[Any]] | None = np.zeros(len(frame), dtype=np.int64), np.zeros(1, np.int64)
    if "batch" in read:
        batch = read_batches(read["batch"], told["batch"], checked_format, found)
    arm = read_arms(read["arm"], columns["arm"], "arm", declared, found)
    labels = [read_column(frame, place) for place in by.values()]
    group = read_groups(labels, [f"group column {name!r}" for name in groups], len(frame), found)
    if found.problems or batch is None or arm is None or group is None:
        return None
    strata = strata_of(batch[0], group)
    return Table(strata, arm[0], batch[1], groups, arm[1], sums, propensity, further)


def _places(names: list[Hashable], columns: Mapping[str, object], found: Findings) -> dict[str, int]:
    """The position of each role's column; several sums may share a column, as for 0/1 rewards."""
    places = {}
    for role, name in columns.items():
        if name is None and role in _REQUIRED:
            found.add("bad-column-name", f"{role}= must name a column")
        elif not is_hashable(name):
            found.add("bad-column-name", f"{role}= must name one column, got {name!r:.80}")
        elif role == "propensity" and is_constant(name) and name not in names:
            continue  # A number is one propensity for all arms.
        elif name is not None and name not in names:
            missing_column(name, role, names, found)
        elif names.count(name) > 1:
            found.add("duplicate-columns", f"several columns are named {name!r}; rename or drop them")
        elif name is not None:
            places[role] = names.index(name)
    return places


def _numbers(read: Mapping[str, Column], role: str, what: str, found: Findings) -> FloatArray:
    """The finite numbers in a column; all NaN if there is no such column."""
    if role not in read:
        return np.full(len(read["n"].missing), np.nan)
    values = read_numbers(read[role], what, role, found, booleans=False)
    return np.full(len(read["n"].missing), np.nan) if values is None else values


def read_batches(
    column: Column, what: str, date_format: str | None, found: Findings
) -> tuple[IntArray, NDArray[Any]] | None:
    """The position of each row's batch, shape (R,), and the batches in order, as numbers or times."""
    read = batch_labels(column, what, date_format, found)
    if read is None:
        return None
    labels, values, dated = read
    if values is None and set(map(type, labels.values)) == {bool}:
        values = np.array(labels.values, dtype=np.int64)
    if values is None and labels.values:
        found.add(
            "bad-batch",
            f"{what} must contain numbers, dates or times, whose order is known, not text such as "
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
    """The position of each row's arm, shape (R,), and all arms, including those in `having`."""
    labels = check_actions(column, name, role, False, found)
    arms = order_arms(labels.values, declared, ArmColumns(labels=list(having)), found)
    codes = code_actions(labels, arms, declared is not None, f"{role} column {name!r}", found)
    if len(arms) < 2:
        found.add("one-arm", f"there must be at least two arms, got {list(arms)!r}")
    return None if found.problems else (codes, arms)
