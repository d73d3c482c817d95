"""Rows that another version would write differently: what differs, and whether this is acceptable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from adaptinf.trial.journal_rows import Entry

_DECIDED = frozenset(("arm", "status", "propensities", "kit"))
"""Fields of an assignment that a version decides: only these may differ in a row that is accepted."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A row of a trial that the installed version would write differently.

    The difference reveals neither the participant nor the arm.

    Attributes
    ----------
    row : int
        Number of the row in the journal.
    kind : str
        Kind of the row, such as "assign".
    round : int or None
        Round of an assignment.
    fields : tuple of str
        Fields that differ, such as "arm" and "propensities"; empty if the row could not be recomputed at all.
    gap : float or None
        Largest absolute difference of propensities.

    Examples
    --------
    >>> from adaptinf.trial import Difference
    >>> print(Difference(7, "assign", 5, ("propensities",), 0.125))
    row 7 (assign, round 5): propensities, by up to 0.125
    """

    row: int
    kind: str
    round: int | None
    fields: tuple[str, ...]
    gap: float | None

    @property
    def may_stand(self) -> bool:
        """Whether the row is an assignment of which only the decision differs."""
        return self.kind == "assign" and bool(self.fields) and _DECIDED.issuperset(self.fields)

    def __str__(self) -> str:
        what = ", ".join(self.fields) or "cannot be recomputed"
        where = self.kind if self.round is None else f"{self.kind}, round {self.round:,}"
        return f"row {self.row:,} ({where}): {what}{'' if self.gap is None else f', by up to {self.gap:.3g}'}"


def difference_of(number: int, said: Entry, again: Entry | None) -> Difference:
    """How a row differs from what this version decides; None if that could not be computed."""
    known = {} if again is None else again
    names = [] if again is None else [name for name in {**said, **known} if said.get(name) != known.get(name)]
    return Difference(number, said["kind"], said.get("round"), tuple(names), _gap(said, known))


def _gap(said: Entry, again: Entry) -> float | None:
    """Largest absolute difference of two rows of propensities."""
    rows: list[Any] = [entry.get("propensities") for entry in (said, again)]
    if any(row is None for row in rows) or len(rows[0]) != len(rows[1]):
        return None
    largest = max(abs(one - other) for one, other in zip(*rows, strict=True))
    return float(largest) or None
