"""Retention of the names in a trial after its end, and their destruction."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from adaptinf.errors import ParameterError
from adaptinf.parameters import Count, refuse
from adaptinf.sessions.session_memory import erased_steps, unit_of
from adaptinf.trial.journal_rows import Entry
from adaptinf.trial.operator_actions import FINISHED, RETENTION, Acts, act_problems

_PERIOD = Count(0, 36_500)
REMAINS = (
    "Arms, propensities, outcomes and the times of all rows remain. Together with other records, such as a "
    "calendar of visits, they can still identify a participant. Backups, exports and logs made earlier are "
    "not changed."
)


@dataclass(frozen=True, slots=True)
class Retention:
    """The period for which names, contexts and keys are kept, and how many remain.

    Attributes
    ----------
    days : int or None
        Days after the end of the trial; None if no period was declared.
    finished : str or None
        When the trial ended, in UTC.
    due : str or None
        From when `expire` destroys them.
    left : int
        Number of participants whose names, contexts and keys can be read.
    erased : int
        Number of participants whose names, contexts and keys were destroyed.
    remains : str
        The data that remain, which can still identify participants.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import tempfile
    >>> path = f"{tempfile.mkdtemp()}/trial.db"
    >>> with ai.Trial.create(path, ai.designs.Thompson(), arms=["a", "b"], horizon=100) as trial:
    ...     trial.set_retention(0, reason="the protocol, section 9", by="data protection")
    ...     decision = trial.assign("participant 1", key="visit 1")
    ...     trial.finish("the end of the year", by="the sponsor")
    ...     before = trial.retention().left
    ...     before, trial.expire(by="data protection").left
    (1, 0)
    """

    days: int | None
    finished: str | None
    due: str | None
    left: int
    erased: int
    remains: str = REMAINS


def retention_of(acts: Acts) -> Retention:
    """The period that was declared last, and the number of names that remain."""
    days = next((act["days"] for act in reversed(acts.acts) if act["kind"] == RETENTION), None)
    ends = [act["time"] for act in acts.acts if act["kind"] == "finish"]
    finished = ends[0] if ends else None
    due = None
    if days is not None and finished is not None:
        due = (datetime.fromisoformat(finished) + timedelta(days=days)).isoformat(timespec="seconds")
    gone = len(erased_steps(acts.session))
    return Retention(days, finished, due, acts.session.rounds - gone, gone)


def declared(acts: Acts, days: Any, reason: Any, by: Any) -> Entry:
    """The entry that declares a period."""
    problems = [*_PERIOD("days", days), *act_problems(reason, by)]
    refuse("set_retention", [*problems, *([acts.closed] if acts.closed else [])])
    return {"kind": RETENTION, "days": int(days), "reason": reason, "by": by}


def expired(acts: Acts, by: Any) -> Iterator[tuple[int, Entry | None]]:
    """Erase every participant whose period has ended."""
    refuse("expire", act_problems("the end of the period", by))
    kept = retention_of(acts)
    if kept.days is None:
        raise ParameterError("expire", ["no retention period was declared: declare one with set_retention"])
    if acts.state != FINISHED or kept.due is None:
        raise ParameterError(
            "expire", ["the trial is not finished, and its retention period begins at its end"]
        )
    if datetime.now(UTC) < datetime.fromisoformat(kept.due):
        raise ParameterError("expire", [f"the names must be kept until {kept.due}"])
    reason = f"kept for {kept.days:,} days after the end, as declared"
    erased = erased_steps(acts.session)
    for step in range(acts.session.rounds):
        if step not in erased:
            key = f"expire {secrets.token_hex(16)}"
            yield acts.erase(unit_of(acts.session, step + 1), key, reason, by)
