"""Joint inference on the terms of a result: simultaneous intervals, and tests of linear hypotheses.

References
----------
Hothorn, Bretz, Westfall (2008), "Simultaneous inference in general parametric models". Šidák (1967),
"Rectangular confidence regions for the means of multivariate normal distributions". Chernozhukov,
Chetverikov, Kato (2013), "Gaussian approximations and multiplier bootstrap for maxima of sums of
high-dimensional random vectors".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import special

from adaptinf.claims import tables
from adaptinf.errors import InvalidForLog
from adaptinf.inference.distributions.references import StudentReference
from adaptinf.inference.results.estimates import Estimates
from adaptinf.inference.results.hypotheses import (
    LinearHypothesis,
    LinearTest,
    WaldTest,
    linear_hypothesis,
    linear_test,
    wald_statistic,
)
from adaptinf.inference.results.multiplicity import AT_ONCE, family_of, familywise_level
from adaptinf.parameters import COUNT, SEED, check_alpha, refuse
from adaptinf.texts import unlisted
from adaptinf.typing import BoolArray, FloatArray, RandomSource

if TYPE_CHECKING:
    from adaptinf.inference.corrections.information import Correction
    from adaptinf.inference.distributions.references import Reference

METHODS = ("max-t", "bootstrap", "sidak", "bonferroni")
# Random signs are drawn in blocks of about 32 MB as doubles, however many draws there are.
_CELLS = 4_000_000
_TINY = -30.0  # Below this log level, Šidák's and Bonferroni's levels are equal in doubles.


def bootstrap_maxima(
    influence: FloatArray, std_error: FloatArray, draws: int, rng: np.random.Generator
) -> FloatArray:
    """Largest studentised errors of a multiplier bootstrap.

    Shapes: influence (T, k), std_error (k,); returns (B,).
    """
    rows = influence / std_error
    maxima = np.zeros(draws)
    block = max(1, _CELLS // max(len(rows), 1))
    for start in range(0, draws, block):
        count = min(block, draws - start)
        signs = 2.0 * rng.integers(0, 2, size=(count, len(rows)), dtype=np.int8) - 1.0
        maxima[start : start + count] = np.abs(signs @ rows).max(axis=1)
    return maxima


class JointInference(Estimates):
    """Joint inference on several terms, for all results; a base class of `Results`."""

    @np.errstate(under="ignore")
    def conf_int_simultaneous(
        self,
        alpha: float = 0.05,
        method: str = "max-t",
        *,
        draws: int = 2000,
        rng: RandomSource | None = 0,
        corrected: bool = True,
    ) -> pd.DataFrame:
        """Return simultaneous intervals, all of which cover with probability 1 - alpha.

        Parameters
        ----------
        alpha : float
            One minus the joint confidence level, between 0 and 0.5.
        method : {"max-t", "bootstrap", "sidak", "bonferroni"}
            How the level of single intervals is computed from alpha. ``"max-t"`` uses the distribution of the
            largest of the normal statistics with the estimated correlations, or Bonferroni's inequality if
            these are unknown. If the terms have Student's distribution, it uses t statistics (as in Dunnett's
            test), with the smallest degrees of freedom of all terms. ``"bootstrap"`` gives the studentised
            rows random signs, and requires results fitted with ``keep_scores=True``. ``"sidak"`` is valid for
            normal statistics whatever their correlations, and ``"bonferroni"`` is always valid.
        draws : int
            Number of bootstrap samples.
        rng : int, SeedSequence, Generator or None
            Source of the random signs of the bootstrap.
        corrected : bool
            Whether to correct for adaptive collection if a correction is needed. In that case, the methods of
            Šidák and Bonferroni are available: they bound the probability that any interval fails as if the
            actions had been fixed, and this bound is corrected.

        Returns
        -------
        DataFrame
            Columns low and high, with one row per term: the result's own intervals at a smaller alpha, which
            is the same for all terms. The intervals exclude the null value if and only if
            `pvalues_simultaneous` is at most alpha, up to the error of the multivariate normal distribution
            (1e-5) or t distribution (2e-4). Terms without a standard error or without information (an
            interval wider than 10 ranges of the rewards) are not counted, and have NaN.

        Raises
        ------
        ParameterError
            If an argument is invalid; the message lists every problem.
        InvalidForLog
            If the bootstrap has no rows to draw from, or if the method cannot be corrected.
        """
        check_alpha("conf_int_simultaneous", alpha)
        law, tail, size = self._family("conf_int_simultaneous", method, draws, rng)
        due = self._family_correction(method, corrected)
        if size == 0:
            log_level = math.log(alpha)
        elif due is not None:
            log_level = _log_single_level(due.level(math.log(alpha)), method, size)
        else:
            log_level = math.log(familywise_level(tail, alpha, size))
        limits = self._meaningful(law.interval(log_level))
        limits[self._without_information] = np.nan
        return pd.DataFrame(limits, index=list(self.terms), columns=["low", "high"])

    @np.errstate(under="ignore")
    def pvalues_simultaneous(
        self,
        method: str = "max-t",
        *,
        draws: int = 2000,
        rng: RandomSource | None = 0,
        corrected: bool = True,
    ) -> pd.Series[float]:
        """Return p-values that are adjusted for testing all terms simultaneously.

        Parameters
        ----------
        method, draws, rng, corrected
            As in `conf_int_simultaneous`.

        Returns
        -------
        Series
            The probability that, if all nulls were true, any single p-value would be as small as the observed
            p-value.

        Raises
        ------
        ParameterError
            If an argument is invalid; the message lists every problem.
        InvalidForLog
            If the bootstrap has no rows to draw from, or if the method cannot be corrected.
        """
        law, tail, size = self._family("pvalues_simultaneous", method, draws, rng)
        due = self._family_correction(method, corrected)
        logs = law.log_pvalues(self.null)
        if due is not None:
            family = np.array([_log_any(float(log_p), method, size) for log_p in logs])
            adjusted = np.exp(np.asarray(due.apply(family), dtype=np.float64)).tolist()
        else:
            adjusted = [math.nan if math.isnan(p) else tail(float(p)) for p in np.exp(logs)]
        adjusted = np.where(self._without_information, math.nan, adjusted)
        return pd.Series(adjusted, index=list(self.terms), name="p_value_simultaneous", dtype=float)

    def t_test(self, restriction: Any) -> LinearTest:
        """Separate tests of linear combinations of the terms.

        Tests are normal or, if terms have Student's distribution, use t with the smallest degrees of freedom
        of the terms involved. The difference between two arms of a table is that of `Contrast`, with its own
        distribution.

        Parameters
        ----------
        restriction : str, sequence of str, mapping of term to number, or array_like
            The combinations, such as ``"b - a = 0"``; or a matrix of shape (q, k), or a pair of a matrix and
            right-hand sides. A name that contains spaces or signs, or is a number, must be in backticks.

        Returns
        -------
        LinearTest
            Tests with effect, std_error, tvalue, pvalue, conf_int and to_frame.

        Raises
        ------
        ParameterError
            If the restriction cannot be read.
        InvalidForLog
            If the covariance of the terms is unknown.
        """
        hypothesis = linear_hypothesis("t_test", restriction, self.terms)
        covariance = self._joint_covariance("t_test", hypothesis)
        given = (self.estimate, covariance, hypothesis, self._test_notes(), self._freedom)
        return linear_test(*given, self.contrast_of)

    def wald_test(self, restriction: Any) -> WaldTest:
        """Joint test of linear restrictions, by the chi-squared distribution.

        If the terms have Student's distribution, the F distribution is used instead, with the smallest
        degrees of freedom of the terms involved.

        Parameters
        ----------
        restriction : str, sequence of str, mapping of term to number, or array_like
            As in `t_test`.

        Returns
        -------
        WaldTest
            A test with statistic, df and pvalue.

        Raises
        ------
        ParameterError
            If the restriction cannot be read.
        InvalidForLog
            If the covariance of the terms is unknown, or the statistic is undefined because a term involved
            has no estimate or no standard error.
        """
        hypothesis = linear_hypothesis("wald_test", restriction, self.terms)
        covariance = self._joint_covariance("wald_test", hypothesis)
        used = np.count_nonzero(hypothesis.matrix, axis=0) > 0
        fewest = math.inf if self._freedom is None else float(self._freedom[used].min())
        denom = None if math.isinf(fewest) else fewest
        statistic, df, log_pvalue = wald_statistic(self.estimate, covariance, hypothesis, denom)
        if math.isnan(statistic):
            missing = [
                term
                for term, here, size in zip(self.terms, used, self.std_error, strict=True)
                if here and not size > 0.0
            ]
            raise InvalidForLog(
                "a Wald test of these terms",
                f"no standard error for {', '.join(missing) or 'a combination'}: see the notes",
                ["a test of the other terms only"],
            )
        return WaldTest(statistic, df, log_pvalue, hypothesis.labels, self._test_notes(), denom)

    def _allowed(self, adjust: str | None) -> str | None:
        """The adjustment, with Holm's method instead of max-t if p-values are corrected."""
        return "holm" if adjust == AT_ONCE and self.correction is not None else adjust

    def _shown_limits(self, alpha: float, adjust: str | None) -> pd.DataFrame:
        """The interval to show for each term: corrected, or else simultaneous, or else its own."""
        if self._is_corrected(alpha):
            return self.conf_int_corrected(alpha)
        return self.conf_int_simultaneous(alpha) if adjust == AT_ONCE else self.conf_int(alpha)

    @property
    def _freedom(self) -> FloatArray | None:
        """Degrees of freedom of the terms, shape (k,), if they have Student's distribution."""
        return self.reference.df if isinstance(self.reference, StudentReference) else None

    def _test_notes(self) -> tuple[str, ...]:
        """Notes on why tests of combinations are no more valid, or less valid, than those of single terms."""
        found: list[str] = []
        if self.validity == "not valid":
            found.append(tables.NOT_VALID())
        if self.correction is not None:
            of_contrast = self.estimands[0].kind == "contrast"
            found.append((tables.SINGLES_CORRECTED if of_contrast else tables.CONTRASTS_CORRECTED)())
        if self._freedom is not None:
            found.append(tables.FEWEST_FREEDOM())
        elif not self.reference.normal:
            found.append(tables.NORMAL_FOR(law=self.reference.name))
        return tuple(found)

    def _family_correction(self, method: str, corrected: bool) -> Correction | None:
        """The correction of the level of a family; None if no correction is needed or requested."""
        if not corrected or self.correction is None:
            return None
        if method not in ("sidak", "bonferroni"):
            raise InvalidForLog(
                f"simultaneous inference by {method}",
                "the p-values must be corrected for adaptive collection, which requires the distribution "
                "further in the tail than it can be computed",
                ["method='sidak'", "method='bonferroni'", "corrected=False, not valid under adaptivity"],
            )
        return self.correction

    def _joint_covariance(self, subject: str, hypothesis: LinearHypothesis) -> FloatArray:
        if self.covariance is not None:
            return self.covariance
        if not self.reference.normal:
            raise InvalidForLog(
                subject,
                "its standard errors are only descriptive: p-values and intervals follow "
                f"{self.reference.name}",
                ["pvalues and conf_int, with null= in fit"],
            )
        if np.all(np.count_nonzero(hypothesis.matrix, axis=1) == 1) and len(hypothesis.labels) == 1:
            return np.diag(self.std_error**2)
        raise InvalidForLog(
            subject,
            f"the covariance of the terms of {self.estimator} is unknown",
            ["pvalues_simultaneous(method='bonferroni')", "a restriction of one term"],
        )

    def _family(
        self, subject: str, method: str, draws: int, rng: RandomSource | None
    ) -> tuple[Reference, Callable[[float], float], int]:
        """Distribution of single tests, probability of any false rejection by level, and number of tests."""
        problems = [*COUNT("draws", draws), *SEED("rng", rng)]
        if method not in METHODS:
            problems.append(unlisted("method", METHODS, method))
        refuse(subject, problems)
        law = self.reference
        logs = law.log_pvalues(self.null)
        usable: BoolArray = (np.isfinite(logs) | np.isneginf(logs)) & ~self._without_information
        size = int(usable.sum())
        if method == "bootstrap":
            maxima = self._maxima(usable, draws, np.random.default_rng(rng))
            return law, lambda level: _bootstrap_tail(level, maxima, size), size
        return family_of(law, self.covariance, usable, method)

    def _maxima(self, usable: BoolArray, draws: int, rng: np.random.Generator) -> FloatArray:
        kept_scores = self.scores or {}
        rows = kept_scores.get("influence_by_unit", kept_scores.get("influence"))
        if rows is None:
            raise InvalidForLog(
                "the multiplier bootstrap",
                "the result does not contain the contribution of each round (fit with keep_scores=True)",
                ["method='max-t'", "method='bonferroni'"],
            )
        kept = usable & (self.std_error > 0.0)
        return np.sort(bootstrap_maxima(rows[:, kept], self.std_error[kept], draws, rng))


