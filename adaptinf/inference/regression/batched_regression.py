"""Batched least squares (BOLS) for coefficients: a regression in each batch, studentised in the batch.

References
----------
Zhang, Janson, Murphy (2020), "Inference for batched bandits".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import linalg, special

from adaptinf.claims.regression import adjusted_regression as claims
from adaptinf.errors import ParameterError
from adaptinf.inference.distributions.student_sums import (
    NORMAL,
    SMALLEST_TAIL,
    BatchedReference,
    MeanStudent,
)
from adaptinf.inference.distributions.tails import log_chi2_tail, log_f_tail
from adaptinf.inference.regression.joint_tests import JointTest, check_independent, check_residuals
from adaptinf.inference.regression.least_squares import least_squares
from adaptinf.inference.results.hypotheses import LinearHypothesis, LinearTest, WaldTest
from adaptinf.typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class BatchRegressions:
    """Regressions of B batches on the same d columns.

    Shapes: coefficient (B, d), inverse (B, d, d), scale (B,), df (B,), usable (B,).
    """

    coefficient: FloatArray
    inverse: FloatArray
    scale: FloatArray
    df: FloatArray
    usable: BoolArray

    def only(self, keep: BoolArray) -> BatchRegressions:
        """The regressions in the batches that are kept."""
        return BatchRegressions(
            self.coefficient[keep], self.inverse[keep], self.scale[keep], self.df[keep], self.usable[keep]
        )


@dataclass(frozen=True, slots=True, eq=False)
class BatchedCoefficients:
    """Tests and intervals for k combinations of coefficients by batched least squares."""

    parts: tuple[BatchedReference, ...]
    exact, uses_std_error = False, False

    @property
    def name(self) -> str:
        """Name of the distribution."""
        return self.parts[0].name

    @property
    def statistic(self) -> str:
        """Symbol of the statistic in tables."""
        return self.parts[0].statistic

    @property
    def normal(self) -> bool:
        """Whether the batches are large enough for the normal distribution."""
        return self.parts[0].normal

    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logarithms of the two-sided p-values, shape (k,)."""
        return np.concatenate([part.log_pvalues(null) for part in self.parts])

    def interval(self, log_alpha: float) -> FloatArray:
        """Intervals at level 1 - exp(log_alpha), shape (k, 2)."""
        return np.vstack([part.interval(log_alpha) for part in self.parts])


def batch_regressions(batch: IntArray, design: FloatArray, response: FloatArray) -> BatchRegressions:
    """Fit a regression within each batch; batch (T,), design (T, d), response (T,)."""
    starts = np.flatnonzero(np.diff(batch, prepend=batch[0] - 1))
    stops = np.append(starts[1:], len(batch))
    size, dimension = len(starts), design.shape[1]
    coefficient, inverse = np.full((size, dimension), np.nan), np.full((size, dimension, dimension), np.nan)
    scale, df = np.full(size, np.nan), (stops - starts - dimension).astype(np.float64)
    usable, names = np.zeros(size, dtype=np.bool_), tuple(map(str, range(dimension)))
    for place, (start, stop) in enumerate(zip(starts, stops, strict=True)):
        if df[place] <= 0:
            continue
        try:
            fit = least_squares(design[start:stop], response[start:stop], names)
        except ParameterError:
            continue
        usable[place] = True
        coefficient[place], inverse[place] = fit.coefficient, fit.root @ fit.root.T
        scale[place] = 0.0 if fit.perfect else math.sqrt(fit.rss / df[place])
    return BatchRegressions(coefficient, inverse, scale, df, usable)


def batched_coefficients(
    found: BatchRegressions, rows: FloatArray, test: str = "t", values: FloatArray | None = None
) -> tuple[FloatArray, FloatArray, BatchedCoefficients]:
    """Estimate combinations of coefficients that are the same in all batches.

    Shapes: rows (k, d), values (k,); returns estimate, std_error (k,).

    In batch b, the combination c'b_b has standard error s_b sqrt(c'(X_b'X_b)^-1 c), whose inverse is called
    p_b. The statistic for a value v is sum p_b (c'b_b - v) / sqrt(B), which is linear in v. The estimate is
    therefore the mean of the batches' estimates weighted by p_b, and its standard error is sqrt(B) / sum p_b.
    Given earlier batches, the distribution of a batch's own t statistic does not depend on them; for normal
    noise with a common variance within the batch, it is Student's t. The statistics of the batches are
    therefore independent, however the design adapted between batches.
    """
    limit = test == "normal" or bool(np.all(found.df > NORMAL))
    estimate, std_error = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    parts = []
    for k, row in enumerate(rows):
        variance = np.einsum("i,bij,j->b", row, found.inverse, row)
        with np.errstate(divide="ignore"):
            precision = 1.0 / (found.scale * np.sqrt(variance))
        total = float(precision.sum())
        if math.isfinite(total) and total > 0.0:
            shift = 0.0 if values is None else values[k]
            estimate[k] = float(precision @ (found.coefficient @ row - shift)) / total
            std_error[k] = math.sqrt(len(precision)) / total
        parts.append(BatchedReference(float(estimate[k]), float(std_error[k]), None if limit else found.df))
    return estimate, std_error, BatchedCoefficients(tuple(parts))


