"""Files in other dialects, and files that are damaged as text: what is before any column is read."""

from __future__ import annotations

import bz2
import csv
import gzip
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from doors import Refused, Right, Use, column, line
from experiment import Rng, Rows, copied, draw, objects, pick, place, text
from files import uses_of_bytes, uses_of_file, without

Kind = Callable[[Rng, Path], list[Use]]
SEPARATORS = {"semicolons": ";", "tabs": "\t", "bars": "|", "commas": ","}


def saved(folder: Path, name: str, data: bytes | str) -> Path:
    """A file with these bytes."""
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def divided(sep: str, decimal: str, rng: Rng, folder: Path) -> list[Use]:
    rows = draw(rng)
    newline = pick(rng, ("\n", "\r\n"))
    quoting = pick(rng, (csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC))
    path = saved(folder, "x.csv", text(rows, sep, decimal, newline, quoting=quoting))
    return uses_of_file(path, Right(rows))


def encoded(encoding: str, rng: Rng, folder: Path) -> list[Use]:
    rows = draw(rng, ("für", "øre", "zażółć")[: int(rng.integers(2, 4))])
    return uses_of_file(saved(folder, "x.csv", text(rows, pick(rng, ",;")).encode(encoding)), Right(rows))


def said(encoding: str, rng: Rng, folder: Path) -> list[Use]:
    """An encoding that only the user can know, and says."""
    rows = draw(rng, ("für", "öl"))
    path = saved(folder, "x.csv", text(rows).encode(encoding))
    return without(uses_of_file(path, Right(rows), {"encoding": encoding}), "command line")


def unsaid(rng: Rng, folder: Path) -> list[Use]:
    rows = draw(rng, ("für", "öl"))
    where = next(number for number, row in enumerate(rows) if row["arm"] == rows[0]["arm"])
    path = saved(folder, "x.csv", text(rows).encode("cp1252"))
    return uses_of_file(path, Refused((r"x\.csv", line(where + 2), "UTF-8", "encoding")))


def unmarked(rng: Rng, folder: Path) -> list[Use]:
    path = saved(folder, "x.csv", text(draw(rng)).encode(pick(rng, ("utf-16-le", "utf-16-be"))))
    return uses_of_file(path, Refused((r"x\.csv", "(?i)utf-?16", "encoding")))


def one_bad_byte(rng: Rng, folder: Path) -> list[Use]:
    rows = draw(rng)
    row = place(rng, rows)
    lines = text(rows).encode().split(b"\n")
    lines[row + 1] = lines[row + 1].replace(b",", b"\xff,", 1)
    return uses_of_file(
        saved(folder, "x.csv", b"\n".join(lines)), Refused((r"x\.csv", line(row + 2), "UTF-8"))
    )


def a_nul(rng: Rng, folder: Path) -> list[Use]:
    rows = draw(rng)
    row = place(rng, rows)
    lines = text(rows).encode().split(b"\n")
    lines[row + 1] = lines[row + 1].replace(b",", b"\0,", 1)
    return uses_of_file(saved(folder, "x.csv", b"\n".join(lines)), Refused((r"x\.csv", line(row + 2), "NUL")))


def compressed(rng: Rng, folder: Path) -> list[Use]:
    rows = draw(rng)
    pack, end = pick(rng, ((gzip.compress, "gz"), (bz2.compress, "bz2")))
    name, sep = pick(rng, (("csv", ";"), ("tsv", "\t"), ("csv", ",")))
    return uses_of_file(saved(folder, f"x.{name}.{end}", pack(text(rows, sep).encode())), Right(rows))


def two_members(rng: Rng, folder: Path) -> list[Use]:
    """`cat a.gz b.gz`, which is one stream by the standard."""
    rows = draw(rng)
    data, cut = text(rows).encode(), 40
    path = saved(folder, "x.csv.gz", gzip.compress(data[:cut]) + gzip.compress(data[cut:]))
    return uses_of_file(path, Right(rows))


