"""What is said of predictions of rewards: how they were made, and from which rewards."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

RUNNING_MEAN = Claim(
    "inference.scores.outcome_models.outcome_model",
    "The outcome model is the arm's mean reward in earlier rounds (before its first round, the "
    "pooled mean of all arms); round 1 has no weight.",
    "note",
)
BATCH_MEAN = Claim(
    "inference.scores.outcome_models.outcome_model",
    "The outcome model predicts the arm's mean over earlier batches, or the overall mean until the "
    "arm has a reward; in the first batch, it predicts the leave-one-out mean of all rewards.",
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
    " (standardised over the rounds up to each prediction)",
    "note",
)
BATCH_RIDGE = Claim(
    "inference.scores.outcome_models.outcome_model",
    "The outcome model is ridge regression on {names} (standardised), fitted to the arm's rewards "
    "in earlier batches, with slope penalty {penalty:g} (fixed beforehand). Until an arm has a "
    "reward, all arms are pooled. Predictions in the first batch are leave-one-out means without "
    "covariates.",
    "note",
)
OWN = Claim(
    "inference.scores.outcome_models.outcome_model",
    "The outcome model consists of your own predictions, assumed to use no reward from their own "
    "round or later rounds. The log cannot confirm this assumption.",
    "assumes",
)
