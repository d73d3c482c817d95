"""What a log states of how its arms were chosen, as far as its rows can contradict it."""

from __future__ import annotations

from adaptinf.claims import propensities
from adaptinf.claims.claim import Claim, Part

CONTEXT_FREE = Claim(
    "states_context_free",
    "contexts did not affect assignment, as the log states",
    "assumes",
    check="contexts_found",
)
STATED: tuple[Claim | Part, ...] = (propensities.RIGHT, propensities.SHARES_STAY, CONTEXT_FREE)
FOLLOWED = Claim(
    "reports.statements.StatementFacts.contexts_found",
    "{visibly}, which contradicts the statement that contexts did not affect assignment (context_free=True)",
    "caution",
)
