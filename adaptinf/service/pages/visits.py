"""Visits: a browser that signed in has a cookie, which only the server understands, for a limited time."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple

from adaptinf.trial.served_rows import Token

LASTS, IDLE = 8 * 3600.0, 3600.0
"""Seconds until a visit ends: after signing in, and after the last request."""
_MOST, _BYTES = 1_000, 32


def fresh() -> str:
    """256 random bits, for a cookie or a form."""
    return secrets.token_urlsafe(_BYTES)


@dataclass
class Visit:
    """Somebody who signed in with a token, of which only the digest is kept."""

    digest: str
    begun: float
    last: float
    """When its last request was."""
    form: str = field(default_factory=fresh)
    """What every form of this visit contains, and nobody else knows."""


class Guest(NamedTuple):
    """Somebody who is signed in: the visit, and the token."""

    visit: Visit
    token: Token


class Visits:
    """The visits of one service, in memory: they end when it ends."""

    def __init__(self) -> None:
        self._visits: OrderedDict[str, Visit] = OrderedDict()

    def begin(self, digest: str) -> str:
        """What the cookie of a new visit contains; the visit without requests for longest makes room."""
        name, now = fresh(), time.monotonic()
        self._visits[name] = Visit(digest, now, now)
        while len(self._visits) > _MOST:
            self._visits.popitem(last=False)
        return name

    def of(self, name: str | None) -> Visit | None:
        """The visit to which a cookie belongs, unless it has ended."""
        visit = None if name is None else self._visits.get(name)
        if name is None or visit is None:
            return None
        now = time.monotonic()
        if now - visit.begun > LASTS or now - visit.last > IDLE:
            self.end(name)
            return None
        visit.last = now
        self._visits.move_to_end(name)
        return visit

    def end(self, name: str | None) -> None:
        """Forget a visit."""
        if name is not None:
            self._visits.pop(name, None)


def same(one: str, other: str) -> bool:
    """Whether two texts are equal, in a time that does not depend on where they differ."""
    return bool(one) and secrets.compare_digest(one.encode(), other.encode())
