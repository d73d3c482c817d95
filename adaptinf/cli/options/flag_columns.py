"""Columns that the command line can name, and their contents."""

from __future__ import annotations

COLUMNS = (
    "action",
    "reward",
    "propensity",
    "batch",
    "unit",
    "id",
    "round",
    "phase",
    "randomised",
    "assigned",
    "observation",
    "outcome_round",
)
# A warehouse supplies these sums as further columns, beside the one that --denominator or --covariate names.
FURTHER = tuple(
    f"{role}_{part}" for role in ("denominator", "covariate") for part in ("sum_squares", "sum_products")
)
SUMS = ("n", "sum", "sum_squares", "sum_cubes", "nonzero", *FURTHER)
HELP = {
    "action": "chosen arm (required); repeated: columns of 0 and 1, one for each arm",
    "reward": "reward (required)",
    "propensity": "probability of the chosen arm given the past, or a number",
    "batch": "batch number",
    "unit": "who took part",
    "id": "decision number, unique to each row",
    "round": "increasing round number or time",
    "phase": "phase, such as learning or estimation",
    "randomised": "true if the arm was assigned with fixed probabilities",
    "assigned": "assigned arm, if --action is the arm received",
    "observation": "probability that the reward is observed",
    "outcome_round": "round at the end of which the reward became known",
    "n": "number of rounds of an arm in a batch: the file is a table of sums, with one row per batch and arm",
    "sum": "sum of the rewards",
    "sum_squares": "sum of the squared rewards",
    "sum_cubes": "sum of the cubed rewards, for the skewness correction",
    "nonzero": "number of nonzero rewards",
    "denominator_sum_squares": "sum of squared denominators, if --denominator names the column of sums",
    "denominator_sum_products": "sum of rewards times denominators",
    "covariate_sum_squares": "sum of squared covariates, if --covariate names the column of sums",
    "covariate_sum_products": "sum of rewards times covariates",
}
