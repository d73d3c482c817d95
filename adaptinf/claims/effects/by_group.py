"""What is said of effects within groups, by every method of `CATE`, and of their comparisons."""

from __future__ import annotations

from adaptinf.claims import propensities, stationarity
from adaptinf.claims.claim import Claim, Part
from adaptinf.claims.effects import rounds_and_weights as effects
from adaptinf.claims.privacy import releases

# Why groups have no number, and what was adjusted

NEITHER_ARM = Claim(
    "inference.effects.facts.terms.gap_notes",
    "The effect cannot be estimated for {terms}: neither arm was observed in the rounds used.",
    "note",
)
ONE_ARM_MISSING = Claim(
    "inference.effects.facts.terms.gap_notes",
    "One of the arms was not observed for {terms}, so no effect is estimated there.",
    "note",
)
SINGLE_REWARD = Claim(
    "inference.effects.facts.terms.gap_notes",
    "The standard error for {terms} is undefined: one arm has only a single reward.",
    "note",
)
NO_VARIATION = Claim(
    "inference.effects.facts.terms.gap_notes",
    "No standard error can be computed for {terms}: rewards do not vary in either arm.",
    "note",
)
SMALL_GROUPS = Claim(
    "inference.effects.facts.terms.gap_notes",
    "Groups this small give imprecise estimates. Use fewer groups, or CATE.from_formula, which accepts "
    "numeric covariates such as age.",
    "advice",
)
ADJUSTED = Claim(
    "adjusted",
    "Agresti-Caffo intervals are used for {terms}, where successes or failures of an arm number fewer "
    "than {enough}. The estimate is the raw difference; the p-value, interval and standard error are "
    "computed after adding one success and one failure to each arm.",
    "note",
)
EMPTY_INTERVAL = Claim(
    "empty_interval",
    "The 95% interval is empty for {terms}, because privacy noise pushed the estimate outside the range "
    "of possible effects.",
    "note",
)
CHOSEN = Claim(
    "inference.effects.methods.default_method",
    "The default method is the first valid one listed by recommend(log, 'cate', ...); {name} is not "
    "valid for this log, because {reason}.",
    "note",
)

# Differences in means

FIXED_PROBABILITIES = Claim(
    "is_randomised",
    "arms were assigned with fixed probabilities in the rounds used, so sample means are unbiased",
    "reason",
)
CONSTANT_PROPENSITIES = Claim(
    "is_pooled",
    "propensities are constant within each group, so its rounds can be pooled",
    "reason",
)
DIFFERENCE_REASONS = (FIXED_PROBABILITIES, CONSTANT_PROPENSITIES)
DRIFT_ALLOWED = Claim("drift_allowed", "rewards may drift over time", "target")
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
    "the propensities of a group may vary with {contexts}, and combined weights then require batches "
    "(or context_free=True, if assignment ignored contexts)",
    "needs",
)
WEIGHTED_NEEDS = (
    Part("rounds_refusal", "needs"),
    Part("combined_refusal", "needs"),
    effects.LACKS_BOTH_PROPENSITIES,
)
ONE_EVEN_WEIGHT = Claim(
    "is_combined_by_round",
    "AIPW scores have the same weight in both arms, which stabilises the variance of the difference",
    "reason",
)
OWN_EVEN_WEIGHTS = Claim(
    "is_sqrt_by_round",
    "AIPW scores are weighted separately in each arm to stabilise the variance",
    "reason",
)
EVERY_ROUND = Claim(
    "every_round",
    "AIPW scores use all rounds in which neither arm had propensity 0",
    "reason",
)
WEIGHTED_REASONS = (ONE_EVEN_WEIGHT, OWN_EVEN_WEIGHTS, EVERY_ROUND, Part("errors_by_unit", "reason"))
"""Why a row of `recommend` is valid."""
WEIGHTED_CAUTIONS = (propensities.UNSETTLED, Part("tied_units", "caution"))
"""Of a row of `recommend`, where no estimate is known yet."""
NO_DRIFT = Claim(
    "is_sqrt",
    "each arm's mean reward within a group is constant over time",
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
    "The outcome model is the arm's mean reward in earlier rounds of the group or, failing that, the "
    "mean of all earlier rewards. The first round of the log has weight 0. Student's t has one degree "
    "of freedom fewer than the effective number of rewards of the smaller arm.",
    "note",
)
OTHERS_PAST_OF_GROUP = Claim(
    "by_unit",
    "Rewards are predicted by the mean earlier reward of other units with the arm in the group or, if "
    "there is none, of other units with any arm. Rounds without such rewards have weight 0.",
    "note",
)
COMBINED = Claim(
    "is_combined",
    "Both arms have the combined weight (1/e1 + 1/e0)^(-1/2) in each round, where e1 and e0 are their "
    "propensities. Set weights='uniform' to estimate the unweighted average of the effect over time.",
    "note",
)
SQRT = Claim(
    "is_sqrt",
    "Each arm is weighted by the square root of its propensity. If rewards drift, the two weighted means "
    "average over different times, and their difference is then not an average effect.",
    "note",
)
UNIFORM_FOR_CONTEXTS = Claim(
    "uniform_for_contexts",
    "Weights are uniform, because {contexts} may affect propensities within a group: {unsettled}.",
    "note",
)
UNIFORM = Claim("uniform_weights", "Weights are uniform: {unsettled}.", "note")
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
    "the releases cover the groups {groups}, which differ from the labels of {by}",
    "needs",
)
RELEASED = (Part("release_notes", "note"), Part("gap_notes", "note"), EMPTY_INTERVAL)
"""Of a fit, in the order in which its table has them."""

