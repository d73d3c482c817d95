"""Reports: one HTML file on the data collected, their soundness, the valid methods, and the results.

The command line lists a log's arms with a module in this package, so all others are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adaptinf.reports.writing import report

__all__ = ["report"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module("adaptinf.reports.writing"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
