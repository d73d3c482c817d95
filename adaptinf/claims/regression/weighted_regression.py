"""Claims about least squares weighted by propensities."""

from __future__ import annotations

from adaptinf.claims import propensities, stationarity
from adaptinf.claims.claim import Claim, Part
from adaptinf.claims.data.availability import GONE
from adaptinf.claims.regression import regressions

IMPOSSIBLE = Claim("impossible", "weighting cannot correct for zero propensities: {gaps}", "needs")
NEEDS = (
    propensities.NEEDED,
    Claim("has_zero", "an arm was chosen although its propensity was 0", "needs"),
    IMPOSSIBLE,
)
OWN_IMPOSSIBLE = Claim(
    "inference.regression.weighted.own_weights.fit_own",
    "{gaps}, but weights='sqrt' requires positive propensities in every round",
    "needs",
)
NEVER_TOGETHER = Claim(
    "inference.regression.weighted.shared_weights._shared",
    "in each round, at least one arm in the regression was unavailable",
    "needs",
)
NOT_TOLD_APART = Claim(
    "inference.regression.weighted.shared_weights._shared",
    "some coefficients are not identified by the rounds in which both arms of a comparison were available",
    "needs",
)
SMALL_BUT_ENOUGH = Claim(
    "small_but_enough",
    "all arms have an effective sample size of at least {enough:g}, and {whose} propensity is known, "
    "although some propensities (minimum {least:.2g}) are below the recommended floor of {floor:g}",
    "reason",
)
REASONS = (
    Claim("never_small", "{whose} propensity is known and bounded away from 0", "reason"),
    SMALL_BUT_ENOUGH,
)
TOO_SMALL = Claim(
    "too_small",
    "adjustment='weighted' is unreliable here: propensities fall to {least:.2g} (recommended floor "
    "{floor:g}) and effective sample sizes to {size:.1f} (recommended minimum {enough:g})",
    "reason",
)
PASSED_OVER = (
    Claim("estimated", "adjustment='weighted' is not recommended when propensities are estimated", "reason"),
    Claim("refused", "adjustment='weighted' cannot be used: {reason}", "reason"),
    Claim(
        "chosen_alone_in_batches",
        "the log contains only the propensities of chosen arms, whereas the weighted adjustment uses those "
        "of all arms",
        "reason",
    ),
    TOO_SMALL,
)
"""Why a log's propensities do not make weighting the default; only the first true claim is stated."""

SHARED_WEIGHTS = Claim(
    "shared",
    "{kind} weights are used, with one weight per round{all}{by}.",
    "note",
    short="one weight per round",
)
PROJECTED = Claim(
    "projected",
    "Arm coefficients are projections of AIPW contrasts with arm {arm!r}, based on outcome models "
    "fitted to earlier rounds. Other coefficients are fitted to the residuals by least squares "
    "(weights: round weight divided by propensity).",
    "note",
    short="projected AIPW contrasts",
)
COMPARED_WHERE_POSSIBLE = Claim(
    "compared_where_possible",
    "Because {gaps}, the comparison of an arm with the reference arm excludes rounds in which either "
    "was unavailable.",
    "note",
)
SHARED = (
    SHARED_WEIGHTS,
    Claim(
        "several_arms",
        "Trends common to all arms cancel in arm coefficients. If effects vary over time, each coefficient "
        "estimates a weighted average over rounds.",
        "note",
    ),
    PROJECTED,
    Claim(
        "unprojected",
        "All coefficients are estimated by weighted least squares, with weights equal to the round weight "
        "divided by the chosen arm's propensity.",
        "note",
        short="weighted by round weight / propensity",
    ),
    Claim(
        "shared_errors",
        "Standard errors are robust to error variances that differ by arm, context and round. Tests use t "
        "distributions, with degrees of freedom from Satterthwaite's formula.",
        "note",
    ),
    COMPARED_WHERE_POSSIBLE,
    Claim(
        "left_out",
        "Only rounds in which every arm in the regression had positive propensity are used, because {gaps}.",
        "note",
    ),
)
UNIFORM_TARGET = Claim(
    "inference.regression.facts.weighted_regression_facts.WeightedFacts.own",
    "uniform distribution over the arms in the regression",
    "phrase",
)
GIVEN_TARGET = Claim(
    "inference.regression.facts.weighted_regression_facts.WeightedFacts.own",
    "the user's policy, which was fixed in advance",
    "phrase",
)
OWN = (
    Claim(
        "own",
        "Weights are sqrt(target probability / propensity); the target policy is {target}.",
        "note",
        short="square-root importance weights",
    ),
    Claim(
        "own_errors",
        "The sandwich covariance allows error variances to depend on arm and context but not on time. "
        "Residuals are divided by 1 - leverage. Degrees of freedom: number of rounds minus number of "
        "coefficients.",
        "note",
    ),
)
DECIDED_ALONE = Claim(
    "decided_alone",
    "No standard errors are available, because a single round determines at least one coefficient.",
    "missing",
)
FEW_WITH_WEIGHT = Claim(
    "few_with_weight",
    "Arms with fewer than two positively weighted rewards have no standard error.",
    "missing",
)
NO_ERRORS = (DECIDED_ALONE, FEW_WITH_WEIGHT, regressions.PERFECT)
"""Why there are no standard errors; only the first true claim is stated."""
BELOW_FLOOR = Claim(
    "below_floor",
    "the smallest propensity ({least:.2g}) is below {floor:g}, so tests may be anti-conservative: in "
    "simulations of Thompson sampling without a propensity floor, nominal 5% tests had a type I error "
    "rate of 6.3%",
    "caution",
)

WEIGHTED = (
    *propensities.ASSUMES,
    regressions.SAME_CONTEXTS,
    regressions.LINEAR,
    Part("constant_coefficients", "assumes"),
    *regressions.HEAD,
    *SHARED,
    *OWN,
    Part("no_errors", "note"),
    propensities.FEW_EFFECTIVE,
    GONE,
    stationarity.OWN_WEIGHTS,
    *regressions.RARE,
    propensities.TINY,
    BELOW_FLOOR,
    *regressions.UNITS,
)
