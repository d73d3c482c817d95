"""Tables of one log in odd types and with odd entries, and what must come of each: cases of engines.py."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

SEED = 20261126
DAYS, ROWS = 6, 100
SHARES = np.repeat([0.5, 0.4, 0.3, 0.35, 0.6, 0.45], ROWS)


@dataclass(frozen=True)
class Table:
    """One table: its columns, what `aggregate` is told, and the codes that it is refused by, if it is.

    `parts` are the tables of several files, where they differ; `sources` those that can hold the table.
    """

    name: str
    columns: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    parts: tuple[pa.Table | bytes, ...] = ()
    sources: tuple[str, ...] = ()

    @property
    def arrow(self) -> pa.Table:
        """The whole table."""
        if self.parts:
            return pa.concat_tables(
                [part for part in self.parts if isinstance(part, pa.Table)], promote_options="permissive"
            )
        return pa.table(dict(self.columns))


def base() -> dict[str, Any]:
    """Six days of a hundred rows."""
    rng = np.random.default_rng(SEED)
    chosen = rng.random(DAYS * ROWS) < SHARES
    return {
        "day": pa.array(np.repeat(np.arange(DAYS), ROWS)),
        "arm": pa.array(np.where(chosen, "b", "a")),
        "y": pa.array(np.round(rng.normal(size=DAYS * ROWS), 6)),
        "propensity_a": pa.array(1.0 - SHARES),
        "propensity_b": pa.array(SHARES),
    }


def tables() -> list[Table]:
    """All tables."""
    return [*_arms(), *_rewards(), *_propensities(), *_batches(), *_periods(), *_others(), *_files()]


def _put(
    column: str, values: Any, row: int | None = None, entry: Any = None, kind: Any = None
) -> dict[str, Any]:
    """The base with other values of a column, or with one entry of them."""
    found = base()
    listed = (found[column] if values is None else values).to_pylist() if row is not None else None
    if listed is not None:
        listed[row] = entry
        kind = kind or (found[column] if values is None else values).type
        nan = isinstance(entry, float) and math.isnan(entry)
        values = pa.array(np.array(listed, dtype=float), from_pandas=False) if nan else pa.array(listed, kind)
        values = values.cast(kind) if nan else values
    return found | {column: values}


def _named(zero: str, one: str, arms: Any) -> dict[str, Any]:
    """The base with other arms, whose propensities have their names."""
    found = base()
    shares = {f"propensity_{zero}": found.pop("propensity_a"), f"propensity_{one}": found.pop("propensity_b")}
    return found | {"arm": arms} | shares


def _coded(zero: Any, one: Any, kind: pa.DataType | None = None) -> pa.Array:
    """The arms of the base by other labels."""
    return pa.array([one if arm == "b" else zero for arm in base()["arm"].to_pylist()], kind)


def _arms() -> list[Table]:
    big = 2**53 + 1
    texts = base()["arm"]
    odd = np.arange(DAYS * ROWS) % 2 == 1
    ones = np.array([arm == "b" for arm in texts.to_pylist()])
    signed = pa.array(np.where(ones, 1.0, np.where(odd, -0.0, 0.0)))
    spaced = pa.array([f"{arm} " if row == 7 else arm for row, arm in enumerate(texts.to_pylist())])
    floats = {"propensities": {0.0: "propensity_a", 1.0: "propensity_b"}}
    return [
        Table("text", base()),
        Table("int8 arms", _named("0", "1", _coded(0, 1, pa.int8()))),
        Table("uint64 arms", _named("0", "1", _coded(0, 1, pa.uint64()))),
        Table("arms beyond 2**53", _named(str(big), str(big + 1), _coded(big, big + 1, pa.int64()))),
        Table("float arms", _named("0.0", "1.0", _coded(0.0, 1.0))),
        Table("float32 arms", _named("0.5", "1.5", _coded(0.5, 1.5, pa.float32()))),
        Table("arms 0.0 and -0.0", base() | {"arm": signed}, floats),
        Table("true and false arms", _named("False", "True", _coded(False, True))),
        Table("arms as a dictionary", base() | {"arm": texts.dictionary_encode()}),
        Table("whole numbers as a dictionary", _named("1", "2", _coded(1, 2).dictionary_encode())),
        Table("large text", base() | {"arm": texts.cast(pa.large_string())}),
        Table("views of text", base() | {"arm": texts.cast(pa.string_view())}),
        Table("accents and blanks", _named("ü", "y z", _coded("ü", "y z"))),
        Table(
            "decimal arms", _named("0.5", "1.5", _coded(Decimal("0.5"), Decimal("1.5"), pa.decimal128(4, 1)))
        ),
        Table("a missing arm", _put("arm", None, 5), refused=("missing-action",)),
        Table("an arm NaN", _put("arm", _coded(0.0, 1.0), 5, math.nan), floats, ("missing-action",)),
        Table("an infinite arm", _put("arm", _coded(0.0, 1.0), 5, math.inf), floats, ("bad-action",)),
        Table("a blank arm", _put("arm", None, 5, " "), refused=("blank-action", "arm-without-propensity")),
        Table(
            "arms a and 'a '",
            base() | {"arm": spaced},
            refused=("ambiguous-arm", "arm-without-propensity"),
        ),
        Table("times as arms", _put("arm", _stamps("us", None)), refused=("bad-action",)),
        Table(
            "lists as arms",
            _put("arm", pa.array([[arm] for arm in texts.to_pylist()])),
            refused=("bad-action",),
        ),
        Table(
            "a missing truth value as arm",
            _named("False", "True", _put("arm", _coded(False, True), 5)["arm"]),
            refused=("missing-action",),
        ),
        Table(
            "an arm that is not declared", _put("arm", None, 5, "c"), {"arms": ["a", "b"]}, ("unseen-arm",)
        ),
    ]


def _rewards() -> list[Table]:
    whole = np.arange(DAYS * ROWS) % 7
    y = np.array(base()["y"].to_pylist())
    cents = [Decimal(f"{value:.2f}") for value in y]
    found = {
        "int8 rewards": pa.array(whole, pa.int8()),
        "int64 rewards": pa.array(whole, pa.int64()),
        "uint64 rewards": pa.array(whole, pa.uint64()),
        "float16 rewards": pa.array(whole.astype(np.float16)),
        "float32 rewards": pa.array(y, pa.float32()),
        "truth values as rewards": pa.array(whole > 3),
        "decimal rewards": pa.array(cents, pa.decimal128(10, 2)),
        "decimals of 38 digits": pa.array(cents, pa.decimal128(38, 10)),
        "rewards as a dictionary": pa.array(cents).cast(pa.float64()).dictionary_encode(),
        "rewards up to 2**53 - 1": pa.array(2**53 - 1 - whole, pa.int64()),
        "rewards far from 0": pa.array(1e7 + y),
        "rewards all alike": pa.array(np.full(DAYS * ROWS, 0.1)),
        "tiny rewards": pa.array(y * 1e-300),
        "rewards 0.0 and -0.0": pa.array(np.where(whole > 3, -0.0, 0.0)),
    }
    missing, infinite = ("missing-reward",), ("infinite-reward",)
    refused: dict[str, tuple[Any, tuple[str, ...]]] = {
        "a missing reward": (_put("y", None, 5)["y"], missing),
        "a reward NaN": (_put("y", None, 5, math.nan)["y"], missing),
        "a float32 reward NaN": (_put("y", pa.array(y, pa.float32()), 5, math.nan)["y"], missing),
        "a missing whole number": (_put("y", pa.array(whole), 5)["y"], missing),
        "a missing truth value": (_put("y", pa.array(whole > 3), 5)["y"], missing),
        "a missing decimal": (_put("y", pa.array(cents), 5)["y"], missing),
        "an infinite reward": (_put("y", None, 5, math.inf)["y"], infinite),
        "a reward of minus infinity": (_put("y", None, 5, -math.inf)["y"], infinite),
        "rewards near 2**62": (pa.array(2**62 + whole, pa.int64()), ("inexact-reward",)),
        "rewards of 2**63 and more": (
            pa.array(np.uint64(2**63) + whole.astype(np.uint64)),
            ("inexact-reward",),
        ),
        "rewards of 1e308": (pa.array(np.where(whole > 3, 1e308, 1.0)), ("rounded-reward",)),
        "decimals of 2**53 and more": (
            pa.array([Decimal(2**60 + int(one)) for one in whole], pa.decimal128(38, 0)),
            ("rounded-reward",),
        ),
        "text as rewards": (pa.array([str(one) for one in whole]), ("non-numeric-reward",)),
        "times as rewards": (_stamps("us", None), ("non-numeric-reward",)),
    }
    ranged = {"reward_range": (0.0, 5.0)}
    both = _put("y", _put("y", None, 5)["y"], 300, math.inf)
    return [
        *(Table(name, base() | {"y": values}) for name, values in found.items()),
        *(Table(name, base() | {"y": values}, refused=codes) for name, (values, codes) in refused.items()),
        Table(
            "rewards out of their range", base() | {"y": pa.array(whole)}, ranged, ("reward-out-of-range",)
        ),
        Table("one missing, one infinite", both, refused=(*infinite, *missing)),
    ]


def _propensities() -> list[Table]:
    b = base()["propensity_b"]
    tenths = {
        name: pa.array([Decimal(f"{value:.2f}") for value in base()[name].to_pylist()], pa.decimal128(4, 2))
        for name in ("propensity_a", "propensity_b")
    }
    single = {name: base()[name].cast(pa.float32()) for name in tenths}
    chosen = [
        one if arm == "b" else zero
        for arm, zero, one in zip(*(base()[name].to_pylist() for name in ("arm", *tenths)), strict=True)
    ]
    alone = {name: column for name, column in base().items() if name not in tenths}
    given = {"propensity": "p"}
    missing, outside = ("missing-propensity",), ("propensity-out-of-range",)
    first = base()["arm"].to_pylist().index("b")
    return [
        Table("decimal propensities", base() | tenths),
        Table("float32 propensities", base() | single),
        Table("the chosen arm's alone", alone | {"p": pa.array(chosen)}, given),
        Table("both", base() | {"p": pa.array(chosen)}, given),
        Table("both, which differ", base() | {"p": pa.array(chosen[::-1])}, given, ("propensity-mismatch",)),
        Table("a missing propensity", _put("propensity_b", b, 5), refused=missing),
        Table("a propensity NaN", _put("propensity_b", b, 5, math.nan), refused=missing),
        Table(
            "a chosen propensity NaN",
            alone | {"p": _put("day", pa.array(chosen), 5, math.nan)["day"]},
            given,
            missing,
        ),
        Table(
            "a chosen propensity 0",
            alone | {"p": _put("day", pa.array(chosen), 5, 0.0)["day"]},
            given,
            outside,
        ),
        Table(
            "a negative propensity", _put("propensity_b", b, 5, -0.1), refused=("propensities-sum", *outside)
        ),
        Table(
            "a propensity above 1", _put("propensity_b", b, 5, 1.1), refused=("propensities-sum", *outside)
        ),
        Table("propensities that miss 1", _put("propensity_b", b, 5, 0.2), refused=("propensities-sum",)),
        Table(
            "0 for the chosen arm",
            _put("propensity_b", b, first, 0.0)
            | {"propensity_a": _put("propensity_a", None, first, 1.0)["propensity_a"]},
            refused=("chosen-propensity-zero",),
        ),
        Table(
            "text as propensities",
            _put("propensity_b", pa.array([str(one) for one in b.to_pylist()])),
            refused=("non-numeric-propensity",),
        ),
    ]


def _stamps(unit: str, zone: str | None, start: str = "2024-03-30T18:00") -> pa.Array:
    """25 rows each five hours."""
    times = np.datetime64(start, unit) + (np.arange(DAYS * ROWS) // 25 * 5).astype("timedelta64[h]")
    return pa.array(times.astype(f"datetime64[{unit}]").astype(np.int64), pa.timestamp(unit, zone))


def _batches() -> list[Table]:
    days = np.repeat(np.arange(DAYS), ROWS)
    dates = [datetime.date(2024, 3, 1) + datetime.timedelta(days=int(day)) for day in days]
    numbers = {
        "int32 batches": pa.array(days, pa.int32()),
        "uint64 batches": pa.array(days, pa.uint64()),
        "float batches": pa.array(days + 0.5),
        "batches 0.0 and -0.0": pa.array(np.where((days == 0) & (np.arange(len(days)) % 2 == 1), -0.0, days)),
        "decimal batches": pa.array([Decimal(int(day)) for day in days], pa.decimal128(6, 2)),
        "false and true batches": pa.array(days > 2),
        "dates as batches": pa.array(dates),
        "dates as text": pa.array([date.isoformat() for date in dates]),
        "dates as a dictionary of text": pa.array([date.isoformat() for date in dates]).dictionary_encode(),
        "numbers as text": pa.array([str(day) for day in days]),
        "stamps in seconds": _stamps("s", None),
        "stamps in nanoseconds": _stamps("ns", None),
        "instants in UTC": _stamps("us", "UTC"),
        "instants of Kathmandu": _stamps("us", "Asia/Kathmandu"),
    }
    missing, bad = ("missing-batch",), ("bad-batch",)
    two = pa.array(["1" if row < ROWS // 2 else f"{day + 1:02d}" for row, day in enumerate(days)])
    refused: dict[str, tuple[Any, tuple[str, ...]]] = {
        "a missing batch": (_put("day", None, 5)["day"], missing),
        "a batch NaN": (_put("day", pa.array(days + 0.0), 5, math.nan)["day"], missing),
        "an infinite batch": (_put("day", pa.array(days + 0.0), 5, math.inf)["day"], bad),
        "a missing stamp": (_put("day", _stamps("us", "UTC"), 5)["day"], missing),
        "batches 1 and 01": (two, ("ambiguous-batch",)),
        "times of day as batches": (pa.array(days, pa.time64("us")), bad),
    }
    return [
        *(Table(name, base() | {"day": values}) for name, values in numbers.items()),
        *(Table(name, base() | {"day": values}, refused=codes) for name, (values, codes) in refused.items()),
        Table(
            "durations as batches",
            base() | {"day": pa.array(days, pa.duration("s"))},
            refused=bad,
            sources=(
                "DuckDB",
                "pandas",
                "Arrow-backed",
                "pyarrow",
                "Polars",
                "Dask",
                "log",
            ),  # Parquet has none
        ),
    ]


def _periods() -> list[Table]:
    cut = {
        "days of stamps": (_stamps("us", None), {"every": "day"}),
        "weeks of stamps": (_stamps("ms", None), {"every": "week"}),
        "months of stamps": (_stamps("ns", None), {"every": "month"}),
        "days before 1970": (_stamps("us", None, "1969-12-29T18:30"), {"every": "day"}),
        "weeks of dates": (_stamps("s", None).cast(pa.date32()), {"every": "week"}),
        "hours of Kolkata, in UTC": (_stamps("us", "Asia/Kolkata"), {"every": "hour"}),
        "days of New York, in UTC": (_stamps("us", "America/New_York"), {"every": "day"}),
        "days of UTC": (_stamps("us", "UTC"), {"every": "day"}),
        "days of Kathmandu, in UTC": (_stamps("us", "Asia/Kathmandu"), {"every": "day"}),
        "weeks of Kathmandu, in UTC": (_stamps("us", "Asia/Kathmandu"), {"every": "week"}),
        "months of Kathmandu, in UTC": (_stamps("us", "Asia/Kathmandu"), {"every": "month"}),
        "days of New York": (_stamps("us", "UTC"), {"every": "day", "timezone": "America/New_York"}),
        "weeks of Berlin, as clocks change": (
            _stamps("ns", "Asia/Kathmandu"),
            {"every": "week", "timezone": "Europe/Berlin"},
        ),
        "months of Kathmandu": (_stamps("us", "UTC"), {"every": "month", "timezone": "Asia/Kathmandu"}),
        "days of Beirut, where a midnight is skipped": (
            _stamps("ms", "UTC"),
            {"every": "day", "timezone": "Asia/Beirut"},
        ),
    }
    none = _put("day", _stamps("us", "UTC"), 5)
    return [
        *(Table(name, base() | {"day": times}, options) for name, (times, options) in cut.items()),
        Table("days of whole numbers", base(), {"every": "day"}, ("bad-batch",)),
        Table(
            "weeks of text",
            base() | {"day": pa.array([f"2024-03-{1 + row // ROWS:02d}" for row in range(DAYS * ROWS)])},
            {"every": "week"},
            ("bad-batch",),
        ),
        Table(
            "a zone for stamps",
            base() | {"day": _stamps("us", None)},
            {"every": "day", "timezone": "Europe/Berlin"},
            ("bad-timezone",),
        ),
        Table(
            "a zone for dates",
            base() | {"day": _stamps("s", None).cast(pa.date32())},
            {"every": "day", "timezone": "Europe/Berlin"},
            ("bad-timezone",),
        ),
        Table("days of which one is missing", none, {"every": "day"}, ("missing-batch",)),
    ]


def _others() -> list[Table]:
    devices = pa.array(["phone", "desk"] * (DAYS * ROWS // 2))
    signed = pa.array(np.tile([0.0, -0.0, 1.0], DAYS * ROWS // 3))
    by = {"by": "device"}
    return [
        Table("groups", base() | {"device": devices}, by),
        Table("groups as a dictionary", base() | {"device": devices.dictionary_encode()}, by),
        Table("groups 0.0 and -0.0", base() | {"device": signed}, by),
        Table(
            "a group that is missing",
            base() | {"device": _put("arm", devices, 5)["arm"]},
            by,
            ("missing-context",),
        ),
        Table(
            "a group NaN", base() | {"device": _put("y", signed, 5, math.nan)["y"]}, by, ("missing-context",)
        ),
        Table(
            "an infinite group",
            base() | {"device": _put("y", signed, 5, math.inf)["y"]},
            by,
            ("infinite-context",),
        ),
        Table("a centre near the rewards", base(), {"centre": 3.0}),
        Table("a centre of 1e15", base(), {"centre": 1e15}, ("far-centre",)),
        Table(
            "a centre of 0 for rewards at 1e7",
            base() | {"y": pa.array(1e7 + np.array(base()["y"].to_pylist()))},
            {"centre": 0.0},
            ("far-centre",),
        ),
        Table("no rows", {name: column[:0] for name, column in base().items()}, refused=("empty-frame",)),
    ]


def _files() -> list[Table]:
    whole, half = pa.table(base()), DAYS * ROWS // 2
    first, last = whole[:half], whole[half:]
    numbers = pa.array(np.arange(half) % 7)
    texts = last.set_column(2, "y", pa.array([str(one) for one in last["y"].to_pylist()]))
    written = pa.BufferOutputStream()
    import pyarrow.parquet as pq

    pq.write_table(last, written)
    content = written.getvalue().to_pybytes()
    alone = {"sources": ("file", "glob")}
    return [
        Table("whole numbers, then fractions", {}, parts=(first.set_column(2, "y", numbers), last)),
        Table("columns in another order", {}, parts=(first, last.select(whole.column_names[::-1]))),
        Table("a column more in a later file", {}, parts=(first, last.append_column("more", [numbers]))),
        Table(
            "a later file without rewards",
            {},
            {},
            ("missing-column",),
            (first, last.drop_columns(["y"])),
            ("glob",),
        ),
        Table("text in a later file", {}, {}, ("mixed-types",), (first, texts), ("glob",)),
        Table(
            "a later file that is cut off",
            {},
            {},
            ("FileError",),
            (first, content[: len(content) // 2]),
            ("glob",),
        ),
        Table("a later file that is empty", {}, {}, ("FileError",), (first, b""), ("glob",)),
        Table(
            "a file that is cut off",
            {},
            {},
            ("FileError",),
            (content[: len(content) // 2],),
            alone["sources"],
        ),
    ]


# --- what must come of a table, by plain Python -------------------------------------------------------------


def expected(table: Table) -> dict[tuple[Any, ...], tuple[float, ...]]:
    """Rounds, sums of rewards and of their squares and the mean propensity, by batch, arm (and group)."""
    rows = table.arrow.to_pylist()
    every, zone = table.options.get("every"), table.options.get("timezone")
    by = table.options.get("by")
    columns = table.options.get("propensities") or {}
    found: dict[tuple[Any, ...], list[tuple[float, float]]] = {}
    batches: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        key = batch_of(row["day"], every, zone)
        batches.setdefault((key, *([_plain(row[by])] if by else [])), []).append(row)
    arms = sorted({_plain(row["arm"]) for row in rows})
    sums: dict[tuple[Any, ...], tuple[float, ...]] = {}
    del found
    for (batch, *group), members in batches.items():
        for arm in arms:
            own = [row for row in members if _plain(row["arm"]) == arm]
            rewards = [float(row["y"]) for row in own]
            name = columns.get(arm, f"propensity_{arm}")
            known = name in rows[0]
            share = math.fsum(float(row[name]) for row in members) / len(members) if known else math.nan
            sums[(batch, *group, arm)] = (
                float(len(own)),
                math.fsum(rewards),
                math.fsum(one * one for one in rewards),
                share,
            )
    return sums


def _plain(label: Any) -> Any:
    """A label without the sign of 0; decimals are the floats next to them."""
    if isinstance(label, Decimal):
        label = float(label)
    return 0.0 if isinstance(label, float) and label == 0.0 else label


def batch_of(value: Any, every: str | None, zone: str | None) -> Any:
    """The batch of an entry: a number, or when its period began, without a zone, in UTC where it has one."""
    if isinstance(value, str):
        value = datetime.datetime.fromisoformat(value) if "-" in value else int(value)
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        value = datetime.datetime.combine(value, datetime.time())
    if not isinstance(value, datetime.datetime):
        return float(value)
    time = value.astimezone(ZoneInfo(zone or "UTC")) if value.tzinfo is not None else value
    if hasattr(time, "nanosecond"):
        time = time.to_pydatetime(warn=False)
    start = time.replace(minute=0, second=0, microsecond=0) if every else time
    start = start.replace(hour=0) if every in ("day", "week", "month") else start
    start = start - datetime.timedelta(days=start.weekday()) if every == "week" else start
    start = start.replace(day=1) if every == "month" else start
    if start.tzinfo is None:
        return start
    # Of a clock's reading that is skipped the instant before is an hour late: the end of the gap.
    instant = start.replace(fold=0).astimezone(datetime.UTC)
    return instant.replace(tzinfo=None)


MAKERS: dict[str, Callable[..., Any]] = {}
