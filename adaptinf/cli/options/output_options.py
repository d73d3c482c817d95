"""Destination and format of the output: standard output, or a file in the format of its extension."""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adaptinf.cli.grammar import CommandParser, path_of, tell
from adaptinf.files import atomic_write, is_stream, same_file
from adaptinf.texts import csv_text, visible

if TYPE_CHECKING:
    import pandas as pd

FORMATS = ("text", "markdown", "latex", "html", "csv", "json")
_FORMS = {
    ".txt": "text",
    ".md": "markdown",
    ".tex": "latex",
    ".html": "html",
    ".htm": "html",
    ".csv": "csv",
    ".json": "json",
}
_UNSEEN = re.compile("[\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def add_output_options(parser: CommandParser, *, strict: str = "") -> Any:
    """Format and file of the output and, with `strict`, the exit code."""
    output = parser.add_argument_group("output")
    output.add_argument("--format", choices=FORMATS, metavar="FORM", help=f"{', '.join(FORMATS)} (text)")
    output.add_argument(
        "--output",
        metavar="FILE",
        type=path_of,
        help=f"write to this file, in the format given by its extension ({', '.join(_FORMS)})",
    )
    if strict:
        output.add_argument("--strict", action="store_true", help=f"exit with 1 {strict}")
    return output


def form_of(arguments: argparse.Namespace) -> str:
    """The requested format, by name or by the name of the file."""
    place: Path | None = arguments.output
    by_name = None if place is None else _FORMS.get(place.suffix.lower())
    return arguments.format or by_name or "text"


def place_problems(arguments: argparse.Namespace, sources: Sequence[Path]) -> list[str]:
    """Problems with the output file."""
    place: Path | None = arguments.output
    if place is None or to_standard_output(place) or is_stream(place):
        return []
    suffix = place.suffix.lower()
    problems = overwritten(place, sources)
    if problems:  # Overwriting an input is refused first, because the format then does not matter.
        return problems
    if suffix and suffix not in _FORMS:
        known = ", ".join(_FORMS)
        problems.append(
            f"--output {place}: its extension must be one of {known}; without an extension, --format "
            f"determines the format"
        )
    elif suffix and arguments.format not in (None, _FORMS[suffix]):
        problems.append(
            f"--output {place} implies {_FORMS[suffix]}, but --format is {arguments.format}: omit --format, "
            "or use another file name"
        )
    return problems


def overwritten(place: Path | None, sources: Sequence[Path]) -> list[str]:
    """Detect output that would overwrite an input file."""
    from adaptinf.log.storage.log_files import output_problems

    if place is None:
        return []
    return [problem for source in sources for problem in output_problems(str(place), source)]


def page_problems(option: str, page: Path | None, output: Path | None, sources: Sequence[Path]) -> list[str]:
    """Problems with the file of a report."""
    if page is None:
        return []
    problems = overwritten(page, sources)
    if page.suffix.lower() not in (".html", ".htm"):
        problems.append(f"{option} {page} must end in .html")
    if output is not None and same_file(page, output):
        problems.append(f"{option} and --output are both {page}: use two different files")
    return problems


def to_standard_output(place: Path) -> bool:
    """Whether a dash is used instead of a file."""
    return str(place) == "-"


def put(arguments: argparse.Namespace, text: str, owner_only: bool = False) -> None:
    """Print the output, or write it and report this on standard error."""
    place: Path | None = arguments.output
    if place is None or to_standard_output(place):
        form = form_of(arguments)
        print(_ascii_json(text) if form == "json" and not _holds(text) else text)
        return
    atomic_write(place, lambda file: file.write(f"{text}\n".encode()), owner_only)
    if not is_stream(place):
        confirm(arguments, place, form_of(arguments))


def confirm(arguments: argparse.Namespace, place: Path, what: str) -> None:
    """Report on standard error that a file was written."""
    tell(f"adaptinf {arguments.command}: wrote {visible(str(place))} ({what})")


def say(arguments: argparse.Namespace, lines: Sequence[str]) -> None:
    """Print messages on standard error, one per line."""
    for line in lines:
        tell(f"adaptinf {arguments.command}: {visible(line)}")


def table_text(
    form: str, summary: Callable[[], Any], frame: pd.DataFrame, facts: Mapping[str, Any], rows: str
) -> str:
    """A table in a given format: its rows as CSV, rows and facts as JSON, or its summary."""
    if form == "csv":
        return csv_text(frame).rstrip("\n")
    if form == "json":
        return json_text({**facts, rows: frame.to_dict("records")})
    return str(getattr(summary(), f"as_{form}")())


def json_text(record: Any) -> str:
    """JSON with invisible characters escaped, and null for anything that is not a number."""
    text = json.dumps(_plain(record), allow_nan=False, ensure_ascii=False, indent=2)
    return _UNSEEN.sub(lambda char: f"\\u{ord(char[0]):04x}", text)


def _plain(value: Any) -> Any:
    """The value as built-in Python types, without NaN and infinities, which JSON does not support."""
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):  # NumPy's scalars have this method; JSON accepts only Python's own numbers.
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _holds(text: str) -> bool:
    """Whether the encoding of standard output can represent a text."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _ascii_json(text: str) -> str:
    """JSON in which all non-ASCII characters are written as JSON escapes, which differ from Python's."""
    return "".join(char if char.isascii() else json.dumps(char)[1:-1] for char in text)
