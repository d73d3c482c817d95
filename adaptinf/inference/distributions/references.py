"""Reference distributions: one object computes both p-values and intervals, so that they always agree.

Everything is computed on the log scale. A p-value that will be corrected for adaptivity must be accurate far
in the tail, where the probability itself would underflow.

References
----------
Clopper, Pearson (1934), "The use of confidence or fiducial limits illustrated in the case of the
binomial". Welch (1947), "The generalization of 'Student's' problem when several different
population variances are involved".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from adaptinf.errors import ParameterError
from adaptinf.inference.distributions.tails import (
    LOG_2,
    binomial_limits,
    log_binomial_tails,
    log_normal_tail,
    log_student_pvalue,
    normal_quantile,
    student_quantile,
)
from adaptinf.typing import BoolArray, FloatArray

_LARGE = 1e300


@runtime_checkable
class Reference(Protocol):
    """The distribution behind the p-values and intervals for k terms.

    ``log_pvalues(null) <= log_alpha`` holds if and only if ``interval(log_alpha)`` excludes the null.
    """

    @property
    def name(self) -> str:
        """Name of the distribution."""

    @property
    def exact(self) -> bool:
        """Whether the p-values hold in finite samples."""

    @property
    def statistic(self) -> str:
        """Letter of the statistic in tables, "z" or "t"."""

    @property
    def normal(self) -> bool:
        """Whether the distribution is normal, with the displayed standard errors."""

    @property
    def uses_std_error(self) -> bool:
        """Whether p-values and intervals are computed from the displayed standard errors."""

    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logarithms of the two-sided p-values, shape (k,)."""

    def interval(self, log_alpha: float) -> FloatArray:
        """Intervals at level 1 - exp(log_alpha), shape (k, 2); rows without an interval are NaN."""


@runtime_checkable
class AdjustedReference(Protocol):
    """A reference whose tests do not use the displayed estimates and standard errors."""

    def statistics(self, null: float) -> FloatArray:
        """Distances from the null in standard errors, shape (k,)."""


class EnclosedReference:
    """Base class of references that can bound their intervals without computing them.

    This is a class and not a protocol, because it is checked in every fit, and checking a protocol is slow.
    """

    __slots__ = ()

    def enclosure(self, log_alpha: float) -> FloatArray:
        """Bounds on the intervals at level 1 - exp(log_alpha), which may be infinite; shape (k, 2)."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, eq=False)
class NormalReference:
    """Two-sided normal tests and intervals.

    The tests are asymptotic, and not reliable far in the tail.
    """

    estimate: FloatArray
    std_error: FloatArray
    name: str = field(default="normal", init=False)
    exact: bool = field(default=False, init=False)
    statistic, normal, uses_std_error = "z", True, True

    def __post_init__(self) -> None:
        _store(self, estimate=self.estimate, std_error=_usable(self.std_error))

    @np.errstate(under="ignore")
    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logarithms of the two-sided p-values, shape (k,)."""
        z = (self.estimate - null) / self.std_error
        return np.asarray(np.minimum(0.0, LOG_2 + log_normal_tail(z)), dtype=float)

    @np.errstate(under="ignore")
    def interval(self, log_alpha: float) -> FloatArray:
        """Intervals at level 1 - exp(log_alpha), shape (k, 2)."""
        return _symmetric(self.estimate, self.std_error, normal_quantile(log_alpha - LOG_2))


@dataclass(frozen=True, slots=True, eq=False)
class StudentReference:
    """Two-sided t tests and intervals.

    The tests are exact for normal rewards with equal variance within an arm, and otherwise asymptotic.
    """

    estimate: FloatArray
    std_error: FloatArray
    df: FloatArray
    name: str = field(default="t", init=False)
    exact: bool = field(default=False, init=False)
    statistic, normal, uses_std_error = "t", False, True

    def __post_init__(self) -> None:
        _store(self, estimate=self.estimate, std_error=_usable(self.std_error), df=self.df)

    @np.errstate(under="ignore")
    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logarithms of the two-sided p-values, shape (k,)."""
        t = (self.estimate - null) / self.std_error
        return log_student_pvalue(t, self.df)

    @np.errstate(under="ignore")
    def interval(self, log_alpha: float) -> FloatArray:
        """Intervals at level 1 - exp(log_alpha), shape (k, 2)."""
        return _symmetric(self.estimate, self.std_error, student_quantile(log_alpha - LOG_2, self.df))


@dataclass(frozen=True, slots=True, eq=False)
class BinomialReference:
    """Central exact tests of success rates, with Clopper-Pearson intervals.

    The p-value is twice the smaller tail, but at most 1. The p-value is at most alpha if and only if the
    Clopper-Pearson interval excludes the null. The intervals are exact for independent binary rewards, given
    the action history.
    """

    successes: FloatArray
    trials: FloatArray
    name: str = field(default="binomial (exact)", init=False)
    exact: bool = field(default=True, init=False)
    statistic, normal, uses_std_error = "z", False, False

    def __post_init__(self) -> None:
        _store(self, successes=self.successes, trials=self.trials)
        _check_counts("BinomialReference", self.successes, self.trials)

    @np.errstate(under="ignore")
    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logarithms of the two-sided p-values, shape (k,)."""
        at_most, at_least = log_binomial_tails(self.successes, self.trials, null)
        return np.asarray(np.minimum(0.0, LOG_2 + np.minimum(at_most, at_least)), dtype=float)

    @np.errstate(under="ignore")
    def interval(self, log_alpha: float) -> FloatArray:
        """Intervals at level 1 - exp(log_alpha), shape (k, 2)."""
        return np.column_stack(binomial_limits(self.successes, self.trials, log_alpha - LOG_2))


