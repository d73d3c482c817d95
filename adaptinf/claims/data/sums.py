"""Claims about estimates from sums by batch and arm, beyond those about estimates from rows."""

from __future__ import annotations

from adaptinf.claims.claim import Claim
from adaptinf.claims.rare_outcomes import SHAPE_UNKNOWN, SKEWNESS_UNKNOWN

EQUAL_WEIGHTS = Claim(
    "totals_by_unit",
    "only totals per unit are available, so weights must be constant within each unit",
    "needs",
)
BY_ROUND = Claim(
    "weights_by_round",
    "two-point weights vary by round, but only sums by batch are available",
    "needs",
)
OF_SHARES = Claim(
    "profile.sums.shares",
    "propensities are estimated by observed assignment proportions, so weights based on these "
    "propensities would depend on the realised assignments",
    "needs",
)
MOVING = Claim(
    "moves_within_batches",
    "propensities may vary within batches, but data summed by batch allow only one weight per batch",
    "needs",
)
WEIGHTS_NEED = (EQUAL_WEIGHTS, BY_ROUND, OF_SHARES, MOVING)
"""Claims for weights other than uniform ones."""

READ = Claim(
    "read",
    "Estimates are computed from sums by {by} ({rounds:,} rounds in {batches:,} batches).",
    "note",
    short="from sums by {by}",
)
SHARES_STAND_IN = Claim(
    "sums.shares",
    "Assignment probabilities are assumed constant within batches and are estimated by the assignment "
    "proportions of each batch. Standard errors condition on these proportions and allow for unequal "
    "variances across arms and batches.",
    "note",
)
FEW_IN_A_BATCH = Claim(
    "few_in_a_batch",
    "an arm has too few rounds in some batches (smallest count {n}, recommended minimum {enough}), so "
    "estimated propensities are imprecise and intervals may undercover",
    "caution",
)
WITHOUT_BATCHES = Claim(
    "without_batches",
    "the table has no batches, so propensities are assumed constant over all rounds; if they changed with "
    "earlier rewards, estimates are biased and intervals may undercover",
    "caution",
)
FIT = (READ, SHARES_STAND_IN, SHAPE_UNKNOWN, SKEWNESS_UNKNOWN, WITHOUT_BATCHES, FEW_IN_A_BATCH)
"""For a fit."""

CENTRE = Claim(
    "inference.arms.data.arms_of_sums.outcome_of",
    "The outcome model is constant: every prediction equals {centre:.6g}, the value subtracted from "
    "outcomes before the sums were computed.",
    "note",
)
"""A claim for units with several rounds, whose earlier rounds would be informative."""
