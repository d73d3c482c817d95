"""The calls that each role may use: the only table for the service, its OpenAPI document, tests and docs."""

from __future__ import annotations

from typing import NamedTuple

from adaptinf.trial.served_rows import ROLES, Token


class Call(NamedTuple):
    """A call of the service: its purpose, its address, and the roles that may use it."""

    name: str
    method: str
    path: str
    roles: tuple[str, ...]
    what: str
    keyed: bool = False
    """Whether the call requires an Idempotency-Key."""
    sited: bool = False
    """Whether a token for one site may use the call; the answer then concerns only this site."""
    basic: bool = False
    """Whether the token is the password of HTTP Basic."""

    def permits(self, token: Token) -> bool:
        """Whether a token may use the call."""
        return token.role in self.roles and (self.sited or token.site is None)


BY_ARM = ("statistician", "unblinder")
"""An adaptive design assigns the better arm more often, so counts by arm show which one leads."""
_WATCHING = ("monitor", "statistician", "operator")
CALLS = (
    Call("assign", "POST", "/v1/assignments", ("assigner",), "assign arms to participants", True, True),
    Call("record", "POST", "/v1/outcomes", ("recorder",), "record outcomes", True, True),
    Call("amend", "POST", "/v1/amendments", ("recorder",), "correct an outcome", True, True),
    Call(
        *("status", "GET", "/v1/status", ROLES, "the state of the trial and its counts, but not by arm"),
        sited=True,
    ),
    Call("allocation", "GET", "/v1/allocation", BY_ARM, "participants by arm, and removed arms", sited=True),
    Call(
        "events",
        "GET",
        "/v1/events",
        _WATCHING,
        "events with their times, in as much detail as the role permits",
    ),
    Call("alarms", "GET", "/v1/alarms", (*_WATCHING, "unblinder"), "the alarms that are raised"),
    Call("looks", "GET", "/v1/looks", _WATCHING, "the looks of the plan; only statisticians see numbers"),
    Call("look", "POST", "/v1/looks", ("statistician", "operator"), "take the look that is due"),
    Call("amend_plan", "POST", "/v1/plan", ("operator",), "change looks that have not been taken"),
    Call("state", "POST", "/v1/state", ("operator",), "pause the trial, or resume it"),
    Call(
        "unblind", "POST", "/v1/unblindings", ("unblinder",), "reveal the arm of one participant", sited=True
    ),
    Call("add_site", "POST", "/v1/sites", ("operator",), "add a site", keyed=True),
    Call("add_kits", "POST", "/v1/kits", ("operator",), "add kits to a site", keyed=True),
    Call("retire_kit", "POST", "/v1/retirements", ("operator",), "record the loss of a kit", keyed=True),
    Call(
        *("stock", "GET", "/v1/kits", ("monitor", "statistician", "operator", "unblinder")),
        "the number of kits at each site; only statisticians and unblinders see it by arm",
        sited=True,
    ),
)
"""Calls that require a token."""
OPEN = {
    "/healthz": "whether the process answers",
    "/readyz": "whether the trial accepts a transaction",
    "/metrics": "metrics of the service and, with a token, the counts of the trial",
    "/openapi.json": "this document",
}
"""Calls that require none."""
BY_NAME = {call.name: call for call in CALLS}
BY_PLACE = {(call.method, call.path): call for call in CALLS}


def table() -> str:
    """The roles and their calls, as a table in Markdown."""
    head = ["call", "", *ROLES]
    rows = [
        [f"`{call.method} {call.path}`", call.what, *("yes" if role in call.roles else "" for role in ROLES)]
        for call in CALLS
    ]
    lines = [head, ["---", "---", *(":---:" for _ in ROLES)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
