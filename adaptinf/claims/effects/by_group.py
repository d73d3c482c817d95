"""What is said of effects within groups, by every method of `CATE`, and of their comparisons."""

from __future__ import annotations

from adaptinf.claims import propensities, stationarity
from adaptinf.claims.claim import Claim, Part
from adaptinf.claims.effects import rounds_and_weights as effects
from adaptinf.claims.privacy import releases

# Why groups have no number, and what was adjusted

NEITHER_ARM = Claim(
    "inference.effects.facts.terms.gap_notes",
    "{terms}: no estimate, as neither arm has rewards in these rounds.",
    "note",
)
ONE_ARM_MISSING = Claim(
    "inference.effects.facts.terms.gap_notes",
    "{terms}: no estimate, as one arm has no rewards in these rounds.",
    "note",
)
SINGLE_REWARD = Claim(
    "inference.effects.facts.terms.gap_notes",
    "{terms}: no standard error, as an arm has a single reward.",
    "note",
)
NO_VARIATION = Claim(
    "inference.effects.facts.terms.gap_notes",
    "{terms}: no standard error; rewards do not vary in either arm.",
    "note",
)
SMALL_GROUPS = Claim(
    "inference.effects.facts.terms.gap_notes",
    "Groups this small say little: use fewer groups, or CATE.from_formula, which takes numbers such as "
    "ages as they are.",
    "advice",
)
ADJUSTED = Claim(
    "adjusted",
    "Agresti-Caffo intervals for {terms}, where an arm had fewer than {enough} successes or failures. "
    "The estimate is the raw difference; p-value, interval and standard error are for the difference "
    "after adding a success and a failure to each arm.",
    "note",
)
EMPTY_INTERVAL = Claim(
    "empty_interval",
    "{terms}: no interval at alpha = 0.05, as noise pushed the estimate beyond any possible effect.",
    "note",
)
CHOSEN = Claim(
    "inference.effects.methods.default_method",
    "The first valid method of recommend(log, 'cate', ...): {name} is not valid for this log, as {reason}.",
    "note",
)

# Differences in means

FIXED_PROBABILITIES = Claim(
    "is_randomised",
    "arms were drawn with fixed probabilities in these rounds, so plain means are unbiased",
    "reason",
)
CONSTANT_PROPENSITIES = Claim(
    "is_pooled",
    "propensities are constant within each group, so every round of the phase counts",
    "reason",
)
DIFFERENCE_REASONS = (FIXED_PROBABILITIES, CONSTANT_PROPENSITIES)
DRIFT_ALLOWED = Claim("drift_allowed", "drift is allowed", "target")
SAME_EFFECT = (DRIFT_ALLOWED, stationarity.AVERAGED_EQUALLY)
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
    "within a group {contexts} may affect propensities, and without batches no weight is known before "
    "the round's context is seen; if contexts played no part, say context_free=True in the log",
    "needs",
)
WEIGHTED_NEEDS = (
    Part("rounds_refusal", "needs"),
    Part("combined_refusal", "needs"),
    effects.LACKS_BOTH_PROPENSITIES,
)
ONE_EVEN_WEIGHT = Claim(
    "is_combined_by_round",
    "inverse propensities, weighted alike in both arms so that the variance stays even",
    "reason",
)
OWN_EVEN_WEIGHTS = Claim(
    "is_sqrt_by_round",
    "inverse propensities, with weights that even out the variance arm by arm",
    "reason",
)
EVERY_ROUND = Claim(
    "every_round",
    "inverse propensities, over every round in which both arms were possible",
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
)
WEIGHTED_ASSUMES = (
    *propensities.ASSUMES,
    Part("unit_assumptions", "assumes"),
    NO_DRIFT,
    stationarity.PAIR_SHARES_DRIFT,
    stationarity.AVERAGED_EQUALLY,
    stationarity.AVERAGED_BY_WEIGHT,
)
OWN_PAST_OF_GROUP = Claim(
    "by_round",
    "Outcome model: an arm's mean over its earlier rounds in the group and, until it has one, the overall "
    "mean so far; the log's first round counts for nothing. Degrees of freedom of Student's t: the smaller "
    "arm's effective number of rewards, less 1.",
    "note",
)
OTHERS_PAST_OF_GROUP = Claim(
    "by_unit",
    "Outcome model: within a group, the arm's mean reward from other units so far, or else the mean of "
    "everything that other units earned; earlier rounds get no weight.",
    "note",
)
COMBINED = Claim(
    "is_combined",
    "Combined weights, the same for both arms: (1/e1 + 1/e0)^(-1/2). For the plain average of the effect "
    "over time, use weights='uniform'.",
    "note",
)
SQRT = Claim(
    "is_sqrt",
    "Sqrt weights: each arm has its own, the root of its propensity. Under drift the two weighted means "
    "refer to different times, so their difference is no longer an effect.",
    "note",
)
UNIFORM_FOR_CONTEXTS = Claim(
    "uniform_for_contexts",
    "Uniform weights, as {contexts} may affect propensities within a group: {unsettled}.",
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
    "no batch of any group allowed both {treatment!r} and {control!r}",
    "needs",
)
MOVING_PROPENSITIES = Claim(
    "inference.effects.from_sums.SumsQuestion.settled",
    "propensities change within some group, or are estimates",
    "needs",
)
GROUPS_ALONE = Claim(
    "inference.effects.from_sums.SumsQuestion.parts",
    "Groups: each effect comes from the group's own sums, with weights and predictions from that group "
    "alone.",
    "note",
)
GROUPS_WITHOUT_BATCH = Claim(
    "inference.effects.from_sums.SumsQuestion.usable",
    "{terms}: no batch allowed both arms.",
    "note",
)

# Comparisons of groups

BONFERRONI = Claim(
    "inference.effects.comparisons.GroupResults.interactions",
    "Differences of effects: the interval combines two at alpha/2 each (Bonferroni), whatever the law of "
    "the noise.",
    "note",
)
SATTERTHWAITE = Claim(
    "inference.effects.comparisons.GroupResults.interactions",
    "Differences of effects: Student's t, degrees of freedom by Satterthwaite.",
    "note",
)
SHARED_UNITS = Claim(
    "inference.effects.comparisons.GroupResults.interactions",
    "Groups share units, so their errors covary: differences use Student's t with the smaller of the two "
    "degrees of freedom.",
    "note",
)
NO_TEST = Claim(
    "inference.effects.comparisons.GroupResults.interactions",
    "No test for {terms}: one of the two groups has no standard error.",
    "note",
)
TOO_FEW_GROUPS = Claim(
    "inference.effects.comparisons.GroupResults.heterogeneity",
    "only {n} of {all} groups has a standard error, and the test compares at least two",
    "needs",
)
GROUPS_LEFT_OUT = Claim(
    "inference.effects.comparisons.GroupResults.heterogeneity",
    "Left out, as they have no standard error: {terms}.",
    "note",
)
BY_INTERVALS = Claim(
    "inference.effects.comparisons.GroupResults.heterogeneity",
    "Rejects where the intervals of all groups, at alpha/G each, have no effect in common.",
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
    "errors of private releases are normal plus Laplace, so no chi-squared or normal law applies",
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
