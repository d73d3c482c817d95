"""What the sections of a report say around tables and pictures."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

NEEDS_LOG = Claim(
    "reports.report",
    "The result was reported without its log: report(result, path, log=log) adds this part.",
    "advice",
)
NEEDS_METHODS = Claim(
    "reports.report",
    "Methods for this target are not listed: pass methods=ai.recommend(log, ...) with its arguments.",
    "advice",
)
VALID = {
    "exact": Claim(
        "reports.report",
        "The numbers below are exact at any sample size, under the assumptions in the notes{more}.",
        "reason",
    ),
    "anytime": Claim(
        "reports.report",
        "The numbers below are anytime-valid: no stopping rule invalidates them{more}.",
        "reason",
    ),
    "asymptotic": Claim(
        "reports.report",
        "The numbers below are asymptotic: approximations for long logs that also rest on the "
        "assumptions noted{more}.",
        "reason",
    ),
    "not valid": Claim(
        "reports.report",
        "The numbers below are a baseline, and not valid for data collected adaptively{more}.",
        "caution",
    ),
}
"""By the label of a result."""
CORRECTED_VALID = Claim("reports.report", "; the corrected columns are valid under the guarantee", "reason")
PLAN = Claim("reports.report", "{design}; {trials:,} simulated trials per scenario and size.", "note")
PLAN_CAPTION = Claim(
    "reports.report", "{trials:,} trials for each scenario and size, tests at level {alpha:g}", "note"
)
PLAN_ERRORS = Claim("reports.report", "Simulation errors are in brackets.", "note")
NO_CONCERN = Claim("reports.report", "No check raised a concern.", "reason")
CONCERNS = Claim("reports.report", "These checks raised a concern:", "caution")

PUBLISHED = Claim(
    "reports.published.published_page",
    "{rounds:,} rounds, design {design}; from the private releases only, with {version}.",
    "note",
)
UNREAD = Claim("reports.published.answer_of", "No model reads these releases.", "needs")
SEVERAL_PAIRS = Claim(
    "reports.published.answer_of",
    "Its {arms} arms form several pairs: name one in ai.report(ai.Contrast(public, treatment=, "
    "control=).fit(), path).",
    "advice",
)

SHARES = Claim("reports.pictures.pictures", "Each arm's share of the rounds so far.", "note")
SHARES_TEXT = Claim("reports.pictures.pictures", "Cumulative share of each arm; at the end {shares}", "note")
PROPENSITIES = Claim(
    "reports.pictures.pictures", "Probability with which each arm was chosen, over the rounds.", "note"
)
PROPENSITIES_TEXT = Claim(
    "reports.pictures.pictures",
    "Propensities of the arms over the rounds; the smallest of a chosen arm is {smallest:.3g}",
    "note",
)
