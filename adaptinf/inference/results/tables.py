"""Tables of text cells whose every character is literal, as text, LaTeX, HTML and Markdown."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from statsmodels.iolib.table import Cell, SimpleTable, default_latex_fmt
from statsmodels.iolib.tableformatting import fmt_base

from adaptinf.texts import literal

T = TypeVar("T")
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
    r"""Text with every character that LaTeX would interpret made literal."""
    return text.translate(_LATEX_TABLE)


class _EscapedCell(Cell):  # type: ignore[misc]
    """A cell whose text is literal in every output format."""

    def format(self, width: int, output_format: str = "txt", **fmt_dict: Any) -> str:
        text = literal(str(self.data))
        if output_format in ("latex", "ltx"):
            text = escape_latex(text)
            # After the end of the row before, LaTeX would read a bracket or star as an argument of that end.
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


def text_table(
    rows: Sequence[Sequence[str]],
    headers: Sequence[str] | None,
    stubs: Sequence[str],
    widths: Sequence[int],
    aligns: str,
    gap: str = " ",
) -> SimpleTable:
    """Table of literal cells."""
    text = {
        **fmt_base,
        "colwidths": list(widths),
        "colsep": gap,
        "data_aligns": aligns[1:],
        "data_fmts": ["%s"],
    }
    # A header aligned unlike its column would split the tabular in two: LaTeX sets both to the right.
    sides = aligns[1:] if headers is None else "r" * (len(aligns) - 1)
    latex = {**default_latex_fmt, "replacements": {}, "data_aligns": sides, "data_fmts": ["%s"]}
    latex["header_align"] = "r"
    return SimpleTable(
        rows, headers, list(stubs), txt_fmt=text, ltx_fmt=latex, html_fmt={"data_fmts": ["<td>%s</td>"]},
        celltype=_EscapedCell, datatypes=list(range(len(aligns) - 1)),
    )  # fmt: skip


def plain_table(rows: Sequence[Sequence[str]], headers: Sequence[str] | None, aligns: str) -> SimpleTable:
    """Table of literal cells, as wide as they are."""
    seen = [*rows, headers] if headers is not None else rows
    widths = cell_widths(seen, minimum=1)
    top = None if headers is None else list(headers[1:])
    return text_table([row[1:] for row in rows], top, [row[0] for row in rows], widths, aligns, "   ")


def escape_markdown(text: str) -> str:
    r"""Text with every character that Markdown would interpret made literal."""
    return literal(text).translate(_MARKDOWN)


def markdown_table(table: SimpleTable) -> str:
    """A table in Markdown; the first row is its header, empty where the table has none."""
    rows = [[str(cell) for cell in row] for row in table.data]
    width = max(len(row) for row in rows)
    if not any(cell.datatype == "header" for cell in table[0]):
        rows.insert(0, [""] * width)
    lines = ["| " + " | ".join(map(escape_markdown, row)) + " |" for row in rows]
    lines.insert(1, "|" + " --- |" * width)
    return "\n".join(lines)


def said_of(names: Sequence[str], results: Sequence[T], of: Callable[[T], Sequence[str]]) -> tuple[str, ...]:
    """What is said of several results, each once: before it the terms that it is said of, unless of all."""
    said: dict[str, list[str]] = {}
    for name, result in zip(names, results, strict=True):
        for one in of(result):
            said.setdefault(one, []).append(name)
    return tuple(
        text if len(who) == len(results) else f"{', '.join(who)}: {text}" for text, who in said.items()
    )


def format_number(x: float) -> str:
    """Number for a table: four decimals, or an exponent where they would mislead."""
    if not math.isfinite(x):
        return str(float(x))
    size = abs(x)
    if size == 0 or 1e-4 <= size < 1e3:
        return f"{x:.4f}"
    return f"{x:.2f}" if 1e3 <= size < 1e6 else f"{x:.2e}"


def format_pvalue(log_p: float) -> str:
    """P-value for a table, also where it underflows."""
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
    """Distance from the null in standard errors."""
    return f"{x:.3f}" if not math.isfinite(x) or abs(x) < 1e4 else f"{x:.2e}"
