"""What is said of covariates from before the experiment, which explain part of the rewards."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

ADJUSTED = Claim(
    "inference.arms.circumstances.covariates.adjusted", "Estimates are adjusted for {names}.", "note"
)
"""Where neither variance is known."""
VARIANCE = Claim(
    "inference.arms.circumstances.covariates.adjusted",
    "Estimates are adjusted for {names}. Adjustment multiplies the variance by {ratio}, compared "
    "with {means} as the outcome model and the same weights.",
    "note",
)
TAKEN_OUT = Claim(
    "inference.arms.circumstances.covariates.covariate_verdict",
    "adjustment for {names} removes explained variation in the rewards",
    "reason",
)
UNMOVED = Claim("adjusted_by", "the arms do not affect {names}", "assumes")
