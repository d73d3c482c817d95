"""Lines of text files, one at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from adaptinf.errors import ParameterError
from adaptinf.log.storage.log_files import check_regular

_ENDS = re.compile("\r\n|\n|\r")


def lines_of(path: Path, subject: str) -> Iterator[str]:
    """Lines with their ends; only newlines end a line, as JSON text may hold others."""
    check_regular(path, subject)
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                problem = f"{path} cannot be read as UTF-8 text: line {number}, {error.reason}"
                raise ParameterError(subject, [problem]) from error
            yield line


def numbered_lines(path: Path, subject: str) -> Iterator[tuple[int, str]]:
    """Lines with text in them, and their numbers; a carriage return alone ends a line too."""
    number = 0
    for whole in lines_of(path, subject):
        for line in _ENDS.split(whole.removesuffix("\n").removesuffix("\r")):
            number += 1
            if line and not line.isspace():
                yield number, line
