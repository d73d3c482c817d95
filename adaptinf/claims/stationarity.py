"""What is said of methods that need constant means, and of rounds whose shares of arms moved."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

MEANS_STAY = Claim("means_stay", "arm means stay the same", "assumes", check="drift_found")
SHARES_MOVED = Claim(
    "profile.shares_move",
    "the arms' shares of the rounds moved: a drift common to all arms biases differences of plain means",
    "caution",
)
OWN_WEIGHTS = Claim(
    "own_weights_of_pair_unstated",
    "separate {weights} weights for each arm assume constant means: a drift common to both biases the "
    "difference (stationary=True states that there is none)",
    "caution",
)
ARM_DRIFTS = Claim(
    "inference.validity.stationarity.Trends.of",
    "the rewards of arm {arm!r} {move} over the log (linear trend, p = {p:.1g}), although this method "
    "assumes a constant mean: intervals may be far off (with logged propensities, Contrast allows for a "
    "drift that the arms share)",
    "caution",
)
VALUE_DRIFTS = Claim(
    "inference.validity.stationarity.trend_of_values",
    "{term} seems to {move} over the log (linear trend, p = {p:.1g}), although this method assumes that its "
    "expected value is constant: intervals may be far off",
    "caution",
)
UNTESTED = Claim(
    "drift_untested",
    "means are assumed to be constant, and this log cannot show whether they are: if rewards drift, "
    "intervals may be far off (stationary=True states that they do not)",
    "caution",
)
MIX_MOVES = Claim(
    "mix_may_move",
    "If contexts affected the choice of arms, an arm's rewards can have a trend although nothing drifts.",
    "note",
)
NO_TREND = Claim(
    "no_trend",
    "No linear trend was found in the rewards of {arms}; cycles, such as within a day, are not tested.",
    "note",
)
NO_TREND_OF_VALUES = Claim(
    "no_trend_of_values",
    "No linear trend was found in the scores; cycles, such as within a day, are not tested.",
    "note",
)
PAIR_SHARES_DRIFT = Claim(
    "pair_shares_drift",
    "any drift moves both arms alike",
    "assumes",
)
AVERAGED_EQUALLY = Claim(
    "averages_equally",
    "an effect that changes over time is averaged with equal weights",
    "target",
)
AVERAGED_BY_WEIGHT = Claim(
    "averages_by_weight",
    "a changing effect is averaged by the rounds' weights",
    "target",
)
