"""What is said of predictions of rewards: how they were made, and from which rewards."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

RUNNING_MEAN = Claim(
    "inference.scores.outcome_models.outcome_model",
    "Outcome model: the arm's mean over earlier rounds, before its first one the mean of all arms; the first "
    "round has no weight.",
    "note",
)
BATCH_MEAN = Claim(
    "inference.scores.outcome_models.outcome_model",
    "Outcome model: the arm's mean over earlier batches, before its first reward that of all arms; in the "
    "first batch the mean of its other rounds.",
    "note",
)
RIDGE = Claim(
    "inference.scores.outcome_models.running_regression",
    "Outcome model: ridge regression of the arm's earlier rewards{known} on {names}{scaled}, penalty "
    "{penalty:g} (fixed in advance); the first round has no weight.",
    "note",
)
KNOWN_BY_THEN = Claim(
    "inference.scores.outcome_models.running_regression", " that were known by then", "note"
)
STANDARDISED = Claim(
    "inference.scores.outcome_models.running_regression",
    " (in standard deviations from the mean of the rounds so far)",
    "note",
)
BATCH_RIDGE = Claim(
    "inference.scores.outcome_models.outcome_model",
    "Outcome model: ridge regression of the arm's rewards in earlier batches on {names} (in standard "
    "deviations there), penalty {penalty:g} on slopes (fixed in advance), before its first reward that of "
    "all arms; in the first batch the mean of its other rounds, without covariates.",
    "note",
)
OWN = Claim(
    "inference.scores.outcome_models.outcome_model",
    "Outcome model: predictions of your own. That row t was made without the rewards of round t and later "
    "is an assumption that a log cannot show.",
    "assumes",
    check="inference.scores.outcome_models.foreseeing",
)
