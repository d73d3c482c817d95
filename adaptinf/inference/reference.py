"""Reference distributions: one object gives p-values and intervals, so they never disagree.

Everything is computed in logs. A p-value that will be corrected for adaptivity has to be right far
out in the tail, where the probability itself underflows.

References
----------
Clopper, Pearson (1934), "The use of confidence or fiducial limits illustrated in the case of the
binomial". Welch (1947), "The generalization of 'Student's' problem when several different
population variances are involved".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from scipy.optimize import elementwise

from adaptinf.errors import ParameterError
from adaptinf.inference.tails import (
    binomial_limits,
    log_binomial_tails,
    log_normal_tail,
    log_student_tail,
    normal_quantile,
    student_quantile,
)
from adaptinf.typing import FloatArray

__all__ = [
    "BinomialDifferenceReference",
    "BinomialReference",
    "NormalReference",
    "Reference",
    "StudentReference",
]

_LOG_2 = float(np.log(2.0))
_LOG_4 = float(np.log(4.0))
_LARGE = 1e300
_MAX_ROOT = 300
_ABOVE_MINUS_ONE = float(np.nextafter(-1.0, 0.0))


@runtime_checkable
class Reference(Protocol):
    """The distribution behind the p-values and intervals of k terms.

    Attributes
    ----------
    name : str
        Shown in tables, such as ``"normal"`` or ``"binomial (exact)"``.
    exact : bool
        Whether the p-values are valid in finite samples for every fixed action history.

    Notes
    -----
    ``log_pvalues(null) <= log_alpha`` holds exactly when ``interval(log_alpha)`` excludes the null.
    """

    @property
    def name(self) -> str:
        """Name of the distribution."""

    @property
    def exact(self) -> bool:
        """Whether the p-values hold in finite samples."""

    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logs of the two-sided p-values, shape (k,)."""

    def interval(self, log_alpha: float) -> FloatArray:
        """Intervals at level 1 - exp(log_alpha), shape (k, 2); NaN rows where there is none."""


@dataclass(frozen=True, slots=True, eq=False)
class NormalReference:
    """Two-sided normal tests and intervals.

    Parameters
    ----------
    estimate, std_error : ndarray
        Shape (k,). A term whose standard error is not positive and finite gets NaN.

    Notes
    -----
    Asymptotic: not to be trusted far out in the tail.

    Examples
    --------
    >>> reference = NormalReference(np.array([1.96]), np.array([1.0]))
    >>> float(np.exp(reference.log_pvalues(0.0))[0].round(4))
    0.05
    """

    estimate: FloatArray
    std_error: FloatArray
    name: str = field(default="normal", init=False)
    exact: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        _store(self, estimate=self.estimate, std_error=_usable(self.std_error))

    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logs of the two-sided p-values, shape (k,)."""
        z = (self.estimate - null) / self.std_error
        return np.asarray(np.minimum(0.0, _LOG_2 + log_normal_tail(z)), dtype=float)

    def interval(self, log_alpha: float) -> FloatArray:
        """Intervals at level 1 - exp(log_alpha), shape (k, 2)."""
        return _symmetric(self.estimate, self.std_error, normal_quantile(log_alpha - _LOG_2))


@dataclass(frozen=True, slots=True, eq=False)
class StudentReference:
    """Two-sided t-tests and intervals.

    Parameters
    ----------
    estimate, std_error, df : ndarray
        Shape (k,). A term whose standard error or degrees of freedom are not positive gets NaN.

    Notes
    -----
    Exact for normal rewards of equal variance within an arm; asymptotic otherwise.

    Examples
    --------
    >>> reference = StudentReference(np.array([2.0]), np.array([1.0]), np.array([10.0]))
    >>> reference.interval(float(np.log(0.05))).round(4)
    array([[-0.2281,  4.2281]])
    """

    estimate: FloatArray
    std_error: FloatArray
    df: FloatArray
    name: str = field(default="t", init=False)
    exact: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        _store(self, estimate=self.estimate, std_error=_usable(self.std_error), df=self.df)

    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logs of the two-sided p-values, shape (k,)."""
        t = (self.estimate - null) / self.std_error
        return np.asarray(np.minimum(0.0, _LOG_2 + log_student_tail(t, self.df)), dtype=float)

    def interval(self, log_alpha: float) -> FloatArray:
        """Intervals at level 1 - exp(log_alpha), shape (k, 2)."""
        return _symmetric(self.estimate, self.std_error, student_quantile(log_alpha - _LOG_2, self.df))


