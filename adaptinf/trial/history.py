"""What was done to a trial beside its requests: by whom, when and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adaptinf.texts import shown

ACTS = ("pause", "resume", "finish", "amend", "unblind", "remove_arm", "erase", "restore", "moved")
"""Kinds of rows that tell what somebody did."""
_LONGEST = 1_000


@dataclass(frozen=True, slots=True)
class Act:
    """What somebody did to a trial.

    Attributes
    ----------
    row : int
        Number of the row in the journal.
    time : str
        Of the clock at hand, in UTC.
    kind : {"pause", "resume", "finish", "amend", "unblind", "remove_arm", "erase", "restore", "moved"}
        What was done.
    reason : str or None
        Why; None where it was about a participant who was erased.
    by : str or None
        Who did it, where that was said.
    decision : int or None
        Id of the decision that it was done to.
    reward : float or None
        The amended outcome.
    arm : label or None
        The arm that was removed.
    head : str or None
        What `restore` was told as the last head of the lost file.
    runs : int or None
        What `restore` was told as the number of lost runs.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import tempfile
    >>> path = f"{tempfile.mkdtemp()}/trial.db"
    >>> with ai.Trial.create(path, ai.designs.Thompson(), arms=["a", "b"], horizon=100) as trial:
    ...     trial.pause("a batch was bad", by="Dr. Ames")
    ...     act = trial.history()[0]
    >>> act.kind, act.reason, act.by
    ('pause', 'a batch was bad', 'Dr. Ames')
    """

    row: int
    time: str
    kind: str
    reason: str | None = None
    by: str | None = None
    decision: int | None = None
    reward: float | None = None
    arm: Any = None
    head: str | None = None
    runs: int | None = None


def act_of(entry: Mapping[str, Any]) -> Act:
    """An act from its row."""
    return Act(**{name: entry[name] for name in Act.__dataclass_fields__ if name in entry})


def act_problems(reason: Any, by: Any) -> list[str]:
    """What is wrong with why something is done, and who does it."""
    return [
        f"{name} must be a text of at most {_LONGEST:,} characters, got {shown(value)}"
        for name, value in (("reason", reason), ("by", by))
        if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST
    ]
