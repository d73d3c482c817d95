"""What is said of propensities by every method that divides by them."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

RIGHT = Claim(
    "profile.knows_propensities",
    "the logged propensities are the design's own",
    "assumes",
    check="inference.diagnostics.propensities",
)
ESTIMATED = Claim("profile.estimated", "they are estimates, whose error is ignored", "assumes")
UNSETTLED = Claim(
    "unsettled",
    "not normal in general when propensities move with the data; right where they settle",
    "caution",
)
"""Of uniform weights."""
