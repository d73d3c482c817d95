"""What a right reader may answer: the content of a log by slow and literal rules, or that it must be refused.

Nothing of the library is used here, so that a fault of a reader is not repeated by what judges it.
"""

from __future__ import annotations

import codecs
import csv
import datetime
import io
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from written import (
    ABSENT,
    NUMBER,
    WHOLE,
    MustRefuse,
    Spoilt,
    batch_numbers,
    batch_values,
    demand,
    is_missing,
    kept_texts,
    outcomes,
    plain,
    times_of,
)  # fmt: skip

Content = dict[str, Any]
COMMA = re.compile(r"[-+]?\d+,\d+([eE][-+]?\d+)?", re.ASCII)
DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def number(value: Any, *, booleans: bool = False) -> float:
    """A finite number that a float holds exactly."""
    value = plain(value)
    value = float(value) if isinstance(value, Decimal) else value
    demand(not is_missing(value), "missing")
    demand(isinstance(value, bool) <= booleans, "a truth value is no number")
    demand(type(value) in (int, float, bool), f"{type(value).__name__} is no number")
    demand(not isinstance(value, int) or abs(value) <= 2**53, "beyond 2^53")
    demand(math.isfinite(value), "infinite")
    return float(value)


def labels(values: Sequence[Any]) -> list[Any]:
    """Labels that can be told apart: text, whole numbers, booleans or finite numbers."""
    found = []
    for value in map(plain, values):
        value = str(value) if isinstance(value, Spoilt) else value
        demand(not is_missing(value), "missing label")
        demand(type(value) in (str, int, float, bool), f"{type(value).__name__} is no label")
        demand(not isinstance(value, float) or math.isfinite(value), "infinite label")
        found.append(value)
    distinct = {(type(value), value) for value in found}
    texts = {str(value).strip() for _, value in distinct}
    demand(len(texts) == len(distinct), "labels that read the same, but for blanks around them")
    kinds = {kind for kind, _ in distinct}
    demand(bool not in kinds or len(kinds) == 1, "truth values beside others")
    demand(not {int, float} <= kinds or len({value for _, value in distinct}) == len(distinct), "1 and 1.0")
    numerals = any(kind is str and NUMBER.fullmatch(value) for kind, value in distinct)
    demand(not (numerals and kinds & {int, float}), "numbers beside text that is one")
    demand(
        all(value.strip() for kind, value in distinct if kind is str),
        ("a label that consists only of spaces"),
    )
    return found


def log_content(columns: Mapping[str, Sequence[Any]], options: Mapping[str, Any]) -> Content:
    """Content of the log that columns of plain values are, by the arguments of `AdaptiveLog`."""

    def column(role: str) -> Sequence[Any] | None:
        name = options.get(role)
        demand(name is None or name in columns, f"no column {name!r}")
        return None if name is None else columns[name]

    columns = in_order(columns, options)
    actions, rewards = labels(column("action") or []), column("reward") or []
    demand(len(actions) > 0, "no rows")
    if (success := options.get("success")) is not None:
        rewards = outcomes(rewards, success)
    content: Content = {"action": actions, "reward": [number(value, booleans=True) for value in rewards]}
    low, high = options.get("reward_range") or (-math.inf, math.inf)
    demand(all(low <= reward <= high for reward in content["reward"]), "reward outside its range")
    declared = options.get("arms")
    demand(declared is None or all(typed(arm) in map(typed, declared) for arm in actions), "unseen arm")
    add_propensities(content, column("propensity"), columns, options)
    for name in options.get("context", []):
        demand(name in columns, f"no column {name!r}")
        content[f"context {name}"] = context_values(columns[name])
    if (units := column("unit")) is not None:
        content["unit"] = labels(units)
    if (batches := column("batch")) is not None:
        times = batch_values(batches, options.get("date_format"))
        content["batch"] = batch_codes(labels(batches) if times is None else times)
    if (rounds := column("round")) is not None:
        content["round"] = round_values(rounds, options.get("date_format"))
    return content


def in_order(columns: Mapping[str, Sequence[Any]], options: Mapping[str, Any]) -> Mapping[str, Sequence[Any]]:
    """The rows in the order of their rounds, else batches, where that is asked for."""
    if not options.get("sort"):
        return columns
    role = "round" if "round" in options else "batch"
    demand(options.get(role) in columns, "no column to sort by")
    values = [plain(value) for value in columns[options[role]]]
    demand(not any(map(is_missing, values)), "missing")
    if role == "batch":
        keys = batch_values(values, options.get("date_format")) or batch_numbers(values)
        keys = keys or [number(value) if isinstance(value, float) else value for value in values]
        demand(all(type(key) in (int, float, np.datetime64) for key in keys), "labels")
    else:
        keys = round_keys(values, options.get("date_format"))
    order = sorted(range(len(keys)), key=lambda row: keys[row])
    return {name: [held[row] for row in order] for name, held in columns.items()}


