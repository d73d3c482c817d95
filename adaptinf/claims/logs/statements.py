"""What a log states of how its arms were chosen, as far as its rows can contradict it."""

from __future__ import annotations

from adaptinf.claims import propensities
from adaptinf.claims.claim import Claim, Part

CONTEXT_FREE = Claim(
    "states_context_free", "the log says that contexts had no part", "assumes", check="contexts_found"
)
STATED: tuple[Claim | Part, ...] = (propensities.RIGHT, propensities.SHARES_STAY, CONTEXT_FREE)
FOLLOWED = Claim(
    "reports.statements.StatementFacts.contexts_found",
    "{visibly}, although the log states that contexts had no part (context_free=True)",
    "caution",
)
