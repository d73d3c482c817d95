"""What is said of several contrasts with one control, and of lifts."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

TOGETHER = Claim(
    "inference.contrasts.methods.told_at_once", "all at once by the law of the largest t", "reason"
)
APART = Claim(
    "inference.contrasts.methods.told_at_once",
    "all at once by Bonferroni's method, as their covariance is not known",
    "reason",
)
NO_COVARIANCE = Claim(
    "inference.contrasts.joint.joint_covariance",
    "The covariance of the terms is not known: what holds for all of them at once is by Bonferroni's method.",
    "note",
)

LIFTS = Claim(
    "inference.contrasts.lifts.lift_of",
    "Lifts: an arm's mean over the control's, less 1. By the t law of the log ratio where both means are "
    "positive, by Fieller's otherwise; both means are over the same rounds, with the same weights. Several "
    "hold at once by their correlations at the estimated ratios.",
    "note",
)
NO_MEANS = Claim("inference.contrasts.methods.of_lift", "it has no valid means of both arms", "needs")
NO_ERROR = Claim("inference.contrasts.lifts.lift_of", "an arm has no standard error", "needs")
FEW_OUTCOMES = Claim(
    "inference.contrasts.lifts.lift_of",
    "an arm has {n:d} outcomes other than the commonest, fewer than {fewest}",
    "needs",
)
NEAR_ZERO = Claim(
    "inference.contrasts.lifts.lift_of",
    "the control's {what} is {errors:.1f} standard errors from 0, less than {fewest:g}, so that a ratio to "
    "it may be anything",
    "needs",
)
NO_LIFT = Claim("inference.contrasts.lifts.lift_of", "{term}: {reason}.", "note")
SOME_WITHOUT = Claim(
    "inference.contrasts.methods.of_lift",
    "no lift where either arm has fewer than {fewest} outcomes other than the commonest",
    "caution",
)
