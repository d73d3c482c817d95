"""What is said of projections of the effect on covariates."""

from __future__ import annotations

from adaptinf.claims import contexts, propensities, stationarity
from adaptinf.claims.claim import Claim, Part
from adaptinf.claims.effects import rounds_and_weights as effects

# Why it does not serve, and what does

GROUPS_INSTEAD = Claim(
    "inference.effects.projections.projected_scores.ProjectionQuestion.rounds",
    "CATE(log, by=..., rounds=...).fit() on randomised rounds",
    "advice",
)
NEVER_CHOSEN = Claim(
    "inference.effects.projections.projected_scores.ProjectionQuestion.chosen",
    "there is no reward of {arms} in the rounds used",
    "needs",
)
LACKS_DECAY = Claim("lacks_decay", "its weights need decay=, fixed in advance", "needs")
NOT_BY_UNIT = Claim(
    "inference.effects.projections.projected_scores.check_by_unit",
    "units have several rounds, so only HC0 errors, added up by unit, are available",
    "needs",
)
NEEDS = (LACKS_DECAY, Part("rounds_refusal", "needs"), effects.LACKS_BOTH_PROPENSITIES)

# A row of `recommend`

REASONS = (
    Claim("is_projection", "inverse propensities, projected on the terms of the formula", "reason"),
    Part("errors_by_unit", "reason"),
)
ROW_CAUTIONS = (Part("tied_units", "caution"), propensities.UNSETTLED)
"""Where no estimate is known yet."""

# A fit

WEIGHED_CONTEXTS = Claim(
    "weighed_contexts",
    "the formula holds exactly, or contexts do not affect propensities (else {weights} favour some contexts)",
    "assumes",
)
ASSUMES = (
    contexts.NOT_BY_PAST,
    *propensities.ASSUMES,
    Part("unit_assumptions", "assumes"),
    WEIGHED_CONTEXTS,
    stationarity.PAIR_SHARES_DRIFT,
    stationarity.AVERAGED_EQUALLY,
    stationarity.AVERAGED_BY_WEIGHT,
)
FORMULA = Claim("formula", "Projection on {formula}. Covariance {covariance}.", "note")
SATURATED = Claim(
    "is_saturated",
    "The formula gives every combination of contexts its own effect, which the weights do not change.",
    "note",
)
BEST_APPROXIMATION = Claim(
    "is_best_approximation",
    "Estimand: the best linear approximation of the effect over the log's contexts.",
    "note",
)
T_LAW_NEEDS = Claim(
    "rests_on_t_law",
    "Student's t needs propensities that settle or stay away from 0.",
    "note",
)
DEGREES = Claim(
    "is_projection",
    "Student's t, with degrees of freedom by term from the effective number of the smaller arm's rewards.",
    "note",
)
LOW_PROPENSITIES = Claim(
    "low_propensities",
    "Propensities are as low as {least:.2g}: a few rounds carry much of the estimate, and intervals may "
    "undercover. A good outcome model (outcome=) reduces their influence.",
    "note",
)
BARE_COLUMN = Claim(
    "bare_columns",
    "{name}: one arm was never observed where it is 1, so the coefficient rests on the outcome model and "
    "its standard error is too small.",
    "note",
)
ALONE_BY_HC = Claim(
    "inference.effects.projections.weighted_projection.standard_errors",
    "No HC2 or HC3 standard errors: round {rounds} (counted from 0) determines a coefficient by itself "
    "and has no residual; HC0 and HC1 are available.",
    "note",
)
FEW_ROUNDS = Claim(
    "inference.effects.projections.weighted_projection.standard_errors",
    "No standard errors, as {columns} columns take up all {n} rounds.",
    "note",
)
NO_SPREAD = Claim(
    "inference.effects.projections.weighted_projection.standard_errors",
    "No standard errors: the scores do not vary around the fit.",
    "note",
)
FIT = (
    *ASSUMES,
    FORMULA,
    Part("rounds_notes", "note"),
    Part("model_note", "note"),
    Part("unit_notes", "note"),
    SATURATED,
    BEST_APPROXIMATION,
    T_LAW_NEEDS,
    effects.LAGGED,
    DEGREES,
    LOW_PROPENSITIES,
    BARE_COLUMN,
    Part("error_gaps", "note"),
    Part("law_notes", "note"),
    Part("unit_cautions", "caution"),
    effects.FEW_EFFECTIVE,
    Part("law_cautions", "caution"),
    effects.TINY_PROPENSITIES,
)
"""In the order in which its table has them."""
