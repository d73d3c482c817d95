"""The pages as an application: addresses, signing in and out, and access by role."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from adaptinf.errors import MissingDependencyError
from adaptinf.service.holders import Holders, address_of
from adaptinf.service.pages import answers
from adaptinf.service.pages.page_text import ICON_TEXT, STYLE_TEXT, rendered
from adaptinf.service.pages.reading import Asker, Reading
from adaptinf.service.pages.showing import Showing
from adaptinf.service.pages.views import (
    BY_VIEW,
    FILES,
    ICON,
    PICTURES,
    ROOT,
    SIGN_IN,
    SIGN_OUT,
    STYLE,
    THEMES,
    VIEWS,
    picture_path,
)
from adaptinf.service.pages.visits import Guest, Visits, fresh, same
from adaptinf.service.problems import PROBLEMS, Problem
from adaptinf.service.roles import BY_NAME
from adaptinf.service.writer import Writer
from adaptinf.trial import Trial

try:
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route
except ImportError as error:
    raise MissingDependencyError("a trial over HTTP", "FastAPI", "serve") from error

_TOLD = {
    "unauthorized": "This token is not valid: it may have been revoked or may have expired.",
    "forbidden": "The role of your token does not permit this page.",
    "not-stored": "The trial's file could not be used: try again, and check whether your change is shown.",
    "overloaded": "Too many requests are waiting: try again later.",
    "internal": "The page could not be created.",
}
"""Texts for people, in place of the texts for programs."""
_EXPIRED = "The form has expired, or came from another website: fill it in again."
_WAS = "Signed out."
_SITED = "Your token is limited to one site, but these pages show the whole trial."


Shows = Callable[[Request, Guest, Asker], Awaitable[Response | Problem]]


def pages(trial: Trial, writer: Writer, holders: Holders, visits: Path | None = None) -> Starlette:
    """The application of the pages; `visits` is the file in which workers share those who signed in."""
    site = _Site(Showing(Reading(trial, writer)), writer, holders, Visits(visits))
    return Starlette(
        routes=site.routes(),
        exception_handlers={HTTPException: site.unknown, Exception: site.failed},
    )


class _Site:
    """The pages, with their visits."""

    def __init__(self, showing: Showing, writer: Writer, holders: Holders, visits: Visits) -> None:
        self._showing, self._writer, self._holders = showing, writer, holders
        self._visits = visits

    def routes(self) -> list[Route]:
        """Every address."""
        found = [
            Route("/", self._to_root),
            Route(SIGN_IN, self._form, methods=["GET"]),
            Route(SIGN_IN, self._sign_in, methods=["POST"]),
            Route(SIGN_OUT, self._sign_out, methods=["POST"]),
            Route(STYLE, partial(_fixed, STYLE_TEXT, "text/css; charset=utf-8")),
            Route(ICON, partial(_fixed, ICON_TEXT, "image/svg+xml")),
        ]
        for view in VIEWS:
            shows = partial(self._showing.view, view)
            found.append(Route(view.path, self._guarded(view.roles, shows), methods=["GET"]))
        for one in FILES:
            shows = partial(self._showing.file, one.name)
            found.append(Route(one.path, self._guarded(one.roles, shows), methods=["GET"]))
        for name, roles in PICTURES:
            for theme in THEMES:
                shows = partial(self._showing.picture, name, theme)
                found.append(Route(picture_path(name, theme), self._guarded(roles, shows), methods=["GET"]))
        turning = self._guarded(BY_NAME["state"].roles, self._turn)
        revealing = self._guarded(BY_NAME["unblind"].roles, self._unblind)
        return [
            *found,
            Route(BY_VIEW["operator"].path, turning, methods=["POST"]),
            Route(BY_VIEW["unblinding"].path, revealing, methods=["POST"]),
        ]

    def _guarded(self, roles: tuple[str, ...], shows: Shows) -> Callable[[Request], Awaitable[Response]]:
        """The content of an address for visitors who signed in with one of the given roles."""

        async def shown(request: Request) -> Response:
            guest = self._guest(request)
            if guest is None:
                return answers.moved(SIGN_IN)
            request.scope["holder"] = guest.token, guest.visit.digest
            if guest.token.role not in roles:
                return self._told(Problem("forbidden"), guest)
            found = await shows(request, guest, Asker(guest.visit.digest, roles))
            if not isinstance(found, Problem):
                return found
            return answers.moved(SIGN_IN) if found.code == "unauthorized" else self._told(found, guest)

        return shown

    def _guest(self, request: Request) -> Guest | None:
        """The visitor, if the visit and its token are still valid."""
        name = answers.cookie(answers.VISIT, request)
        visit = self._visits.of(name)
        token = None if visit is None else self._writer.tokens.get(visit.digest)
        if visit is None or token is None or not token.serves():
            self._visits.end(name)
            return None
        return Guest(visit, token)

    def _told(self, problem: Problem, guest: Guest | None) -> Response:
        """A problem as a page."""
        text = _TOLD.get(problem.code, problem.title)
        role, form = ("", "") if guest is None else (guest.token.role, guest.visit.form)
        found = answers.page(rendered("problem", "Problem", role, form=form, text=text), problem.status)
        found.headers.update(problem.headers() if problem.status in (429, 503) else {})
        return found

    async def _to_root(self, _: Request) -> Response:
        return answers.moved(ROOT)

    async def _form(self, request: Request) -> Response:
        if self._guest(request) is not None:
            return answers.moved(ROOT)
        return self._ask_token(request)

    def _ask_token(self, request: Request, told: str = "", status: int = 200) -> Response:
        """The form for signing in; its secret is also in a cookie."""
        form = answers.cookie(answers.FORM, request) or fresh()
        found = answers.page(rendered("sign_in", "Sign in", "", form=form, told=told), status)
        answers.give_cookie(found, answers.FORM, request, form)
        return found

    async def _sign_in(self, request: Request) -> Response:
        fields = await answers.fields_of(request)
        if not same(fields.get("form", ""), answers.cookie(answers.FORM, request) or ""):
            return self._ask_token(request, _EXPIRED, 403)
        known = await self._holders.known(fields.get("token", "").strip(), address_of(request.scope))
        if isinstance(known, Problem):
            return self._ask_token(request, _TOLD.get(known.code, known.title), known.status)
        request.scope["holder"] = known
        if known[0].site is not None:
            return self._ask_token(request, _SITED, 403)
        self._visits.end(answers.cookie(answers.VISIT, request))
        found = answers.moved(ROOT)
        answers.give_cookie(found, answers.VISIT, request, self._visits.begin(known[1]))
        answers.take_cookie(found, answers.FORM, request)
        return found

    async def _sign_out(self, request: Request) -> Response:
        guest = self._guest(request)
        if guest is not None:
            fields = await answers.fields_of(request)
            if not same(fields.get("form", ""), guest.visit.form):
                return self._refused(guest)
            self._visits.end(answers.cookie(answers.VISIT, request))
        found = self._ask_token(request, _WAS)
        answers.take_cookie(found, answers.VISIT, request)
        return found

    def _refused(self, guest: Guest) -> Response:
        """A form without its secret."""
        form = guest.visit.form
        return answers.page(rendered("problem", "Problem", guest.token.role, form=form, text=_EXPIRED), 403)

    async def _turn(self, request: Request, guest: Guest, asker: Asker) -> Response | Problem:
        fields = await answers.fields_of(request)
        if not same(fields.get("form", ""), guest.visit.form):
            return self._refused(guest)
        return await self._showing.turned(fields, guest, asker)

    async def _unblind(self, request: Request, guest: Guest, asker: Asker) -> Response | Problem:
        fields = await answers.fields_of(request)
        if not same(fields.get("form", ""), guest.visit.form):
            return self._refused(guest)

        # Sent twice, a form reveals an arm once: its secret is used up before the trial is asked.
        visit = self._visits.renewed(answers.cookie(answers.VISIT, request), guest.visit)
        if visit is None:
            return self._refused(guest)
        return await self._showing.unblinded(fields, guest._replace(visit=visit), asker)

    async def unknown(self, request: Request, error: Exception) -> Response:
        """The answer to an unknown address or method."""
        status = error.status_code if isinstance(error, HTTPException) else 404
        codes = [code for code in ("not-found", "method-not-allowed") if PROBLEMS[code][0] == status]
        return self._told(Problem(codes[0] if codes else "not-found"), self._guest(request))

    async def failed(self, request: Request, _: Exception) -> Response:
        """An error of the library, which may quote data."""
        return self._told(Problem("internal"), self._guest(request))


async def _fixed(content: bytes, media: str, _: Request) -> Response:
    return answers.answer(content, media)
