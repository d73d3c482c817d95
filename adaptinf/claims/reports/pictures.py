"""What is written into pictures of results."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

TIED = Claim("plots.winner", "estimates are tied; only the projection method is valid", "caution")
NEVER_PULLED = Claim("plots.bias", "no run pulled this arm", "caution")
UNPULLED = Claim("plots.bias", "{name} (an arm was never pulled in {share:.1%} of runs)", "caution")
NO_INTERVALS = Claim("plots.coverage", "no run has an interval", "caution")
SOME_WITHOUT = Claim("plots.coverage", "{share:.1%} of the runs have no interval", "caution")
