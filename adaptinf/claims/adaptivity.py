"""Why rewards cannot have moved assignment."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

NEVER_MOVE = Claim(
    "profile.constant_propensities",
    "no arm's propensity changes, so nothing adapted",
    "reason",
)
AS_STATED = Claim(
    "inference.validity.profile.LogProfile.why_not_adaptive",
    "you state that outcomes did not affect assignment (adaptive=False)",
    "reason",
)
BY_DESIGN = Claim(
    "inference.validity.profile.LogProfile.why_not_adaptive",
    "the design does not adapt to rewards",
    "reason",
)