@dataclass(frozen=True, slots=True, eq=False)
class BinomialReference:
    """Central exact tests of success rates, with Clopper-Pearson intervals.

    Parameters
    ----------
    successes, trials : ndarray
        Counts, shape (k,); without trials a term gets NaN.

    Notes
    -----
    The p-value is twice the smaller tail, capped at 1, so that it is at most alpha exactly when the
    Clopper-Pearson interval excludes the null. Exact for independent binary rewards, given the
    action history.

    Examples
    --------
    >>> reference = BinomialReference(np.array([8]), np.array([10]))
    >>> reference.interval(float(np.log(0.05))).round(4)
    array([[0.4439, 0.9748]])
    >>> float(np.exp(reference.log_pvalues(0.5))[0].round(6))
    0.109375
    """

    successes: FloatArray
    trials: FloatArray
    name: str = field(default="binomial (exact)", init=False)
    exact: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        _store(self, successes=self.successes, trials=self.trials)
        _check_counts("BinomialReference", self.successes, self.trials)

    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logs of the two-sided p-values, shape (k,)."""
        at_most, at_least = log_binomial_tails(self.successes, self.trials, null)
        return np.asarray(np.minimum(0.0, _LOG_2 + np.minimum(at_most, at_least)), dtype=float)

    def interval(self, log_alpha: float) -> FloatArray:
        """Intervals at level 1 - exp(log_alpha), shape (k, 2)."""
        return np.column_stack(binomial_limits(self.successes, self.trials, log_alpha - _LOG_2))


@dataclass(frozen=True, slots=True, eq=False)
class BinomialDifferenceReference:
    """Exact tests and intervals of a difference of two success rates.

    Parameters
    ----------
    successes, trials : ndarray
        Counts of the first arm, shape (k,).
    control_successes, control_trials : ndarray
        Counts of the arm that is subtracted, shape (k,).

    Notes
    -----
    The interval at level 1 - alpha subtracts two Clopper-Pearson intervals at alpha/2 each; the
    p-value is the smallest alpha whose interval excludes the null. Conservative, but valid for every
    fixed action history and at every alpha, however small.

    Examples
    --------
    >>> reference = BinomialDifferenceReference(*(np.array([x]) for x in (45, 50, 20, 50)))
    >>> reference.interval(float(np.log(0.05))).round(3)
    array([[0.196, 0.725]])
    """

    successes: FloatArray
    trials: FloatArray
    control_successes: FloatArray
    control_trials: FloatArray
    name: str = field(default="binomial difference (exact)", init=False)
    exact: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        _store(
            self,
            successes=self.successes,
            trials=self.trials,
            control_successes=self.control_successes,
            control_trials=self.control_trials,
        )
        subject = "BinomialDifferenceReference"
        _check_counts(subject, self.successes, self.trials)
        _check_counts(subject, self.control_successes, self.control_trials)

    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logs of the two-sided p-values, shape (k,)."""
        first = (self.successes, self.trials)
        second = (self.control_successes, self.control_trials)
        # A null above the interval is the mirror image of one below it, with the arms exchanged.
        below = _log_worst_tail(*first, *second, null)
        above = _log_worst_tail(*second, *first, -null)
        return np.asarray(np.minimum(0.0, _LOG_4 + np.minimum(below, above)), dtype=float)

    def interval(self, log_alpha: float) -> FloatArray:
        """Intervals at level 1 - exp(log_alpha), shape (k, 2)."""
        low, high = binomial_limits(self.successes, self.trials, log_alpha - _LOG_4)
        control_low, control_high = binomial_limits(
            self.control_successes, self.control_trials, log_alpha - _LOG_4
        )
        lower, upper = low - control_high, high - control_low
        # Rounding must not let a difference of -1 or 1 that the counts exclude back into the interval.
        lower = np.where((low > 0.0) | (control_high < 1.0), np.maximum(lower, _ABOVE_MINUS_ONE), lower)
        upper = np.where((high < 1.0) | (control_low > 0.0), np.minimum(upper, -_ABOVE_MINUS_ONE), upper)
        return np.column_stack((lower, upper))


