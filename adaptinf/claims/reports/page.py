"""What the sections of a report say around tables and pictures."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

NEEDS_LOG = Claim(
    "reports.report",
    "This section requires the log: use report(result, path, log=log).",
    "advice",
)
NEEDS_METHODS = Claim(
    "reports.report",
    "To list valid methods for this estimand, pass methods=ai.recommend(log, ...) with the arguments "
    "used in the analysis.",
    "advice",
)
VALID = {
    "exact": Claim(
        "reports.report",
        "The results below are exact at any sample size, under the assumptions in the notes{more}.",
        "reason",
    ),
    "anytime": Claim(
        "reports.report",
        "The results below are anytime-valid: they hold under any stopping rule{more}.",
        "reason",
    ),
    "asymptotic": Claim(
        "reports.report",
        "The results below are large-sample approximations that rest on the assumptions stated in the "
        "notes{more}.",
        "reason",
    ),
    "not valid": Claim(
        "reports.report",
        "The results below are a naive baseline and are not valid for adaptively collected data{more}.",
        "caution",
    ),
}
"""By the label of a result."""
CORRECTED_VALID = Claim(
    "reports.report",
    "; corrected results are valid if the privacy guarantee holds",
    "phrase",
)
PLAN = Claim(
    "reports.report",
    "{trials:,} trials of {design} were simulated for each scenario and sample size.",
    "note",
)
PLAN_CAPTION = Claim(
    "reports.report",
    "Simulation results ({trials:,} trials in each setting, tests at level {alpha:g})",
    "note",
)
PLAN_ERRORS = Claim("reports.report", "Monte Carlo standard errors are in parentheses.", "note")
NO_CONCERN = Claim("reports.report", "The checks found no problems.", "reason")
CONCERNS = Claim("reports.report", "The following checks raised a concern:", "caution")

PUBLISHED = Claim(
    "reports.writing.published_page",
    "This report covers {rounds:,} rounds of {design} and uses only private releases ({version}).",
    "note",
)
UNREAD = Claim("reports.writing.answer_of", "No method in this library can analyse these releases.", "needs")
SEVERAL_PAIRS = Claim(
    "reports.writing.answer_of",
    "The trial has {arms} arms; choose a pair to compare: ai.report(ai.Contrast(public, "
    "treatment=, control=).fit(), path).",
    "advice",
)

SHARES = Claim(
    "reports.report_page.pictures", "Cumulative proportion of rounds assigned to each arm.", "note"
)
SHARES_TEXT = Claim(
    "reports.report_page.pictures",
    "Cumulative assignment proportions by arm; the final proportions are {shares}",
    "note",
)
PROPENSITIES = Claim("reports.report_page.pictures", "Propensity of each arm by round.", "note")
PROPENSITIES_TEXT = Claim(
    "reports.report_page.pictures",
    "Propensities of the arms over time; the smallest propensity of a chosen arm is {smallest:.3g}",
    "note",
)
