"""Claims about the other adjustments: batched, W-decorrelation, the ellipsoid, anytime-valid tests."""

from __future__ import annotations

from adaptinf.claims.arms.batched import CONSTANT_SHARES, NO_BATCHES
from adaptinf.claims.claim import Claim, Part
from adaptinf.claims.regression import regressions

# These claims concern batched regressions, which fit each batch alone.

UNUSABLE = Claim(
    "inference.regression.facts.batched_facts.BatchedFacts.unusable",
    "regressors are collinear or leave no residual degrees of freedom in {missing} of {batches} batches "
    "(numbered from 0: {which})",
    "needs",
)
UNUSABLE_BY_REWARDS = Claim(
    "unusable_by_rewards",
    "{what}; omitting unusable batches would change the null distribution, because earlier rewards may "
    "affect which batches are unusable",
    "needs",
)
BATCHED_NEEDS = (
    NO_BATCHES,
    UNUSABLE_BY_REWARDS,
    Part("all_unusable", "needs"),
)
BATCHED_REASONS = (
    Claim(
        "told_apart_in_each",
        "all coefficients are identified within every batch, so drift between batches cancels in "
        "comparisons of arms",
        "reason",
    ),
)
ONLY_BATCHES = Claim(
    "inference.regression.adjustments.default_adjustment",
    "no other adjustment is valid for the log",
    "reason",
)
LEFT_OUT = Claim(
    "left_out",
    "Some batches are excluded, because {what}. This exclusion is valid, because rewards did not affect "
    "assignment.",
    "note",
)
CONSTANT_IN_A_BATCH = Claim(
    "constant_in_a_batch",
    "no estimates are available, because the regression fits the rewards of at least one batch exactly, "
    "leaving no residual variance in that batch",
    "caution",
)
BATCHED = (
    CONSTANT_SHARES,
    regressions.CONSTANT,
    Claim(
        "always",
        "within each batch, errors have equal variance and are independent of earlier rounds",
        "assumes",
        short="equal variances within batches, independent of the past",
    ),
    *regressions.HEAD,
    Claim(
        "over_batches",
        "Estimates combine separate least-squares fits to each of the {batches} batches.",
        "note",
        short="combined over {batches} batches",
    ),
    LEFT_OUT,
    Claim("by_student", "Tests are exact if errors are normal.", "note"),
    Claim(
        "by_normal",
        "The normal approximation requires large batches, or many batches of moderate size.",
        "note",
    ),
    Claim(
        "drifts",
        "wald_test tests the restrictions in every batch and remains valid if coefficients drift.",
        "note",
    ),
    CONSTANT_IN_A_BATCH,
    *regressions.RARE,
    *regressions.UNITS,
)
DRIFTING_TEST = Claim(
    "inference.regression.batched_regression.BatchedTests.wald_test",
    "The test statistic is the sum of the batches' F statistics, each transformed to a chi-squared "
    "variable. The test allows coefficients to differ between batches.",
    "note",
)
STUDENT_SUM = Claim(
    "inference.regression.batched_regression.BatchedTests.wald_test",
    "sum of independent multivariate t vectors, one per batch",
    "phrase",
)

