"""The paragraph on methods: collection, estimation, validity, software."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

_AT = "reports.methods.methods_told"
UNNAMED_RULE = Claim(_AT, "a rule that is not named", "note")
UNNAMED_BY_LOG = Claim(_AT, "a rule that the log does not name", "note")
TARGETS = {
    "arm-mean": Claim(_AT, "Mean outcomes of arms", "target"),
    "contrast": Claim(_AT, "Differences of mean outcomes between arms", "target"),
    "lift": Claim(_AT, "Relative lifts of mean outcomes over the control", "target"),
    "ratio": Claim(_AT, "Ratios of mean outcomes of arms", "target"),
    "ratio-contrast": Claim(_AT, "Differences between arms of ratios of mean outcomes", "target"),
    "ratio-lift": Claim(_AT, "Relative lifts over the control of ratios of mean outcomes", "target"),
    "cate": Claim(_AT, "Effects within groups", "target"),
    "interaction": Claim(_AT, "Differences of effects between groups", "target"),
    "projection": Claim(_AT, "Projections of the effect on covariates", "target"),
    "policy-value": Claim(_AT, "Policy values", "target"),
    "policy-contrast": Claim(_AT, "Differences of policy values", "target"),
    "bin-mean": Claim(_AT, "Mean outcomes by bin of the context", "target"),
    "coefficient": Claim(_AT, "Coefficients of the regression", "target"),
}
"""By the kind of an estimand."""

COLLECTED = Claim("collected", "Outcomes of {rounds:,} rounds were collected by {rule}.", "note")
SELECTED = Claim("selected", "They allow for the choice of the arm by its estimate.", "reason")
CORRECTED = Claim(
    "corrected",
    "P-values and intervals of the corrected columns allow for adaptive collection by the max-information "
    "under the guarantee{cited}: {correction}.",
    "reason",
)
PARAGRAPH = (
    COLLECTED,
    Claim("allocated", "{rounds:,} rounds were allocated among {arms} arms ({labels}) by {rule}.", "note"),
    Claim(
        "exact_propensities",
        "The probabilities of assignment are the design's own, logged in every round.",
        "assumes",
        check="inference.diagnostics.propensities",
    ),
    Claim("estimated_propensities", "The probabilities of assignment were estimated.", "note"),
    Claim("estimated", "{target} were estimated by {estimator}{weights}{cited}.", "target"),
    Claim(
        "law",
        "Two-sided p-values, against {null:g}, and {level} {intervals} are from one law: {name}{cited}.",
        "note",
    ),
    SELECTED,
    Claim("exact", "They are exact for data collected in this way.", "reason"),
    Claim(
        "anytime",
        "They hold at all rounds together, so that they are valid however the log was stopped.",
        "reason",
    ),
    Claim("asymptotic", "They are asymptotically valid under this adaptive collection.", "reason"),
    Claim("not_valid", "Without a correction they are not valid under adaptive collection.", "caution"),
    CORRECTED,
    Claim("several_terms", "P-values and intervals are not adjusted for the number of terms.", "caution"),
    Claim("software", "Computations used {versions}.", "note"),
)
"""In the order in which they are read."""
