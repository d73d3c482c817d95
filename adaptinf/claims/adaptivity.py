"""Why rewards cannot have moved assignment."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

NEVER_MOVE = Claim(
    "profile.constant_propensities",
    "every arm's propensity is the same in all rounds, so that nothing adapted",
    "reason",
)
AS_STATED = Claim(
    "inference.validity.profile.LogProfile.why_not_adaptive",
    "assignment did not react to outcomes, as you state (adaptive=False)",
    "reason",
)
BY_DESIGN = Claim(
    "inference.validity.profile.LogProfile.why_not_adaptive",
    "the design does not adapt to rewards",
    "reason",
)
