"""A place to gather all that is found wrong with a frame before one error is raised."""

from __future__ import annotations

import numpy as np

from adaptinf.errors import LogValidationError, Problem
from adaptinf.typing import BoolArray

_ROWS_KEPT = 100


class Findings:
    """Problems in the order in which they were found."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def add(self, code: str, message: str) -> None:
        """Add a problem that is not of single rows."""
        self.problems.append(Problem(code, message))

    def add_rows(self, code: str, message: str, offending: BoolArray) -> None:
        """Add a problem of the rows where `offending` (shape (T,)) is true; nothing if there is none."""
        if offending.any():
            rows = np.flatnonzero(offending)
            kept = tuple(rows[:_ROWS_KEPT].tolist())
            self.problems.append(Problem(code, message, kept, int(rows.size)))

    def raise_if_any(self, source: str = "the log") -> None:
        """Raise one `LogValidationError` with everything that was added."""
        if self.problems:
            raise LogValidationError(self.problems, source)
