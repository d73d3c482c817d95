"""Claims about arms received that differ from those assigned."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

EFFECT = Claim(
    "inference.arms.data.noncompliance.received_effect",
    "The complier average causal effect ({treatment} versus {control}) is estimated as the ratio of two "
    "effects of assignment: on rewards, {effect:.4g} (standard error {effect_error:.2g}), and on "
    "receipt of {treatment}, {share:.4g} (standard error {share_error:.2g}).",
    "note",
    short="effect on compliers",
)
EXCLUSION = Claim(
    "inference.arms.data.noncompliance.received_effect",
    "assignment affects rewards only through the arm received (exclusion restriction)",
    "assumes",
    short="exclusion restriction",
)
MONOTONE = Claim(
    "inference.arms.data.noncompliance.received_effect",
    "there are no defiers (monotonicity)",
    "assumes",
    short="no defiers",
)
STEADY = Claim(
    "inference.arms.data.noncompliance.received_effect",
    "the compliance rate and the causal effect on compliers are constant over time",
    "assumes",
    short="constant compliance and effect",
)
ANDERSON_RUBIN = Claim(
    "inference.arms.data.noncompliance.received_effect",
    "The interval is obtained by inverting the Anderson-Rubin test, which is valid even if compliance "
    "is low.",
    "note",
)
TWO_RAYS = Claim(
    "inference.arms.data.noncompliance.set_cautions",
    "compliance is too low for a bounded interval: the 95% confidence set contains all values "
    "below {low:.4g} and all values above {high:.4g}",
    "caution",
)
NO_END = Claim(
    "inference.arms.data.noncompliance.set_cautions",
    "the 95% confidence set is unbounded, because compliance is too low",
    "caution",
)
