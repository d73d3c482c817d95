"""What is said of confidence sequences."""

from __future__ import annotations

from adaptinf.claims import units
from adaptinf.claims.claim import Claim, Part

# Why a sequence does not serve

BOUNDS_NEEDED = Claim(
    "inference.sequences.choice.settled",
    "it needs bounded rewards, and the log states no finite reward_range",
    "needs",
)
OUTSIDE_RANGE = Claim(
    "inference.sequences.choice.settled",
    "{outside} rewards lie outside the log's reward_range ({low:g}, {high:g})",
    "needs",
)
NO_COUNTS = Claim(
    "inference.sequences.choice.settled",
    "it counts an arm's successes, and {estimator} scores are not counts",
    "needs",
)
NOT_AT_ENDS = Claim(
    "inference.sequences.choice.settled",
    "it needs rewards that are all {low:g} or {high:g}, the ends of their range",
    "needs",
)
ESTIMATES = Claim(
    "inference.sequences.choice.settled",
    "the scores need the design's own propensities, and those of the log are estimates",
    "needs",
)
IMPOSSIBLE = Claim(
    "inference.sequences.choice.settled",
    "arm {arm!r} has weight but no chance to be chosen in {without} of {rounds} rounds",
    "needs",
)
KNOWN_TOO_LATE = Claim(
    "inference.sequences.choice.settled",
    "the bounds of its scores must be known before the context, but propensities may depend on it",
    "needs",
)
UNLOGGED_TOO_LATE = Claim(
    "inference.sequences.choice.settled",
    "propensities may depend on unlogged contexts, and bounds made from them would come too late",
    "needs",
)
CHANGING_POLICY = Claim(
    "inference.sequences.choice.settled",
    "a policy that changes between rounds needs a positive propensity of every arm",
    "needs",
)
BOUNDS_NOT_IN_SUMS = Claim(
    "inference.sequences.from_sums.check_sums", "sums do not include the bounds of scores", "needs"
)

# What would serve

RANGE_BY_NATURE = Claim(
    "inference.sequences.choice.settled",
    "AdaptiveLog(..., reward_range=) if rewards are bounded by nature",
    "advice",
)
KNOWN_SCALE = Claim(
    "inference.sequences.choice.settled",
    "method='normal-mixture' on sample means with sigma=, if the scale of the noise is known",
    "advice",
)
GUARANTEED_FLOOR = Claim(
    "inference.sequences.choice.settled",
    "floor=, the smallest propensity that the design guaranteed in advance",
    "advice",
)
STATED_WITHOUT_CONTEXTS = Claim(
    "inference.sequences.choice.settled", "AdaptiveLog(..., context_free=True), provided that {so}", "advice"
)

# Why it is valid

ANYTIME = Claim("is_anytime", "valid at every round and under any stopping rule", "reason")
WIDER = Claim("is_anytime", "wider than an interval for a fixed number of rounds", "reason")
IN_THE_LIMIT = Claim(
    "in_the_limit", "valid at all rounds simultaneously, in the limit of a late start", "reason"
)
REASONS = (ANYTIME, WIDER, IN_THE_LIMIT)
ROW_CAUTIONS = (units.OF_LOGGED_ROUNDS,)
"""Of a row of `recommend`, where no estimate is known yet."""

# What it assumes

SAME_AT_EACH_PULL = Claim(
    "is_by_pull",
    "given the past, an arm's expected reward never changes (no drift)",
    "assumes",
)
SAME_IN_EVERY_ROUND = Claim(
    "is_by_round",
    "given earlier rounds, the expected value never changes (no drift)",
    "assumes",
)
WITHIN_RANGE = Claim(
    "needs_range",
    "rewards lie within the stated range",
    "assumes",
    check="range_found",
)
SUB_GAUSSIAN = Claim("known_scale", "rewards are sub-Gaussian with scale {sigma:g}", "assumes")
FLOOR = Claim("known_floor", "propensities are at least {floor:g} by design", "assumes")
ASSUMES = (
    Part("propensities_assumed", "assumes"),
    SAME_AT_EACH_PULL,
    SAME_IN_EVERY_ROUND,
    Part("contexts_without_part", "assumes"),
    WITHIN_RANGE,
    SUB_GAUSSIAN,
    FLOOR,
)

# Of a fit

TOGETHER = Claim(
    "tuning",
    "Intervals hold {when} simultaneously, whatever stopped the log; they were tuned for alpha = {alpha:g}. "
    "Limits are running intersections: values once excluded stay excluded.",
    "note",
)
ALPHA_DIVIDED = Claim("is_difference_of_means", "Each of the two arms gets half of alpha.", "note")
LATE_START = Claim(
    "late_start",
    "The sequence starts at {start} rewards; its error rate approaches alpha as the start becomes later.",
    "note",
)
FIT = (
    *ASSUMES,
    Part("sums_note", "note"),
    TOGETHER,
    ALPHA_DIVIDED,
    LATE_START,
    Part("drift_cautions", "caution"),
    Part("share_cautions", "caution"),
    Part("shape_cautions", "caution"),
    units.OF_LOGGED_ROUNDS,
)
"""Of a fit, in the order in which its table has them."""

# Of a summary

EXACT = Claim(
    "inference.sequences.results.SequenceResults.summary",
    "Exact p-values and intervals, valid at any time: {law}.",
    "note",
)
APPROXIMATE = Claim(
    "inference.sequences.results.SequenceResults.summary",
    "Approximate p-values and intervals, for long logs, at any time: {law}.",
    "note",
)
OUTSIDE = Claim(
    "inference.sequences.results.SequenceResults.summary",
    "The estimate of {term} lies outside its interval, because values excluded at earlier rounds remain "
    "excluded.",
    "note",
)
