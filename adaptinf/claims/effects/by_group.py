"""Claims about effects within groups, by every method of `CATE`, and of their comparisons."""

from __future__ import annotations

from adaptinf.claims import propensities, stationarity
from adaptinf.claims.claim import Claim, Part
from adaptinf.claims.effects import rounds_and_weights as effects
from adaptinf.claims.logs.statements import NOT_ADAPTIVE
from adaptinf.claims.privacy import releases

NEITHER_ARM = Claim(
    "inference.effects.group_facts.gap_notes",
    "For {terms}, the effect cannot be estimated, because neither arm was observed in the rounds used.",
    "missing",
)
ONE_ARM_MISSING = Claim(
    "inference.effects.group_facts.gap_notes",
    "No effect can be estimated for {terms}, because one of the two arms was never observed.",
    "missing",
)
SINGLE_REWARD = Claim(
    "inference.effects.group_facts.gap_notes",
    "For {terms}, one arm has only one reward, so the standard error is undefined.",
    "missing",
)
NO_VARIATION = Claim(
    "inference.effects.group_facts.gap_notes",
    "No standard error can be computed for {terms}: rewards do not vary in either arm.",
    "missing",
)
SMALL_GROUPS = Claim(
    "inference.effects.group_facts.gap_notes",
    "Estimates for small groups are imprecise. Use fewer groups, or CATE.from_formula, which accepts "
    "numeric covariates such as age.",
    "advice",
)
ADJUSTED = Claim(
    "adjusted",
    "Agresti-Caffo intervals are used for {terms} (fewer than {enough} successes or failures in an "
    "arm). Estimates are unadjusted; standard errors, tests and intervals are computed after adding one "
    "success and one failure to each arm.",
    "note",
)
EMPTY_INTERVAL = Claim(
    "empty_interval",
    "The 95% interval is empty for {terms}, because the privacy noise is large enough that the estimate "
    "lies far outside the range of possible effects.",
    "missing",
)
CHOSEN = Claim(
    "inference.effects.cate.default_method",
    "The default is the first valid method listed by recommend(log, 'cate', ...), because {name} is not "
    "valid for this log: {reason}.",
    "note",
)

# These claims concern differences in means, which need no propensities.

FIXED_PROBABILITIES = Claim(
    "is_randomised",
    "arms were assigned with fixed probabilities in the rounds used, so sample means are unbiased",
    "reason",
)
CONSTANT_PROPENSITIES = Claim(
    "is_pooled",
    "propensities are constant within each group, so rounds in the same group can be pooled",
    "reason",
)
DIFFERENCE_REASONS = (FIXED_PROBABILITIES, CONSTANT_PROPENSITIES)
DRIFT_ALLOWED = Claim(
    "drift_allowed",
    "the treatment effect is not assumed to be constant over time, because mean rewards may drift",
    "target",
)
SAME_EFFECT = (DRIFT_ALLOWED, stationarity.AVERAGED_EQUALLY)
"""Claims for a row of `recommend` that uses unadjusted means of rounds with fixed probabilities."""
DIFFERENCE_ASSUMES = (*propensities.ASSUMES, NOT_ADAPTIVE)
"""Assumptions of differences in means, about how arms were assigned."""
DIFFERENCE = (
    *DIFFERENCE_ASSUMES,
    Part("rounds_notes", "note"),
    ADJUSTED,
    Part("gap_notes", "note"),
    Part("skewness_notes", "note"),
    Part("rare_notes", "note"),
    Part("rare_cautions", "caution"),
)
"""Statements about a fit, in the order in which its table shows them."""

