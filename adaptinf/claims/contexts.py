"""What is said of contexts that had, or may have had, a part in the choice of arms."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

NO_PART = Claim("profile.has_contexts", "contexts had no part in the choice", "assumes")
"""Of a method that compares the arms' rounds whatever their contexts."""
