"""What is said of methods that need constant means, and of rounds whose shares of arms moved."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

MEANS_STAY = Claim("means_stay", "arm means do not change over time", "assumes", check="drift_found")
SHARES_MOVED = Claim(
    "profile.shares_move",
    "assignment proportions changed over time, so drift common to all arms biases differences in sample "
    "means",
    "caution",
)
BOTH_MOVED = Claim(
    "shares_moved",
    "assignment proportions and rewards both appear to change over time (p = {p:.1g} for rewards), so "
    "differences in sample means are biased",
    "caution",
)
ONLY_SHARES_MOVED = Claim(
    "only_shares_moved",
    "Assignment proportions changed over time, which biases differences in sample means if outcomes drove "
    "the change or if rewards drifted; no drift was found.",
    "note",
)
OWN_WEIGHTS = Claim(
    "own_weights_of_pair_unstated",
    "arm-specific {weights} weights require constant means: even drift common to both arms biases the "
    "difference (set stationary=True if means do not drift)",
    "caution",
)
ARM_DRIFTS = Claim(
    "inference.validity.stationarity.Trends.of",
    "rewards of arm {arm!r} appear to {move} over time (linear trend, p = {p:.1g}), but this method assumes "
    "a constant mean, so intervals may miss it (with logged propensities, Contrast allows for drift common "
    "to both arms)",
    "caution",
)
ARMS_DRIFT = Claim(
    "inference.validity.stationarity.Trends.of",
    "rewards of arms {arms} taken together appear to {move} over time (linear trend, p = {p:.1g}), but this "
    "method assumes constant means, so intervals may miss them (with logged propensities, Contrast allows "
    "for drift common to both arms)",
    "caution",
)
LEVEL_MOVES = Claim(
    "inference.validity.stationarity.Trends.of",
    "rewards appear to change over time (p = {p:.1g}, comparing {n} consecutive periods), but this "
    "method assumes constant means, so intervals may miss them (with logged propensities, Contrast allows "
    "for drift common to both arms)",
    "caution",
)
VALUE_DRIFTS = Claim(
    "inference.validity.stationarity.trend_of_values",
    "the scores of {term} appear to {move} over time (linear trend, p = {p:.1g}), but this method assumes "
    "a constant expected value, so intervals may not cover its average",
    "caution",
)
UNTESTED = Claim(
    "drift_untested",
    "constant means are assumed, and this log has too little data to test for drift; under drift, intervals "
    "may not cover the average mean (set stationary=True if drift can be ruled out)",
    "caution",
)
MIX_MOVES = Claim(
    "mix_may_move",
    "If contexts affected arm choice, the rewards of an arm can show a trend even without drift.",
    "note",
)
NO_TREND = Claim(
    "no_trend",
    "No drift was detected in the rewards of {arms}; short cycles, such as daily ones, are not tested.",
    "note",
)
NO_TREND_OF_VALUES = Claim(
    "no_trend_of_values",
    "The test for drift, which detects linear trends but not cycles, found none in the scores.",
    "note",
)
PAIR_SHARES_DRIFT = Claim(
    "pair_shares_drift",
    "any drift is common to both arms",
    "assumes",
)
AVERAGED_EQUALLY = Claim(
    "averages_equally",
    "an effect that varies over time is averaged over rounds with equal weights",
    "target",
)
AVERAGED_BY_WEIGHT = Claim(
    "averages_by_weight",
    "a time-varying effect is averaged using the weights of the rounds",
    "target",
)
