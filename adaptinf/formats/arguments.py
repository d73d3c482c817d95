"""Checks of arguments that the readers share."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

from adaptinf.errors import ParameterError


def as_path(subject: str, name: str, value: Any, more: str = "") -> Path:
    """Path that a user gave."""
    try:
        return Path(os.fsdecode(os.fspath(value)))
    except TypeError:
        kinds = f"the name of a file or folder{more}"
        raise ParameterError(subject, [f"{name} must be {kinds}, got {type(value).__name__}"]) from None


def names_problems(name: str, values: Any) -> list[str]:
    """Say what is wrong with one name of a column, or several."""
    if isinstance(values, str):
        return []
    if isinstance(values, Collection) and all(isinstance(value, str) for value in values):
        return []
    return [f"{name} must be a name of a column or a list of them, got {values!r:.60}"]
