"""What is said of adaptive linear estimating equations (ALEE) for arm means."""

from __future__ import annotations

from adaptinf.claims import contexts
from adaptinf.claims.claim import Claim, Part

UNDERCOVERS = Claim(
    "self_normalised",
    "in simulations with equal arms, nominal 95% intervals cover 93% under Thompson sampling and 94% "
    "under UCB with two arms at 1,000 rounds, but 87% under UCB with five arms and 89% under a greedy "
    "design",
    "caution",
)
WELCH = Claim(
    "inference.arms.facts.alee.AleeFacts.moving_means", "Welch's interval is valid and shorter", "advice"
)
STUDENT = Claim(
    "inference.arms.facts.alee.AleeFacts.moving_means", "t intervals are valid and shorter", "advice"
)
"""What to do where nothing adapted."""

NEEDS = (Part("profile.context_refusal", "needs"), Part("profile.unit_refusal", "needs"))
REASONS = (
    Claim(
        "always",
        "needs no propensities, and is valid however earlier rewards affected the choice of arms",
        "reason",
    ),
    Claim("conservative", "conservative standard errors", "reason"),
    Claim("self_normalised", "shorter intervals", "reason"),
)
NO_DRIFT = Claim(
    "always",
    "each arm has a constant mean and variance (no drift)",
    "assumes",
)
ASSUMES = (
    NO_DRIFT,
    contexts.NO_PART,
)
ROW_CAUTIONS = (UNDERCOVERS,)
"""Of a row of `recommend`."""

FIT = (
    *ASSUMES,
    Claim(
        "always",
        "ALEE needs no propensities: the weight of each pull is fixed in advance by its number and the "
        "horizon.",
        "note",
    ),
    Claim(
        "conservative",
        "Standard errors are sigma / sum w, which is conservative because the squared weights sum to less "
        "than 1.",
        "note",
    ),
    Claim(
        "self_normalised",
        "Standard errors are sigma sqrt(sum w^2) / sum w, smaller than the conservative ones; their "
        "intervals undercover at moderate horizons.",
        "note",
    ),
    Claim(
        "propensities_unused",
        "The log's propensities change but are not used: this is valid only if earlier rewards changed "
        "them, not unlogged contexts.",
        "note",
    ),
    Part("moving_means", "caution"),
    Claim("undercovers", "self-normalised standard errors: {simulated}", "caution"),
)
"""Of a fit, in the order in which its table has them."""
