"""What is said of estimates from private releases alone."""

from __future__ import annotations

from adaptinf.claims import contexts, stationarity
from adaptinf.claims.claim import Claim

COVERED = Claim(
    "of_releases",
    "the estimate is computed from the private releases alone, so the privacy guarantee covers it",
    "reason",
)

TWO_INTERVALS = Claim(
    "inference.released.comparisons.ReleasedDifferenceReference",
    "normal + Laplace (two intervals combined)",
    "note",
)
"""The name of a law."""
CLIPPED = Claim(
    "inference.released.group_effects.released_effects",
    "Rewards were clipped to [0, 1], and the estimate is for clipped rewards.",
    "note",
)
INVERTED = Claim(
    "inference.released.effects.NoisyEffect.interval",
    "P-values and intervals invert a test that adds the noise of the releases to the sampling error.",
    "note",
)

# Units that came back

UNITS_AS_DECLARED = Claim(
    "inference.released.units.refuse_repeated_units",
    "a unit may have {n} of the rounds behind its releases, as declared; {vary}",
    "needs",
)
UNITS_CAME_BACK = Claim(
    "inference.released.units.refuse_repeated_units",
    "{n} of the released rounds are from units that had returned; {vary}",
    "needs",
)
SUMS_VARY_MORE = Claim(
    "inference.released.units.refuse_repeated_units",
    "where effects differ between units, sums vary more than with independent rounds, and no release "
    "shows by how much",
    "needs",
)
ONE_ROUND_A_UNIT = Claim(
    "inference.released.units.refuse_repeated_units",
    "a release with one round per unit",
    "advice",
)
FROM_THE_LOG = Claim(
    "inference.released.units.refuse_repeated_units",
    "estimators that use the raw log, outside the guarantee",
    "advice",
)

# Effects of groups

NO_GROUP_EFFECTS = Claim(
    "inference.released.group_effects.released_effects",
    "it releases no group effects (contrast_sum and arrivals, or estimate and length)",
    "needs",
)
UNFINISHED = Claim(
    "inference.released.group_effects.released_effects",
    "its last round, {round}, lacks contrast_sum or arrivals of some group",
    "needs",
)
NO_LEAST_COUNT = Claim(
    "inference.released.group_effects.released_effects",
    "the smallest usable count depends on the design's alpha and on the arrivals released in the first "
    "half, and the log lacks one of them",
    "needs",
)
SMALL_COUNT = Claim(
    "inference.released.group_effects.released_effects",
    "{terms}: no estimate, as the released count {count:.1f} is not above T_min/4 = {least:.1f}.",
    "note",
)
NOT_RELEASED = Claim(
    "inference.released.group_effects.released_effects",
    "{terms}: no estimate was released (too few arrivals for its length, or an arm without pulls).",
    "note",
)
SUMS_ALONE = Claim(
    "inference.released.group_effects.released_effects",
    "From the released sum and count of each group's randomised rounds alone.",
    "note",
)
VARIANCE_OF_SUMS = Claim(
    "inference.released.group_effects.released_effects",
    "The sampling variance is exact for binary rewards and an upper bound for others.",
    "note",
)
MEANS_ALONE = Claim(
    "inference.released.group_effects.released_effects",
    "From the released differences in means and their lengths alone.",
    "note",
)
VARIANCE_OF_MEANS = Claim(
    "inference.released.group_effects.released_effects",
    "The sampling variance is at most (1 - effect^2)/length, as half of the rounds are on each arm.",
    "note",
)

# Two arms

NAMED_BEFORE = Claim(
    "several_pairs", "the pair was named before the trial (otherwise give named='after')", "assumes"
)
PAIR_ASSUMES = (stationarity.MEANS_STAY, contexts.NO_PART, NAMED_BEFORE)
EMPTY = Claim(
    "inference.arms.circumstances.from_releases.published",
    "The interval is empty: noise moved the released difference too far beyond 1.",
    "note",
)
NAMED_AFTER = Claim(
    "inference.released.pair_effects.pair_effect",
    "The pair was chosen after looking at the outputs, so each of {pairs} pairs gets 1/{pairs} of alpha.",
    "note",
)
NO_PAIR_EFFECT = Claim(
    "inference.released.pair_effects.pair_effect",
    "it releases no difference of arms (means of fresh epochs, or sums and counts of a single group)",
    "needs",
)
SEVERAL_GROUPS = Claim(
    "inference.released.pair_effects.pair_effect",
    "its releases are for {n} groups, {groups}: CATE gives an effect for each",
    "needs",
)
NO_COMMON_EPOCH = Claim(
    "inference.released.pair_effects.pair_effect",
    "its horizon ended before both arms had released a mean",
    "needs",
)
OTHER_SCALES = Claim(
    "inference.released.pair_effects.pair_effect",
    "the noise scales of epoch {epoch} do not match the {pulls:,} pulls per arm that the design states",
    "needs",
)
EPOCH_ALONE = Claim(
    "inference.released.pair_effects.pair_effect",
    "From the released means of epoch {epoch} alone, the last that both arms reached, over {pulls:,} "
    "pulls of each.",
    "note",
)
EPOCH_SHARE = Claim(
    "inference.released.pair_effects.epoch_share",
    "Which epoch is last depends on earlier releases, so this one spends a share of {share:.3g} of "
    "alpha, fixed before it began; the shares never add up to more than 1.",
    "note",
)
VARIANCE_OF_EPOCH = Claim(
    "inference.released.pair_effects.pair_effect",
    "Its variance cannot exceed (1 - effect^2)/(2 pulls), which 0/1 rewards whose two means sum to 1 attain.",
    "note",
)

# Outcomes that were in time

NOTHING_IN_TIME = Claim(
    "inference.released.in_time.in_time_means",
    "it releases no successes and failures of outcomes that came in time (in_time= of a session or trial)",
    "needs",
)
IN_TIME_OUTCOME = Claim(
    "inference.released.in_time.in_time_means",
    "in time (lateness unrelated to outcome)",
    "target",
)
IN_TIME_ALONE = Claim(
    "inference.released.in_time.in_time_means",
    "From released successes S and failures F that came in time alone, within {window:,} further "
    "participants. The rate S / (S + F) assumes that lateness is unrelated to the outcome, which no "
    "release can show. A fractional reward counts as that much of a success.",
    "note",
)
MANSKI = Claim(
    "inference.released.in_time.in_time_means",
    "Whatever the late outcomes are, the mean outcome lies between S / n and 1 - F / n (Manski's limits, "
    "before sampling error and noise): {limits}. The lower limit is the rate of success within the "
    "window.",
    "note",
)
DROWNED = Claim(
    "inference.released.in_time.InTimeReference.valid",
    "{terms}: no rate, as the in-time outcomes may be mostly noise.",
    "note",
)
