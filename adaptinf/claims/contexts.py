"""What is said of contexts: what they had a part in, and what they depend on."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

NOT_BY_PAST = Claim("profile.has_contexts", "contexts do not depend on earlier rewards or actions", "assumes")
NO_PART = Claim("profile.has_contexts", "contexts had no part in the choice", "assumes")
"""Of a method that compares the arms' rounds whatever their contexts."""
UNUSED = Claim("contexts_unused", "propensities do not depend on contexts", "assumes")
UNTOLD = Claim("contexts_untold", "the choice of arms used no contexts, as the log has none", "assumes")
"""Of a method that must know what other rounds' contexts would have done."""
