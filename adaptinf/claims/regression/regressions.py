"""What is said of a regression whatever its adjustment: rounds, contexts, the default, units, joint tests."""

from __future__ import annotations

from adaptinf.claims.claim import Claim, Part

# Which rounds, and which adjustment

OMITTED = Claim(
    "omitted",
    "{contexts} may have moved the choice of arms and are not in the regression: where they also move "
    "rewards, they show as effects of the arms",
    "caution",
)
ROUNDS_OF_ARM = Claim("rounds_of_arm", "{formula}; the {n} of {rounds} rounds of arm {arm!r}{how}.", "note")
NEVER_CHOSEN = Claim("never_chosen", "Never chosen, so without a coefficient: {arms}.", "note")
HEAD = (
    Claim("all_rounds", "{formula}; all {n} rounds.", "note"),
    ROUNDS_OF_ARM,
    NEVER_CHOSEN,
    OMITTED,
    Part("options.chosen", "note"),
)
"""Of every fit, before what its adjustment says."""
UNNAMED_CONTEXTS = Claim(
    "inference.regression.facts.common.RegressionFacts.omitted",
    "contexts that the log does not have",
    "caution",
)
CHOSEN = Claim(
    "inference.regression.models._chosen", "Adjustment chosen for this log: {name}, as {reason}.", "note"
)
CLUSTERED = Claim(
    "inference.regression.models._chosen",
    "Covariance chosen by unit, as units have several rounds.",
    "note",
)
CLASSICAL = Claim(
    "inference.regression.models._covariance",
    "Covariance classical, as one round alone decides a coefficient, where robust ones have no errors.",
    "note",
)

# What a fit ends with

MOVES = Claim(
    "coefficients_may_move",
    "assumes that coefficients are the same in every round: under a drift of rewards intervals may miss "
    "by far (stationary=True says that there is none)",
    "caution",
)
"""Of adjustments that give the rounds of several arms weights of their own in time."""
RARE = (Part("rare.notes", "note"), Part("rare.cautions", "caution"))
UNITS_IGNORED_UNDER_ADAPTATION = Claim(
    "units_ignored_under_adaptation",
    "units have several rounds: {harm}; a covariance by unit for adaptive collection (an adaptive "
    "sandwich) is not there",
    "caution",
)
UNITS_IGNORED = Claim("units_ignored", "units have several rounds: {harm}", "caution")
UNITS = (
    UNITS_IGNORED,
    UNITS_IGNORED_UNDER_ADAPTATION,
    Part("few_units", "caution"),
)
PERFECT = Claim("perfect", "The rewards do not vary about the fit: there are no tests or intervals.", "note")

# Why there is no default, and what to do

SELECTED = Claim(
    "inference.regression.adjustments.default_adjustment",
    "the arm was selected as {selector!r} by actions or rewards that are themselves random, and no "
    "correction of any use covers that choice",
    "needs",
)
SELECTION_UNCOVERED = Claim(
    "inference.regression.adjustments.check_selection",
    "the arm was selected as {selector!r} by actions or rewards that are themselves random, which {name} "
    "does not account for",
    "needs",
)
DEPENDENT_UNITS = Claim(
    "inference.regression.facts.common.RegressionFacts.repeated_units",
    "units have several rounds, whose errors may depend on each other, and no adjustment for adaptive "
    "collection allows for that",
    "needs",
)
DECORRELATION_LEFT = Claim(
    "inference.regression.adjustments.default_adjustment",
    "w-decorrelation is what is left, and {reason}",
    "needs",
)
WEIGHTED_LEFT = Claim(
    "inference.regression.adjustments.default_adjustment",
    "no other adjustment serves, although {reason}",
    "reason",
)
NO_SUCH_COVARIANCE = Claim(
    "inference.regression.models._chosen",
    "adjustment={name!r}, the default here, has no {covariance} covariance",
    "needs",
)
BEFOREHAND = Claim(
    "inference.regression.adjustments.check_selection",
    "the arm by its label, if it was settled before the data; or all arms, with arm dummies",
    "advice",
)
INDEPENDENT_ARM = Claim(
    "inference.regression.adjustments.default_adjustment",
    "an arm that was named before the data, or all arms with arm dummies, which takes them to be independent",
    "advice",
)
INDEPENDENT_ANYHOW = Claim(
    "inference.regression.adjustments.default_adjustment",
    "{way}, which takes them to be independent",
    "advice",
)
BASELINE = Claim(
    "inference.regression.adjustments.default_adjustment",
    "adjustment='none' as a naive baseline, not valid under adaptivity",
    "advice",
)
GUARANTEED = Claim(
    "inference.regression.adjustments.check_selection",
    "adjustment='max-information', for a log with a privacy guarantee",
    "advice",
)
NAME_CONTEXTS = Claim(
    "inference.regression.adjustments.default_adjustment",
    "these contexts among the columns",
    "advice",
)
STATE_CONTEXTS = Claim(
    "inference.regression.adjustments.default_adjustment",
    "AdaptiveLog(..., context_free=True) if they had no part",
    "advice",
)
BY_PROPENSITIES = Claim(
    "inference.regression.adjustments.default_adjustment",
    "Contrast or ArmMeans, by propensities",
    "advice",
)
OWN_CHOICE = Claim(
    "inference.regression.adjustments.default_adjustment",
    "an adjustment= of your own choice",
    "advice",
)

# Of the log

NO_ARM_NAMED = Claim(
    "inference.regression.design.select_arm",
    "the log's design named no arm (recommended= of the log)",
    "needs",
)
NO_UNITS = Claim(
    "inference.regression.design.unit_codes",
    "the log has no column of units (give unit= when making the log)",
    "needs",
)

# Of tests of combinations of coefficients

TEST_CORRECTED = Claim(
    "inference.regression.results.RegressionResults.naive",
    "Uncorrected numbers are not valid under adaptivity: the corrected ones account for it.",
    "caution",
)
TEST_NAIVE = Claim(
    "inference.regression.results.RegressionResults.naive",
    "Not valid under adaptivity: least squares.",
    "caution",
)
NO_CORRECTION = Claim(
    "inference.regression.results.CoefficientTest.pvalue_corrected",
    "none is due for this estimator, or the log's guarantee allows none",
    "needs",
)
NO_JOINT_LAW = Claim(
    "inference.regression.results.CoefficientTest",
    "the numbers must be corrected for adaptive collection, whose joint law is not known",
    "needs",
)
NO_JOINT_TEST = Claim(
    "inference.regression.results.RegressionResults.wald_test",
    "a coefficient that is involved has no estimate or no standard error, or the covariance has too few "
    "degrees of freedom for so many restrictions: see the notes",
    "needs",
)
TOO_FEW_TO_TEST = Claim(
    "inference.regression.joint.PartialTests.wald_test",
    "outcomes other than the commonest are too few to test {terms}: see the notes",
    "needs",
)
OTHER_COEFFICIENTS = Claim(
    "inference.regression.joint.PartialTests.wald_test",
    "restrictions of the other coefficients",
    "advice",
)
