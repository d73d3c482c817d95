"""Claims about values of policies and about their differences."""

from __future__ import annotations

from adaptinf.claims import contexts, propensities, stationarity, units
from adaptinf.claims.claim import Claim, Part

BEYOND_SUPPORT = Claim(
    "inference.policies.policy_question.check_support",
    "the value of policy {policy!r} is not identified, because the policy may choose arms whose "
    "propensity in the log is 0 ({arms} of {rounds} rounds)",
    "needs",
)
UNLOGGED_CONTEXTS = Claim(
    "inference.policies.policy_question.PolicyQuestion.check_logging",
    "propensities vary between rounds and may depend on contexts, but contexts are not logged",
    "needs",
)
CONTEXTUAL_BY_UNIT = Claim(
    "contextual_by_unit",
    "standard errors must be clustered by unit, which is not implemented for weights that depend on contexts",
    "needs",
)
NEEDS = (
    Part("rounds_refusal", "needs"),
    Part("support_refusal", "needs"),
    Part("propensities_refusal", "needs"),
    Part("weights_refusal", "needs"),
    CONTEXTUAL_BY_UNIT,
)
"""Claims for one kind of weights."""

MEANS_OF_ARMS = Claim(
    "inference.policies.policy_question.PolicyQuestion.check_propensities",
    "ArmMeans, which estimates the mean of each arm, or Contrast, which estimates differences between "
    "arm means",
    "advice",
)
"""Alternatives to a policy value that requires propensities."""

EQUAL_ROUNDS = Claim(
    "is_uniform",
    "rounds are weighted equally, so the average value over rounds is estimated even if rewards drift",
    "reason",
)
ONE_WEIGHT = Claim(
    "is_combined",
    "using one weight per round for both policies stabilises the variance and ensures that common drift "
    "cancels",
    "reason",
)
STABLE = Claim(
    "is_stable",
    "the logging policy is known for every context, so weights can be chosen to stabilise the variance",
    "reason",
)
STABLE_BY_CONTEXT = Claim(
    "is_stable_by_context",
    "context-dependent weights stabilise the variance and often shorten confidence intervals",
    "reason",
)
LEAST = Claim("is_least", "the weights minimise the asymptotic variance if propensities converge", "reason")
LEAST_BY_CONTEXT = Claim(
    "is_least_by_context", "weights that vary with the context minimise the variance", "reason"
)
CADR = Claim(
    "is_cadr",
    "scores are weighted by the inverse of their conditional standard deviations, which stabilises the "
    "variance",
    "reason",
)
CADR_UNSETTLED = Claim("is_cadr", "asymptotic normality does not require propensities to converge", "reason")
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

NO_FEEDBACK = Claim(
    "allows_drift",
    "arms chosen earlier do not affect later contexts or rewards",
    "assumes",
    short="no effects on later rounds",
)
SAME_LAW = Claim(
    "allows_no_drift",
    "contexts and potential rewards are i.i.d. across rounds",
    "assumes",
    check="drift_found",
    scope=stationarity.TRENDS_ALONE,
    short="i.i.d. rounds",
)
FIXED = Claim(
    "policies_are_given",
    "the policies were chosen without using this log",
    "assumes",
    short="policies chosen without this log",
)
SETTLING = Claim(
    "needs_settling",
    "propensities converge as the number of rounds grows",
    "assumes",
    short="propensities converge",
)
CHOSEN_ALONE = Claim(
    "knows_chosen_alone",
    "every arm that an evaluated policy can choose had positive propensity in every round (only the "
    "chosen arms' propensities are logged)",
    "assumes",
    short="policies choose available arms",
)
AVERAGE = Claim(
    "is_uniform", "if policy values drift, the estimand is their average over all rounds", "target"
)
WEIGHTED_AVERAGE = Claim(
    "is_combined",
    "if the difference drifts, the estimand is a weighted average of the difference over rounds "
    "(unweighted if weights='uniform')",
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
    "some propensities are small, so normal intervals may undercover in moderate samples",
    "caution",
)
ALL_EQUAL = Claim("rewards_equal", "no interval is given, because all rewards are equal", "caution")
HARDLY_CHOSEN = Claim(
    "hardly_chosen",
    "intervals are unavailable for {policies}, because some arms that may be chosen have at most one reward",
    "caution",
)
ROW_CAUTIONS = (ALL_EQUAL, HARDLY_CHOSEN, Part("tied", "caution"), propensities.UNSETTLED, SMALL)
"""Cautions for a row of `recommend`, before an estimate is known."""

