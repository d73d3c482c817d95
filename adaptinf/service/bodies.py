"""Bodies of requests and answers, as the OpenAPI document describes them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from adaptinf.errors import MissingDependencyError

try:
    from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr
except ImportError as error:
    raise MissingDependencyError("a trial over HTTP", "FastAPI", "serve") from error

_LARGEST, MOST = 2**53, 500
"""The largest whole number that all readers of JSON can tell from its neighbours; most requests in a list."""


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


class Outcome(_Body):
    """The outcome of a decision; null if it will never arrive."""

    decision: Annotated[StrictInt, Field(ge=1, le=_LARGEST)]
    reward: _Number | None


class Unblinding(_Body):
    """A participant whose arm is revealed in an emergency."""

    unit: _Unit
    reason: _Reason
    by: _Reason


class State(_Body):
    """Whether participants are assigned."""

    state: Literal["open", "paused"]
    reason: _Reason
    by: _Reason


Assignments = Annotated[list[Assignment], Field(min_length=1, max_length=MOST)]
Outcomes = Annotated[list[Outcome], Field(min_length=1, max_length=MOST)]
Names = frozenset(name for body in (Assignment, Outcome, Unblinding, State) for name in body.model_fields)


class Assigned(BaseModel):
    """The arm of a participant."""

    id: int
    arm: Any
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
    unrepeatable: int
    rows: int
    head: str


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
    """A problem, as RFC 9457 describes it; `code` is one of a fixed list."""

    type: str
    title: str
    status: int
    code: str
    fields: list[str] = []
