"""Why rewards cannot have moved assignment."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

NEVER_MOVE = Claim(
    "profile.constant_propensities",
    "every arm's propensity is the same in all rounds, so nothing adapted",
    "reason",
)
AS_STATED = Claim(
    "inference.validity.profile.LogProfile.why_not_adaptive",
    "you state that assignment did not react to outcomes (adaptive=False)",
    "reason",
)
BY_DESIGN = Claim(
    "inference.validity.profile.LogProfile.why_not_adaptive",
    "the design does not adapt to rewards",
    "reason",
)
