"""Damage to a table of text: cells, rows, columns, headers and how they are written."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Rng = np.random.Generator


@dataclass
class Table:
    """A header, rows of text, and the columns that a reader takes."""

    header: list[str]
    rows: list[list[str]]
    used: list[str]

    def place(self, rng: Rng) -> tuple[int, int]:
        """A cell of a column that is used."""
        name = self.used[rng.integers(len(self.used))]
        return int(rng.integers(len(self.rows))), self.header.index(name)

    def numbers(self) -> list[int]:
        """Columns that are used and hold fractions."""
        places = [self.header.index(name) for name in self.used]
        return [at for at in places if any("." in row[at] and row[at][:1].isdigit() for row in self.rows)]


def table_of(columns: dict[str, list[Any]], used: Sequence[str]) -> Table:
    """Columns of plain values as text; what is missing is empty."""
    rows = [
        ["" if value is None else str(value) for value in row] for row in zip(*columns.values(), strict=True)
    ]
    return Table(list(columns), rows, list(used))


def write(table: Table, **dialect: Any) -> bytes:
    """The table as a CSV file."""
    file = io.StringIO()
    writer = csv.writer(file, **{"lineterminator": "\n", **dialect})
    writer.writerow(table.header)
    writer.writerows(table.rows)
    return file.getvalue().encode()


CELLS = [
    "", "NA", "nan", "NULL", "None", "#N/A", "-", "?", ".", " ", "\t", "inf", "-Infinity", "1e999",
    "1e-400", "-0.5", "-1", "2", "1.5", "50", "50%", "0,5", "1.000,5", "1,000.5", "$5", "1/2",
    "2024-01-05", "03/04/2024", "05.01.2024", "abc", "True", "yes", "é", "'0.5", "0x1F", "1_0", "\uff11",
    "1e5", "9007199254740993", "0.5.1", "18446744073709551616", "1" * 400, "9" * 5000, "-0", "--1",
    "1 2", "1;2", "[0.5]", '{"a": 1}', "=1+1", "1j", "NaT", "<NA>", "0.1.", "+0.5", "5e-324",
    "x" * 70000, "line\nbreak", 'quo"te', "\x00", "\ufeff", "\u0663",
]  # fmt: skip


def cell(rng: Rng, table: Table, text: str) -> None:
    """Replace one cell."""
    row, column = table.place(rng)
    table.rows[row][column] = text


def around(rng: Rng, table: Table, change: Callable[[str], str]) -> None:
    """Change the text of one cell."""
    row, column = table.place(rng)
    table.rows[row][column] = change(table.rows[row][column])


def column_wise(rng: Rng, table: Table, change: Callable[[str], str], numbers: bool = False) -> None:
    """Change every cell of a column."""
    places = table.numbers() if numbers else [table.header.index(name) for name in table.used]
    if places:
        at = places[rng.integers(len(places))]
        for row in table.rows:
            row[at] = change(row[at])


def scaled(text: str, factor: float) -> str:
    """A number times a factor; other text as it is."""
    try:
        return repr(float(text) * factor)
    except ValueError:
        return text


def dropped_column(rng: Rng, table: Table) -> None:
    _, at = table.place(rng)
    for row in [table.header, *table.rows]:
        del row[at]


def doubled_column(rng: Rng, table: Table) -> None:
    _, at = table.place(rng)
    for row in [table.header, *table.rows]:
        row.append(row[at])


def other_column_of_the_same_name(rng: Rng, table: Table) -> None:
    doubled_column(rng, table)
    for row in table.rows:
        row[-1] = "0.25"


def swapped(rng: Rng, table: Table, header: bool, body: bool) -> None:
    one, two = table.place(rng)[1], table.place(rng)[1]
    for row in ([table.header] if header else []) + (table.rows if body else []):
        row[one], row[two] = row[two], row[one]


def renamed(rng: Rng, table: Table, change: Callable[[str], str]) -> None:
    _, at = table.place(rng)
    table.header[at] = change(table.header[at])


def row_place(rng: Rng, table: Table) -> int:
    return int(rng.integers(len(table.rows)))


def swapped_rows(rng: Rng, table: Table) -> None:
    one, two = row_place(rng, table), row_place(rng, table)
    table.rows[one], table.rows[two] = table.rows[two], table.rows[one]


def shuffled(rng: Rng, table: Table) -> None:
    table.rows = [table.rows[row] for row in rng.permutation(len(table.rows))]


def whole(rng: Rng, table: Table, rows: list[list[str]]) -> None:
    table.rows = rows


IN_PLACE: dict[str, Callable[[Rng, Table], Any]] = {
    **{f"a cell is {text!r:.20}": (lambda rng, t, text=text: cell(rng, t, text)) for text in CELLS},
    "a cell with a blank behind": lambda rng, t: around(rng, t, lambda text: text + " "),
    "a cell with a blank before": lambda rng, t: around(rng, t, lambda text: " " + text),
    "a cell with a no-break space": lambda rng, t: around(rng, t, lambda text: text + "\u00a0"),
    "a cell in capitals": lambda rng, t: around(rng, t, str.upper),
    "a cell with its end lost": lambda rng, t: around(rng, t, lambda text: text[:-1]),
    "a cell negative": lambda rng, t: around(rng, t, lambda text: "-" + text),
    "a cell with a unit": lambda rng, t: around(rng, t, lambda text: text + " mg"),
    "a cell twice": lambda rng, t: around(rng, t, lambda text: text + text),
    "a cell with a zero before": lambda rng, t: around(rng, t, lambda text: "0" + text),
    "a cell ten times": lambda rng, t: around(rng, t, lambda text: scaled(text, 10)),
    "a column with blanks behind": lambda rng, t: column_wise(rng, t, lambda text: text + "  "),
    "a column empty": lambda rng, t: column_wise(rng, t, lambda text: ""),
    "a column of zeros": lambda rng, t: column_wise(rng, t, lambda text: "0"),
    "a column negative": lambda rng, t: column_wise(rng, t, lambda text: scaled(text, -1.0)),
    "a column in percent": lambda rng, t: column_wise(rng, t, lambda text: scaled(text, 100.0), True),
    "a column in per mille": lambda rng, t: column_wise(rng, t, lambda text: scaled(text, 1000.0), True),
    "a column halved": lambda rng, t: column_wise(rng, t, lambda text: scaled(text, 0.5), True),
    "a column rounded": lambda rng, t: column_wise(rng, t, lambda text: text[:4], True),
    "a column with decimal commas": lambda rng, t: column_wise(
        rng, t, lambda text: text.replace(".", ","), True
    ),
    "a column with percent signs": lambda rng, t: column_wise(rng, t, lambda text: text + "%", True),
    "a column of dates": lambda rng, t: column_wise(rng, t, lambda text: "2024-03-01"),
    "a column of JSON": lambda rng, t: column_wise(rng, t, lambda text: f'["{text}"]'),
    "a column lost": dropped_column,
    "a column twice": doubled_column,
    "another column of the same name": other_column_of_the_same_name,
    "two headers swapped": lambda rng, t: swapped(rng, t, True, False),
    "two columns swapped below their headers": lambda rng, t: swapped(rng, t, False, True),
    "a header in capitals": lambda rng, t: renamed(rng, t, str.upper),
    "a header with a blank": lambda rng, t: renamed(rng, t, lambda name: name + " "),
    "a header empty": lambda rng, t: renamed(rng, t, lambda name: ""),
    "a header in quotes": lambda rng, t: renamed(rng, t, lambda name: f"'{name}'"),
    "a header that is a number": lambda rng, t: renamed(rng, t, lambda name: "0"),
    "no header": lambda rng, t: setattr(t, "header", t.rows.pop(0)),
    "the header twice": lambda rng, t: t.rows.insert(0, list(t.header)),
    "the header in the middle": lambda rng, t: t.rows.insert(row_place(rng, t), list(t.header)),
    "a row lost": lambda rng, t: t.rows.pop(row_place(rng, t)),
    "the last rows lost": lambda rng, t: whole(rng, t, t.rows[: max(1, row_place(rng, t))]),
    "a row twice": lambda rng, t: t.rows.insert(row_place(rng, t), list(t.rows[row_place(rng, t)])),
    "a row twice in a row": lambda rng, t: t.rows.append(list(t.rows[-1])),
    "two rows swapped": swapped_rows,
    "rows shuffled": shuffled,
    "rows backwards": lambda rng, t: whole(rng, t, t.rows[::-1]),
    "all rows twice": lambda rng, t: whole(rng, t, t.rows + [list(row) for row in t.rows]),
    "a row short": lambda rng, t: t.rows[row_place(rng, t)].pop(),
    "a row short by many": lambda rng, t: t.rows[row_place(rng, t)].__delitem__(slice(2, None)),
    "a row long": lambda rng, t: t.rows[row_place(rng, t)].append("9"),
    "a row long with nothing": lambda rng, t: t.rows[row_place(rng, t)].append(""),
    "all rows long": lambda rng, t: [row.append("9") for row in t.rows],
    "all rows with an index before": lambda rng, t: [row.insert(0, str(k)) for k, row in enumerate(t.rows)],
    "a row shifted": lambda rng, t: t.rows[row_place(rng, t)].insert(0, "7"),
    "a row of empty cells": lambda rng, t: t.rows.insert(row_place(rng, t), [""] * len(t.header)),
    "a total at the end": lambda rng, t: t.rows.append(["Total", *["12"] * (len(t.header) - 1)]),
    "a comment at the end": lambda rng, t: t.rows.append(["# end of file"]),
    "a comment in front": lambda rng, t: t.rows.insert(0, ["# made by hand"]),
    "no rows": lambda rng, t: t.rows.clear(),
    "two rows in one": lambda rng, t: t.rows.append(t.rows.pop() + t.rows.pop()),
}
"""Done to the table, which is then written as usual."""


def ragged_quotes(rng: Rng, table: Table) -> bytes:
    """One quote in front of a cell, and another in front of a later one."""
    lines = write(table).split(b"\n")
    for number in sorted(rng.integers(1, len(lines) - 1, size=2)):
        lines[number] = b'"' + lines[number]
    return b"\n".join(lines)


WRITTEN: dict[str, Callable[[Rng, Table], bytes]] = {
    "semicolons": lambda rng, t: write(t, delimiter=";"),
    "semicolons and decimal commas": lambda rng, t: write(t, delimiter=";").replace(b".", b","),
    "tabs": lambda rng, t: write(t, delimiter="\t"),
    "pipes": lambda rng, t: write(t, delimiter="|"),
    "single quotes": lambda rng, t: write(t, quotechar="'", quoting=csv.QUOTE_ALL),
    "quotes that do not close": lambda rng, t: write(t).replace(b",", b',"', 1 + row_place(rng, t)),
    "quotes in front of two rows": ragged_quotes,
    "rows ended by commas": lambda rng, t: b"".join(line + b",\n" for line in write(t).splitlines()),
    "newlines of old Macs in one row": lambda rng, t: write(t).replace(b"\n", b"\r", row_place(rng, t)),
    "a thousand commas": lambda rng, t: write(t).replace(b"\n", b"," * 1000 + b"\n", 1),
    "a title in front": lambda rng, t: b"Trial 7, all centres\n\n" + write(t),
    "two tables": lambda rng, t: write(t) + b"\nid,value\n1,2\n",
    "a hint at the separator": lambda rng, t: b"sep=,\n" + write(t),
}
"""Done as the table is written."""

HARMLESS_WRITTEN: dict[str, Callable[[Rng, Table], bytes]] = {
    "as it is": lambda rng, t: write(t),
    "everything in quotes": lambda rng, t: write(t, quoting=csv.QUOTE_ALL),
    "newlines of old Macs": lambda rng, t: write(t, lineterminator="\r"),
    "blank lines between": lambda rng, t: write(t).replace(b"\n", b"\n\n"),
}


def other_order(rng: Rng, table: Table) -> None:
    order = rng.permutation(len(table.header))
    table.header = [table.header[at] for at in order]
    table.rows = [[row[at] for at in order] for row in table.rows]


def more_columns(rng: Rng, table: Table, count: int) -> None:
    table.header += [f"more {number}" for number in range(count)]
    table.rows = [[*row, *["0.5"] * count] for row in table.rows]


HARMLESS_IN_PLACE: dict[str, Callable[[Rng, Table], Any]] = {
    "columns in another order": other_order,
    "a column more": lambda rng, t: more_columns(rng, t, 1),
    "300 columns more": lambda rng, t: more_columns(rng, t, 300),
}
