"""What is said of least squares weighted by propensities."""

from __future__ import annotations

from adaptinf.claims import propensities, stationarity
from adaptinf.claims.claim import Claim, Part
from adaptinf.claims.data.availability import GONE
from adaptinf.claims.regression import regressions

# Why it serves, or does not

IMPOSSIBLE = Claim("impossible", "{gaps}, and no weight makes up for that", "needs")
NEEDS = (
    propensities.NEEDED,
    Claim("has_zero", "a chosen arm has propensity 0", "needs"),
    IMPOSSIBLE,
)
OWN_IMPOSSIBLE = Claim(
    "inference.regression.weighted.own.fit_own",
    "{gaps}, for which an arm's own weights cannot make up",
    "needs",
)
NEVER_TOGETHER = Claim(
    "inference.regression.weighted.shared._shared",
    "there is no round in which all of its arms could be chosen",
    "needs",
)
NOT_TOLD_APART = Claim(
    "inference.regression.weighted.shared._shared",
    "the rounds in which both of two arms could be chosen do not identify all coefficients",
    "needs",
)
SMALL_BUT_ENOUGH = Claim(
    "small_but_enough",
    "{whose} propensity is known: the smallest, {least:.2g}, is below the recommended floor of {floor:g}, "
    "but every arm is worth at least {enough:g} rewards of equal weight",
    "reason",
)
REASONS = (
    Claim("never_small", "{whose} propensity is known and never small", "reason"),
    SMALL_BUT_ENOUGH,
)
TOO_SMALL = Claim(
    "too_small",
    "weighted needs propensities of at least {floor:g}, or {enough:g} equally weighted rewards of each arm: "
    "the smallest is {least:.2g}, and one arm is worth {size:.1f} rewards",
    "reason",
)
PASSED_OVER = (
    Claim("estimated", "weighted would use estimated propensities", "reason"),
    Claim("refused", "weighted is not possible: {reason}", "reason"),
    Claim("chosen_alone_in_batches", "weighted would know the chosen arm's propensity only", "reason"),
    TOO_SMALL,
)
"""Why a log's propensities do not make it the default; the first that is so is said."""

# What its table says

SHARED_WEIGHTS = Claim("shared", "{kind} weights, one per round{all}{by}.", "note")
PROJECTED = Claim(
    "projected",
    "Arm coefficients: pairwise projections of AIPW score differences from arm {arm!r}, with outcomes "
    "predicted by the formula from earlier rounds; others: least squares on what is left, weighted by weight "
    "/ propensity.",
    "note",
)
COMPARED_WHERE_POSSIBLE = Claim(
    "compared_where_possible",
    "Impossible arms ({gaps}): arms are compared with the reference in rounds where both were possible.",
    "note",
)
SHARED = (
    SHARED_WEIGHTS,
    Claim(
        "several_arms",
        "A trend common to all arms cancels from arm coefficients; other coefficients, and changing effects, "
        "are weighted averages over rounds.",
        "note",
    ),
    PROJECTED,
    Claim("unprojected", "All coefficients: least squares weighted by weight / propensity.", "note"),
    Claim(
        "shared_errors",
        "Standard errors from each round's contribution to a coefficient, which allows for noise that varies "
        "with arm, context and round; t with Satterthwaite's freedom from the weights.",
        "note",
    ),
    COMPARED_WHERE_POSSIBLE,
    Claim(
        "left_out", "Impossible arms ({gaps}): rounds in which any arm was impossible are left out.", "note"
    ),
)
UNIFORM_TARGET = Claim(
    "inference.regression.facts.weighted.WeightedFacts.own", "uniform over the arms in the fit", "note"
)
GIVEN_TARGET = Claim(
    "inference.regression.facts.weighted.WeightedFacts.own", "as given, fixed in advance", "note"
)
OWN = (
    Claim("own", "Weights sqrt(target / propensity), target {target}.", "note"),
    Claim(
        "own_errors",
        "Sandwich covariance: noise may vary with arm and context, but not over rounds. For small samples "
        "residuals are divided by 1 - leverage; t with rounds minus columns degrees of freedom.",
        "note",
    ),
)
DECIDED_ALONE = Claim(
    "decided_alone", "No standard errors: each of {rounds} rounds alone determines a coefficient.", "note"
)
FEW_WITH_WEIGHT = Claim(
    "few_with_weight", "No standard errors for arms with fewer than two weighted rewards.", "note"
)
NO_ERRORS = (DECIDED_ALONE, FEW_WITH_WEIGHT, regressions.PERFECT)
"""Why there are no standard errors; the first that is so is said."""
BELOW_FLOOR = Claim(
    "below_floor",
    "smallest propensity {least:.2g}: under adaptive designs weighted least squares needs a floor of "
    "{floor:g} (in simulations of Thompson sampling without a floor, tests at 5% rejected 6.3%)",
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
