"""Answers about events, looks and alarms, as described by the OpenAPI document."""

from __future__ import annotations

from typing import Any

from adaptinf.errors import MissingDependencyError

try:
    from pydantic import BaseModel
except ImportError as error:
    raise MissingDependencyError("a trial over HTTP", "FastAPI", "serve") from error


class Event(BaseModel):
    """A row of the journal; further fields depend on the role of the token."""

    event: int
    time: str
    kind: str
    round: int | None = None
    arm: Any = None
    decision: int | str | None = None
    reward: float | None = None
    by: str | None = None
    reason: str | None = None
    token: int | None = None
    role: str | None = None
    alarm: str | None = None
    raised: bool | None = None
    hook: str | None = None
    site: str | None = None
    kit: str | None = None


class Events(BaseModel):
    """Events in order, and the number from which to continue."""

    events: list[Event]
    after: int


class Alarm(BaseModel):
    """An alarm that is raised."""

    alarm: str
    since: str


class Standing(BaseModel):
    """Alarms, and whether this service raises any."""

    on: bool
    alarms: list[Alarm]


class Look(BaseModel):
    """A look of the plan; only statisticians see more than the first four fields."""

    stage: int
    rounds: int
    ends: bool
    time: str
    decision: str | None = None
    statistic: float | None = None
    bound: float | None = None
    lost: int | None = None
    leading: Any = None
    rejected: list[Any] | None = None
    dropped: list[Any] | None = None
    continued_by: str | None = None
    continued_because: str | None = None


class Planned(BaseModel):
    """All looks of a plan after a change: numbers of participants, or days since the start."""

    looks: list[float]


class Looks(BaseModel):
    """Looks in order, and the number of participants, or the time, at the next look."""

    looks: list[Look]
    next: int | str | None
