"""Anytime-valid t and F tests for a linear model, for a design fixed in advance and optional stopping.

References
----------
Lindon, Ham, Tingley, Bojinov (2022), "Anytime-valid linear models and regression adjusted causal inference in
randomized experiments".
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import linalg

from adaptinf.claims import first
from adaptinf.claims.regression import adjusted_regression as claims
from adaptinf.errors import InvalidForLog
from adaptinf.inference.distributions.references import _store, _usable
from adaptinf.inference.regression.design import Adjustment, CoefficientFit, check_freedom
from adaptinf.inference.regression.facts.batched_facts import AnytimeFacts
from adaptinf.inference.regression.joint_tests import JointTest, check_independent, check_residuals
from adaptinf.inference.results.hypotheses import LinearHypothesis, LinearTest, WaldTest
from adaptinf.parameters import POSITIVE, check
from adaptinf.typing import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class AnytimeReference:
    """Anytime-valid t tests and intervals for k coefficients.

    Shapes: ratio (k,).

    Given a statistic t with df degrees of freedom, and the ratio r, the evidence against a value is the Bayes
    factor

        sqrt(r) ((1 + t^2/df) / (1 + r t^2/df))^((df + 1) / 2).

    The p-value is the inverse of the factor, but at most 1. As t grows, the factor remains below r^(-df/2).
    If alpha is less than the inverse of this bound, the interval is the whole line.
    """

    estimate: FloatArray
    std_error: FloatArray
    df: FloatArray
    ratio: FloatArray
    name: str = field(default="anytime-valid t", init=False)
    exact: bool = field(default=False, init=False)
    statistic, normal, uses_std_error = "t", False, False

    def __post_init__(self) -> None:
        _store(
            self,
            estimate=self.estimate,
            std_error=_usable(self.std_error),
            df=self.df,
            ratio=self.ratio,
        )

    def log_factor(self, null: float) -> FloatArray:
        """Natural logarithms of the Bayes factors against a value, shape (k,)."""
        share = ((self.estimate - null) / self.std_error) ** 2 / self.df
        growth = np.log1p(share) - np.log1p(self.ratio * share)
        return np.asarray(0.5 * np.log(self.ratio) + 0.5 * (self.df + 1.0) * growth, dtype=np.float64)

    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logarithms of the anytime-valid p-values, shape (k,)."""
        return np.asarray(np.minimum(0.0, -self.log_factor(null)), dtype=np.float64)

    def interval(self, log_alpha: float) -> FloatArray:
        """Intervals at level 1 - exp(log_alpha), shape (k, 2); infinite if no value is excluded."""
        log_ratio = np.log(self.ratio)
        # The Bayes factor equals 1 / alpha at t^2/df = (1 - k) / (k - r), with k = (alpha^2 r)^(1 / (df +
        # 1)).
        numerator = -np.expm1((2.0 * log_alpha + log_ratio) / (self.df + 1.0))
        denominator = self.ratio * np.expm1((2.0 * log_alpha - self.df * log_ratio) / (self.df + 1.0))
        share = np.full(self.ratio.shape, np.inf)
        np.divide(numerator, denominator, out=share, where=denominator > 0.0)
        half = np.sqrt(share * self.df) * self.std_error
        return np.column_stack((self.estimate - half, self.estimate + half))


def anytime_coefficients(
    estimate: FloatArray,
    inverse: FloatArray,
    rest: float,
    df: int,
    rows: FloatArray,
    precision: float = 1.0,
    values: FloatArray | None = None,
) -> AnytimeReference:
    """Separate anytime-valid tests of combinations of least-squares coefficients.

    Shapes: estimate (d,), inverse (d, d), rows (k, d), values (k,).

    The Bayes factor integrates the coefficient over the mixture, and all other parameters over the right Haar
    measure of shifts and scale. It is then the likelihood ratio of the invariants of the data. For normal
    noise with a common variance, and a mixture that does not change, it is therefore a martingale under the
    null as rounds arrive. The design must not depend on earlier rewards. The time to stop may depend on the
    invariants.
    """
    _check_precision(precision)
    variance = np.einsum("ki,ij,kj->k", rows, inverse, rows)
    prior = np.sum(rows * rows, axis=1) / precision
    effect = rows @ estimate if values is None else rows @ estimate - values
    return AnytimeReference(
        effect, np.sqrt(variance * rest / df), np.array(float(df)), variance / (variance + prior)
    )


