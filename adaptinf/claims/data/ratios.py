"""What is said of ratio metrics: an arm's mean reward over its mean of another outcome."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

DIFFERENCES_ALONE = Claim(
    "inference.arms.circumstances.ratios.ratio_verdict",
    "it estimates differences alone, and a ratio takes the means of both arms",
    "needs",
)
ESTIMATED = Claim(
    "inference.arms.circumstances.ratios.ratio_fit",
    "Ratios: the mean of {reward} over that of {below}, by one estimator with one set of weights; errors by "
    "the delta method. Mean of {below} (standard error): {means}.",
    "note",
)
FEW_ROUNDS = Claim(
    "inference.arms.circumstances.ratios.without_ratio",
    "{arm}: {below} is above 0 in {n:.0f} rounds, fewer than {fewest}: no ratio",
    "caution",
)
NEAR_ZERO = Claim(
    "inference.arms.circumstances.ratios.without_ratio",
    "{arm}: the mean of {below} is {errors:.1f} standard errors from 0, less than {fewest:g}, so that a "
    "ratio to it may be anything",
    "caution",
)
RATHER_NEAR_ZERO = Claim(
    "inference.arms.circumstances.ratios.rather_near_zero",
    "{arm}: the mean of {below} is {errors:.1f} standard errors from 0, less than {enough:g}: the ratio is "
    "not near normal, and its interval may be too short",
    "caution",
)
