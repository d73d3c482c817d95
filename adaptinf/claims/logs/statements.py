"""A log's statements about how its arms were chosen, which its rows may contradict."""

from __future__ import annotations

from adaptinf.claims import contexts, propensities
from adaptinf.claims.claim import Claim, Part

CONTEXT_FREE = Claim(
    "states_context_free",
    "contexts did not affect assignment, as the log states",
    "assumes",
    check="contexts_found",
    short="assignment ignored contexts",
)
NOT_ADAPTIVE = Claim(
    "profile.states_not_adaptive",
    "earlier rewards had no effect on assignment (as stated in the log)",
    "assumes",
    check="profile.reaction_found",
    short="assignment did not depend on rewards",
)
REACTED = Claim(
    "inference.validity.profile.LogProfile.reaction_found",
    "arms appear to have been chosen by earlier rewards (p = {p:.1g}), contrary to adaptive=False, so "
    "sample means may be biased; omit adaptive=False to use methods for adaptive assignment",
    "caution",
)
STATED: tuple[Claim | Part, ...] = (
    propensities.RIGHT,
    propensities.SHARES_STAY,
    CONTEXT_FREE,
    NOT_ADAPTIVE,
    contexts.NEVER_RANDOM,
)
FOLLOWED = Claim(
    "reports.collection_facts.StatementFacts.contexts_found",
    "{visibly}, which contradicts 'context_free': True",
    "caution",
)
