"""Calls for monitoring a trial."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal

from adaptinf.errors import MissingDependencyError
from adaptinf.service.bodies import PlanChange
from adaptinf.service.monitoring.answers import Events, Looks, Planned, Standing
from adaptinf.service.monitoring.events import (
    alarms,
    events,
    look_due,
    look_taken,
    looks,
    plan_amended,
)
from adaptinf.service.requested import Act
from adaptinf.service.roles import BY_NAME, Call
from adaptinf.trial import Trial
from adaptinf.trial.planned_looks import Due

try:
    from fastapi import FastAPI, Query, Request
    from fastapi.responses import Response
except ImportError as error:
    raise MissingDependencyError("a trial over HTTP", "FastAPI", "serve") from error

PARAMETERS = frozenset({"after", "limit"})
_LARGEST, _PAGE = 2**53, 500
_After = Annotated[int, Query(ge=0, le=_LARGEST, description="Number of the last event already received.")]
_Limit = Annotated[int, Query(ge=1, le=_PAGE, description="Largest number of events in the answer.")]
Ask = Callable[[Request, Call, Act], Awaitable[Any]]
Answer = Callable[[Request, str, Act], Awaitable[Response]]


def _role(request: Request) -> Literal["monitor", "statistician", "operator"]:
    token, _ = request.scope["holder"]
    found: Literal["monitor", "statistician", "operator"] = token.role
    return found


def add_watching(app: FastAPI, trial: Trial, ask: Ask, answer: Answer, on: bool) -> None:
    """Add the calls; `ask` and `answer` ask the trial, and `on` states whether alarms are raised."""

    @app.get(BY_NAME["events"].path, response_model=Events)
    async def listed(request: Request, after: _After = 0, limit: _Limit = 100) -> Response:
        return await answer(request, "events", events(trial, _role(request), after, limit))

    @app.get(BY_NAME["alarms"].path, response_model=Standing)
    async def alarmed(request: Request) -> Response:
        return await answer(request, "alarms", alarms(_role(request), on))

    @app.get(BY_NAME["looks"].path, response_model=Looks)
    async def looked(request: Request) -> Response:
        return await answer(request, "looks", looks(_role(request)))

    @app.post(BY_NAME["look"].path, response_model=Looks)
    async def look(request: Request) -> Response:
        # Computed in a thread apart from the writer, for which participants would have to wait.
        due = await ask(request, BY_NAME["look"], look_due)
        ahead = await asyncio.to_thread(due.computed) if isinstance(due, Due) else None
        return await answer(request, "look", look_taken(_role(request), ahead))

    @app.post(BY_NAME["amend_plan"].path, response_model=Planned)
    async def changed(request: Request, body: PlanChange) -> Response:
        act = plan_amended(body.looks, body.reason, body.by, body.blinded, body.horizon)
        return await answer(request, "amend_plan", act)
