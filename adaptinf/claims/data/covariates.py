"""Claims about pre-experiment covariates, which explain part of the variation in rewards."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

ADJUSTED = Claim(
    "inference.arms.data.covariate_adjustment.adjusted",
    "Estimates are adjusted for {names}.",
    "note",
    short="adjusted for {names}",
)
"""The text if neither variance is known."""
VARIANCE = Claim(
    "inference.arms.data.covariate_adjustment.adjusted",
    "Covariate adjustment uses {names}. Variances are {ratio} times those obtained with the same "
    "weights but with {means} as outcome predictions.",
    "note",
    short="adjusted for {names}",
)
TAKEN_OUT = Claim(
    "inference.arms.data.covariate_adjustment.covariate_verdict",
    "adjustment for {names} reduces the residual variance of rewards",
    "reason",
)
UNMOVED = Claim(
    "adjusted_by",
    "arm assignment does not affect {names}",
    "assumes",
    check="covariates_found",
    short="arms do not affect {names}",
)
MOVED = Claim(
    "inference.arms.data.covariate_adjustment.moved_covariates",
    "the propensities do not explain how {name} differs between arms (arm {arm!r}, p = {p:.1g}); "
    "adjusting for {name} causes bias if its values were affected by assignment",
    "caution",
)
"""A claim about an invalid covariate, or propensities that depend on a covariate that is not logged."""
