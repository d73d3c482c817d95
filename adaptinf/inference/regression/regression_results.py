"""Results of `AdaptiveOLS`: coefficients, with t and F tests and the corrected forms of these."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from adaptinf.claims.logs.stopping import ELLIPSOID
from adaptinf.claims.regression import regressions as claims
from adaptinf.errors import InvalidForLog
from adaptinf.inference.corrections.information import Correction
from adaptinf.inference.distributions.references import Reference, StudentReference
from adaptinf.inference.distributions.tails import log_f_tail
from adaptinf.inference.regression.design import JointTests
from adaptinf.inference.regression.least_squares import ClusterFreedom
from adaptinf.inference.results.fit_results import Results
from adaptinf.inference.results.hypotheses import (
    LinearHypothesis,
    LinearTest,
    WaldTest,
    inference_columns,
    linear_hypothesis,
    linear_test,
    wald_statistic,
)
from adaptinf.inference.results.log_facts import USUAL
from adaptinf.inference.results.tables import format_pvalue, p_head
from adaptinf.log.report import Stopping
from adaptinf.parameters import check_alpha
from adaptinf.texts import visible_lines
from adaptinf.typing import FloatArray

_AT_ANY_LENGTH = ("anytime", "ellipsoid")
"""Adjustments that are valid at all rounds simultaneously."""


@dataclass(frozen=True, slots=True)
class FTest(WaldTest):
    """A joint test of linear restrictions, by the F distribution or, if `df_denom` is None, chi-squared.

    Attributes
    ----------
    statistic : float
        For chi-squared, the quadratic form of the violations in the inverse of their covariance. For F, this
        form divided by `df`.
    df : int
        Number of independent restrictions.
    log_pvalue : float
        Natural log of the p-value.
    hypothesis : tuple of str
        The restrictions.
    notes : tuple of str
        Notes on the test.
    df_denom : float or None
        Degrees of freedom of the denominator.
    correction : Correction or None
        The correction for adaptive collection, if one is needed.
    """

    df_denom: float | None = None
    correction: Correction | None = None

    @property
    def log_pvalue_corrected(self) -> float:
        """Natural log of the p-value corrected for adaptive collection.

        Raises
        ------
        InvalidForLog
            If no correction is needed.
        """
        return float(_due(self.correction).apply(self.log_pvalue))

    @property
    def pvalue_corrected(self) -> float:
        """P-value corrected for adaptive collection.

        Raises
        ------
        InvalidForLog
            If no correction is needed.
        """
        return math.exp(self.log_pvalue_corrected)

    def __str__(self) -> str:
        law = f"chi2({self.df})" if self.df_denom is None else f"F({self.df}, {self.df_denom:g})"
        letter = "chi2" if self.df_denom is None else "F"
        head = f"Wald test: {law} = {self.statistic:.4f}, P>{letter} = {format_pvalue(self.log_pvalue)}"
        if self.correction is not None:
            head += f", corrected {format_pvalue(self.log_pvalue_corrected)}"
        lines = [
            head,
            *(f"  H0: {label}" for label in self.hypothesis),
            *(f"  {note}" for note in self.notes),
        ]
        return visible_lines(lines)


@dataclass(frozen=True, slots=True, eq=False)
class CoefficientTest(LinearTest):
    """Separate tests of combinations of coefficients.

    Attributes
    ----------
    labels, effect, std_error, value, reference, notes, covariance
        As in `LinearTest`; if a correction is needed, `adjust` uses corrected p-values.
    correction : Correction or None
        The correction for adaptive collection, if one is needed.
    """

    correction: Correction | None = None

    @property
    @np.errstate(under="ignore")
    def pvalue_corrected(self) -> FloatArray:
        """P-values corrected for adaptive collection, shape (q,).

        Raises
        ------
        InvalidForLog
            If no correction is needed.
        """
        return np.exp(_due(self.correction).apply(self.reference.log_pvalues(0.0)))

    @np.errstate(under="ignore")
    def conf_int_corrected(self, alpha: float = 0.05) -> FloatArray:
        """Intervals corrected for adaptive collection, shape (q, 2).

        Parameters
        ----------
        alpha : float
            One minus the confidence level, between 0 and 0.5.

        Raises
        ------
        InvalidForLog
            If no correction is needed.
        """
        check_alpha("conf_int_corrected", alpha)
        level = _due(self.correction).level(math.log(alpha))
        return self.reference.interval(level) + self.value[:, None]

    @property
    def _single_logs(self) -> FloatArray:
        logs = self.reference.log_pvalues(0.0)
        return logs if self.correction is None else np.asarray(self.correction.apply(logs))

    def _family(self) -> tuple[Reference, Callable[[float], float], int]:
        if self.correction is not None:
            reason = claims.NO_JOINT_LAW()
            raise InvalidForLog(
                "simultaneous inference", reason, ["adjust('holm'), applied to corrected p-values"]
            )
        return LinearTest._family(self)

    def _columns(self) -> dict[str, list[str]]:
        columns = LinearTest._columns(self)
        if self.correction is None:
            return columns
        logs = np.asarray(self.correction.apply(self.reference.log_pvalues(0.0)))
        limits = self.conf_int_corrected(USUAL)
        return columns | inference_columns(p_head(self.reference), logs, limits, " corrected")

    def to_frame(self, alpha: float = 0.05) -> Any:
        """Return the frame of `LinearTest`, with corrected columns if a correction is needed.

        Parameters
        ----------
        alpha : float
            One minus the confidence level, between 0 and 0.5.
        """
        frame = LinearTest.to_frame(self, alpha)
        if self.correction is not None:
            limits = self.conf_int_corrected(alpha)
            frame["p_value_corrected"] = self.pvalue_corrected
            frame["conf_low_corrected"], frame["conf_high_corrected"] = limits[:, 0], limits[:, 1]
        return frame


@dataclass(frozen=True, slots=True, eq=False)
class CoefficientTests:
    """Tests of combinations of least-squares coefficients.

    Shapes: estimate (p,), covariance (p, p), back (p, p), df (p,) if coefficients differ in df.

    Combinations are computed from the centred coefficients, so that a prediction far from 0, for example,
    does not lose precision because of the offsets of the columns.
    """

    estimate: FloatArray
    covariance: FloatArray
    back: FloatArray
    df: float | FloatArray | ClusterFreedom | None = None
    correction: Correction | None = None
    rank: int | None = None

    def linear_test(self, hypothesis: LinearHypothesis, notes: tuple[str, ...]) -> CoefficientTest:
        """Separate tests of q combinations."""
        found = linear_test(self.estimate, self.covariance, self._centred(hypothesis), notes)
        reference = found.reference
        if self.df is not None:
            freedom = np.array([self._freedom(row) for row in hypothesis.matrix])
            reference = StudentReference(found.effect - found.value, found.std_error, freedom)
        return CoefficientTest(
            hypothesis.labels,
            found.effect,
            found.std_error,
            hypothesis.values,
            reference,
            notes,
            found.covariance,
            self.correction,
        )

    def wald_test(self, hypothesis: LinearHypothesis, notes: tuple[str, ...]) -> FTest:
        """Joint test of q restrictions."""
        centred = self._centred(hypothesis)
        statistic, rank, log_pvalue = wald_statistic(self.estimate, self.covariance, centred)
        if self.rank is not None and np.linalg.matrix_rank(hypothesis.matrix) > self.rank:
            statistic = log_pvalue = math.nan
        df = None if self.df is None else min(map(self._freedom, hypothesis.matrix))
        if df is not None and isinstance(self.df, ClusterFreedom):
            # The statistic follows Hotelling's distribution, because the estimated covariance of all
            # coefficients has the degrees of freedom of one variance.
            statistic *= (df - rank + 1.0) / df
            df = df - rank + 1.0
        if df is not None and rank > 0:
            statistic /= rank
            log_pvalue = log_f_tail(statistic, rank, df) if df > 0.0 else math.nan
        return FTest(statistic, rank, log_pvalue, hypothesis.labels, notes, df, self.correction)

    def _freedom(self, row: FloatArray) -> float:
        """Degrees of freedom of a combination; if unknown, the smallest of its coefficients; row (p,)."""
        if isinstance(self.df, ClusterFreedom):
            return self.df.of(row)
        if self.df is None or isinstance(self.df, float):
            return math.inf if self.df is None else self.df
        return float(np.min(self.df[row != 0.0], initial=np.inf))

    def _centred(self, hypothesis: LinearHypothesis) -> LinearHypothesis:
        return LinearHypothesis(hypothesis.matrix @ self.back, hypothesis.values, hypothesis.labels)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RegressionResults(Results):
    """Coefficients of a regression; created by `AdaptiveOLS.fit`.

    Attributes
    ----------
    adjustment : str
        The adjustment for adaptive collection.
    formula : str
        Of the regression.
    covariance_type : str
        Such as ``"classical"``.
    nobs : int
        Rounds used.
    df_model : int
        Number of coefficients other than the intercept.
    df_resid : float
        Residual degrees of freedom; NaN if the estimator has none.
    rsquared : float
        Share of the variation of rewards that the fit explains; the variation is about the mean if a constant
        is in the span of the columns. NaN for estimators other than least squares.
    arm : label or None
        The arm whose rounds were used; None for all.

    Examples
    --------
    >>> import adaptinf as ai
    >>> env = ai.environments.LinearArms([[0.6, 0.2], [0.1, 0.7]], contexts="orthant", rewards="bernoulli")
    >>> log = ai.designs.Uniform().run(env, horizon=400, rng=0)
    >>> fitted = ai.AdaptiveOLS(log, arm=0).fit()
    >>> fitted.params.index.tolist()
    ['Intercept', 'x1_0', 'x2_0', 'x1_1', 'x2_1']
    """

    adjustment: str
    formula: str
    covariance_type: str
    nobs: int
    df_model: int
    df_resid: float = math.nan
    rsquared: float = math.nan
    arm: Any = None
    joint: JointTests | None = None

    @property
    def at_any_length(self) -> bool:
        """Whether the adjustment is valid at all rounds simultaneously."""
        return self.adjustment in _AT_ANY_LENGTH

    def _instead(self, told: Stopping) -> str:
        return ELLIPSOID() if told.complete else super()._instead(told)

    @property
    def naive(self) -> bool:
        """Whether the uncorrected p-values and intervals are invalid for the log."""
        return self.validity == "not valid"

    @property
    def rsquared_adj(self) -> float:
        """R-squared, with both variances divided by their degrees of freedom."""
        total = self.df_resid + self.df_model
        return 1.0 - (1.0 - self.rsquared) * total / self.df_resid if self.df_resid > 0 else math.nan

    def t_test(self, restriction: Any) -> LinearTest:
        """Separate tests of linear combinations of the coefficients.

        Parameters
        ----------
        restriction : str, sequence of str, mapping of term to number, or array_like
            The restrictions, such as ``"x1 - x2 = 0"``; or a matrix of shape (q, p), or a pair of a matrix
            and right-hand sides. A name that contains spaces or is a number must be in backticks.

        Returns
        -------
        LinearTest
            Tests with effect, std_error, tvalue, pvalue, conf_int and to_frame. For least squares, they also
            have pvalue_corrected and conf_int_corrected, if a correction is needed. The tests use Student's t
            if the covariance is classical or clustered.

        Raises
        ------
        ParameterError
            If the restriction cannot be read.
        InvalidForLog
            If the covariance of the coefficients is unknown.
        """
        if self.joint is None:
            return Results.t_test(self, restriction)
        hypothesis = linear_hypothesis("t_test", restriction, self.terms)
        return self.joint.linear_test(hypothesis, self._test_notes())

    def wald_test(self, restriction: Any) -> WaldTest:
        """Joint test of linear restrictions.

        Parameters
        ----------
        restriction : str, sequence of str, mapping of term to number, or array_like
            As in `t_test`.

        Returns
        -------
        WaldTest
            A test with statistic, df and pvalue. For least squares, it is an `FTest`, which also has df_denom
            and, if a correction is needed, pvalue_corrected. The test uses the F distribution if the
            covariance is classical or clustered.

        Raises
        ------
        ParameterError
            If the restriction cannot be read.
        InvalidForLog
            If the covariance of the coefficients is unknown, or the statistic is undefined because a
            coefficient involved has no estimate or no standard error.
        """
        if self.joint is None:
            return Results.wald_test(self, restriction)
        hypothesis = linear_hypothesis("wald_test", restriction, self.terms)
        test = self.joint.wald_test(hypothesis, self._test_notes())
        if math.isnan(test.statistic) or math.isnan(test.log_pvalue):
            ways = ["t_test", "fewer restrictions"]
            raise InvalidForLog("a joint test of these coefficients", claims.NO_JOINT_TEST(), ways)
        return test

    def _test_notes(self) -> tuple[str, ...]:
        """Notes that tests of combinations are no more valid than those of single coefficients."""
        if not self.naive:
            return ()
        if self.correction is not None:
            return (claims.TEST_CORRECTED(),)
        return (claims.TEST_NAIVE(),)


def _due(correction: Correction | None) -> Correction:
    if correction is None:
        ways = ["pvalue", "conf_int"]
        raise InvalidForLog("a max-information correction", claims.NO_CORRECTION(), ways)
    return correction
