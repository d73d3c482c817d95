"""What is said of contexts: what they had a part in, and what they depend on."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

NOT_BY_PAST = Claim("profile.has_contexts", "contexts do not depend on earlier rewards or actions", "assumes")
NO_PART = Claim("profile.has_contexts", "contexts had no part in the choice", "assumes")
"""Of a method that compares the arms' rounds whatever their contexts."""

MIXED = Claim(
    "inference.validity.profile.LogProfile.context_refusal",
    "{why}, so that the arms' rounds are different mixes of contexts, whose means cannot be compared",
    "needs",
)
BY_DESIGN = Claim("profile.decides_by_context", "{design} assigns arms by context", "needs")
AS_STATED = Claim(
    "profile.decides_by_context", "the design, as the log says, assigns arms by context", "needs"
)
VISIBLY = Claim(
    "inference.validity.profile.LogProfile.deciding_context",
    "arms follow the context {context} (p < {visible:g} within short stretches of rounds)",
    "needs",
)
MAYBE_MIXED = Claim(
    "inference.validity.profile.LogProfile.undeclared_context",
    "the log does not say whether {design} looks at contexts: if it does, the arms' rounds are different "
    "mixes of contexts, whose means cannot be compared",
    "needs",
)
NOT_FIXED_BEFORE = Claim(
    "inference.validity.profile.LogProfile.no_shared_weights",
    "propensities may depend on contexts, and the log has no batches: no weight is fixed before a context is "
    "seen",
    "needs",
)
NOT_IN_LOG = Claim(
    "inference.validity.profile.LogProfile.context_names", "contexts that the log does not have", "note"
)
"""What may move propensities where the log names no context."""

WITH_COLUMN = Claim(
    "inference.validity.profile.LogProfile.in_place_of_means",
    "the propensities of the choices, or AdaptiveOLS with {context} as a column",
    "advice",
)
STATE_NO_PART = Claim(
    "inference.validity.profile.LogProfile.in_place_of_means",
    "context_free=True, or the design itself as design=, if contexts had no part in the choice",
    "advice",
)
VECTORS_REGRESSION = Claim(
    "inference.validity.profile.LogProfile.in_place_of_means",
    "AdaptiveOLS(log, arm=...), a regression of an arm's rewards on its own context vectors",
    "advice",
)
CONTEXT_REGRESSION = Claim(
    "inference.validity.profile.LogProfile.in_place_of_means",
    "AdaptiveOLS(log, arm=...), a regression of an arm's rewards on contexts",
    "advice",
)
RELEASED_BINS = Claim(
    "inference.validity.profile.LogProfile.in_place_of_means",
    "BinMeans, from the released sums of bins",
    "advice",
)
WITHIN_BIN = Claim(
    "inference.validity.profile.LogProfile.in_place_of_means",
    "a comparison of arms among the rounds of one bin",
    "advice",
)
WITHIN_GROUPS = Claim(
    "inference.validity.profile.LogProfile.in_place_of_means", "CATE by {contexts}", "advice"
)
UNUSED = Claim("contexts_unused", "propensities do not depend on contexts", "assumes")
UNTOLD = Claim("contexts_untold", "the choice of arms used no contexts, as the log has none", "assumes")
"""Of a method that must know what other rounds' contexts would have done."""
