"""What is said of ratio metrics: an arm's mean reward over its mean of another outcome."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

DIFFERENCES_ALONE = Claim(
    "inference.arms.circumstances.ratios.ratio_verdict",
    "it estimates only differences, and a ratio needs the mean of each arm",
    "needs",
)
ESTIMATED = Claim(
    "inference.arms.circumstances.ratios.ratio_fit",
    "Ratios: mean {reward} over mean {below}, both by one estimator with the same weights; errors by "
    "the delta method. Mean {below} (standard error): {means}.",
    "note",
)
FEW_ROUNDS = Claim(
    "inference.arms.circumstances.ratios.without_ratio",
    "{arm}: no ratio, because {below} is above 0 in only {n:.0f} rounds (fewer than {fewest})",
    "caution",
)
NEAR_ZERO = Claim(
    "inference.arms.circumstances.ratios.without_ratio",
    "{arm}: no ratio, as {below} has a mean {errors:.1f} standard errors from 0, less than {fewest:g}",
    "caution",
)
RATHER_NEAR_ZERO = Claim(
    "inference.arms.circumstances.ratios.rather_near_zero",
    "{arm}: the mean of {below} is only {errors:.1f} standard errors above 0 (below {enough:g}): the "
    "ratio may be far from normal, and its interval too short",
    "caution",
)
