"""Visits: a browser that has signed in holds, for a limited time, a cookie that only the server can read."""

from __future__ import annotations

import secrets
import sqlite3
import time
from pathlib import Path
from typing import NamedTuple

from adaptinf.trial.served_rows import Token, digest_of

LASTS, IDLE = 8 * 3600.0, 3600.0
"""Seconds until a visit ends: after signing in, and after the last request."""
_MOST, _BYTES, _PATIENCE = 1_000, 32, 5.0
_TABLE = """CREATE TABLE IF NOT EXISTS visits
(name TEXT PRIMARY KEY, digest TEXT, begun REAL, last REAL, form TEXT)"""
_ROOM = """DELETE FROM visits WHERE name IN
(SELECT name FROM visits ORDER BY last DESC, rowid DESC LIMIT -1 OFFSET ?)"""


def fresh() -> str:
    """256 random bits, for a cookie or a form."""
    return secrets.token_urlsafe(_BYTES)


class Visit(NamedTuple):
    """A visitor who signed in with a token, of which only the digest is kept."""

    digest: str
    begun: float
    last: float
    """The time of the last request."""
    form: str
    """The secret in every form of this visit, which no one else knows."""


class Guest(NamedTuple):
    """A visitor who is signed in: the visit, and the token."""

    visit: Visit
    token: Token


class Visits:
    """The visits of one service, which end with it; its workers share them in a file, if one is given."""

    def __init__(self, file: Path | None = None) -> None:
        # Several workers answer one browser, so a visit cannot be in the memory of one of them.
        self._kept = sqlite3.connect(
            file or ":memory:", timeout=_PATIENCE, isolation_level=None, check_same_thread=False
        )
        self._kept.execute("PRAGMA synchronous = OFF")
        self._kept.execute(_TABLE)

    def begin(self, digest: str) -> str:
        """Content of a new visit's cookie; if there is no room, the visit idle for longest is removed."""
        name, now = fresh(), time.monotonic()
        self._kept.execute(
            "INSERT INTO visits VALUES (?, ?, ?, ?, ?)", (digest_of(name), digest, now, now, fresh())
        )
        self._kept.execute(_ROOM, (_MOST,))
        return name

    def of(self, name: str | None) -> Visit | None:
        """The visit to which a cookie belongs, unless it has ended."""
        if name is None:
            return None
        mark, now = digest_of(name), time.monotonic()
        row = self._kept.execute(
            "SELECT digest, begun, last, form FROM visits WHERE name = ?", (mark,)
        ).fetchone()
        if row is None:
            return None
        visit = Visit(*row)
        if now - visit.begun > LASTS or now - visit.last > IDLE:
            self.end(name)
            return None
        self._kept.execute("UPDATE visits SET last = ? WHERE name = ?", (now, mark))
        return visit._replace(last=now)

    def renewed(self, name: str | None, visit: Visit) -> Visit | None:
        """The visit with a new secret, so that forms are sent only once; None if it already has a new one."""
        form, mark = fresh(), digest_of(name or "")
        done = self._kept.execute(
            "UPDATE visits SET form = ? WHERE name = ? AND form = ?", (form, mark, visit.form)
        )
        return visit._replace(form=form) if done.rowcount else None

    def end(self, name: str | None) -> None:
        """Forget a visit."""
        if name is not None:
            self._kept.execute("DELETE FROM visits WHERE name = ?", (digest_of(name),))


def same(one: str, other: str) -> bool:
    """Whether two texts are equal, in a time that does not depend on where they differ."""
    return bool(one) and secrets.compare_digest(one.encode(), other.encode())
