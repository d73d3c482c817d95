"""Claims about methods that require constant means, and about changes in the arms' shares."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

TRENDS_ALONE = "for trends, not cycles"
"""What checks of constant means can see."""

MEANS_STAY = Claim(
    "means_stay",
    "arm means are constant over time",
    "assumes",
    check="drift_found",
    scope=TRENDS_ALONE,
    short="no drift in arm means",
)
ABSENT = Claim(
    "inference.validity.constant_means.absences",
    "{absent}, so drift common to all arms would bias comparisons with {it}; if {it} could not be chosen "
    "there, {remedy}, or set stationary=True if nothing drifted",
    "caution",
)
ONLY_COMMON_ROUNDS = Claim(
    "inference.validity.constant_means.absences",
    "set rounds= to the rounds in which all arms could",
    "phrase",
)
ONLY_COMMON_BATCHES = Claim(
    "inference.validity.constant_means.absences",
    "use Contrast, which compares two arms in batches in which both could",
    "phrase",
)
ABSENT_FIRST = Claim(
    "inference.validity.constant_means.absences",
    "arm {arm!r} was not chosen in the first {n:,} of {rounds:,} rounds",
    "phrase",
)
ABSENT_LAST = Claim(
    "inference.validity.constant_means.absences",
    "arm {arm!r} was not chosen in the last {n:,} of {rounds:,} rounds",
    "phrase",
)
ABSENT_BETWEEN = Claim(
    "inference.validity.constant_means.absences",
    "arm {arm!r} was not chosen in rounds {first:,} to {last:,} of {rounds:,}",
    "phrase",
)
SHARES_MOVED = Claim(
    "profile.shares_move",
    "assignment proportions changed over time, so common drift would bias differences in sample means",
    "caution",
)
BOTH_MOVED = Claim(
    "shares_moved",
    "assignment proportions and rewards both appear to drift (p = {p:.1g} for rewards), which can bias "
    "comparisons of sample means",
    "caution",
)
ONLY_SHARES_MOVED = Claim(
    "only_shares_moved",
    "Assignment proportions varied over time. Differences in sample means are biased if outcomes caused "
    "this variation or if rewards drifted; no drift was detected.",
    "note",
)
OWN_WEIGHTS = Claim(
    "own_weights_of_pair_unstated",
    "arm-specific {weights} weights require constant means, because even drift common to both arms may "
    "bias the difference (if there is no drift, set stationary=True)",
    "caution",
)
ARM_DRIFTS = Claim(
    "inference.validity.stationarity.Trends.of",
    "rewards of arm {arm!r} appear to {move} over time (linear trend, p = {p:.1g}), so intervals for a "
    "constant mean may be invalid; with logged propensities, Contrast allows for drift common to all "
    "arms",
    "caution",
)
ARMS_DRIFT = Claim(
    "inference.validity.stationarity.Trends.of",
    "in a joint test for linear trends (p = {p:.1g}), mean rewards of arms {arms} appear to {move}, so "
    "intervals that assume constant means may be invalid; use Contrast if propensities are logged",
    "caution",
)
LEVEL_MOVES = Claim(
    "inference.validity.stationarity.Trends.of",
    "the method assumes constant means, but mean rewards differ significantly between {n} consecutive "
    "periods (p = {p:.1g}); intervals may undercover, whereas contrasts of arms with logged "
    "propensities are robust to common drift",
    "caution",
)
VALUE_DRIFTS = Claim(
    "inference.validity.stationarity.trend_of_values",
    "the method assumes a constant expected score, but a trend test (p = {p:.1g}) suggests that the "
    "scores of {term} {move} over time, so intervals may undercover",
    "caution",
)
UNTESTED = Claim(
    "drift_untested",
    "constant means are assumed, but this log has too few observations to test for drift, and if means "
    "drift, intervals may not cover the mean over rounds; set stationary=True if drift can be ruled out",
    "caution",
)
MIX_MOVES = Claim(
    "mix_may_move",
    "If arm choice depends on contexts, an arm's rewards can show a trend even without drift.",
    "note",
)
NO_TREND = Claim(
    "no_trend",
    "No evidence of drift was found in the rewards of {arms}; the tests cannot detect short cycles, such as "
    "daily patterns.",
    "note",
)
NO_TREND_OF_VALUES = Claim(
    "no_trend_of_values",
    "The test for a linear trend in the scores found no evidence of drift, but the test may miss "
    "cyclical drift.",
    "note",
)
PAIR_SHARES_DRIFT = Claim(
    "pair_shares_drift",
    "any drift is common to both arms",
    "assumes",
    short="any drift is common to both arms",
)
AVERAGED_EQUALLY = Claim(
    "averages_equally",
    "an effect that varies over time is averaged over rounds with equal weights",
    "target",
)
AVERAGED_BY_WEIGHT = Claim(
    "averages_by_weight",
    "time-varying effects are averaged using the round weights of the estimator",
    "target",
)
