"""Claims about a regression with any adjustment: rounds, contexts, the default, units, joint tests."""

from __future__ import annotations

from adaptinf.claims import stationarity
from adaptinf.claims.claim import Claim, Part
from adaptinf.claims.rare_outcomes import UNCOMMON

LINEAR = Claim("always", "the mean reward is linear in the regressors", "assumes", short="linear mean reward")
CONSTANT = Claim(
    "always",
    "the coefficients do not change over time",
    "assumes",
    check="drift_found",
    scope=stationarity.TRENDS_ALONE,
    short="constant coefficients",
)
COEFFICIENTS_DRIFT = Claim(
    "inference.regression.facts.regression_facts.RegressionFacts.drift_found",
    "residuals of arm {arm!r} {move} with time (p = {p:.1g} in a trend test), so the coefficients may "
    "not be constant, and intervals may undercover",
    "caution",
)
NO_TREND = Claim(
    "no_trend",
    "No arm's residuals show evidence of a linear trend; the test does not detect cyclic changes.",
    "note",
)
EQUAL_VARIANCES = Claim("always", "errors have equal variances", "assumes", short="equal error variances")
NORMAL = Claim(
    "always",
    "errors are independent and normal, with equal variances",
    "assumes",
    short="independent normal errors, equal variances",
)
SAME_CONTEXTS = Claim(
    "always",
    "contexts have the same distribution in all rounds",
    "assumes",
    short="contexts have one distribution",
)

OMITTED = Claim(
    "omitted",
    "contexts omitted from the regression ({contexts}) may have affected assignment; arm coefficients "
    "are biased if these contexts also affect rewards",
    "caution",
)
UNNAMED_CONTEXTS = Claim(
    "inference.regression.facts.regression_facts.RegressionFacts.omitted",
    "contexts that were not logged",
    "phrase",
)
ROUNDS_OF_ARM = Claim(
    "rounds_of_arm",
    "The regression {formula} uses {n} of {rounds} rounds, namely those in which the arm was {arm!r}{how}.",
    "note",
)
NEVER_CHOSEN = Claim(
    "never_chosen", "No coefficient is estimated for arms without observations: {arms}.", "missing"
)
HEAD = (
    Claim("all_rounds", "The model {formula} is fitted to all {n} rounds.", "note"),
    ROUNDS_OF_ARM,
    NEVER_CHOSEN,
    OMITTED,
    Part("options.chosen", "note"),
    NO_TREND,
    Part("never_random", "caution"),
)
"""Claims for every fit, before those of its adjustment."""
CHOSEN = Claim(
    "inference.regression.adaptive_ols._chosen", "The default adjustment is {name}, because {reason}.", "note"
)
CLUSTERED = Claim(
    "inference.regression.adaptive_ols._chosen",
    "The default covariance is cluster-robust, because some units contribute several rounds.",
    "note",
)
CLASSICAL = Claim(
    "inference.regression.adaptive_ols._covariance",
    "The classical covariance estimator is the default here, because HC2 and HC3 are undefined when "
    "some rounds have leverage 1.",
    "note",
)

MOVES = Claim(
    "coefficients_may_move",
    "the sample is too small to test whether coefficients drift, and drift would invalidate the "
    "intervals; if coefficients are known to be constant, set stationary=True",
    "caution",
)
"""Claims for adjustments that weight the rounds of different arms differently over time."""
RARE = (Part("rare.notes", "note"), Part("rare.cautions", "caution"))
NO_SANDWICH = Claim(
    "no_sandwich",
    "no available covariance estimator allows for both dependence within units and adaptive data "
    "collection (the adaptive sandwich estimator is not implemented)",
    "caution",
)
UNITS = (Part("units_ignored", "caution"), NO_SANDWICH, Part("few_units", "caution"))
PERFECT = Claim("perfect", "All residuals are zero, so tests and intervals are undefined.", "missing")

