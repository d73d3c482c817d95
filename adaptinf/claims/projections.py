"""What is said of projections of the effect on covariates."""

from __future__ import annotations

from adaptinf.claims import contexts, drift, effects, propensities
from adaptinf.claims.claim import Claim, Part

# Why it does not serve, and what does

GROUPS_INSTEAD = Claim(
    "inference.effects.projections.projected_scores.ProjectionQuestion.rounds",
    "CATE(log, by=...).fit() with rounds= that marks the rounds whose arm was drawn at random",
    "advice",
)
NEVER_CHOSEN = Claim(
    "inference.effects.projections.projected_scores.ProjectionQuestion.chosen",
    "in the rounds used, {arms} was never chosen",
    "needs",
)
LACKS_DECAY = Claim("lacks_decay", "its weights need decay=, fixed in advance", "needs")
NOT_BY_UNIT = Claim(
    "inference.effects.projections.projected_scores.check_by_unit",
    "units have several rounds, and errors are by unit",
    "needs",
)
OWN_PAST_TELLS = Claim(
    "inference.effects.projections.projected_scores.check_by_unit",
    "one draw gave each unit its arm, and earlier rewards of the unit tell the model how it fell",
    "needs",
)
NEEDS = (LACKS_DECAY, Part("rounds_refusal", "needs"), effects.LACKS_BOTH_PROPENSITIES)

# A row of `recommend`

REASONS = (
    Claim("is_projection", "the best linear approximation of the effect by the formula", "reason"),
    Part("errors_by_unit", "reason"),
)
ROW_CAUTIONS = (Part("tied_units", "caution"), propensities.UNSETTLED)
"""Where no estimate is known yet."""

# A fit

WEIGHED_CONTEXTS = Claim(
    "weighed_contexts",
    "{weights} count contexts by their propensities, which is right where the formula holds exactly, or "
    "propensities do not depend on contexts",
    "assumes",
)
ASSUMES = (
    contexts.NOT_BY_PAST,
    propensities.RIGHT,
    propensities.ESTIMATED,
    Part("unit_assumptions", "assumes"),
    WEIGHED_CONTEXTS,
    drift.PAIR_SHARES_DRIFT,
    drift.AVERAGED_EQUALLY,
    drift.AVERAGED_BY_WEIGHT,
)
FORMULA = Claim("formula", "Projection on {formula}. Covariance {covariance}.", "note")
SATURATED = Claim(
    "is_saturated",
    "The formula gives every combination of contexts its own effect: the weights do not change it.",
    "note",
)
BEST_APPROXIMATION = Claim(
    "is_best_approximation",
    "Estimand: the best linear approximation of the effect over the log's contexts.",
    "note",
)
T_LAW_NEEDS = Claim("rests_on_t_law", "The t law needs propensities that settle or stay away from 0.", "note")
DEGREES = Claim(
    "is_projection",
    "Student's t, for each term by the effective number of the smaller arm's rewards.",
    "note",
)
LOW_PROPENSITIES = Claim(
    "low_propensities",
    "Propensities as low as {least:.2g}: a few rounds carry much of the estimate, and intervals may fall "
    "short of their level. An outcome model that predicts well (outcome=) makes them count for less.",
    "note",
)
BARE_COLUMN = Claim(
    "bare_columns",
    "{name}: one of the arms has no rewards where it is 1; the coefficient rests on the outcome model, and "
    "its standard error is too small.",
    "note",
)
ALONE_BY_HC = Claim(
    "inference.effects.projections.weighted_projection.standard_errors",
    "No standard errors by HC2 or HC3: round {rounds} (counted from 0) alone decides a coefficient, so that "
    "it has no residual; HC0 and HC1 exist.",
    "note",
)
FEW_ROUNDS = Claim(
    "inference.effects.projections.weighted_projection.standard_errors",
    "No standard errors: {n} rounds for {columns} columns.",
    "note",
)
NO_SPREAD = Claim(
    "inference.effects.projections.weighted_projection.standard_errors",
    "No standard errors: the scores do not vary about the fit.",
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
    Part("profile.propensity_cautions", "caution"),
    Part("unit_cautions", "caution"),
    effects.FEW_EFFECTIVE,
    Part("law_cautions", "caution"),
    effects.TINY_PROPENSITIES,
)
"""In the order in which its table has them."""
