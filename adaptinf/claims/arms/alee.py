"""What is said of adaptive linear estimating equations (ALEE) for arm means."""

from __future__ import annotations

from adaptinf.claims import contexts
from adaptinf.claims.claim import Claim, Part

UNDERCOVERS = Claim(
    "self_normalised",
    "self-normalised intervals may undercover: in simulations with equal arms, nominal 95% intervals "
    "covered 93% (Thompson sampling) and 94% (UCB) for two arms and 1,000 rounds, but 87% for UCB with "
    "five arms and 89% for a greedy design",
    "caution",
)
WELCH = Claim(
    "inference.arms.facts.alee.AleeFacts.moving_means", "Welch intervals are valid and shorter", "advice"
)
STUDENT = Claim(
    "inference.arms.facts.alee.AleeFacts.moving_means", "t intervals are shorter and also valid", "advice"
)
"""What to do where nothing adapted."""

NEEDS = (Part("profile.context_refusal", "needs"), Part("profile.unit_refusal", "needs"))
REASONS = (
    Claim(
        "always",
        "propensities are not needed, and intervals are valid for any dependence of arm choices on earlier "
        "rewards",
        "reason",
    ),
    Claim("conservative", "standard errors are conservative", "reason"),
    Claim("self_normalised", "intervals are shorter than with conservative standard errors", "reason"),
)
NO_DRIFT = Claim(
    "always",
    "the mean and variance of each arm's rewards are constant (no drift)",
    "assumes",
)
ASSUMES = (
    NO_DRIFT,
    contexts.NO_PART,
)
ROW_CAUTIONS = (UNDERCOVERS,)
"""Of a row of `recommend`; a fit has them, too."""

FIT = (
    *ASSUMES,
    Claim(
        "always",
        "ALEE does not use propensities: the weight of an arm's i-th reward is a fixed function of i and the "
        "number of rounds.",
        "note",
    ),
    Claim(
        "conservative",
        "Standard errors are the residual standard deviation divided by the sum of the weights, which is "
        "conservative because the squared weights sum to less than 1.",
        "note",
    ),
    Claim(
        "self_normalised",
        "Standard errors are sigma sqrt(sum(w^2)) / sum(w), with weights w and residual standard deviation "
        "sigma.",
        "note",
    ),
    Claim(
        "propensities_unused",
        "The logged propensities vary but are not used. The estimates are valid if earlier rewards caused "
        "this variation, but not if unlogged contexts did.",
        "note",
    ),
    Part("moving_means", "caution"),
    UNDERCOVERS,
)
"""Of a fit, in the order in which its table has them."""
