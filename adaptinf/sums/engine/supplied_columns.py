"""Columns added to a table: constants, entries of lists and objects, and arms represented by 0/1 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any

import narwhals as nw

from adaptinf.log.validation.arm_columns import arms_of_entries
from adaptinf.log.validation.column_roles import missing_column
from adaptinf.log.validation.frame_columns import (
    Findings,
    Label,
    frame_kind,
    read_column,
    read_labels,
)
from adaptinf.log.validation.one_hot_actions import one_hot_names
from adaptinf.log.validation.propensity_shapes import (
    constant_column,
    holds_entries,
    is_constant,
    read_entries,
)
from adaptinf.sums.engine.engine_tables import collected
from adaptinf.sums.engine.query_columns import ARM_OF_COLUMNS
from adaptinf.texts import listed

_CONSTANT = "__constant_"
_HELD = (nw.List, nw.Array, nw.Struct, nw.String)


def with_entries(
    table: Any, given: Mapping[str, Any], declared: Sequence[Label] | None, found: Findings
) -> tuple[Any, dict[str, Any]]:
    """The table, with a column added for each arm if propensities= names a column of lists or objects."""
    name, kind = given["propensities"], frame_kind(table)
    if not isinstance(name, str) or kind is None or name not in list(table.columns):
        return table, dict(given)
    column = read_column(table, list(table.columns).index(name))
    if not holds_entries(column):
        return table, dict(given)
    entries = read_entries(column, name, None if declared is None else len(declared), found)
    if entries is None:
        return table, {**given, "propensities": None}
    places = {arm: place for place, arm in enumerate(declared or ())}
    if entries.texts is not None:
        observed = [] if given["action"] not in list(table.columns) else _labels(table, given["action"])
        arms = arms_of_entries(entries.texts, f"propensity column {name!r}", observed, declared, found)
        places = {arm: entries.texts.index(text) for arm, text in arms}
    named = {arm: f"{name} (entry of arm {arm!r})" for arm in places}
    columns = {named[arm]: entries.table[:, place] for arm, place in places.items()}
    if kind == "pandas":
        table = table.assign(**columns)
    else:
        native = nw.from_native(table, eager_only=True)
        new = [nw.new_series(own, values, backend=native.implementation) for own, values in columns.items()]
        table = native.with_columns(*new).to_native()
    return table, {**given, "propensities": named}


def _labels(table: Any, name: str) -> list[Label]:
    return read_labels(read_column(table, list(table.columns).index(name))).values


def with_supplied(
    rows: nw.LazyFrame[Any], given: Mapping[str, Any], found: Findings
) -> tuple[nw.LazyFrame[Any], dict[str, Any]]:
    """Lazy rows with added columns for constants, and for the arms that 0/1 columns represent."""
    names, new, changed = list(rows.collect_schema()), dict[str, nw.Expr](), dict(given)
    propensities = given["propensities"]
    kind = rows.collect_schema().get(propensities) if isinstance(propensities, str) else None
    if isinstance(kind, _HELD):
        found.add(
            "bad-propensities",
            f"propensity column {propensities!r} is of type {kind}, but lists and objects can be read only "
            "from pandas and Polars frames: make a column of each arm's entries in the engine, and name "
            "them in propensities=",
        )
        changed["propensities"] = None
    if is_constant(given["propensity"]) and given["propensity"] not in names:
        constant_column(given["propensity"], "propensity=", "(0", 1, found)
        changed["propensity"] = f"{_CONSTANT}chosen"
        new[changed["propensity"]] = nw.lit(float(given["propensity"]))
    if isinstance(propensities, Mapping):
        columns = {}
        for place, (arm, name) in enumerate(propensities.items()):
            columns[arm] = name
            if is_constant(name) and name not in names:
                constant_column(name, f"propensities= of arm {arm!r}", "[0", 1, found)
                columns[arm] = f"{_CONSTANT}{place}"
                new[columns[arm]] = nw.lit(float(name))
        changed["propensities"] = columns
    if isinstance(given["action"], list):
        expression = _arms(rows, given["action"], names, found)
        changed["action"] = ARM_OF_COLUMNS
        new[ARM_OF_COLUMNS] = nw.lit("") if expression is None else expression
    return (rows.with_columns(**new) if new else rows), changed


def _arms(
    rows: nw.LazyFrame[Any], given: Sequence[Any], names: Sequence[str], found: Findings
) -> nw.Expr | None:
    """The name of the column with a 1 in each row; None if there is a problem, which is reported."""
    labels = one_hot_names("action", given, found)
    absent = [name for name in labels or () if name not in names]
    for name in absent:
        missing_column(name, "action", list(names), found)
    if labels is None or absent:
        return None
    schema, columns = rows.collect_schema(), [str(label) for label in labels]
    wrong = [
        name for name in columns if not (schema[name].is_numeric() or isinstance(schema[name], nw.Boolean))
    ]
    for name in wrong:
        told = f"action column {name!r} must contain 0 and 1, or True and False, not {schema[name]}"
        found.add("bad-action", told)
    if wrong:
        return None
    numbers = [nw.col(name).cast(nw.Float64()) for name in columns]
    ones = [nw.when(number == 1.0).then(nw.lit(1.0)).otherwise(nw.lit(0.0)) for number in numbers]
    fine = [
        nw.when((number == 1.0) | (number == 0.0)).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
        for number in numbers
    ]
    one = (reduce(add, ones) == 1.0) & (reduce(add, fine) == float(len(columns)))
    counted = nw.when(one).then(nw.lit(0.0)).otherwise(nw.lit(1.0))
    amiss = int(collected(rows.select(counted.alias("amiss")).select(nw.col("amiss").sum()))["amiss"].iloc[0])
    if amiss:
        told = (
            f"action columns {listed(columns)} must contain a single 1 and otherwise 0 in every row, but "
            f"they do not in"
        )
        found.add("bad-action", f"{told} {amiss:,} {'row' if amiss == 1 else 'rows'}")
        return None
    arm: Any = nw.lit(columns[-1])
    for name, number in zip(columns[-2::-1], numbers[-2::-1], strict=True):
        arm = nw.when(number == 1.0).then(nw.lit(name)).otherwise(arm)
    return arm  # type: ignore[no-any-return]
