"""What is said of values of policies and of their differences."""

from __future__ import annotations

from adaptinf.claims import contexts, propensities, units
from adaptinf.claims.claim import Claim, Part

# Why there is no value

BEYOND_SUPPORT = Claim(
    "inference.policies.inputs.check_support",
    "policy {policy!r} may choose arms that the design could not choose (propensity 0): {arms} of {rounds} "
    "rounds, where nothing is known of them",
    "needs",
)
UNLOGGED_CONTEXTS = Claim(
    "inference.policies.question.PolicyQuestion.check_logging",
    "the policy differs between rounds, so there must be contexts, but the log has none: whether "
    "propensities depend on them is unknown",
    "needs",
)
CONTEXTUAL_BY_UNIT = Claim(
    "contextual_by_unit",
    "errors by unit, needed where units have several rounds, allow no weights that depend on contexts",
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

MEANS_OF_ARMS = Claim(
    "inference.policies.question.PolicyQuestion.check_propensities",
    "ArmMeans or Contrast, for means of single arms",
    "advice",
)
"""In the place of a value that needs propensities."""

# Why it is valid

EQUAL_ROUNDS = Claim("is_uniform", "all rounds count equally, so that any drift is allowed", "reason")
ONE_WEIGHT = Claim(
    "is_combined",
    "one weight per round for both policies stabilises the variance and cancels a common drift",
    "reason",
)
STABLE = Claim(
    "is_stable",
    "the design's policy is known at all contexts, and the weights stabilise the variance",
    "reason",
)
STABLE_BY_CONTEXT = Claim(
    "is_stable_by_context", "weights that depend on the context often give shorter intervals", "reason"
)
LEAST = Claim("is_least", "the least variance where propensities settle", "reason")
LEAST_BY_CONTEXT = Claim("is_least_by_context", "contextual weights for the least variance", "reason")
CADR = Claim("is_cadr", "weights are inverse conditional standard deviations", "reason")
CADR_UNSETTLED = Claim("is_cadr", "propensities need not settle", "reason")
REASONS = (
    EQUAL_ROUNDS,
    ONE_WEIGHT,
    STABLE,
    STABLE_BY_CONTEXT,
    LEAST,
    LEAST_BY_CONTEXT,
    CADR,
    CADR_UNSETTLED,
    units.BY_UNIT,
)

# What it assumes, and of what it is an average

NO_FEEDBACK = Claim("allows_drift", "earlier arms do not affect later contexts and rewards", "assumes")
SAME_LAW = Claim(
    "allows_no_drift",
    "contexts and potential rewards are independent and identically distributed over rounds",
    "assumes",
)
FIXED = Claim("policies_are_given", "policies were fixed without using this log", "assumes")
SETTLING = Claim("needs_settling", "propensities settle", "assumes")
CHOSEN_ALONE = Claim(
    "knows_chosen_alone",
    "the design could choose every arm that a policy takes (no propensity but the chosen arm's is logged)",
    "assumes",
)
AVERAGE = Claim("is_uniform", "what drifts is averaged over the period, all rounds equally", "target")
WEIGHTED_AVERAGE = Claim(
    "is_combined",
    "a difference that changes is averaged with the weights (weights='uniform' average it equally)",
    "target",
)
ASSUMES = (
    *propensities.ASSUMES,
    CHOSEN_ALONE,
    NO_FEEDBACK,
    SAME_LAW,
    FIXED,
    SETTLING,
    units.INDEPENDENT,
    units.NO_CARRY_OVER,
    AVERAGE,
    WEIGHTED_AVERAGE,
)

SMALL = Claim(
    "small_propensities",
    "propensities are small: with moderately many rounds normal intervals are often too short",
    "caution",
)
ROW_CAUTIONS = (Part("tied", "caution"), propensities.UNSETTLED, SMALL)
"""Of a row of `recommend`, where no estimate is known yet."""

# How the numbers of a fit were made

CHOSEN_ON_LOG = Claim(
    "policies_are_given",
    "A policy that was chosen on this very log looks better than it is, and the log cannot show that.",
    "note",
)
FREEDOM = Claim(
    "is_of_values",
    "Student's t, whose degrees of freedom are the effective number of rewards behind a value, minus 1.",
    "note",
)
FREEDOM_OF_DIFFERENCES = Claim(
    "is_of_differences",
    "Student's t: the side of a difference, for or against it, that has fewer effective rewards gives the "
    "degrees of freedom.",
    "note",
)
UNSETTLED = Claim(
    "uniform_of_adaptive", "Uniform weights: normality is assured only where propensities settle.", "note"
)
COMBINED_INSTEAD = Claim(
    "uniform_difference",
    "Combined weights give normal estimates even where propensities keep moving, and need every arm's.",
    "advice",
)
STABLE_INSTEAD = Claim(
    "uniform_value",
    "If rewards do not drift, stable-variance weights give normal estimates while propensities move.",
    "advice",
)
POLICIES_FIRST = Claim(
    "uniform_for_want_of_policies",
    "Stable-variance weights need the design's policies at all contexts (snapshots=).",
    "advice",
)
COMBINED = Claim(
    "combined_by",
    "Combined weights: each round has one for both policies, made from {by}, and a common drift cancels.",
    "note",
)
BY_OWN = Claim("combined_by", "its own propensities, which contexts cannot have moved", "note")
BY_DESIGN = Claim("combined_by", "the design's policies at earlier contexts", "note")
BY_BATCH_BEFORE = Claim(
    "combined_by",
    "propensities of the previous batch, or of {nearest} rounds if that is smaller",
    "note",
)
BY_ROUNDS_BEFORE = Claim(
    "combined_by",
    "propensities of the last {nearest} rounds, since its own may depend on contexts unless "
    "context_free=True is stated",
    "note",
)
"""What combined weights are made of."""
UNSETTLED_TOO = Claim(
    "needs_settling",
    "Non-contextual stable-variance weights do not assume that propensities settle.",
    "advice",
)
SNAPSHOTS = Claim(
    "by_snapshots",
    "Weights are made from {snapshots} snapshots of the design's policy, which agree with the logged "
    "propensities.",
    "note",
)
LAGGED = Claim(
    "lagged",
    "Weights are made from the previous round's propensities, since unlogged contexts may have moved the "
    "current ones (snapshots='context-free' states that there were none).",
    "note",
)
BURNT_IN = Claim(
    "burnt_in",
    "CADR gives no weight to the first {burn_in} rounds, nor to rounds before which no score varied: "
    "{weighted} of {rounds} rounds have a weight.",
    "note",
)
FIRST_WITHOUT = Claim(
    "first_without",
    "There are no contexts before round 1 to average over, so that its weight is 0.",
    "note",
)

# Why a number is missing

NEVER_CHOSEN = Claim(
    "never_chosen",
    "{policy}: not estimated, as it takes arms that were never chosen ({arms}) with probability {share:.2%}.",
    "note",
)
LEFT_OUT = Claim(
    "left_out",
    "{policy}: the estimate leaves out what arms without any round ({arms}) would have earned; their "
    "probability is {share:.2%}.",
    "note",
)
CHOSEN_ONCE = Claim(
    "chosen_once",
    "{policy}: no standard error, as {share:.2%} of its probability is on arms with at most one reward.",
    "note",
)
CONSTANT = Claim(
    "constant_scores", "{term}: neither test nor interval, as all of its scores are equal.", "note"
)
UNWEIGHTED = Claim("unweighted", "{term}: not estimated, as no round has a weight.", "note")

# Why numbers may be worth less

OWN_WEIGHTS = Claim(
    "own_weights",
    "{weights} weights assume that the value is constant: under a drift they do not estimate its average "
    "over the period, as weights='uniform' do (stationary=True states that nothing drifts)",
    "caution",
)
OWN_WEIGHTS_OF_PAIR = Claim(
    "own_weights_of_pair",
    "{weights} weights differ between the policies, and assume that their values are constant: a common "
    "drift biases the difference, but not with weights='combined' (stationary=True if there is no drift)",
    "caution",
)
DIFFERENCE_MOVES = Claim(
    "differences_move",
    "{term} changes over the rounds (p = {p:.2g}): combined weights estimate a weighted average, "
    "weights='uniform' the average over the period",
    "caution",
)
TINY_PROPENSITY = Claim(
    "tiny_propensity",
    "Policies take arms whose propensity falls to {least:.2g}, and the smallest effective sample size is "
    "{size:.1f}: a few rounds may dominate the estimate, which can make its interval far too short",
    "caution",
)
FEW_EVENTS = Claim(
    "few_events",
    "An effective sample size of {size:.1f} holds about {worth:.1f} uncommon outcomes (a share of "
    "{rate:.2g}), fewer than {enough}: heavily weighted rounds rarely have one, and without "
    "them both estimate and standard error are too small, and intervals can be misleadingly short",
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
    FREEDOM_OF_DIFFERENCES,
    UNSETTLED,
    COMBINED_INSTEAD,
    STABLE_INSTEAD,
    POLICIES_FIRST,
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
    OWN_WEIGHTS_OF_PAIR,
    OWN_WEIGHTS,
    DIFFERENCE_MOVES,
    Part("unit_cautions", "caution"),
    *FEW_REWARDS,
    propensities.FEW_EFFECTIVE,
    Part("law.cautions", "caution"),
)
"""Of a fit, in the order in which its table has them."""