def _log_worst_tail(
    successes: FloatArray,
    trials: FloatArray,
    control_successes: FloatArray,
    control_trials: FloatArray,
    null: float,
) -> FloatArray:
    """Largest, over rates that differ by the null, of the smaller of two opposite tails.

    The first arm's lower limit and the second arm's upper limit, each with tail probability q, are
    exactly `null` apart where P(X >= successes) and P(Y <= control_successes) both equal q; the
    first grows and the second falls as the rates move up together.
    """
    counts = (successes, trials, control_successes, control_trials)

    def tails(rate: FloatArray, *counts: FloatArray) -> tuple[FloatArray, FloatArray]:
        at_least = log_binomial_tails(counts[0], counts[1], rate + null)[1]
        at_most = log_binomial_tails(counts[2], counts[3], rate)[0]
        return at_least, at_most

    def gap(rate: FloatArray, *counts: FloatArray) -> FloatArray:
        at_least, at_most = tails(rate, *counts)
        return np.clip(at_least - at_most, -_LARGE, _LARGE)

    if abs(null) > 1.0:
        return np.where((trials >= 1) & (control_trials >= 1), -np.inf, np.nan)
    low = np.full(successes.shape, max(0.0, -null))
    high = np.full(successes.shape, min(1.0, 1.0 - null))
    with np.errstate(invalid="ignore"):
        found = elementwise.find_root(
            gap,
            (low, high),
            args=counts,
            tolerances={"xatol": 0.0, "xrtol": 4e-16, "fatol": 1e-13, "frtol": 0.0},
            maxiter=_MAX_ROOT,
        )
        # All are lower bounds, and one is right even where a float cannot tell the rates apart.
        candidates = [np.minimum(*tails(rate, *counts)) for rate in (low, high, found.x, *found.bracket)]
    worst = np.fmax.reduce(candidates)
    return np.asarray(np.where((trials >= 1) & (control_trials >= 1), worst, np.nan), dtype=float)


def _symmetric(estimate: FloatArray, std_error: FloatArray, quantile: float | FloatArray) -> FloatArray:
    half = quantile * std_error
    return np.column_stack((estimate - half, estimate + half))


def _usable(std_error: FloatArray) -> FloatArray:
    size = np.asarray(std_error, dtype=float)
    return np.where((size > 0) & np.isfinite(size), size, np.nan)


def _store(reference: object, **arrays: FloatArray) -> None:
    """Set read-only float arrays of one common shape (k,) on a frozen reference."""
    shaped = np.broadcast_arrays(*(np.atleast_1d(np.asarray(x, dtype=float)) for x in arrays.values()))
    for name, values in zip(arrays, shaped, strict=True):
        own = values.copy()
        own.setflags(write=False)
        object.__setattr__(reference, name, own)


def _check_counts(subject: str, successes: FloatArray, trials: FloatArray) -> None:
    whole = (successes == np.floor(successes)) & (trials == np.floor(trials))
    if not np.all(whole & (successes >= 0) & (successes <= trials)):
        raise ParameterError(subject, ["successes and trials must be counts with 0 <= successes <= trials"])
