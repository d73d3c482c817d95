"""Claims about estimates from private releases alone."""

from __future__ import annotations

from adaptinf.claims import contexts, stationarity
from adaptinf.claims.claim import Claim

COVERED = Claim(
    "of_releases",
    "the estimate is computed from the private releases alone, so the privacy guarantee covers it",
    "reason",
)

TWO_INTERVALS = Claim(
    "inference.released.group_effects.ReleasedDifferenceReference",
    "normal sampling error plus Laplace noise (Bonferroni combination of two intervals)",
    "phrase",
)
"""The name of a distribution."""
CLIPPED = Claim(
    "inference.released.group_effects.released_effects",
    "Rewards were clipped to [0, 1], and the estimate refers to the clipped rewards.",
    "note",
    short="rewards clipped to [0, 1]",
)
INVERTED = Claim(
    "inference.released.effects.NoisyEffect.interval",
    "P-values and intervals reflect both sampling error and the noise added to the releases.",
    "note",
)

# These claims concern units with several rounds, whose effect on the variance the releases do not reveal.

UNITS_AS_DECLARED = Claim(
    "inference.released.pair_effects.refuse_repeated_units",
    "each unit may contribute several rounds (declared maximum per unit: {n}); {vary}",
    "needs",
)
UNITS_CAME_BACK = Claim(
    "inference.released.pair_effects.refuse_repeated_units",
    "{n} of the released rounds came from units that had already contributed a round; {vary}",
    "needs",
)
SUMS_VARY_MORE = Claim(
    "inference.released.pair_effects.refuse_repeated_units",
    "if effects differ between units, several rounds per unit inflate the variance of the released sums "
    "by an amount that the releases do not reveal",
    "needs",
)
ONE_ROUND_A_UNIT = Claim(
    "inference.released.pair_effects.refuse_repeated_units",
    "releases in which each unit contributes only one round",
    "advice",
)
FROM_THE_LOG = Claim(
    "inference.released.pair_effects.refuse_repeated_units",
    "estimators computed from the raw log (their results have no privacy guarantee)",
    "advice",
)

NO_GROUP_EFFECTS = Claim(
    "inference.released.group_effects.released_effects",
    "the log lacks released group effects (quantities contrast_sum and arrivals, or estimate and length)",
    "needs",
)
UNFINISHED = Claim(
    "inference.released.group_effects.released_effects",
    "contrast_sum or arrivals is missing for at least one group in the releases from the last round "
    "({round})",
    "needs",
)
NO_LEAST_COUNT = Claim(
    "inference.released.group_effects.released_effects",
    "the minimum count cannot be computed, because either the design's alpha or the released number of "
    "arrivals in the first half of the trial is missing",
    "needs",
)
SMALL_COUNT = Claim(
    "inference.released.group_effects.released_effects",
    "No estimate is given for {terms}: the released count, {count:.1f}, does not exceed the required "
    "minimum of {least:.1f}.",
    "missing",
)
NOT_RELEASED = Claim(
    "inference.released.group_effects.released_effects",
    "No estimate was released for {terms}, because there were too few arrivals or an arm was never chosen.",
    "missing",
)
SUMS_ALONE = Claim(
    "inference.released.group_effects.released_effects",
    "Each estimate uses only the group's released contrast sum and count of randomised rounds.",
    "note",
    short="from released sums",
)
VARIANCE_OF_SUMS = Claim(
    "inference.released.group_effects.released_effects",
    "The sampling variance is exact for binary rewards and an upper bound for other rewards.",
    "note",
)
MEANS_ALONE = Claim(
    "inference.released.group_effects.released_effects",
    "Estimates use only the released differences in means and their numbers of rounds (released as length).",
    "note",
    short="from released differences",
)
VARIANCE_OF_MEANS = Claim(
    "inference.released.group_effects.released_effects",
    "For outcomes in [0, 1] and equal allocation to both arms, the estimated difference has sampling "
    "variance at most (1 - d^2)/n, where d is the true difference and n is the number of rounds.",
    "note",
)

NAMED_BEFORE = Claim(
    "several_pairs",
    "the two arms were chosen before the trial (otherwise set named='after')",
    "assumes",
    short="arms named before the trial",
)
PAIR_ASSUMES = (stationarity.MEANS_STAY, contexts.NO_PART, NAMED_BEFORE)
EMPTY = Claim(
    "inference.arms.data.arms_of_releases.published",
    "The confidence interval is empty, because the released difference, which includes privacy noise, "
    "lies too far outside [-1, 1].",
    "missing",
)
NAMED_AFTER = Claim(
    "inference.released.pair_effects.pair_effect",
    "The two arms to compare were selected after the released results had been seen, so alpha is "
    "divided by the number of possible pairs ({pairs}).",
    "note",
)
NO_PAIR_EFFECT = Claim(
    "inference.released.pair_effects.pair_effect",
    "no difference between arms can be computed: the releases contain neither arm means by epoch nor "
    "sums and counts for only a single group",
    "needs",
)
SEVERAL_GROUPS = Claim(
    "inference.released.pair_effects.pair_effect",
    "the releases are for {n} groups ({groups}); use CATE to estimate the effect in each group",
    "needs",
)
NO_COMMON_EPOCH = Claim(
    "inference.released.pair_effects.pair_effect",
    "the trial ended before the means of both arms had been released in the same epoch",
    "needs",
)
OTHER_SCALES = Claim(
    "inference.released.pair_effects.pair_effect",
    "the noise scales for epoch {epoch} are inconsistent with the {pulls:,} pulls per arm specified by "
    "the design",
    "needs",
)
EPOCH_ALONE = Claim(
    "inference.released.pair_effects.pair_effect",
    "The difference uses only the released means of epoch {epoch}, the last epoch that both arms "
    "reached (pulls per arm: {pulls:,}).",
    "note",
    short="from the released means of epoch {epoch}",
)
EPOCH_SHARE = Claim(
    "inference.released.pair_effects.epoch_share",
    "The last epoch is determined by earlier releases, so each epoch is allotted a fraction of alpha in "
    "advance ({share:.3g} for the epoch analysed); the fractions sum to at most 1.",
    "note",
)
VARIANCE_OF_EPOCH = Claim(
    "inference.released.pair_effects.pair_effect",
    "With n rounds per arm, the released difference has variance of at most (1 - effect^2)/(2n), where "
    "effect is the true difference. Binary rewards with means that sum to 1 attain this bound.",
    "note",
)

NOTHING_IN_TIME = Claim(
    "inference.released.in_time.in_time_means",
    "the releases contain no counts of successes and failures observed within the time window (set "
    "in_time= in the session or trial)",
    "needs",
)
IN_TIME_OUTCOME = Claim(
    "inference.released.in_time.in_time_means",
    "outcomes observed within the window (assumed to be representative of those observed later)",
    "target",
)
IN_TIME_ALONE = Claim(
    "inference.released.in_time.in_time_means",
    "Estimates are S / (S + F), where S and F are released totals of successes and failures reported "
    "within {window:,} subsequent enrolments. Reporting delays are assumed to be independent of "
    "outcomes, which cannot be tested.",
    "note",
    short="released successes and failures",
)
MANSKI = Claim(
    "inference.released.in_time.in_time_means",
    "Manski bounds on the mean outcome: {limits}. The lower bound is the proportion of successes within "
    "the window. The bounds make no assumption about outcomes observed later, but ignore sampling error "
    "and privacy noise.",
    "note",
)
DROWNED = Claim(
    "inference.released.in_time.InTimeReference.valid",
    "No success rate is estimated for {terms}, because the released counts may consist mostly of noise.",
    "missing",
)
