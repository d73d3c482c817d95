"""What numbers must not be, in one list: for rows in memory and for queries that count in an engine."""

from __future__ import annotations

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
