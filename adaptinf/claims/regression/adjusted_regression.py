"""What is said of the other adjustments: batched, W-decorrelation, the ellipsoid, anytime-valid tests."""

from __future__ import annotations

from adaptinf.claims.claim import Claim, Part
from adaptinf.claims.regression import regressions

LINEAR = Claim(
    "inference.regression.models.AdaptiveOLS",
    "one conditional mean throughout (no drift), linear in the columns",
    "assumes",
)
"""What adjustments assume of the rewards."""

# Batched

LACKS_BATCHES = Claim("lacks_batches", "it needs batches, and the log has none (give batch=)", "needs")
UNUSABLE_BY_REWARDS = Claim(
    "unusable_by_rewards",
    "{what}; which ones can depend on earlier batches' rewards, so that leaving them out would bend the "
    "law of the statistic",
    "needs",
)
BATCHED_NEEDS = (
    LACKS_BATCHES,
    UNUSABLE_BY_REWARDS,
    Part("all_unusable", "needs"),
)
UNUSABLE = Claim(
    "inference.regression.facts.batched.BatchedFacts.unusable",
    "in {missing} of {batches} batches ({which}, counted from 0) the columns are not independent, or leave "
    "no residual",
    "needs",
)
BATCHED_REASONS = (
    Claim(
        "told_apart_in_each",
        "every batch tells all coefficients, so that a drift from batch to batch does no harm to arms",
        "reason",
    ),
)
LEFT_OUT = Claim("left_out", "Left out, as rewards did not move the choice of arms: {what}.", "note")
CONSTANT_IN_A_BATCH = Claim(
    "constant_in_a_batch",
    "In a batch the rewards do not vary about the fit: there is no estimate.",
    "note",
)
BATCHED = (
    *regressions.HEAD,
    Claim(
        "over_batches",
        "Batched least squares over {batches} batches: assumes coefficients that stay the same, and within "
        "each batch noise of one variance that adapts to nothing.",
        "note",
    ),
    LEFT_OUT,
    Claim("by_student", "The law of the statistics is exact for normal noise.", "note"),
    Claim("by_normal", "Normal approximation: it needs large batches, or many of moderate size.", "note"),
    Claim("drifts", "wald_test: restrictions in every batch, whatever the coefficients' drift.", "note"),
    CONSTANT_IN_A_BATCH,
    *regressions.RARE,
    *regressions.UNITS,
)
DRIFTING_TEST = Claim(
    "inference.regression.batched.BatchedTests.wald_test",
    "Sum over batches of F statistics, each mapped to chi-squared: coefficients may drift.",
    "note",
)
STUDENT_SUM = Claim(
    "inference.regression.batched.BatchedTests.wald_test",
    "sum of multivariate Student vectors by batch",
    "note",
)

# W-decorrelation

UNEVEN = Claim(
    "uneven",
    "it would leave up to {left:.0%} of the error of least squares in the estimates, bias included, "
    "which its standard errors do not count: columns of very different size do that, and large ridges",
    "needs",
)
SHORT = Claim(
    "short",
    "it would leave up to {left:.0%} of the error of least squares in the estimates, bias included, "
    "which its standard errors do not count: large ridges do that, and few rounds",
    "needs",
)
LEFT = (
    UNEVEN,
    Claim(
        "rarely_seen",
        "it would leave up to {left:.0%} of the error of least squares in the estimates, bias included, "
        "which its standard errors do not count: an arm or level that rarely comes does that, here {name}, "
        "in {rounds} of {n} rounds",
        "needs",
    ),
    SHORT,
)
"""Why W-decorrelation does not serve; the first that is so is said."""
ONE_SCALE = Claim("uneven", "covariates on one scale, such as scale(age) in the formula", "advice")
SMALLER_RIDGE = Claim("ridge_given", "a smaller ridge=", "advice")
LEFT_ADVICE = (
    ONE_SCALE,
    Claim("rarely_seen", "more rounds of what rarely comes", "advice"),
    Claim("rarely_seen", "Contrast or ArmMeans, by propensities, for arms", "advice"),
    SMALLER_RIDGE,
)
DECORRELATION_REASONS = (
    Claim("needs_little", "it needs no propensities, batches or privacy guarantee", "reason"),
)
DECORRELATION = (
    *regressions.HEAD,
    Claim(
        "decorrelates",
        "W-decorrelation: assumes {linear}, and noise of one variance; needs no propensities.",
        "note",
    ),
    Claim(
        "default_ridge",
        "Ridge {ridge:.4g}: its default, from the whole design matrix and so not, strictly, known before the "
        "first round.",
        "note",
    ),
    Claim("given_ridge", "Ridge {ridge:.4g}: taken to be fixed before the data.", "note"),
    Claim(
        "left_in",
        "Up to {left:.1%} of the error of least squares is left in the estimate, bias included; the standard "
        "errors do not count that.",
        "note",
    ),
    regressions.PERFECT,
    regressions.MOVES,
    *regressions.RARE,
    *regressions.UNITS,
)

# The self-normalised ellipsoid

ELLIPSOID_BOUNDS = Claim(
    "bounded",
    "Sub-Gaussian noise of scale {scale:g} ({source}), coefficients of norm at most {bound:g}, ridge "
    "{ridge:g}.",
    "note",
)
ELLIPSOID = (
    *regressions.HEAD,
    Claim(
        "at_once",
        "Self-normalised ellipsoid: holds at all rounds at once and for all combinations of coefficients at "
        "once, whatever the design did; assumes {linear}.",
        "note",
    ),
    ELLIPSOID_BOUNDS,
    Claim(
        "described",
        "Standard errors are descriptions: the noise scale times a half-width of the ellipsoid of radius 1.",
        "note",
    ),
    Claim(
        "beyond_bound",
        "Least squares has coefficients of norm {norm:.3g}, beyond the bound: if the bound is wrong, so are "
        "the intervals. Covariates on one scale, such as scale(age) in the formula, make a bound easier to "
        "know.",
        "note",
    ),
    regressions.MOVES,
    *regressions.RARE,
    *regressions.UNITS,
)
HALF_RANGE = Claim(
    "inference.regression.facts.at_any_time.EllipsoidFacts.bounded", "half the range of the rewards", "note"
)
ELLIPSOID_LAW = Claim(
    "inference.regression.ellipsoid.EllipsoidTests.wald_test",
    "self-normalised ellipsoid, valid at any time",
    "note",
)

# Anytime-valid t and F tests

NEEDS_A_FIXED_DESIGN = Claim(
    "data.adaptive",
    "its Bayes factors need a design that was fixed in advance, and here rewards may have changed later "
    "actions",
    "needs",
)
ANYTIME_NEEDS = (NEEDS_A_FIXED_DESIGN,)
ANYTIME = (
    *regressions.HEAD,
    Claim(
        "at_all_rounds",
        "Anytime-valid t and F tests: hold at all rounds at once, for a design that does not depend on "
        "rewards and normal noise of one variance.",
        "note",
    ),
    Claim(
        "mixture",
        "Mixture of precision {precision:g}, fixed before the data: powerful for coefficients of about "
        "{size:.3g} times the standard deviation of the noise.",
        "note",
    ),
    regressions.PERFECT,
    *regressions.RARE,
    *regressions.UNITS,
)
ANYTIME_LAW = Claim(
    "inference.regression.anytime.AnytimeTests.wald_test",
    "anytime-valid F, by its Bayes factor",
    "note",
)
