"""Claims about several contrasts with one control, and about lifts."""

from __future__ import annotations

from adaptinf.claims.claim import Claim
from adaptinf.claims.rare_outcomes import UNCOMMON

TOGETHER = Claim(
    "inference.contrasts.contrast_verdicts.told_at_once",
    "intervals have simultaneous coverage (max-t method)",
    "reason",
)
APART = Claim(
    "inference.contrasts.contrast_verdicts.told_at_once",
    "simultaneous intervals use the Bonferroni correction, because correlations between contrasts are "
    "unknown",
    "reason",
)
NO_COVARIANCE = Claim(
    "inference.contrasts.shared_control.joint_covariance",
    "Covariances between the estimates are unknown, so simultaneous inference is based on the "
    "Bonferroni correction.",
    "note",
)

LIFTS = Claim(
    "inference.contrasts.shared_control.lift_of",
    "Lift is an arm's mean divided by the control mean (same rounds and weights), minus 1. Intervals "
    "use a t approximation on the log-ratio scale if both means are positive, and Fieller's method "
    "otherwise.",
    "note",
    short="lift over the control's mean",
)
NO_MEANS = Claim(
    "inference.contrasts.contrast_verdicts.of_lift",
    "a lift requires valid estimates of both arm means, which this method does not provide",
    "needs",
)
DIFFERENCES_INSTEAD = Claim(
    "inference.contrasts.contrast_verdicts.lift_refusal", "differences, without lift=True", "phrase"
)
NO_ERROR = Claim(
    "inference.contrasts.shared_control.lift_of",
    "at least one of the arm means has no standard error",
    "needs",
)
FEW_OUTCOMES = Claim(
    "inference.contrasts.shared_control.lift_of",
    "for ratios, each arm must have at least {fewest} {uncommon}, but one arm has only {n:d}",
    "needs",
    phrases={"uncommon": UNCOMMON},
)
NEAR_ZERO = Claim(
    "inference.contrasts.shared_control.lift_of",
    "a ratio requires the control {what} to be at least {fewest:g} standard errors from 0, but it is "
    "only {errors:.1f} standard errors away",
    "needs",
)
NO_LIFT = Claim(
    "inference.contrasts.shared_control.lift_of", "No lift is given for {term}, because {reason}.", "missing"
)
NEGATIVE_CONTROL = Claim(
    "inference.contrasts.shared_control.negative_control",
    "the {what} of the control arm {control} is negative ({mean:.3g}), so the sign of relative effects "
    "is reversed: an arm with a positive lift has a lower {what} than the control arm",
    "caution",
)
SOME_WITHOUT = Claim(
    "inference.contrasts.contrast_verdicts.of_lift",
    "relative lifts require at least {fewest} {uncommon} in each arm",
    "caution",
    phrases={"uncommon": UNCOMMON},
)
