"""Claims about contexts: what they affected, and on what they depend."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

NOT_BY_PAST = Claim(
    "profile.has_contexts",
    "contexts do not depend on earlier rewards or actions",
    "assumes",
    short="contexts do not depend on the past",
)
NO_PART = Claim(
    "profile.has_contexts",
    "contexts did not affect the choice of arms",
    "assumes",
    check="contexts_found",
    short="assignment ignored contexts",
)
"""Claims for a method that compares the arms' rounds regardless of their contexts."""

MIXED = Claim(
    "inference.validity.profile.LogProfile.context_refusal",
    "{why}, so context distributions {differ} between arms and sample means may be confounded",
    "needs",
)
BY_DESIGN = Claim("profile.decides_by_context", "{design} uses contexts to assign arms", "needs")
AS_STATED = Claim(
    "profile.decides_by_context",
    "the log states that contexts affected assignment ('context_free' is False)",
    "needs",
)
VISIBLY = Claim(
    "inference.validity.profile.LogProfile.deciding_context",
    "arm assignment appears to depend on context {context} (test within short blocks of consecutive "
    "rounds: p < {visible:g})",
    "needs",
)
FOLLOWED = Claim(
    "inference.validity.profile.LogProfile.contexts_found",
    "{visibly}, so differences between sample means may reflect contexts rather than arms",
    "caution",
)
PERHAPS_BY_DESIGN = Claim(
    "inference.validity.profile.LogProfile.undeclared_context",
    "{design} may use contexts to assign arms, and the log does not state otherwise",
    "needs",
)
"""Why comparisons of arms may mix contexts."""
NOT_FIXED_BEFORE = Claim(
    "inference.validity.profile.LogProfile.no_shared_weights",
    "propensities may depend on contexts, in which case weights shared across arms are valid only for "
    "batched data",
    "needs",
)
NEVER_RANDOM = Claim(
    "profile.never_random",
    "all logged propensities are 1 although several arms were chosen, so comparisons may be confounded "
    "by unlogged variables (if the choice of arms depended only on earlier rounds, set 'context_free' to "
    "True)",
    "caution",
)
"""Claims for a method that compares the arms' rounds directly."""
NOT_IN_LOG = Claim("inference.validity.profile.LogProfile.context_names", "unlogged contexts", "phrase")
"""Description of what may affect propensities if the log has no contexts."""

WITH_COLUMN = Claim(
    "inference.validity.profile.LogProfile.in_place_of_means",
    "logged propensities (propensity=), or AdaptiveOLS with {context} as a covariate",
    "advice",
)
STATE_NO_PART = Claim(
    "inference.validity.profile.LogProfile.in_place_of_means",
    "a log that states 'context_free': True or names its design ('design'), if assignment did not "
    "depend on contexts",
    "advice",
)
REGRESSION = Claim(
    "inference.validity.profile.LogProfile.in_place_of_means",
    "AdaptiveOLS(log, arm=...), which regresses one arm's rewards on {covariates}",
    "advice",
)
RELEASED_BINS = Claim(
    "inference.validity.profile.LogProfile.in_place_of_means",
    "BinMeans, which estimates means from the released bin sums",
    "advice",
)
WITHIN_BIN = Claim(
    "inference.validity.profile.LogProfile.in_place_of_means",
    "a comparison of arms within a single context bin",
    "advice",
)
WITHIN_GROUPS = Claim(
    "inference.validity.profile.LogProfile.in_place_of_means",
    "CATE with groups defined by {contexts}",
    "advice",
)
"""Alternatives to arm means."""

UNUSED = Claim(
    "contexts_unused",
    "propensities do not depend on contexts",
    "assumes",
    short="propensities ignore contexts",
)
UNTOLD = Claim(
    "contexts_untold",
    "the design did not use contexts (none are logged)",
    "assumes",
    short="the design used no contexts",
)
"""Claims for a method that must know the effect of other rounds' contexts."""
