"""What is said of least squares weighted by propensities."""

from __future__ import annotations

from adaptinf.claims import propensities, stationarity
from adaptinf.claims.claim import Claim, Part
from adaptinf.claims.data.availability import GONE
from adaptinf.claims.regression import regressions

# Why it serves, or does not

IMPOSSIBLE = Claim("impossible", "{gaps}, which weighting cannot correct", "needs")
NEEDS = (
    propensities.NEEDED,
    Claim("has_zero", "an arm was chosen although its propensity was 0", "needs"),
    IMPOSSIBLE,
)
OWN_IMPOSSIBLE = Claim(
    "inference.regression.weighted.own.fit_own",
    "{gaps}, but sqrt weights require positive propensities in every round",
    "needs",
)
NEVER_TOGETHER = Claim(
    "inference.regression.weighted.shared._shared",
    "the arms in the regression were never all available in the same round",
    "needs",
)
NOT_TOLD_APART = Claim(
    "inference.regression.weighted.shared._shared",
    "the rounds in which pairs of arms were available together do not identify all coefficients",
    "needs",
)
SMALL_BUT_ENOUGH = Claim(
    "small_but_enough",
    "{whose} propensity is known; the smallest ({least:.2g}) is below the recommended floor of "
    "{floor:g}, but every arm has at least {enough:g} effective rewards",
    "reason",
)
REASONS = (
    Claim("never_small", "{whose} propensity is known and bounded away from 0", "reason"),
    SMALL_BUT_ENOUGH,
)
TOO_SMALL = Claim(
    "too_small",
    "weighted requires propensities of at least {floor:g} or {enough:g} effective rewards per arm, but "
    "the lowest propensity is {least:.2g} and one arm has {size:.1f} effective rewards",
    "reason",
)
PASSED_OVER = (
    Claim("estimated", "weighted would rely on estimated propensities", "reason"),
    Claim("refused", "weighted is not possible: {reason}", "reason"),
    Claim("chosen_alone_in_batches", "weighted would have the propensity of the chosen arm only", "reason"),
    TOO_SMALL,
)
"""Why a log's propensities do not make it the default; the first that is so is said."""

# What its table says

SHARED_WEIGHTS = Claim("shared", "{kind} weights are used, one per round{all}{by}.", "note")
PROJECTED = Claim(
    "projected",
    "Arm coefficients are projections of AIPW score differences from arm {arm!r}, with outcomes "
    "predicted by the formula from earlier rounds. The other coefficients are fitted to the remainder "
    "by least squares, with the weight of each round divided by the propensity of its arm.",
    "note",
)
COMPARED_WHERE_POSSIBLE = Claim(
    "compared_where_possible",
    "Each arm is compared with the reference in the rounds where both were available ({gaps}).",
    "note",
)
SHARED = (
    SHARED_WEIGHTS,
    Claim(
        "several_arms",
        "Trends common to all arms cancel in the arm coefficients; the other coefficients, and effects that "
        "change over time, are weighted averages over rounds.",
        "note",
    ),
    PROJECTED,
    Claim(
        "unprojected",
        "All coefficients are estimated by least squares, weighted by each round's weight over the chosen "
        "arm's propensity.",
        "note",
    ),
    Claim(
        "shared_errors",
        "Standard errors are robust to noise that varies with arm, context and round. Student's t has "
        "Satterthwaite degrees of freedom.",
        "note",
    ),
    COMPARED_WHERE_POSSIBLE,
    Claim("left_out", "Rounds in which any arm had propensity 0 are left out ({gaps}).", "note"),
)
UNIFORM_TARGET = Claim(
    "inference.regression.facts.weighted.WeightedFacts.own", "uniform over the arms in the fit", "note"
)
GIVEN_TARGET = Claim(
    "inference.regression.facts.weighted.WeightedFacts.own", "fixed in advance by the user", "note"
)
OWN = (
    Claim("own", "Weights are sqrt(target / propensity), with a target policy that is {target}.", "note"),
    Claim(
        "own_errors",
        "The sandwich covariance allows noise to vary with arm and context, but not over time. Residuals "
        "are divided by 1 - leverage, and degrees of freedom are the number of rounds minus the number of "
        "columns.",
        "note",
    ),
)
DECIDED_ALONE = Claim(
    "decided_alone",
    "Standard errors are undefined when single rounds determine a coefficient (number of such rounds: "
    "{rounds}).",
    "note",
)
FEW_WITH_WEIGHT = Claim(
    "few_with_weight", "Arms with fewer than two weighted rewards have no standard error.", "note"
)
NO_ERRORS = (DECIDED_ALONE, FEW_WITH_WEIGHT, regressions.PERFECT)
"""Why there are no standard errors; the first that is so is said."""
BELOW_FLOOR = Claim(
    "below_floor",
    "the smallest propensity ({least:.2g}) is less than {floor:g}, so tests may over-reject (6.3% at a "
    "nominal 5% in simulations of Thompson sampling without a floor)",
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
