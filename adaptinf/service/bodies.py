"""Bodies of requests and answers, as described by the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from adaptinf.errors import MissingDependencyError

try:
    from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr
except ImportError as error:
    raise MissingDependencyError("a trial over HTTP", "FastAPI", "serve") from error

_LARGEST, MOST = 2**53, 500
"""The largest whole number that every JSON reader represents exactly; most requests in a list."""


def _said(text: str) -> str:
    if not text.strip():
        raise ValueError("blank")
    return text


_Name = Annotated[StrictStr, Field(max_length=200, pattern=r"\S"), AfterValidator(_said)]
_Reason = Annotated[StrictStr, Field(max_length=1_000, pattern=r"\S"), AfterValidator(_said)]
_Label = Annotated[StrictStr, Field(max_length=1_000)]
_Whole = Annotated[StrictInt, Field(ge=-_LARGEST, le=_LARGEST)]
_Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
_Unit = _Name | _Whole
_Row = Annotated[list[_Number], Field(max_length=10_000)]
_Context = (
    _Label | StrictBool | _Whole | _Number | _Row | Annotated[list[_Row], Field(max_length=1_000)] | None
)


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Assignment(_Body):
    """A participant to whom an arm is assigned."""

    unit: _Unit
    context: _Context = None
    site: _Name | None = None


class Outcome(_Body):
    """The outcome of a decision; null if it will never arrive."""

    decision: Annotated[StrictInt, Field(ge=1, le=_LARGEST)]
    reward: _Number | None


class Amendment(_Body):
    """The correct outcome of a decision for which another was recorded; null if it will never arrive."""

    decision: Annotated[StrictInt, Field(ge=1, le=_LARGEST)]
    reward: _Number | None
    reason: _Reason
    by: _Reason


class Unblinding(_Body):
    """A participant whose arm is revealed in an emergency."""

    unit: _Unit
    reason: _Reason
    by: _Reason
    site: _Name | None = None


class State(_Body):
    """Whether participants are assigned."""

    state: Literal["open", "paused"]
    reason: _Reason
    by: _Reason


class PlanChange(_Body):
    """All looks of the plan, with those already taken unchanged; for looks by date, days or dates."""

    looks: Annotated[list[_Number | _Name], Field(min_length=1, max_length=1_000)]
    reason: _Reason
    by: _Reason
    blinded: StrictBool = False
    horizon: Annotated[StrictInt, Field(ge=1, le=_LARGEST)] | None = None


class Site(_Body):
    """A site at which participants are assigned."""

    site: _Name
    by: _Reason


class Kit(_Body):
    """A kit and its arm."""

    kit: _Name
    arm: _Label | _Whole | _Number


class Delivery(_Body):
    """Kits that arrive at a site."""

    site: _Name
    kits: Annotated[list[Kit], Field(min_length=1, max_length=10_000)]
    by: _Reason


class Loss(_Body):
    """A kit that no one will receive, because it was lost or damaged or has expired."""

    kit: _Name
    reason: _Reason
    by: _Reason


Assignments = Annotated[list[Assignment], Field(min_length=1, max_length=MOST)]
Outcomes = Annotated[list[Outcome], Field(min_length=1, max_length=MOST)]
_BODIES = (Assignment, Outcome, Amendment, Unblinding, State, PlanChange, Site, Kit, Delivery, Loss)
Names = frozenset(name for body in _BODIES for name in body.model_fields)


class Assigned(BaseModel):
    """The arm of a participant, or the kit in a blinded trial; both after an unblinding."""

    id: int
    arm: Any = None
    kit: str | None = None
    round: int


class Recorded(BaseModel):
    """A recorded outcome."""

    id: int
    reward: float | None
    in_time: bool


class Standing(BaseModel):
    """State and counts of the trial."""

    design: str
    state: Literal["open", "paused", "finished"]
    rounds: int
    horizon: int
    pending: int
    erased: int
    restored: int
    copied: bool
    next_look: int | str | None
    unrepeatable: int
    version: str
    rows: int
    head: str


class SiteStanding(BaseModel):
    """State of the trial and counts of one site, for a token of this site."""

    site: str
    state: Literal["open", "paused", "finished"]
    rounds: int
    pending: int
    erased: int


class SiteAdded(BaseModel):
    """The site that was added."""

    site: str


class Delivered(BaseModel):
    """Number of kits that were added."""

    site: str
    kits: int


class Retired(BaseModel):
    """The kit that was retired."""

    kit: str


class Stock(BaseModel):
    """Kits at a site: of one arm for roles that see arms, otherwise of all arms."""

    site: str
    arm: Any = None
    in_stock: int
    given: int
    retired: int
    low: bool | None = None


class Taken(BaseModel):
    """Participants of one arm."""

    arm: Any
    assigned: int


class Allocation(BaseModel):
    """Participants by arm, and arms that are no longer assigned."""

    arms: list[Taken]
    removed: list[Any]


class Turned(BaseModel):
    """Whether participants are assigned."""

    state: Literal["open", "paused"]


class Told(BaseModel):
    """A problem as described by RFC 9457; `code` is from a fixed list."""

    type: str
    title: str
    status: int
    code: str
    fields: list[str] = []
