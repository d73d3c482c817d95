"""The order in which methods for effects are recommended."""

from __future__ import annotations

from adaptinf.inference.validity.order import Order

GROUPS = Order(
    [
        # Plain means of randomised rounds need no model, no weights and no propensities.
        "difference-in-means",
        # The same over every round of a phase, where propensities are constant within groups.
        "difference-in-means, pooled",
        # Of sums there are these contrasts alone, ordered among themselves as `Contrast` orders them.
        "contrasts of sums",
        # Weights made of propensities tie units together, and uniform ones do not.
        "uniform weights, by unit",
        # One weight for both arms keeps the variance even, and a drift that both share out.
        "combined weights",
        "combined weights, by unit",
        "uniform weights",
        # Each arm's own weights need means that stay.
        "sqrt weights",
        "sqrt weights, by unit",
        # Noise makes the intervals long: for who may see nothing else.
        "released",
    ]
)
"""Of effects by group."""
PROJECTIONS = Order(
    [
        # Combined where they cannot change what is estimated and tie no units together, else uniform.
        "weights by default",
        "uniform weights",
        "combined weights",
        # They weigh contexts by their propensities wherever contexts had a part in the choice.
        "two-point weights",
    ]
)
"""Of projections of the effect on covariates."""
