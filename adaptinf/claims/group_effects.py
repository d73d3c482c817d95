"""What is said of effects within groups, by every method of `CATE`, and of their comparisons."""

from __future__ import annotations

from adaptinf.claims import drift, effects, propensities, releases, stationarity
from adaptinf.claims.claim import Claim, Part

# Why groups have no number, and what was adjusted

NEITHER_ARM = Claim(
    "inference.effects.facts.terms.gap_notes",
    "{terms}: no estimate, neither arm has rewards among these rounds.",
    "note",
)
ONE_ARM_MISSING = Claim(
    "inference.effects.facts.terms.gap_notes",
    "{terms}: no estimate, one of the arms has no rewards among these rounds.",
    "note",
)
SINGLE_REWARD = Claim(
    "inference.effects.facts.terms.gap_notes",
    "{terms}: no standard error, an arm has a single reward.",
    "note",
)
NO_VARIATION = Claim(
    "inference.effects.facts.terms.gap_notes", "{terms}: no standard error, no arm's rewards vary.", "note"
)
SMALL_GROUPS = Claim(
    "inference.effects.facts.terms.gap_notes",
    "Groups this small tell little: CATE.from_formula describes the effect by numbers such as ages "
    "themselves, and fewer groups have more rounds each.",
    "advice",
)
ADJUSTED = Claim(
    "adjusted",
    "Agresti-Caffo intervals for {terms}: an arm has fewer than {enough} successes or failures. The estimate "
    "is the raw difference; p-value, interval and standard error are those of the difference with a success "
    "and a failure added to each arm.",
    "note",
)
EMPTY_INTERVAL = Claim(
    "empty_interval",
    "{terms}: no interval at alpha = 0.05, noise carried the estimate beyond every possible effect.",
    "note",
)
CHOSEN = Claim(
    "inference.effects.methods.default_method",
    "Chosen as the first of recommend(log, 'cate', ...): {name} is not valid for this log, as {reason}.",
    "note",
)

# Differences in means

FIXED_PROBABILITIES = Claim(
    "is_randomised",
    "arms were drawn with fixed probabilities in these rounds: plain means are unbiased",
    "reason",
)
CONSTANT_PROPENSITIES = Claim(
    "is_pooled",
    "propensities are constant within each group: every round of the phase counts",
    "reason",
)
DIFFERENCE_REASONS = (FIXED_PROBABILITIES, CONSTANT_PROPENSITIES)
DRIFT_ALLOWED = Claim("drift_allowed", "drift is allowed", "target")
SAME_EFFECT = (DRIFT_ALLOWED, drift.AVERAGED_EQUALLY)
"""Of a row of `recommend` by plain means of rounds whose arms were drawn with fixed probabilities."""
DIFFERENCE = (
    Part("rounds_notes", "note"),
    ADJUSTED,
    Part("gap_notes", "note"),
    Part("skewness_notes", "note"),
    Part("rare_notes", "note"),
    Part("rare_cautions", "caution"),
)
"""Of a fit, in the order in which its table has them."""

# Inverse propensities

UNFIXED_WEIGHTS = Claim(
    "inference.effects.question.GroupQuestion.combined",
    "{contexts} may move the propensities within a group, and without batches no weight is known before the "
    "round's context (context_free=True of the log says that they had no part)",
    "needs",
)
WEIGHTED_NEEDS = (
    Part("rounds_refusal", "needs"),
    Part("combined_refusal", "needs"),
    effects.LACKS_BOTH_PROPENSITIES,
)
ONE_EVEN_WEIGHT = Claim(
    "is_combined_by_round",
    "inverse propensities, with one weight for both arms that keeps the variance even",
    "reason",
)
OWN_EVEN_WEIGHTS = Claim(
    "is_sqrt_by_round",
    "inverse propensities, with weights of each arm's own that keep the variance even",
    "reason",
)
EVERY_ROUND = Claim(
    "every_round",
    "inverse propensities over all rounds in which both arms could be chosen",
    "reason",
)
WEIGHTED_REASONS = (ONE_EVEN_WEIGHT, OWN_EVEN_WEIGHTS, EVERY_ROUND, Part("errors_by_unit", "reason"))
"""Why a row of `recommend` is valid."""
WEIGHTED_CAUTIONS = (propensities.UNSETTLED, Part("tied_units", "caution"))
"""Of a row of `recommend`, where no estimate is known yet."""
NO_DRIFT = Claim(
    "is_sqrt",
    "no drift: each arm's mean within a group stays the same",
    "assumes",
    check="inference.diagnostics.arms",
)
WEIGHTED_ASSUMES = (
    propensities.RIGHT,
    propensities.ESTIMATED,
    Part("unit_assumptions", "assumes"),
    NO_DRIFT,
    drift.PAIR_SHARES_DRIFT,
    drift.AVERAGED_EQUALLY,
    drift.AVERAGED_BY_WEIGHT,
)
OWN_PAST_OF_GROUP = Claim(
    "by_round",
    "Outcome model: the arm's mean reward over the earlier rounds of its group among these, before its first "
    "one the mean of all; the first round has no weight. Student's t with an arm's effective number of "
    "rewards minus 1 degrees of freedom, the smaller arm's.",
    "note",
)
OTHERS_PAST_OF_GROUP = Claim(
    "by_unit",
    "Outcome model: the arm's mean reward over the earlier rounds of other units in its group, before there "
    "are any the mean of all of other units' rewards; rounds before these have no weight.",
    "note",
)
COMBINED = Claim(
    "is_combined",
    "Combined weights: one for both arms, (1/e1 + 1/e0)^(-1/2). weights='uniform' estimates the plain "
    "average of the effect over the rounds.",
    "note",
)
SQRT = Claim(
    "is_sqrt",
    "Sqrt weights, each arm's own, by its propensities. Under a drift the two weighted means are of "
    "different times, and their difference is no effect.",
    "note",
)
UNIFORM_FOR_CONTEXTS = Claim(
    "uniform_for_contexts",
    "Uniform weights, because {contexts} may move the propensities within a group: {unsettled}.",
    "note",
)
UNIFORM = Claim("uniform_weights", "Uniform weights: {unsettled}.", "note")
WEIGHTED = (
    *WEIGHTED_ASSUMES,
    Part("rounds_notes", "note"),
    OWN_PAST_OF_GROUP,
    OTHERS_PAST_OF_GROUP,
    Part("unit_notes", "note"),
    COMBINED,
    SQRT,
    UNIFORM_FOR_CONTEXTS,
    UNIFORM,
    effects.LAGGED,
    Part("skewness_notes", "note"),
    Part("gap_notes", "note"),
    Part("rare_notes", "note"),
    Part("profile.propensity_cautions", "caution"),
    stationarity.OWN_WEIGHTS,
    Part("unit_cautions", "caution"),
    effects.FEW_EFFECTIVE,
    Part("rare_cautions", "caution"),
    effects.TINY_PROPENSITIES,
)
"""Of a fit, in the order in which its table has them."""