SELECTED = Claim(
    "inference.regression.adjustments.default_adjustment",
    "the arm was selected from the data (arm={selector!r}), and no available correction for this "
    "selection yields informative intervals",
    "needs",
)
SELECTION_UNCOVERED = Claim(
    "inference.regression.adjustments.check_selection",
    "{name} does not account for the data-driven selection of the arm (arm={selector!r})",
    "needs",
)
DEPENDENT_UNITS = Claim(
    "inference.regression.facts.regression_facts.RegressionFacts.repeated_units",
    "errors may be correlated within units, and none of the available adjustments for adaptive data "
    "collection allows for within-unit correlation",
    "needs",
)
DECORRELATION_LEFT = Claim(
    "inference.regression.adjustments.default_adjustment",
    "the only remaining adjustment is W-decorrelation, but {reason}",
    "needs",
)
WEIGHTED_LEFT = Claim(
    "inference.regression.adjustments.default_adjustment",
    "weighted adjustment is used because no other adjustment is available, although {reason}",
    "reason",
)
NO_SUCH_COVARIANCE = Claim(
    "inference.regression.adaptive_ols._chosen",
    "the default adjustment for this log, {name!r}, does not support the {covariance} covariance estimator",
    "needs",
)
BEFOREHAND = Claim(
    "inference.regression.adjustments.check_selection",
    "a regression for one arm chosen in advance (with arm= set to its label), or for all arms with arm "
    "indicators",
    "advice",
)
INDEPENDENT_ANYHOW = Claim(
    "inference.regression.adjustments.default_adjustment",
    "{way}, if rounds can be assumed independent",
    "advice",
)
BASELINE = Claim(
    "inference.regression.adjustments.default_adjustment",
    "adjustment='none' as a naive baseline, which ignores adaptive data collection",
    "advice",
)
GUARANTEED = Claim(
    "inference.regression.adjustments.check_selection",
    "adjustment='max-information', if the log has a privacy guarantee",
    "advice",
)
NAME_CONTEXTS = Claim(
    "inference.regression.adjustments.default_adjustment",
    "a regression that includes the omitted contexts",
    "advice",
)
STATE_CONTEXTS = Claim(
    "inference.regression.adjustments.default_adjustment",
    "if arms were assigned without using contexts, set 'context_free' to True in the log",
    "advice",
)
BY_PROPENSITIES = Claim(
    "inference.regression.adjustments.default_adjustment",
    "Contrast or ArmMeans with propensity weighting",
    "advice",
)
OWN_CHOICE = Claim(
    "inference.regression.adjustments.default_adjustment",
    "choosing an adjustment explicitly with the adjustment= argument",
    "advice",
)

NO_ARM_NAMED = Claim(
    "inference.regression.design.select_arm",
    "the log does not specify a recommended arm ('recommended')",
    "needs",
)
NO_UNITS = Claim(
    "inference.regression.design.unit_codes",
    "the log has no unit column (set unit= when creating the log)",
    "needs",
)

TEST_CORRECTED = Claim(
    "inference.regression.regression_results.RegressionResults.naive",
    "Only corrected p-values and intervals allow for adaptive data collection.",
    "caution",
)
TEST_NAIVE = Claim(
    "inference.regression.regression_results.RegressionResults.naive",
    "Ordinary least-squares tests ignore adaptive data collection and are not valid here.",
    "caution",
)
NO_CORRECTION = Claim(
    "inference.regression.regression_results.CoefficientTest.pvalue_corrected",
    "no max-information correction is available: either none is needed, or the privacy guarantee of the "
    "log does not allow one",
    "needs",
)
NO_JOINT_LAW = Claim(
    "inference.regression.regression_results.CoefficientTest",
    "the joint distribution of statistics corrected for adaptive data collection is unknown",
    "needs",
)
NO_JOINT_TEST = Claim(
    "inference.regression.regression_results.RegressionResults.wald_test",
    "a tested coefficient lacks an estimate or standard error, or there are too few degrees of freedom "
    "for this number of restrictions (see the notes)",
    "needs",
)
TOO_FEW_TO_TEST = Claim(
    "inference.regression.joint_tests.PartialTests.wald_test",
    "too few {uncommon} were observed to test {terms} (see the notes)",
    "needs",
    phrases={"uncommon": UNCOMMON},
)
OTHER_COEFFICIENTS = Claim(
    "inference.regression.joint_tests.PartialTests.wald_test",
    "a joint test that excludes coefficients estimated from too few observations of the rarer outcome",
    "advice",
)
