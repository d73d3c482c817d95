"""What is said of estimates from sums by batch and arm, beyond what is said of those from rows."""

from __future__ import annotations

from adaptinf.claims.claim import Claim
from adaptinf.claims.rare_outcomes import SKEWNESS_UNKNOWN

EQUAL_WEIGHTS = Claim(
    "totals_by_unit",
    "units have several rounds, and the sums contain only unit totals, in which all rounds have "
    "equal weights",
    "needs",
)
BY_ROUND = Claim(
    "weights_by_round",
    "two-point weights change from round to round, but only sums by batch are available",
    "needs",
)
OF_SHARES = Claim(
    "profile.sums.shares",
    "propensities were estimated by the arms' proportions in each batch, so weights based on these "
    "propensities would depend on the realised assignments",
    "needs",
)
MOVING = Claim(
    "moves_within_batches",
    "propensities vary or may vary within batches, but sums allow only one weight per batch",
    "needs",
)
WEIGHTS_NEED = (EQUAL_WEIGHTS, BY_ROUND, OF_SHARES, MOVING)
"""Of weights other than uniform ones."""

READ = Claim(
    "read", "Estimates are computed from sums by {by} ({rounds:,} rounds in {batches:,} batches).", "note"
)
SHARES_STAND_IN = Claim(
    "sums.shares",
    "The sums contain no propensities. Each arm's proportion of the rounds in a batch is used "
    "instead, which assumes equal assignment probabilities within batches. Standard errors are "
    "conditional on these proportions and allow a separate variance for each arm and batch.",
    "note",
)
FEW_IN_A_BATCH = Claim(
    "few_in_a_batch",
    "an arm has only {n} rounds in some batch (fewer than {enough}): the propensity estimated "
    "there is imprecise, and confidence intervals may undercover",
    "caution",
)
FIT = (READ, SHARES_STAND_IN, SKEWNESS_UNKNOWN, FEW_IN_A_BATCH)
"""Of a fit."""

CENTRE = Claim(
    "inference.arms.circumstances.from_sums.outcome_of",
    "The outcome model is constant: it predicts {centre:.6g}, the centre of the sums, for every reward.",
    "note",
)
"""Where units have several rounds, and earlier ones would tell of them."""
