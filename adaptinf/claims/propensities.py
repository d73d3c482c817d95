"""What is said of propensities by every method that divides by them."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

NONE = Claim("lacks_propensities", "the log has no propensities", "needs")
NEEDED = Claim(
    "lacks_propensities",
    "it needs propensities, and the log has none (give propensity= or propensities= if known)",
    "needs",
)
EVERY_ONE_NEEDED = Claim(
    "lacks_every_propensity",
    "every arm's propensity is needed in all rounds, and the log has only the chosen arm's",
    "needs",
)
"""Of weights, and of what a design would have done at another round."""
RIGHT = Claim(
    "profile.logs_propensities",
    "the logged propensities are the design's own",
    "assumes",
    check="profile.propensities_found",
)
ESTIMATED = Claim("profile.estimated", "the error of estimated propensities is ignored", "assumes")
SHARES_STAY = Claim(
    "profile.shares_stand_in",
    "the arms' shares, used in place of propensities, are constant within batches",
    "assumes",
    check="profile.shares_found",
)
ASSUMES = (RIGHT, ESTIMATED, SHARES_STAY)
"""Of every method that divides by them."""
UNSETTLED = Claim(
    "unsettled",
    "not normal in general when propensities move with the data; right where they settle",
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
    "the arms' shares, used in place of propensities, move within batches (p {p} for constant shares): where "
    "rewards move at the same times, such as by the hour of the day, equal arms seem to differ; give "
    "propensities, or cut time into shorter batches (every='hour'). Consecutive rows of one person also move "
    "shares",
    "caution",
)
ONE_DRAW_A_UNIT = Claim(
    "inference.validity.unit_facts.UnitFacts.contradicted_draws",
    "every unit keeps one arm, which has probability 1e{power:.0f} if every round is a draw with the logged "
    "propensities; if the arm is drawn once per unit, give the propensity of that draw in all rounds of the "
    "unit, or 1 in the rounds after its first",
    "needs",
)
OTHER_CONTEXTS_UNKNOWN = Claim(
    "inference.validity.policies.logging_policies",
    "the log has contexts, and its propensities do not show what the design of one round would have done at "
    "the context of another",
    "needs",
)
BATCH_BEFORE = Claim(
    "inference.arms.circumstances.rounds.fixed_by", "the previous batch's propensities", "note"
)
ROUND_BEFORE = Claim(
    "inference.arms.circumstances.rounds.fixed_by",
    "the previous round's propensities, because contexts may have influenced the current ones "
    "(context_free=True states that they did not)",
    "note",
)
"""What the weights of a round are made of, in sentences on weights."""
TINY = Claim(
    "tiny_propensities",
    "propensities down to {least:.2g}: a few rewards carry the estimate (effective sample size "
    "{size:.1f}); intervals may be far too short",
    "caution",
)
FEW_EFFECTIVE = Claim(
    "few_effective",
    "{term}: worth {worth:.1f} rewards of equal weight, below {enough:g}: intervals may be short",
    "caution",
)
