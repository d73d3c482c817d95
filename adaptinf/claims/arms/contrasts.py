"""What is said of several contrasts with one control, and of lifts."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

TOGETHER = Claim(
    "inference.contrasts.methods.told_at_once",
    "simultaneous, from the distribution of the largest t statistic",
    "reason",
)
APART = Claim(
    "inference.contrasts.methods.told_at_once",
    "simultaneous by Bonferroni's method, because the covariance is unknown",
    "reason",
)
NO_COVARIANCE = Claim(
    "inference.contrasts.joint.joint_covariance",
    "The covariance of the terms is unknown, so simultaneous intervals and tests use Bonferroni's method.",
    "note",
)

LIFTS = Claim(
    "inference.contrasts.lifts.lift_of",
    "Lifts: an arm's mean divided by the control's, minus 1, both over the same rounds with the same "
    "weights. Intervals: t for the log ratio if both means are positive, otherwise Fieller's. "
    "Simultaneous intervals use the correlations at the estimated ratios.",
    "note",
)
NO_MEANS = Claim("inference.contrasts.methods.of_lift", "it does not give valid means of both arms", "needs")
NO_ERROR = Claim("inference.contrasts.lifts.lift_of", "an arm has no standard error", "needs")
FEW_OUTCOMES = Claim(
    "inference.contrasts.lifts.lift_of",
    "only {n:d} outcomes of an arm are not its commonest (at least {fewest} are needed)",
    "needs",
)
NEAR_ZERO = Claim(
    "inference.contrasts.lifts.lift_of",
    "the control's {what} is too close to 0 for a ratio ({errors:.1f} standard errors away; at least "
    "{fewest:g} are needed)",
    "needs",
)
NO_LIFT = Claim("inference.contrasts.lifts.lift_of", "{term}: no lift, because {reason}.", "note")
NEGATIVE_CONTROL = Claim(
    "inference.contrasts.lifts.negative_control",
    "the {what} of the control {control} is negative ({mean:.3g}), which reverses the sign of relative "
    "effects: an arm with a positive lift has a lower {what} than the control",
    "caution",
)
SOME_WITHOUT = Claim(
    "inference.contrasts.methods.of_lift",
    "no lift if an arm has fewer than {fewest} outcomes other than the commonest",
    "caution",
)
