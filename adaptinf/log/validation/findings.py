"""A place to gather all that is found wrong with a frame before one error is raised."""

from __future__ import annotations

import numpy as np

from adaptinf.errors import LogValidationError, Problem
from adaptinf.log.report import Reading
from adaptinf.typing import BoolArray, FloatArray, IntArray

_ROWS_KEPT = 100


class Findings:
    """Problems in the order in which they were found, and what was done to the frame.

    Where `order` is given, rows were put in it, and problems name the rows as the frame has them.
    """

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.readings: list[Reading] = []
        self.order: IntArray | None = None

    def tell(self, kind: str, text: str) -> None:
        """Add something that was done, for the log's report."""
        self.readings.append(Reading(kind, text))

    def add(self, code: str, message: str) -> None:
        """Add a problem that is not of single rows."""
        self.problems.append(Problem(code, message))

    def add_rows(self, code: str, message: str, offending: BoolArray) -> None:
        """Add a problem of the rows where `offending` (shape (T,)) is true; nothing if there is none."""
        if offending.any():
            rows = np.flatnonzero(offending)
            rows = rows if self.order is None else np.sort(self.order[rows])
            kept = tuple(rows[:_ROWS_KEPT].tolist())
            self.problems.append(Problem(code, message, kept, int(rows.size)))

    def counted(self, counts: FloatArray) -> Findings:
        """Findings in a table whose rows each count others: of these they tell the number; counts (R,)."""
        return _Counted(self, counts)

    def raise_if_any(self, source: str = "the log") -> None:
        """Raise one `LogValidationError` with everything that was added."""
        if self.problems:
            raise LogValidationError(self.problems, source)


class _Counted(Findings):
    """Findings of rows that each stand for several, among the problems of others."""

    def __init__(self, findings: Findings, counts: FloatArray) -> None:
        super().__init__()
        self.problems, self.readings, self._counts = findings.problems, findings.readings, counts

    def add_rows(self, code: str, message: str, offending: BoolArray) -> None:
        """Add a problem with the number of rows that it is of."""
        if offending.any():
            total = int(self._counts[offending].sum())
            self.add(code, f"{message} in {total:,} {'row' if total == 1 else 'rows'}")