@dataclass(frozen=True, slots=True, eq=False)
class _OfAnother:
    """A distribution that is derived from another one."""

    inner: Reference

    @property
    def name(self) -> str:
        """Name of the distribution."""
        return self.inner.name

    @property
    def exact(self) -> bool:
        """Whether the p-values hold in finite samples."""
        return self.inner.exact

    @property
    def statistic(self) -> str:
        """Letter of the statistic in tables."""
        return self.inner.statistic

    @property
    def normal(self) -> bool:
        """Whether the distribution is normal, with the displayed standard errors."""
        return self.inner.normal

    @property
    def uses_std_error(self) -> bool:
        """Whether p-values and intervals are computed from the displayed standard errors."""
        return self.inner.uses_std_error


@dataclass(frozen=True, slots=True, eq=False)
class RecodedReference(_OfAnother):
    """A distribution for rewards of 0 or 1, applied to rewards that take two other values.

    The mean of rewards a and b is a + (b - a) times the mean of rewards 0 and 1; for differences of means,
    the origin is 0.
    """

    origin: float
    step: float

    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logarithms of the two-sided p-values, shape (k,)."""
        return self.inner.log_pvalues((null - self.origin) / self.step)

    def interval(self, log_alpha: float) -> FloatArray:
        """Intervals at level 1 - exp(log_alpha), shape (k, 2)."""
        return np.asarray(self.origin + self.step * self.inner.interval(log_alpha), dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class PartialReference(_OfAnother):
    """A distribution without results for the terms that are hidden; hidden has shape (k,)."""

    hidden: BoolArray

    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logarithms of the two-sided p-values, shape (k,)."""
        return np.where(self.hidden, np.nan, self.inner.log_pvalues(null))

    def interval(self, log_alpha: float) -> FloatArray:
        """Intervals at level 1 - exp(log_alpha), shape (k, 2)."""
        return np.where(self.hidden[:, None], np.nan, self.inner.interval(log_alpha))


def recoded(reference: Reference, origin: float, step: float) -> Reference:
    """The distribution itself if rewards are 0 or 1; otherwise, the distribution adapted to their coding."""
    return reference if (origin, step) == (0.0, 1.0) else RecodedReference(reference, origin, step)


def _symmetric(estimate: FloatArray, std_error: FloatArray, quantile: float | FloatArray) -> FloatArray:
    half = quantile * std_error
    return np.column_stack((estimate - half, estimate + half))


def _usable(std_error: FloatArray) -> FloatArray:
    size = np.asarray(std_error, dtype=float)
    return np.where((size > 0) & np.isfinite(size), size, np.nan)


def _store(reference: object, **arrays: FloatArray) -> None:
    """Store float arrays, broadcast to a common shape (k,) and read-only, in a frozen reference."""
    shaped = [np.array(x, dtype=float, ndmin=1) for x in arrays.values()]
    if any(one.shape != shaped[0].shape for one in shaped):
        shaped = [one.copy() for one in np.broadcast_arrays(*shaped)]
    for name, own in zip(arrays, shaped, strict=True):
        own.setflags(write=False)
        object.__setattr__(reference, name, own)


def _check_counts(subject: str, successes: FloatArray, trials: FloatArray) -> None:
    whole = (successes == np.floor(successes)) & (trials == np.floor(trials))
    if not np.all(whole & (successes >= 0) & (successes <= trials)):
        raise ParameterError(subject, ["successes and trials must be counts with 0 <= successes <= trials"])


