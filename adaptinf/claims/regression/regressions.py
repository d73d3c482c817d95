"""What is said of a regression whatever its adjustment: rounds, contexts, the default, units, joint tests."""

from __future__ import annotations

from adaptinf.claims.claim import Claim, Part

# What regressions assume

LINEAR = Claim("always", "the mean reward is linear in the columns", "assumes")
CONSTANT = Claim(
    "always",
    "the coefficients do not change over time",
    "assumes",
)
EQUAL_VARIANCES = Claim("always", "errors have equal variances", "assumes")
NORMAL = Claim("always", "errors are independent and normal, with equal variances", "assumes")
SAME_CONTEXTS = Claim("always", "contexts have the same distribution in all rounds", "assumes")

# Which rounds, and which adjustment

OMITTED = Claim(
    "omitted",
    "contexts left out of the regression may have influenced the choice of arms ({contexts}): if they also "
    "affect rewards, arm coefficients are biased",
    "caution",
)
UNNAMED_CONTEXTS = Claim(
    "inference.regression.facts.common.RegressionFacts.omitted", "contexts missing from the log", "caution"
)
ROUNDS_OF_ARM = Claim("rounds_of_arm", "{formula}; the {n} rounds (of {rounds}) of arm {arm!r}{how}.", "note")
NEVER_CHOSEN = Claim("never_chosen", "Arms without a coefficient, as they were never chosen: {arms}.", "note")
HEAD = (
    Claim("all_rounds", "{formula}; all {n} rounds.", "note"),
    ROUNDS_OF_ARM,
    NEVER_CHOSEN,
    OMITTED,
    Part("options.chosen", "note"),
)
"""Of every fit, before what its adjustment says."""
CHOSEN = Claim("inference.regression.models._chosen", "Default adjustment: {name}, as {reason}.", "note")
CLUSTERED = Claim(
    "inference.regression.models._chosen",
    "Default covariance: by unit, because units have several rounds.",
    "note",
)
CLASSICAL = Claim(
    "inference.regression.models._covariance",
    "Default covariance: classical, because a single round determines a coefficient, for which robust "
    "standard errors are undefined.",
    "note",
)

# What a fit ends with

MOVES = Claim(
    "coefficients_may_move",
    "coefficients that change over time can bias intervals badly (stationary=True rules such changes out)",
    "caution",
)
"""Of adjustments that give the rounds of several arms weights of their own in time."""
RARE = (Part("rare.notes", "note"), Part("rare.cautions", "caution"))
NO_SANDWICH = Claim(
    "no_sandwich",
    "no covariance here allows for repeated units under adaptive collection (the adaptive sandwich is not "
    "implemented)",
    "caution",
)
UNITS = (Part("units_ignored", "caution"), NO_SANDWICH, Part("few_units", "caution"))
PERFECT = Claim("perfect", "The fit is perfect: without residuals there are no tests or intervals.", "note")

# Why there is no default, and what to do

SELECTED = Claim(
    "inference.regression.adjustments.default_adjustment",
    "the arm was selected as {selector!r} from random actions or rewards, and no useful correction covers "
    "that choice",
    "needs",
)
SELECTION_UNCOVERED = Claim(
    "inference.regression.adjustments.check_selection",
    "{name} does not allow for an arm selected as {selector!r}, on the basis of random actions or rewards",
    "needs",
)
DEPENDENT_UNITS = Claim(
    "inference.regression.facts.common.RegressionFacts.repeated_units",
    "units have several rounds, whose errors may be dependent, and no adjustment for adaptive collection "
    "allows for that",
    "needs",
)
DECORRELATION_LEFT = Claim(
    "inference.regression.adjustments.default_adjustment",
    "only w-decorrelation is left, and {reason}",
    "needs",
)
WEIGHTED_LEFT = Claim(
    "inference.regression.adjustments.default_adjustment",
    "no other adjustment is possible, although {reason}",
    "reason",
)
NO_SUCH_COVARIANCE = Claim(
    "inference.regression.models._chosen",
    "the default adjustment here, {name!r}, has no {covariance} covariance",
    "needs",
)
BEFOREHAND = Claim(
    "inference.regression.adjustments.check_selection",
    "the arm by its label, if that was settled in advance; or all arms, with arm dummies",
    "advice",
)
INDEPENDENT_ARM = Claim(
    "inference.regression.adjustments.default_adjustment",
    "an arm fixed in advance or dummies for all arms, assuming independent rounds",
    "advice",
)
INDEPENDENT_ANYHOW = Claim(
    "inference.regression.adjustments.default_adjustment", "{way}, assuming independent rounds", "advice"
)
BASELINE = Claim(
    "inference.regression.adjustments.default_adjustment",
    "adjustment='none' as a naive baseline, which ignores adaptivity",
    "advice",
)
GUARANTEED = Claim(
    "inference.regression.adjustments.check_selection",
    "adjustment='max-information', if the log has a privacy guarantee",
    "advice",
)
NAME_CONTEXTS = Claim(
    "inference.regression.adjustments.default_adjustment", "a regression with these contexts", "advice"
)
STATE_CONTEXTS = Claim(
    "inference.regression.adjustments.default_adjustment",
    "context_free=True for the log, if it assigned arms without contexts",
    "advice",
)
BY_PROPENSITIES = Claim(
    "inference.regression.adjustments.default_adjustment", "Contrast or ArmMeans, by propensities", "advice"
)
OWN_CHOICE = Claim(
    "inference.regression.adjustments.default_adjustment", "an adjustment= of your choice", "advice"
)

# Of the log

NO_ARM_NAMED = Claim(
    "inference.regression.design.select_arm",
    "the design recommended no arm (recommended= of the log)",
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
    "Only the corrected numbers account for adaptivity.",
    "caution",
)
TEST_NAIVE = Claim(
    "inference.regression.results.RegressionResults.naive",
    "Not valid under adaptivity: plain least squares.",
    "caution",
)
NO_CORRECTION = Claim(
    "inference.regression.results.CoefficientTest.pvalue_corrected",
    "none is due for this estimator, or the log's guarantee does not allow one",
    "needs",
)
NO_JOINT_LAW = Claim(
    "inference.regression.results.CoefficientTest",
    "the numbers must be corrected for adaptive collection, and corrected ones have no known joint law",
    "needs",
)
NO_JOINT_TEST = Claim(
    "inference.regression.results.RegressionResults.wald_test",
    "a coefficient involved has no estimate or no standard error, or the covariance has too few degrees of "
    "freedom for that many restrictions: see the notes",
    "needs",
)
TOO_FEW_TO_TEST = Claim(
    "inference.regression.joint.PartialTests.wald_test",
    "too few uncommon outcomes to test {terms}: see the notes",
    "needs",
)
OTHER_COEFFICIENTS = Claim(
    "inference.regression.joint.PartialTests.wald_test", "restrictions on the other coefficients", "advice"
)
