"""What is said of values of policies and of their differences."""

from __future__ import annotations

from adaptinf.claims import contexts, propensities, units
from adaptinf.claims.claim import Claim, Part

# Why there is no value

BEYOND_SUPPORT = Claim(
    "inference.policies.inputs.check_support",
    "policy {policy!r} may take arms that the design could not choose (propensity 0): {arms} of {rounds} "
    "rounds; nothing was observed of them there",
    "needs",
)
ONE_DRAW_A_UNIT = Claim(
    "inference.policies.question.PolicyQuestion.check_logging",
    "one draw gave each unit its arm, and such weights take every round to have a draw",
    "needs",
)
UNLOGGED_CONTEXTS = Claim(
    "inference.policies.question.PolicyQuestion.check_logging",
    "the policy differs between rounds, so there are contexts, but the log has none: whether its "
    "propensities depend on them is unknown",
    "needs",
)
CONTEXTUAL_BY_UNIT = Claim(
    "contextual_by_unit",
    "units have several rounds, and errors by unit are for weights that contexts have no part in",
    "needs",
)
NEEDS = (
    Part("rounds_refusal", "needs"),
    Part("support_refusal", "needs"),
    Part("propensities_refusal", "needs"),
    Part("weights_refusal", "needs"),
    CONTEXTUAL_BY_UNIT,
)
"""Of one way to weight."""

# Why it is valid

REASONS = (
    Claim(
        "is_uniform",
        "every round counts alike, so that the value is the period's mean whatever drifts",
        "reason",
    ),
    Claim(
        "is_combined", "one weight for both policies keeps variances even and a common drift out", "reason"
    ),
    Claim("is_stable", "the design's policy is known at all contexts: the variance is kept even", "reason"),
    Claim("is_stable_by_context", "weights by context often give shorter intervals", "reason"),
    Claim("is_least", "the least variance where the propensities settle", "reason"),
    Claim("is_least_by_context", "weights by context, for the least variance", "reason"),
    Claim("is_cadr", "weights by the inverse conditional standard deviation", "reason"),
    Claim("is_cadr", "does not need propensities that settle", "reason"),
    units.BY_UNIT,
)

# What it assumes

NO_FEEDBACK = Claim("allows_drift", "earlier arms do not change contexts and rewards", "assumes")
DRAWN_AFRESH = Claim(
    "allows_no_drift",
    "contexts and potential rewards are drawn afresh in every round",
    "assumes",
    check="inference.diagnostics.arms",
)
FIXED = Claim("policies_are_given", "the policy was fixed without this log", "assumes")
SETTLING = Claim("needs_settling", "propensities settle", "assumes")
ASSUMES = (
    propensities.RIGHT,
    propensities.ESTIMATED,
    NO_FEEDBACK,
    DRAWN_AFRESH,
    FIXED,
    SETTLING,
    units.INDEPENDENT,
    units.NO_CARRY_OVER,
)

SMALL = Claim(
    "small_propensities",
    "small propensities: at moderate numbers of rounds normal intervals may be too short",
    "caution",
)
ROW_CAUTIONS = (Part("tied", "caution"), propensities.UNSETTLED, SMALL)
"""Of a row of `recommend`, where no estimate is known yet."""

# How the numbers of a fit were made

CHOSEN_ON_LOG = Claim(
    "policies_are_given",
    "A policy that was chosen on this very log looks better than it is, and nothing in the log shows it.",
    "note",
)
FREEDOM = Claim(
    "is_fit",
    "Student's t with the effective number of rewards behind a value minus 1 degrees of freedom; behind a "
    "difference, of those for it or those against it, the fewer.",
    "note",
)
CHOSEN_ALONE = Claim(
    "knows_chosen_alone",
    "The log has the chosen arm's propensity alone: that the design could choose every arm that a policy "
    "takes is assumed.",
    "note",
)
UNIFORM = Claim("uniform_settled", "Uniform weights: what drifts is averaged over the period.", "note")
UNIFORM_BY_UNIT = Claim(
    "uniform_by_unit",
    "Uniform weights: what drifts is averaged over the period. Not normal in general when propensities move "
    "with the data.",
    "note",
)
UNIFORM_DIFFERENCE = Claim(
    "uniform_difference",
    "Uniform weights: what drifts is averaged over the period. Not normal in general when propensities move "
    "with the data; combined weights guard against that, and need every arm's propensity.",
    "note",
)
UNIFORM_VALUE = Claim(
    "uniform_value",
    "Uniform weights: what drifts is averaged over the period. Not normal in general when propensities move "
    "with the data; stable-variance weights guard against that where rewards do not drift.",
    "note",
)
UNIFORM_FOR_WANT_OF_POLICIES = Claim(
    "uniform_for_want_of_policies",
    "Uniform weights: what drifts is averaged over the period. Not normal in general when propensities move "
    "with the data; stable-variance weights guard against that where rewards do not drift, and need the "
    "design's policies at all contexts (snapshots=).",
    "note",
)
COMBINED = Claim(
    "combined_by",
    "Combined weights, one per round for both policies, by {by}: a drift that all arms share does no harm. "
    "Where the difference changes, the target is its mean over the rounds with these weights; uniform "
    "weights estimate the mean over the period.",
    "note",
)
BY_OWN = Claim("combined_by", "its own propensities, which were fixed before contexts", "note")
BY_DESIGN = Claim("combined_by", "the design's policies at earlier contexts", "note")
BY_BATCH_BEFORE = Claim(
    "combined_by", "the propensities of the batch before, or of {nearest} rounds where it is smaller", "note"
)
BY_ROUNDS_BEFORE = Claim(
    "combined_by",
    "the propensities of the last {nearest} rounds, as contexts may have moved its own (context_free=True "
    "says that they had no part)",
    "note",
)
"""What combined weights are made of."""
UNSETTLED_TOO = Claim(
    "needs_settling",
    "Non-contextual stable-variance weights do not assume that propensities settle.",
    "note",
)
SNAPSHOTS = Claim(
    "by_snapshots",
    "Weights from {snapshots} snapshots of the design's policy, which agree with the logged propensities.",
    "note",
)
LAGGED = Claim(
    "lagged",
    "Weights by the propensities of the round before, as contexts that the log lacks may have moved its own "
    "(snapshots='context-free' says that there were none).",
    "note",
)
BURNT_IN = Claim(
    "burnt_in",
    "CADR: the first {burn_in} rounds, and those before which no score varied, have no weight; {weighted} of "
    "{rounds} rounds have one.",
    "note",
)
FIRST_WITHOUT = Claim(
    "first_without",
    "The first round has no weight, as there are no earlier contexts to average over.",
    "note",
)