UNFIXED_WEIGHTS = Claim(
    "inference.effects.group_question.GroupQuestion.combined",
    "{contexts} may affect propensities within groups, in which case weights='combined' requires "
    "batched data (otherwise, set 'context_free' to True)",
    "needs",
)
WEIGHTED_NEEDS = (
    Part("rounds_refusal", "needs"),
    Part("combined_refusal", "needs"),
    effects.LACKS_BOTH_PROPENSITIES,
)
ONE_EVEN_WEIGHT = Claim(
    "is_combined_by_round",
    "each round's AIPW scores have the same weight in both arms, which stabilises the variance of the "
    "estimated difference",
    "reason",
)
OWN_EVEN_WEIGHTS = Claim(
    "is_sqrt_by_round",
    "AIPW scores are weighted separately for each arm to stabilise the variances of the estimated arm means",
    "reason",
)
EVERY_ROUND = Claim(
    "every_round",
    "AIPW scores are unbiased in every round in which both arms have positive propensity",
    "reason",
)
WEIGHTED_REASONS = (ONE_EVEN_WEIGHT, OWN_EVEN_WEIGHTS, EVERY_ROUND, Part("errors_by_unit", "reason"))
"""Claims about why a row of `recommend` is valid."""
WEIGHTED_CAUTIONS = (propensities.UNSETTLED, Part("tied_units", "caution"))
"""Cautions for a row of `recommend`, before an estimate is known."""
NO_DRIFT = Claim(
    "is_sqrt",
    "each arm's mean reward within a group is constant over time",
    "assumes",
    check="drift_found",
    scope=stationarity.TRENDS_ALONE,
    short="no drift within groups",
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
    "The prediction for an arm is the mean of the group's earlier rewards in that arm or, if there are "
    "none, in all arms. Round 1 has weight 0. Degrees of freedom: the smaller arm-specific effective "
    "sample size minus 1.",
    "note",
)
OTHERS_PAST_OF_GROUP = Claim(
    "by_unit",
    "A reward is predicted by averaging earlier rewards of other units in the same group and arm or, if "
    "none exist, in the group as a whole. Rounds without a prediction have weight 0.",
    "note",
)
COMBINED = Claim(
    "is_combined",
    "In each round, both arms receive the same weight, (1/e1 + 1/e0)^(-1/2), where e1 and e0 are their "
    "propensities. With weights='uniform', the unweighted average effect over time is estimated.",
    "note",
    short="one weight for both arms",
)
SQRT = Claim(
    "is_sqrt",
    "Rewards are weighted by the square root of the propensity of the chosen arm. The two arm means "
    "therefore weight time periods differently, so under drift the difference between them does not "
    "estimate an average effect.",
    "note",
    short="square-root weights by arm",
)
UNIFORM = Claim(
    "uniform_weights", "All rounds have equal weight; {unsettled}.", "note", short="uniform weights"
)
WEIGHTED = (
    *WEIGHTED_ASSUMES,
    Part("rounds_notes", "note"),
    OWN_PAST_OF_GROUP,
    OTHERS_PAST_OF_GROUP,
    Part("unit_notes", "note"),
    COMBINED,
    SQRT,
    propensities.UNIFORM_FOR_CONTEXTS,
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
"""Statements about a fit, in the order in which its table shows them."""

RELEASED_REASONS = (releases.COVERED,)
OTHER_LABELS = Claim(
    "inference.effects.group_methods.matching_effects",
    "the groups in the releases ({groups}) do not match the values of {by}",
    "needs",
)
RELEASED = (Part("release_notes", "note"), Part("gap_notes", "note"), EMPTY_INTERVAL)
"""Statements about a fit, in the order in which its table shows them."""

# Sums by batch have claims of their own, because their arms can be compared only within batches.

NO_COMMON_BATCH = Claim(
    "inference.effects.groups_of_sums.SumsQuestion.usable",
    "no group has a batch in which both {treatment!r} and {control!r} could be assigned",
    "needs",
)
MOVING_PROPENSITIES = Claim(
    "inference.effects.groups_of_sums.SumsQuestion.settled",
    "bias in the sample means cannot be ruled out, because propensities within a group are estimated or "
    "change over time",
    "needs",
)
GROUPS_ALONE = Claim(
    "inference.effects.groups_of_sums.SumsQuestion.parts",
    "Each group's effect is estimated from that group's batch sums alone; its weights and outcome "
    "predictions use no data from other groups.",
    "note",
)
GROUPS_WITHOUT_BATCH = Claim(
    "inference.effects.groups_of_sums.SumsQuestion.usable",
    "For {terms}, the two arms were never available in the same batch, so there is no effect estimate.",
    "missing",
)

# These claims concern comparisons of groups, whose intervals combine those of single groups.

BONFERRONI = Claim(
    "inference.effects.comparisons.GroupResults.interactions",
    "The interval for a difference between two effects combines the two effects' intervals, each at level "
    "1 - alpha/2. By the Bonferroni inequality, it is valid under any dependence between these intervals.",
    "note",
)
SATTERTHWAITE = Claim(
    "inference.effects.comparisons.GroupResults.interactions",
    "Differences between effects are tested by t tests with Satterthwaite degrees of freedom.",
    "note",
)
SHARED_UNITS = Claim(
    "inference.effects.comparisons.GroupResults.interactions",
    "Some units appear in several groups, so estimates are correlated across groups. Tests of "
    "differences use a t distribution with the lower of the two groups' degrees of freedom.",
    "note",
)
NO_TEST = Claim(
    "inference.effects.comparisons.GroupResults.interactions",
    "{terms}: the effects cannot be compared, because at least one of them has no standard error.",
    "missing",
)
TOO_FEW_GROUPS = Claim(
    "inference.effects.comparisons.GroupResults.heterogeneity",
    "the test requires at least two groups with standard errors, but only {n} of {all} have one",
    "needs",
)
GROUPS_LEFT_OUT = Claim(
    "inference.effects.comparisons.GroupResults.heterogeneity",
    "The test excludes groups whose effect estimates have no standard error: {terms}.",
    "note",
)
BY_INTERVALS = Claim(
    "inference.effects.comparisons.GroupResults.heterogeneity",
    "The hypothesis of equal effects is rejected if the G group-specific intervals, each at confidence "
    "level 1 - alpha/G, have no value in common.",
    "note",
)
HOTELLING = Claim(
    "inference.effects.comparisons.GroupResults.heterogeneity",
    "Some units belong to several groups, so effects are compared using Hotelling's T-squared statistic "
    "with a covariance matrix clustered by unit.",
    "note",
)
ADJUSTED_ENTER = Claim(
    "inference.effects.comparisons.GroupResults.heterogeneity",
    "For groups with Agresti-Caffo intervals, the test of equal effects uses the Agresti-Caffo adjusted "
    "differences in proportions.",
    "note",
)
NOT_NORMAL = Claim(
    "inference.effects.comparisons.GroupResults.heterogeneity",
    "errors in private releases are sums of normal and Laplace variables, so tests based on normal or "
    "chi-squared distributions do not apply",
    "needs",
)
TOO_FEW_UNITS = Claim(
    "inference.effects.comparisons.equal_dependent_effects",
    "there are too few units to compare {groups} groups",
    "needs",
)
TOO_LITTLE_FREEDOM = Claim(
    "inference.effects.comparisons.equal_dependent_effects",
    "the cluster-robust covariance estimator has only {freedom:.1f} degrees of freedom, too few to "
    "compare {groups} groups",
    "needs",
)
