"""Access to a trial over a network: its tokens, and grouped requests."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from adaptinf.errors import AdaptinfError, ParameterError
from adaptinf.parameters import Count, check, refuse
from adaptinf.sessions.session_memory import try_out
from adaptinf.sessions.steppers import draw_node
from adaptinf.trial.journal_rows import Entry, Rows
from adaptinf.trial.served_rows import (
    ISSUED,
    REVOKED,
    ROLE,
    Token,
    digest_of,
    issued,
    responsible_problems,
    token_numbered,
    token_site_problems,
    tokens_of,
)
from adaptinf.trial.supplies.supplied import Supplied
from adaptinf.trial.trial_noise import Nodes
from adaptinf.trial.trial_setup import session_of

if TYPE_CHECKING:
    from adaptinf.trial.replay import Replay
    from adaptinf.trial.requests import Requests

NOISE = "noise"
"""Part of the first row of a trial that draws noise."""
DAYS = 365
_SECRET, _LIFE = 32, Count(1, 3_650)
_Answer = TypeVar("_Answer")


class Access:
    """Tokens of a trial."""

    _requests: Requests

    def add_token(
        self, role: str, *, days: int = DAYS, by: str | None = None, site: str | None = None
    ) -> Token:
        """Issue a token for a program that uses the trial over a network.

        Parameters
        ----------
        role : {"assigner", "recorder", "monitor", "statistician", "operator", "unblinder"}
            What it permits.
        days : int
            Number of days until the token expires, at most 3,650.
        by : str, optional
            The person responsible; the journal stores it.
        site : str, optional
            Site to which an assigner, recorder, monitor or unblinder is limited: the token shows nothing
            about other sites.

        Returns
        -------
        Token
            The token, whose `text` is returned only by this call. The file records that the token was issued,
            and `history` lists this.

        Raises
        ------
        ParameterError
            If an argument is out of range, or the file is a copy. Nothing has changed in this case.
        FileError
            As in `assign`.

        Examples
        --------
        >>> import adaptinf as ai
        >>> import tempfile
        >>> path = f"{tempfile.mkdtemp()}/trial.db"
        >>> with ai.Trial.create(path, ai.designs.Thompson(), arms=["a", "b"], horizon=100) as trial:
        ...     token = trial.add_token("recorder", days=30)
        ...     [one.role for one in trial.tokens()]
        ['recorder']
        """
        check("add_token", responsible_problems(by), role=(role, ROLE), days=(days, _LIFE))
        text = secrets.token_urlsafe(_SECRET)
        expires = (datetime.now(UTC) + timedelta(days=days)).isoformat(timespec="seconds")

        def issue(replay: Supplied) -> tuple[int, Entry]:
            refuse("add_token", [replay.closed] if replay.closed else token_site_problems(replay, role, site))
            number, whose = len(issued(replay)) + 1, {} if by is None else {"by": by}
            whose |= {} if site is None else {"site": site}
            told = {"token": number, "role": role, "digest": digest_of(text), "expires": expires}
            return number, {"kind": ISSUED, **told, **whose}

        number = self._requests.change(issue)
        return replace(self.tokens()[number - 1], text=text)

    def revoke_token(self, token: int, *, by: str | None = None) -> None:
        """Refuse a token from now on.

        Parameters
        ----------
        token : int
            Its `id`.
        by : str, optional
            The person responsible; the journal stores it.

        Raises
        ------
        ParameterError
            If there is no such token, or the file is a copy. A token that was revoked earlier remains
            revoked.
        FileError
            As in `assign`.

        Examples
        --------
        >>> import adaptinf as ai
        >>> import tempfile
        >>> path = f"{tempfile.mkdtemp()}/trial.db"
        >>> with ai.Trial.create(path, ai.designs.Thompson(), arms=["a", "b"], horizon=100) as trial:
        ...     token = trial.add_token("recorder")
        ...     trial.revoke_token(token.id)
        ...     trial.tokens()[0].serves()
        False
        """
        check("revoke_token", responsible_problems(by), token=(token, Count()))

        def revoke(replay: Supplied) -> tuple[None, Entry | None]:
            refuse("revoke_token", [replay.closed] if replay.closed else [])
            known = token_numbered(replay, token)
            said = {"kind": REVOKED, "token": int(token), **({} if by is None else {"by": by})}
            return None, said if known.revoked is None else None

        self._requests.change(revoke)

    def tokens(self) -> tuple[Token, ...]:
        """All tokens, in the order in which they were issued, without their text."""
        return self._requests.read(lambda replay: tuple(tokens_of(replay).values()))


def answer_each(
    trial: Access, acts: Sequence[Callable[[Replay], tuple[_Answer, Rows]]]
) -> list[_Answer | ParameterError]:
    """Perform actions in order, with a single write to disk; the answer to a refused action is its error."""
    return trial._requests.change_each(acts)


def events_of(trial: Access, replay: Replay, after: int, most: int) -> list[tuple[int, Entry]]:
    """Rows of the journal except those of noise, each with its place among them, within a transaction."""
    journal = trial._requests.journal
    if NOISE not in replay.declared:
        return journal.between(after + 1, min(after + most, journal.rows))
    numbers = journal.quiet()[after : after + most]
    entries = dict(journal.between(numbers[0], numbers[-1])) if numbers else {}
    return [(place, entries[number]) for place, number in enumerate(numbers, after + 1)]


def event_count(trial: Access, replay: Replay) -> int:
    """Number of such rows."""
    journal = trial._requests.journal
    return len(journal.quiet()) if NOISE in replay.declared else journal.rows


def snapshots_stuck(trial: Access, replay: Replay) -> bool:
    """Whether snapshots that are due have not been written, within a transaction."""
    return trial._requests.stuck(replay)


def rows_of(trial: Access) -> int:
    """Number of the last row, within a transaction."""
    return trial._requests.journal.rows


def first_digest(trial: Access) -> str:
    """Digest of the first row, which all copies of a trial share and no other trial has."""
    return str(trial._requests.journal.digest(1))


def follow(trial: Access) -> bool:
    """Read the rows that other processes have written; returns False for a file, or if the database fails."""
    if isinstance(trial._requests.journal.path, Path):
        return False
    try:
        trial._requests.read(lambda _: None)
    except AdaptinfError:
        return False
    return True


def rehearse(trial: Access) -> None:
    """Load everything that decisions need, so that the first participant need not wait; nothing is stored."""

    def once(replay: Replay) -> None:
        event_count(trial, replay)
        if NOISE in replay.declared:
            draw_node("none", 1.0)
        if not replay.declared["own"]:
            nodes = Nodes(replay.path, lambda name, scale: 0)
            try_out(session_of(replay.declared, replay.design, nodes)[0])

    trial._requests.read(once)
