"""What is said of several contrasts with one control, and of lifts."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

TOGETHER = Claim(
    "inference.contrasts.methods.told_at_once",
    "intervals are simultaneous by the max-t method",
    "reason",
)
APART = Claim(
    "inference.contrasts.methods.told_at_once",
    "intervals are simultaneous by Bonferroni's method, because the correlations of the contrasts are "
    "unknown",
    "reason",
)
NO_COVARIANCE = Claim(
    "inference.contrasts.joint.joint_covariance",
    "The covariance of the terms is unknown, so simultaneous intervals and tests use Bonferroni's method.",
    "note",
)

LIFTS = Claim(
    "inference.contrasts.lifts.lift_of",
    "A lift is an arm's mean divided by the control mean, minus 1; both means use the same rounds and "
    "weights. Intervals use the t distribution of the log ratio if both means are positive, and "
    "Fieller's method otherwise. Correlations for simultaneous intervals are evaluated at the estimated "
    "ratios.",
    "note",
)
NO_MEANS = Claim(
    "inference.contrasts.methods.of_lift",
    "a lift requires valid estimates of both arm means, which this method does not give",
    "needs",
)
NO_ERROR = Claim("inference.contrasts.lifts.lift_of", "the mean of an arm has no standard error", "needs")
FEW_OUTCOMES = Claim(
    "inference.contrasts.lifts.lift_of",
    "an arm has too few rewards other than its most frequent value for a ratio ({n:d}; at least {fewest} "
    "are needed)",
    "needs",
)
NEAR_ZERO = Claim(
    "inference.contrasts.lifts.lift_of",
    "the control {what} is too close to 0 for a ratio (at {errors:.1f} standard errors; at least "
    "{fewest:g} are needed)",
    "needs",
)
NO_LIFT = Claim("inference.contrasts.lifts.lift_of", "No lift is given for {term}, because {reason}.", "note")
NEGATIVE_CONTROL = Claim(
    "inference.contrasts.lifts.negative_control",
    "the {what} of the control {control} is negative ({mean:.3g}), which reverses the sign of relative "
    "effects: an arm with a positive lift has a lower {what} than the control",
    "caution",
)
SOME_WITHOUT = Claim(
    "inference.contrasts.methods.of_lift",
    "a lift requires at least {fewest} rewards per arm that differ from the arm's most common value",
    "caution",
)
