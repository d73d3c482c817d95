"""Answers to browsers: headers that isolate a page, cookies, and fields of forms."""

from __future__ import annotations

from urllib.parse import parse_qs

from adaptinf.errors import MissingDependencyError
from adaptinf.service.pages.visits import LASTS

try:
    from starlette.requests import Request
    from starlette.responses import Response
except ImportError as error:
    raise MissingDependencyError("a trial over HTTP", "FastAPI", "serve") from error

_POLICY = "; ".join(
    (
        "default-src 'none'",
        *("style-src 'self'", "img-src 'self'", "form-action 'self'"),
        *("base-uri 'none'", "frame-ancestors 'none'"),
    )
)
_ALONE = {
    "content-security-policy": _POLICY,
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_FIELDS = 10
VISIT, FORM = "adaptinf", "adaptinf-form"
"""Cookies of a visit, and of the form for signing in."""


def answer(content: bytes | str, media: str, status: int = 200) -> Response:
    """Content that only this service's own pages may load or frame."""
    return Response(content, status, dict(_ALONE), media)


def page(text: str, status: int = 200) -> Response:
    """A page."""
    return answer(text, "text/html; charset=utf-8", status)


def attached(content: bytes, name: str, media: str) -> Response:
    """A file for download."""
    found = answer(content, media)
    found.headers["content-disposition"] = f'attachment; filename="{name}"'
    return found


def moved(path: str) -> Response:
    """Redirect to another page."""
    found = answer(b"", "text/plain", 303)
    found.headers["location"] = path
    return found


def _named(name: str, request: Request) -> tuple[str, bool]:
    """The name of a cookie, and whether it is sent only over TLS."""
    secure = request.url.scheme == "https"
    # Browsers accept this prefix only from the host itself, over TLS.
    return f"__Host-{name}" if secure else name, secure


def cookie(name: str, request: Request) -> str | None:
    """What a cookie contains."""
    return request.cookies.get(_named(name, request)[0])


def give_cookie(found: Response, name: str, request: Request, value: str) -> None:
    """Let the browser store a cookie that no script can read and no other site can cause it to send."""
    told, secure = _named(name, request)
    found.set_cookie(told, value, int(LASTS), path="/", secure=secure, httponly=True, samesite="strict")


def take_cookie(found: Response, name: str, request: Request) -> None:
    """Let the browser forget a cookie."""
    told, secure = _named(name, request)
    found.delete_cookie(told, path="/", secure=secure, httponly=True, samesite="strict")


async def fields_of(request: Request) -> dict[str, str]:
    """The fields of a form, using the last value of each name; empty if it is not a form."""
    try:
        found = parse_qs((await request.body()).decode(), max_num_fields=_FIELDS, keep_blank_values=True)
    except ValueError:
        return {}
    return {name: values[-1] for name, values in found.items()}
