"""What is said of estimates from sums by batch and arm, beyond what is said of those from rows."""

from __future__ import annotations

from adaptinf.claims.claim import Claim
from adaptinf.claims.rare_outcomes import SKEWNESS_UNKNOWN

EQUAL_WEIGHTS = Claim(
    "totals_by_unit",
    "with several rounds per unit, totals weight all rounds equally",
    "needs",
)
BY_ROUND = Claim(
    "weights_by_round",
    "they change from round to round, and sums by batch do not",
    "needs",
)
OF_SHARES = Claim(
    "profile.sums.shares",
    "propensities are the shares in each batch: weights based on them would depend on which arms the "
    "rounds happened to get",
    "needs",
)
MOVING = Claim(
    "moves_within_batches",
    "propensities move within batches (or may, where batches are single rounds), and sums have one "
    "weight per batch",
    "needs",
)
WEIGHTS_NEED = (EQUAL_WEIGHTS, BY_ROUND, OF_SHARES, MOVING)
"""Of weights other than uniform ones."""

READ = Claim("read", "Computed from sums by {by}: {rounds:,} rounds, {batches:,} batches.", "note")
SHARES_STAND_IN = Claim(
    "sums.shares",
    "The sums have no propensities: the arms' shares of each batch are used instead, as if all rounds "
    "of a batch had the same probabilities. Standard errors are conditional on these shares, with one "
    "variance per arm and batch.",
    "note",
)
FEW_IN_A_BATCH = Claim(
    "few_in_a_batch",
    "a batch has only {n} rounds of an arm (fewer than {enough}): its share is a poor propensity, "
    "which can make intervals short",
    "caution",
)
FIT = (READ, SHARES_STAND_IN, SKEWNESS_UNKNOWN, FEW_IN_A_BATCH)
"""Of a fit."""

CENTRE = Claim(
    "inference.arms.circumstances.from_sums.outcome_of",
    "Outcome model: {centre:.6g}, the centre of the sums, for all arms and rounds.",
    "note",
)
"""Where units have several rounds, and earlier ones would tell of them."""
