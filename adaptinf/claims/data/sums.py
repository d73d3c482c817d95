"""What is said of estimates from sums by batch and arm, beyond what is said of those from rows."""

from __future__ import annotations

from adaptinf.claims.claim import Claim
from adaptinf.claims.rare_outcomes import SKEWNESS_UNKNOWN

EQUAL_WEIGHTS = Claim(
    "totals_by_unit",
    "units have several rounds, and their totals are of rounds with equal weights",
    "needs",
)
BY_ROUND = Claim(
    "weights_by_round",
    "they change from round to round, and sums by batch need one weight per batch",
    "needs",
)
OF_SHARES = Claim(
    "profile.sums.shares",
    "propensities are the shares of each batch: weights made from them would depend on which arms its "
    "rounds happened to get",
    "needs",
)
MOVING = Claim(
    "moves_within_batches",
    "propensities move within batches, or may as batches are of single rounds, and sums by batch need one "
    "weight a batch",
    "needs",
)
WEIGHTS_NEED = (EQUAL_WEIGHTS, BY_ROUND, OF_SHARES, MOVING)
"""Of weights other than uniform ones."""

READ = Claim("read", "From sums of {rounds:,} rounds in {batches:,} batches, by {by}.", "note")
SHARES_STAND_IN = Claim(
    "sums.shares",
    "The sums have no propensities: the arms' shares of each batch stand in for them, as for arms that were "
    "drawn with equal probabilities for all rounds of a batch. Standard errors are given those shares, with "
    "a variance of the arm in each batch.",
    "note",
)
FEW_IN_A_BATCH = Claim(
    "few_in_a_batch",
    "a batch has {n} rounds of an arm, fewer than {enough}: its share is a poor propensity, and intervals "
    "may be short",
    "caution",
)
FIT = (READ, SHARES_STAND_IN, SKEWNESS_UNKNOWN, FEW_IN_A_BATCH)
"""Of a fit."""

CENTRE = Claim(
    "inference.arms.circumstances.from_sums.outcome_of",
    "Outcome model: {centre:.6g}, the centre of the sums, for all arms in all rounds.",
    "note",
)
"""Where units have several rounds, and earlier ones would tell of them."""
