"""What is said of confidence sequences."""

from __future__ import annotations

from adaptinf.claims import units
from adaptinf.claims.claim import Claim, Part

# Why a sequence does not serve

BOUNDS_NEEDED = Claim(
    "inference.sequences.choice.settled",
    "it needs rewards with known bounds, and the log has no finite reward_range",
    "needs",
)
OUTSIDE_RANGE = Claim(
    "inference.sequences.choice.settled",
    "{outside} rewards lie outside the log's reward_range ({low:g}, {high:g})",
    "needs",
)
NO_COUNTS = Claim(
    "inference.sequences.choice.settled",
    "it counts an arm's own successes, and the scores of {estimator} are no counts",
    "needs",
)
NOT_AT_ENDS = Claim(
    "inference.sequences.choice.settled",
    "its rewards are not all at an end of their range, {low:g} or {high:g}",
    "needs",
)
NO_PROPENSITIES = Claim("inference.sequences.choice.settled", "the log has no propensities", "needs")
ESTIMATES = Claim(
    "inference.sequences.choice.settled",
    "its propensities are estimates, and the scores need the design's own",
    "needs",
)
ONE_DRAW_A_UNIT = Claim(
    "inference.sequences.choice.settled",
    "one draw gave each unit its arm, and the scores take every round to have a draw of its own",
    "needs",
)
IMPOSSIBLE = Claim(
    "inference.sequences.choice.settled",
    "it weights arm {arm!r} where that could not be chosen, in {without} of {rounds} rounds",
    "needs",
)
EVERY_ONE_NEEDED = Claim(
    "inference.sequences.choice.settled",
    "its scores' bounds need every arm's propensity, and the log has the chosen arm's alone",
    "needs",
)
KNOWN_TOO_LATE = Claim(
    "inference.sequences.choice.settled",
    "its scores' bounds must be known before the context is, and propensities may depend on it",
    "needs",
)
UNLOGGED_TOO_LATE = Claim(
    "inference.sequences.choice.settled",
    "its scores' bounds must be known before the context is, one that the log lacks included, and "
    "propensities may depend on it",
    "needs",
)
CHANGING_POLICY = Claim(
    "inference.sequences.choice.settled",
    "for a policy that changes from round to round every arm needs a positive propensity",
    "needs",
)
BOUNDS_NOT_IN_SUMS = Claim(
    "inference.sequences.from_sums.check_sums", "the bounds of its scores are not among the sums", "needs"
)

# What would serve

RANGE_BY_NATURE = Claim(
    "inference.sequences.choice.settled",
    "AdaptiveLog(..., reward_range=) where the bounds hold by the nature of the rewards",
    "advice",
)
KNOWN_SCALE = Claim(
    "inference.sequences.choice.settled",
    "method='normal-mixture' on sample means with sigma=, a scale of their noise that is known",
    "advice",
)
GUARANTEED_FLOOR = Claim(
    "inference.sequences.choice.settled",
    "floor=, a smallest propensity that the design guaranteed in advance",
    "advice",
)
STATED_WITHOUT_CONTEXTS = Claim(
    "inference.sequences.choice.settled", "AdaptiveLog(..., context_free=True) if {so}", "advice"
)

# Why it is valid

REASONS = (
    Claim("is_anytime", "holds at every number of rounds and however the log was stopped", "reason"),
    Claim("is_anytime", "wider than at a fixed one", "reason"),
    Claim("in_the_limit", "holds at all rounds together, from a start that is late enough", "reason"),
)
ROW_CAUTIONS = (units.OF_LOGGED_ROUNDS,)
"""Of a row of `recommend`, where no estimate is known yet."""

# What it assumes

SAME_AT_EACH_PULL = Claim(
    "is_by_pull",
    "an arm's expected reward, given the past, is the same at each pull (no drift)",
    "assumes",
    check="inference.diagnostics.arms",
)
SAME_IN_EVERY_ROUND = Claim(
    "is_by_round",
    "the same expected value in every round (no drift)",
    "assumes",
    check="inference.diagnostics.arms",
)
WITHIN_RANGE = Claim(
    "needs_range", "rewards within the stated range", "assumes", check="inference.sequences.choice.settled"
)
SUB_GAUSSIAN = Claim("known_scale", "rewards are sub-Gaussian with scale {sigma:g}", "assumes")
FLOOR = Claim("known_floor", "propensities are at least {floor:g} by design", "assumes")
ASSUMES = (
    Part("propensities_right", "assumes"),
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
    "Intervals hold {when} together, however the log was stopped; tuned for alpha = {alpha:g}. Limits are "
    "running intersections: what was once excluded stays excluded.",
    "note",
)
ALPHA_DIVIDED = Claim("is_difference_of_means", "Alpha is divided between the two arms.", "note")
LATE_START = Claim(
    "late_start",
    "The sequence starts at {start} rewards; its error from there on is alpha only in the limit of a late "
    "start.",
    "note",
)
FIT = (
    *ASSUMES,
    Part("sums_note", "note"),
    TOGETHER,
    ALPHA_DIVIDED,
    LATE_START,
    Part("drift_cautions", "caution"),
    Part("data_cautions", "caution"),
    Part("shape_cautions", "caution"),
    units.OF_LOGGED_ROUNDS,
)
"""Of a fit, in the order in which its table has them."""

# Of a summary

EXACT = Claim(
    "inference.sequences.results.SequenceResults.summary",
    "P-values and intervals: {law}, exact, valid at any time.",
    "note",
)
APPROXIMATE = Claim(
    "inference.sequences.results.SequenceResults.summary",
    "P-values and intervals: {law}, an approximation for long logs, valid at any time.",
    "note",
)
OUTSIDE = Claim(
    "inference.sequences.results.SequenceResults.summary",
    "The estimate of {term} lies outside its interval: limits are running intersections, and what was "
    "excluded earlier stays excluded.",
    "note",
)
