"""What is said of plain least squares, as it is or corrected by the log's privacy guarantee."""

from __future__ import annotations

from adaptinf.claims import contexts
from adaptinf.claims.claim import Claim, Part
from adaptinf.claims.regression import regressions
from adaptinf.claims.sample_means import UNCORRECTED

# Why it is the default

NONE_REASONS = (Part("nothing_adapted", "reason"),)
CORRECTED_REASONS = (
    Claim(
        "affordable",
        "the log's guarantee allows it, and its intervals are {ratio:.2g} times as long as uncorrected ones",
        "reason",
    ),
)
NOTHING_TO_CORRECT = Claim("nothing_to_correct", "none is due: {why}", "needs")
CORRECTED_NEEDS = (
    NOTHING_TO_CORRECT,
    Part("no_correction", "needs"),
)
ONLY_CLASSICAL = Claim(
    "inference.regression.models._check_for",
    "the correction needs p-values that are accurate far out in the tails for every fixed sequence of "
    "actions, and with normal errors of one variance only classical ones are",
    "reason",
)
PLAIN_IS_VALID = Claim(
    "inference.regression.plain._fit_corrected", "adjustment='none', which is valid here", "advice"
)

# What its table says

NAIVE_BASELINE = Claim("naive", "Least squares: a naive baseline, not valid under adaptivity.", "note")
NONE_SAYS = (
    Part("contexts_fixed", "assumes"),
    Part("contexts_without_part", "assumes"),
    Part("constant_coefficients", "assumes"),
    Claim("nothing_due", "Least squares: {why}; no correction is due.", "note"),
    Claim(
        "stable",
        "Least squares: {design} adapts but is known to be stable ({condition}; {source}), so that estimates "
        "are asymptotically normal.",
        "note",
    ),
    NAIVE_BASELINE,
    Claim("selected_naively", "Its rounds are those of an arm that rewards helped to select.", "note"),
    Claim("unnamed_design", "The log names no design, and is therefore treated as adaptive.", "note"),
    UNCORRECTED,
    Claim("correction_available", "adjustment='max-information' would add corrected columns.", "note"),
)
BINARY = Claim(
    "binary",
    "The rewards are all 0 or 1: not normal, and of unequal variances unless the coefficients are 0, so that "
    "t and F are approximations.",
    "note",
)
BOUNDED = Claim(
    "bounded",
    "Rewards between {low:g} and {high:g} are not normal, which makes t and F approximations.",
    "note",
)
CORRECTED_SAYS = (
    contexts.NOT_BY_PAST,
    regressions.NORMAL,
    Claim(
        "corrected",
        "Least squares: the uncorrected numbers ignore adaptivity. The corrected ones account for it, and "
        "for a choice of arm, formula and test from {read}, but not from rewards.",
        "note",
    ),
    Claim("always", "With normal errors t and F are exact where actions are fixed.", "note"),
    Claim(
        "recommended",
        "The correction counts all rounds, as the recommended arm may depend on every reward.",
        "note",
    ),
    BINARY,
    BOUNDED,
)
COVARIANCE = (
    Claim("classical", "Classical covariance: equal error variances; t and F tests.", "note"),
    Claim(
        "by_cluster",
        "Covariance by unit ({units} units): errors may be dependent within units; t and F tests with G - 1 "
        "degrees of freedom, an approximation for many units.",
        "note",
    ),
    Claim(
        "bias_reduced",
        "Covariance CR2 by unit ({units} units), which allows for dependence within units; t tests by "
        "Satterthwaite's degrees of freedom, fewer for few or uneven units, and Hotelling's F.",
        "note",
    ),
    Claim("robust", "{kind} covariance: error variances may differ; t and F tests are approximate.", "note"),
)
NO_RESIDUAL = Claim("no_residual", "No standard errors: {p} columns need more than {n} rounds.", "note")
EQUAL_REWARDS = Claim("constant", "No standard errors: all rewards used are equal.", "note")
EXACT_FIT = Claim("exact_fit", "No standard errors: the fit is perfect.", "note")
ONE_UNIT = Claim("one_unit", "No standard errors: all rounds are of one unit.", "note")
DECIDED_ALONE = Claim(
    "decided_alone",
    "No standard errors: {kind} divides by 0, as {rounds} rounds have leverage 1 (each determines a "
    "coefficient on its own); HC0, HC1 and classical are defined.",
    "note",
)
NO_ERRORS = (NO_RESIDUAL, EQUAL_REWARDS, EXACT_FIT, ONE_UNIT, DECIDED_ALONE)
"""Why there are no standard errors; the first that is so is said."""
DECIDED_BY_A_UNIT = Claim(
    "decided_by_a_unit", "No standard error of {terms}: the rounds of a single unit determine it.", "note"
)
_ERRORS = (*COVARIANCE, Part("no_errors", "note"), DECIDED_BY_A_UNIT)

NONE = (
    *regressions.HEAD,
    *NONE_SAYS,
    *_ERRORS,
    Part("shares_moved", "caution"),
    *regressions.RARE,
    *regressions.UNITS,
)
MAX_INFORMATION = (
    *regressions.HEAD,
    *CORRECTED_SAYS,
    *_ERRORS,
    regressions.MOVES,
    *regressions.RARE,
    *regressions.UNITS,
)
