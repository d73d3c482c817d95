"""What is said of plain least squares, as it is or corrected by the log's privacy guarantee."""

from __future__ import annotations

from adaptinf.claims.claim import Claim, Part
from adaptinf.claims.regression import regressions

# Why it is the default

NONE_REASONS = (Part("nothing_adapted", "reason"),)
CORRECTED_REASONS = (
    Claim(
        "affordable",
        "the log's guarantee licenses it, and its intervals are {ratio:.2g} times as long as uncorrected "
        "ones",
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
    "the correction needs p-values that are right far out in their tails for every fixed sequence of "
    "actions: those by the classical covariance are, for normal errors of one variance; sandwiches' are not",
    "reason",
)
PLAIN_IS_VALID = Claim(
    "inference.regression.plain._fit_corrected", "adjustment='none', which is valid here", "advice"
)

# What its table says

VALID = (
    Claim("nothing_due", "Least squares: {why}; no correction is due.", "note"),
    Claim(
        "nothing_due",
        "Assumes contexts that do not depend on earlier rewards or actions, and coefficients that stay "
        "the same.",
        "note",
    ),
)
STABLE = (
    Claim(
        "stable",
        "Least squares: the design adapts, but {design} is known to be stable ({condition}; {source}): "
        "normal over a long run.",
        "note",
    ),
    Claim(
        "stable",
        "Assumes contexts that do not depend on earlier rewards or actions and had no part in the choice of "
        "arms, and coefficients that stay the same.",
        "note",
    ),
)
NAIVE_BASELINE = Claim("naive", "Least squares: not valid under adaptivity; a naive baseline.", "note")
NAIVE = (
    NAIVE_BASELINE,
    Claim(
        "selected_naively",
        "The arm was selected as {selector!r}, by what the rewards had moved.",
        "note",
    ),
    Claim(
        "unnamed_design",
        "The log does not name its design, which is therefore taken to be adaptive.",
        "note",
    ),
    Claim("no_corrected_columns", "No corrected columns: {reason}.", "note"),
    Claim(
        "correction_available",
        "No corrected columns were asked for: adjustment='max-information' gives them.",
        "note",
    ),
)
BINARY = Claim(
    "binary",
    "The rewards are all 0 or 1: not normal, and of unequal variances wherever the coefficients are not "
    "0. The t and F laws are approximations here.",
    "note",
)
BOUNDED = Claim(
    "bounded",
    "Rewards between {low:g} and {high:g} are not normal: the t and F laws are approximations.",
    "note",
)
CORRECTED = (
    Claim(
        "corrected",
        "Least squares: not valid under adaptivity; the corrected columns account for it, and for a choice "
        "of arm, formula and test by actions and contexts{also}. They do not account for a choice by the "
        "rewards.",
        "note",
    ),
    Claim(
        "corrected",
        "Assumes contexts that do not depend on earlier rewards or actions, and independent normal errors "
        "of one variance: t and F are then exact for any fixed sequence of actions.",
        "note",
    ),
    Claim(
        "recommended",
        "The guarantee is taken to cover the arm that the design named, by all rounds.",
        "note",
    ),
    BINARY,
    BOUNDED,
)
COVARIANCE = (
    Claim("classical", "Covariance classical: errors of one variance; t and F tests.", "note"),
    Claim(
        "by_cluster",
        "Covariance by cluster, {units} units: errors may be dependent within a unit; t and F tests with "
        "G - 1 degrees of freedom, an approximation for many units.",
        "note",
    ),
    Claim(
        "bias_reduced",
        "Covariance CR2 by cluster, {units} units: errors may be dependent within a unit; t tests with "
        "Satterthwaite's degrees of freedom, fewer for few or uneven units, and Hotelling's F.",
        "note",
    ),
    Claim(
        "robust",
        "Covariance {kind}: errors may be of unequal variances; t and F tests, approximations.",
        "note",
    ),
)
NO_RESIDUAL = Claim("no_residual", "No standard errors: {n} rounds for {p} columns.", "note")
CONSTANT = Claim("constant", "No standard errors: the reward is the same in all rounds used.", "note")
EXACT_FIT = Claim("exact_fit", "No standard errors: the rewards do not vary about the fit.", "note")
ONE_UNIT = Claim("one_unit", "No standard errors: all rounds are of one unit.", "note")
DECIDED_ALONE = Claim(
    "decided_alone",
    "No standard errors: {rounds} rounds have leverage 1, where {kind} divides by 0 (each decides a "
    "coefficient alone); HC0, HC1 and classical are defined.",
    "note",
)
NO_ERRORS = (
    NO_RESIDUAL,
    CONSTANT,
    EXACT_FIT,
    ONE_UNIT,
    DECIDED_ALONE,
)
"""Why there are no standard errors; the first that is so is said."""
DECIDED_BY_A_UNIT = Claim(
    "decided_by_a_unit", "No standard error of {terms}: rounds of one unit alone decide it.", "note"
)
_ERRORS = (
    *COVARIANCE,
    Part("no_errors", "note"),
    DECIDED_BY_A_UNIT,
)

NONE = (
    *regressions.HEAD,
    *VALID,
    *STABLE,
    *NAIVE,
    *_ERRORS,
    Part("shares_moved", "caution"),
    *regressions.RARE,
    *regressions.UNITS,
)
MAX_INFORMATION = (
    *regressions.HEAD,
    *CORRECTED,
    *_ERRORS,
    regressions.MOVES,
    *regressions.RARE,
    *regressions.UNITS,
)
