"""Checks of arguments that the readers share."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any


def names_problems(name: str, values: Any) -> list[str]:
    """Say what is wrong with one name of a column, or several."""
    if isinstance(values, str):
        return []
    if isinstance(values, Collection) and all(isinstance(value, str) for value in values):
        return []
    return [f"{name} must be a name of a column or a list of them, got {values!r:.60}"]
