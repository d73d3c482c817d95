"""Types of columns, ids of more digits than floats have, propensities in other shapes, arms in columns."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
from dialect_kinds import Kind, saved
from doors import Refused, Right, Use, column, line, row
from experiment import Rng, Rows, draw, objects, pick, place, text
from files import of_column, uses_of_file, uses_of_frame, without

Make = Callable[[Rows], Any]


def with_type(name: str, dtype: Any) -> Make:
    """A pandas frame with one column of a type."""

    def make(rows: Rows) -> Any:
        frame = pd.DataFrame(rows)
        return frame.assign(**{name: pd.array(frame[name].tolist(), dtype=dtype)})

    return make


def of_objects(name: str, change: Callable[[Any], Any]) -> Make:
    """A pandas frame with a column of Python objects."""

    def make(rows: Rows) -> Any:
        values = np.empty(len(rows), dtype=object)
        values[:] = [change(each[name]) for each in rows]
        return pd.DataFrame(rows).assign(**{name: values})

    return make


def arrow(
    name: str, kind: pa.DataType, change: Callable[[Any], Any] = lambda value: value
) -> Callable[[Rows], pa.Table]:
    """An Arrow table with a column of a type."""

    def make(rows: Rows) -> pa.Table:
        columns = {each: pa.array([one[each] for one in rows]) for each in rows[0]}
        return pa.table({**columns, name: pa.array([change(one[name]) for one in rows], kind)})

    return make


def huge(name: str) -> Make:
    """A relation of DuckDB with a column of HUGEINT."""

    def make(rows: Rows) -> Any:
        texts = [{**each, name: str(each[name])} for each in rows]
        frame = pd.DataFrame(texts)
        return duckdb.from_df(frame).project(f"* REPLACE (CAST({name} AS HUGEINT) AS {name})")

    return make


def as_decimal(value: Any) -> Decimal:
    """A number by its digits."""
    return Decimal(str(value))


def mixed_labels(*choices: Any) -> Callable[[Rng, Rows], Any]:
    """A column of objects that are some of these, the first and the second always."""
    return lambda rng, rows: pd.Series([*choices[:2], *(pick(rng, choices) for _ in rows[2:])], dtype=object)


def whole(rng: Rng, rows: Rows) -> None:
    """Outcomes that are small whole numbers."""
    for each in rows:
        each["y"] = int(rng.integers(0, 100))


def truths(rng: Rng, rows: Rows) -> None:
    for each in rows:
        each["y"] = int(rng.integers(0, 2))


def quarters(rng: Rng, rows: Rows) -> None:
    """As they are drawn."""


def arms(*labels: Any) -> Callable[[Rng, Rows], None]:
    """Other labels of arms."""

    def change(rng: Rng, rows: Rows) -> None:
        known = list(dict.fromkeys(each["arm"] for each in rows))
        for each in rows:
            each["arm"] = labels[known.index(each["arm"])]

    return change


def long_ids(rng: Rng, rows: Rows) -> None:
    """Ids that differ in digits that floats do not have."""
    base = 2**60 + int(rng.integers(2**50))
    for number, each in enumerate(rows):
        each["who"] = base + number


def good_type(prepare: Callable[[Rng, Rows], None], make: Make, rng: Rng, folder: Path) -> list[Use]:
    """A type that holds the very values: read as they are."""
    rows = draw(rng, ("a", "b", "c")[: int(rng.integers(2, 4))])
    prepare(rng, rows)
    return uses_of_frame(make(rows), Right(rows))


def ints_and_truths(rng: Rng, folder: Path) -> list[Use]:
    rows = draw(rng)
    truths(rng, rows)
    values = np.empty(len(rows), dtype=object)
    values[:] = [bool(each["y"]) if rng.random() < 0.5 else each["y"] for each in rows]
    return uses_of_frame(pd.DataFrame(rows).assign(y=values), Right(rows))


def good_parquet(
    prepare: Callable[[Rng, Rows], None], make: Callable[[Rows], pa.Table], rng: Rng, folder: Path
) -> list[Use]:
    rows = draw(rng, ("a", "b", "c")[: int(rng.integers(2, 4))])
    prepare(rng, rows)
    path = folder / "x.parquet"
    pa.parquet.write_table(make(rows), path)
    return uses_of_file(path, Right(rows))


def one_value(
    name: str, value: Any, prepare: Callable[[Rng, Rows], None], rng: Rng, folder: Path
) -> list[Use]:
    """One value of a column of objects that cannot be: refused with its column and row."""
    rows = draw(rng)
    prepare(rng, rows)
    number = place(rng, rows)
    values = np.empty(len(rows), dtype=object)
    kind = Decimal if isinstance(value, Decimal) else int
    values[:] = [kind(each[name]) for each in rows]
    values[number] = value
    due = Refused((column(name), row(number)))
    others = {"aggregate": Refused((column(name),))}
    return uses_of_frame(pd.DataFrame(rows).assign(**{name: values}), due, None, others)


def one_missing(
    name: str, dtype: Any, prepare: Callable[[Rng, Rows], None], rng: Rng, folder: Path
) -> list[Use]:
    """A column of a nullable type without a value in one row."""
    rows = draw(rng, ("a", "b"))
    prepare(rng, rows)
    number = place(rng, rows)
    frame = with_type(name, dtype)(rows)
    frame.loc[number, name] = None
    due = Refused((column(name), row(number)))
    others = of_column(name, due, Right(rows)) or {"aggregate": Refused((column(name),))}
    return uses_of_frame(frame, due, None, others)


def whole_column(name: str, make: Callable[[Rng, Rows], Any], rng: Rng, folder: Path) -> list[Use]:
    """A column of a type that cannot be what it is for."""
    rows = draw(rng)
    frame = pd.DataFrame(rows)
    frame[name] = make(rng, rows)
    due = Refused((column(name),))
    return uses_of_frame(frame, due, None, of_column(name, due, Right(rows)))


def huge_value(rng: Rng, folder: Path) -> list[Use]:
    rows = draw(rng)
    whole(rng, rows)
    number = place(rng, rows)
    rows[number]["y"] = 2 ** int(rng.integers(54, 120)) + 1
    return uses_of_frame(
        huge("y")(rows), Refused((column("y"), row(number))), None, {"aggregate": Refused((column("y"),))}
    )


def whole_days(rng: Rng, rows: Rows) -> None:
    """Nothing to change: days are whole numbers."""


TYPES: dict[str, Kind] = {
    **{
        f"whole outcomes as {dtype}": partial(good_type, whole, with_type("y", dtype))
        for dtype in (
            "int8",
            "int16",
            "int32",
            "uint8",
            "uint64",
            "float32",
            "Int8",
            "UInt32",
            "Int64",
            "Float32",
        )
    },
    **{
        f"whole outcomes as {kind} of Arrow": partial(good_type, whole, with_type("y", pd.ArrowDtype(kind)))
        for kind in (pa.int8(), pa.uint16(), pa.int64(), pa.float32(), pa.decimal128(12, 0))
    },
    **{
        f"outcomes as {dtype}": partial(good_type, quarters, with_type("y", dtype))
        for dtype in (
            "float32",
            "Float64",
            "object",
            pd.ArrowDtype(pa.float64()),
            pd.ArrowDtype(pa.decimal128(20, 6)),
        )
    },
    **{
        f"0 and 1 as {dtype}": partial(good_type, truths, with_type("y", dtype))
        for dtype in ("bool", "boolean", pd.ArrowDtype(pa.bool_()))
    },
    "outcomes as Decimal": partial(good_type, quarters, of_objects("y", as_decimal)),
    "outcomes as Decimal with 25 decimals": partial(
        good_type, quarters, of_objects("y", lambda value: as_decimal(value).quantize(Decimal(1).scaleb(-25)))
    ),
    "whole outcomes as Decimal": partial(good_type, whole, of_objects("y", Decimal)),
    "whole outcomes as objects": partial(good_type, whole, of_objects("y", int)),
    "whole numbers and truth values as objects": ints_and_truths,
    "truth values as objects": partial(good_type, truths, of_objects("y", bool)),
    "NumPy's numbers as objects": partial(good_type, whole, of_objects("y", np.int16)),
    "outcomes as HUGEINT": partial(good_type, whole, huge("y")),
    "outcomes as Decimal of Arrow": partial(
        good_type, quarters, arrow("y", pa.decimal128(15, 3), as_decimal)
    ),
    "outcomes as Decimal in Parquet": partial(
        good_parquet, quarters, arrow("y", pa.decimal128(15, 3), as_decimal)
    ),
    "outcomes as int8 in Parquet": partial(good_parquet, whole, arrow("y", pa.int8())),
    "arms as a dictionary in Parquet": partial(
        good_parquet, quarters, arrow("arm", pa.dictionary(pa.int8(), pa.string()))
    ),
    "polars": partial(good_type, quarters, pl.DataFrame),
    "lazy polars": partial(good_type, quarters, lambda rows: pl.DataFrame(rows).lazy()),
    "propensities as Decimal": partial(good_type, quarters, of_objects("p", as_decimal)),
    "propensities as float32": partial(good_type, quarters, with_type("p", "float32")),
    **{
        f"arms as {dtype}": partial(good_type, arms("a", "b", "c"), with_type("arm", dtype))
        for dtype in (
            "category",
            "string",
            "object",
            pd.ArrowDtype(pa.string()),
            pd.ArrowDtype(pa.large_string()),
        )
    },
    **{
        f"arms of numbers as {dtype}": partial(good_type, arms(1, 2, 3), with_type("arm", dtype))
        for dtype in ("int8", "Int64", "uint16", "category", "object", pd.ArrowDtype(pa.int32()))
    },
    "days as int16": partial(good_type, whole_days, with_type("day", "int16")),
    "days as Decimal": partial(good_type, whole_days, of_objects("day", Decimal)),
    **{
        f"{value!r} among whole outcomes": partial(one_value, "y", value, whole)
        for value in (2**53 + 1, 2**70, -(2**63), Decimal(2**53 + 1), Decimal("12345678901234567890.5"))
    },
    **{
        f"{value!r} among outcomes": partial(one_value, "y", value, whole)
        for value in (Decimal("NaN"), Decimal("Infinity"), None, 1j, b"1", "1", datetime.date(2024, 1, 1))
    },
    **{
        f"no value in {name} as {dtype}": partial(one_missing, name, dtype, prepare)
        for name, dtype, prepare in (
            ("y", "Int64", whole),
            ("y", "Float64", quarters),
            ("y", "boolean", truths),
            ("y", pd.ArrowDtype(pa.int32()), whole),
            ("y", pd.ArrowDtype(pa.float64()), quarters),
            ("p", "Float64", quarters),
            ("arm", "string", quarters),
            ("arm", "category", quarters),
            ("arm", "object", quarters),
            ("who", "string", quarters),
            ("x", "Float64", quarters),
            ("region", "string", quarters),
            ("day", "Int64", quarters),
        )
    },
    **{
        f"{name} as {told}": partial(whole_column, name, make)
        for name in ("y", "p", "x")
        for told, make in (
            (
                "dates",
                lambda rng, rows: pd.Timestamp("2024-01-01") + pd.to_timedelta(range(len(rows)), unit="D"),
            ),
            ("durations", lambda rng, rows: pd.to_timedelta(range(len(rows)), unit="D")),
            ("complex numbers", lambda rng, rows: np.arange(len(rows)) * 1j),
        )
    },
    "p as truth values": partial(whole_column, "p", lambda rng, rows: rng.integers(0, 2, len(rows)) > 0),
    "arms as lists": partial(whole_column, "arm", lambda rng, rows: [[each["arm"]] for each in rows]),
    "arms as bytes": partial(whole_column, "arm", lambda rng, rows: [each["arm"].encode() for each in rows]),
    "arms of numbers and truth values": partial(whole_column, "arm", mixed_labels(1, True, 0, False)),
    "arms 1 and '1'": partial(whole_column, "arm", mixed_labels(1, "1", 2)),
    "arms with blanks around them": partial(
        whole_column,
        "arm",
        lambda rng, rows: [
            f"{each['arm']} " if number % 4 else each["arm"] for number, each in enumerate(rows)
        ],
    ),
    "a HUGEINT beyond 2^53": huge_value,
}


def id_floats(change: Callable[[Rows], Any], rng: Rng, folder: Path) -> list[Use]:
    """Ids that a program took for floats: people become one."""
    rows = draw(rng)
    long_ids(rng, rows)
    frame = pd.DataFrame(rows).assign(who=change(rows))
    due = Refused((column("who"), row(int(rng.integers(0, 1)))))
    return uses_of_frame(frame, due, None, of_column("who", due, Right(rows)))


def id_lines(rng: Rng, folder: Path) -> list[Use]:
    rows = draw(rng)
    long_ids(rng, rows)
    damaged = [{**each, "who": float(each["who"])} for each in rows]
    due = Refused((column("who"), line(2)))
    return uses_of_file(
        saved(folder, "x.jsonl", objects(damaged)), due, None, of_column("who", due, Right(rows))
    )


def id_texts(form: str, rng: Rng, folder: Path) -> list[Use]:
    """As spreadsheets and pandas write such floats."""
    rows = draw(rng)
    long_ids(rng, rows)
    damaged = [{**each, "who": form.format(float(each["who"]))} for each in rows]
    due = Refused((column("who"), line(2)))
    return uses_of_file(saved(folder, "x.csv", text(damaged)), due, None, of_column("who", due, Right(rows)))


def exact_ids(make: Callable[[Rows, Path], list[Use]], rng: Rng, folder: Path) -> list[Use]:
    rows = draw(rng)
    long_ids(rng, rows)
    return make(rows, folder)


def in_parquet(rows: Rows, folder: Path) -> list[Use]:
    pd.DataFrame(rows).to_parquet(folder / "x.parquet")
    return uses_of_file(folder / "x.parquet", Right(rows))


IDS: dict[str, Kind] = {
    "floats": partial(id_floats, lambda rows: [float(each["who"]) for each in rows]),
    "nullable floats": partial(
        id_floats, lambda rows: pd.array([float(each["who"]) for each in rows], "Float64")
    ),
    "floats of Arrow": partial(
        id_floats, lambda rows: pd.array([float(each["who"]) for each in rows], pd.ArrowDtype(pa.float64()))
    ),
    "floats of 32 bits": partial(
        id_floats, lambda rows: np.array([20_000_001 + n for n in range(len(rows))], "float32")
    ),
    "floats as objects": partial(
        id_floats, lambda rows: pd.Series([float(each["who"]) for each in rows], dtype=object)
    ),
    "floats in JSON lines": id_lines,
    "1.15E+18 in CSV": partial(id_texts, "{:.2E}"),
    "1.152921504606847e+18 in CSV": partial(id_texts, "{!r}"),
    "whole numbers in CSV": partial(
        exact_ids, lambda rows, folder: uses_of_file(saved(folder, "x.csv", text(rows)), Right(rows))
    ),
    "whole numbers in JSON lines": partial(
        exact_ids, lambda rows, folder: uses_of_file(saved(folder, "x.jsonl", objects(rows)), Right(rows))
    ),
    "whole numbers in Parquet": partial(exact_ids, in_parquet),
    **{
        f"as {dtype}": partial(
            exact_ids,
            lambda rows, folder, dtype=dtype: uses_of_frame(with_type("who", dtype)(rows), Right(rows)),
        )
        for dtype in ("int64", "uint64", "Int64", "object", pd.ArrowDtype(pa.int64()))
    },
    "as Decimal": partial(
        exact_ids, lambda rows, folder: uses_of_frame(of_objects("who", Decimal)(rows), Right(rows))
    ),
    "as HUGEINT": partial(exact_ids, lambda rows, folder: uses_of_frame(huge("who")(rows), Right(rows))),
}


def spread(rng: Rng, rows: Rows, decimals: int | None) -> tuple[Rows, list[str]]:
    """Rows with a column p_ARM for every arm, constant by day, rounded so that rows miss 1."""
    labels = list(dict.fromkeys(each["arm"] for each in rows))
    while True:
        by_day = {day: rng.dirichlet([8.0] * len(labels)).tolist() for day in {each["day"] for each in rows}}
        if decimals is not None:
            by_day = {day: [round(value, decimals) for value in values] for day, values in by_day.items()}
        off = [abs(sum(values) - 1) for values in by_day.values()]
        if decimals is None or (max(off) > 2e-6 and min(min(values) for values in by_day.values()) > 0.01):
            break
    wide = [
        {
            **{name: value for name, value in each.items() if name != "p"},
            **{f"p_{label}": value for label, value in zip(labels, by_day[each["day"]], strict=True)},
        }
        for each in rows
    ]
    return wide, labels


WIDE = {"propensity": None, "propensities": "p_{arm}"}


def renormalised(wide: Rows, labels: list[str]) -> Right:
    sums = [sum(each[f"p_{label}"] for label in labels) for each in wide]
    table = {
        f"p of {label}": [each[f"p_{label}"] / total for each, total in zip(wide, sums, strict=True)]
        for label in labels
    }
    own = [each[f"p_{each['arm']}"] / total for each, total in zip(wide, sums, strict=True)]
    return Right(wide, {**table, "p": own})


def given_as(
    rng: Rng, folder: Path, wide: Rows, due: Any, options: dict[str, Any], others: Any = None
) -> list[Use]:
    """Rows as a file or a frame."""
    if rng.random() < 0.5:
        return uses_of_frame(pd.DataFrame(wide), due, options, others)
    end = pick(rng, ("x.csv", "x.jsonl"))
    uses = uses_of_file(
        saved(folder, end, text(wide) if end == "x.csv" else objects(wide)), due, options, others
    )
    return without(uses, "command line")


def rounded(asked: bool, rng: Rng, folder: Path) -> list[Use]:
    wide, labels = spread(rng, draw(rng, ("a", "b", "c")), int(rng.integers(2, 6)))
    if asked:
        return given_as(rng, folder, wide, renormalised(wide, labels), {**WIDE, "round_propensities": True})
    due = Refused((column("p_a"), column("p_c"), "(?i)sum", "round_propensities"))
    return given_as(rng, folder, wide, due, WIDE)


def thirds(asked: bool, rng: Rng, folder: Path) -> list[Use]:
    rows, digits = draw(rng, ("a", "b", "c")), int(rng.integers(3, 6))
    wide = [
        {
            **{name: value for name, value in each.items() if name != "p"},
            **{f"p_{label}": round(1 / 3, digits) for label in "abc"},
        }
        for each in rows
    ]
    if asked:
        return given_as(
            rng, folder, wide, renormalised(wide, ["a", "b", "c"]), {**WIDE, "round_propensities": True}
        )
    return given_as(
        rng, folder, wide, Refused((column("p_a"), "(?i)sum", "round_propensities", r"0\.999")), WIDE
    )


def beyond_rounding(rng: Rng, folder: Path) -> list[Use]:
    """One row that no rounding explains, and is not renormalised either."""
    wide, _ = spread(rng, draw(rng, ("a", "b", "c")), int(rng.integers(2, 5)))
    number = place(rng, wide)
    wide[number]["p_b"] = round(wide[number]["p_b"] / 2, 2)
    due = Refused(
        (column("p_b"), "(?i)sum", rf"(row|line)s? [\d, ]*\b({number}|{number + 1}|{number + 2})\b")
    )
    return given_as(
        rng, folder, wide, due, {**WIDE, "round_propensities": True}, {"aggregate": Refused((column("p_b"),))}
    )


def exact_columns(rng: Rng, folder: Path) -> list[Use]:
    wide, labels = spread(rng, draw(rng, ("a", "b", "c")), None)
    return given_as(
        rng,
        folder,
        wide,
        renormalised(wide, labels),
        {**WIDE, "round_propensities": bool(rng.random() < 0.5)},
    )


def lacking_column(rng: Rng, folder: Path) -> list[Use]:
    wide, _ = spread(rng, draw(rng, ("a", "b", "c")), None)
    wide = [{name: value for name, value in each.items() if name != "p_b"} for each in wide]
    return given_as(rng, folder, wide, Refused(("p_b|no propensity column for 'b'",)), WIDE)


ROUNDED: dict[str, Kind] = {
    "rounded, not said": partial(rounded, False),
    "rounded, said": partial(rounded, True),
    "a third, not said": partial(thirds, False),
    "a third, said": partial(thirds, True),
    "a row that rounding does not explain": beyond_rounding,
    "exact": exact_columns,
    "an arm without a column": lacking_column,
}


W = r"\bw\b"
"""The column of weights, also within the name of its entries."""


def weights(rng: Rng, rows: Rows, order: list[str], form: str) -> tuple[Rows, Right]:
    """Rows with a column of weights in the order of arms, and what they are."""
    table = {
        day: rng.dirichlet([8.0] * len(order)).round(9).tolist() for day in {each["day"] for each in rows}
    }
    for values in table.values():
        values[-1] = 1.0 - sum(values[:-1])
    held = []
    for each in rows:
        entry: Any = table[each["day"]]
        if form in ("object", "object text"):
            entry = {order[at]: entry[at] for at in rng.permutation(len(order)).tolist()}
        if form in ("list text", "object text"):
            entry = json.dumps(entry)
        if form == "Python text":
            entry = str(entry)
        held.append({**{name: value for name, value in each.items() if name != "p"}, "w": entry})
    own = [table[each["day"]][order.index(each["arm"])] for each in rows]
    every = {f"p of {arm}": [table[each["day"]][at] for each in rows] for at, arm in enumerate(order)}
    return held, Right(rows, {**every, "p": own})


def weights_case(form: str, rng: Rng, folder: Path) -> list[Use]:
    rows = draw(rng, ("a", "b", "c"))
    order = rng.permutation(["a", "b", "c"]).tolist()
    held, due = weights(rng, rows, order, form)
    return weighed(rng, folder, held, due, order, form)


def weighed(
    rng: Rng, folder: Path, held: Rows, due: Any, order: list[str], form: str, others: Any = None
) -> list[Use]:
    options = {"propensity": None, "propensities": "w", "arms": order}
    if form in ("list", "object") and rng.random() < 0.5:
        uses = uses_of_file(saved(folder, "x.jsonl", objects(held)), due, options, others)
    elif form in ("list", "object") or rng.random() < 0.4:
        return uses_of_frame(pd.DataFrame(held), due, options, others)
    else:
        uses = uses_of_file(saved(folder, "x.csv", text(held)), due, options, others)
    return without(uses, "command line", "aggregate")


def bad_weight(change: Callable[[Any], Any], rng: Rng, folder: Path) -> list[Use]:
    """One entry of a column of weights that cannot be."""
    rows, form = draw(rng, ("a", "b", "c")), pick(rng, ("list", "list text"))
    order = ["c", "a", "b"]
    held, _ = weights(rng, rows, order, form)
    number = place(rng, held)
    entry = held[number]["w"]
    changed = change(json.loads(entry) if form == "list text" else list(entry))
    held[number]["w"] = json.dumps(changed) if form == "list text" and changed is not None else changed
    due = Refused((W, rf"(row|line)s? [\d, ]*\b({number}|{number + 1}|{number + 2})\b"))
    return weighed(rng, folder, held, due, order, form, {"aggregate": Refused((W,))})


def nameless_lists(rng: Rng, folder: Path) -> list[Use]:
    """Lists without the order of the arms."""
    held, _ = weights(rng, draw(rng, ("a", "b", "c")), ["a", "b", "c"], "list")
    return uses_of_frame(pd.DataFrame(held), Refused((W, "arms=")), {"propensity": None, "propensities": "w"})


LISTS: dict[str, Kind] = {
    **{
        form: partial(weights_case, form)
        for form in ("list", "list text", "object", "object text", "Python text")
    },
    "lists without arms=": nameless_lists,
    "one list that is longer": partial(bad_weight, lambda entry: [*entry, 0.0]),
    "one list that is shorter": partial(bad_weight, lambda entry: entry[:-1]),
    "one list of texts": partial(bad_weight, lambda entry: [str(value) for value in entry]),
    "one list with a null": partial(bad_weight, lambda entry: [None, *entry[1:]]),
    "one list with a truth value": partial(bad_weight, lambda entry: [True, *entry[1:]]),
    "one list with a negative entry": partial(
        bad_weight, lambda entry: [-entry[0], *entry[1:-1], entry[-1] + 2 * entry[0]]
    ),
    "one list whose sum is not 1": partial(bad_weight, lambda entry: [entry[0] / 2, *entry[1:]]),
    "one list that is a number": partial(bad_weight, lambda entry: entry[0]),
    "one object among lists": partial(bad_weight, lambda entry: dict(zip("cab", entry, strict=True))),
    "one empty list": partial(bad_weight, lambda entry: []),
    "one row without a list": partial(bad_weight, lambda entry: None),
}


def one_hot(
    change: Callable[[Rng, dict[str, Any], list[str]], None] | None,
    named: Callable[[list[str]], tuple[str, ...]],
    rng: Rng,
    folder: Path,
) -> list[Use]:
    """A column of 0 and 1 for every arm."""
    rows = draw(rng, ("t_a", "t_b", "t_c")[: int(rng.integers(2, 4))])
    labels = sorted({each["arm"] for each in rows})
    kind: Any = pick(rng, (int, bool, float)) if change is None else int
    wide = [
        {
            **{name: value for name, value in each.items() if name != "arm"},
            **{label: kind(label == each["arm"]) for label in labels},
        }
        for each in rows
    ]
    due: Any = Right(rows)
    others = None
    number = place(rng, wide)
    if change is not None:
        change(rng, wide[number], labels)
        due = Refused((*named(labels), rf"(row|line)s? [\d, ]*\b({number}|{number + 1}|{number + 2})\b"))
        others = {"aggregate": Refused(named(labels))}
    return given_as(rng, folder, wide, due, {"action": labels}, others)


def second_one(rng: Rng, row: dict[str, Any], labels: list[str]) -> None:
    row |= dict.fromkeys(labels[:2], 1)


def no_one(rng: Rng, row: dict[str, Any], labels: list[str]) -> None:
    row |= dict.fromkeys(labels, 0)


def other_number(value: Any) -> Callable[[Rng, dict[str, Any], list[str]], None]:
    def change(rng: Rng, row: dict[str, Any], labels: list[str]) -> None:
        row[labels[0]] = value

    return change


ONE_HOT: dict[str, Kind] = {
    "as they should be": partial(one_hot, None, lambda labels: ()),
    "two ones": partial(one_hot, second_one, lambda labels: tuple(labels)),
    "no one": partial(one_hot, no_one, lambda labels: tuple(labels)),
    **{
        f"{value!r}": partial(one_hot, other_number(value), lambda labels: (labels[0],))
        for value in (2, -1, None)
    },
}
