"""What is said of methods that need constant means, and of rounds whose shares of arms moved."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

MEANS_STAY = Claim("means_stay", "arm means stay the same", "assumes")
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
SAME_IN_EVERY_ROUND = Claim(
    "inference.validity.stationarity.moving_mean_cautions",
    "assumes that the expected value is the same in every round: intervals may miss by far if rewards drift "
    "(stationary=True states that they do not)",
    "caution",
)
SAME_WHENEVER_CHOSEN = Claim(
    "inference.validity.stationarity.moving_mean_cautions",
    "assumes that an arm's expected reward is the same whenever it is chosen: if rewards drift, or contexts "
    "affected the choice, intervals may be far off (stationary=True states that it is the same)",
    "caution",
)
UNLESS_NOTHING_ADAPTED = Claim(
    "inference.validity.stationarity.moving_mean_cautions",
    "if assignment did not react to outcomes, say adaptive=False: then {classical}; otherwise {caution}",
    "caution",
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
