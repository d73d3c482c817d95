"""What is said of units with several rounds."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

INDEPENDENT = Claim("profile.repeated_units", "units are independent", "assumes")
NO_CARRY_OVER = Claim(
    "profile.repeated_units",
    "a unit's reward depends on the arm of its round, not on those of its earlier rounds",
    "assumes",
)
DRAWN_ONCE = Claim(
    "profile.one_draw_a_unit",
    "each unit's arm was drawn once, and its scores need a draw in every round",
    "needs",
)
BY_UNIT = Claim("profile.repeated_units", "errors by unit", "reason")
NOT_BY_UNIT = Claim(
    "profile.repeated_units",
    "rounds of one unit depend on each other, and the errors shown take all rounds to be independent",
    "caution",
)
"""Of errors that ignore units with several rounds."""
OF_LOGGED_ROUNDS = Claim(
    "profile.repeated_units",
    "units have several rounds: what is covered is the mean of the logged rounds' own expected rewards, not "
    "that of the population of units, for which the limits are far too close",
    "caution",
)
"""Of a method that holds for the rounds of the log alone."""
INCOMPLETE = Claim(
    "profile.repeated_units",
    "the share of rewards observed takes rounds to be independent, and units have several",
    "needs",
)
"""Why missing rewards and units with several rounds do not go together."""
OTHERS_MEAN = Claim(
    "inference.scores.by_unit.units.others_means",
    "Outcome model: the arm's mean over earlier rounds of other units, before there are any the mean of all "
    "of their rewards; rounds before any reward of another unit have no weight.",
    "note",
)
LATE_MEAN = Claim(
    "inference.scores.by_unit.units.others_means",
    "Outcome model: the arm's mean over rewards of other units that were known by then, before there are any "
    "the mean of all that were; rounds before any was known have no weight.",
    "note",
)
OWN_PAST = Claim(
    "inference.arms.circumstances.by_unit.fit_cautions",
    "the outcome model uses a unit's own earlier rounds, with which errors by unit are a little too small; "
    "outcome='running-mean' leaves them out",
    "caution",
)
TIED = Claim(
    "inference.validity.units.unit_cautions",
    "weights made from propensities tie units together through later weights: where units differ, errors "
    "by unit are too small (simulated variances are .65 to .85 of the true ones); uniform weights do not do "
    "that",
    "caution",
)
