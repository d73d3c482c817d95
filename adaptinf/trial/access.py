"""Access to a trial over a network: tokens, of which the journal keeps only digests, and grouped requests."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from adaptinf.errors import ParameterError
from adaptinf.parameters import Count, OneOf, check, problems_of, refuse
from adaptinf.sessions.session_memory import try_out
from adaptinf.trial.journal_rows import Entry, Rows
from adaptinf.trial.operator_actions import Acts, act_problems
from adaptinf.trial.supplies.supply import where_problems
from adaptinf.trial.trial_noise import Nodes
from adaptinf.trial.trial_setup import session_of

if TYPE_CHECKING:
    from adaptinf.trial.replay import Replay
    from adaptinf.trial.requests import Requests

ROLES = ("assigner", "recorder", "monitor", "statistician", "operator", "unblinder")
"""The roles that a token may have; one table, in `adaptinf/service/roles.py`, states what each may do."""
SITED = ("assigner", "recorder", "monitor", "unblinder")
"""Roles whose tokens may be limited to one site; the others act on the whole trial."""
ISSUED, REVOKED = "token", "revoke"
"""Kinds of rows about tokens."""
NOISE = "noise"
"""Part of a trial's first row if it draws noise."""
DAYS = 365
_SECRET, _DIGEST, _LONGEST = 32, 64, 3_650
_ROLE = OneOf(*ROLES)
_LIFE = "days must be a whole number from 1 to 3,650, got {!r:.30}"
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Token:
    """A token, with which a program sends requests to a trial that is served over a network.

    Attributes
    ----------
    id : int
        Its number, which `Trial.revoke_token` requires.
    role : {"assigner", "recorder", "monitor", "statistician", "operator", "unblinder"}
        What it permits.
    issued, expires : str
        Times, in UTC.
    revoked : str or None
        When it was revoked.
    site : str or None
        The site to which it is limited.
    text : str
        The text that the program sends: only the call that issues the token returns it; otherwise it is
        empty, because the file contains only its SHA-256 digest.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import tempfile
    >>> path = f"{tempfile.mkdtemp()}/trial.db"
    >>> with ai.Trial.create(path, ai.designs.Thompson(), arms=["a", "b"], horizon=100) as trial:
    ...     token = trial.add_token("assigner")
    >>> token.id, token.role, len(token.text)
    (1, 'assigner', 43)
    """

    id: int
    role: str
    issued: str
    expires: str
    revoked: str | None = None
    site: str | None = None
    text: str = field(default="", repr=False)

    def serves(self) -> bool:
        """Whether it has neither been revoked nor expired."""
        return self.revoked is None and datetime.now(UTC) < datetime.fromisoformat(self.expires)


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
            Days until it expires, at most 3,650.
        by : str, optional
            The person responsible; the journal stores it.
        site : str, optional
            Limits an assigner, recorder, monitor or unblinder to the participants of this site; nothing about
            others is shown.

        Returns
        -------
        Token
            Its `text` is returned only by this call. The file records that it was issued, and `history` lists
            this.

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
        problems = [] if days in range(1, _LONGEST + 1) else [_LIFE.format(days)]
        check("add_token", [*problems, *_responsible(by)], role=(role, _ROLE))
        text = secrets.token_urlsafe(_SECRET)
        expires = (datetime.now(UTC) + timedelta(days=days)).isoformat(timespec="seconds")

        def issued(replay: Replay) -> tuple[int, Entry]:
            refuse("add_token", [replay.closed] if replay.closed else _site_problems(replay, role, site))
            number, whose = len(_issued(replay)) + 1, {} if by is None else {"by": by}
            whose |= {} if site is None else {"site": site}
            told = {"token": number, "role": role, "digest": digest_of(text), "expires": expires}
            return number, {"kind": ISSUED, **told, **whose}

        number = self._requests.change(issued)
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
            If there is no such token, or the file is a copy. A token that was revoked before stays so.
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
        check("revoke_token", _responsible(by), token=(token, Count()))

        def revoked(replay: Replay) -> tuple[None, Entry | None]:
            refuse("revoke_token", [replay.closed] if replay.closed else [])
            known = _unrevoked(replay, token)
            said = {"kind": REVOKED, "token": int(token), **({} if by is None else {"by": by})}
            return None, said if known.revoked is None else None

        self._requests.change(revoked)

    def tokens(self) -> tuple[Token, ...]:
        """All tokens, in the order in which they were issued, without their text."""
        return self._requests.read(lambda replay: tuple(tokens_of(replay).values()))


