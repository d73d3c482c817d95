"""Text in the sections of a report around tables and plots."""

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
        "These results are exact at any sample size, under the assumptions listed below{more}.",
        "reason",
    ),
    "anytime": Claim(
        "reports.report",
        "These results are anytime-valid, that is, valid under any stopping rule{more}.",
        "reason",
    ),
    "asymptotic": Claim(
        "reports.report",
        "These results are large-sample approximations that rest on the assumptions listed below{more}.",
        "reason",
    ),
    "not valid": Claim(
        "reports.report",
        "These results are a naive baseline and are not valid for adaptively collected data{more}.",
        "caution",
    ),
}
"""Text on validity, by the label of a result."""
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
FAILED = Claim(
    "reports.log_sections.diagnosed", "Checks that raised a concern: {failed} of {count}", "caution"
)
ALL_CHECKS = Claim("reports.log_sections.diagnosed", "All {count} checks", "phrase")

CHECKED = Claim("reports.log_sections.assumptions", "yes; the log shows no evidence against it", "phrase")
CHECKED_IN_PART = Claim(
    "reports.log_sections.assumptions", "yes,{scope}; the log shows no evidence against it", "phrase"
)
CONTRADICTED = Claim(
    "reports.log_sections.assumptions", "yes, but the log contradicts it (see the caution)", "phrase"
)
UNCHECKED = Claim("reports.log_sections.assumptions", "no; this log cannot test it", "phrase")
NOTHING_ASSUMED = Claim(
    "reports.log_sections.assumptions",
    "The method states no assumptions beyond the design of the trial.",
    "note",
)
HOW_MADE = Claim("reports.log_sections.numbers", "How these numbers were computed", "phrase")
METHODS_RANKED = Claim(
    "reports.log_sections.valid_methods", "All {count} methods for this question, ranked", "phrase"
)

PUBLISHED = Claim(
    "reports.writing.report",
    "This report covers {rounds:,} rounds of {design} and uses only private releases ({version}).",
    "note",
)
SEE_RELEASES = Claim("reports.public_sections.published_sections", "Releases, by round", "phrase")
UNREAD = Claim(
    "reports.public_sections.answer_of", "No method in this library can analyse these releases.", "needs"
)
SEVERAL_PAIRS = Claim(
    "reports.public_sections.answer_of",
    "The trial has {arms} arms; choose a pair to compare: ai.report(ai.Contrast(public, "
    "treatment=, control=).fit(), path).",
    "advice",
)

MOST_ASSIGNED = Claim(
    "reports.log_sections.allocation_pictures",
    "The {shown} most frequently assigned of {arms} arms.",
    "note",
)
SHARES = Claim(
    "reports.log_sections.allocation_pictures",
    "Proportion of rounds assigned to each arm, by period",
    "note",
)
SHARES_TEXT = Claim(
    "reports.log_sections.allocation_pictures",
    "{title}. Over all rounds: {shares}.",
    "note",
    phrases={"title": SHARES},
)
PROPENSITIES = Claim("reports.log_sections.allocation_pictures", "Propensity of each arm, by round", "note")
PROPENSITIES_TEXT = Claim(
    "reports.log_sections.allocation_pictures",
    "{title}. Chosen arms had propensities of at least {smallest:.3g}.",
    "note",
    phrases={"title": PROPENSITIES},
)
