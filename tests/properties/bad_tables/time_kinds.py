"""Time stamps with ties and clock changes, and decisions that stand in a table twice."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd
from dialect_kinds import Kind, saved
from doors import Refused, Right, Use, column
from experiment import Rng, Rows, draw, objects, pick, place, text
from files import uses_of_file, uses_of_frame, without

BERLIN = ZoneInfo("Europe/Berlin")
BACK = datetime.datetime(2024, 10, 27, 0, 10, tzinfo=datetime.UTC)
ON = datetime.datetime(2024, 3, 31, 0, 10, tzinfo=datetime.UTC)


def at(rows: Rows, start: datetime.datetime, step: datetime.timedelta) -> list[datetime.datetime]:
    return [start + number * step for number in range(len(rows))]


def stamped(rows: Rows, stamps: list[Any]) -> Rows:
    return [{**each, "ts": stamp} for each, stamp in zip(rows, stamps, strict=True)]


def used(rng: Rng, folder: Path, rows: Rows, due: Any, options: dict[str, Any]) -> list[Use]:
    """Rows as a frame, or as text; `aggregate` has no rounds."""
    if rng.random() < 0.5:
        uses = uses_of_frame(pd.DataFrame(rows), due, options)
    else:
        texts = [
            {**each, "ts": each["ts"] if isinstance(each["ts"], float) else str(each["ts"])} for each in rows
        ]
        end = pick(rng, ("x.csv", "x.jsonl"))
        uses = uses_of_file(
            saved(folder, end, text(texts) if end == "x.csv" else objects(texts)), due, options
        )
    gone = ["aggregate"] if "round" in options else []
    gone += [] if set(options) <= {"round", "sort"} else ["command line"]
    return without(uses, *gone)


def where(number: int) -> str:
    """The row of a frame, or the line of a text."""
    return rf"(row|line)s? [\d, ]*\b({number}|{number + 1}|{number + 2})\b"


def tied(rng: Rng, folder: Path) -> list[Use]:
    """Several rows of one second: they stay in the order of the file."""
    rows = draw(rng)
    start, stamps = datetime.datetime(2024, 5, 1, 9), []
    for _ in rows:
        start += datetime.timedelta(seconds=int(rng.integers(0, 2)))
        stamps.append(start)
    values = [stamp.isoformat(" ") for stamp in stamps] if rng.random() < 0.5 else stamps
    return used(rng, folder, stamped(rows, values), Right(rows), {"round": "ts"})


def tied_numbers(rng: Rng, folder: Path) -> list[Use]:
    rows = draw(rng)
    values = sorted(rng.integers(0, len(rows), len(rows)).tolist())
    return (
        used(rng, folder, stamped(rows, [float(value) for value in values]), Right(rows), {"round": "ts"})
        if (rng.random() < 0.3)
        else uses_of_numbers(rows, values)
    )


def uses_of_numbers(rows: Rows, values: list[int]) -> list[Use]:
    return without(
        uses_of_frame(pd.DataFrame(stamped(rows, values)), Right(rows), {"round": "ts"}), "aggregate"
    )


def shuffled(rng: Rng, folder: Path) -> list[Use]:
    """Newest first, or in any order, with ties: `sort=True` gives the order of time, ties as they stand."""
    rows = draw(rng)
    stamps = at(rows, datetime.datetime(2024, 5, 1, 9), datetime.timedelta(minutes=7))
    for number in range(1, len(stamps), 5):
        if rows[number]["day"] == rows[number - 1]["day"]:
            stamps[number] = stamps[number - 1]
    whole = stamped(rows, [stamp.isoformat() for stamp in stamps])
    order = sorted(range(len(rows)), key=lambda number: rng.random())
    mixed = [whole[number] for number in order]
    due = Right(sorted(mixed, key=lambda each: each["ts"]))
    return used(rng, folder, mixed, due, {"round": "ts", "sort": True})


def backward(rng: Rng, folder: Path) -> list[Use]:
    rows = draw(rng)
    stamps = at(rows, datetime.datetime(2024, 5, 1, 9), datetime.timedelta(minutes=7))
    number = place(rng, rows)
    stamps[number] = stamps[number - 1] - datetime.timedelta(seconds=1)
    values = [stamp.isoformat() for stamp in stamps]
    return used(
        rng, folder, stamped(rows, values), Refused((column("ts"), where(number), "sort")), {"round": "ts"}
    )


def local(stamps: list[datetime.datetime]) -> list[str]:
    return [stamp.astimezone(BERLIN).replace(tzinfo=None).isoformat(" ") for stamp in stamps]


def clock_back(options: dict[str, Any], rng: Rng, folder: Path) -> list[Use]:
    """An hour that comes twice: named with the zone, and not put in order by `sort`."""
    rows = draw(rng)
    stamps = at(rows, BACK, datetime.timedelta(seconds=7200 // len(rows) + int(rng.integers(0, 60))))
    due = Refused((column("ts"), "2024-10-27 02:", "Europe/Berlin", "timezone"))
    return used(rng, folder, stamped(rows, local(stamps)), due, {"round": "ts", **options})


def clock_back_zone(rng: Rng, folder: Path) -> list[Use]:
    rows = draw(rng)
    stamps = at(rows, BACK, datetime.timedelta(seconds=7200 // len(rows) + int(rng.integers(0, 60))))
    values = local(stamps)
    return used(rng, folder, stamped(rows, values), Right(rows), {"round": "ts", "timezone": "Europe/Berlin"})


def clock_offsets(rng: Rng, folder: Path) -> list[Use]:
    """The same with the offset of every stamp: nothing is unclear."""
    rows = draw(rng)
    stamps = at(rows, BACK, datetime.timedelta(minutes=9))
    values = [stamp.astimezone(BERLIN).isoformat() for stamp in stamps]
    return used(rng, folder, stamped(rows, values), Right(rows), {"round": "ts"})


def clock_on(rng: Rng, folder: Path) -> list[Use]:
    """A time that the clock of the zone never read."""
    rows = draw(rng)
    values = local(at(rows, ON, datetime.timedelta(seconds=300)))
    number = next(n for n, value in enumerate(values) if value >= "2024-03-31 03")
    values[number - 1] = "2024-03-31 02:30:00"
    due = Refused((column("ts"), "Europe/Berlin", where(number - 1)))
    return used(rng, folder, stamped(rows, values), due, {"round": "ts", "timezone": "Europe/Berlin"})


def hours(rng: Rng, folder: Path) -> list[Use]:
    """Batches of hours made of stamps, many of them tied."""
    rows = draw(rng)
    start, held = datetime.datetime(2024, 5, 1, 9, int(rng.integers(0, 60))), []
    for number, each in enumerate(rows):
        stamp = start + datetime.timedelta(minutes=20 * (number // 3))
        held.append({**each, "ts": stamp, "day": stamp.replace(minute=0)})
    options = {"batch": "ts", "every": "hour", "propensity": None}
    clean = [{name: value for name, value in each.items() if name != "day"} for each in held]
    return used(rng, folder, clean, Right(held), options)


def some_zones(rng: Rng, folder: Path) -> list[Use]:
    rows = draw(rng)
    stamps = at(rows, BACK, datetime.timedelta(days=1))
    values = [stamp.isoformat() for stamp in stamps]
    number = place(rng, rows)
    values[number] = values[number].removesuffix("+00:00")
    return used(rng, folder, stamped(rows, values), Refused((column("ts"), where(number))), {"round": "ts"})


def unclear_dates(rng: Rng, folder: Path) -> list[Use]:
    rows = draw(rng)
    values = [f"{1 + number % 12:02d}/{1 + number // 12:02d}/2024" for number in range(len(rows))]
    due = Refused((column("ts"), r"\d\d/\d\d/2024", "date.format"))
    return used(rng, folder, stamped(rows, values), due, {"round": "ts"})


def bad_stamp(rng: Rng, folder: Path) -> list[Use]:
    rows = draw(rng)
    values = [
        stamp.isoformat() for stamp in at(rows, datetime.datetime(2024, 5, 1), datetime.timedelta(hours=1))
    ]
    number = place(rng, rows)
    values[number] = pick(rng, ("yesterday", "2024-02-30", "2024-05-01T25:00", "1714521600", "0000-00-00"))
    return used(rng, folder, stamped(rows, values), Refused((column("ts"), where(number))), {"round": "ts"})


TIMES: dict[str, Kind] = {
    "ties": tied,
    "ties of numbers": tied_numbers,
    "any order, to be sorted": shuffled,
    "a stamp that goes back": backward,
    "clocks that go back": partial(clock_back, {}),
    "clocks that go back, to be sorted": partial(clock_back, {"sort": True}),
    "clocks that go back, zone said": clock_back_zone,
    "clocks that go back, with offsets": clock_offsets,
    "a time that no clock read": clock_on,
    "hours made of tied stamps": hours,
    "one stamp without the zone of the others": some_zones,
    "days that may be months": unclear_dates,
    "a stamp that is none": bad_stamp,
}


def keyed(rows: Rows) -> Rows:
    return [{"key": f"d{number:03d}", **each} for number, each in enumerate(rows)]


def decided(rng: Rng, folder: Path, rows: Rows, due: Any) -> list[Use]:
    """Rows with ids; `aggregate` and the command line have none."""
    if rng.random() < 0.4:
        return without(uses_of_frame(pd.DataFrame(rows), due, {"id": "key"}), "aggregate")
    end = pick(rng, ("x.csv", "x.jsonl"))
    path = saved(folder, end, text(rows) if end == "x.csv" else objects(rows))
    return without(uses_of_file(path, due, {"id": "key"}), "aggregate", "command line")


def repeated(
    change: Callable[[Rng, dict[str, Any]], dict[str, Any]], named: tuple[str, ...], rng: Rng, folder: Path
) -> list[Use]:
    """One decision that stands in the table again, in the row after it."""
    rows = keyed(draw(rng))
    number = place(rng, rows)
    rows.insert(number + 1, change(rng, dict(rows[number])))
    return decided(rng, folder, rows, Refused((column("key"), *named, where(number + 1))))


def multiplied(rng: Rng, folder: Path) -> list[Use]:
    """A join with two outcomes for some decisions."""
    rows = []
    for each in keyed(draw(rng)):
        rows.append(each)
        if rng.random() < 0.3 or len(rows) == 1:
            rows.append({**each, "y": each["y"] + 1})
    return decided(rng, folder, rows, Refused((column("key"), column("y"), "join", where(1))))


def right_ids(rng: Rng, folder: Path) -> list[Use]:
    rows = keyed(draw(rng))
    return decided(rng, folder, rows, Right(rows))


DECISIONS: dict[str, Kind] = {
    "ids that stand once": right_ids,
    "a copy of a row": partial(repeated, lambda rng, row: row, ("more than once",)),
    "another outcome": partial(
        repeated, lambda rng, row: {**row, "y": row["y"] + 0.25}, (column("y"), "join")
    ),
    "another person": partial(repeated, lambda rng, row: {**row, "who": "somebody else"}, (column("who"),)),
    "an id that is missing": partial(repeated, lambda rng, row: {**row, "key": ""}, ()),
    "a join that multiplies rows": multiplied,
}
