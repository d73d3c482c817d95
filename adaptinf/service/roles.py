"""Who may do what: the one table from which the service, its OpenAPI document, tests and docs are made."""

from __future__ import annotations

from typing import NamedTuple

from adaptinf.trial.access import ROLES


class Call(NamedTuple):
    """A call of the service: what it does, where it is, and the roles that may use it."""

    name: str
    method: str
    path: str
    roles: tuple[str, ...]
    what: str
    keyed: bool = False
    """Whether it requires an Idempotency-Key."""


_BY_ARM = ("statistician", "unblinder")
"""An adaptive design assigns the better arm more often, so counts by arm show which one leads."""
CALLS = (
    Call("assign", "POST", "/v1/assignments", ("assigner",), "assign arms to participants", keyed=True),
    Call("record", "POST", "/v1/outcomes", ("recorder",), "record outcomes", keyed=True),
    Call("status", "GET", "/v1/status", ROLES, "the state of the trial and its counts, nothing by arm"),
    Call("allocation", "GET", "/v1/allocation", _BY_ARM, "participants by arm, and removed arms"),
    Call("state", "POST", "/v1/state", ("operator",), "pause the trial, or resume it"),
    Call("unblind", "POST", "/v1/unblindings", ("unblinder",), "reveal the arm of one participant"),
)
"""Calls that require a token."""
OPEN = {
    "/healthz": "whether the process answers",
    "/readyz": "whether the trial accepts a transaction",
    "/metrics": "figures of the service; with a token also the counts of the trial",
    "/openapi.json": "this document",
}
"""Calls that require none."""
BY_NAME = {call.name: call for call in CALLS}
BY_PLACE = {(call.method, call.path): call for call in CALLS}
PATHS = frozenset(OPEN) | {call.path for call in CALLS}


def table() -> str:
    """The roles and their calls, as a table in Markdown."""
    head = ["call", "", *ROLES]
    rows = [
        [f"`{call.method} {call.path}`", call.what, *("yes" if role in call.roles else "" for role in ROLES)]
        for call in CALLS
    ]
    lines = [head, ["---", "---", *(":---:" for _ in ROLES)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
