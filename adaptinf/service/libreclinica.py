"""Randomisation for LibreClinica, in the format that its `RandomizeService` uses.

LibreClinica requests address, name and password from a registrar (`RandomizationRegistrar`), then asks
whether a participant has a code, and otherwise requests one: it sends forms with HTTP Basic, and the answers
are JSON. LibreClinica sends no key, so the participant's identifier serves as the key.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl

from adaptinf.errors import MissingDependencyError
from adaptinf.service.gate import told
from adaptinf.service.problems import Problem, refused
from adaptinf.service.requested import Act, assigned, known
from adaptinf.service.roles import Call
from adaptinf.service.settings import LibreClinica
from adaptinf.trial.journal_rows import Rows
from adaptinf.trial.replay import Replay
from adaptinf.trial.supplies.supply import named_at

try:
    from fastapi import FastAPI, Request
    from fastapi.responses import JSONResponse, Response
except ImportError as error:
    raise MissingDependencyError("a trial over HTTP", "FastAPI", "serve") from error

_ASSIGNER = ("assigner",)
_FIELDS, _LONGEST = 100, 200
_CALLS = (
    Call("libreclinica code", "GET", "/api/randomisation", _ASSIGNER, "the code of a participant"),
    Call("libreclinica site", "POST", "/api/sites", _ASSIGNER, "announce a site"),
    Call("libreclinica assign", "POST", "/api/randomise", _ASSIGNER, "randomise a participant"),
)
CALLS = tuple(call._replace(sited=True, basic=True) for call in _CALLS)
REGISTRAR = "/app/rest/oc/se_randomizations"
Ask = Callable[[Request, Call, Act], Awaitable[Any]]


def add_libreclinica(app: FastAPI, settings: LibreClinica, ask: Ask) -> None:
    """Add the calls; `ask` passes requests to the trial."""
    code, site, assign = CALLS

    @app.get(code.path, include_in_schema=False)
    async def coded(request: Request, identifier: str) -> Response:
        token, _ = request.scope["holder"]
        return _coded(await ask(request, code, _code_of(identifier, token.site)))

    @app.post(site.path, include_in_schema=False)
    async def announced(request: Request) -> Response:
        form = _form(await request.body(), "siteIdentifier")
        return (
            told(form)
            if isinstance(form, Problem)
            else JSONResponse({"siteIdentifier": form["siteIdentifier"]})
        )

    @app.post(assign.path, include_in_schema=False)
    async def randomised(request: Request) -> Response:
        form = _form(await request.body(), "identifier")
        if isinstance(form, Problem):
            return told(form)
        unit, context = form["identifier"], form.get(settings.context) if settings.context else None
        token, _ = request.scope["holder"]
        act = _randomised(unit, context, form.get("siteIdentifier"), token.site)
        return _coded(await ask(request, assign, act))

    if settings.secret_path:
        _add_registrar(app, settings)


def _add_registrar(app: FastAPI, settings: LibreClinica) -> None:
    """The call that returns the password to anyone who knows its address."""

    @app.get(f"/{settings.secret_path}{REGISTRAR}", include_in_schema=False)
    async def registered(studyoid: str, instanceurl: str = "") -> Response:
        if studyoid != settings.study:
            return told(Problem("not-found"))
        access = {"username": settings.username, "password": settings.token}
        where = {"studyOid": studyoid, "instanceUrl": instanceurl, "url": settings.url}
        return JSONResponse({**where, **access, "status": "ACTIVE"})


def _code_of(identifier: str, only: str | None) -> Act:
    """The existing assignment of a participant, at any site that the token permits."""

    def act(replay: Replay) -> tuple[Any, None]:
        for site in (None, *replay.supply.sites) if only is None else (only,):
            if (found := known(replay, identifier, site)) is not None:
                return found, None
        raise refused("unknown-unit")

    return act


def _randomised(unit: str, context: str | None, stated: str | None, only: str | None) -> Act:
    """Assign an arm, or a kit of the stated site; a trial without sites ignores the site."""

    def act(replay: Replay) -> tuple[Any, Rows]:
        site = stated if replay.supply.sites else None
        if only is not None and site != only:
            raise refused("other-site")
        return assigned(unit, context, named_at(site, f"libreclinica {unit}"), site)(replay)

    return act


def _coded(answer: Any) -> Response:
    """The text that LibreClinica stores: the kit if there is one, otherwise the arm."""
    if isinstance(answer, Problem):
        return told(answer)
    return JSONResponse({"code": str(answer["kit"] if "kit" in answer else answer["arm"])})


def _form(body: bytes, needed: str) -> dict[str, str] | Problem:
    """The fields of a form, one of which is required."""
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_FIELDS, errors="strict")
    except ValueError:
        return Problem("invalid-form")
    found = dict(pairs)
    value = found.get(needed, "")
    if len(found) < len(pairs) or not value.strip() or len(value) > _LONGEST:
        return Problem("invalid-form", [needed])
    return found
