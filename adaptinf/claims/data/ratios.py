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
    "Each ratio divides mean {reward} by mean {below}, both estimated by the same method and weights; "
    "standard errors use the delta method. Mean {below} by arm (standard error): {means}.",
    "note",
)
FEW_ROUNDS = Claim(
    "inference.arms.circumstances.ratios.without_ratio",
    "{arm} has no ratio estimate: {below} is positive in only {n:.0f} of its rounds (minimum {fewest})",
    "caution",
)
NEAR_ZERO = Claim(
    "inference.arms.circumstances.ratios.without_ratio",
    "for {arm}, mean {below} is too near 0 to estimate a ratio ({errors:.1f} standard errors away; "
    "minimum {fewest:g})",
    "caution",
)
RATHER_NEAR_ZERO = Claim(
    "inference.arms.circumstances.ratios.rather_near_zero",
    "the interval for the ratio of {arm} may undercover, because mean {below} is only {errors:.1f} "
    "standard errors above 0 (below {enough:g}) and a normal approximation may be poor",
    "caution",
)
