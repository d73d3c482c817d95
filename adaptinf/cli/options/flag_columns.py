"""Columns that the command line can name, and what each holds."""

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
# Sums of further columns of a table of sums, beside the column that --denominator or --covariate names.
FURTHER = tuple(
    f"{role}_{part}" for role in ("denominator", "covariate") for part in ("sum_squares", "sum_products")
)
SUMS = ("n", "sum", "sum_squares", "sum_cubes", "nonzero", *FURTHER)
HELP = {
    "action": "chosen arm (needed); repeated: columns of 0 and 1, one for each arm",
    "reward": "reward (needed)",
    "propensity": "probability of the chosen arm given the past, or a number",
    "batch": "batch number",
    "unit": "who took part",
    "id": "number of the decision, one for each row",
    "round": "increasing round number or time",
    "phase": "phase, such as learning and estimation",
    "randomised": "true where the arm was drawn with fixed probabilities",
    "assigned": "assigned arm, where --action is the received one",
    "observation": "probability that the reward is observed",
    "outcome_round": "round at whose end the reward became known",
    "n": "rounds of an arm in a batch: the file is a table of sums, a row for each batch and arm",
    "sum": "sum of their rewards",
    "sum_squares": "sum of their squared rewards",
    "sum_cubes": "sum of their cubed rewards, for the correction for skewness",
    "nonzero": "number of their rewards other than 0",
    "denominator_sum_squares": "sum of squared denominators, where --denominator names the column of sums",
    "denominator_sum_products": "sum of rewards times denominators",
    "covariate_sum_squares": "sum of squared covariates, where --covariate names the column of sums",
    "covariate_sum_products": "sum of rewards times covariates",
}
