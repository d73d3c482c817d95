"""What is said of arms that were received in place of those assigned."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

EFFECT = Claim(
    "inference.arms.circumstances.deviations.received_effect",
    "Effect of receiving {treatment} rather than {control}, among those who receive what they are "
    "assigned: the effect of assignment on rewards, {effect:.4g} (standard error {effect_error:.2g}), "
    "divided by its effect on the share that received {treatment}, {share:.4g} ({share_error:.2g}).",
    "note",
)
EXCLUSION = Claim(
    "inference.arms.circumstances.deviations.received_effect",
    "assignment affects rewards only through what is received (exclusion)",
    "assumes",
)
MONOTONE = Claim(
    "inference.arms.circumstances.deviations.received_effect",
    "nobody receives the opposite of what they are assigned (monotonicity)",
    "assumes",
)
STEADY = Claim(
    "inference.arms.circumstances.deviations.received_effect",
    "this effect and compliance are constant over time",
    "assumes",
)
ANDERSON_RUBIN = Claim(
    "inference.arms.circumstances.deviations.received_effect",
    "The interval inverts the Anderson-Rubin test, which is valid however few comply.",
    "note",
)
TWO_RAYS = Claim(
    "inference.arms.circumstances.deviations.set_cautions",
    "the 95% confidence set is two rays, up to {low:.4g} and from {high:.4g}: too few comply for an "
    "interval with two ends",
    "caution",
)
NO_END = Claim(
    "inference.arms.circumstances.deviations.set_cautions",
    "too few comply for a bounded 95% confidence set",
    "caution",
)
