"""What is said of propensities by every method that divides by them."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

NEEDED = Claim(
    "lacks_propensities",
    "it needs propensities, and the log has none (give propensity= or propensities= if known)",
    "needs",
)
EVERY_ONE_NEEDED = Claim(
    "lacks_every_propensity",
    "they need every arm's propensity at every round, and the log has the chosen arm's alone",
    "needs",
)
"""Of weights."""
RIGHT = Claim(
    "profile.knows_propensities",
    "the logged propensities are the design's own",
    "assumes",
    check="inference.diagnostics.propensities",
)
ESTIMATED = Claim("profile.estimated", "they are estimates, whose error is ignored", "assumes")
UNSETTLED = Claim(
    "unsettled",
    "not normal in general when propensities move with the data; right where they settle",
    "caution",
)
"""Of uniform weights."""

NOT_FOLLOWED = Claim(
    "inference.validity.calibration.miscalibration",
    "arms were not chosen as often as the logged propensities say, {where} (p < {alarm:g}): what divides by "
    "them is not to be trusted (look for propensities logged after the choice, averages in their place, or "
    "rounds that were lost; diagnose shows where)",
    "caution",
)
AT_LEVELS = Claim("inference.validity.calibration.miscalibration", "at some levels of them", "caution")
CHOSEN_NOT_FOLLOWED = Claim(
    "inference.validity.calibration.chosen_alone_caution",
    "{arms}: not chosen as often as the chosen arms' propensities say, of rounds in which it counts as "
    "possible: look for rounds in which it was not (batch= or every arm's propensities tell), or "
    "propensities that are not those of the choices; what divides by them is not to be trusted",
    "caution",
)
CONTRADICTED = Claim(
    "inference.validity.calibration.PropensityFacts.propensity_cautions",
    "propensities never move, and the log states that assignment reacted to outcomes (adaptive=True): they "
    "can hardly be those of the choices, and what divides by them is not to be trusted",
    "caution",
)
SHARES_MOVE_WITHIN_BATCHES = Claim(
    "inference.validity.sums_profile.SumsProfile.share_cautions",
    "within batches the arms' shares move (p {p} for equal shares throughout a batch), and they stand in for "
    "propensities: where rewards move at the same times, as by the hour of the day, arms that are alike "
    "differ; give propensities, or cut times to shorter batches (every='hour'). Several rows of one person "
    "that come together move shares, too",
    "caution",
)
ONE_DRAW_A_UNIT = Claim(
    "inference.validity.unit_facts.UnitFacts.contradicted_draws",
    "every unit keeps one arm, which draws with the logged propensities would do with probability "
    "1e{power:.0f}; if the arm is drawn once a unit, give the propensity of that draw in all rounds of the "
    "unit, or 1 in the rounds after its first",
    "needs",
)
LACKS_EVERY_ARM = Claim(
    "inference.validity.policies.logging_policies",
    "it needs every arm's propensity at every round, and the log has the chosen arm's alone",
    "needs",
)
OTHER_CONTEXTS_UNKNOWN = Claim(
    "inference.validity.policies.logging_policies",
    "the log has contexts, and its propensities say nothing about what a round's design would have done with "
    "another round's context",
    "needs",
)
BATCH_BEFORE = Claim(
    "inference.arms.circumstances.rounds.fixed_by", "the propensities of the batch before", "note"
)
ROUND_BEFORE = Claim(
    "inference.arms.circumstances.rounds.fixed_by",
    "the propensities of the round before, as contexts may have moved its own (context_free=True says that "
    "they had no part)",
    "note",
)
"""What the weights of a round are made of, in sentences on weights."""
FEW_EFFECTIVE = Claim(
    "few_effective",
    "{term}: worth {worth:.1f} rewards of equal weight, below {enough:g}: intervals may be short",
    "caution",
)
