"""What is said of arm means and differences by inverse propensity weighting, augmented or not."""

from __future__ import annotations

from adaptinf.claims import contexts, propensities, stationarity, units
from adaptinf.claims.claim import Claim, Part
from adaptinf.claims.data.covariates import UNMOVED

NEEDS = (
    propensities.NEEDED,
    Part("profile.contradicted_draws", "needs"),
    Part("availability_refusal", "needs"),
)
"""Of inverse propensities, whatever the weights."""

MIXES_CONTEXTS = Claim(
    "mixes_contexts",
    "propensities depend on contexts, so these weights would change the mix of contexts that the "
    "estimate is for",
    "needs",
)
WEIGHTS_NEED = (
    Claim("lacks_decay", "two-point weights need decay=, which the design does not state", "needs"),
    propensities.EVERY_ONE_NEEDED,
    Part("sums_refusal", "needs"),
    Claim(
        "ties_units",
        "joint weights, one per round, would make units with several rounds dependent",
        "needs",
    ),
    Part("no_shared_weights", "needs"),
    MIXES_CONTEXTS,
)
"""Of weights that are made of propensities."""

FOR_CONTEXTS = Claim(
    "uniform_for_contexts",
    "propensities are known, with uniform weights because {contexts} may affect them",
    "reason",
)
REASONS = (
    Claim(
        "is_combined",
        "propensities are known; weights shared by both arms stabilise the variance and cancel common drift",
        "reason",
    ),
    Claim(
        "is_joint",
        "propensities are known; all arms share their weights, which cancels common drift",
        "reason",
    ),
    Claim(
        "is_two_point",
        "propensities are known, and the fixed decay of their floor gives weights that stabilise the "
        "variance",
        "reason",
    ),
    Claim(
        "is_sqrt",
        "every arm's propensity is known, and sqrt weights stabilise the variance when propensities change",
        "reason",
    ),
    Claim("uniform_without_adaptation", "propensities are known and do not react to the data", "reason"),
    Claim("uniform_without_contexts", "propensities are known", "reason"),
    FOR_CONTEXTS,
    Claim("unaugmented", "no outcome model, hence longer intervals than aipw", "reason"),
    units.BY_UNIT,
)
"""Why a row of `recommend` is valid."""

ROW_CAUTIONS = (
    units.TIED,
    Claim(
        "small_propensities",
        "small propensities: in the high-signal setting of Hadad et al., normal 95% intervals cover about "
        "90% at 1,000 rounds and 92% at 10,000",
        "caution",
    ),
    propensities.UNSETTLED,
)
"""Of a row of `recommend`, where no estimate is known yet."""

ASSUMES = (
    *propensities.ASSUMES,
    stationarity.MEANS_STAY,
    stationarity.PAIR_SHARES_DRIFT,
    Claim("table_shares_drift", "any drift moves all arms alike", "assumes"),
    stationarity.AVERAGED_EQUALLY,
    stationarity.AVERAGED_BY_WEIGHT,
    Claim(
        "means_of_own_rounds",
        "arm means are constant, or the target is each arm's mean over the rounds in which it could be "
        "chosen",
        "assumes",
    ),
    contexts.UNUSED,
    contexts.UNTOLD,
    units.INDEPENDENT,
    units.NO_CARRY_OVER,
)

CHOSEN_ALONE = Claim(
    "chosen_alone",
    "Only the chosen arm's propensity is logged: each arm is assumed to be possible in every round.",
    "note",
)
UNIFORM_FOR_CONTEXTS = Claim(
    "uniform_for_contexts",
    "Uniform weights: if {contexts} affect the propensities, other weights count contexts unequally. "
    "Estimates are {unsettled}.",
    "note",
)
UNIFORM_OF_ADAPTIVE = Claim(
    "uniform_of_adaptive",
    "Uniform weights: {unsettled}. Other weights avoid this but need every arm's propensity.",
    "note",
)
TWO_POINT_DECAY = Claim(
    "two_point_decay", "Two-point weights, for a propensity floor with decay {decay:g}.", "note"
)
CHOSEN_ALONE_IN_BATCHES = Claim(
    "chosen_alone_in_batches",
    "Propensities are logged for chosen arms only: an arm counts as impossible in a batch where it "
    "has no rounds and the other propensities sum to 1, and as possible elsewhere.",
    "note",
)
OWN_WEIGHTS = Claim(
    "own_weights_unstated",
    "{weights} weights differ between arms, which is safe only for constant means: under a shared "
    "drift equal arms appear different (stationary=True states that means are constant)",
    "caution",
)
DIFFERENCE_MOVES = Claim(
    "difference_moves",
    "the difference changes over time (linear trend, p = {p:.2g}): the estimate is its mean with "
    "unequal weights; weights='uniform' estimates the plain mean over the period",
    "caution",
)
AGAINST_ONE = Claim(
    "inference.arms.facts.weighted.WeightedFacts.joint_by", "each arm with the most-pulled one", "note"
)
"""Which arms are compared where there are too many for every pair."""
FIT = (
    *ASSUMES,
    Part("availability_assumes", "assumes"),
    Part("outcome_assumes", "assumes"),
    UNMOVED,
    Part("availability_notes", "note"),
    Part("unit_notes", "note"),
    Part("outcome_notes", "note"),
    Part("sums_notes", "note"),
    CHOSEN_ALONE,
    CHOSEN_ALONE_IN_BATCHES,
    Claim(
        "joint_by",
        "Joint weights: differences come from comparisons of {pairs}, with one weight per round based on "
        "{by}; a common drift cancels. If arms move in parallel, the target is the mean over the period.",
        "note",
    ),
    Claim(
        "combined_by",
        "Combined weights, common to both arms, based on {by}: a shared drift cancels. If the "
        "effect changes over time, the target is its mean with these weights; uniform weights estimate "
        "its mean over the period.",
        "note",
    ),
    UNIFORM_FOR_CONTEXTS,
    UNIFORM_OF_ADAPTIVE,
    Claim(
        "lagged",
        "Sqrt weights, separate for each arm, based on {by}.",
        "note",
    ),
    Claim(
        "two_point_by_context",
        "Valid only if {contexts} had no effect on the propensities: otherwise two-point weights count "
        "contexts unequally and bias the means.",
        "note",
    ),
    TWO_POINT_DECAY,
    OWN_WEIGHTS,
    stationarity.OWN_WEIGHTS,
    DIFFERENCE_MOVES,
    Part("sums_cautions", "caution"),
    Part("availability_cautions", "caution"),
    Part("outcome_cautions", "caution"),
    Part("unit_cautions", "caution"),
    propensities.FEW_EFFECTIVE,
    propensities.TINY,
)
"""Of a fit, in the order in which its table has them."""

ARMS_MOVE = Claim(
    "inference.arms.weighted._fit",
    "differences between arms change over the rounds (trend, p = {p:.2g}), so weights are uniform; each "
    "mean is over the rounds available to its arm",
    "caution",
)
"""Why the weights are not those that were asked for."""
