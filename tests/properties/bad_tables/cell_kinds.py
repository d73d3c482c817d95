"""JSON lines, single cells, labels that look like missing values, and folders of parts."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from dialect_kinds import Kind, saved
from doors import OF_SUMS, Refused, Right, Use, column, line, row, sums_of_table
from experiment import Rng, Rows, copied, draw, objects, pick, place, sums_of, text, totals_of
from files import of_column, uses_of_bytes, uses_of_file, uses_of_frame

NO_NUMBERS = (
    *("error", "#REF!", "#DIV/0!", "1_000", "0x1F", "--", "$3", "5%", "1.2.3", "1 2", "-", "?", "n.a."),
    *(
        "½",
        "\uff11",
        "٣",
        "1e",
        "1/2",
        "'0.5",
        "TRUE",
        "yes",
        "3f",
        "+-1",
        "=1+1",
        "1j",
        "(2)",
        "1 000",
        "1,5,2",
    ),
)
MISSING = ("NA", "nan", "NaN", "null", "None", "N/A", "#N/A", "<NA>")


def lines_case(
    change: Callable[[Rng, Rows, int], Any], named: tuple[str, ...] | None, rng: Rng, folder: Path
) -> list[Use]:
    """JSON lines, one object of which is another; refused with its line, or read (None) as it was."""
    rows = draw(rng)
    number = place(rng, rows)
    damaged: list[Any] = copied(rows)
    texts = [json.dumps(each) for each in damaged]
    changed = change(rng, damaged, number)
    texts[number] = changed if isinstance(changed, str) else json.dumps(changed)
    data = ("\n".join(texts) + "\n").encode()
    due = Right(rows) if named is None else Refused((*named, line(number + 1)))
    if rng.random() < 0.2:
        return uses_of_bytes(data, due)
    return uses_of_file(saved(folder, pick(rng, ("x.jsonl", "x.ndjson")), data), due)


def put(name: str, value: Any) -> Callable[[Rng, Rows, int], Any]:
    """A field of another value."""
    return lambda rng, rows, number: {**rows[number], name: value}


def lacking(name: str) -> Callable[[Rng, Rows, int], Any]:
    return lambda rng, rows, number: {key: value for key, value in rows[number].items() if key != name}


def raw(name: str, literal: str) -> Callable[[Rng, Rows, int], Any]:
    """A field as it stands in the text, which JSON need not have."""

    def change(rng: Rng, rows: Rows, number: int) -> str:
        return json.dumps({**rows[number], name: "@@"}).replace('"@@"', literal)

    return change


def keys_of_others(rng: Rng, folder: Path) -> list[Use]:
    """Keys that come and go, in another order: those that are read are always there."""
    rows = draw(rng)
    held = []
    for each in rows:
        more = {
            **each,
            **({"note": "x"} if rng.random() < 0.5 else {}),
            **({"k": [1]} if rng.random() < 0.3 else {}),
        }
        names = rng.permutation(list(more)).tolist()
        held.append({name: more[name] for name in names})
    return uses_of_file(saved(folder, "x.jsonl", objects(held)), Right(rows))


def array(rng: Rng, folder: Path) -> list[Use]:
    data = json.dumps(draw(rng), indent=pick(rng, (None, 1)))
    return uses_of_file(saved(folder, "x.jsonl", data), Refused((r"x\.jsonl", line(1), "JSON")))


def written_lines(rng: Rng, folder: Path) -> list[Use]:
    rows = draw(rng)
    data = (
        objects(rows)
        .replace("\n", pick(rng, ("\n", "\r\n", "\n\n")))
        .encode(pick(rng, ("utf-8", "utf-8-sig", "utf-16")))
    )
    name = "x.jsonl"
    if rng.random() < 0.3:
        name, data = "x.jsonl.gz", gzip.compress(data)
    return uses_of_file(saved(folder, name, data), Right(rows))


JSON_LINES: dict[str, Kind] = {
    "as specified": written_lines,
    "keys that come and go": keys_of_others,
    "an array in the place of lines": array,
    "a line cut short": partial(lines_case, lambda rng, rows, at: json.dumps(rows[at])[:-9], ("JSON",)),
    "two objects in a line": partial(lines_case, lambda rng, rows, at: json.dumps(rows[at]) * 2, ("JSON",)),
    "a line that is a list": partial(lines_case, lambda rng, rows, at: list(rows[at].values()), ("JSON",)),
    "a line that is a number": partial(lines_case, lambda rng, rows, at: "7", ("JSON",)),
    "single quotes": partial(lines_case, lambda rng, rows, at: str(rows[at]), ("JSON",)),
    "a comma too many": partial(
        lines_case, lambda rng, rows, at: json.dumps(rows[at])[:-1] + ",}", ("JSON",)
    ),
    "a key twice": partial(
        lines_case, lambda rng, rows, at: json.dumps(rows[at])[:-1] + ', "y": 1}', ("JSON", "twice")
    ),
    **{
        f"no {name}": partial(lines_case, lacking(name), (column(name),)) for name in ("arm", "y", "p", "day")
    },
    **{
        f"null as {name}": partial(lines_case, put(name, None), (column(name),))
        for name in ("arm", "y", "p", "day")
    },
    **{
        f"{literal} as {name}": partial(lines_case, raw(name, literal), (column(name),))
        for name in ("y", "p")
        for literal in ("NaN", "Infinity", "-Infinity", "1e999")
    },
    **{
        f"{told} as {name}": partial(lines_case, put(name, value), (column(name),))
        for name in ("y", "p", "arm", "day")
        for told, value in (("an object", {"v": 1}), ("a list", [1, 2]))
    },
    **{f"text as {name}": partial(lines_case, put(name, "0.5"), (column(name),)) for name in ("y", "p")},
    "a truth value as p": partial(lines_case, put("p", True), (column("p"),)),
    "a whole number beyond 2^53 as y": partial(lines_case, put("y", 2**53 + 1), (column("y"),)),
    "an object where nobody reads": partial(lines_case, put("extra", {"v": [1]}), None),
    "NaN where nobody reads": partial(lines_case, raw("extra", "NaN"), None),
}


def bad_cell(
    told: str, names: tuple[str, ...], make: Callable[[Rng], str], rng: Rng, folder: Path
) -> list[Use]:
    """One cell of a column of numbers is none: the cell, its line and its column are named."""
    rows = draw(rng)
    number, name, cell = place(rng, rows), pick(rng, names), make(rng)
    damaged = copied(rows)
    damaged[number][name] = cell
    due = Refused((column(name), line(number + 2)))
    path = saved(folder, "x.csv", text(damaged, pick(rng, ",;\t|")))
    return uses_of_file(path, due, None, of_column(name, due, Right(rows)))


def among_whole(cell: str, rng: Rng, folder: Path) -> list[Use]:
    """The same among whole numbers, some of whose spellings other programs take for numbers."""
    rows = draw(rng)
    for each in rows:
        each["y"] = int(rng.integers(0, 90))
    number, damaged = place(rng, rows), copied(rows)
    damaged[number]["y"] = cell
    due = Refused((column("y"), line(number + 2)))
    return uses_of_file(saved(folder, "x.csv", text(damaged, pick(rng, ",;\t|"))), due)


def bad_cells(rng: Rng, folder: Path) -> list[Use]:
    """Several cells of two columns: all in one error."""
    rows = draw(rng)
    one, two = sorted(rng.choice(len(rows), 2, replace=False).tolist())
    damaged = copied(rows)
    damaged[one]["y"], damaged[two]["p"] = pick(rng, NO_NUMBERS), pick(rng, NO_NUMBERS)
    due = Refused((column("y"), column("p"), line(one + 2), line(two + 2)))
    return uses_of_file(saved(folder, "x.csv", text(damaged)), due)


def bad_object(rng: Rng, folder: Path) -> list[Use]:
    """The same in a frame of objects."""
    rows = draw(rng)
    number, name = place(rng, rows), pick(rng, ("y", "p"))
    damaged = copied(rows)
    damaged[number][name] = pick(rng, (*NO_NUMBERS, b"1", [1.0], (1,), {"v": 1}, object()))
    others = {"aggregate": Refused((column(name),))}
    return uses_of_frame(pd.DataFrame(damaged), Refused((column(name), row(number))), None, others)


def bad_sum(names: tuple[str, ...], rng: Rng, folder: Path) -> list[Use]:
    rows = sums_of(draw(rng))
    number, name = place(rng, rows), pick(rng, names)
    rows[number][name] = pick(rng, NO_NUMBERS)
    path = saved(folder, "x.csv", text(rows, pick(rng, ",;")))
    return [Use("Sums", sums_of_table(path, OF_SUMS), Refused((column(name), line(number + 2))))]


def good_sums(rng: Rng, folder: Path) -> list[Use]:
    rows = draw(rng)
    sep, mark = pick(rng, ((",", "."), (";", ","), ("\t", ".")))
    path = saved(folder, "x.csv", text(sums_of(rows), sep, mark))
    return [Use("Sums", sums_of_table(path, OF_SUMS), Right(rows))]


def missing_sum(rng: Rng, folder: Path) -> list[Use]:
    rows = sums_of(draw(rng))
    number, name = place(rng, rows), pick(rng, ("n", "s", "q", "p", "day", "arm"))
    rows[number][name] = None
    path = saved(folder, "x.csv", text(rows))
    return [Use("Sums", sums_of_table(path, OF_SUMS), Refused((column(name), line(number + 2))))]


def no_day(rng: Rng, folder: Path) -> list[Use]:
    """A day without an arm, which had propensity 0 there: the others' are 1 together."""
    rows = draw(rng, ("a", "b"))
    kept = [each for each in rows if (each["day"], each["arm"]) != (2, "b")]
    for each in kept:
        each["p"] = 1.0 if each["day"] == 2 else each["p"]
    source: Any = pd.DataFrame(sums_of(kept))
    if rng.random() < 0.5:
        source = saved(folder, "x.csv", text(sums_of(kept)))
    return [Use("Sums", sums_of_table(source, OF_SUMS), Right(kept))]


