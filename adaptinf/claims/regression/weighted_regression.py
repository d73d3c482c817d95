"""What is said of least squares weighted by propensities."""

from __future__ import annotations

from adaptinf.claims import stationarity
from adaptinf.claims.claim import Claim, Part
from adaptinf.claims.regression import regressions

# Why it serves, or does not

LACKS_PROPENSITIES = Claim(
    "lacks_propensities",
    "it needs the chosen arm's propensities, and the log has none (give propensity=)",
    "needs",
)
IMPOSSIBLE = Claim(
    "impossible", "{gaps}, where it could not have been chosen: no weight makes up for them", "needs"
)
NEEDS = (
    LACKS_PROPENSITIES,
    Claim("has_zero", "a chosen arm has propensity 0", "needs"),
    IMPOSSIBLE,
)
OWN_IMPOSSIBLE = Claim(
    "inference.regression.weighted.own.fit_own",
    "{gaps}, where it could not have been chosen: no weight of its own makes up for them",
    "needs",
)
NEVER_TOGETHER = Claim(
    "inference.regression.weighted.shared._shared",
    "in no round could all of its arms have been chosen",
    "needs",
)
NOT_TOLD_APART = Claim(
    "inference.regression.weighted.shared._shared",
    "the rounds in which two arms could both have been chosen do not tell all coefficients apart",
    "needs",
)
SMALL_BUT_ENOUGH = Claim(
    "small_but_enough",
    "{whose} propensity is known: the smallest, {least:.2g}, is below the floor of {floor:g} that it "
    "should have, but no arm has fewer than {enough:g} equally weighted rewards",
    "reason",
)
REASONS = (
    Claim("never_small", "{whose} propensity is known, and never small", "reason"),
    SMALL_BUT_ENOUGH,
)
TOO_SMALL = Claim(
    "too_small",
    "weighted needs propensities of {floor:g} and more, or {enough:g} equally weighted rewards of each "
    "arm: the smallest is {least:.2g}, and one arm has {size:.1f}",
    "reason",
)
PASSED_OVER = (
    Claim("estimated", "weighted would take the log's propensities, which are estimates", "reason"),
    Claim("refused", "weighted does not serve: {reason}", "reason"),
    Claim("chosen_alone_in_batches", "weighted would know the chosen arm's propensity alone", "reason"),
    TOO_SMALL,
)
"""Why a log's propensities do not make it the default; the first that is so is said."""

# What its table says

TINY = Claim(
    "tiny",
    "Propensities down to {least:.2g}: a few rewards carry the estimates (effective sample size "
    "{size:.1f}); normal intervals may be far too short.",
    "note",
)
PROJECTED = Claim(
    "projected",
    "Coefficients that involve the arm: projections of differences of AIPW scores from arm {arm!r}, pair "
    "by pair, with predictions from earlier rounds by the formula; the others: least squares of what is "
    "left, the weight over the propensity.",
    "note",
)
COMPARED_WHERE_POSSIBLE = Claim(
    "compared_where_possible",
    "Impossible arms ({gaps}): each arm is compared in the rounds in which it and the reference could be "
    "chosen.",
    "note",
)
SHARED_WEIGHTS = Claim(
    "shared",
    "Weights {kind}: one a round{all}{by}. Assumes propensities given the past, contexts of one law, and "
    "columns in which the mean reward is linear.",
    "note",
)
SHARED = (
    SHARED_WEIGHTS,
    Claim(
        "several_arms",
        "A drift that all arms share does no harm to what the formula says of arms; other coefficients, and "
        "effects that change, are means over the rounds with these weights.",
        "note",
    ),
    PROJECTED,
    Claim(
        "unprojected",
        "All coefficients: least squares, the weight over the chosen arm's propensity.",
        "note",
    ),
    Claim(
        "shared_errors",
        "Errors from what each round adds to a coefficient: the variance of the noise may depend on arm, "
        "context and round. t with the degrees of freedom of the weights (Satterthwaite).",
        "note",
    ),
    COMPARED_WHERE_POSSIBLE,
    Claim(
        "left_out",
        "Impossible arms ({gaps}): rounds in which one of the arms could not be chosen are left out.",
        "note",
    ),
)
OWN = (
    Claim(
        "own",
        "Weights sqrt(target / propensity), target {target}: assumes {linear} (not a projection), contexts "
        "of one law, and propensities given the past.",
        "note",
    ),
    Claim(
        "own_errors",
        "Sandwich covariance: the variance of the noise may depend on arm and context, not on the round. For "
        "small samples residuals are divided by 1 - leverage, and the law is t with rounds minus columns "
        "degrees of freedom.",
        "note",
    ),
)
UNIFORM_TARGET = Claim(
    "inference.regression.facts.weighted.WeightedFacts.own", "uniform over the arms of the fit", "note"
)
GIVEN_TARGET = Claim(
    "inference.regression.facts.weighted.WeightedFacts.own", "as given, fixed before the data", "note"
)
DECIDED_ALONE = Claim(
    "decided_alone",
    "No standard errors: {rounds} rounds have leverage 1 (each decides a coefficient alone).",
    "note",
)
FEW_WITH_WEIGHT = Claim(
    "few_with_weight",
    "No standard errors where fewer than two rewards of an arm have a weight.",
    "note",
)
NO_ERRORS = (
    DECIDED_ALONE,
    FEW_WITH_WEIGHT,
    regressions.PERFECT,
)
"""Why there are no standard errors; the first that is so is said."""

FEW_EFFECTIVE = Claim(
    "few_effective",
    "an arm has {size:.1f} equally weighted rewards, below {enough:g}: t is doubtful",
    "caution",
)
BELOW_FLOOR = Claim(
    "below_floor",
    "propensities down to {least:.2g}: least squares weighted by them needs a floor of {floor:g} where "
    "the design adapts (simulated on Thompson sampling without a floor, tests at 5% reject 6.3%)",
    "caution",
)
WEIGHTED = (
    *regressions.HEAD,
    *SHARED,
    *OWN,
    Claim(
        "profile.estimated",
        "Propensities were estimated: that they are right is an assumption, their error is ignored.",
        "note",
    ),
    TINY,
    Part("no_errors", "note"),
    FEW_EFFECTIVE,
    Claim(
        "taken_away",
        "{arms}: there are rounds after which an arm could no longer be chosen; if its rewards were the "
        "reason, the estimates are biased",
        "caution",
    ),
    stationarity.OWN_WEIGHTS,
    *regressions.RARE,
    Part("profile.propensity_cautions", "caution"),
    BELOW_FLOOR,
    *regressions.UNITS,
)
