"""The paragraph on methods: collection, estimation, validity, software."""

from __future__ import annotations

from adaptinf.claims.claim import Claim, Part

_AT = "reports.report_texts.methods_told"
TARGETS = {
    "arm-mean": Claim(_AT, "Mean outcomes of the arms", "target"),
    "contrast": Claim(_AT, "Differences in mean outcomes between arms", "target"),
    "lift": Claim(_AT, "Relative lifts in mean outcome over control", "target"),
    "ratio": Claim(_AT, "Ratios of the mean outcome to the mean denominator in each arm", "target"),
    "ratio-contrast": Claim(
        _AT, "Differences between arms in the ratio of mean outcome to mean denominator", "target"
    ),
    "ratio-lift": Claim(_AT, "Relative lifts over control for the ratio metric", "target"),
    "cate": Claim(_AT, "Treatment effects within groups", "target"),
    "interaction": Claim(_AT, "Differences in treatment effects between groups", "target"),
    "projection": Claim(
        _AT,
        "Coefficients in the best linear projection of conditional average treatment effects on the "
        "covariates",
        "target",
    ),
    "policy-value": Claim(_AT, "Policy values", "target"),
    "policy-contrast": Claim(_AT, "Differences in policy values", "target"),
    "bin-mean": Claim(_AT, "Mean outcomes by context bin", "target"),
    "coefficient": Claim(_AT, "Regression coefficients", "target"),
}
"""Descriptions of targets, by the kind of an estimand."""

COLLECTED = Claim("collected", "Outcomes from {rounds:,} rounds were collected under {rule}.", "note")
SELECTED = Claim(
    "selected",
    "P-values and intervals take into account that the arm was selected on the basis of the estimates.",
    "reason",
)
CORRECTED = Claim(
    "corrected",
    "The corrected results account for adaptive data collection through a max-information correction "
    "based on the privacy guarantee{cited}: {correction}.",
    "reason",
)
KNOWN_PROPENSITIES = Claim(
    "exact_propensities",
    "Assignment probabilities were known from the design and logged in every round.",
    "assumes",
)
DOUBTED_PROPENSITIES = Claim(
    "contradicted_propensities",
    "Assignment probabilities were logged in every round, but the observed assignments are inconsistent "
    "with them.",
    "caution",
)
HOLDS = {
    "exact": Claim("valid", "exact in finite samples", "phrase"),
    "anytime": Claim(
        "valid",
        "anytime-valid (simultaneously valid at all rounds, regardless of why data collection ended)",
        "phrase",
    ),
    "asymptotic": Claim("valid", "asymptotically valid", "phrase"),
}
"""Text on validity, by the label of a result."""
UNDER_ADAPTATION = Claim("valid", " when arms are assigned adaptively", "phrase")
AS_DECLARED = Claim("valid", ", as its author declares,", "phrase")
BUT_LIMITED = Claim("valid", ", subject to the limitations below", "phrase")
DEVIATIONS = Claim("deviations", "Limitations: {cautions}.", "caution")
PARAGRAPH = (
    COLLECTED,
    Claim("allocated", "{rounds:,} rounds were allocated among {arms} arms ({labels}) by {rule}.", "note"),
    KNOWN_PROPENSITIES,
    DOUBTED_PROPENSITIES,
    Claim("estimated_propensities", "Assignment probabilities were estimated.", "note"),
    Claim("estimated", "{target} were estimated by {estimator}{weights}{cited}.", "target"),
    Claim(
        "law",
        "Two-sided p-values (null value {null:g}) and {level} {intervals} are based on the same "
        "reference distribution: {name}{cited}.",
        "note",
    ),
    SELECTED,
    Claim("valid", "Inference is {holds}{declared}{under}{but}.", "reason"),
    Claim(
        "not_valid",
        "Uncorrected inference disregards the adaptive design and is not valid.",
        "caution",
    ),
    CORRECTED,
    Part("multiplicity", "note"),
    Part("table_notes", "note"),
    Part("deviations", "caution"),
    Claim("software", "Computations used {versions}.", "note"),
)
"""Sentences in reading order."""