# Releases

RELEASED_REASONS = (releases.COVERED,)
OTHER_LABELS = Claim(
    "inference.effects.from_releases.matching_effects",
    "its releases are for the groups {groups}, which are not the labels of by= {by}",
    "needs",
)
RELEASED = (Part("release_notes", "note"), Part("gap_notes", "note"), EMPTY_INTERVAL)
"""Of a fit, in the order in which its table has them."""

# Sums

NO_COMMON_BATCH = Claim(
    "inference.effects.from_sums.SumsQuestion.usable",
    "no batch of a group could choose both {treatment!r} and {control!r}",
    "needs",
)
MOVING_PROPENSITIES = Claim(
    "inference.effects.from_sums.SumsQuestion.settled",
    "propensities move within some group, or are estimates",
    "needs",
)
GROUPS_ALONE = Claim(
    "inference.effects.from_sums.SumsQuestion.parts",
    "Groups: each effect is the contrast of the group's own sums, whose weights and predictions come from "
    "the group alone.",
    "note",
)
GROUPS_WITHOUT_BATCH = Claim(
    "inference.effects.from_sums.SumsQuestion.usable", "{terms}: no batch could choose both arms.", "note"
)

# Comparisons of groups

BONFERRONI = Claim(
    "inference.effects.comparisons.GroupResults.interactions",
    "Differences of effects: the interval combines two intervals at alpha/2 each (Bonferroni), which holds "
    "whatever the law of the noise.",
    "note",
)
SATTERTHWAITE = Claim(
    "inference.effects.comparisons.GroupResults.interactions",
    "Differences of effects: Student's t with Satterthwaite's degrees of freedom.",
    "note",
)
SHARED_UNITS = Claim(
    "inference.effects.comparisons.GroupResults.interactions",
    "Differences of effects: Student's t with the smaller degrees of freedom of the two; groups share units, "
    "whose errors covary.",
    "note",
)
NO_TEST = Claim(
    "inference.effects.comparisons.GroupResults.interactions",
    "No test for {terms}: one of the two groups has no standard error.",
    "note",
)
TOO_FEW_GROUPS = Claim(
    "inference.effects.comparisons.GroupResults.heterogeneity",
    "{n} of {all} groups has a standard error, and it compares at least two",
    "needs",
)
GROUPS_LEFT_OUT = Claim(
    "inference.effects.comparisons.GroupResults.heterogeneity",
    "Left out, without a standard error: {terms}.",
    "note",
)
BY_INTERVALS = Claim(
    "inference.effects.comparisons.GroupResults.heterogeneity",
    "By intervals of all groups at alpha/G each that have no effect in common.",
    "note",
)
HOTELLING = Claim(
    "inference.effects.comparisons.GroupResults.heterogeneity",
    "Groups share units: Hotelling's test, with the covariance by unit.",
    "note",
)
ADJUSTED_ENTER = Claim(
    "inference.effects.comparisons.GroupResults.heterogeneity",
    "Groups with the Agresti-Caffo adjustment enter with their adjusted difference.",
    "note",
)
NOT_NORMAL = Claim(
    "inference.effects.comparisons.GroupResults.heterogeneity",
    "errors of private releases are normal plus Laplace, not normal",
    "needs",
)
NO_JOINT_LAW = Claim(
    "inference.effects.comparisons.GroupResults._joint_covariance",
    "errors of private releases are normal plus Laplace: no chi-squared or normal law",
    "needs",
)
TOO_FEW_UNITS = Claim(
    "inference.effects.comparisons.equal_dependent_effects",
    "there are too few units to compare {groups} groups",
    "needs",
)
TOO_LITTLE_FREEDOM = Claim(
    "inference.effects.comparisons.equal_dependent_effects",
    "{freedom:.1f} degrees of freedom by unit are too few to compare {groups} groups",
    "needs",
)
