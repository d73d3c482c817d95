"""What is said of contexts."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

NOT_BY_PAST = Claim("has_contexts", "contexts do not depend on earlier rewards or actions", "assumes")
