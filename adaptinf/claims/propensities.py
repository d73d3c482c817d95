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
FEW_EFFECTIVE = Claim(
    "few_effective",
    "{term}: worth {worth:.1f} rewards of equal weight, below {enough:g}: intervals may be short",
    "caution",
)
