"""What is said of adaptive linear estimating equations (ALEE) for arm means."""

from __future__ import annotations

from adaptinf.claims import contexts
from adaptinf.claims.claim import Claim, Part

UNDERCOVERS = Claim(
    "self_normalised",
    "simulated with equal arms, nominal 95% intervals cover 93% on Thompson sampling and 94% on UCB with two "
    "arms at 1,000 rounds, but 87% on UCB with five arms and 89% on a greedy design",
    "caution",
)
WELCH = Claim(
    "inference.arms.facts.alee.AleeFacts.moving_means", "Welch's interval is valid, and shorter", "advice"
)
STUDENT = Claim(
    "inference.arms.facts.alee.AleeFacts.moving_means", "t intervals are valid, and shorter", "advice"
)
"""What to do where nothing adapted."""

NEEDS = (Part("profile.context_refusal", "needs"), Part("profile.unit_refusal", "needs"))
REASONS = (
    Claim(
        "always",
        "needs no propensities, and holds however earlier rewards moved the choice of arms",
        "reason",
    ),
    Claim("conservative", "conservative standard errors", "reason"),
    Claim("self_normalised", "shorter intervals", "reason"),
)
ASSUMES = (
    Claim(
        "always",
        "an arm's mean and variance are the same whenever it is chosen (no drift)",
        "assumes",
        check="inference.diagnostics.arms",
    ),
    contexts.NO_PART,
)
ROW_CAUTIONS = (UNDERCOVERS,)
"""Of a row of `recommend`."""

FIT = (
    *ASSUMES,
    Claim(
        "always",
        "ALEE needs no propensities: its weights were fixed before the data, by pull count and the horizon.",
        "note",
    ),
    Claim(
        "conservative",
        "Standard errors sigma / sum w: conservative, as the sum of squared weights is below 1.",
        "note",
    ),
    Claim(
        "self_normalised",
        "Standard errors sigma sqrt(sum w^2) / sum w: shorter than the conservative ones; at moderate "
        "horizons their intervals cover less than they promise.",
        "note",
    ),
    Claim(
        "propensities_unused",
        "The log's propensities move and are not used: right only if earlier rewards moved them, not "
        "contexts that the log does not have.",
        "note",
    ),
    Part("moving_means", "caution"),
    Claim("undercovers", "self-normalised errors: {simulated}", "caution"),
)
"""Of a fit, in the order in which its table has them."""
