"""What is said of ratio metrics: an arm's mean reward over its mean of another outcome."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

DIFFERENCES_ALONE = Claim(
    "inference.arms.circumstances.ratios.ratio_verdict",
    "the method estimates only differences between arms, but a ratio requires the mean of each arm",
    "needs",
)
ESTIMATED = Claim(
    "inference.arms.circumstances.ratios.ratio_fit",
    "Ratios are mean {reward} over mean {below}, both estimated with the same method and weights; "
    "standard errors use the delta method. Arm means of {below} (standard errors): {means}.",
    "note",
)
FEW_ROUNDS = Claim(
    "inference.arms.circumstances.ratios.without_ratio",
    "no ratio is estimated for {arm}, because {below} is positive in only {n:.0f} of its rounds and at "
    "least {fewest} are required",
    "caution",
)
NEAR_ZERO = Claim(
    "inference.arms.circumstances.ratios.without_ratio",
    "the ratio for {arm} cannot be estimated: mean {below} is {errors:.1f} standard errors away from 0, "
    "whereas a minimum of {fewest:g} is required",
    "caution",
)
RATHER_NEAR_ZERO = Claim(
    "inference.arms.circumstances.ratios.rather_near_zero",
    "the interval for the ratio of {arm} may undercover, because the mean of {below} is only "
    "{errors:.1f} standard errors above 0, and the normal approximation can be poor below {enough:g}",
    "caution",
)
