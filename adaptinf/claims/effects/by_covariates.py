"""Claims about projections of the effect on covariates."""

from __future__ import annotations

from adaptinf.claims import contexts, propensities, stationarity
from adaptinf.claims.claim import Claim, Part
from adaptinf.claims.effects import rounds_and_weights as effects

GROUPS_INSTEAD = Claim(
    "inference.effects.projections.projected_scores.ProjectionQuestion.rounds",
    "CATE(log, by=..., rounds=...).fit(), if some rounds were randomised",
    "advice",
)
NEVER_CHOSEN = Claim(
    "inference.effects.projections.projected_scores.ProjectionQuestion.chosen",
    "no reward was observed for {arms} in the rounds used",
    "needs",
)
LACKS_DECAY = Claim(
    "lacks_decay", "two-point weights require a decay rate (decay=) fixed in advance", "needs"
)
NOT_BY_UNIT = Claim(
    "inference.effects.projections.projected_scores.check_by_unit",
    "the log has repeated units, but clustering by unit is implemented only for the HC0 covariance",
    "needs",
)
NEEDS = (LACKS_DECAY, Part("rounds_refusal", "needs"), effects.LACKS_BOTH_PROPENSITIES)

REASONS = (
    Claim(
        "is_projection",
        "AIPW scores are unbiased for the conditional treatment effect, so their regression on the "
        "formula's terms estimates its best linear approximation",
        "reason",
    ),
    Part("errors_by_unit", "reason"),
)
ROW_CAUTIONS = (Part("tied_units", "caution"), propensities.UNSETTLED)
"""Cautions for a row of `recommend`, before an estimate is known."""

WEIGHED_CONTEXTS = Claim(
    "weighed_contexts",
    "the effect model is correctly specified, or contexts do not affect propensities (otherwise "
    "{weights} over-represent some contexts)",
    "assumes",
    short="correct effect model, or propensities that ignore contexts",
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
FORMULA = Claim(
    "formula",
    "Estimates are coefficients of the linear projection of the effect onto {formula}, with "
    "{covariance} standard errors.",
    "note",
    short="projection of the effect on {formula}",
)
SATURATED = Claim(
    "is_saturated",
    "The model is saturated (each combination of context values has its own effect), so the weights do "
    "not change the estimand.",
    "note",
)
BEST_APPROXIMATION = Claim(
    "is_best_approximation",
    "The estimand is the best linear approximation to the conditional average treatment effect, with "
    "respect to the empirical distribution of contexts.",
    "note",
)
T_LAW_NEEDS = Claim(
    "rests_on_t_law",
    "The t approximation requires propensities that converge or are bounded away from 0.",
    "note",
)
DEGREES = Claim(
    "is_projection",
    "Inference on each coefficient uses Student's t distribution, with degrees of freedom determined by "
    "the smaller of the two arms' effective sample sizes.",
    "note",
)
LOW_PROPENSITIES = Claim(
    "low_propensities",
    "Propensities are as low as {least:.2g}, so a few rounds carry much of the weight and intervals may "
    "undercover. An accurate outcome model (outcome=) reduces the influence of these rounds.",
    "note",
)
BARE_COLUMN = Claim(
    "bare_columns",
    "{name}: one arm was never observed in rounds in which this indicator is 1, so the coefficient "
    "relies on the outcome model, and its standard error is too small.",
    "note",
)
ALONE_BY_HC = Claim(
    "inference.effects.projections.weighted_projection.standard_errors",
    "HC2 and HC3 cannot be computed, because the following rounds (numbered from 0) have leverage 1: "
    "{rounds}. HC0 and HC1 remain available.",
    "missing",
)
FEW_ROUNDS = Claim(
    "inference.effects.projections.weighted_projection.standard_errors",
    "With {n} rounds and {columns} coefficients, no degrees of freedom remain for standard errors.",
    "missing",
)
NO_SPREAD = Claim(
    "inference.effects.projections.weighted_projection.standard_errors",
    "Standard errors cannot be given, because the scores have no residual variation.",
    "missing",
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
"""Statements about a fit, in the order in which its table shows them."""