def _bootstrap_tail(level: float, maxima: FloatArray, size: int) -> float:
    """Share of the maxima at or beyond this normal p-value, counting the observed maximum."""
    limit = -float(special.ndtri(0.5 * level)) if level < 1.0 else 0.0
    beyond = len(maxima) - int(np.searchsorted(maxima, limit, side="left"))
    # At least one of several false rejections is no rarer than a particular one, and few draws must not
    # suggest otherwise.
    return float(min(max((1.0 + beyond) / (1.0 + len(maxima)), level), 1.0))


def _log_any(log_p: float, method: str, size: int) -> float:
    """Log of a bound on the probability that any of k p-values is at most exp(log_p)."""
    if method == "bonferroni" or not log_p > _TINY:
        return min(0.0, log_p + math.log(size)) if not math.isnan(log_p) else math.nan
    return math.log(-math.expm1(size * math.log1p(-math.exp(log_p)))) if log_p < 0.0 else 0.0


def _log_single_level(log_alpha: float, method: str, size: int) -> float:
    """Log of the level of single tests for which the bound of `_log_any` is alpha."""
    if method == "bonferroni" or log_alpha < _TINY:
        return log_alpha - math.log(size)
    return math.log(-math.expm1(math.log1p(-math.exp(log_alpha)) / size))
