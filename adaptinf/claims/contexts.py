"""What is said of contexts that had, or may have had, a part in the choice of arms."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

NO_PART = Claim("profile.has_contexts", "contexts had no part in the choice", "assumes")
"""Of a method that compares the arms' rounds whatever their contexts."""
UNUSED = Claim("contexts_unused", "propensities do not depend on contexts", "assumes")
UNTOLD = Claim("contexts_untold", "arms were chosen without contexts, as none are logged", "assumes")
"""Of a method that must know what other rounds' contexts would have done."""
