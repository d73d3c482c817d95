"""What is said of methods that need means that stay, and of rounds whose shares of arms moved."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

SHARES_MOVED = Claim(
    "profile.shares_move",
    "the arms' shares of the rounds moved: a drift that arms share biases differences of their plain means",
    "caution",
)
OWN_WEIGHTS = Claim(
    "own_weights_of_pair_unstated",
    "each arm has {weights} weights of its own, which assume that means stay: a drift that both arms "
    "share biases the difference (stationary=True says that there is none)",
    "caution",
)
SAME_IN_EVERY_ROUND = Claim(
    "inference.validity.stationarity.moving_mean_cautions",
    "assumes that the expected value is the same in every round: under a drift of rewards intervals may "
    "miss by far (stationary=True says that it is)",
    "caution",
)
SAME_WHENEVER_CHOSEN = Claim(
    "inference.validity.stationarity.moving_mean_cautions",
    "assumes that an arm's expected reward is the same whenever it is chosen: under a drift of rewards, or "
    "where contexts had a part in the choice, intervals may miss by far (stationary=True says that it is)",
    "caution",
)
UNLESS_NOTHING_ADAPTED = Claim(
    "inference.validity.stationarity.moving_mean_cautions",
    "if assignment did not react to outcomes, say adaptive=False: then {classical}; else {caution}",
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
