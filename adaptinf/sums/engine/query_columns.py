"""The columns of a table by role, and the table's rows in the form that queries read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from adaptinf.log.validation.arm_columns import PARSERS, find_arm_columns
from adaptinf.log.validation.column_roles import Roles, missing_column
from adaptinf.log.validation.frame_columns import Findings, Label
from adaptinf.sums.covariate_columns import further_columns
from adaptinf.sums.covariate_products import COVARIATE, DENOMINATOR, Further
from adaptinf.sums.engine.engine_tables import as_number, is_long, mixed_truths, no_labels, readied
from adaptinf.sums.engine.periods import WITHIN
from adaptinf.sums.groups import group_names

BATCH, ARM, GROUP = "batch", "arm", "group_"
REWARD, PROPENSITY, FURTHER, SHARE = "__reward", "__propensity", "__further_", "__share_"
WHOLE = "__whole"
"""Suffix for a column that keeps the values of long integers as they were before conversion to floats."""
ARM_OF_COLUMNS = "__arm"
"""Column with the chosen arm, obtained from 0/1 columns for the arms."""
FURTHER_ROLES = {DENOMINATOR: "outcome", COVARIATE: "context"}
"""A log's names for additional columns."""
Schema = Mapping[str, nw.dtypes.DType]
_ROLES = ("action", "reward", "batch", "propensity", "unit")
_OPTIONAL = ("propensity", "unit")
_PREFIX = "propensity_"
_NO_LABELS = (nw.List, nw.Array, nw.Struct, nw.Binary, nw.Duration, nw.Time)


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The columns of a table by role; `propensity` is the chosen arm's, and `every` has one for each arm."""

    action: str
    reward: str
    batch: str
    propensity: str | None
    every: Mapping[Label, str]
    groups: tuple[str, ...]
    further: Further
    unit: str | None = None

    @property
    def shares(self) -> bool:
        """Whether the arms' shares are used because the table contains no propensities."""
        return self.propensity is None and not self.every

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns that are read."""
        single = (self.action, self.reward, self.batch, self.propensity, self.unit)
        several = (*self.every.values(), *self.groups, *self.further.names)
        return tuple(dict.fromkeys(name for name in (*single, *several) if name is not None))

    @property
    def numbers(self) -> dict[str, tuple[str, str]]:
        """The numeric columns and their roles in a log, keyed by their names in the query."""
        found = {REWARD: (self.reward, "reward")}
        if self.propensity is not None:
            found[PROPENSITY] = (self.propensity, "propensity")
        for place, name in enumerate(self.every.values()):
            found[f"{SHARE}{place}"] = (name, "propensity")
        for place, (name, role) in enumerate(zip(self.further.names, self.further.roles, strict=True)):
            found[f"{FURTHER}{place}"] = (name, FURTHER_ROLES[role])
        return found


def columns_of(
    table: nw.LazyFrame[Any], given: Mapping[str, Any], arms: Sequence[Label] | None, found: Findings
) -> Columns | None:
    """The table's columns by role; None if required columns are absent."""
    names = list(table.collect_schema())
    for role in _ROLES:
        name = given[role]
        if name is None and role not in _OPTIONAL:
            found.add("bad-column-name", f"{role}= must name a column")
        elif name is not None and name not in names:
            missing_column(name, role, names, found)
    single = {role: given[role] for role in _ROLES if given[role]}
    groups = _several("by", group_names("by", given["by"]), names, tuple(single.values()), found)
    further = further_columns("aggregate", given["denominator"], given["covariate"])
    used = (*single.values(), *groups)
    for role in (DENOMINATOR, COVARIATE):
        _several(role, further.having(role), names, used, found)
    if found.problems:
        return None
    roles = Roles(
        single, (*groups, *further.names), {name: place for place, name in enumerate(names)}, tuple(names)
    )
    action = given["action"]
    kind = readied(table, [action]).collect_schema()[action]
    pairs = _arm_columns(given["propensities"], kind, arms, roles, found)
    if given["unit"] is not None:
        _check_unit(given, bool(pairs), found)
    if found.problems:
        return None
    return Columns(
        given["action"],
        given["reward"],
        given["batch"],
        given["propensity"],
        pairs,
        groups,
        further,
        given["unit"],
    )


def propensities_of(columns: Columns) -> list[str]:
    """The names that propensity columns have in the query."""
    return [own for own, (_, role) in columns.numbers.items() if role == "propensity"]


def check_types(rows: nw.LazyFrame[Any], columns: Columns, found: Findings) -> None:
    """Report columns whose types are not suitable for labels, batches or numbers."""
    schema = rows.collect_schema()
    labels = {columns.action: "action", columns.batch: "batch", **dict.fromkeys(columns.groups, "context")}
    labels |= {} if columns.unit is None else {columns.unit: "unit"}
    for name, role in labels.items():
        kind = schema[name]
        times = role != "batch" and isinstance(kind, (nw.Datetime, nw.Date))
        if isinstance(kind, _NO_LABELS) or times or no_labels(rows, name, role == "batch"):
            found.add(f"bad-{role}", f"{role} column {name!r} contains no labels, but {kind}")
        elif mixed_truths(rows, name):
            told = f"{role} column {name!r} mixes booleans and other labels; use labels of one type"
            found.add(f"ambiguous-{'arm' if role == 'action' else role}", told)
    for name, role in columns.numbers.values():
        kind = schema[name]
        if not (kind.is_numeric() or (role != "propensity" and isinstance(kind, nw.Boolean))):
            code = "bad-context" if role == "context" else f"non-numeric-{role}"
            found.add(code, f"{role} column {name!r} must contain numbers, but is of type {kind}")


