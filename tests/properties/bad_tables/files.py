"""A damaged file with the doors that it goes through."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from doors import (
    ROLES,
    SUMMED,
    Refused,
    Right,
    Use,
    aggregate_of,
    command_of,
    frame_of,
    in_engine,
    log_of,
    stdin_of,
)  # fmt: skip

Due = Right | Refused
NOT_SUMMED = ("who", "region", "x")
"""Columns that `aggregate` does not read."""
FLAGS = ("sort", "missing", "propensities", "round_propensities")
"""Options of reading that the command line has too."""


def uses_of_file(
    path: Path, due: Due, options: Mapping[str, Any] | None = None, others: Mapping[str, Due] | None = None
) -> list[Use]:
    """A file through `read_log`, `aggregate` and the command line; `others` have another outcome."""
    asked = {**ROLES, **(options or {})}
    asked = {name: value for name, value in asked.items() if value is not None}
    runs = {
        "read_log": log_of(path, asked),
        "aggregate": aggregate_of(path, asked),
        "command line": command_of(path, asked),
    }
    known = dict(others or {})
    if isinstance(due, Refused) and any(each.startswith((r"\blines?\b", r"\[line ")) for each in due.named):
        known.setdefault("aggregate", Refused(in_engine(due.named)))
    return [Use(door, run, known.get(door, due)) for door, run in runs.items()]


def without(uses: Iterable[Use], *doors: str) -> list[Use]:
    """The uses of all other doors."""
    return [use for use in uses if use.door not in doors]


def uses_of_bytes(
    data: bytes, due: Due, options: Mapping[str, Any] | None = None, others: Mapping[str, Due] | None = None
) -> list[Use]:
    """Bytes through `read_log`, as they are and from standard input, there by the command line too."""
    asked = {name: value for name, value in {**ROLES, **(options or {})}.items() if value is not None}
    runs = {
        "bytes": log_of(data, asked),
        "standard input": stdin_of(data, log_of("-", asked)),
        "command line, standard input": command_of("-", asked, data),
    }
    return [Use(door, run, (others or {}).get(door, due)) for door, run in runs.items()]


def uses_of_frame(
    frame: Any, due: Due, options: Mapping[str, Any] | None = None, others: Mapping[str, Due] | None = None
) -> list[Use]:
    """A frame through `AdaptiveLog`, `read_log` and `aggregate`."""
    asked = {name: value for name, value in {**ROLES, **(options or {})}.items() if value is not None}
    runs = {
        "AdaptiveLog": frame_of(frame, asked),
        "read_log": log_of(frame, asked),
        "aggregate": aggregate_of(frame, asked),
    }
    return [Use(door, run, (others or {}).get(door, due)) for door, run in runs.items()]


def of_column(name: str, due: Due, good: Right) -> dict[str, Due]:
    """What is due where a door does not read the column that is damaged."""
    return {"aggregate": good} if name in NOT_SUMMED else {}


__all__ = ["FLAGS", "SUMMED", "of_column", "uses_of_bytes", "uses_of_file", "uses_of_frame", "without"]
