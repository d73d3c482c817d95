"""The checks that precede every call (token and size of the body), and the access log."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from adaptinf.errors import MissingDependencyError
from adaptinf.service.figures import Figures
from adaptinf.service.holders import Holders, address_of
from adaptinf.service.pages.views import PAGES, of_browsers
from adaptinf.service.problems import MEDIA, Problem
from adaptinf.service.roles import BY_PLACE, OPEN, Call
from adaptinf.trial.requests import now
from adaptinf.trial.served_rows import Token

try:
    from starlette.responses import JSONResponse
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
except ImportError as error:
    raise MissingDependencyError("a trial over HTTP", "FastAPI", "serve") from error

BODY, SECONDS = 2**20, 10.0
"""Largest body in bytes, and the time within which it must arrive."""
_ALWAYS = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
_METRICS = "/metrics"


def told(problem: Problem) -> JSONResponse:
    """The answer that reports a problem."""
    return JSONResponse(problem.content(), problem.status, problem.headers(), MEDIA)


class Gate:
    """The service behind its checks: first tokens, then bodies, then calls; pages have their own checks."""

    def __init__(
        self,
        app: ASGIApp,
        pages: ASGIApp,
        holders: Holders,
        figures: Figures,
        log: Callable[[str], bool],
        calls: Sequence[Call] = (),
    ) -> None:
        self._app, self._pages, self._holders = app, pages, holders
        self._figures, self._log = figures, log
        self._calls = BY_PLACE | {(call.method, call.path): call for call in calls}
        self._paths = PAGES | set(OPEN) | {path for _, path in self._calls}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answered, begun = _Answered(send), time.perf_counter()
        try:
            answer = await self._stopped(scope, receive)
            if isinstance(answer, Problem):
                await told(answer)(scope, receive, answered.send)
            elif of_browsers(scope["path"]):
                await self._pages(scope, answer, answered.send)
            else:
                await self._app({**scope, "headers": _as_json(scope)}, answer, answered.send)
        except _Gone:
            return
        except Exception as error:
            # The error may quote what was sent: only its kind is kept.
            self._figures.failures.labels(type(error).__name__).inc()
            if not answered.status:
                await told(Problem("internal"))(scope, receive, answered.send)
        seconds = time.perf_counter() - begun
        self._figures.answers.labels(answered.status).inc()
        self._figures.seconds.observe(seconds)
        if not self._log(self._line(scope, answered.status, seconds)):
            self._figures.unlogged.inc()

    async def _stopped(self, scope: Scope, receive: Receive) -> Problem | Receive:
        """The reason why a request is refused at this point, or its whole body."""
        call = self._calls.get((scope["method"], scope["path"]))
        if call is not None or (scope["path"] == _METRICS and _header(scope, b"authorization")):
            holder = await self._holder(scope, call)
            if isinstance(holder, Problem):
                return holder
            scope["holder"] = holder
        try:
            async with asyncio.timeout(SECONDS):
                return await _whole(scope, receive)
        except TimeoutError:
            return Problem("body-too-slow")

    async def _holder(self, scope: Scope, call: Call | None) -> tuple[Token, str] | Problem:
        """The token of a request with its digest, if its role permits the call."""
        text = _token(scope, call is not None and call.basic)
        if not text:
            return Problem("unauthorized")
        holder = await self._holders.known(text, address_of(scope))
        if isinstance(holder, Problem) or call is None or call.permits(holder[0]):
            return holder
        return Problem("forbidden")

    def _line(self, scope: Scope, status: int, seconds: float) -> str:
        """A line of the access log, without any text written by a client, such as an unknown address."""
        holder: Any = scope.get("holder")
        path = scope["path"] if scope["path"] in self._paths else None
        line = {"time": now(), "method": scope["method"] if path else None, "path": path, "status": status}
        line |= {"ms": round(1e3 * seconds, 1), "token": holder[0].id if holder else None}
        return json.dumps(line)


class _Gone(Exception):
    """The client disconnected before its body was complete."""


class _Answered:
    """Pass an answer on, and keep its status."""

    def __init__(self, send: Send) -> None:
        self._send, self.status = send, 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message = {**message, "headers": [*message.get("headers", []), *_ALWAYS]}
        await self._send(message)


async def _whole(scope: Scope, receive: Receive) -> Problem | Receive:
    """A function that returns the complete body; a problem if the body is too large."""
    length = _header(scope, b"content-length")
    if length.isdigit() and int(length) > BODY:
        return Problem("body-too-large")
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise _Gone
        parts.append(message.get("body", b""))
        size, more = size + len(parts[-1]), message.get("more_body", False)
        if size > BODY:
            return Problem("body-too-large")
    waiting: list[Message] = [{"type": "http.request", "body": b"".join(parts), "more_body": False}]

    async def given() -> Message:
        return waiting.pop() if waiting else await receive()

    return given


def _as_json(scope: Scope) -> list[tuple[bytes, bytes]]:
    """The headers of a request, whose body is read as JSON regardless of the stated type."""
    kept = [(name, value) for name, value in scope["headers"] if name != b"content-type"]
    return [*kept, (b"content-type", b"application/json")]


def _header(scope: Scope, name: bytes) -> str:
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")


def _token(scope: Scope, basic: bool) -> str:
    """The token of a request; empty if there is none in the required form."""
    scheme, _, text = _header(scope, b"authorization").partition(" ")
    if scheme.lower() != ("basic" if basic else "bearer"):
        return ""
    try:
        found = base64.b64decode(text, validate=True).decode().partition(":")[2] if basic else text
    except ValueError:
        return ""
    return found.strip()