def totals(rng: Rng, folder: Path) -> list[Use]:
    rows = draw(rng, ("a", "b"))
    roles = {name: value for name, value in OF_SUMS.items() if name not in ("batch", "propensity")}
    table = [{name: value for name, value in each.items() if name != "p"} for each in totals_of(rows, 0.5)]
    source: Any = pd.DataFrame(table) if rng.random() < 0.5 else saved(folder, "x.csv", text(table))
    return [Use("Sums", sums_of_table(source, roles), Right(rows))]


def totals_constant(rng: Rng, folder: Path) -> list[Use]:
    rows = draw(rng, ("a", "b"))
    roles = {**{name: value for name, value in OF_SUMS.items() if name != "batch"}, "propensity": 0.5}
    source = saved(folder, "x.csv", text(totals_of(rows, 0.5)))
    return [Use("Sums", sums_of_table(source, roles), Right(rows))]


def totals_twice(rng: Rng, folder: Path) -> list[Use]:
    """Rows by day without the column of days: an arm has several rows."""
    rows = sums_of(draw(rng))
    roles = {name: value for name, value in OF_SUMS.items() if name != "batch"}
    return [
        Use(
            "Sums",
            sums_of_table(saved(folder, "x.csv", text(rows)), roles),
            Refused(("several rows", "batch")),
        )
    ]


