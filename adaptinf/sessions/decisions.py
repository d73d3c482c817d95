"""What a session answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Decision:
    """An arm for a participant.

    Attributes
    ----------
    id : int
        What `Session.record` is told.
    arm : label
        The arm that was assigned.
    round : int
        The round, counted from 1.

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.designs.UCB().session(["a", "b"], horizon=10).assign()
    Decision(id=1, arm='a', round=1)
    """

    id: int
    arm: Any
    round: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """An outcome that was recorded.

    Attributes
    ----------
    id : int
        Of the decision.
    reward : float or None
        The reward; None for an outcome that will never come.
    in_time : bool
        Whether the design learns from it; the log has it in any case.

    Examples
    --------
    >>> import adaptinf as ai
    >>> session = ai.designs.UCB().session(["a", "b"], horizon=10)
    >>> session.record(session.assign().id, 1.0)
    Outcome(id=1, reward=1.0, in_time=True)
    """

    id: int
    reward: float | None
    in_time: bool