def cut_short(pack: Callable[[bytes], bytes], end: str, rng: Rng, folder: Path) -> list[Use]:
    data = pack(text(draw(rng)).encode())
    kept = int(rng.integers(len(data) // 4, len(data)))
    return uses_of_file(saved(folder, f"x.csv.{end}", data[:kept]), Refused((rf"x\.csv\.{end}",)))


def flipped(rng: Rng, folder: Path) -> list[Use]:
    data = bytearray(gzip.compress(text(draw(rng)).encode()))
    data[-int(rng.integers(1, 9))] ^= 1 << int(rng.integers(8))  # the sum of the bytes, or their number
    return uses_of_file(saved(folder, "x.csv.gz", bytes(data)), Refused((r"x\.csv\.gz",)))


def wrong_name(
    name: str, make: Callable[[Rows], bytes], named: tuple[str, ...], rng: Rng, folder: Path
) -> list[Use]:
    rows = draw(rng)
    return uses_of_file(saved(folder, name, make(rows)), Refused((name.replace(".", r"\."), *named)))


def other_name(name: str, make: Callable[[Rows], bytes], rng: Rng, folder: Path) -> list[Use]:
    """A name that is not of the dialect, which the bytes tell without doubt."""
    rows = draw(rng)
    return uses_of_file(saved(folder, name, make(rows)), Right(rows))


def parquet(rows: Rows) -> bytes:
    return bytes(pd.DataFrame(rows).to_parquet())


def mixed_separators(rng: Rng, folder: Path) -> list[Use]:
    rows = draw(rng)
    row, sep = place(rng, rows), pick(rng, ";\t|")
    lines = text(rows).split("\n")
    lines[row + 1] = lines[row + 1].replace(",", sep)
    path = saved(folder, "x.csv", "\n".join(lines))
    return uses_of_file(path, Refused((r"x\.csv", rf"\b{row + 2} \(1\)", "fields")))


def one_separator(rng: Rng, folder: Path) -> list[Use]:
    rows = draw(rng)
    row, sep = place(rng, rows), pick(rng, ";\t|")
    lines = text(rows).split("\n")
    lines[row + 1] = lines[row + 1].replace(",", sep, 1)
    path = saved(folder, "x.csv", "\n".join(lines))
    return uses_of_file(path, Refused((r"x\.csv", rf"\b{row + 2} \(6\)", "fields")))


def a_field_more(change: Callable[[str], str], fields: int, rng: Rng, folder: Path) -> list[Use]:
    rows = draw(rng)
    row = place(rng, rows)
    lines = text(rows).split("\n")
    lines[row + 1] = change(lines[row + 1])
    path = saved(folder, "x.csv", "\n".join(lines))
    return uses_of_file(path, Refused((r"x\.csv", rf"\b{row + 2} \({fields}\)", "fields")))


def no_header(rng: Rng, folder: Path) -> list[Use]:
    return uses_of_file(saved(folder, "x.csv", text(draw(rng), header=False)), Refused((column("arm"),)))


def numbered_header(rng: Rng, folder: Path) -> list[Use]:
    """A header of numbers, as pandas writes of an array: it is a header as the user says so."""
    rows = draw(rng)
    numbered = [dict(zip(map(str, range(7)), row.values(), strict=True)) for row in rows]
    roles = {
        "action": "0",
        "reward": "1",
        "propensity": "2",
        "batch": "3",
        "unit": "4",
        "context": ["5", "6"],
    }
    due = Right(rows, {"5": [row["region"] for row in rows], "6": [row["x"] for row in rows]})
    return uses_of_file(saved(folder, "x.csv", text(numbered)), due, roles)


def header_again(rng: Rng, folder: Path) -> list[Use]:
    """Two exports after each other: the second header is a row."""
    rows = draw(rng)
    row = place(rng, rows)
    lines = text(rows).split("\n")
    lines.insert(row + 1, lines[0])
    return uses_of_file(saved(folder, "x.csv", "\n".join(lines)), Refused(("'[ypx]'", line(row + 2))))


def header_twice(rng: Rng, folder: Path) -> list[Use]:
    rows, name = draw(rng), pick(rng, ("y", "arm", "p"))
    lines = text([{**row, "more": row[name]} for row in rows]).split("\n")
    lines[0] = lines[0].replace("more", name)
    return uses_of_file(saved(folder, "x.csv", "\n".join(lines)), Refused((column(name),)))


def header_blank(rng: Rng, folder: Path) -> list[Use]:
    lines = text(draw(rng)).split("\n")
    name = pick(rng, ("arm", "y", "p", "day"))
    lines[0] = ",".join(" " if each == name else each for each in lines[0].split(","))
    return uses_of_file(saved(folder, "x.csv", "\n".join(lines)), Refused((column(name),)))


def quoted(rng: Rng, folder: Path) -> list[Use]:
    """Separators, quotes and line breaks within quoted fields."""
    rows, sep = draw(rng), pick(rng, ",;\t|")
    for row in rows:
        if rng.random() < 0.5:
            row["region"] = f"EU{sep} the {pick(rng, (sep, 'x', chr(34), chr(34) * 2))} west"
    rows[2]["region"] = f"a{sep}b"
    return uses_of_file(saved(folder, "x.csv", text(rows, sep)), Right(rows))


def other_separator_within(rng: Rng, folder: Path) -> list[Use]:
    """Every region has a character that could be a separator; the names of the columns tell."""
    rows = draw(rng)
    sep, other = pick(rng, ((",", ";"), (";", ","), ("\t", ","), ("|", ";")))
    for row in rows:
        row["region"] = f"a{other}b"
    return uses_of_file(saved(folder, "x.csv", text(rows, sep)), Right(rows))


def broken_lines(rng: Rng, folder: Path) -> list[Use]:
    rows = draw(rng)
    rows[2]["region"] = "two\nlines"
    return uses_of_file(saved(folder, "x.csv", text(rows)), Right(rows))


def bad_cell_after_break(rng: Rng, folder: Path) -> list[Use]:
    """A line break in a field moves the lines of all rows after it."""
    rows = draw(rng)
    rows[0]["region"] = "two\nlines"
    row = place(rng, rows)
    damaged = copied(rows)
    damaged[row]["y"] = "error"
    return uses_of_file(saved(folder, "x.csv", text(damaged)), Refused((column("y"), "error", line(row + 3))))


def open_quote(rng: Rng, folder: Path) -> list[Use]:
    rows = draw(rng)
    row = place(rng, rows)
    lines = text(rows).split("\n")
    lines[row + 1] = '"' + lines[row + 1]
    return uses_of_file(saved(folder, "x.csv", "\n".join(lines)), Refused((r"x\.csv", r"\bline|\bfields")))


def blank_lines(rng: Rng, folder: Path) -> list[Use]:
    rows = draw(rng)
    lines = text(rows).split("\n")
    lines.insert(place(rng, rows), "")
    end = pick(rng, ("", "\n", "\n\n"))
    return uses_of_file(saved(folder, "x.csv", "\n".join(lines).rstrip("\n") + end), Right(rows))


def a_title(rng: Rng, folder: Path) -> list[Use]:
    first = pick(rng, ("# exported 2026-11-01", "Experiment 7", "sep=,"))
    path = saved(folder, "x.csv", f"{first}\n{text(draw(rng))}")
    return uses_of_file(path, Refused((r"x\.csv", "fields|column")))


def swapped_marks(rng: Rng, folder: Path) -> list[Use]:
    """Numbers with three digits after the comma alone: 1,250 may be 1.250 or 1250."""
    rows = copied(draw(rng))
    for row in rows:
        row |= {"y": f"{int(rng.integers(1, 9))},250", "p": 1, "x": 1}
    path = saved(folder, "x.csv", text(rows, ";"))
    return uses_of_file(path, Refused((column("y"), r"\d,250", "decimal")))


def two_marks(rng: Rng, folder: Path) -> list[Use]:
    rows = draw(rng)
    row, damaged = place(rng, rows), copied(rows)
    damaged[row]["y"] = "2,5"
    path = saved(folder, "x.csv", text(damaged, pick(rng, ",;")))
    return uses_of_file(path, Refused((column("y"), "2,5", line(row + 2))))


def empty(rng: Rng, folder: Path) -> list[Use]:
    data = pick(rng, ("", "\n\n", "\ufeff", "arm,y,p,day,who,region,x\n"))
    return uses_of_file(saved(folder, "x.csv", data), Refused((r"x\.csv|no rows",)))


def from_stdin(make: Callable[[Rng, Rows], bytes], rng: Rng, folder: Path) -> list[Use]:
    rows = draw(rng)
    return uses_of_bytes(make(rng, rows), Right(rows))


def bad_from_stdin(rng: Rng, folder: Path) -> list[Use]:
    rows = draw(rng)
    row, name = place(rng, rows), pick(rng, ("y", "p"))
    rows[row][name] = "error"
    data = text(rows, pick(rng, ",;\t")).encode()
    return uses_of_bytes(data, Refused((column(name), "error", line(row + 2))))


def cut_stdin(rng: Rng, folder: Path) -> list[Use]:
    data = gzip.compress(text(draw(rng)).encode())
    others = {"bytes": Refused(("bytes",))}
    return uses_of_bytes(
        data[: int(rng.integers(len(data) // 4, len(data)))], Refused(("standard input",)), others=others
    )


def nothing_in_stdin(rng: Rng, folder: Path) -> list[Use]:
    others = {"bytes": Refused(("bytes",))}
    return uses_of_bytes(
        pick(rng, (b"", b"\n", b"\xef\xbb\xbf")), Refused(("standard input",)), others=others
    )


DIALECTS: dict[str, Kind] = {
    **{
        f"{name}, decimals with {mark!r}": partial(divided, sep, mark)
        for name, sep in SEPARATORS.items()
        for mark in ".,"
    },
    "separators within quotes": quoted,
    "another separator in every field": other_separator_within,
    "line breaks within quotes": broken_lines,
    "a bad cell after a line break within quotes": bad_cell_after_break,
    "blank lines": blank_lines,
    "a header of numbers": numbered_header,
    "three digits after every comma": swapped_marks,
    "one decimal comma": two_marks,
}
TEXTS: dict[str, Kind] = {
    **{f"in {name}": partial(encoded, name) for name in ("utf-8-sig", "utf-16", "utf-32", "utf-8")},
    **{f"in {name}, said": partial(said, name) for name in ("cp1252", "utf-16-le", "latin-1")},
    "in cp1252, not said": unsaid,
    "in UTF-16 without a mark": unmarked,
    "one byte that is not UTF-8": one_bad_byte,
    "a NUL": a_nul,
    "compressed": compressed,
    "gzip in two members": two_members,
    "gzip cut short": partial(cut_short, gzip.compress, "gz"),
    "bzip2 cut short": partial(cut_short, bz2.compress, "bz2"),
    "gzip whose sum is wrong": flipped,
    "Parquet named .csv": partial(wrong_name, "x.csv", parquet, ()),
    "CSV named .parquet": partial(
        wrong_name, "x.parquet", lambda rows: text(rows).encode(), ("Parquet|damaged",)
    ),
    "CSV named .jsonl": partial(wrong_name, "x.jsonl", lambda rows: text(rows).encode(), ("line 1", "JSON")),
    "CSV named .txt": partial(wrong_name, "x.txt", lambda rows: text(rows).encode(), (r"\.csv",)),
    "CSV named .xlsx": partial(wrong_name, "x.xlsx", lambda rows: text(rows).encode(), (r"\.csv",)),
    "JSON lines named .csv": partial(
        wrong_name, "x.csv", lambda rows: objects(rows).encode(), ("column|fields",)
    ),
    "tabs named .csv": partial(other_name, "x.csv", lambda rows: text(rows, "\t").encode()),
    "commas named .tsv": partial(other_name, "x.tsv", lambda rows: text(rows).encode()),
    "gzip named .csv": partial(other_name, "x.csv", lambda rows: gzip.compress(text(rows).encode())),
    "plain text named .csv.gz": partial(other_name, "x.csv.gz", lambda rows: text(rows).encode()),
    "a name in capitals": partial(other_name, "X.CSV", lambda rows: text(rows).encode()),
}
DAMAGED: dict[str, Kind] = {
    "a row of another separator": mixed_separators,
    "one separator of another kind": one_separator,
    "a field more": partial(a_field_more, lambda found: found + ",1", 8),
    "a field fewer": partial(a_field_more, lambda found: found.rpartition(",")[0], 6),
    "a row cut short": partial(a_field_more, lambda found: found.split(",")[0], 1),
    "no header": no_header,
    "a header again in the midst": header_again,
    "a name twice in the header": header_twice,
    "a blank name in the header": header_blank,
    "a quote that does not close": open_quote,
    "a title before the header": a_title,
    "nothing in it": empty,
}
STANDARD_INPUT: dict[str, Kind] = {
    "commas": partial(from_stdin, lambda rng, rows: text(rows).encode()),
    "semicolons and decimal commas": partial(from_stdin, lambda rng, rows: text(rows, ";", ",").encode()),
    "tabs, compressed": partial(from_stdin, lambda rng, rows: gzip.compress(text(rows, "\t").encode())),
    "UTF-16": partial(from_stdin, lambda rng, rows: text(rows).encode("utf-16")),
    "a byte-order mark": partial(from_stdin, lambda rng, rows: text(rows).encode("utf-8-sig")),
    "JSON lines": partial(from_stdin, lambda rng, rows: objects(rows).encode()),
    "Parquet": partial(from_stdin, lambda rng, rows: parquet(rows)),
    "a bad cell": bad_from_stdin,
    "gzip cut short": cut_stdin,
    "nothing": nothing_in_stdin,
}
__all__ = ["DAMAGED", "DIALECTS", "STANDARD_INPUT", "TEXTS", "Any", "saved"]
