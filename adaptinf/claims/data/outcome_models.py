"""What is said of predictions of rewards: how they were made, and from which rewards."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

RUNNING_MEAN = Claim(
    "inference.scores.outcome_models.outcome_model",
    "Outcome model: the mean of the arm's earlier rounds, or of all arms before its first; round 1 "
    "has no weight.",
    "note",
)
BATCH_MEAN = Claim(
    "inference.scores.outcome_models.outcome_model",
    "Outcome model: each arm's mean over earlier batches, before its first reward that of all arms; in the "
    "first batch, leave-one-out means.",
    "note",
)
RIDGE = Claim(
    "inference.scores.outcome_models.running_regression",
    "Outcome model: ridge regression of the arm's earlier rewards{known} on {names}{scaled}, penalty "
    "{penalty:g} (fixed in advance){start}.",
    "note",
)
STANDARDISED = Claim(
    "inference.scores.outcome_models.running_regression",
    " (standardised over the rounds so far)",
    "note",
)
BATCH_RIDGE = Claim(
    "inference.scores.outcome_models.outcome_model",
    "Outcome model: ridge regression on {names} (standardised), fitted to the arm's rewards in "
    "earlier batches, with penalty {penalty:g} on slopes, fixed in advance; that of all arms until "
    "the arm has a reward. The first batch has leave-one-out means, without covariates.",
    "note",
)
OWN = Claim(
    "inference.scores.outcome_models.outcome_model",
    "Outcome model: your own predictions. That row t was made without the rewards of round t and "
    "later is an assumption that a log cannot show.",
    "assumes",
)