# Why a number is missing

NEVER_CHOSEN = Claim(
    "never_chosen",
    "{policy}: {share:.2%} of its probability is on arms that were never chosen ({arms}), of which nothing "
    "is known: no estimate.",
    "note",
)
LEFT_OUT = Claim(
    "left_out",
    "{policy}: {share:.2%} of its probability is on arms that were never chosen ({arms}), of which nothing "
    "is known: the estimate leaves out what they would have earned.",
    "note",
)
CHOSEN_ONCE = Claim(
    "chosen_once",
    "{policy}: {share:.2%} of its probability is on arms with one reward at most, whose spread is unknown: "
    "no standard error.",
    "note",
)
CONSTANT = Claim("constant_scores", "{term}: its scores do not vary: no test or interval.", "note")
UNWEIGHTED = Claim("unweighted", "{term}: no round has a weight, so nothing is estimated.", "note")

# Why numbers may be worth less

OWN_WEIGHTS = Claim(
    "own_weights",
    "{weights} weights assume that the value stays: where it drifts the estimate is not its mean over the "
    "period (weights='uniform' give that; stationary=True says that there is no drift)",
    "caution",
)
OWN_WEIGHTS_OF_PAIR = Claim(
    "own_weights_of_pair",
    "each policy has {weights} weights of its own, which assume that values stay: a drift that all arms "
    "share biases the difference (weights='combined' do not mind it; stationary=True says that there is "
    "none)",
    "caution",
)
DIFFERENCE_MOVES = Claim(
    "differences_move",
    "{term}: seen to move over the rounds (p = {p:.2g}): this is its mean with combined weights, "
    "weights='uniform' estimate its mean over the period",
    "caution",
)
TINY_PROPENSITY = Claim(
    "tiny_propensity",
    "The smallest propensity of an arm that a policy takes is {least:.2g}, the smallest effective sample "
    "size {size:.1f}: a few rounds may carry the estimate, and its interval may be far too short",
    "caution",
)
FEW_EVENTS = Claim(
    "few_events",
    "An effective sample size of {size:.1f}, where {rate:.2g} of the outcomes are other than the commonest, "
    "is worth {worth:.1f} of these, fewer than {enough}: the heavy rounds rarely hold one, so that estimate "
    "and standard error are too small together, and the interval may be far too short",
    "caution",
)
FEW_REWARDS = (TINY_PROPENSITY, FEW_EVENTS)
"""These are warned of, too."""

FIT = (
    *ASSUMES,
    contexts.UNUSED,
    contexts.UNTOLD,
    CHOSEN_ON_LOG,
    Part("outcome_note", "note"),
    FREEDOM,
    CHOSEN_ALONE,
    UNIFORM,
    UNIFORM_BY_UNIT,
    UNIFORM_DIFFERENCE,
    UNIFORM_VALUE,
    UNIFORM_FOR_WANT_OF_POLICIES,
    COMBINED,
    UNSETTLED_TOO,
    SNAPSHOTS,
    LAGGED,
    BURNT_IN,
    FIRST_WITHOUT,
    NEVER_CHOSEN,
    LEFT_OUT,
    CHOSEN_ONCE,
    CONSTANT,
    UNWEIGHTED,
    Part("unit_notes", "note"),
    Part("law.notes", "note"),
    Part("profile.propensity_cautions", "caution"),
    OWN_WEIGHTS_OF_PAIR,
    OWN_WEIGHTS,
    DIFFERENCE_MOVES,
    Part("unit_cautions", "caution"),
    *FEW_REWARDS,
    propensities.FEW_EFFECTIVE,
    Part("law.cautions", "caution"),
)
"""Of a fit, in the order in which its table has them."""
