"""Claims about predictions of rewards: how they were computed, and from which rewards."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

RUNNING_MEAN = Claim(
    "inference.scores.outcome_predictions.outcome_model",
    "Outcome model: the arm's running mean, or the pooled mean until the arm is first chosen. The first "
    "round has weight 0.",
    "note",
)
BATCH_MEAN = Claim(
    "inference.scores.outcome_predictions.outcome_model",
    "Outcome model: the arm's mean over earlier batches, or the mean over all arms if the arm has no "
    "earlier rewards. In the first batch, predictions are leave-one-out means of all rewards in that "
    "batch.",
    "note",
)
RIDGE = Claim(
    "inference.scores.outcome_predictions.running_regression",
    "The outcome model is a ridge regression of earlier rewards of the same arm{known} on "
    "{names}{scaled}, with a prespecified penalty of {penalty:g}{start}.",
    "note",
)
STANDARDISED = Claim(
    "inference.scores.outcome_predictions.running_regression",
    " (standardised using data up to each round)",
    "phrase",
)
BATCH_RIDGE = Claim(
    "inference.scores.outcome_predictions.outcome_model",
    "Outcome model: within-arm ridge regression of rewards from earlier batches on {names} "
    "(standardised; prespecified penalty {penalty:g}), or a pooled regression for arms without earlier "
    "rewards. First-batch predictions are leave-one-out means.",
    "note",
)
OWN = Claim(
    "inference.scores.outcome_predictions.outcome_model",
    "User-supplied outcome predictions are assumed not to use rewards from the same round or later "
    "rounds; the log cannot confirm this.",
    "assumes",
    short="predictions use no later rewards",
)
