"""Claims about ratio metrics: an arm's mean reward divided by its mean of another outcome."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

DIFFERENCES_ALONE = Claim(
    "inference.arms.data.ratio_metrics.ratio_verdict",
    "the method estimates only differences between arms, but a ratio requires each arm's mean",
    "needs",
)
ESTIMATED = Claim(
    "inference.arms.data.ratio_metrics.ratio_fit",
    "Each ratio is the mean of {reward} divided by the mean of {below}, estimated with the same method "
    "and weights. Standard errors use the delta method. Arm means of {below} (standard errors): {means}.",
    "note",
    short="ratio to {below}",
)
FEW_ROUNDS = Claim(
    "inference.arms.data.ratio_metrics.without_ratio",
    "no ratio is estimated for {arm}: {below} is positive in only {n:.0f} of this arm's rounds, but at "
    "least {fewest} such rounds are required",
    "caution",
)
NEAR_ZERO = Claim(
    "inference.arms.data.ratio_metrics.without_ratio",
    "the ratio for {arm} cannot be estimated, because the mean of {below} is only {errors:.1f} standard "
    "errors from 0 (at least {fewest:g} are required)",
    "caution",
)
RATHER_NEAR_ZERO = Claim(
    "inference.arms.data.ratio_metrics.rather_near_zero",
    "the interval for the ratio of {arm} may undercover: the mean of {below} lies {errors:.1f} standard "
    "errors above 0, and the normal approximation requires a distance of about {enough:g} or more",
    "caution",
)
