"""Comparisons of effects between groups: interaction contrasts, and tests that all effects are equal.

References
----------
Welch (1951), "On the comparison of several mean values: an alternative approach" (the test of equal means
with unequal variances). Satterthwaite (1946), "An approximate distribution of estimates of variance
components". Cochran (1954), "The combination of estimates from different experiments".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from adaptinf.claims.effects import by_group as claims
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.distributions.references import JoinedReference, Reference, StudentReference
from adaptinf.inference.distributions.skewed import SkewedSumReference
from adaptinf.inference.distributions.tails import log_chi2_tail, log_f_tail
from adaptinf.inference.distributions.two_samples import DifferenceReference
from adaptinf.inference.released.effects import ReleasedReference
from adaptinf.inference.released.group_effects import ReleasedDifferenceReference, log_common_pvalue
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.results.fit_results import Results
from adaptinf.inference.results.hypotheses import LinearHypothesis
from adaptinf.inference.results.simultaneous import JointInference
from adaptinf.inference.results.tables import format_pvalue
from adaptinf.parameters import refuse
from adaptinf.texts import absent, unlisted, visible_lines
from adaptinf.typing import BoolArray, FloatArray, IntArray

_MOST_GROUPS = 50
_TESTS = ("auto", "chi2", "F")


@dataclass(frozen=True, slots=True)
class HeterogeneityTest:
    """Test that all groups have the same effect.

    Attributes
    ----------
    test : {"chi2", "F", "intervals"}
        Distribution of the statistic; ``"intervals"`` has none.
    statistic : float
        Weighted sum of squared distances of the effects from their weighted mean (chi2), or this sum divided
        by its degrees of freedom and Welch's factor (F). For intervals, NaN.
    df : int
        Number of groups minus one.
    df_denominator : float
        Denominator degrees of freedom of the F distribution; infinite for chi2, and NaN for intervals.
    log_pvalue : float
        Natural log of the p-value, which is accurate even if the p-value underflows.
    groups : tuple of str
        The terms that were compared.
    notes : tuple of str
        The assumptions of the test, and any groups that were left out.
    """

    test: str
    statistic: float
    df: int
    df_denominator: float
    log_pvalue: float
    groups: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def pvalue(self) -> float:
        """The p-value; 0 if it underflows."""
        return math.exp(self.log_pvalue)

    def __str__(self) -> str:
        p = format_pvalue(self.log_pvalue)
        law = {
            "chi2": f"chi2({self.df}) = {self.statistic:.4f}, P>chi2 = {p}",
            "F": f"F({self.df}, {self.df_denominator:.1f}) = {self.statistic:.4f}, P>F = {p}",
            "intervals": f"P = {p}",
        }[self.test]
        lines = [f"Test of no heterogeneity: {law}", f"  H0: equal effects in {', '.join(self.groups)}"]
        return visible_lines([*lines, *(f"  {note}" for note in self.notes)])


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class GroupResults(Results):
    """Effects by group, and comparisons between the groups; created by `CATE.fit`.

    Notes
    -----
    A round belongs to only one group, so no round contributes to the errors of two estimates, and their
    covariance matrix is diagonal. For AIPW, the covariance is the sum of products of the rounds' influences.
    If units have several rounds, the covariance is computed by unit, and it is not diagonal if some units
    have rounds in several groups.
    """

    @np.errstate(under="ignore")
    def interactions(self, reference: Any = None, *, null: float = 0.0) -> Results:
        """Compare the effects of groups with each other.

        Parameters
        ----------
        reference : label, optional
            The group whose effect is subtracted from every other effect: its label (a tuple of labels for
            combinations of columns) or its term, such as ``"feature=0"``. The default is all pairs, with the
            earlier group subtracted from the later one.
        null : float
            Difference between effects under the null hypothesis.

        Returns
        -------
        Results
            One term per pair, such as ``"feature=1 - feature=0"``, with the joint covariance. Student's t has
            Satterthwaite's degrees of freedom. For private releases, whose noise is not normal, limits are
            differences between limits of the two effects, each at half of alpha: lower minus upper, and upper
            minus lower.

        Raises
        ------
        ParameterError
            If there is no such group, if there is only one group, or if there are too many pairs.
        """
        pairs = self._pairs(reference)
        rows, columns = pairs.T
        terms = tuple(f"{_bracket(self.terms[i])} - {_bracket(self.terms[j])}" for i, j in pairs)
        estimate = self.estimate[rows] - self.estimate[columns]
        notes = self.notes
        law: Reference
        covariance: FloatArray | None
        if isinstance(self.reference, ReleasedReference):
            law = ReleasedDifferenceReference(self.reference.effect, rows, columns)
            std_error, covariance = np.hypot(self.std_error[rows], self.std_error[columns]), None
            notes = (*notes, claims.BONFERRONI())
        else:
            law, std_error, covariance = self._differences(pairs)
            notes = (*notes, claims.SATTERTHWAITE() if self._shared is None else claims.SHARED_UNITS())
        missing = [term for term, size in zip(terms, std_error, strict=True) if not size > 0.0]
        if missing:
            notes = (*notes, claims.NO_TEST(terms=", ".join(missing)))
        return Results(
            model="CATE interactions",
            estimands=tuple(
                Estimand(
                    "interaction",
                    treatment=self.estimands[i].treatment,
                    control=self.estimands[i].control,
                    group=(self.estimands[i].group, self.estimands[j].group),
                )
                for i, j in pairs
            ),
            terms=terms,
            estimate=estimate,
            std_error=std_error,
            covariance=covariance,
            reference=law,
            estimator=self.estimator,
            facts=self.facts,
            validity=self.validity,
            weights=self.weights,
            null=null,
            details={
                name: np.minimum(self.details[name][rows], self.details[name][columns])
                for name in ("ess", "min_propensity")
                if name in self.details
            },
            notes=notes,
            cautions=self.cautions,
            private=self.private,
        )

    @np.errstate(under="ignore")
    def heterogeneity(self, test: str = "auto") -> HeterogeneityTest:
        """Test that all groups have the same effect.

        Parameters
        ----------
        test : {"auto", "chi2", "F"}
            Wald's chi-squared test, or Welch's F test, which allows for estimated variances. The default is F
            if the result uses Student's t with finite degrees of freedom. Omit the argument for private
            releases.

        Returns
        -------
        HeterogeneityTest

        Raises
        ------
        ParameterError
            If there is no such test.
        InvalidForLog
            If fewer than two groups have a standard error, or a test was requested for private releases.

        Notes
        -----
        For private releases, errors are sums of normal and Laplace variables, whose quadratic forms do not
        have chi-squared distributions. The hypothesis is rejected at alpha if the intervals of the G groups
        at alpha/G have no value in common. If all groups have the same effect, this requires at least one of
        the intervals to miss it.
        """
        if test not in _TESTS:
            raise ParameterError("heterogeneity", [unlisted("test", _TESTS, test)])
        usable = np.isfinite(self.estimate) & (self.std_error > 0.0)
        kept = tuple(term for term, flag in zip(self.terms, usable, strict=True) if flag)
        if len(kept) < 2:
            reason = claims.TOO_FEW_GROUPS(n=len(kept), all=len(self.terms))
            raise InvalidForLog("a test of no heterogeneity", reason, ["fewer, larger groups"])
        left_out = [term for term, flag in zip(self.terms, usable, strict=True) if not flag]
        notes: tuple[str, ...] = (claims.GROUPS_LEFT_OUT(terms=", ".join(left_out)),) if left_out else ()
        if isinstance(self.reference, ReleasedReference):
            if test != "auto":
                named = f"a {test} test of no heterogeneity"
                raise InvalidForLog(named, claims.NOT_NORMAL(), ["heterogeneity()"])
            log_p = log_common_pvalue(self.reference.effect, np.flatnonzero(usable))
            notes = (*notes, claims.BY_INTERVALS())
            return HeterogeneityTest("intervals", math.nan, len(kept) - 1, math.nan, log_p, kept, notes)
        center, variance, df = (part[usable] for part in self._moments())
        if self._shared is not None:
            matrix = self._shared[np.ix_(usable, usable)]
            statistic, log_p, rest = equal_dependent_effects(center, matrix, float(df.min()), test)
            law = "F" if math.isfinite(rest) else "chi2"
            notes = (*notes, claims.HOTELLING())
            return HeterogeneityTest(law, statistic, len(kept) - 1, rest, log_p, kept, notes)
        if isinstance(self.reference, DifferenceReference) and np.any(self.reference.difference.adjusted):
            notes = (*notes, claims.ADJUSTED_ENTER())
        statistic, numerator, denominator = equal_effects(center, variance, df)
        if test == "chi2" or (test == "auto" and math.isinf(denominator)):
            q = numerator * (len(kept) - 1)
            log_p = log_chi2_tail(q, len(kept) - 1)
            return HeterogeneityTest("chi2", q, len(kept) - 1, math.inf, log_p, kept, notes)
        log_p = log_f_tail(statistic, len(kept) - 1, denominator)
        return HeterogeneityTest("F", statistic, len(kept) - 1, denominator, log_p, kept, notes)

    def _joint_covariance(self, subject: str, hypothesis: LinearHypothesis) -> FloatArray:
        if isinstance(self.reference, ReleasedReference):
            raise InvalidForLog(
                subject,
                claims.NOT_NORMAL(),
                ["interactions()", "heterogeneity()", "pvalues", "pvalues_simultaneous(method='bonferroni')"],
            )
        return JointInference._joint_covariance(self, subject, hypothesis)

    @property
    def _shared(self) -> FloatArray | None:
        """Covariance of the groups' effects if some groups have units in common; otherwise None."""
        matrix = self.covariance
        if matrix is None or not np.any(np.nan_to_num(matrix - np.diag(np.diag(matrix)))):
            return None
        return matrix

    def _differences(self, pairs: IntArray) -> tuple[Reference, FloatArray, FloatArray]:
        """Distribution, standard errors and covariance of differences; pairs has shape (p, 2)."""
        rows, columns = pairs.T
        center, variance, df = self._moments()
        contrast = np.zeros((len(pairs), len(self.terms)))
        contrast[np.arange(len(pairs)), rows], contrast[np.arange(len(pairs)), columns] = 1.0, -1.0
        shared = self._shared
        covariance = _sandwich(contrast, np.diag(variance) if shared is None else shared)
        if shared is None:
            std_error, freedom = satterthwaite(variance[pairs], df[pairs])
        else:
            std_error, freedom = np.sqrt(np.maximum(np.diag(covariance), 0.0)), df[pairs].min(axis=1)
        law: Reference = StudentReference(center[rows] - center[columns], std_error, freedom)
        if isinstance(self.reference, SkewedSumReference):
            law = self.reference.differences(rows, columns, freedom)
        return law, std_error, covariance

    def _moments(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Centres, variances and degrees of freedom of the distributions of the groups' effects."""
        center, df = _center(self.reference, self.estimate)
        return center, self.std_error**2, df

    def _pairs(self, reference: Any) -> IntArray:
        size, labels = len(self.terms), [estimand.group for estimand in self.estimands]
        problems = []
        if size < 2:
            problems.append("there is only one group: nothing to compare")
        elif reference is None and size > _MOST_GROUPS:
            problems.append(f"{size} groups make {size * (size - 1) // 2} pairs: specify reference=")
        base = None
        if reference is not None:
            base = _position(reference, labels, self.terms)
            if base is None:
                problems.append(absent("group", reference, labels))
        refuse("interactions", problems)
        if base is None:
            return np.array([(j, i) for i, j in combinations(range(size), 2)])
        return np.array([(i, base) for i in range(size) if i != base])


def _center(law: Reference, estimate: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Centres and degrees of freedom of the distributions of k terms; estimate has shape (k,)."""
    if isinstance(law, JoinedReference):
        parts = [_center(part, estimate[[place]]) for place, part in enumerate(law.parts)]
        center, df = (np.concatenate(each) for each in zip(*parts, strict=True))
        return center, df
    if isinstance(law, DifferenceReference):
        return law.difference.center, law.difference.df
    if isinstance(law, StudentReference | SkewedSumReference):
        return estimate, np.asarray(law.df, dtype=np.float64)
    return estimate, np.full(len(estimate), np.inf)


def satterthwaite(variance: FloatArray, df: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Standard errors and degrees of freedom of sums of independent estimates.

    Shapes: variance, df (m, q); returns std_error, df (m,).
    """
    total = variance.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.where(np.isinf(df), 0.0, variance**2 / df).sum(axis=1)
        freedom = total**2 / spread
        return np.where(total > 0.0, np.sqrt(total), np.nan), np.where(total > 0.0, freedom, np.nan)


def equal_effects(estimate: FloatArray, variance: FloatArray, df: FloatArray) -> tuple[float, float, float]:
    """Welch's test of equal means, for independent estimates with unequal variances.

    Shapes: estimate, variance, df (k,).

    Let w = 1/variance be the weights, W their sum and m the weighted mean. With Q = sum w (d - m)^2 and L =
    sum (1 - w/W)^2 / df, the statistic is F = Q/(k - 1) / (1 + 2 (k - 2) L / (k^2 - 1)), which has (k^2 - 1)
    / (3 L) denominator degrees of freedom. For k = 2, it is the square of t with Satterthwaite's degrees of
    freedom. Welch's expansion requires only that the variance of an estimated variance is 2 variance^2 / df.
    """
    size = len(estimate)
    share = (1.0 / variance) / np.sum(1.0 / variance)
    mean = float(share @ estimate)
    mean_square = float(np.sum((estimate - mean) ** 2 / variance)) / (size - 1)
    excess = float(np.sum((1.0 - share) ** 2 / df))
    statistic = mean_square / (1.0 + 2.0 * (size - 2) * excess / (size**2 - 1))
    return statistic, mean_square, (size**2 - 1) / (3.0 * excess) if excess > 0.0 else math.inf


def equal_dependent_effects(
    estimate: FloatArray, covariance: FloatArray, df: float, test: str = "auto"
) -> tuple[float, float, float]:
    """Hotelling's test of equal means for dependent estimates: statistic, log p-value and denominator df.

    Shapes: estimate (k,), covariance (k, k).

    Let d be the q = k - 1 differences from the first estimate, and V their covariance. Then d' V^-1 d (df - q
    + 1) / (q df) has the F distribution with q and df - q + 1 degrees of freedom. The chi-squared test uses
    d' V^-1 d itself.
    """
    size = len(estimate) - 1
    contrast = np.column_stack([-np.ones(size), np.eye(size)])
    difference, spread = contrast @ estimate, contrast @ covariance @ contrast.T
    if np.linalg.matrix_rank(spread) < size:
        reason = claims.TOO_FEW_UNITS(groups=size + 1)
        raise InvalidForLog("a test of no heterogeneity", reason, ["fewer groups", "interactions()"])
    distance = float(difference @ np.linalg.solve(spread, difference))
    if test == "chi2":
        return distance, log_chi2_tail(distance, size), math.inf
    rest = df - size + 1.0
    if rest <= 0.0:
        reason = claims.TOO_LITTLE_FREEDOM(freedom=df, groups=size + 1)
        raise InvalidForLog("a test of no heterogeneity", reason, ["fewer groups", "interactions()"])
    statistic = distance * rest / (size * df)
    return statistic, log_f_tail(statistic, size, rest), rest


def _sandwich(contrast: FloatArray, matrix: FloatArray) -> FloatArray:
    """Covariance of contrasts of estimates; NaN only if a missing variance is involved; matrix (k, k)."""
    known: BoolArray = np.isfinite(np.diag(matrix))
    # Since 0 times NaN is NaN, an unknown variance would also spoil contrasts that give it no weight.
    covariance = contrast @ np.where(known[:, None] & known, matrix, 0.0) @ contrast.T
    lost = (contrast[:, ~known] != 0.0).any(axis=1)
    covariance[lost, :], covariance[:, lost] = np.nan, np.nan
    return covariance


def _position(reference: Any, labels: Sequence[Any], terms: Sequence[str]) -> int | None:
    for i, (label, term) in enumerate(zip(labels, terms, strict=True)):
        # In Python 1, 1.0 and True are equal, so a label of the same type is preferred to those that merely
        # compare equal.
        if reference == term or (type(reference) is type(label) and reference == label):
            return i
    loose = [i for i, label in enumerate(labels) if label == reference]
    return loose[0] if loose else None


def _bracket(term: str) -> str:
    return f"({term})" if ", " in term else term
