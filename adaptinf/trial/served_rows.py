"""Rows of a trial that is served: tokens, of which the journal keeps only digests, and alarms.

Rows about alarms, and about who was notified of them, remain after the process that raised them has ended.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from adaptinf.errors import ParameterError
from adaptinf.parameters import OneOf, refuse
from adaptinf.trial.journal_rows import Entry
from adaptinf.trial.operator_actions import ALARM, SENT, Acts, act_problems
from adaptinf.trial.supplies.supplied import Supplied
from adaptinf.trial.supplies.supply import where_problems

ROLES = ("assigner", "recorder", "monitor", "statistician", "operator", "unblinder")
"""The roles that a token can have; a table in `adaptinf/service/roles.py` states what each permits."""
SITED = ("assigner", "recorder", "monitor", "unblinder")
"""Roles whose tokens may be limited to one site; the others act on the whole trial."""
ISSUED, REVOKED = "token", "revoke"
"""Kinds of rows about tokens."""
_DIGEST, _LONGEST = 64, 100
ROLE = OneOf(*ROLES)


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
        The site to which the token is limited.
    text : str
        The text that the program sends. Only the call that issues the token returns the text; otherwise the
        text is empty, because the file contains only its SHA-256 digest.

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
        """Whether the token has neither been revoked nor expired."""
        return self.revoked is None and datetime.now(UTC) < datetime.fromisoformat(self.expires)


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
        for act in issued(acts)
    }


def token_site_problems(replay: Supplied, role: str, site: Any) -> list[str]:
    """Problems with the site of a token."""
    if site is None:
        return []
    if role not in SITED:
        return [f"site must be omitted: the role {role} concerns the whole trial"]
    return where_problems(site, replay.supply.sites)


def responsible_problems(by: Any) -> list[str]:
    """Problems with the name of the person responsible, which is optional."""
    return act_problems("a token", "nobody" if by is None else by)


def issued(acts: Acts) -> list[Entry]:
    """Rows that issued a token."""
    return [act for act in acts.acts if act["kind"] == ISSUED]


def token_numbered(acts: Acts, number: int) -> Token:
    """A token by its number."""
    for token in tokens_of(acts).values():
        if token.id == number:
            return token
    raise ParameterError("revoke_token", [f"there is no token {number}"])


def token_again(acts: Supplied, said: Entry) -> Entry:
    """The entry of a row about a token, if it follows from the rows before it."""
    refuse(said["kind"], responsible_problems(said.get("by")))
    if said["kind"] == REVOKED:
        known = token_numbered(acts, said["token"])
        refuse(REVOKED, ["it was revoked before"] if known.revoked is not None else [])
        return said
    digest = said["digest"]
    role = said["role"]
    problems = [*ROLE("role", role), *token_site_problems(acts, role, said.get("site"))]
    if said["token"] != len(issued(acts)) + 1 or len(digest) != _DIGEST or digest in tokens_of(acts):
        problems.append("its number or its digest cannot be right")
    datetime.fromisoformat(said["expires"])
    refuse(ISSUED, problems)
    return said


def standing_alarms(acts: Acts) -> dict[str, Entry]:
    """Alarms that are raised, by name, each with the row that raised it."""
    found: dict[str, Entry] = {}
    for act in acts.acts:
        if act["kind"] == ALARM:
            found.pop(act["alarm"], None)
            if act["raised"]:
                found[act["alarm"]] = act
    return found


def alarm_row(acts: Acts, alarm: str, raised: bool) -> Entry | None:
    """The entry that raises or clears an alarm; None if nothing changes, or the file is a copy."""
    if acts.closed or raised == (alarm in standing_alarms(acts)):
        return None
    return {"kind": ALARM, "alarm": alarm, "raised": raised}


def told_until(acts: Acts, hook: str) -> int | None:
    """The last row of which a webhook was notified; None if there was none."""
    return max(
        (act["notice"] for act in acts.acts if act["kind"] == SENT and act["hook"] == hook), default=None
    )


def sent_row(acts: Acts, hook: str, notice: int) -> Entry | None:
    """The entry that a webhook was told of all rows up to `notice`; None if already stored, or for a copy."""
    known = told_until(acts, hook)
    if acts.closed or (known is not None and known >= notice):
        return None
    return {"kind": SENT, "hook": hook, "notice": notice}


def alarm_again(acts: Acts, said: Entry) -> Entry | None:
    """The entry of a row about an alarm or a webhook, if it follows from the rows before it."""
    name = said["alarm" if said["kind"] == ALARM else "hook"]
    refuse(said["kind"], [] if isinstance(name, str) and 0 < len(name) <= _LONGEST else ["it has no name"])
    if said["kind"] == ALARM:
        return alarm_row(acts, name, bool(said["raised"]))
    return sent_row(acts, name, int(said["notice"]))
