"""Tables of cells in which every character is literal, as text, LaTeX, HTML and Markdown."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Callable, Sequence
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd
from statsmodels.iolib.table import Cell, Row, SimpleTable, default_latex_fmt

from adaptinf.claims import of_terms
from adaptinf.errors import MissingDependencyError
from adaptinf.texts import ROOM, literal

if TYPE_CHECKING:
    from great_tables import GT

    from adaptinf.inference.distributions.references import Reference

T = TypeVar("T")
_PIECE = 10
"""Smallest width of a column in which words may be broken."""
_RULE = "header_dec_below"
"""The name that statsmodels uses for a rule below a row."""
_KEPT = "\xa0"
_INDENT = "  "
"""Indentation of continuation lines of cells in the first column."""
_MARKDOWN = str.maketrans({char: f"\\{char}" for char in "\\`*_[]<>|#$&~"})
_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}
_LATEX_TABLE = str.maketrans(_LATEX)


def escape_latex(text: str) -> str:
    r"""The text with all characters that LaTeX would interpret made literal."""
    return text.translate(_LATEX_TABLE)


class _EscapedCell(Cell):  # type: ignore[misc]
    """A cell whose text is literal in every output format."""

    def format(self, width: int, output_format: str = "txt", **fmt_dict: Any) -> str:
        text = literal(str(self.data))
        if output_format in ("latex", "ltx"):
            text = escape_latex(text)
            # LaTeX would read a bracket or a star after the end of the previous row as an argument of that
            # end, so an empty group precedes it.
            text = "{}" + text if self._datatype == "stub" and text[:1] in ("[", "*") else text
        elif output_format in ("html", "htm"):
            text = html.escape(text)
        escaped = Cell(text, datatype=self._datatype, row=self.row, **self._fmt)
        return str(escaped.format(width, output_format=output_format, **fmt_dict))


def cell_widths(rows: Sequence[Sequence[str]], minimum: int) -> list[int]:
    """Widths of the columns of a table, each at least `minimum`."""
    return [max(minimum, *(len(literal(cell)) for cell in column)) for column in zip(*rows, strict=True)]


def total_width(widths: Sequence[int], gap: str) -> int:
    """Width of a table with these columns."""
    return sum(widths) + len(gap) * (len(widths) - 1)


def is_rule(line: str) -> bool:
    """Whether a line of text is a rule between tables."""
    return set(line) == {"="}


def _narrowest(cell: str, side: str, *, head: bool, stub: bool) -> int:
    """The smallest column width at which no word of a cell is broken."""
    if side == "r" and not head:
        return len(cell)
    parts = [len(part) for part in (cell.split() if side == "l" or head else cell.split("; "))]
    indent = len(_INDENT) if stub and side == "l" and not head else 0
    ends = 1 if side == "w" and not head and len(parts) > 1 else 0
    return max(
        [*(width + ends for width in parts[:1]), *(width + indent + ends for width in parts[1:])], default=0
    )


class LiteralTable(SimpleTable):  # type: ignore[misc]
    """A table in which every character is literal; as text, it is at most 80 columns wide.

    Attributes
    ----------
    widths : tuple of int
        Minimum width of each column of the text, starting with the stub; ignored if there is no room.
    aligns : str
        Alignment of each column: "l" for left, with cells that wrap at blanks; "r" for right, with cells that
        do not wrap; or "w" for right, with cells that wrap after semicolons.
    gap : str
        Text between two columns.
    folds : int
        If columns do not fit, they continue in a block below, in which this number of initial columns is
        repeated. If it is 0, words are broken instead.
    over : bool
        Whether a stub has a separate line of the text, above its row and the following rows without a stub.
    """

    widths: tuple[int, ...]
    aligns: str
    gap: str
    folds: int
    over: bool

    def as_text(self, **formats: Any) -> str:
        """Return the table as text; if formats of statsmodels are given, statsmodels lays out the cells."""
        return str(super().as_text(**formats)) if formats else "\n".join(self.text_lines())

    def text_lines(self, least: int = 0) -> list[str]:
        """Lines of the text, including rules, with a minimum width; several blocks have no empty rows."""
        rows = list(map(_cells, self))
        heads = [row.datatype == "header" for row in self]
        ruled = [row.dec_below == _RULE for row in self]
        gap, blocks = self._blocks(rows, heads)
        names = max(len(row[0]) for row in rows) if self.over else 0
        total = max(least, min(names, ROOM), *(total_width(widths, gap) for _, widths in blocks))
        lines = ["=" * total] if self._ruled("above") else []
        for places, widths in blocks:
            aligns = "".join(self.aligns[place] for place in places)
            spare = total - total_width(widths, gap) if aligns[1:2] in ("r", "w") and not self.folds else 0
            for row, head, rule in zip(rows, heads, ruled, strict=True):
                cells = [row[place] for place in places]
                if self.over and not head:
                    lines += textwrap.wrap(cells[0], total, break_on_hyphens=False)
                    cells[0] = ""
                if any(cells[1:]) or (any(cells) and len(blocks) == 1):
                    lines += wrapped_row(cells, widths, aligns, gap, head=head, spare=spare)
                lines += ["-" * total] if rule else []
            lines.append("=" * total)
        return lines if self._ruled("below") else lines[:-1]

    def _ruled(self, where: str) -> bool:
        """Whether there is a rule above or below the text, as in statsmodels."""
        return self.output_formats["txt"][f"table_dec_{where}"] is not None

    def _blocks(
        self, rows: list[list[str]], heads: list[bool]
    ) -> tuple[str, list[tuple[list[int], list[int]]]]:
        """The gap, and blocks of columns with their widths; a single block if all columns fit."""
        rows = [["", *row[1:]] for row in rows] if self.over else rows
        natural = cell_widths(rows, 0)
        widths = [max(pair) for pair in zip(self.widths, natural, strict=True)]
        widths = narrowed(widths, natural, ROOM, self.gap)
        if total_width(widths, self.gap) <= ROOM:
            return self.gap, [(list(range(len(widths))), widths)]
        gap = self.gap[:2]
        columns = zip(self.aligns, zip(*rows, strict=True), strict=True)
        words = [
            max(
                _narrowest(cell, side, head=head, stub=place == 0)
                for cell, head in zip(column, heads, strict=True)
            )
            for place, (side, column) in enumerate(columns)
        ]
        pieces = [
            min(width, _PIECE) if side == "l" else width
            for width, side in zip(words, self.aligns, strict=True)
        ]

        @cache
        def lines(place: int, width: int) -> list[int]:
            side, stub = self.aligns[place], place == 0
            cells = zip([row[place] for row in rows], heads, strict=True)
            return [len(_wrapped(cell, width, side, head=head, stub=stub)) for cell, head in cells]

        for floors in [words] if self.folds else [words, pieces]:
            if total_width(floors, gap) <= ROOM:
                widths = narrowed([min(width, ROOM) for width in natural], floors, ROOM, gap, lines)
                return gap, [(list(range(len(widths))), widths)]
        kept = list(range(self.folds or 1))
        room = [ROOM // 3, *words[1 : len(kept)]]
        first = [
            min(natural[place], max(pieces[place], min(words[place], ROOM // 2), room[place]))
            for place in kept
        ]
        others = folded(words[len(kept) :], ROOM - total_width(first, gap), gap)
        return gap, [
            (
                [*kept, *(place + len(kept) for place in places)],
                [*first, *(words[place + len(kept)] for place in places)],
            )
            for places in others
        ]


def narrowed(
    widths: Sequence[int],
    floors: Sequence[int],
    room: int,
    gap: str,
    lines: Callable[[int, int], Sequence[int]] = lambda place, width: (1,),
) -> list[int]:
    """Reduce widths, but not below their minima, until all columns fit, where this adds the fewest lines.

    Among several such columns, the widest is reduced. `lines` returns the numbers of lines of a column's rows
    for a given width.

    Examples
    --------
    >>> from adaptinf.inference.results.tables import narrowed
    >>> narrowed([30, 12, 20], [10, 12, 20], room=60, gap=" ")
    [26, 12, 20]
    """
    found = list(widths)
    heights = np.array([lines(place, width) for place, width in enumerate(found)])
    for _ in range(total_width(found, gap) - room):
        costs = []
        for place, width in enumerate(found):
            if width > floors[place]:
                fewer = np.array(lines(place, width - 1))
                rest = np.delete(heights, place, axis=0).max(axis=0, initial=1)
                costs.append((int(np.maximum(rest, fewer).sum()), -width, place, fewer))
        if not costs:
            break
        *_, place, fewer = min(costs, key=lambda cost: cost[:3])
        found[place] -= 1
        heights[place] = fewer
    return found


def folded(widths: Sequence[int], room: int, gap: str) -> list[list[int]]:
    """Positions of columns in blocks that fit into the room; each block has at least one column.

    Examples
    --------
    >>> from adaptinf.inference.results.tables import folded
    >>> folded([10, 10, 10, 10, 10], room=35, gap=" ")
    [[0, 1, 2], [3, 4]]
    """
    blocks: list[list[int]] = []
    left = 0
    for place, width in enumerate(widths):
        left -= width + len(gap)
        if left < 0 or not blocks:
            blocks.append([])
            left = room - width - len(gap)
        blocks[-1].append(place)
    return blocks


def _wrapped(cell: str, width: int, side: str, *, head: bool, stub: bool) -> list[str]:
    """The lines of a cell in a column of this width."""
    if len(cell) <= width or (side == "r" and not head):
        return [cell]
    indent = _INDENT if stub and side == "l" and not head and width > len(_INDENT) else ""
    # Blanks that must not break are replaced by a character at which textwrap does not break.
    text = cell if side == "l" or head else cell.replace(" ", _KEPT).replace(f";{_KEPT}", "; ")
    lines = textwrap.wrap(text, width or 1, subsequent_indent=indent, break_on_hyphens=False)
    return [line.replace(_KEPT, " ") for line in lines]


def wrapped_row(
    cells: Sequence[str], widths: Sequence[int], aligns: str, gap: str, *, head: bool, spare: int = 0
) -> list[str]:
    """Lines of a row, in which cells begin at the top, or, in a head, end at the bottom.

    Cells on the left and heads wrap at blanks, and cells of side "w" after semicolons. A word that is longer
    than its column is broken. Continuation lines in the first column are indented. `spare` widens the gap
    after the first column.

    Examples
    --------
    >>> from adaptinf.inference.results.tables import wrapped_row
    >>> wrapped_row(["a long name - b", "0.1"], [12, 5], "lr", " ", head=False)
    ['a long name    0.1', '  - b']
    """
    parts = [
        _wrapped(cell, width, side, head=head, stub=place == 0)
        for place, (cell, width, side) in enumerate(zip(cells, widths, aligns, strict=True))
    ]
    height = max(1, *map(len, parts))
    for part in parts:
        part[0 if head else len(part) :] = [""] * (height - len(part)) + (part if head else [])
    sides = [str.ljust if side == "l" else str.rjust for side in aligns]
    gaps = ["", gap + " " * spare, *[gap] * (len(cells) - 2)]
    return [
        "".join(
            between + side(line, width)
            for between, side, line, width in zip(gaps, sides, lines, widths, strict=False)
        ).rstrip()
        for lines in zip(*parts, strict=True)
    ]


def stacked(tables: Sequence[LiteralTable], least: int = 0) -> list[str]:
    """Lines of tables that are stacked, equally wide, and separated by a single rule."""
    laid = [table.text_lines(least) for table in tables]
    wide = max(len(line) for own in laid for line in own)
    lines: list[str] = []
    for table, own in zip(tables, laid, strict=True):
        more = own if max(map(len, own)) == wide else table.text_lines(wide)
        lines += more[1:] if lines and is_rule(lines[-1]) and is_rule(more[0]) else more
    return lines


def text_table(
    rows: Sequence[Sequence[str]],
    headers: Sequence[str] | None,
    stubs: Sequence[str],
    widths: Sequence[int],
    aligns: str,
    gap: str = " ",
    *,
    folds: int = 0,
    ruled: Sequence[int] = (),
    over: bool = False,
) -> LiteralTable:
    """A table of literal cells with a rule below some rows."""
    # If a header were aligned differently from its column, statsmodels would split the tabular in two, so
    # LaTeX aligns both to the right.
    sides = aligns[1:].replace("w", "r") if headers is None else "r" * (len(aligns) - 1)
    latex = {**default_latex_fmt, "replacements": {}, "data_aligns": sides, "data_fmts": ["%s"]}
    latex["header_align"] = "r"
    web: dict[str, Any] = {"data_fmts": [_web_cell("td", side) for side in aligns[1:]]}
    web["stub"] = _web_cell("th", aligns[0])
    web["header"] = _web_cell("th", "l" if "l" in aligns[1:] else "r")
    table = LiteralTable(
        rows, headers, list(stubs), ltx_fmt=latex, html_fmt=web, celltype=_EscapedCell,
        datatypes=list(range(len(aligns) - 1)),
    )  # fmt: skip
    for row in table:
        row[0].datatype = row[0].datatype if str(row[0].data) else "empty"
    table.widths, table.aligns, table.gap = tuple(widths), aligns, gap
    table.folds, table.over = folds, over
    for place in ruled:
        table[place].dec_below = _RULE
    return table


def _web_cell(tag: str, side: str) -> str:
    style = f"text-align: {'left' if side == 'l' else 'right'}", "padding-left: 1em"
    return f'<{tag} style="{"; ".join(style)}">%s</{tag}>'


def plain_table(
    rows: Sequence[Sequence[str]], headers: Sequence[str] | None, aligns: str, **layout: Any
) -> LiteralTable:
    """A table of literal cells with their natural width; `layout` contains arguments of `text_table`."""
    top = None if headers is None else list(headers[1:])
    columns, stubs = [row[1:] for row in rows], [row[0] for row in rows]
    table = text_table(columns, top, stubs, [1] * len(aligns), aligns, "   ", **layout)
    # statsmodels leaves the corner cell empty, so it is filled in afterwards.
    if headers is not None and headers[0]:
        table[0][0].data, table[0][0].datatype = headers[0], "stub"
    return table


def escape_markdown(text: str) -> str:
    r"""The text with all characters that Markdown would interpret made literal."""
    return literal(text).translate(_MARKDOWN)


def markdown_table(table: SimpleTable) -> str:
    """A table in Markdown, with all headers in one row, which is empty if there are none."""
    rows = body_of(table)
    width = len(rows[0])
    rows.insert(0, joined_heads(table) or [""] * width)
    lines = ["| " + " | ".join(map(escape_markdown, row)) + " |" for row in rows]
    lines.insert(1, "|" + " --- |" * width)
    return "\n".join(lines)


def latex_float(
    title: str, tables: Sequence[SimpleTable], notes: Sequence[str], label: str | None = None
) -> str:
    """A LaTeX `table` with booktabs rules; title and notes are LaTeX, and notes have a line each."""
    parts = [r"\begin{table}[htbp]", r"\centering", rf"\caption{{{title}}}"]
    parts += [] if label is None else [rf"\label{{{label}}}"]
    for table in tables:
        parts += [table.as_latex_tabular(center=False), r"\par\smallskip"]
    if notes:
        parts += [r"\begin{minipage}{\linewidth}", r"\footnotesize"]
        parts += [*(rf"{note}\par" for note in notes), r"\end{minipage}"]
    return "\n".join([*parts, r"\end{table}"])


def great_table(title: str, tables: Sequence[SimpleTable], notes: Sequence[str]) -> GT:
    """The last table as a Great Table, with columns of other tables that have the same rows.

    Tables without a head contain facts, which are placed before the notes.
    """
    try:
        from great_tables import GT, loc, style
        from great_tables import html as marked
    except ImportError as error:
        raise MissingDependencyError("a Great Table", "great-tables", "tables") from error
    headed = [table for table in tables if _heads(table)]
    facts = [_fact_line(table) for table in tables if not _heads(table)]
    stubs = _stubs(headed[-1])
    columns = [column for table in headed if _stubs(table) == stubs for column in _columns(table)]
    named = {f"c{place}": column for place, column in enumerate(columns)}
    frame = pd.DataFrame({"stub": stubs, **{name: cells for name, (_, cells) in named.items()}})

    made = GT(frame, rowname_col="stub").tab_header(marked(_web_text(title)))
    labels: dict[str, Any] = {name: marked(_web_text(heads[-1])) for name, (heads, _) in named.items()}
    made = made.cols_label(**labels).cols_align("right", columns=list(named))
    for over, group in groupby(named, key=lambda name: named[name][0][:-1]):
        inside = list(group)
        if text := " ".join(filter(None, over)):
            made = made.tab_spanner(marked(_web_text(text)), columns=inside, id=f"over {inside[0]}")
    if "" in stubs:  # Rows without a label continue the row above, so there must be no rule between them.
        made = made.tab_options(table_body_hlines_style="none")
    for place in _ruled_rows(headed[-1]):
        lines = style.borders(sides="bottom", color="#000000", weight="1px")
        made = made.tab_style(lines, [loc.body(rows=[place]), loc.stub(rows=[place])])
    for note in [*facts, *notes]:
        made = made.tab_source_note(marked(_web_text(note)))
    return made


def _heads(table: SimpleTable) -> list[list[str]]:
    return [_cells(row) for row in table if row.datatype == "header"]


def joined_heads(table: SimpleTable) -> list[str]:
    """The head of each column as one text; empty for a table of facts."""
    return [" ".join(filter(None, head)) for head in zip(*_heads(table), strict=True)]


def body_of(table: SimpleTable) -> list[list[str]]:
    """Cells of the rows below the heads."""
    return [_cells(row) for row in table if row.datatype != "header"]


def _columns(table: SimpleTable) -> list[tuple[tuple[str, ...], list[str]]]:
    """Heads and cells of each column except the stub."""
    heads, cells = zip(*_heads(table), strict=True), zip(*body_of(table), strict=True)
    return [(head, list(column)) for head, column in zip(heads, cells, strict=True)][1:]


def _web_text(text: str) -> str:
    """A text in HTML whose braces Great Tables does not interpret as units of measurement."""
    return html.escape(literal(text)).replace("{", "&#123;")


def _cells(row: Row) -> list[str]:
    return [literal(str(cell)) for cell in row.data]


def _stubs(table: SimpleTable) -> list[str]:
    return [row[0] for row in body_of(table)]


def _ruled_rows(table: SimpleTable) -> list[int]:
    """The rows of the body below which there is a rule."""
    body = [row for row in table if row.datatype != "header"]
    return [place for place, row in enumerate(body) if row.dec_below == _RULE]


def _fact_line(table: SimpleTable) -> str:
    """The names and values in a table of facts, on one line."""
    pairs = [row[place : place + 2] for row in map(_cells, table) for place in range(0, len(row), 2)]
    return "; ".join(f"{name.removesuffix(':')}: {value}" for name, value in pairs if name)


def said_of(names: Sequence[str], results: Sequence[T], of: Callable[[T], Sequence[str]]) -> tuple[str, ...]:
    """Statements about several results, without repetition, each with its terms unless it applies to all."""
    said: dict[str, list[str]] = {}
    for name, result in zip(names, results, strict=True):
        for one in of(result):
            said.setdefault(one, []).append(name)
    return tuple(
        text if len(who) == len(results) else of_terms(text, ", ".join(who)) for text, who in said.items()
    )


def p_head(law: Reference) -> str:
    """Head of a column of p-values."""
    return "P exact" if law.exact else f"P>|{law.statistic}|"


def limit_heads(alpha: float) -> tuple[str, str]:
    """Heads of the columns of both limits."""
    return f"[{alpha / 2:.6g}", f"{1 - alpha / 2:.6g}]"


def format_number(x: float) -> str:
    """A number for a table, with four decimals, or with an exponent if decimals would be misleading."""
    if not math.isfinite(x):
        return str(float(x))
    size = abs(x)
    if size == 0 or 1e-4 <= size < 1e3:
        return f"{x:.4f}"
    return f"{x:.2f}" if 1e3 <= size < 1e6 else f"{x:.2e}"


def percent(value: float) -> str:
    """A share in percent, with one decimal, or with two if it is below 1%.

    Examples
    --------
    >>> from adaptinf.inference.results.tables import percent
    >>> percent(0.0812), percent(-0.0012), percent(float("nan"))
    ('8.1%', '-0.12%', 'nan')
    """
    if not math.isfinite(value):
        return str(value)
    return f"{100.0 * value + 0.0:.{1 if abs(value) >= 0.01 or value == 0.0 else 2}f}%"


def format_pvalue(log_p: float) -> str:
    """A p-value for a table, even if it is too small for a double."""
    if math.isnan(log_p):
        return "nan"
    if log_p < -300.0 * math.log(10.0):
        return "<1e-300" if log_p > -math.inf else "0"
    if log_p >= math.log(0.001):
        return f"{math.exp(log_p):.3f}"
    exponent = math.floor(log_p / math.log(10.0))
    mantissa = f"{math.exp(log_p - exponent * math.log(10.0)):.1f}"
    if mantissa == "10.0":
        mantissa, exponent = "1.0", exponent + 1
    return f"{mantissa}e{exponent:03d}"


def format_statistic(x: float) -> str:
    """A distance from the null in standard errors, for a table."""
    return f"{x:.3f}" if not math.isfinite(x) or abs(x) < 1e4 else f"{x:.2e}"