UNEVEN = Claim(
    "uneven",
    "the scales of the covariates differ widely, or the ridge penalty is too large",
    "needs",
)
RARELY_SEEN = Claim(
    "rarely_seen", "an arm or factor level is rare ({name}, present in {rounds} of {n} rounds)", "needs"
)
SHORT = Claim("always", "there are too few rounds for this ridge penalty", "needs")
CAUSES = (UNEVEN, RARELY_SEEN, SHORT)
"""Reasons why much of the error remains; only the first true claim is stated."""
TOO_MUCH_LEFT = Claim(
    "too_much_left",
    "because {cause}, W-decorrelated estimates may retain up to {left:.0%} of the bias and sampling "
    "error of least squares, and their standard errors would not account for this",
    "needs",
)
DECORRELATION_NEEDS = (TOO_MUCH_LEFT,)
"""Claims for a fit by W-decorrelation, given its ridge."""
ONE_SCALE = Claim(
    "uneven",
    "rescaling the covariates to a common scale (for example, by using scale(age) in the formula)",
    "advice",
)
SMALLER_RIDGE = Claim("ridge_given", "a smaller ridge penalty (ridge=)", "advice")
LEFT_ADVICE = (
    ONE_SCALE,
    Claim("rarely_seen", "collecting more data on the rarely observed arm or factor level", "advice"),
    Part("by_propensities", "advice"),
    SMALLER_RIDGE,
)
DECORRELATION_REASONS = (
    Claim(
        "needs_little",
        "decorrelation does not require propensities, batches or differential privacy",
        "reason",
    ),
)
DECORRELATION = (
    regressions.LINEAR,
    regressions.CONSTANT,
    regressions.EQUAL_VARIANCES,
    *regressions.HEAD,
    Claim(
        "default_ridge",
        "The default ridge penalty of W-decorrelation ({ridge:.4g}) is computed from the full design "
        "matrix, whereas the theory requires a value fixed in advance.",
        "note",
    ),
    Claim(
        "given_ridge",
        "W-decorrelation assumes that the ridge penalty ({ridge:.4g}) was fixed in advance.",
        "note",
    ),
    Claim(
        "left_in",
        "As much as {left:.1%} of the estimation error of ordinary least squares, including bias, remains "
        "in the decorrelated estimates; their standard errors ignore this remainder.",
        "note",
    ),
    regressions.PERFECT,
    regressions.MOVES,
    *regressions.RARE,
    *regressions.UNITS,
)

HALF_RANGE = Claim(
    "inference.regression.facts.batched_facts.EllipsoidFacts.sub_gaussian",
    "half the reward range",
    "phrase",
)
SUB_GAUSSIAN = Claim(
    "sub_gaussian",
    "errors are sub-Gaussian with scale parameter {scale:g} ({source})",
    "assumes",
    short="sub-Gaussian errors, scale {scale:g}",
)
ELLIPSOID = (
    regressions.LINEAR,
    regressions.CONSTANT,
    SUB_GAUSSIAN,
    Claim(
        "norm_bound",
        "the coefficient vector has Euclidean norm at most {bound:g}",
        "assumes",
        short="coefficient norm bounded by {bound:g}",
    ),
    *regressions.HEAD,
    Claim(
        "ridge",
        "The self-normalised confidence ellipsoid (ridge penalty {ridge:g}) is valid simultaneously over "
        "all rounds and all linear combinations of the coefficients, under any adaptive design.",
        "note",
    ),
    Claim(
        "always",
        "Standard errors are only descriptive: each is the noise scale times the half-width, in the "
        "coefficient's direction, of the ellipsoid of radius 1.",
        "note",
    ),
    Claim(
        "beyond_bound",
        "The norm of the least-squares coefficients ({norm:.3g}) exceeds the assumed bound; intervals are "
        "invalid if the bound is too low. Bounds are easier to justify for standardised covariates, such as "
        "scale(age).",
        "note",
    ),
    regressions.MOVES,
    *regressions.RARE,
    *regressions.UNITS,
)
ELLIPSOID_LAW = Claim(
    "inference.regression.ellipsoid.EllipsoidTests.wald_test",
    "anytime-valid self-normalised confidence ellipsoid",
    "phrase",
)

NEEDS_A_FIXED_DESIGN = Claim(
    "data.adaptive",
    "the Bayes factors require a design fixed in advance, but rewards may have affected later arm choices",
    "needs",
)
ANYTIME_NEEDS = (NEEDS_A_FIXED_DESIGN,)
ANYTIME = (
    Part("propensities_right", "assumes"),
    Claim(
        "always",
        "rewards did not influence later arm assignments or covariates",
        "assumes",
        check="profile.reaction_found",
        short="assignment did not depend on rewards",
    ),
    regressions.LINEAR,
    regressions.CONSTANT,
    regressions.NORMAL,
    *regressions.HEAD,
    Claim(
        "always",
        "The anytime-valid t and F tests remain valid when results are inspected after every round.",
        "note",
    ),
    Claim(
        "mixture",
        "The mixture precision ({precision:g}) must be fixed in advance. Power is highest for coefficients "
        "of about {size:.3g} times the error standard deviation.",
        "note",
    ),
    regressions.PERFECT,
    *regressions.RARE,
    *regressions.UNITS,
)
ANYTIME_LAW = Claim(
    "inference.regression.anytime.AnytimeTests.wald_test",
    "anytime-valid F test based on Bayes factors",
    "phrase",
)
