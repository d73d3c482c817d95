"""What is said of propensities by every method that divides by them."""

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
    "every arm's propensity is required in every round, but only chosen arms have logged propensities",
    "needs",
)
"""Of weights, and of what a design would have done at another round."""
RIGHT = Claim(
    "profile.logs_propensities",
    "the logged propensities are the true assignment probabilities",
    "assumes",
    check="profile.propensities_found",
)
ESTIMATED = Claim("profile.estimated", "estimation error in the propensities is negligible", "assumes")
SHARES_STAY = Claim(
    "profile.shares_stand_in",
    "assignment probabilities, estimated by the observed proportions, are constant within batches",
    "assumes",
    check="profile.shares_found",
)
ASSUMES = (RIGHT, ESTIMATED, SHARES_STAY)
"""Of every method that divides by them."""
UNSETTLED = Claim(
    "unsettled",
    "estimates may not be asymptotically normal if propensities keep changing with the data",
    "caution",
)
"""Of uniform weights."""

NOT_FOLLOWED = Claim(
    "inference.validity.calibration.miscalibration",
    "arms were not chosen as often as the logged propensities say ({where}, p < {alarm:g}): estimates that "
    "divide by them cannot be trusted (look for another arm's propensities, propensities logged after "
    "the choice, constants or averages in their place, or lost rounds; diagnose shows where)",
    "caution",
)
CHOSEN_NOT_FOLLOWED = Claim(
    "inference.validity.calibration.chosen_alone_caution",
    "{arms}: the chosen arms' propensities do not fit how often this arm was chosen while it counted as "
    "possible: look for rounds in which it was not possible (batch= or every arm's propensities show them) "
    "or propensities of other choices; do not trust what divides by them",
    "caution",
)
CONTRADICTED = Claim(
    "inference.validity.calibration.PropensityFacts.propensities_found",
    "propensities never move, but the log states that assignment reacted to outcomes (adaptive=True): they "
    "can hardly be those of the choices, which makes all that divides by them doubtful",
    "caution",
)
SHARES_MOVE_WITHIN_BATCHES = Claim(
    "inference.validity.sums_profile.SumsProfile.shares_found",
    "assignment proportions, used as propensities, appear to change within batches (p {p}; consecutive "
    "rows of one person can also cause this). Equal arms may then appear different if rewards change "
    "over the same periods; set propensity= or use shorter batches (every='hour')",
    "caution",
)
ONE_DRAW_A_UNIT = Claim(
    "inference.validity.unit_facts.UnitFacts.contradicted_draws",
    "no unit ever changes its arm, which has probability 1e{power:.0f} under independent draws with the "
    "logged propensities. If each unit is randomised once, log the propensity of that draw in all rounds "
    "of the unit, or 1 after the first round",
    "needs",
)
OTHER_CONTEXTS_UNKNOWN = Claim(
    "inference.validity.policies.logging_policies",
    "the log has contexts, but its propensities do not show the assignment probabilities of one round at "
    "the contexts of another",
    "needs",
)
SAME_ROUND = Claim("inference.arms.circumstances.rounds.fixed_by", "propensities in the same round", "note")
BATCH_BEFORE = Claim(
    "inference.arms.circumstances.rounds.fixed_by", "propensities in the previous batch", "note"
)
ROUND_BEFORE = Claim(
    "inference.arms.circumstances.rounds.fixed_by",
    "propensities in the previous round, because contexts may have affected the current ones (set "
    "context_free=True if contexts did not)",
    "note",
)
"""What the weights of a round are made of, in sentences on weights."""
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
