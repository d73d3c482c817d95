"""External texts, such as names in a file, made safe to display in terminals, tables and spreadsheets."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_JOINERS = "\u200c\u200d"
"""Characters that are invisible but part of the spelling in Persian, in Indian scripts and in emoji."""
ROOM = 80
"""Width of text output, in columns."""
_LISTED = 30
_FORMULA = re.compile(r"\s*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]")


def visible(text: str, keep: str = "") -> str:
    r"""Text in which control codes, directional marks and other invisible characters are escaped.

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
    """Text on one visible line, with white space as single blanks."""
    return visible(" ".join(text.split()))


def shown(value: Any) -> str:
    """A value in an error, truncated."""
    return f"{value[:60] if isinstance(value, (str, bytes)) else value!r:.60}"


def level_text(alpha: float) -> str:
    """The level of intervals as a percentage.

    Examples
    --------
    >>> from adaptinf.texts import level_text
    >>> level_text(0.05), level_text(0.001)
    ('95%', '99.9%')
    """
    return f"{100.0 * (1.0 - alpha):g}%"


def listed(names: Iterable[Any], most: int = _LISTED) -> str:
    """Names for an error message; of many names, only the first are given.

    Examples
    --------
    >>> from adaptinf.texts import listed
    >>> listed(["a", 1]), listed(range(5), most=2)
    ("'a', 1", '0, 1 and 3 more')
    """
    all_names = list(names)
    more = f" and {len(all_names) - most} more" if len(all_names) > most else ""
    return ", ".join(map(shown, all_names[:most])) + more or "none"


def several(names: Sequence[str], most: int, mark: str = ", ") -> str:
    """The first names, and the number of further ones; empty if there are none.

    Examples
    --------
    >>> from adaptinf.texts import several
    >>> several(["a", "b"], most=2), several(["a", "b", "c"], most=1, mark="; ")
    ('a, b', 'a and 2 more')
    """
    return mark.join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def unlisted(name: str, choices: Collection[Any], value: Any, others: str = "") -> str:
    """State that an argument is none of the permitted values, and suggest the nearest one.

    Examples
    --------
    >>> from adaptinf.texts import unlisted
    >>> unlisted("estimator", ["ipw", "aipw"], "IPW")
    "estimator must be one of 'ipw', 'aipw', got 'IPW'; did you mean 'ipw'?"
    """
    near = did_you_mean(value, choices)
    return f"{name} must be one of {listed(choices)}{others}, got {shown(value)}{near}"


def absent(what: str, value: Any, known: Collection[Any], holder: str = "available:") -> str:
    """State that something does not exist, list what exists, and suggest the nearest one.

    Examples
    --------
    >>> from adaptinf.texts import absent
    >>> absent("arm", "placbo", ["drug", "placebo"], "the log has")
    "there is no arm 'placbo'; the log has 'drug', 'placebo'; did you mean 'placebo'?"
    """
    return f"there is no {what} {shown(value)}; {holder} {listed(known)}{did_you_mean(value, known)}"


def did_you_mean(value: Any, known: Iterable[Any]) -> str:
    """Suggest the known name nearest to a misspelt one, after a semicolon; empty if none is close.

    Numbers are compared with names only: 10 is not a misspelt 100, but "10" may be.

    Examples
    --------
    >>> from adaptinf.texts import did_you_mean
    >>> did_you_mean("clicks", ["visit", "click"]), did_you_mean("1", [0, 1]), did_you_mean(10, [1, 100])
    ("; did you mean 'click'?", '; did you mean 1?', '')
    """
    spelled = {
        str(one)[:60].casefold(): one
        for one in known
        if isinstance(one, (str, int, float)) and isinstance(value, (str, int, float))
        if isinstance(one, str) or isinstance(value, str)
    }
    near = difflib.get_close_matches(str(value)[:60].casefold(), spelled, n=1) if spelled else []
    return f"; did you mean {shown(spelled[near[0]])}?" if near else ""


def spreadsheet_cell(text: str) -> str:
    """Text that no spreadsheet treats as a formula, prefixed with an apostrophe if needed.

    Numbers are not changed.

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
    """Texts below one another, each on one visible line."""
    return "\n".join(map(visible, parts))


def frame_text(frame: Any, **options: Any) -> str:
    """A pandas frame as text, each cell on one visible line; options as for `to_string`."""
    return str(with_texts(frame, literal).to_string(index=False, **options))


def csv_text(frame: Any, float_format: str | None = None) -> str:
    """A pandas frame as comma-separated text without its index, safe for spreadsheets."""
    shown = with_texts(frame, spreadsheet_cell)
    return str(shown.to_csv(index=False, float_format=float_format, lineterminator="\n"))


def with_texts(frame: Any, change: Callable[[str], str]) -> Any:
    """A pandas frame with its texts, including column names, transformed."""
    changed = frame.copy()
    for place in range(frame.shape[1]):
        column = frame.iloc[:, place]
        if column.dtype.kind == "O":
            changed.isetitem(place, [change(x) if isinstance(x, str) else x for x in column])
    changed.columns = [change(name) if isinstance(name, str) else name for name in frame.columns]
    return changed


def arm_label(arm: Any) -> str:
    """Name of an arm in sentences and legends, where a number alone would be unclear."""
    return str(arm) if isinstance(arm, str) else f"arm {arm}"
