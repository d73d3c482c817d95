"""What is found wrong with a frame, gathered before one error is raised; and what numbers must not be."""

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


EXACT = 2**53
"""From here on float64 has not every whole number."""
SUM_TOLERANCE = 1e-6
"""By how much a row of propensities may miss 1."""
MATCH_TOLERANCE = 1e-6
"""By how much, of it, the chosen arm's propensity may differ from the arm's own column."""
FAULTS = {
    "missing": "has no value (NaN or None)",
    "infinite": "is infinite",
    "inexact": "has numbers that float64 cannot hold exactly",
    "rounded": (
        "has numbers of 2**53 or more in size: beside fractions, whole numbers of that size are rounded "
        "before a log sees them; measure rewards in a larger unit"
    ),
    "propensities-sum": f"do not sum to 1 (tolerance {SUM_TOLERANCE:g})",
    "chosen-propensity-zero": "the chosen arm has a propensity of 0 in its column",
    "propensity-mismatch": (
        f"the propensity of the chosen arm differs from the arm's own column (relative tolerance "
        f"{MATCH_TOLERANCE:g})"
    ),
}
"""What is said of a column, by the fault; a code is the fault and the role, as in missing-reward."""


def inexact_unit(limit: int) -> str:
    """What is said of units that are floats from a limit on, which is a power of 2."""
    size = f"2**{limit.bit_length() - 1}"
    return f"has floats of {size} or more, each of which stands for several numbers: read it as text"


def outside(lowest: str) -> str:
    """What is said of propensities outside an interval, whose lower end is ``"(0"`` or ``"[0"``."""
    return f"has values outside {lowest}, 1]"


def out_of_range(low: float, high: float) -> str:
    """What is said of rewards outside their range."""
    return f"rewards outside reward_range [{low:g}, {high:g}]; correct them or widen the range"
