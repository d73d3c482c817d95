"""What is said of covariates from before the experiment, which explain part of the rewards."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

ADJUSTED = Claim(
    "inference.arms.circumstances.covariates.adjusted", "Covariate adjustment by {names}.", "note"
)
"""Where neither variance is known."""
VARIANCES = Claim(
    "inference.arms.circumstances.covariates.adjusted",
    "Covariate adjustment by {names}: variances are {low:.2f} to {high:.2f} times those without it (by "
    "{means}, with the same weights).",
    "note",
)
VARIANCE = Claim(
    "inference.arms.circumstances.covariates.adjusted",
    "Covariate adjustment by {names}: the variance is {ratio:.2f} times that without it (by {means}, with "
    "the same weights).",
    "note",
)
TAKEN_OUT = Claim(
    "inference.arms.circumstances.covariates.covariate_verdict",
    "what {names} explains of the rewards is taken out",
    "reason",
)
UNMOVED = Claim("adjusted_by", "no arm can have moved {names}", "assumes")