def _check_unit(given: Mapping[str, Any], knows_every: bool, found: Findings) -> None:
    """Report options that cannot be combined with a column of units."""
    others = [role for role in _ROLES if role != "unit" and given[role] == given["unit"]]
    if others:
        found.add(
            "bad-unit", f"column {given['unit']!r} in unit= already has another role: {', '.join(others)}"
        )
    if given["propensity"] is None and not knows_every:
        found.add(
            "missing-propensity",
            "unit= requires propensities: standard errors by unit are available "
            "only for inverse propensity weighting",
        )
    if given["denominator"] or given["covariate"]:
        found.add(
            "bad-unit",
            "unit= cannot be combined with denominator= or covariate=, which require the individual rows",
        )
    if given["by"]:
        found.add(
            "bad-unit",
            "unit= and by= cannot be combined: standard errors by unit within groups require the individual "
            "rows",
        )


def _several(
    role: str, asked: tuple[str, ...], names: Sequence[str], used: Sequence[str], found: Findings
) -> tuple[str, ...]:
    """The columns of a role that allows several columns."""
    for name in asked:
        if name not in names:
            missing_column(name, role, list(names), found)
        elif name in used:
            code = "bad-group" if role == "by" else "bad-column-name"
            found.add(code, f"column {name!r} in {role}= already has another role")
    return asked


def _arm_columns(
    asked: Any, kind: nw.dtypes.DType, arms: Sequence[Label] | None, roles: Roles, found: Findings
) -> dict[Label, str]:
    """Each arm's propensity column; labels from column names are converted to the type of the actions."""
    used = {*roles.single.values(), *roles.context}
    if asked is None and any(str(name).startswith(_PREFIX) and name not in used for name in roles.names):
        asked = _PREFIX + "{arm}"
    if asked is None:
        return {}
    known = list(arms or ())
    if isinstance(asked, str) and not known:
        before, _, after = asked.partition("{arm}")
        texts = [
            str(name)[len(before) : len(str(name)) - len(after)]
            for name in roles.names
            if name not in used and str(name).startswith(before) and str(name).endswith(after)
        ]
        known = [_label_of(text, kind) for text in texts if text]
    every = find_arm_columns(asked, known, arms, roles, found)
    return {arm: str(name) for arm, name in every.pairs}


def _label_of(text: str, kind: nw.dtypes.DType) -> Label:
    """The label at the end of a column's name, converted to the type of the arms."""
    for own, is_own in (
        (int, kind.is_integer()),
        (float, kind.is_float() or kind.is_decimal()),
        (bool, kind == nw.Boolean),
    ):
        pattern, parse = PARSERS[own]
        if is_own and re.fullmatch(pattern, text):
            return parse(text)
    return text


def selected(
    rows: nw.LazyFrame[Any], batch: nw.Expr, within: nw.Expr | None, columns: Columns
) -> tuple[nw.LazyFrame[Any], list[str]]:
    """Rows with the columns needed, and the names of the columns of groups and of pieces of batches."""
    schema = rows.collect_schema()
    keys = {f"{GROUP}{place}": label_of(name, schema) for place, name in enumerate(columns.groups)}
    keys |= {} if within is None else {WITHIN: within}
    own = _plain(batch, schema[columns.batch]).alias(BATCH)
    return rows.select(own, *named_rows(columns, schema), **keys), list(keys)


def named_rows(columns: Columns, schema: Schema) -> list[nw.Expr]:
    """The arms and numbers of each row; long integers are kept next to their values as floats."""
    numbers = {own: name for own, (name, _) in columns.numbers.items()}
    found = [as_number(name, schema).alias(own) for own, name in numbers.items()]
    long = {f"{own}{WHOLE}": name for own, name in numbers.items() if is_long(schema[name])}
    if columns.propensity is None:
        found.append(_own_propensity(columns, schema).alias(PROPENSITY))
    return [
        label_of(columns.action, schema).alias(ARM),
        *found,
        *(nw.col(name).alias(own) for own, name in long.items()),
    ]


def label_of(name: str, schema: Schema) -> nw.Expr:
    """A column of labels."""
    return _plain(nw.col(name), schema[name])


def _plain(column: nw.Expr, kind: nw.dtypes.DType) -> nw.Expr:
    """A column of labels or batches with a plain type: categories become text, and -0.0 becomes 0.0."""
    if isinstance(kind, (nw.Categorical, nw.Enum)):
        return column.cast(nw.String())
    if kind.is_float() or kind.is_decimal():
        number = column.cast(nw.Float64())
        # Arrow puts -0.0 and 0.0 into different groups, and also NaN and missing values.
        known = nw.when(~missing(number)).then(number)
        return nw.when(number == 0.0).then(nw.lit(0.0)).otherwise(known)
    return column


def _own_propensity(columns: Columns, schema: Schema) -> nw.Expr:
    """The chosen arm's propensity, taken from the arm's own column; 1 if the arm has no column."""
    if not columns.every:
        return nw.lit(1.0)
    found: Any = None
    for arm, name in columns.every.items():
        chosen = label_of(columns.action, schema) == nw.lit(arm)
        known = nw.when(chosen).then(as_number(name, schema))
        found = known if found is None else known.otherwise(found)
    return found  # type: ignore[no-any-return]


def missing(number: nw.Expr) -> nw.Expr:
    """Whether a number is missing, that is, null or NaN; engines differ in how they compare NaN."""
    return number.is_null() | ~(finite(number) | infinite(number))


def finite(number: nw.Expr) -> nw.Expr:
    """Whether a number is finite; DuckDB's isnan is avoided, because it trusts statistics that ignore NaN."""
    return number - number == 0.0


def infinite(number: nw.Expr) -> nw.Expr:
    """Whether a number is infinite; no engine considers NaN equal to infinity."""
    return number.abs() == float("inf")
