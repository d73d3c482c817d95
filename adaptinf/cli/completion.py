"""Completions offered by a shell: commands, options, files, and the columns of the named file."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from adaptinf.cli.grammar import CommandParser

_COLUMN = "COLUMN"


def complete(parser: CommandParser) -> None:
    """Answer a completion request and exit; without argcomplete, do nothing."""
    try:
        import argcomplete
    except ImportError:
        return
    for action in _actions(parser):
        if action.metavar == _COLUMN:
            action.completer = columns  # type: ignore[attr-defined]
    argcomplete.autocomplete(parser)


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """All options of a parser and of its commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)


def columns(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    """Columns of the first named file; none if it cannot be read immediately."""
    files = getattr(parsed_args, "files", None)
    try:
        return [name for name in _columns_of(Path(files[0])) if name.startswith(prefix)] if files else []
    except (OSError, ValueError):
        return []


def _columns_of(path: Path) -> list[str]:
    if path.suffix.lower() in (".parquet", ".pq"):
        import pyarrow.parquet as pq

        return [str(name) for name in pq.read_schema(path).names]
    with path.open(encoding="utf-8-sig", newline="") as lines:
        return next(csv.reader([lines.readline()]), [])
