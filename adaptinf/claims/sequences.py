"""Claims about confidence sequences."""

from __future__ import annotations

from adaptinf.claims import stationarity, units
from adaptinf.claims.claim import Claim, Part
from adaptinf.claims.data import availability

BOUNDS_NEEDED = Claim(
    "inference.sequences.sequence_choice.settled",
    "rewards must be bounded, but the log has no finite reward_range",
    "needs",
)
OUTSIDE_RANGE = Claim(
    "inference.sequences.sequence_choice.settled",
    "the log contains rewards outside its reward_range, [{low:g}, {high:g}] (number of such rewards: "
    "{outside})",
    "needs",
)
NO_COUNTS = Claim(
    "inference.sequences.sequence_choice.settled",
    "the method requires success counts, but {estimator} scores are not counts",
    "needs",
)
NOT_AT_ENDS = Claim(
    "inference.sequences.sequence_choice.settled",
    "every reward must equal {low:g} or {high:g}, the endpoints of the reward range",
    "needs",
)
ESTIMATES = Claim(
    "inference.sequences.sequence_choice.settled",
    "the method requires known propensities, but the log has only estimated propensities",
    "needs",
)
IMPOSSIBLE = Claim(
    "inference.sequences.sequence_choice.settled",
    "arm {arm!r} has nonzero weight but propensity 0 in {without} of {rounds} rounds",
    "needs",
)
KNOWN_TOO_LATE = Claim(
    "inference.sequences.sequence_choice.settled",
    "bounds on the scores must be known before the context is observed, but propensities may depend on "
    "the context",
    "needs",
)
UNLOGGED_TOO_LATE = Claim(
    "inference.sequences.sequence_choice.settled",
    "propensities may depend on unlogged contexts, so bounds on the scores may not be known in advance",
    "needs",
)
CHANGING_POLICY = Claim(
    "inference.sequences.sequence_choice.settled",
    "the method requires positive propensities for all arms if the target policy changes between rounds",
    "needs",
)
BOUNDS_NOT_IN_SUMS = Claim(
    "inference.sequences.sequence_sums.check_sums",
    "the aggregated data do not include the required bounds on scores",
    "needs",
)

RANGE_BY_NATURE = Claim(
    "inference.sequences.sequence_choice.settled",
    "AdaptiveLog(..., reward_range=), if rewards are known to be bounded",
    "advice",
)
KNOWN_SCALE = Claim(
    "inference.sequences.sequence_choice.settled",
    "method='normal-mixture' with sample means, if the noise scale is known (sigma=)",
    "advice",
)
GUARANTEED_FLOOR = Claim(
    "inference.sequences.sequence_choice.settled",
    "set floor= to the lower bound on propensities that the design guaranteed in advance, if there is one",
    "advice",
)
STATED_WITHOUT_CONTEXTS = Claim(
    "inference.sequences.sequence_choice.settled",
    "AdaptiveLog(..., about={{'context_free': True}}), if {so}",
    "advice",
)

ANYTIME = Claim("is_anytime", "intervals are valid at every round and under any stopping rule", "reason")
WIDER = Claim(
    "is_anytime",
    "intervals are wider than fixed-sample intervals, to allow for continuous monitoring",
    "reason",
)
IN_THE_LIMIT = Claim(
    "in_the_limit",
    "intervals are asymptotically valid at all rounds simultaneously, provided that the confidence "
    "sequence starts late enough",
    "reason",
)
REASONS = (ANYTIME, WIDER, IN_THE_LIMIT)
ROW_CAUTIONS = (units.OF_LOGGED_ROUNDS,)
"""Cautions for a row of `recommend`, before an estimate is known."""

SAME_AT_EACH_PULL = Claim(
    "is_by_pull",
    "conditional on the past, each arm's expected reward is constant (no drift)",
    "assumes",
    check="drift_found",
    scope=stationarity.TRENDS_ALONE,
    short="no drift in arm means",
)
SAME_IN_EVERY_ROUND = Claim(
    "is_by_round",
    "conditional on earlier rounds, the expected score does not change over time (no drift)",
    "assumes",
    check="drift_found",
    scope=stationarity.TRENDS_ALONE,
    short="no drift",
)
WITHIN_RANGE = Claim(
    "needs_range",
    "rewards lie within the stated range",
    "assumes",
    check="range_found",
    short="rewards within the stated range",
)
SUB_GAUSSIAN = Claim(
    "known_scale",
    "rewards have sub-Gaussian scale parameter {sigma:g}",
    "assumes",
    short="sub-Gaussian rewards, scale {sigma:g}",
)
FLOOR = Claim(
    "known_floor",
    "propensities are at least {floor:g} by design",
    "assumes",
    short="propensities of at least {floor:g}",
)
ASSUMES = (
    Part("propensities_assumed", "assumes"),
    SAME_AT_EACH_PULL,
    SAME_IN_EVERY_ROUND,
    Part("contexts_without_part", "assumes"),
    WITHIN_RANGE,
    SUB_GAUSSIAN,
    FLOOR,
)

TOGETHER = Claim(
    "tuning",
    "Intervals are simultaneously valid {when}, under any stopping rule, and are tuned for alpha = "
    "{alpha:g}. Each interval is intersected with all earlier ones, so values once excluded remain "
    "excluded.",
    "note",
    short="valid at every look",
)
ALPHA_DIVIDED = Claim("is_difference_of_means", "Alpha is split equally between the two arms.", "note")
LATE_START = Claim(
    "late_start",
    "The confidence sequence starts after {start} rewards, and its error rate converges to alpha as "
    "this starting point increases.",
    "note",
)
FIT = (
    *ASSUMES,
    Part("sums_note", "note"),
    TOGETHER,
    ALPHA_DIVIDED,
    LATE_START,
    availability.LEFT_OUT,
    stationarity.NO_TREND,
    stationarity.NO_TREND_OF_VALUES,
    stationarity.MIX_MOVES,
    stationarity.UNTESTED,
    availability.DIFFERENT_ROUNDS,
    Part("never_random", "caution"),
    Part("share_cautions", "caution"),
    Part("shape_cautions", "caution"),
    units.OF_LOGGED_ROUNDS,
)
"""Statements about a fit, in the order in which its table shows them."""

EXACT = Claim(
    "inference.sequences.sequence_results.SequenceResults.summary",
    "P-values and confidence sequences are exact and anytime-valid ({law}).",
    "note",
    short="{law}, exact at every round",
)
APPROXIMATE = Claim(
    "inference.sequences.sequence_results.SequenceResults.summary",
    "Confidence sequences and p-values are asymptotically anytime-valid ({law}).",
    "note",
    short="{law}, asymptotic at every round",
)
OUTSIDE = Claim(
    "inference.sequences.sequence_results.SequenceResults.summary",
    "The estimate of {term} lies outside its confidence interval. This can happen because the "
    "confidence sequence is a running intersection: values excluded in an earlier round remain excluded.",
    "note",
)
