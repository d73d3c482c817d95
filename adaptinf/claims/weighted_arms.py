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

WEIGHTS_NEED = (
    Claim("lacks_decay", "its weights need decay=, which the design does not state", "needs"),
    propensities.EVERY_ONE_NEEDED,
    Part("sums_refusal", "needs"),
    Claim(
        "ties_units",
        "units have several rounds, and one weight for each of them ties units together",
        "needs",
    ),
    Part("no_shared_weights", "needs"),
    Claim(
        "mixes_contexts",
        "propensities depend on contexts, and weights made from them count contexts unequally: the estimate "
        "would be of another mix of contexts",
        "needs",
    ),
)
"""Of weights that are made of propensities."""

FOR_CONTEXTS = Claim(
    "uniform_for_contexts",
    "propensities are known; uniform weights, because {contexts} may move them",
    "reason",
)
REASONS = (
    Claim(
        "is_combined",
        "propensities are known, and one weight for both arms keeps variances even and a common drift out",
        "reason",
    ),
    Claim(
        "is_joint",
        "propensities are known, and arms share their weights, which keeps a common drift out",
        "reason",
    ),
    Claim(
        "is_two_point",
        "propensities are known and their floor's decay is fixed: variances are kept even",
        "reason",
    ),
    Claim(
        "is_sqrt",
        "every arm's propensity is known: the weights keep the variance even while they move",
        "reason",
    ),
    Claim("uniform_without_adaptation", "propensities are known and do not move with the data", "reason"),
    Claim("uniform_without_contexts", "propensities are known", "reason"),
    FOR_CONTEXTS,
    Claim("unaugmented", "without an outcome model, hence with longer intervals than aipw", "reason"),
    units.BY_UNIT,
)
"""Why a row of `recommend` is valid."""

ROW_CAUTIONS = (
    units.TIED,
    Claim(
        "small_propensities",
        "small propensities: in a setting of Hadad et al. with high signal, normal 95% intervals cover about "
        "90% at 1,000 rounds and 92% at 10,000",
        "caution",
    ),
    propensities.UNSETTLED,
)
"""Of a row of `recommend`, where no estimate is known yet."""

ASSUMES = (
    propensities.RIGHT,
    propensities.ESTIMATED,
    Claim(
        "own_weights_of_arms",
        "arm means stay the same: a drift that arms share tells equal arms apart",
        "assumes",
        check="inference.diagnostics.arms",
    ),
    Claim(
        "own_weights_of_pair",
        "arm means stay the same: a drift that both arms share biases the difference",
        "assumes",
        check="inference.diagnostics.arms",
    ),
    stationarity.PAIR_SHARES_DRIFT,
    Claim("table_shares_drift", "what drifts moves all arms alike", "assumes"),
    stationarity.AVERAGED_EQUALLY,
    stationarity.AVERAGED_BY_WEIGHT,
    Claim(
        "means_of_own_rounds",
        "arm means stay the same, or means over the rounds in which an arm could be chosen are wanted",
        "assumes",
        check="inference.diagnostics.arms",
    ),
    contexts.UNUSED,
    contexts.UNTOLD,
    units.INDEPENDENT,
    units.NO_CARRY_OVER,
)

CHOSEN_ALONE = Claim(
    "chosen_alone",
    "The log has the chosen arm's propensity alone: that each arm could be chosen is assumed.",
    "note",
)
UNIFORM_FOR_CONTEXTS = Claim(
    "uniform_for_contexts",
    "Uniform weights, because {contexts} may move the propensities: weights made from these would count "
    "contexts unequally. Not normal in general when propensities move with the data.",
    "note",
)
UNIFORM_OF_ADAPTIVE = Claim(
    "uniform_of_adaptive",
    "Uniform weights: not normal in general when propensities move with the data; others guard against "
    "that and need every arm's propensity.",
    "note",
)
TWO_POINT_DECAY = Claim("two_point_decay", "Two-point weights: propensity floor of decay {decay:g}.", "note")
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
    Claim(
        "chosen_alone_in_batches",
        "The log has the chosen arm's propensity alone: an arm without rounds in a batch counts as "
        "impossible there if the propensities of the others add up to 1; elsewhere that each arm could be "
        "chosen is assumed.",
        "note",
    ),
    Claim(
        "joint_pairs",
        "Joint weights: differences from comparisons of each pair of arms with one weight per round, by "
        "{by}, so that a drift that all arms share does no harm. The target is the mean over the period, "
        "for arms that move in parallel.",
        "note",
    ),
    Claim(
        "joint_against_one",
        "Joint weights: differences from comparisons of each arm and the most-pulled one with one weight "
        "per round, by {by}, so that a drift that all arms share does no harm. The target is the mean over "
        "the period, for arms that move in parallel.",
        "note",
    ),
    Claim(
        "combined_by",
        "Combined weights, one per round for both arms, by {by}: a drift that both arms share does no harm. "
        "Under an effect that changes the target is its mean over the rounds with these weights; uniform "
        "weights estimate the mean over the period.",
        "note",
    ),
    UNIFORM_FOR_CONTEXTS,
    UNIFORM_OF_ADAPTIVE,
    Claim(
        "lagged",
        "Sqrt weights, each arm's own, by {by}.",
        "note",
    ),
    Claim(
        "two_point_by_context",
        "Valid only if the propensities do not depend on {contexts}: weights made from propensities that do "
        "would count contexts unequally, which biases the means.",
        "note",
    ),
    TWO_POINT_DECAY,
    Claim(
        "own_weights_unstated",
        "each arm has {weights} weights of its own, which assume that means stay: a drift that arms share "
        "tells equal arms apart (stationary=True says that there is none)",
        "caution",
    ),
    stationarity.OWN_WEIGHTS,
    Claim(
        "difference_moves",
        "the difference moves over the period (slope in time, p = {p:.2g}): this is its mean with the "
        "weights of the rounds; weights='uniform' estimates that over the period",
        "caution",
    ),
    Part("profile.propensity_cautions", "caution"),
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
    "differences between arms move over the period (slope in time, p = {p:.2g}): each mean is over the "
    "rounds in which its arm could be chosen, with uniform weights",
    "caution",
)
"""Why the weights are not those that were asked for."""
