"""Least-squares coefficients that depend on rare outcomes or skewed rewards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from adaptinf.inference.distributions.references import PartialReference
from adaptinf.inference.distributions.sample_shape import squared_skewness
from adaptinf.inference.regression import regression_kernels as kernels
from adaptinf.inference.regression.design import CoefficientFit, RegressionData
from adaptinf.inference.regression.joint_tests import PartialTests
from adaptinf.inference.scores.means import unevenness
from adaptinf.inference.validity.rare import rare_cautions, rare_notes, without_interval
from adaptinf.typing import BoolArray, FloatArray

# Rounds with small weights hardly affect a coefficient, so they cannot make an outcome common.
_LIGHT = 0.05
_BLOCK = 1 << 14


@dataclass(frozen=True, slots=True, eq=False)
class RareCoefficients:
    """Coefficients without a test, with statements about these and others; hidden has shape (p,)."""

    hidden: BoolArray
    notes: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()


def rare_coefficients(data: RegressionData, fit: CoefficientFit) -> RareCoefficients:
    """Find the coefficients that depend on rare outcomes.

    A coefficient of least squares is a weighted sum of rewards. Both the rewards with positive weights and
    those with negative weights, such as the rewards of an arm and of the arm with which it is compared, must
    vary. Weights below a twentieth of the largest weight are ignored. Methods that are valid in finite
    samples for all bounded rewards are not checked.
    """
    if fit.reference.exact or data.nobs <= data.size:
        return RareCoefficients(np.zeros(data.size, dtype=np.bool_))
    uncommon, spread = _sides(data)
    skewness = squared_skewness(data.y) * spread
    uncommon = np.where(fit.std_error > 0.0, uncommon, np.inf)
    cautions = rare_cautions(data.names, uncommon, skewness)
    hidden = without_interval(uncommon)
    return RareCoefficients(hidden, tuple(rare_notes(data.names, uncommon)), tuple(cautions))


def _sides(data: RegressionData) -> tuple[FloatArray, FloatArray]:
    """Smallest number of uncommon rewards on a side of each coefficient, and its unevenness; shapes (p,)."""
    q, root, size = data.squares.q, data.squares.root, data.size
    blocks = [slice(start, start + _BLOCK) for start in range(0, data.nobs, _BLOCK)]

    def pulls() -> Iterator[tuple[FloatArray, FloatArray]]:
        for rows in blocks:
            yield np.ascontiguousarray(q[rows] @ root.T), np.ascontiguousarray(data.y[rows])

    largest = np.zeros(size)
    for pull, _ in pulls():
        np.maximum(largest, np.abs(pull).max(axis=0), out=largest)
    sides, counts = np.zeros((kernels.SIDES, size, 2)), np.zeros((2, size, 2))
    for pull, reward in pulls():
        kernels.vote(pull, reward, _LIGHT * largest, sides)
    for pull, reward in pulls():
        kernels.tally(pull, reward, _LIGHT * largest, sides, counts)
    number, squares, cubes = sides[kernels.NUMBER], sides[kernels.PULL_SQUARES], sides[kernels.PULL_CUBES]
    common = counts.max(axis=0)
    uncommon = np.where((2.0 * common >= number) & (common > 1.0), number - common, np.inf)
    return uncommon.min(axis=1), unevenness(squares, cubes).max(axis=1)


def without_hidden(data: RegressionData, fit: CoefficientFit, hidden: BoolArray) -> CoefficientFit:
    """The fit, without tests of the hidden coefficients; hidden has shape (p,)."""
    if not np.any(hidden):
        return fit
    gap = np.where(hidden, np.nan, 0.0)
    covariance = None if fit.covariance is None else fit.covariance + gap[:, None] + gap[None, :]
    return replace(
        fit,
        std_error=fit.std_error + gap,
        covariance=covariance,
        reference=PartialReference(fit.reference, hidden),
        joint=None if fit.joint is None else PartialTests(fit.joint, data.names, hidden),
    )
