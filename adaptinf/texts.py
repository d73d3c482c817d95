"""Texts of others, such as names in a file, made safe to show: in terminals, tables and spreadsheets."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from typing import Any

_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_JOINERS = "\u200c\u200d"
"""Invisible, but part of the spelling in Persian, in Indian scripts and of emoji."""
_FORMULA = re.compile(r"\s*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]")


def visible(text: str, keep: str = "") -> str:
    r"""Text whose control codes, marks of direction and other unseen characters stand as escapes.

    Examples
    --------
    >>> from adaptinf.texts import visible
    >>> print(visible("a\x1b[31mb\u202ec"))
    a\x1b[31mb\u202ec
    """
    if text.isprintable():
        return text
    return "".join(
        char.encode("unicode_escape").decode("ascii")
        if char not in keep and char not in _JOINERS and unicodedata.category(char) in _HIDDEN
        else char
        for char in text
    )


def literal(text: str) -> str:
    """Text in one visible line, white space as single blanks."""
    return visible(" ".join(text.split()))


def spreadsheet_cell(text: str) -> str:
    """Text that no spreadsheet takes for a formula: an apostrophe comes first where it would; numbers stay.

    Examples
    --------
    >>> from adaptinf.texts import spreadsheet_cell
    >>> spreadsheet_cell("=1+1"), spreadsheet_cell("-0.5")
    ("'=1+1", '-0.5')
    """
    if not _FORMULA.match(text):
        return visible(text, "\n")
    try:
        float(text)
    except ValueError:
        return "'" + visible(text, "\n")
    return text


def visible_lines(parts: Iterable[str]) -> str:
    """Texts below one another, each in one visible line."""
    return "\n".join(map(visible, parts))


def frame_text(frame: Any, **options: Any) -> str:
    """A pandas frame as text, each cell in one visible line; options as of `to_string`."""
    return str(with_texts(frame, literal).to_string(index=False, **options))


def csv_text(frame: Any, float_format: str | None = None) -> str:
    """A pandas frame as comma-separated text without its index, safe for spreadsheets."""
    shown = with_texts(frame, spreadsheet_cell)
    return str(shown.to_csv(index=False, float_format=float_format, lineterminator="\n"))


def with_texts(frame: Any, change: Callable[[str], str]) -> Any:
    """A pandas frame whose texts, names of columns among them, are changed."""
    changed = frame.copy()
    for place in range(frame.shape[1]):
        column = frame.iloc[:, place]
        if column.dtype.kind == "O":
            changed.isetitem(place, [change(x) if isinstance(x, str) else x for x in column])
    changed.columns = [change(name) if isinstance(name, str) else name for name in frame.columns]
    return changed