CELLS: dict[str, Kind] = {
    **{
        f"{cell!r} among numbers": partial(bad_cell, cell, ("y", "p", "x"), lambda rng, cell=cell: cell)
        for cell in NO_NUMBERS
    },
    **{
        f"{cell!r} among numbers": partial(bad_cell, cell, ("y", "p", "x"), lambda rng, cell=cell: cell)
        for cell in ("", " ", *MISSING)
    },
    **{
        f"{cell!r} among numbers": partial(bad_cell, cell, ("y", "p", "x"), lambda rng, cell=cell: cell)
        for cell in ("inf", "-Infinity", "1e999")
    },
    "digits that floats do not have": partial(
        bad_cell, "", ("y", "x"), lambda rng: str(2**53 + 1 + 2 * int(rng.integers(99)))
    ),
    "a propensity beyond 1": partial(bad_cell, "", ("p",), lambda rng: pick(rng, ("0", "-0.5", "1.5", "50"))),
    **{
        f"{cell!r} among whole numbers": partial(among_whole, cell)
        for cell in ("0x1F", "0b1", "1_0", "TRUE", "", "NA", "1 2", "٣", "x", "9007199254740993", "1,5,2")
    },
    "cells of two columns": bad_cells,
    "objects of a frame": bad_object,
}
SUMS: dict[str, Kind] = {
    "as they should be": good_sums,
    "a cell that is not a number": partial(bad_sum, ("n", "s", "q", "p")),
    "an empty cell": missing_sum,
    "a day without an arm": no_day,
    "totals without batches": totals,
    "totals with one propensity": totals_constant,
    "several rows of an arm without batches": totals_twice,
}


