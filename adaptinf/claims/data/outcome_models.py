"""What is said of predictions of rewards: how they were made, and from which rewards."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

RUNNING_MEAN = Claim(
    "inference.scores.outcome_models.outcome_model",
    "Outcome model: the arm's running mean or, before its first round, the pooled mean over all arms "
    "(weight 0 in round 1).",
    "note",
)
BATCH_MEAN = Claim(
    "inference.scores.outcome_models.outcome_model",
    "Outcome model: the arm's mean over earlier batches or, before the arm has rewards, the overall "
    "mean. First-batch predictions are leave-one-out means of all rewards.",
    "note",
)
RIDGE = Claim(
    "inference.scores.outcome_models.running_regression",
    "The outcome model is a ridge regression of the arm's earlier rewards{known} on "
    "{names}{scaled}, with penalty {penalty:g}, fixed in advance{start}.",
    "note",
)
STANDARDISED = Claim(
    "inference.scores.outcome_models.running_regression",
    "(standardised using data up to each round)",
    "note",
)
BATCH_RIDGE = Claim(
    "inference.scores.outcome_models.outcome_model",
    "Outcome model: ridge regression of rewards in earlier batches on {names} (standardised), with "
    "slope penalty {penalty:g} chosen beforehand. Fits are separate by arm, but pooled for arms without "
    "rewards; the first batch uses leave-one-out means.",
    "note",
)
OWN = Claim(
    "inference.scores.outcome_models.outcome_model",
    "Outcome predictions were supplied by the user and are assumed not to use rewards from the same or "
    "later rounds, which the log cannot confirm.",
    "assumes",
)
