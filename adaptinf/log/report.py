"""A log's report on itself: how its number of rounds was determined, and how its input was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adaptinf.claims.logs import readings as claims
from adaptinf.claims.logs import stopping
from adaptinf.log.traits import LEFT_OUT, PLAN, PLANNED, STOP_REASON
from adaptinf.texts import visible_lines

FIXED, PLANNED_RULE = "fixed", "planned"
STOPPINGS = (FIXED, "data-chosen", PLANNED_RULE)
_LONGEST_REASON = 200
"""Number of characters of a reason that are shown."""


@dataclass(frozen=True, slots=True)
class Stopping:
    """A log's statement on how its number of rounds was determined."""

    said: str | None
    rounds: int
    """Number of rounds, including those no longer in the log."""
    planned: int | None = None
    """Number of rounds declared, if there were fewer."""
    reason: str = ""
    """The stated reason for stopping the trial."""
    complete: bool = True
    """Whether no reward is missing, as confidence sequences require."""
    by_looks: bool = False
    """Whether the log is that of a trial with a plan that accounts for its looks."""

    @classmethod
    def of(cls, log: Any, *, covered: bool = False) -> Stopping:
        """The report of a log, sums or a public part; `covered` restricts it to the covered part."""
        parameters = {} if log.design is None else log.design.parameters
        left_out = 0 if covered else int(parameters.get(LEFT_OUT, 0)) + log.omitted
        reason = "" if covered else str(parameters.get(STOP_REASON, ""))
        complete = covered or getattr(log, "missing", None) is None
        by_looks = log.stopping == PLANNED_RULE and PLAN in parameters
        return cls(log.stopping, log.n_rounds + left_out, parameters.get(PLANNED), reason, complete, by_looks)

    @property
    def counted(self) -> str:
        """The number of rounds, and the total if that is known."""
        of = "" if self.planned is None else f" of {self.planned:,}"
        return f"{self.rounds:,}{of} rounds"

    @property
    def shown_reason(self) -> str:
        """The reason, or the beginning of a long one."""
        return (
            self.reason if len(self.reason) <= _LONGEST_REASON else f"{self.reason[: _LONGEST_REASON - 3]}..."
        )

    @property
    def told(self) -> str:
        """A short form, for a list of the log's statements about itself."""
        if self.said is None:
            return stopping.UNSTATED()
        if self.said == FIXED:
            return self.said
        early = "" if self.planned is None else f", after {self.counted}"
        reason = f" ({self.shown_reason!r})" if self.reason else ""
        return f"{self.said}{early}{reason}"


KINDS = (
    *("order", "dates", "batches", "outcome", "propensities", "labels"),
    *("dialect", "dropped", "left out", "caution"),
)
"""Order: rows were sorted, or are tied. Dates: text was converted to times. Batches: times were truncated to
periods. Outcome: text was converted to numbers. Propensities: some were renormalised, or replaced by 0.
Labels: they were kept as written although they could be read as numbers or missing values. Dialect: how the
text of a file was decoded and divided. Dropped: rows that are in the input but not in the log. Left out:
columns, features or records that were not requested. Caution: what the input cannot determine."""
_SILENT = ("left out", "dialect")
_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Reading:
    """One action of a reader; its kind is one of `KINDS`."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class LogReport:
    """How a reader treated its input. A report is returned by `AdaptiveLog.report`, and can be printed.

    Attributes
    ----------
    source : str
        The source, such as ``"CSV file visits.csv"``; ``"arrays"`` if a design created the log.
    n_rounds : int
        Rounds of the log.
    pulls : dict of label to int
        Rounds of every arm, chosen or not.
    outcome : str
        The meaning of the rewards, given by the name of their column.
    readings : tuple of Reading
        Actions of the reader (sorting, converting, dropping, leaving out), each with its reason.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import pandas as pd
    >>> visits = pd.DataFrame({"arm": ["a", "b", "a"], "answer": ["Y", "N", "N"]})
    >>> log = ai.AdaptiveLog(visits, action="arm", reward="answer", reading={"success": "Y"})
    >>> print(log.report)
    Read from a frame: 3 rounds
      rounds by arm: 'a' 2, 'b' 1
      outcome: column 'answer', 3 numbers from 0 to 1
      outcome: labels in reward column 'answer' were converted to numbers: 'Y' counts as 1, 'N' counts as 0
    """

    source: str
    n_rounds: int
    pulls: Mapping[Any, int]
    outcome: str
    readings: tuple[Reading, ...] = ()

    @property
    def lines(self) -> list[str]:
        """A description of the input and how it was read, without each arm's rounds."""
        return [
            f"Read from {self.source}: {self.n_rounds:,} rounds",
            f"  outcome: {self.outcome}",
            *(f"  {reading.kind}: {reading.text}" for reading in self.readings),
        ]

    def __str__(self) -> str:
        pulls = list(self.pulls.items())
        arms = ", ".join(f"{arm!r} {count:,}" for arm, count in pulls[:_SHOWN])
        more = f" and {len(pulls) - _SHOWN} more" if len(pulls) > _SHOWN else ""
        first, *others = self.lines
        return visible_lines([first, f"  rounds by arm: {arms}{more}", *others])

    __repr__ = __str__


def reading_notes(readings: tuple[Reading, ...]) -> tuple[str, ...]:
    """One sentence for the notes of tables if a reader changed or dropped something; otherwise empty."""
    told = [reading.text for reading in readings if reading.kind not in _SILENT]
    return (claims.READ(readings="; ".join(told)),) if told else ()


def encode_readings(source: str, readings: tuple[Reading, ...]) -> dict[str, Any]:
    """Source and readings as plain values for a file."""
    return {"source": source, "readings": [[reading.kind, reading.text] for reading in readings]}


def decode_readings(stored: Any) -> tuple[str, tuple[Reading, ...]]:
    """The inverse of `encode_readings`; raises ValueError for other input."""
    known = isinstance(stored, Mapping) and set(stored) == {"source", "readings"}
    listed = stored["readings"] if known else None
    if not isinstance(listed, list) or not isinstance(stored["source"], str):
        raise ValueError("the report must have a source and a list of readings")
    for entry in listed:
        pair = isinstance(entry, list) and len(entry) == 2 and all(isinstance(part, str) for part in entry)
        if not pair or entry[0] not in KINDS:
            raise ValueError(f"{entry!r:.80} is not a reading")
    return stored["source"], tuple(Reading(kind, text) for kind, text in listed)
