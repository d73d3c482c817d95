"""Claims about why rewards cannot have affected assignment."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

NEVER_MOVE = Claim(
    "profile.constant_propensities",
    "assignment was not adaptive (all propensities are constant)",
    "reason",
)
AS_STATED = Claim(
    "inference.validity.profile.LogProfile.why_not_adaptive",
    "assignment was not adaptive (as declared by adaptive=False)",
    "reason",
)
BY_DESIGN = Claim(
    "inference.validity.profile.LogProfile.why_not_adaptive",
    "assignment was not adaptive (the design does not use rewards)",
    "reason",
)
