"""What is said of estimates from private releases alone."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

COVERED = Claim("of_releases", "from the private releases alone, so that the guarantee covers it", "reason")

# Units that came back

UNITS_AS_DECLARED = Claim(
    "inference.released.units.refuse_repeated_units",
    "a unit may have {n} rounds behind its releases, as declared, {vary}",
    "needs",
)
UNITS_CAME_BACK = Claim(
    "inference.released.units.refuse_repeated_units",
    "in {n} rounds behind its releases a unit came back, {vary}",
    "needs",
)
SUMS_VARY_MORE = Claim(
    "inference.released.units.refuse_repeated_units",
    "and where effects differ between units the sums vary more than those of independent rounds: no release "
    "tells how much more",
    "needs",
)
ONE_ROUND_A_UNIT = Claim(
    "inference.released.units.refuse_repeated_units", "a release of one round a unit", "advice"
)
FROM_THE_LOG = Claim(
    "inference.released.units.refuse_repeated_units",
    "estimators from the raw log, which privacy does not cover",
    "advice",
)

# Effects of groups

NO_GROUP_EFFECTS = Claim(
    "inference.released.group_effects.released_effects",
    "it has no private releases of group effects (contrast_sum and arrivals, or estimate and length)",
    "needs",
)
UNFINISHED = Claim(
    "inference.released.group_effects.released_effects",
    "its last round, {round}, has no contrast_sum and arrivals for every group",
    "needs",
)
NO_LEAST_COUNT = Claim(
    "inference.released.group_effects.released_effects",
    "the smallest usable count depends on the design's alpha and on the arrivals released in the first "
    "half, and the log does not have both",
    "needs",
)
SMALL_COUNT = Claim(
    "inference.released.group_effects.released_effects",
    "{terms}: no estimate, the released count {count:.1f} is not above T_min/4 = {least:.1f}.",
    "note",
)
NOT_RELEASED = Claim(
    "inference.released.group_effects.released_effects",
    "{terms}: no estimate was released (too few arrivals for its length, or an arm without pulls).",
    "note",
)
SUMS_ALONE = Claim(
    "inference.released.group_effects.released_effects",
    "From the released sum and count of each group's randomised rounds alone. Rewards were clipped to "
    "[0, 1]: the effect is that on clipped rewards.",
    "note",
)
TEST_OF_SUMS = Claim(
    "inference.released.group_effects.released_effects",
    "P-values and intervals invert a test whose law adds the noise of both releases to the sampling error; "
    "the sampling variance is exact for binary rewards and an upper bound for others.",
    "note",
)
MEANS_ALONE = Claim(
    "inference.released.group_effects.released_effects",
    "From the released differences in means and their lengths alone.",
    "note",
)
TEST_OF_MEANS = Claim(
    "inference.released.group_effects.released_effects",
    "P-values and intervals invert a test whose law adds the noise of the release to the sampling error, "
    "whose variance is at most (1 - effect^2)/length: half of the rounds are on each arm.",
    "note",
)

# Two arms

NAMED_BEFORE = Claim(
    "inference.released.pair_effects.pair_effect",
    "It assumes that the pair was named before the trial: else named='after'.",
    "assumes",
)
NAMED_AFTER = Claim(
    "inference.released.pair_effects.pair_effect",
    "The pair was named after a look at the outputs: any of {pairs} has 1/{pairs} of alpha.",
    "note",
)
NO_PAIR_EFFECT = Claim(
    "inference.released.pair_effects.pair_effect",
    "it has no private releases of a difference of arms, which are means of fresh epochs, or sums and counts "
    "of a single group",
    "needs",
)
SEVERAL_GROUPS = Claim(
    "inference.released.pair_effects.pair_effect",
    "its releases are for {n} groups, {groups}: CATE has an effect for each",
    "needs",
)
NO_COMMON_EPOCH = Claim(
    "inference.released.pair_effects.pair_effect",
    "its horizon ended before both arms had released a mean",
    "needs",
)
OTHER_SCALES = Claim(
    "inference.released.pair_effects.pair_effect",
    "the scales of epoch {epoch} are not those of the {pulls:,} pulls an arm that the design states",
    "needs",
)
EPOCH_ALONE = Claim(
    "inference.released.pair_effects.pair_effect",
    "From the released means of epoch {epoch} alone, the last that both arms reached, over {pulls:,} pulls "
    "of each. Rewards were clipped to [0, 1]: the effect is that on clipped rewards.",
    "note",
)
EPOCH_SHARE = Claim(
    "inference.released.pair_effects.epoch_share",
    "Which epoch is the last depends on earlier releases, so this one has the share {share:.3g} of alpha, "
    "fixed before it began; shares sum to at most 1 on every path.",
    "note",
)
TEST_OF_EPOCH = Claim(
    "inference.released.pair_effects.pair_effect",
    "P-values and intervals invert a test whose law adds the noise of both means to the sampling error, "
    "whose variance is at most (1 - effect^2)/(2 pulls), attained by 0/1 rewards whose two means sum to 1.",
    "note",
)

# Outcomes that were in time

NOTHING_IN_TIME = Claim(
    "inference.released.in_time.in_time_means",
    "it has no released successes and failures that were in time (in_time= of a session or trial)",
    "needs",
)
IN_TIME_OUTCOME = Claim(
    "inference.released.in_time.in_time_means", "in time, late regardless of outcome", "target"
)
IN_TIME_ALONE = Claim(
    "inference.released.in_time.in_time_means",
    "From the released successes S and failures F that were in time alone, a window of {window:,} further "
    "participants. The rate S / (S + F) assumes that outcomes are late regardless of what they are: no "
    "release can tell. Rewards were clipped to [0, 1]; a fraction counts as so much of a success.",
    "note",
)
MANSKI = Claim(
    "inference.released.in_time.in_time_means",
    "Whatever the late outcomes are, the mean outcome is within S / n and 1 - F / n (Manski's limits, as "
    "released: sampling error and noise come on top): {limits}. The lower one is success within the window.",
    "note",
)
DROWNED = Claim(
    "inference.released.in_time.InTimeReference.valid",
    "{terms}: no rate, the in-time outcomes may drown in their noise.",
    "note",
)