# Sums

NO_COMMON_BATCH = Claim(
    "inference.effects.from_sums.SumsQuestion.usable",
    "no group has a batch in which both {treatment!r} and {control!r} could be assigned",
    "needs",
)
MOVING_PROPENSITIES = Claim(
    "inference.effects.from_sums.SumsQuestion.settled",
    "propensities are estimated or change over time within a group, which can bias sample means",
    "needs",
)
GROUPS_ALONE = Claim(
    "inference.effects.from_sums.SumsQuestion.parts",
    "Each effect is estimated from the sums of its own group. Weights and outcome predictions also use "
    "that group only.",
    "note",
)
GROUPS_WITHOUT_BATCH = Claim(
    "inference.effects.from_sums.SumsQuestion.usable",
    "No effect is estimated for {terms}, because no single batch offered both arms.",
    "note",
)

# Comparisons of groups

BONFERRONI = Claim(
    "inference.effects.comparisons.GroupResults.interactions",
    "An interval for a difference between two effects combines the intervals of both effects, each with "
    "alpha/2 (Bonferroni), which is valid for any noise distribution.",
    "note",
)
SATTERTHWAITE = Claim(
    "inference.effects.comparisons.GroupResults.interactions",
    "Differences between effects are tested with Student's t and Satterthwaite degrees of freedom.",
    "note",
)
SHARED_UNITS = Claim(
    "inference.effects.comparisons.GroupResults.interactions",
    "Some units appear in several groups, so the estimates are correlated. Differences use Student's t "
    "with the smaller of the two degrees of freedom.",
    "note",
)
NO_TEST = Claim(
    "inference.effects.comparisons.GroupResults.interactions",
    "{terms}: the effects cannot be compared, because one of the two groups has no standard error.",
    "note",
)
TOO_FEW_GROUPS = Claim(
    "inference.effects.comparisons.GroupResults.heterogeneity",
    "a test needs at least two groups with a standard error (available: {n} of {all})",
    "needs",
)
GROUPS_LEFT_OUT = Claim(
    "inference.effects.comparisons.GroupResults.heterogeneity",
    "The test excludes groups without a standard error: {terms}.",
    "note",
)
BY_INTERVALS = Claim(
    "inference.effects.comparisons.GroupResults.heterogeneity",
    "The test rejects if the intervals of the G groups at level 1 - alpha/G have no value in common.",
    "note",
)
HOTELLING = Claim(
    "inference.effects.comparisons.GroupResults.heterogeneity",
    "Some groups share units, so the test is based on Hotelling's statistic with a covariance clustered "
    "by unit.",
    "note",
)
ADJUSTED_ENTER = Claim(
    "inference.effects.comparisons.GroupResults.heterogeneity",
    "The test uses the adjusted difference for groups with the Agresti-Caffo adjustment.",
    "note",
)
NOT_NORMAL = Claim(
    "inference.effects.comparisons.GroupResults.heterogeneity",
    "errors of private releases are the sum of normal and Laplace terms, so normal and chi-squared tests "
    "do not apply",
    "needs",
)
TOO_FEW_UNITS = Claim(
    "inference.effects.comparisons.equal_dependent_effects",
    "there are too few units to compare {groups} groups",
    "needs",
)
TOO_LITTLE_FREEDOM = Claim(
    "inference.effects.comparisons.equal_dependent_effects",
    "the clustered covariance has {freedom:.1f} degrees of freedom, too few to compare {groups} groups",
    "needs",
)
