"""The calls of the service, and their OpenAPI document."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from adaptinf.errors import MissingDependencyError
from adaptinf.service.bodies import (
    Allocation,
    Amendment,
    Assigned,
    Assignment,
    Assignments,
    Delivered,
    Delivery,
    Loss,
    Names,
    Outcome,
    Outcomes,
    Recorded,
    Retired,
    Site,
    SiteAdded,
    SiteStanding,
    Standing,
    State,
    Stock,
    Told,
    Turned,
    Unblinding,
)
from adaptinf.service.figures import MEDIA, Figures
from adaptinf.service.gate import Gate, told
from adaptinf.service.holders import Holders
from adaptinf.service.libreclinica import CALLS as LIBRECLINICA
from adaptinf.service.libreclinica import add_libreclinica
from adaptinf.service.monitoring.events import alarm_states
from adaptinf.service.monitoring.tasks import watched
from adaptinf.service.monitoring.watching import PARAMETERS, add_watching
from adaptinf.service.pages.site import pages
from adaptinf.service.problems import MEDIA as PROBLEM
from adaptinf.service.problems import PROBLEMS, Problem, refused
from adaptinf.service.requested import (
    Act,
    allocation_of,
    amended,
    assigned,
    recorded,
    status_of,
    turned,
    unblinded,
)
from adaptinf.service.roles import BY_NAME, BY_PLACE, OPEN, Call
from adaptinf.service.settings import NOTHING, Settings
from adaptinf.service.supply_requests import kit_retired, kits_added, site_added, stock_for
from adaptinf.service.writer import Writer
from adaptinf.trial import Trial
from adaptinf.trial.access import rehearse
from adaptinf.trial.replay import Replay
from adaptinf.trial.served_rows import Token
from adaptinf.trial.supplies.supply import named_at
from adaptinf.version import __version__

try:
    from fastapi import FastAPI, Header, Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse, Response
    from starlette.exceptions import HTTPException
except ImportError as error:
    raise MissingDependencyError("a trial over HTTP", "FastAPI", "serve") from error

_KEY, _LONGEST = "Idempotency-Key", 180
Key = Annotated[
    str,
    Header(
        alias=_KEY,
        max_length=_LONGEST,
        pattern=r"\S",
        description="Identifies the request: a request sent twice counts once and gets the same answer.",
    ),
]
_MANY = (
    "One object, or a list of at most 500. Each is accepted or refused separately; a refused one is answered "
    "by its problem."
)


def service(
    trial: Trial,
    log: Callable[[str], bool],
    settings: Settings = NOTHING,
    visits: Path | None = None,
    watches: bool = True,
) -> Gate:
    """The application that serves a trial; `log` receives the lines of the access log.

    Several workers share the file `visits`, and one of them watches: it raises alarms and sends webhooks.
    """
    figures = Figures()
    writer = Writer(trial, figures)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        rehearse(trial)
        await writer.start()
        async with watched(writer, figures, settings if watches else NOTHING):
            yield
        await writer.stop()

    # The pages of FastAPI load from other servers.
    app = FastAPI(
        title="adaptinf trial",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    _add_requests(app, writer)
    _add_views(app, writer)
    ask, answer = partial(_ask_once, writer), partial(_answer, writer)
    add_watching(app, writer.trial, ask, answer, settings.alarms is not None)
    _add_supplies(app, writer)
    _add_open(app, writer, figures, settings.alarms is not None)
    _add_problems(app)
    _describe(app)
    holders = Holders(writer)
    site = pages(trial, writer, holders, visits)
    if settings.libreclinica is None:
        return Gate(app, site, holders, figures, log)
    add_libreclinica(app, settings.libreclinica, ask)
    return Gate(app, site, holders, figures, log, LIBRECLINICA)


async def _asked(writer: Writer, request: Request, name: str, acts: Sequence[Act]) -> list[Any]:
    _, digest = request.scope["holder"]
    call = BY_NAME[name]
    return await writer.ask(acts, digest, call.roles, call.sited)


def _holder(request: Request) -> Token:
    token: Token = request.scope["holder"][0]
    return token


def _at(token: Token, site: str | None, make: Callable[[str | None], Act]) -> Act:
    """An action at the site of a token or, if the token is for all sites, at the stated site."""
    if token.site is not None and site not in (None, token.site):
        return _elsewhere
    return make(site if token.site is None else token.site)


def _elsewhere(_: Replay) -> Any:
    raise refused("other-site")


async def _ask_once(writer: Writer, request: Request, call: Call, act: Act) -> Any:
    _, digest = request.scope["holder"]
    (answer,) = await writer.ask([act], digest, call.roles, call.sited)
    return answer


async def _answer(writer: Writer, request: Request, name: str, act: Act) -> Response:
    return _one(await _asked(writer, request, name, [act]))


def _one(answers: list[Any]) -> Response:
    (answer,) = answers
    return told(answer) if isinstance(answer, Problem) else JSONResponse(answer)


def _all(answers: list[Any]) -> Response:
    """The answers to a list; a problem of the service itself is the answer to the whole list."""
    first = answers[0]
    if isinstance(first, Problem) and first.status in (401, 403, 503):
        return told(first)
    return JSONResponse([one.content() if isinstance(one, Problem) else one for one in answers])


def _add_requests(app: FastAPI, writer: Writer) -> None:
    """Calls that carry a key."""

    @app.post(BY_NAME["assign"].path, response_model=Assigned | list[Assigned | Told], description=_MANY)
    async def assign(request: Request, body: Assignment | Assignments, key: Key) -> Response:
        token = _holder(request)

        def act(one: Assignment, own: str) -> Act:
            # The same key at another site is another key.
            whole = named_at(token.site, own)
            return _at(token, one.site, lambda site: assigned(one.unit, one.context, whole, site))

        if isinstance(body, Assignment):
            return await _answer(writer, request, "assign", act(body, key))
        acts = [act(one, f"{key}/{place}") for place, one in enumerate(body)]
        return _all(await _asked(writer, request, "assign", acts))

    @app.post(BY_NAME["record"].path, response_model=Recorded | list[Recorded | Told], description=_MANY)
    async def record(request: Request, body: Outcome | Outcomes, key: Key) -> Response:
        site = _holder(request).site
        whole = named_at(site, key)
        if isinstance(body, Outcome):
            act = recorded(body.decision, body.reward, whole, site)
            return await _answer(writer, request, "record", act)
        acts = [
            recorded(one.decision, one.reward, f"{whole}/{place}", site) for place, one in enumerate(body)
        ]
        return _all(await _asked(writer, request, "record", acts))

    @app.post(BY_NAME["amend"].path, response_model=Recorded)
    async def amend(request: Request, body: Amendment, key: Key) -> Response:
        site, why = _holder(request).site, (body.reason, body.by)
        act = amended(body.decision, body.reward, named_at(site, key), *why, site)
        return await _answer(writer, request, "amend", act)


def _add_views(app: FastAPI, writer: Writer) -> None:
    """Calls about the trial as a whole, and about one participant."""

    @app.get(BY_NAME["status"].path, response_model=Standing | SiteStanding)
    async def status(request: Request) -> Response:
        return await _answer(writer, request, "status", status_of(writer.trial, _holder(request).site))

    @app.get(BY_NAME["allocation"].path, response_model=Allocation)
    async def allocate(request: Request) -> Response:
        return await _answer(writer, request, "allocation", allocation_of(_holder(request).site))

    @app.post(BY_NAME["state"].path, response_model=Turned)
    async def state(request: Request, body: State) -> Response:
        return await _answer(writer, request, "state", turned(body.state, body.reason, body.by))

    @app.post(BY_NAME["unblind"].path, response_model=Assigned)
    async def unblind(request: Request, body: Unblinding) -> Response:
        why = body.reason, body.by
        act = _at(_holder(request), body.site, lambda site: unblinded(body.unit, *why, site))
        return await _answer(writer, request, "unblind", act)


def _add_supplies(app: FastAPI, writer: Writer) -> None:
    """Calls about sites and kits."""

    @app.post(BY_NAME["add_site"].path, response_model=SiteAdded)
    async def add_site(request: Request, body: Site, key: Key) -> Response:
        return await _answer(writer, request, "add_site", site_added(body.site, key, body.by))

    @app.post(BY_NAME["add_kits"].path, response_model=Delivered)
    async def add_kits(request: Request, body: Delivery, key: Key) -> Response:
        arm_of = {one.kit: one.arm for one in body.kits}
        if len(arm_of) < len(body.kits):
            return told(Problem("kits-unfit"))
        act = kits_added(body.site, arm_of, key, body.by)
        return await _answer(writer, request, "add_kits", act)

    @app.post(BY_NAME["retire_kit"].path, response_model=Retired)
    async def retire_kit(request: Request, body: Loss, key: Key) -> Response:
        act = kit_retired(body.kit, key, body.reason, body.by)
        return await _answer(writer, request, "retire_kit", act)

    @app.get(BY_NAME["stock"].path, response_model=list[Stock])
    async def stock(request: Request) -> Response:
        return await _answer(writer, request, "stock", stock_for(_holder(request)))


def _add_open(app: FastAPI, writer: Writer, figures: Figures, on: bool) -> None:
    """Calls without a token."""

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/readyz")
    async def readyz() -> Response:
        return _one([await writer.look() or {"status": "ready"}])

    @app.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def metrics(request: Request) -> Response:
        if "holder" not in request.scope:
            return Response(figures.text(), media_type=MEDIA)
        token = _holder(request)
        acts = [status_of(writer.trial, token.site), alarm_states(token.role, on and token.site is None)]
        counts, alarms = await _asked(writer, request, "status", acts)
        text = b"" if isinstance(counts, Problem) else figures.text(counts, alarms)
        return Response(text, media_type=MEDIA) if text else told(counts)


def _add_problems(app: FastAPI) -> None:
    """Answers with fixed texts to requests that no call accepts."""

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        places = [each["loc"] for each in error.errors()]
        if any(place[:1] == ("header",) for place in places):
            return told(Problem("key-missing"))
        if any(place[:1] == ("query",) for place in places):
            return told(Problem("invalid-query", sorted({str(place[-1]) for place in places} & PARAMETERS)))
        # Other names were written by the client.
        fields = sorted({str(part) for place in places for part in place} & Names)
        return told(Problem("invalid-body", fields))

    @app.exception_handler(HTTPException)
    async def unknown(_: Request, error: HTTPException) -> Response:
        codes = {404: "not-found", 405: "method-not-allowed"}
        answer = told(Problem(codes.get(error.status_code, "invalid-body")))
        answer.headers.update(error.headers or {})
        return answer

    @app.exception_handler(Exception)
    async def failed(_: Request, __: Exception) -> Response:
        return told(Problem("internal"))


def _describe(app: FastAPI) -> None:
    """Add tokens and problems to the OpenAPI document."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema:
            return app.openapi_schema
        found = made()
        parts = found.setdefault("components", {})
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        parts.setdefault("schemas", {})["Told"] = Told.model_json_schema()
        for path, methods in found["paths"].items():
            for method, described in methods.items():
                _complete(described, method.upper(), path)
        return found

    app.openapi = openapi  # type: ignore[method-assign]


def _complete(described: dict[str, Any], method: str, path: str) -> None:
    call = BY_PLACE.get((method, path))
    described["summary"] = call.what.capitalize() if call else OPEN[path].capitalize()
    content = {PROBLEM: {"schema": {"$ref": "#/components/schemas/Told"}}}
    if path == "/metrics":
        described["security"] = [{}, {"token": []}]
    if call:
        described["security"] = [{"token": []}]
        described["x-roles"] = list(call.roles)
    described["responses"].pop("422", None)
    places = {one["in"] for one in described.get("parameters", ())}
    for status in _statuses(call is not None, method == "POST", path, "query" in places):
        codes = [code for code, (number, _) in PROBLEMS.items() if number == status]
        described["responses"][str(status)] = {"description": ", ".join(codes), "content": content}


def _statuses(token: bool, body: bool, path: str, query: bool) -> list[int]:
    """Statuses of the problems that a call may report."""
    found = [401, 403, 429, 503] if token or path == "/metrics" else [503] if path == "/readyz" else []
    asked = [400, 404, 408, 409, 410, 413, 422] if body else [422] if query else []
    return sorted([*found, 500, *asked])
