"""Sums by batch and arm from a warehouse: the second input to inference, besides a log of rows.

Every table of results can be computed from sums. Only code that adds up rows needs an engine, so `aggregate`
is imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from adaptinf.sums.sums_table import NEEDS_ROWS, Sums

if TYPE_CHECKING:
    from adaptinf.sums.engines import aggregate

__all__ = ["NEEDS_ROWS", "Sums", "aggregate"]


def __getattr__(name: str) -> Any:
    if name != "aggregate":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = import_module("adaptinf.sums.engines").aggregate
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