def odd_label(name: str, rng: Rng, folder: Path) -> list[Use]:
    """Text such as NA is a label of arms, regions and people."""
    label = pick(rng, MISSING)
    rows = draw(rng, ("email", label) if name == "arm" else None)
    if name != "arm":
        for each in rows:
            each[name] = label if rng.random() < 0.3 else each[name]
        rows[1][name] = label
    if rng.random() < 0.25:
        return uses_of_frame(pd.DataFrame(rows), Right(rows))
    end = pick(rng, ("x.csv", "x.jsonl"))
    return uses_of_file(
        saved(folder, end, text(rows, pick(rng, ",;")) if end == "x.csv" else objects(rows)), Right(rows)
    )


def beside_empty(name: str, rng: Rng, folder: Path) -> list[Use]:
    """Empty text is a missing value beside such labels, and is named alone."""
    label = pick(rng, MISSING)
    rows = draw(rng, ("email", label) if name == "arm" else None)
    damaged, number = copied(rows), place(rng, rows)
    if name != "arm":
        for each in damaged:
            each[name] = label if rng.random() < 0.3 else each[name]
    damaged[number][name] = pick(rng, ("", " ")) if name != "region" else ""
    due = Refused((column(name), rf"\[line {number + 2}\]"))
    good = Right(rows)
    return uses_of_file(saved(folder, "x.csv", text(damaged)), due, None, of_column(name, due, good))


def named_missing(rng: Rng, folder: Path) -> list[Use]:
    """Where the user says that it is one, it is one in labels too."""
    label = pick(rng, MISSING)
    rows = draw(rng, ("email", label))
    first = next(number for number, each in enumerate(rows) if each["arm"] == label)
    due = Refused((column("arm"), line(first + 2)))
    uses = uses_of_file(saved(folder, "x.csv", text(rows)), due, {"missing_values": [label]})
    return [use for use in uses if use.door != "command line"]


def beside_numbers(rng: Rng, folder: Path) -> list[Use]:
    """Arms that are numbers have no text of a missing value among them."""
    rows = draw(rng, (1, 2))
    number = place(rng, rows)
    rows[number]["arm"] = pick(rng, MISSING)
    return uses_of_file(saved(folder, "x.csv", text(rows)), Refused((column("arm"), line(number + 2))))


def dropped(rng: Rng, folder: Path) -> list[Use]:
    """A missing reward that the user says is missing at random."""
    rows = draw(rng)
    damaged, number = copied(rows), place(rng, rows)
    damaged[number]["y"] = pick(rng, ("", *MISSING))
    rows[number]["y"] = None
    uses = uses_of_file(saved(folder, "x.csv", text(damaged)), Right(rows), {"missing": "drop"})
    return [use for use in uses if use.door == "read_log"]


LABELS: dict[str, Kind] = {
    **{f"text of a missing value as {name}": partial(odd_label, name) for name in ("arm", "region", "who")},
    **{f"empty text beside it as {name}": partial(beside_empty, name) for name in ("arm", "region", "who")},
    "a missing value that is said": named_missing,
    "text of a missing value beside numbers": beside_numbers,
    "missing rewards, dropped": dropped,
}