def anytime_wald(
    estimate: FloatArray,
    inverse: FloatArray,
    rest: float,
    df: int,
    rows: FloatArray,
    values: FloatArray,
    precision: float = 1.0,
) -> tuple[float, int, float, float]:
    """Anytime-valid F test that rows @ coefficients = values.

    Shapes: rows (q, d), values (q,).

    Let g be the violation, A = rows (X'X)^-1 rows', M = rows rows' / precision, R the sum of squared
    residuals, and n = df + q. The Bayes factor is

        sqrt(det A / det(A + M)) ((1 + g'A^-1 g / R) / (1 + g'(A + M)^-1 g / R))^(n / 2).

    For one restriction, this is the Bayes factor of `AnytimeReference`.
    """
    _check_precision(precision)
    size = len(rows)
    gap = rows @ estimate - values
    own = linalg.cholesky(rows @ inverse @ rows.T, lower=True)
    wide = linalg.cholesky(rows @ inverse @ rows.T + rows @ rows.T / precision, lower=True)
    inner = float(np.sum(linalg.solve_triangular(own, gap, lower=True) ** 2)) / rest
    outer = float(np.sum(linalg.solve_triangular(wide, gap, lower=True) ** 2)) / rest
    shrink = float(np.sum(np.log(np.diag(own)) - np.log(np.diag(wide))))
    log_factor = shrink + 0.5 * (df + size) * float(np.log1p(inner) - np.log1p(outer))
    return inner * df / size, size, min(0.0, -log_factor), log_factor


def _check_precision(precision: float) -> None:
    check("anytime-valid least squares", precision=(precision, POSITIVE))


@dataclass(frozen=True, slots=True, eq=False)
class AnytimeTests:
    """Anytime-valid t and F tests of combinations of coefficients; estimate (d,), inverse (d, d)."""

    estimate: FloatArray
    inverse: FloatArray
    rest: float
    df: int
    precision: float

    def linear_test(self, hypothesis: LinearHypothesis, notes: tuple[str, ...]) -> LinearTest:
        """Separate tests of q combinations."""
        rows, values = hypothesis.matrix, hypothesis.values
        reference = anytime_coefficients(
            self.estimate, self.inverse, self.rest, self.df, rows, self.precision, values
        )
        effect = reference.estimate + values
        return LinearTest(hypothesis.labels, effect, reference.std_error, values, reference, notes)

    def wald_test(self, hypothesis: LinearHypothesis, notes: tuple[str, ...]) -> WaldTest:
        """Joint test of q restrictions."""
        check_independent(hypothesis)
        check_residuals(self.rest > 0.0)
        statistic, size, log_pvalue, _ = anytime_wald(
            self.estimate,
            self.inverse,
            self.rest,
            self.df,
            hypothesis.matrix,
            hypothesis.values,
            self.precision,
        )
        return JointTest(statistic, size, log_pvalue, hypothesis.labels, notes, law=claims.ANYTIME_LAW())


def _fit(facts: AnytimeFacts) -> CoefficientFit:
    if reason := first(claims.ANYTIME_NEEDS, facts):
        raise InvalidForLog("anytime", reason, ())
    data = facts.data
    check_freedom("anytime", data)
    precision = facts.options.settings.get("precision", 1.0)
    fit = data.squares
    inverse = fit.root @ fit.root.T
    law = (fit.coefficient, inverse, 0.0 if fit.perfect else fit.rss, fit.df_resid)
    return CoefficientFit(
        estimate=fit.coefficient,
        std_error=np.sqrt(np.diag(inverse) * law[2] / fit.df_resid),
        reference=anytime_coefficients(*law, np.eye(data.size), precision),
        estimator="ols",
        df_resid=float(fit.df_resid),
        joint=AnytimeTests(*law, float(precision)),
        rsquared=fit.rsquared,
    )


ANYTIME = Adjustment(
    name="anytime",
    facts=AnytimeFacts,
    fit=_fit,
    claims=claims.ANYTIME,
    needs=claims.ANYTIME_NEEDS,
    options=("precision",),
)
"""This adjustment has t and F tests valid at all rounds simultaneously, for designs that do not adapt."""
