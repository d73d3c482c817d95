"""Claims about ordinary least squares, uncorrected or corrected by the log's privacy guarantee."""

from __future__ import annotations

from adaptinf.claims import contexts
from adaptinf.claims.arms.sample_means import NOTHING_TO_CORRECT, UNCORRECTED
from adaptinf.claims.claim import Claim, Part
from adaptinf.claims.logs.statements import NOT_ADAPTIVE
from adaptinf.claims.regression import regressions
from adaptinf.claims.stationarity import ONLY_SHARES_MOVED

NONE_REASONS = (Part("nothing_adapted", "reason"),)
CORRECTED_REASONS = (
    Claim(
        "affordable",
        "the log's privacy guarantee permits a correction for adaptivity, and corrected intervals are "
        "{ratio:.2g} times as wide as uncorrected intervals",
        "reason",
    ),
)
CORRECTED_NEEDS = (
    NOTHING_TO_CORRECT,
    Part("no_correction", "needs"),
)
ONLY_CLASSICAL = Claim(
    "inference.regression.adaptive_ols._check_for",
    "the max-information correction requires p-values that are accurate in the extreme tails for every "
    "fixed sequence of actions; only the classical covariance estimator with homoskedastic normal "
    "errors gives such p-values",
    "reason",
)
PLAIN_IS_VALID = Claim(
    "inference.regression.plain_regression._fit_corrected",
    "ordinary least squares without adjustment (adjustment='none')",
    "advice",
)

NAIVE_BASELINE = Claim(
    "naive",
    "Ordinary least squares ignores adaptive data collection and serves only as a naive baseline; its "
    "p-values and confidence intervals are not valid.",
    "note",
)
NONE_SAYS = (
    Part("propensities_right", "assumes"),
    NOT_ADAPTIVE,
    Part("contexts_fixed", "assumes"),
    Part("contexts_without_part", "assumes"),
    Part("constant_coefficients", "assumes"),
    Claim("nothing_due", "Least squares needs no correction, because {why}.", "note"),
    ONLY_SHARES_MOVED,
    Claim(
        "stable",
        "{design} is adaptive but stable ({condition}; {source}), so least-squares estimates are "
        "asymptotically normal.",
        "note",
    ),
    NAIVE_BASELINE,
    Claim(
        "selected_naively",
        "The arm was selected using rewards, and this regression ignores the selection.",
        "note",
    ),
    Claim(
        "unnamed_design",
        "No design is specified, so assignment is treated as adaptive.",
        "note",
    ),
    UNCORRECTED,
    Claim(
        "correction_available",
        "For corrected inference, set adjustment='max-information'.",
        "note",
    ),
)
BINARY = Claim(
    "binary",
    "Rewards are binary, so errors are neither normal nor homoskedastic, and inference from t and F "
    "distributions is only approximate.",
    "note",
)
BOUNDED = Claim(
    "bounded",
    "Rewards lie between {low:g} and {high:g}, so errors cannot be normal, and t and F tests are "
    "approximations.",
    "note",
)
CORRECTED_SAYS = (
    contexts.NOT_BY_PAST,
    regressions.NORMAL,
    Claim(
        "corrected",
        "Uncorrected results ignore adaptive data collection. Corrected results account for adaptivity and "
        "for choices of arm, formula or test based on {read}, but not for choices based on rewards.",
        "note",
    ),
    Claim("always", "With normal errors and fixed actions, t and F inference is exact.", "note"),
    Claim(
        "recommended",
        "The correction is based on all rounds, because the recommended arm may depend on every reward.",
        "note",
    ),
    BINARY,
    BOUNDED,
)
COVARIANCE = (
    Claim(
        "classical",
        "Standard errors are classical and assume equal error variances; tests use the t and F "
        "distributions.",
        "note",
        short="classical standard errors",
    ),
    Claim(
        "by_cluster",
        "The covariance estimator is cluster-robust ({units} units). Tests use G - 1 degrees of freedom, "
        "where G is the number of units, and are accurate only with many units.",
        "note",
        short="errors clustered by unit",
    ),
    Claim(
        "bias_reduced",
        "CR2 standard errors allow for correlation within units ({units} units). The t tests use "
        "Satterthwaite degrees of freedom; joint tests are approximate Hotelling T-squared (AHT) tests.",
        "note",
        short="CR2 errors by unit",
    ),
    Claim(
        "robust",
        "The {kind} covariance estimator allows for unequal error variances; t and F tests are approximate.",
        "note",
        short="{kind} standard errors",
    ),
)
NO_RESIDUAL = Claim(
    "no_residual",
    "Standard errors require more rounds than columns in the design matrix ({n} rounds, {p} columns).",
    "missing",
)
EQUAL_REWARDS = Claim(
    "constant", "Standard errors are undefined, because all rewards in the regression are equal.", "missing"
)
EXACT_FIT = Claim("exact_fit", "The fit is exact, so standard errors are undefined.", "missing")
ONE_UNIT = Claim("one_unit", "Clustered standard errors are undefined with a single unit.", "missing")
DECIDED_ALONE = Claim(
    "decided_alone",
    "Leverage is 1 in {rounds} of the rounds, so the {kind} covariance matrix is undefined. HC0, HC1 "
    "and classical standard errors are available.",
    "missing",
)
NO_ERRORS = (NO_RESIDUAL, EQUAL_REWARDS, EXACT_FIT, ONE_UNIT, DECIDED_ALONE)
"""Why there are no standard errors; only the first true claim is stated."""
DECIDED_BY_A_UNIT = Claim(
    "decided_by_a_unit",
    "The standard errors of {terms} are omitted, because each of these coefficients is determined by a "
    "single unit.",
    "missing",
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
