"""What is said of the other adjustments: batched, W-decorrelation, the ellipsoid, anytime-valid tests."""

from __future__ import annotations

from adaptinf.claims.claim import Claim, Part
from adaptinf.claims.regression import regressions

# Batched

LACKS_BATCHES = Claim("lacks_batches", "it needs batches (give batch=)", "needs")
UNUSABLE = Claim(
    "inference.regression.facts.batched.BatchedFacts.unusable",
    "in {missing} of {batches} batches ({which}, counted from 0) columns are collinear or leave no residual",
    "needs",
)
UNUSABLE_BY_REWARDS = Claim(
    "unusable_by_rewards",
    "{what}; which ones may depend on earlier rewards, so that leaving them out would change the law of the "
    "statistic",
    "needs",
)
BATCHED_NEEDS = (
    LACKS_BATCHES,
    UNUSABLE_BY_REWARDS,
    Part("all_unusable", "needs"),
)
BATCHED_REASONS = (
    Claim(
        "told_apart_in_each",
        "every batch identifies all coefficients, so that a drift between batches cancels in comparisons of "
        "arms",
        "reason",
    ),
)
LEFT_OUT = Claim("left_out", "Left out, as rewards did not influence the choice of arms: {what}.", "note")
CONSTANT_IN_A_BATCH = Claim("constant_in_a_batch", "No estimate: in some batch the fit is perfect.", "note")
BATCHED = (
    regressions.CONSTANT,
    Claim(
        "always", "within a batch, noise has one variance and does not depend on earlier rounds", "assumes"
    ),
    *regressions.HEAD,
    Claim("over_batches", "Batched least squares over {batches} batches.", "note"),
    LEFT_OUT,
    Claim("by_student", "The law of the statistics is exact for normal noise.", "note"),
    Claim("by_normal", "Normal approximation: it needs large batches, or many of moderate size.", "note"),
    Claim("drifts", "wald_test tests the restrictions in every batch, even if coefficients drift.", "note"),
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

UNEVEN = Claim("uneven", "columns of very different size or a large ridge", "needs")
RARELY_SEEN = Claim("rarely_seen", "a rare arm or level ({name}, in {rounds} of {n} rounds)", "needs")
SHORT = Claim("always", "few rounds or a large ridge", "needs")
CAUSES = (UNEVEN, RARELY_SEEN, SHORT)
"""Why much of the error is left; the first that is so is said."""
TOO_MUCH_LEFT = Claim(
    "too_much_left",
    "because of {cause}, its estimates would keep up to {left:.0%} of the least-squares error, bias "
    "included, which its standard errors would not reflect",
    "needs",
)
DECORRELATION_NEEDS = (TOO_MUCH_LEFT,)
"""Of a fit with its ridge."""
ONE_SCALE = Claim("uneven", "covariates on one scale, such as scale(age) in the formula", "advice")
SMALLER_RIDGE = Claim("ridge_given", "a smaller ridge=", "advice")
LEFT_ADVICE = (
    ONE_SCALE,
    Claim("rarely_seen", "more rounds of the rare arm or level", "advice"),
    Part("by_propensities", "advice"),
    SMALLER_RIDGE,
)
DECORRELATION_REASONS = (
    Claim("needs_little", "it needs no propensities, batches or privacy guarantee", "reason"),
)
DECORRELATION = (
    regressions.LINEAR,
    regressions.CONSTANT,
    regressions.EQUAL_VARIANCES,
    *regressions.HEAD,
    Claim(
        "default_ridge",
        "W-decorrelation with the default ridge {ridge:.4g}, which is computed from the whole design matrix "
        "and hence, strictly, not known before the first round.",
        "note",
    ),
    Claim("given_ridge", "W-decorrelation with ridge {ridge:.4g}, assumed to be set in advance.", "note"),
    Claim(
        "left_in",
        "Estimates keep up to {left:.1%} of the error and bias of least squares, which standard errors do "
        "not reflect.",
        "note",
    ),
    regressions.PERFECT,
    regressions.MOVES,
    *regressions.RARE,
    *regressions.UNITS,
)

# The self-normalised ellipsoid

HALF_RANGE = Claim(
    "inference.regression.facts.at_any_time.EllipsoidFacts.sub_gaussian",
    "half the range of the rewards",
    "note",
)
SUB_GAUSSIAN = Claim("sub_gaussian", "noise is sub-Gaussian of scale {scale:g} ({source})", "assumes")
ELLIPSOID = (
    regressions.LINEAR,
    regressions.CONSTANT,
    SUB_GAUSSIAN,
    Claim("norm_bound", "the coefficients have a norm of at most {bound:g}", "assumes"),
    *regressions.HEAD,
    Claim(
        "ridge",
        "Self-normalised ellipsoid with ridge {ridge:g}: holds at all rounds and for all combinations of "
        "coefficients at once, whatever the design.",
        "note",
    ),
    Claim(
        "always",
        "Standard errors are descriptive only: the noise scale times the half-width of the unit ellipsoid.",
        "note",
    ),
    Claim(
        "beyond_bound",
        "The least-squares coefficients have norm {norm:.3g}, above the bound: if the bound is wrong, so are "
        "the intervals. With covariates on a common scale, as by scale(age), a bound is easier to know.",
        "note",
    ),
    regressions.MOVES,
    *regressions.RARE,
    *regressions.UNITS,
)
ELLIPSOID_LAW = Claim(
    "inference.regression.ellipsoid.EllipsoidTests.wald_test",
    "self-normalised ellipsoid, valid at any time",
    "note",
)

# Anytime-valid t and F tests

NEEDS_A_FIXED_DESIGN = Claim(
    "data.adaptive",
    "its Bayes factors need a design fixed in advance, and here rewards may have changed later actions",
    "needs",
)
ANYTIME_NEEDS = (NEEDS_A_FIXED_DESIGN,)
ANYTIME = (
    Claim("always", "the design does not depend on rewards", "assumes"),
    regressions.LINEAR,
    regressions.CONSTANT,
    regressions.NORMAL,
    *regressions.HEAD,
    Claim("always", "Anytime-valid t and F tests, which may be read at every round.", "note"),
    Claim(
        "mixture",
        "Mixture of precision {precision:g}, set in advance: most powerful for coefficients of about "
        "{size:.3g} times the noise's standard deviation.",
        "note",
    ),
    regressions.PERFECT,
    *regressions.RARE,
    *regressions.UNITS,
)
ANYTIME_LAW = Claim(
    "inference.regression.anytime.AnytimeTests.wald_test", "anytime-valid F, by its Bayes factor", "note"
)
