"""What is said of the best of several estimates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from adaptinf.inference.results import Results


@dataclass(frozen=True, kw_only=True)
class WinnerInterval:
    """The best of several estimates, with an interval that knows that it was picked.

    Attributes
    ----------
    winner : label
        Which one it is: its label, or its position.
    against : label or None
        The one that it is compared with; None where the numbers are of the winner itself.
    estimate, std_error : float
        What was estimated for it, or for the difference; too high on average, as it was picked for that.
    median_unbiased : float
        Estimate that is too high as often as too low, given which one won.
    low, high : float
        Limits of the interval.
    naive : (float, float)
        The usual interval, which takes no notice of the choice.
    method : {"hybrid", "conditional", "projection"}
        How it was made.
    alpha : float
        One minus the nominal level.
    note : str
        What to know of it; empty where there is nothing.

    Examples
    --------
    >>> import adaptinf as ai
    >>> found = ai.winner_interval([2.0, 1.9], [[1.0, 0.0], [0.0, 1.0]])
    >>> found.winner, round(found.low, 2), round(found.high, 2)
    (0, -1.02, 3.12)
    """

    winner: Any
    estimate: float
    std_error: float
    median_unbiased: float
    low: float
    high: float
    naive: tuple[float, float]
    method: str
    alpha: float
    note: str = ""
    against: Any = None

    def __str__(self) -> str:
        level = f"{100.0 * (1.0 - self.alpha):g}%"
        lines = [
            f"Winner: {self.winner!r}" + ("" if self.against is None else f", against {self.against!r}"),
            f"  estimate            {self.estimate:.6g} (standard error {self.std_error:.4g})",
            f"  median-unbiased     {self.median_unbiased:.6g}",
            f"  {level + ' interval':<19} {self.low:.6g} to {self.high:.6g} ({self.method})",
            f"  without the choice  {self.naive[0]:.6g} to {self.naive[1]:.6g}",
        ]
        return "\n".join([*lines, *([f"  {self.note}"] if self.note else [])])


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class WinnerResults(Results):
    """The mean of the best arm, or its difference from another.

    Parameters
    ----------
    winner : label
        Which arm it is.
    against : label or None
        The arm that it is compared with.
    means : Results
        The estimates of all arms.
    **others
        As for `Results`.
    """

    winner: Any
    against: Any = None
    means: Results
