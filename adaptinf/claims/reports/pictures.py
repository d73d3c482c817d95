"""Text in plots of results."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

TIED = Claim(
    "plots.winner",
    "tie for the best arm: only the projection method is valid",
    "caution",
)
UNCOVERED = Claim(
    "plots.style.say_uncovered",
    "outside the privacy guarantee; for the data holder only",
    "caution",
)
NEVER_PULLED = Claim("plots.bias", "this arm was not assigned in any simulated run", "caution")
UNPULLED = Claim(
    "plots.bias",
    "{name} (in {share:.1%} of runs, at least one arm was never chosen)",
    "caution",
)
NO_INTERVALS = Claim("plots.coverage", "no simulated run produced an interval", "caution")
SOME_WITHOUT = Claim("plots.coverage", "{share:.1%} of the runs produced no interval", "caution")
