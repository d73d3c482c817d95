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
    "Each ratio is mean {reward} divided by mean {below}, both from the same estimator with the "
    "same weights. Standard errors are from the delta method. Mean {below} by arm (standard "
    "error): {means}.",
    "note",
)
FEW_ROUNDS = Claim(
    "inference.arms.circumstances.ratios.without_ratio",
    "{arm} has no ratio, because {below} is positive in only {n:.0f} rounds (at least {fewest} are required)",
    "caution",
)
NEAR_ZERO = Claim(
    "inference.arms.circumstances.ratios.without_ratio",
    "no ratio is estimated for {arm}: mean {below} lies {errors:.1f} standard errors from 0 (at "
    "least {fewest:g} are required)",
    "caution",
)
RATHER_NEAR_ZERO = Claim(
    "inference.arms.circumstances.ratios.rather_near_zero",
    "the ratio for {arm} may be far from normal and its interval may undercover, because mean "
    "{below} is only {errors:.1f} standard errors above 0 (fewer than {enough:g})",
    "caution",
)