def typed(value: Any) -> tuple[type, Any]:
    """A label that is equal to no label of another type."""
    return type(value), value


def add_propensities(
    content: Content,
    chosen: Sequence[Any] | None,
    columns: Mapping[str, Sequence[Any]],
    options: Mapping[str, Any],
) -> None:
    """Put the chosen arm's propensity, and those of all arms, into the content."""
    if chosen is not None:
        content["propensity"] = [number(value) for value in chosen]
        demand(all(0 < value <= 1 for value in content["propensity"]), "propensity outside (0, 1]")
    if (mapping := options.get("propensities")) is None:
        return
    if isinstance(mapping, str):
        arms = options.get("arms") or list(dict.fromkeys(content["action"]))
        mapping = {arm: mapping.replace("{arm}", str(arm)) for arm in arms}
        before, after = options["propensities"].split("{arm}")
        used = {options.get(role) for role in ("action", "reward", "propensity", "round", "batch", "unit")}
        named = {
            name
            for name in columns
            if isinstance(name, str) and name.startswith(before) and name.endswith(after) and name not in used
        }
        demand(named <= set(mapping.values()) | set(options.get("context", [])), "a column without an arm")
    demand(all(name in columns for name in mapping.values()), "no column of propensities")
    table = {arm: [number(value) for value in columns[name]] for arm, name in mapping.items()}
    demand(all(0 <= value <= 1 for values in table.values() for value in values), "propensity outside [0, 1]")
    demand(all(typed(arm) in map(typed, table) for arm in content["action"]), "arm without propensities")
    for row, arm in enumerate(content["action"]):
        demand(abs(sum(values[row] for values in table.values()) - 1.0) <= 1.000001e-6, "sum is not 1")
        own = table[arm][row]
        demand(own > 0, "the chosen arm's propensity is 0")
        if chosen is not None:
            demand(abs(content["propensity"][row] - own) <= 1.000001e-6 * own, "two propensities differ")
    content["propensity"] = content.get("propensity") or [
        table[arm][row] for row, arm in enumerate(content["action"])
    ]
    content |= {f"propensity of {arm}": values for arm, values in table.items()}


def context_values(values: Sequence[Any]) -> list[Any]:
    """Text, truth values or finite numbers, all of one kind."""
    values = [plain(value) for value in values]
    demand(not any(map(is_missing, values)), "missing context")
    kinds = set(map(type, values))
    if kinds <= {str} or kinds <= {bool}:
        return values
    demand(all(type(value) is not int or abs(value) < 2**63 for value in values), "of more than 64 bits")
    return values if kinds <= {int} else [number(value) for value in values]


def batch_codes(values: list[Any]) -> list[int]:
    """Batches numbered from 0; each is one stretch, and numbers do not go down."""
    values = batch_numbers(values) or values
    starts = [value for row, value in enumerate(values) if row == 0 or values[row - 1] != value]
    demand(len(starts) == len(set(starts)), "a batch returns")
    if not any(isinstance(value, str) for value in starts):
        demand(starts == sorted(starts), "batches go down")
    return [starts.index(value) for value in values]


def round_values(values: Sequence[Any], date_format: str | None) -> list[Any]:
    """Numbers or dates, which do not go back."""
    values = [plain(value) for value in values]
    demand(not any(map(is_missing, values)), "missing round")
    times = round_keys(values, date_format)
    demand(all(one <= two for one, two in itertools.pairwise(times)), "rounds go back")
    return times


def round_keys(values: Sequence[Any], date_format: str | None) -> list[Any]:
    """Numbers or times."""
    if all(isinstance(value, datetime.date) for value in values):
        return [iso_time(value.isoformat()) for value in values]  # a format is of text
    if all(isinstance(value, str | datetime.date) for value in values):
        texts = [value.isoformat() if isinstance(value, datetime.date) else value for value in values]
        return times_of(texts, date_format)
    times = [number(value) if isinstance(value, float) else value for value in values]
    demand(all(type(value) in (int, float) for value in times), "round is no number and no time")
    return times


def iso_time(text: str) -> np.datetime64:
    """A date or a time in ISO 8601."""
    text = text.strip()
    demand(DATE.match(text) is not None, "no ISO date")
    fraction = re.search(r"\.(\d+)", text)
    try:
        time = datetime.datetime.fromisoformat(text.replace(fraction[0], "") if fraction else text)
    except ValueError:
        raise MustRefuse("no ISO date") from None
    if time.tzinfo is not None:
        time = time.astimezone(datetime.UTC).replace(tzinfo=None)
    digits = fraction[1] if fraction else ""
    return np.datetime64(time, "ns") + np.timedelta64(int(digits.ljust(9, "0")[:9]), "ns")


