"""Claims about arm means and differences by inverse propensity weighting, augmented or not."""

from __future__ import annotations

from adaptinf.claims import contexts, propensities, stationarity, units
from adaptinf.claims.arms import arm_fits
from adaptinf.claims.claim import Claim, Part
from adaptinf.claims.data.covariates import UNMOVED

NEEDS = (
    propensities.NEEDED,
    Part("profile.contradicted_draws", "needs"),
    Part("availability_refusal", "needs"),
)
"""Claims for inverse propensities with any weights."""

MIXES_CONTEXTS = Claim(
    "mixes_contexts",
    "propensities depend on contexts, so weighting rounds unequally would change the distribution of "
    "contexts over which rewards are averaged",
    "needs",
)
MIXES_ENDS = Claim(
    "mixes_ends",
    "joint weights combine the rewards of all arms, so bounds on an arm's estimate cannot be obtained "
    "by setting its missing rewards to their extreme values",
    "needs",
)
WEIGHTS_NEED = (
    Claim(
        "lacks_decay",
        "two-point weights require the decay rate of the propensity floor, which the design does not state "
        "(set decay=)",
        "needs",
    ),
    propensities.EVERY_ONE_NEEDED,
    Part("sums_refusal", "needs"),
    Claim(
        "ties_units",
        "joint weights depend on earlier rounds of all units, so the contributions of different units to "
        "the estimate would not be independent",
        "needs",
    ),
    MIXES_ENDS,
    Part("no_shared_weights", "needs"),
    MIXES_CONTEXTS,
)
"""Claims for weights computed from propensities."""

FOR_CONTEXTS = Claim(
    "uniform_for_contexts",
    "propensities are known, and uniform weights remain valid when propensities depend on {contexts}",
    "reason",
)
REASONS = (
    Claim(
        "is_combined",
        "propensities are known, and using the same weights for both arms stabilises the variance and "
        "cancels common drift",
        "reason",
    ),
    Claim(
        "is_joint",
        "propensities are known, and joint weights cancel any drift that the arms share",
        "reason",
    ),
    Claim(
        "is_two_point",
        "propensities are known, and two-point weights stabilise the variance as the propensity floor decays",
        "reason",
    ),
    Claim(
        "is_sqrt",
        "all propensities are known, and square-root weights stabilise the variance when propensities change",
        "reason",
    ),
    Claim("uniform_without_adaptation", "propensities are known and unaffected by earlier rewards", "reason"),
    Claim("uniform_without_contexts", "propensities are known", "reason"),
    FOR_CONTEXTS,
    Claim(
        "unaugmented",
        "no outcome model is needed, but intervals are usually wider than those with estimator='aipw'",
        "reason",
    ),
    units.BY_UNIT,
)
"""Claims about why a row of `recommend` is valid."""

ROW_CAUTIONS = (
    units.TIED,
    Claim(
        "small_propensities",
        "intervals may undercover, because some propensities are small: in the high-signal simulations of "
        "Hadad et al., nominal 95% normal intervals had coverage of about 90% at 1,000 rounds and 92% at "
        "10,000 rounds",
        "caution",
    ),
    propensities.UNSETTLED,
)
"""Claims for a row of `recommend`, before any estimate is known."""

ASSUMES = (
    *propensities.ASSUMES,
    stationarity.MEANS_STAY,
    stationarity.PAIR_SHARES_DRIFT,
    Claim(
        "table_shares_drift",
        "any drift in mean rewards is the same for all arms",
        "assumes",
        short="any drift is common to all arms",
    ),
    stationarity.AVERAGED_EQUALLY,
    stationarity.AVERAGED_BY_WEIGHT,
    Claim(
        "means_of_own_rounds",
        "the estimand for each arm is its mean reward over the rounds in which it was available",
        "target",
    ),
    contexts.UNUSED,
    contexts.UNTOLD,
    units.INDEPENDENT,
    units.NO_CARRY_OVER,
)

CHOSEN_ALONE = Claim(
    "chosen_alone",
    "Only the chosen arm's propensity is logged, so every arm is assumed to be available in every round.",
    "note",
)
UNIFORM_OF_ADAPTIVE = Claim(
    "uniform_of_adaptive",
    "With uniform weights, {unsettled}. Other weights give asymptotic normality but require every arm's "
    "propensity.",
    "note",
    short="uniform weights",
)
TWO_POINT_DECAY = Claim(
    "two_point_decay",
    "Two-point weights assume that the propensity floor decays as t^-{decay:g}, where t is the round number.",
    "note",
    short="two-point weights",
)
CHOSEN_ALONE_IN_BATCHES = Claim(
    "chosen_alone_in_batches",
    "Propensities are logged for chosen arms only. An arm is considered unavailable in a batch if it "
    "was never chosen in that batch and the other arms' propensities sum to 1.",
    "note",
)
OWN_WEIGHTS = Claim(
    "own_weights_unstated",
    "{weights} weights differ between arms, so comparisons require constant arm means: under common "
    "drift, arms with equal means may appear to differ; set stationary=True if means are constant",
    "caution",
)
DIFFERENCE_MOVES = Claim(
    "difference_moves",
    "the difference between arms shows a linear trend over time (p = {p:.2g}), so the weighted average "
    "estimated here may differ from the unweighted average over rounds (which weights='uniform' "
    "estimates)",
    "caution",
)
AGAINST_ONE = Claim(
    "inference.arms.facts.weighted_facts.WeightedFacts.joint_by",
    "all pairs that include the most frequently chosen arm",
    "phrase",
)
"""The compared arms, if there are too many to compare all pairs."""
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
        "With joint weights, computed from {by}, differences are estimated from comparisons of {pairs}, so "
        "drift shared by all arms cancels. Under parallel drift, the estimand is the average difference "
        "over all rounds.",
        "note",
        short="weights shared by all arms",
    ),
    Claim(
        "combined_by",
        "Combined weights are the same for both arms, so common drift cancels. If the effect varies over "
        "time, the estimand is its weighted average (unweighted if weights='uniform'). Weights are based on "
        "{by}.",
        "note",
        short="one weight for both arms",
    ),
    propensities.UNIFORM_FOR_CONTEXTS,
    UNIFORM_OF_ADAPTIVE,
    Claim(
        "lagged",
        "Square-root weights differ between arms and are based on {by}.",
        "note",
        short="square-root weights by arm",
    ),
    Claim(
        "two_point_by_context",
        "Estimates are valid only if {contexts} did not affect propensities. Otherwise, two-point weights "
        "distort the context distribution, and the estimated means are biased.",
        "note",
    ),
    TWO_POINT_DECAY,
    stationarity.NO_TREND,
    stationarity.MIX_MOVES,
    OWN_WEIGHTS,
    stationarity.OWN_WEIGHTS,
    DIFFERENCE_MOVES,
    Part("sums_cautions", "caution"),
    Part("availability_cautions", "caution"),
    Part("outcome_cautions", "caution"),
    Part("unit_cautions", "caution"),
    propensities.FEW_EFFECTIVE,
    propensities.TINY,
    *arm_fits.FIT,
)
"""Statements about a fit, in the order in which its table shows them."""

ARMS_MOVE = Claim(
    "inference.arms.weighted._fit",
    "uniform weights are used, because differences between arms show a time trend (p = {p:.2g}); each mean "
    "refers to rounds in which its arm was available",
    "caution",
)
"""Why the weights differ from those requested."""