@np.errstate(under="ignore")
def batched_wald(
    found: BatchRegressions, rows: FloatArray, values: FloatArray, test: str = "t"
) -> tuple[float, int, float]:
    """Test that rows @ coefficients = values, for coefficients that are the same in all batches.

    Shapes: rows (q, d), values (q,).

    The violation in each batch is multiplied by the symmetric inverse root of its covariance. The result has
    a spherically symmetric distribution (multivariate Student for normal noise), and so has the sum over
    batches. The distribution of its length follows from the characteristic function of one coordinate. For
    one restriction, the statistic is the square of that of the t test.
    """
    spread = np.einsum("qi,bij,rj->bqr", rows, found.inverse, rows) * found.scale[:, None, None] ** 2
    gap = found.coefficient @ rows.T - values
    size = len(values)
    if not np.all(found.scale > 0.0):
        return math.nan, size, math.nan
    roots, vectors = np.linalg.eigh(spread)
    studentised = np.einsum("bqk,bk,brk,br->q", vectors, 1.0 / np.sqrt(roots), vectors, gap)
    statistic = float(studentised @ studentised) / len(gap)
    if test == "normal" or bool(np.all(found.df > NORMAL)):
        return statistic, size, log_chi2_tail(statistic, size)
    tail = MeanStudent(found.df).norm_tail(math.sqrt(statistic), size)
    return statistic, size, math.log(min(1.0, max(tail, 2.0 * SMALLEST_TAIL)))


def drifting_wald(found: BatchRegressions, rows: FloatArray, values: FloatArray) -> tuple[float, int, float]:
    """Test that rows @ coefficients = values in every batch, against arbitrary coefficients in each batch.

    Shapes: rows (q, d), values (q,).
    """
    spread = np.einsum("qi,bij,rj->bqr", rows, found.inverse, rows)
    gap = found.coefficient @ rows.T - values
    size = len(values)
    if not np.all(found.scale > 0.0):
        return math.nan, size * len(gap), math.nan
    length = np.array(
        [float(g @ linalg.solve(s, g, assume_a="pos")) for g, s in zip(gap, spread, strict=True)]
    )
    f = length / (size * found.scale**2)
    log_tail = [log_f_tail(float(x), size, float(df)) for x, df in zip(f, found.df, strict=True)]
    # Each batch's F is replaced by the chi-squared quantile with the same tail probability, because the
    # distribution of their sum is known.
    statistic = float(sum(_chi2_quantile(x, size) for x in log_tail))
    df = size * len(gap)
    return statistic, df, log_chi2_tail(statistic, df)


def _chi2_quantile(log_tail: float, df: int) -> float:
    """The point at which the upper tail of chi-squared has this log probability."""
    if log_tail > -600.0:
        return float(special.chdtri(df, math.exp(log_tail)))
    x = -2.0 * log_tail
    for _ in range(50):
        # So far out, the log tail is concave with a slope of nearly -1/2, so these steps converge.
        x -= 2.0 * (log_tail - log_chi2_tail(x, df))
    return x


@dataclass(frozen=True, slots=True, eq=False)
class BatchedTests:
    """Tests of combinations of coefficients by batched least squares."""

    found: BatchRegressions
    test: str = "t"
    drift: bool = False

    def linear_test(self, hypothesis: LinearHypothesis, notes: tuple[str, ...]) -> LinearTest:
        """Separate tests of q combinations."""
        rows, values = hypothesis.matrix, hypothesis.values
        gap, std_error, reference = batched_coefficients(self.found, rows, self.test, values)
        return LinearTest(hypothesis.labels, gap + values, std_error, values, reference, notes)

    def wald_test(self, hypothesis: LinearHypothesis, notes: tuple[str, ...]) -> WaldTest:
        """Joint test of q restrictions."""
        check_independent(hypothesis)
        check_residuals(bool(np.all(self.found.scale > 0.0)))
        if self.drift:
            labels = tuple(f"{label} in every batch" for label in hypothesis.labels)
            found = drifting_wald(self.found, hypothesis.matrix, hypothesis.values)
            return WaldTest(*found, labels, (claims.DRIFTING_TEST(), *notes))
        law = "chi-squared" if self.test == "normal" else claims.STUDENT_SUM()
        found = batched_wald(self.found, hypothesis.matrix, hypothesis.values, self.test)
        return JointTest(*found, hypothesis.labels, notes, law=law)
