"""What is said of covariates from before the experiment, which explain part of the rewards."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

ADJUSTED = Claim("inference.arms.circumstances.covariates.adjusted", "Adjusted for {names}.", "note")
"""Where neither variance is known."""
VARIANCE = Claim(
    "inference.arms.circumstances.covariates.adjusted",
    "Adjusted for {names}: the variance is {ratio} times that without covariates ({means}, same weights).",
    "note",
)
TAKEN_OUT = Claim(
    "inference.arms.circumstances.covariates.covariate_verdict",
    "the part of the rewards explained by {names} is removed",
    "reason",
)
UNMOVED = Claim("adjusted_by", "no arm could have affected {names}", "assumes")
