"""The paragraph on methods: collection, estimation, validity, software."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

_AT = "reports.methods.methods_told"
TARGETS = {
    "arm-mean": Claim(_AT, "Mean outcomes of arms", "target"),
    "contrast": Claim(_AT, "Differences of mean outcomes between arms", "target"),
    "lift": Claim(_AT, "Relative lifts of mean outcomes over the control", "target"),
    "ratio": Claim(_AT, "Ratios of mean outcomes of arms", "target"),
    "ratio-contrast": Claim(_AT, "Differences between arms in ratios of means", "target"),
    "ratio-lift": Claim(_AT, "Relative lifts of ratios of means over the control", "target"),
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
SELECTED = Claim("selected", "They allow for choosing the arm by its estimate.", "reason")
CORRECTED = Claim(
    "corrected",
    "P-values and intervals of the corrected columns allow for adaptive collection through the "
    "max-information of the guarantee{cited}: {correction}.",
    "reason",
)
PARAGRAPH = (
    COLLECTED,
    Claim("allocated", "{rounds:,} rounds were allocated among {arms} arms ({labels}) by {rule}.", "note"),
    Claim(
        "exact_propensities",
        "Assignment probabilities are those of the design, logged in every round.",
        "assumes",
    ),
    Claim("estimated_propensities", "Assignment probabilities were estimated.", "note"),
    Claim("estimated", "{target} were estimated by {estimator}{weights}{cited}.", "target"),
    Claim(
        "law",
        "Two-sided p-values against {null:g} and {level} {intervals} use one reference distribution: "
        "{name}{cited}.",
        "note",
    ),
    SELECTED,
    Claim("exact", "They are exact for data collected in this way.", "reason"),
    Claim(
        "anytime",
        "They hold at all rounds simultaneously, and so are valid whenever the log was stopped.",
        "reason",
    ),
    Claim("asymptotic", "They are asymptotically valid under this adaptive collection.", "reason"),
    Claim("not_valid", "Without a correction they are not valid under adaptive collection.", "caution"),
    CORRECTED,
    Claim("several_terms", "P-values and intervals are unadjusted for multiple terms.", "caution"),
    Claim("software", "Computations used {versions}.", "note"),
)
"""In the order in which they are read."""