def answer_each(
    trial: Access, acts: Sequence[Callable[[Replay], tuple[_Answer, Rows]]]
) -> list[_Answer | ParameterError]:
    """Perform actions in order, with a single write to disk; the answer to a refused action is its error."""
    return trial._requests.change_each(acts)


def events_of(trial: Access, replay: Replay, after: int, most: int) -> list[tuple[int, Entry]]:
    """Rows of the journal other than noise, each with its place among them, within a transaction."""
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
    """Whether snapshots are not written although they are due, within a transaction."""
    return trial._requests.stuck(replay)


def rows_of(trial: Access) -> int:
    """Number of the last row, within a transaction."""
    return trial._requests.journal.rows


def first_digest(trial: Access) -> str:
    """Digest of the first row, which all copies of a trial share and no other trial has."""
    return str(trial._requests.journal.digest(1))


def rehearse(trial: Access) -> None:
    """Load what decisions need, so that the first participant does not wait; nothing is drawn or kept."""

    def once(replay: Replay) -> None:
        event_count(trial, replay)
        if not replay.declared["own"]:
            nodes = Nodes(replay.path, lambda name, scale: 0)
            try_out(session_of(replay.declared, replay.design, nodes)[0])

    trial._requests.read(once)


def digest_of(text: str) -> str:
    """The digest of a token that the journal keeps: 256 random bits require neither salt nor a slow hash."""
    return hashlib.sha256(text.encode()).hexdigest()


def tokens_of(acts: Acts) -> dict[str, Token]:
    """Tokens by digest, in the order in which they were issued."""
    revoked = {act["token"]: act["time"] for act in acts.acts if act["kind"] == REVOKED}
    return {
        act["digest"]: Token(
            *(act["token"], act["role"], act["time"], act["expires"]),
            *(revoked.get(act["token"]), act.get("site")),
        )
        for act in _issued(acts)
    }


def _site_problems(replay: Replay, role: str, site: Any) -> list[str]:
    """Problems with the site of a token."""
    if site is None:
        return []
    if role not in SITED:
        return [f"site must be omitted: the role {role} concerns the whole trial"]
    return where_problems(site, replay.supply.sites)


def _responsible(by: Any) -> list[str]:
    """Problems with the name of the person responsible, which is optional."""
    return act_problems("a token", "nobody" if by is None else by)


def _issued(acts: Acts) -> list[Entry]:
    return [act for act in acts.acts if act["kind"] == ISSUED]


def _unrevoked(acts: Acts, number: int) -> Token:
    """A token by its number."""
    for token in tokens_of(acts).values():
        if token.id == number:
            return token
    raise ParameterError("revoke_token", [f"there is no token {number}"])


def token_again(acts: Replay, said: Entry) -> Entry:
    """The entry of a row about a token, if it follows from the rows before it."""
    refuse(said["kind"], _responsible(said.get("by")))
    if said["kind"] == REVOKED:
        known = _unrevoked(acts, said["token"])
        refuse(REVOKED, ["it was revoked before"] if known.revoked is not None else [])
        return said
    digest = said["digest"]
    problems = problems_of(role=(said["role"], _ROLE)) + _site_problems(acts, said["role"], said.get("site"))
    if said["token"] != len(_issued(acts)) + 1 or len(digest) != _DIGEST or digest in tokens_of(acts):
        problems.append("its number or its digest cannot be right")
    datetime.fromisoformat(said["expires"])
    refuse(ISSUED, problems)
    return said