CHOSEN_ON_LOG = Claim(
    "policies_are_given",
    "If a policy was chosen using this log, the estimate of its value is biased upward; the log does "
    "not show whether any policy was chosen in this way.",
    "note",
)
FREEDOM = Claim(
    "is_of_values",
    "Inference on each policy value uses a t distribution whose degrees of freedom are the effective "
    "sample size for that value minus 1.",
    "note",
)
FREEDOM_OF_DIFFERENCES = Claim(
    "is_of_differences",
    "For each difference, effective sample sizes are computed separately for rounds that contribute "
    "positively and for rounds that contribute negatively. The degrees of freedom of each t test equal "
    "the smaller size minus 1.",
    "note",
)
UNSETTLED = Claim(
    "uniform_of_adaptive",
    "With uniform weights, estimates are asymptotically normal only if propensities converge.",
    "note",
    short="uniform weights",
)
COMBINED_INSTEAD = Claim(
    "uniform_difference",
    "Set weights='combined' if propensities may not converge; estimates are then asymptotically normal, "
    "but the propensities of all arms must be known.",
    "advice",
)
STABLE_INSTEAD = Claim(
    "uniform_value",
    "If rewards do not drift, set weights='stable-variance' for asymptotic normality even when "
    "propensities do not converge.",
    "advice",
)
POLICIES_FIRST = Claim(
    "uniform_for_want_of_policies",
    "Set snapshots= to use variance-stabilising weights, which require the logging policy's "
    "propensities for all contexts.",
    "advice",
)
COMBINED = Claim(
    "combined_by",
    "Both policies receive the same weight in each round, so drift common to both policies cancels in "
    "the estimated difference. Weights are computed from {by}.",
    "note",
    short="one weight for both policies",
)
BY_OWN = Claim("combined_by", "the current round's propensities, which contexts do not affect", "phrase")
BY_DESIGN = Claim(
    "combined_by", "the current round's logging policy, evaluated at the contexts of earlier rounds", "phrase"
)
BY_BATCH_BEFORE = Claim(
    "combined_by",
    "propensities of the previous batch or, if it has fewer than {nearest} rounds, those of the "
    "preceding {nearest} rounds",
    "phrase",
)
BY_ROUNDS_BEFORE = Claim(
    "combined_by",
    "propensities in the preceding {nearest} rounds, because propensities in the current round may "
    "depend on contexts (if they do not, set 'context_free' to True)",
    "phrase",
)
"""Phrase for the basis of combined weights."""
UNSETTLED_TOO = Claim(
    "needs_settling",
    "If convergence of propensities is uncertain, use context-independent variance-stabilising weights "
    "(weights='stable-variance', contextual=False).",
    "advice",
)
SNAPSHOTS = Claim(
    "by_snapshots",
    "Weights are computed from recorded snapshots of the logging policy ({snapshots} in total), which "
    "agree with the logged propensities.",
    "note",
)
LAGGED = Claim(
    "lagged",
    "The preceding round's propensities determine the weights, because unlogged contexts may affect "
    "current propensities; if they did not, set snapshots='context-free'.",
    "note",
)
BURNT_IN = Claim(
    "burnt_in",
    "CADR gives weight 0 to the burn-in rounds (burn_in={burn_in}) and to rounds for which the variance "
    "estimated from earlier scores is 0. Of {rounds} rounds, {weighted} have positive weight.",
    "note",
)
FIRST_WITHOUT = Claim(
    "first_without",
    "Round 1 is given weight 0, because there are no earlier contexts to average over.",
    "note",
)

NEVER_CHOSEN = Claim(
    "never_chosen",
    "{policy}: no estimate is given, because the policy chooses unobserved arms ({arms}) with "
    "probability {share:.2%}.",
    "missing",
)
LEFT_OUT = Claim(
    "left_out",
    "{policy}: the estimate omits arms that were never chosen ({arms}), whose total probability under "
    "the policy is {share:.2%}.",
    "note",
)
CHOSEN_ONCE = Claim(
    "chosen_once",
    "{policy}: no standard error is given, because {share:.2%} of the policy's probability falls on "
    "arms with at most one reward.",
    "missing",
)
CONSTANT = Claim(
    "constant_scores", "No test or interval is available for {term}, because all scores are equal.", "missing"
)
UNWEIGHTED = Claim("unweighted", "{term} is not estimated, because all rounds have weight 0.", "missing")

OWN_WEIGHTS = Claim(
    "own_weights",
    "{weights} weights assume a constant policy value; set weights='uniform' to estimate the average "
    "value over the period if drift is possible, or stationary=True if it can be ruled out",
    "caution",
)
OWN_WEIGHTS_OF_PAIR = Claim(
    "own_weights_of_pair",
    "{weights} weights differ between the two policies, so drift in mean rewards may bias the "
    "difference; set weights='combined', or stationary=True if mean rewards are constant",
    "caution",
)
DIFFERENCE_MOVES = Claim(
    "differences_move",
    "{term} appears to vary over rounds (p = {p:.2g}); combined weights then estimate a weighted "
    "average, whereas weights='uniform' gives the average over all rounds",
    "caution",
)
TINY_PROPENSITY = Claim(
    "tiny_propensity",
    "Among arms that the evaluated policies may choose, the smallest propensity is {least:.2g} and the "
    "smallest effective sample size is {size:.1f}, so a few rounds may dominate the estimates and "
    "intervals may undercover severely",
    "caution",
)
FEW_EVENTS = Claim(
    "few_events",
    "The effective number of rare outcomes is about {worth:.1f} (rate {rate:.2g} in an effective sample "
    "of {size:.1f} rounds), below {enough}, so estimates and standard errors may be biased downwards "
    "and intervals may undercover",
    "caution",
)
FEW_REWARDS = (TINY_PROPENSITY, FEW_EVENTS)
"""These also produce warnings."""

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
"""Statements about a fit, in the order in which its table shows them."""
