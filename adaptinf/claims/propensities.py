"""Claims about propensities for every method that divides by them."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

NONE = Claim("lacks_propensities", "the log has no propensities", "needs")
NEEDED = Claim(
    "lacks_propensities",
    "propensities are required but not logged (set propensity= or propensities= if they are known)",
    "needs",
)
EVERY_ONE_NEEDED = Claim(
    "lacks_every_propensity",
    "every arm's propensity is required in every round, but only that of the chosen arm was logged",
    "needs",
)
"""Claims about weights, and about what a design would have done in another round."""
RIGHT = Claim(
    "profile.logs_propensities",
    "the logged propensities are the true assignment probabilities",
    "assumes",
    check="profile.propensities_found",
    short="propensities are right",
)
ESTIMATED = Claim(
    "profile.estimated",
    "estimation error in the propensities is negligible",
    "assumes",
    short="precisely estimated propensities",
)
SHARES_STAY = Claim(
    "profile.shares_stand_in",
    "assignment probabilities, estimated by the observed proportions, are constant within batches",
    "assumes",
    check="profile.shares_found",
    short="constant shares within batches",
)
ASSUMES = (RIGHT, ESTIMATED, SHARES_STAY)
"""Claims for every method that divides by propensities."""
UNSETTLED = Claim(
    "unsettled",
    "estimates may not be asymptotically normal if propensities do not stabilise but continue to vary "
    "with the data",
    "caution",
)
UNIFORM_FOR_CONTEXTS = Claim(
    "uniform_for_contexts",
    "Weights are uniform, because other weights would distort the distribution of contexts if {contexts} "
    "affect propensities. With uniform weights, {unsettled}.",
    "note",
    short="uniform weights",
)
"""About uniform weights."""

NOT_FOLLOWED = Claim(
    "inference.validity.calibration.miscalibration",
    "assignment frequencies do not match the logged propensities ({where}, p < {alarm:g}), so estimates "
    "that rely on them are unreliable; use diagnose to look for incorrectly logged propensities or missing "
    "rounds",
    "caution",
)
CHOSEN_NOT_FOLLOWED = Claim(
    "inference.validity.calibration.chosen_alone_caution",
    "for {arms}, selection frequencies are inconsistent with the logged propensities, so "
    "inverse-propensity-weighted estimates are unreliable; check the propensities, and set batch= or "
    "propensities= if arms were sometimes unavailable",
    "caution",
)
CONTRADICTED = Claim(
    "inference.validity.calibration.PropensityFacts.propensities_found",
    "all logged propensities are constant over time, although the log states that outcomes affected "
    "assignment (adaptive=True); wrong propensities would bias inverse-propensity-weighted estimates",
    "caution",
)
SHARES_MOVE_WITHIN_BATCHES = Claim(
    "inference.validity.sums_profile.SumsProfile.shares_found",
    "assignment probabilities appear to vary within batches (p {p}), but each batch's observed proportions "
    "replace the unknown propensities, so drift may bias estimated differences; supply propensities "
    "(propensity=) or use shorter batches (every='hour')",
    "caution",
)
ONE_DRAW_A_UNIT = Claim(
    "inference.validity.unit_facts.UnitFacts.contradicted_draws",
    "no unit ever changes arm (probability 1e{power:.0f} under independent assignment in each round); "
    "if arms were assigned once per unit, log the same propensity in every round of a unit, or 1 after "
    "its first round",
    "needs",
)
OTHER_CONTEXTS_UNKNOWN = Claim(
    "inference.validity.policies.logging_policies",
    "the method evaluates each round's assignment probabilities at the contexts of other rounds, but "
    "the logged propensities do not determine these values",
    "needs",
)
SAME_ROUND = Claim(
    "inference.arms.data.weight_propensities.fixed_by", "propensities in the same round", "phrase"
)
BATCH_BEFORE = Claim(
    "inference.arms.data.weight_propensities.fixed_by", "propensities in the preceding batch", "phrase"
)
AVAILABILITY_ALONE = Claim(
    "inference.arms.data.weight_propensities.fixed_propensities",
    "arm availability alone, because contexts may affect propensities",
    "phrase",
)
ROUND_BEFORE = Claim(
    "inference.arms.data.weight_propensities.fixed_by",
    "the preceding round's propensities, because contexts may affect the current ones (set "
    "'context_free' to True if they do not)",
    "phrase",
)
"""The basis of a round's weight, in sentences about weights."""
TINY = Claim(
    "tiny_propensities",
    "intervals may undercover substantially: propensities are as small as {least:.2g}, and a few rewards "
    "dominate the estimate (effective sample size {size:.1f})",
    "caution",
)
FEW_EFFECTIVE = Claim(
    "few_effective",
    "intervals may undercover: the effective sample size of {term} is {worth:.1f} (below {enough:g})",
    "caution",
)
