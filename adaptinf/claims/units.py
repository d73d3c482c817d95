"""What is said of units with several rounds."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

INDEPENDENT = Claim("profile.repeated_units", "units are independent", "assumes")
NO_CARRY_OVER = Claim(
    "profile.repeated_units",
    "a unit's reward depends on the arm of its round, not on those of its earlier rounds",
    "assumes",
)
