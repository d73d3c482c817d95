"""What is said of rewards, and of effects, that change over the rounds."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

PAIR_SHARES_DRIFT = Claim("pair_shares_drift", "what drifts moves both arms alike", "assumes")
AVERAGED_EQUALLY = Claim(
    "averages_equally", "an effect that changes is averaged over the rounds, equally", "target"
)
AVERAGED_BY_WEIGHT = Claim(
    "averages_by_weight", "an effect that changes is averaged over the rounds, with the weights", "target"
)