def text_of(data: bytes) -> str:
    """Bytes as text by their mark, else as UTF-8."""
    return data.decode("utf-16" if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8-sig")


def read_csv(
    data: bytes, roles: Mapping[str, str] | None = None, *, any_file: bool = False
) -> dict[str, list[Any]]:
    """Columns of a CSV file by Python's own strict parser; every row has the fields of the header.

    The roles of columns say which stay as they are written: label, batch, context or text. `any_file`: as
    `read_log` reads, by other separators too, and with NA among labels.
    """
    try:
        text = text_of(data)
        demand("\0" not in text, "a NUL")
        mark = separator(text) if any_file else ","
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise MustRefuse(str(error)) from None
    rows = [row for row in rows if row]
    demand(bool(rows), "an empty file")
    header, *body = rows if mark == "," else without_decimal_commas(rows, roles or {})
    demand(len(set(header)) == len(header), "a header twice")
    demand(all(len(row) == len(header) for row in body), "a row of other length")
    found = {}
    for place, name in enumerate(header):
        texts = [row[place] for row in body]
        found[name] = cells(texts, any_file and (roles or {}).get(name) in ("label", "context"))
        if roles is not None and name in roles:
            found[name] = kept_texts(texts, found[name], roles[name])
    return found


def roles_of(options: Mapping[str, Any]) -> dict[str, str]:
    """Roles of the columns that the arguments of `AdaptiveLog` name."""
    roles = {options[role]: "label" for role in ("action", "unit") if role in options}
    roles |= dict.fromkeys(options.get("context", []), "context")
    if "batch" in options:
        roles[options["batch"]] = "batch"
    if "success" in options:
        roles[options["reward"]] = "text"
    return roles


def separator(text: str) -> str:
    """The comma, unless the header has none and another mark in its place."""
    header = text.splitlines()[0] if text else ""
    return next((mark for mark in ";\t" if mark in header and "," not in header), ",")


def without_decimal_commas(rows: list[list[str]], roles: Mapping[str, str]) -> list[list[str]]:
    """Commas of numbers as points, where commas are in numbers and points are not; labels are as written."""
    texts = [text for row in rows for text in row]
    if not any(COMMA.fullmatch(text) for text in texts) or any(
        NUMBER.fullmatch(text) and "." in text for text in texts
    ):
        return rows
    kept = [roles.get(name) == "label" for name in rows[0]] + [False] * max(map(len, rows))
    return [
        [
            text.replace(",", ".") if COMMA.fullmatch(text) and not kept[at] else text
            for at, text in enumerate(row)
        ]
        for row in rows
    ]


def cells(texts: list[str], named: bool = False) -> list[Any]:
    """A column of text as whole numbers, numbers or truth values, where every cell is one.

    Text among labels and contexts (`named`) is missing where there is none.
    """
    present = [text for text in texts if text not in ABSENT]
    whole = len(present) == len(texts)
    if present and whole and all(WHOLE.fullmatch(text) for text in present):
        long = any(len(text) > 4300 for text in texts)  # more digits than Python reads
        return [Spoilt(text) if long else int(text) for text in texts]
    if present and all(NUMBER.fullmatch(text) or text.strip() in ABSENT for text in texts):
        return [math.nan if text.strip() in ABSENT else float(text) for text in texts]
    if present and whole and all(text in ("True", "False") for text in present):
        return [text == "True" for text in texts]
    distinct = set(present)
    numerals = {text for text in distinct if NUMBER.fullmatch(text)}
    fractions = any(not WHOLE.fullmatch(text) for text in numerals)
    others = len(distinct) - len(numerals)
    spoilt = others < len(numerals) and (fractions or len(numerals) > 10 or not others)
    kind = Spoilt if spoilt else str
    return [None if text in ({""} if named else ABSENT) else kind(text) for text in texts]


def seen(log: Any) -> Content:
    """Content of a log that the library made, in the same terms."""
    arrays = log.arrays
    content: Content = {
        "action": [log.arms[code] for code in arrays.action],
        "reward": arrays.reward.tolist(),
    }
    if arrays.propensity is not None:
        content["propensity"] = arrays.propensity.tolist()
    if arrays.propensities is not None:
        content |= {
            f"propensity of {arm}": arrays.propensities[:, code].tolist() for code, arm in enumerate(log.arms)
        }
    content |= {f"context {name}": values.tolist() for name, values in arrays.context.items()}
    if log.units is not None:
        content["unit"] = log.units.tolist()
    if arrays.batch is not None:
        content["batch"] = arrays.batch.tolist()
    rounds = log.column("t")
    content["round"] = list(rounds) if rounds.dtype.kind == "M" else rounds.tolist()
    return content


def same(first: Content, second: Content) -> bool:
    """Whether two contents agree in every column that both are asked for; rounds where there are any."""
    keys = set(first) | set(second)
    if "round" not in first or "round" not in second:
        keys -= {"round"}
    return all(
        key in first
        and key in second
        and len(first[key]) == len(second[key])
        and all(map(alike, first[key], second[key]))
        for key in keys
    )


def alike(one: Any, two: Any) -> bool:
    """Whether two entries are equal; a number is no text and no truth value."""
    return isinstance(one, bool) == isinstance(two, bool) and bool(one == two)