@dataclass(frozen=True, slots=True, eq=False)
class EndsReference:
    """Two-sided tests and intervals that are valid wherever the truth lies between two estimates.

    The interval extends from the lower limit of the lowest estimate to the upper limit of the highest one.
    Each limit fails with half of the error probability, so the interval covers every value between the ends
    with at least its level. The p-value of a null between the two estimates is 1, and that of any other null
    is the p-value for the nearer estimate.

    Shapes: lowest, highest, and their standard errors (k,).
    """

    lowest: FloatArray
    highest: FloatArray
    lowest_error: FloatArray
    highest_error: FloatArray
    low: Reference
    high: Reference
    normal = uses_std_error = False

    @property
    def name(self) -> str:
        """Name of the distribution."""
        return f"{self.low.name} at both ends"

    @property
    def exact(self) -> bool:
        """Whether the p-values hold in finite samples."""
        return self.low.exact and self.high.exact

    @property
    def statistic(self) -> str:
        """Letter of the statistic in tables."""
        return self.low.statistic

    def statistics(self, null: float) -> FloatArray:
        """Distances of the nearer end from the null in standard errors, or 0 between the ends; shape (k,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            below = (self.lowest - null) / self.lowest_error
            above = (self.highest - null) / self.highest_error
        return np.where(null < self.lowest, below, np.where(null > self.highest, above, 0.0))

    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logarithms of the two-sided p-values, shape (k,)."""
        low, high = self.low.log_pvalues(null), self.high.log_pvalues(null)
        within = np.where(np.isnan(low) | np.isnan(high), np.nan, 0.0)
        return np.where(null < self.lowest, low, np.where(null > self.highest, high, within))

    def interval(self, log_alpha: float) -> FloatArray:
        """Intervals at level 1 - exp(log_alpha), shape (k, 2)."""
        return np.column_stack((self.low.interval(log_alpha)[:, 0], self.high.interval(log_alpha)[:, 1]))


@dataclass(frozen=True, slots=True, eq=False)
class JoinedReference:
    """The distributions of k separate terms; estimate, std_error and df have shape (k,).

    `df` contains their degrees of freedom, infinite if a distribution has none.
    """

    parts: tuple[Reference, ...]
    estimate: FloatArray
    std_error: FloatArray
    df: FloatArray

    @property
    def name(self) -> str:
        """Names of the distributions, each of which appears once."""
        return ", ".join(dict.fromkeys(part.name for part in self.parts))

    @property
    def exact(self) -> bool:
        """Whether all p-values hold in finite samples."""
        return all(part.exact for part in self.parts)

    @property
    def statistic(self) -> str:
        """Letter of the statistic in tables."""
        return "z" if all(part.statistic == "z" for part in self.parts) else "t"

    @property
    def normal(self) -> bool:
        """Whether the distributions of all parts are normal, with the displayed standard errors."""
        return all(part.normal for part in self.parts)

    @property
    def uses_std_error(self) -> bool:
        """Whether p-values and intervals are computed from the displayed standard errors."""
        return all(part.uses_std_error for part in self.parts)

    def statistics(self, null: float) -> FloatArray:
        """Distances from the null in standard errors, shape (k,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(self.std_error > 0.0, (self.estimate - null) / self.std_error, np.nan)
        for place, part in enumerate(self.parts):
            if isinstance(part, AdjustedReference):
                found[place] = part.statistics(null)[0]
        return found

    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logarithms of the two-sided p-values, shape (k,)."""
        return np.concatenate([part.log_pvalues(null) for part in self.parts])

    def interval(self, log_alpha: float) -> FloatArray:
        """Intervals at level 1 - exp(log_alpha), shape (k, 2)."""
        return np.concatenate([part.interval(log_alpha) for part in self.parts])


def joined(parts: Sequence[Reference], estimate: FloatArray, std_error: FloatArray) -> Reference:
    """One reference for k terms, from a reference for each; estimate and std_error have shape (k,)."""
    if all(isinstance(part, NormalReference) for part in parts):
        return NormalReference(estimate, std_error)
    df = np.array([_freedom(part) for part in parts])
    if all(isinstance(part, StudentReference) for part in parts):
        return StudentReference(estimate, std_error, df)
    return JoinedReference(tuple(parts), np.asarray(estimate), np.asarray(std_error), df)


def _freedom(part: Reference) -> float:
    """Degrees of freedom of a term's distribution, or of the underlying one; infinite if it has none."""
    inner = part.inner if isinstance(part, RecodedReference) else part
    df = getattr(inner, "df", None)
    return np.inf if df is None else float(np.ravel(df)[0])
