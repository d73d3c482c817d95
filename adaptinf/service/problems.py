"""Problems that the service reports: codes with fixed texts, because the library's texts may quote data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adaptinf.errors import ParameterError
from adaptinf.trial.operator_actions import Acts

PROBLEMS = {
    "key-missing": (400, "The header Idempotency-Key is missing, empty or longer than 180 characters."),
    "unauthorized": (401, "A valid token is required, in the header Authorization: Bearer TOKEN."),
    "forbidden": (403, "The role of this token does not permit this call."),
    "other-site": (403, "This token is for another site."),
    "not-found": (404, "There is nothing at this address."),
    "unknown-decision": (404, "There is no decision with this id."),
    "unknown-kit": (404, "There is no kit with this code."),
    "unknown-unit": (404, "No participant with this name was assigned."),
    "method-not-allowed": (405, "This address does not accept this method."),
    "body-too-slow": (408, "The body did not arrive in time."),
    "key-reused": (409, "The Idempotency-Key belongs to another request: give each request its own key."),
    "unit-context-differs": (409, "This participant was assigned with another context."),
    "unit-looks-alike": (
        409,
        "This name looks the same as another participant's: give the name exactly as before.",
    ),
    "outcome-differs": (409, "This decision already has another outcome: amend it if that is a correction."),
    "outcome-missing": (409, "This decision has no outcome yet: record it."),
    "outcome-same": (409, "This decision already has this outcome."),
    "no-kit": (
        409,
        "At least one arm has no kit left at this site, so nothing was drawn: add kits, and send the request "
        "again.",
    ),
    "site-exists": (409, "There is already a site with this name, or with one that looks the same."),
    "sites-too-late": (
        409,
        "Participants have already been assigned without a site, so sites cannot be added.",
    ),
    "kit-used": (409, "This kit has already been given to a participant or retired."),
    "not-blinded": (409, "The trial is not blinded, so it has no kits."),
    "outcome-needed": (409, "The outcome of the last decision must be recorded first."),
    "paused": (409, "The trial is paused."),
    "finished": (409, "The trial is finished."),
    "horizon-reached": (409, "The maximum number of participants has been reached."),
    "no-plan": (409, "The trial has no plan, so it has no looks."),
    "outcomes-pending": (
        409,
        "Some outcomes that this look needs have not arrived: record each, as null if it will never arrive.",
    ),
    "look-impossible": (409, "The plan cannot compute this look: take it in Python to see why."),
    "plan-fixed": (409, "Only a plan whose statistics are compared as normal scores can be changed."),
    "plan-ended": (409, "A look has ended the trial, so the plan cannot be changed."),
    "look-due": (409, "A look is due: take it first."),
    "not-blind": (
        409,
        "Looks have been taken: blinded must be true, because the level does not hold if results by arm "
        "determine later looks.",
    ),
    "copy": (409, "The file is a copy, which accepts no requests until it replaces the trial."),
    "other-version": (
        409,
        "Another version of adaptinf decides in this trial: start the service with it, or migrate the trial.",
    ),
    "erased": (410, "The data of this participant have been erased."),
    "body-too-large": (413, "The body is larger than this service accepts."),
    "invalid-body": (422, "The body is not JSON of the required form: see /openapi.json."),
    "invalid-form": (422, "The body is not a form with the fields that this call requires."),
    "invalid-query": (422, "A query parameter does not have the required form: see /openapi.json."),
    "kits-unfit": (
        422,
        "Codes of kits must be distinct, equally long (4 to 40 letters, digits or hyphens) and must not "
        "reveal the arm; their arms must be arms of the trial.",
    ),
    "plan-unfit": (
        422,
        "The looks do not fit the plan: looks that were taken must stay, others ascend up to at most the "
        "trial's horizon, and none is before the participants assigned so far.",
    ),
    "does-not-fit": (
        422,
        "A unit, site, context, decision or reward does not fit the trial's declaration.",
    ),
    "too-many-failures": (
        429,
        "Too many requests from this address had no valid token: wait, and try again.",
    ),
    "internal": (500, "The service failed: if the request had a key, send it again with the same key."),
    "not-stored": (
        503,
        "The trial's file could not be used, so it is not known whether the request was stored: send it "
        "again with its key.",
    ),
    "overloaded": (503, "Too many requests are waiting: send it again later with its key."),
}
"""Status and text of each code."""
MEDIA = "application/problem+json"


def table() -> str:
    """The codes with their status and text, as a table in Markdown."""
    rows = [f"| {status} | `{code}` | {text} |" for code, (status, text) in PROBLEMS.items()]
    return "\n".join(["| status | code | text |", "| --- | --- | --- |", *rows])


class Problem:
    """A code, with the names of the fields concerned."""

    def __init__(self, code: str, fields: Sequence[str] = ()) -> None:
        self.code, self.fields = code, fields
        self.status, self.title = PROBLEMS[code]

    def content(self) -> dict[str, Any]:
        """The body of the answer, as RFC 9457 describes it."""
        told = {"type": f"urn:adaptinf:problem:{self.code}", "title": self.title, "status": self.status}
        return {**told, "code": self.code, **({"fields": list(self.fields)} if self.fields else {})}

    def headers(self) -> dict[str, str]:
        """Further headers of the answer."""
        if self.code == "unauthorized":
            return {"www-authenticate": "Bearer"}
        return {"retry-after": "1"} if self.status in (429, 503) else {}


def refused(code: str) -> ParameterError:
    """Raised if the trial refuses a request: the code replaces the library's text."""
    return ParameterError("a request", [code])


def closed_code(acts: Acts) -> str:
    """The reason why the trial accepts no requests, as a code; empty if it accepts them."""
    return "copy" if acts.copied else "other-version" if acts.foreign else ""


def problem_of(error: ParameterError) -> Problem:
    """The problem of a refused request."""
    (code, *_) = error.problems
    return Problem(code if code in PROBLEMS else "does-not-fit")