def parts_case(
    change: Callable[[Rng, list[str]], tuple[list[bytes], tuple[str, ...]]], rng: Rng, folder: Path
) -> list[Use]:
    """A folder of three parts as a job writes it, of which one is another."""
    rows = draw(rng)
    cuts = sorted(rng.choice(range(2, len(rows) - 1), 2, replace=False).tolist())
    held = [rows[: cuts[0]], rows[cuts[0] : cuts[1]], rows[cuts[1] :]]
    data, named = change(rng, [text(each) for each in held])
    inside = folder / "job"
    inside.mkdir()
    (inside / "_SUCCESS").touch()
    (inside / ".part-00000.csv.crc").write_bytes(b"crc")
    end = ".csv.gz" if data[0].startswith(b"\x1f\x8b") else ".csv"
    for number, each in enumerate(data):
        (inside / f"part-{number:05d}{end}").write_bytes(each)
    return uses_of_file(inside, Refused(named) if named else Right(rows))


def as_bytes(texts: list[str]) -> list[bytes]:
    return [each.encode() for each in texts]


def good_parts(rng: Rng, texts: list[str]) -> tuple[list[bytes], tuple[str, ...]]:
    data = [*as_bytes(texts), *([b""] if rng.random() < 0.5 else [])]
    return [gzip.compress(each) for each in data] if rng.random() < 0.4 else data, ()


def bad_part(rng: Rng, texts: list[str]) -> tuple[list[bytes], tuple[str, ...]]:
    which = int(rng.integers(3))
    lines = texts[which].rstrip("\n").split("\n")
    number = int(rng.integers(1, len(lines)))
    fields = lines[number].split(",")
    at = int(rng.integers(1, 3))
    fields[at] = "error"
    lines[number] = ",".join(fields)
    texts[which] = "\n".join(lines) + "\n"
    return as_bytes(texts), (column(("y", "p")[at - 1]), "error", line(number + 1, f"part-{which:05d}.csv"))


def ragged_part(rng: Rng, texts: list[str]) -> tuple[list[bytes], tuple[str, ...]]:
    which = int(rng.integers(3))
    lines = texts[which].split("\n")
    lines[1] += ",1"
    texts[which] = "\n".join(lines)
    return as_bytes(texts), (f"part-{which:05d}", r"\b2 \(8\)", "fields")


def cut_part(rng: Rng, texts: list[str]) -> tuple[list[bytes], tuple[str, ...]]:
    which = int(rng.integers(3))
    data = [gzip.compress(each) for each in as_bytes(texts)]
    data[which] = data[which][: len(data[which]) // 2]
    return data, (f"part-{which:05d}",)


def headless_part(rng: Rng, texts: list[str]) -> tuple[list[bytes], tuple[str, ...]]:
    which = int(rng.integers(1, 3))
    texts[which] = texts[which].partition("\n")[2]
    return as_bytes(texts), (f"part-{which:05d}", "header|is missing in")


def lacking_part(rng: Rng, texts: list[str]) -> tuple[list[bytes], tuple[str, ...]]:
    which = int(rng.integers(1, 3))
    lines = texts[which].rstrip("\n").split("\n")
    texts[which] = "\n".join(",".join(each.split(",")[:1] + each.split(",")[2:]) for each in lines) + "\n"
    return as_bytes(texts), (f"part-{which:05d}",)


def encoded_part(rng: Rng, texts: list[str]) -> tuple[list[bytes], tuple[str, ...]]:
    which = int(rng.integers(3))
    data = as_bytes(texts)
    data[which] = (
        data[which]
        .replace(b",EU,", b",\xfc,", 1)
        .replace(b",US,", b",\xfc,", 1)
        .replace(b",Asia,", b",\xfc,", 1)
    )
    return data, (f"part-{which:05d}", "UTF-8")


def divided_part(rng: Rng, texts: list[str]) -> tuple[list[bytes], tuple[str, ...]]:
    which = int(rng.integers(1, 3))
    texts[which] = texts[which].replace(",", ";")
    return as_bytes(texts), (f"part-{which:05d}",)


FOLDERS: dict[str, Kind] = {
    "parts as they should be": partial(parts_case, good_parts),
    "a bad cell in one part": partial(parts_case, bad_part),
    "a row of other length in one part": partial(parts_case, ragged_part),
    "one part cut short": partial(parts_case, cut_part),
    "one part without a header": partial(parts_case, headless_part),
    "one part without a column": partial(parts_case, lacking_part),
    "one part in another encoding": partial(parts_case, encoded_part),
    "one part with another separator": partial(parts_case, divided_part),
}
