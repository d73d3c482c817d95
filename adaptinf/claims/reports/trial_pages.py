"""Text on the pages of a trial that is served."""

from __future__ import annotations

from adaptinf.claims.claim import Claim
from adaptinf.claims.reports.answer import AUTHORISED

NOBODY = Claim("service.pages.contents", "No participant has been assigned yet.", "note")
ENROLMENT = Claim(
    "service.pages.contents.overview",
    "Number of participants assigned; the line at the top marks the maximum number, and dotted lines mark "
    "planned looks.",
    "note",
)
NO_WINDOW = Claim(
    "service.pages.contents.outcomes",
    "No outcome window was declared for this trial, so outcomes are never overdue.",
    "note",
)
WINDOW = Claim(
    "service.pages.contents.outcomes",
    "An outcome is overdue once {window:,} further participants have been assigned. The design then "
    "treats it as missing, but it can still be recorded in the log.",
    "note",
)
PENDING = Claim(
    "service.pages.contents.results",
    "{pending:,} pending outcomes are treated as missing. If the time until an outcome depends on its value, "
    "these numbers are biased.",
    "caution",
)
ONE_LOOK = Claim(
    "service.pages.contents.results",
    "These intervals are valid only at a single time fixed in advance. For repeated looks, use the "
    "confidence sequence or a plan with looks.",
    "caution",
)
PLAN_GOES_ON = Claim(
    "service.pages.contents.results",
    "The plan has not yet stopped the trial, so estimates based on the plan are not yet available. The "
    "confidence sequence is valid at any time.",
    "note",
)
PREFIX = Claim(
    "service.pages.contents.results",
    "The sequence uses the first {rounds:,} participants, whose outcomes have all arrived. It remains "
    "valid however often it is inspected.",
    "note",
)
NO_PREFIX = Claim(
    "service.pages.contents.results",
    "The first participant's outcome is still pending, so there is no sequence yet.",
    "note",
)
UNCOVERED = Claim(
    "service.pages.contents",
    "This page is outside the privacy guarantee. Show it only to {authorised}.",
    "caution",
    phrases={"authorised": AUTHORISED},
)
BY_ARM = Claim(
    "service.pages.contents.allocation",
    "An adaptive design assigns better arms more often, so this page shows which arm is ahead. Do not "
    "show it to anyone who must remain blinded.",
    "caution",
)
NO_KITS = Claim("service.pages.contents.stock", "The trial is not blinded, so it has no kits.", "note")
NO_SITES = Claim("service.pages.contents.stock", "No site has been added yet.", "note")
LOW = Claim(
    "service.pages.contents.stock",
    "Low: at least one arm (not named here) has fewer than {low} kits at this site.",
    "note",
)
STOCK_BY_ARM = Claim(
    "service.pages.contents.stock",
    "The numbers of kits dispensed show how often each arm was assigned, and therefore which arm is "
    "ahead. Only unblinded staff should see this page.",
    "caution",
)
NOT_CONFIRMED = Claim(
    "service.pages.showing",
    "Confirm that the participant's arm must be revealed now.",
    "advice",
)
NO_SUCH_UNIT = Claim(
    "service.pages.showing",
    "No participant with this name has been assigned an arm. Enter the name exactly as it was entered "
    "at assignment.",
    "note",
)
NO_PLAN = Claim("service.pages.contents.looks", "The trial has no plan, so no looks were planned.", "note")
LOOK_DUE = Claim(
    "service.pages.contents.looks",
    "A look is due. Run `adaptinf trial look` once all outcomes up to that look have arrived.",
    "advice",
)
NO_LOOK = Claim("service.pages.contents.looks", "No look has been taken yet.", "note")
NOT_PROMISED = Claim("service.pages.contents.overview", "withdrawn; the log states the reason", "phrase")
NO_PICTURE = Claim(
    "service.pages.contents",
    "Pictures require matplotlib, which cannot be imported on the server.",
    "note",
)
