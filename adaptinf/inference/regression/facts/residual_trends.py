"""Trends in each arm's rewards after a regression on the columns, computed in a few passes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from adaptinf.inference.regression import regression_kernels as kernels
from adaptinf.inference.regression.design import RegressionData
from adaptinf.inference.validity.profile import LogProfile
from adaptinf.inference.validity.stationarity import LEAST_ROUNDS, Trends, standardised, times
from adaptinf.typing import BoolArray, FloatArray, IntArray

# What the columns leave of a time or of rewards below this share is rounding.
_ROUNDING = 1e-12
# Below this, sums of products keep too few digits, so least squares use the rows themselves.
_DETERMINED = 1e-6
_BLOCK = 1 << 15
"""Number of rounds whose columns are combined in one array at a time."""


def residual_trends(data: RegressionData, profile: LogProfile) -> Trends:
    """Trends in the residuals of K arms' rewards from least squares on the columns, in the rounds used.

    Both rewards and times are replaced with their residuals from least squares on the columns, within the
    arm's own rounds.
    """
    time = times(data.n_rounds, profile.log.arrays.batch)[data.rounds]
    unit = profile.units[data.rounds] if profile.repeated_units and profile.units is not None else None
    sums, ends = np.zeros((data.n_arms, data.size + 3)), np.zeros((2, data.n_arms, 2))
    ends[0], ends[1] = np.inf, -np.inf
    for _, action, columns in _blocks(data, time):
        kernels.add_columns(action, columns, sums, ends)
    count, scale = sums[:, -1], ends[1] - ends[0]
    centre = sums[:, :-1] / np.maximum(count, 1.0)[:, None]
    grams = np.zeros((data.n_arms, data.size + 2, data.size + 2))
    for _, action, columns in _blocks(data, time):
        kernels.add_grams(action, columns, centre, grams)
    known = (centre[:, :-2] != 0.0) | (np.einsum("kii->ki", grams)[:, :-2] > 0.0)
    tested = (count - known.sum(axis=1) >= LEAST_ROUNDS) & (np.isfinite(scale) & (scale > 0.0)).all(axis=1)
    terms, left, literal = _residual_products(data, time, (count, centre, scale), grams)
    tested &= left.min(axis=1) > _ROUNDING * count
    found = np.full(data.n_arms, np.nan)
    for code in np.flatnonzero(tested | literal):
        own = data.action == code
        products: FloatArray | None = terms[own]
        if literal[code]:
            products = literal_terms(data.x[own], np.stack([time[own], data.y[own]], axis=1))
        if products is None:
            continue
        if unit is not None:
            products = np.bincount(np.unique(unit[own], return_inverse=True)[1], products).astype(np.float64)
        if len(products) >= LEAST_ROUNDS:
            found[code] = standardised(products)
    return Trends(found)


def _blocks(data: RegressionData, time: FloatArray) -> Iterator[tuple[slice, IntArray, FloatArray]]:
    """Blocks of rounds, with columns, times and rewards in one array."""
    for start in range(0, data.nobs, _BLOCK):
        rows = slice(start, start + _BLOCK)
        yield rows, data.action[rows], np.column_stack([data.x[rows], time[rows], data.y[rows]])


def _residual_products(
    data: RegressionData,
    time: FloatArray,
    arms: tuple[FloatArray, FloatArray, FloatArray],
    grams: FloatArray,
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Products of residuals of time and rewards, their sums of squares, and arms with collinear columns.

    `arms` contains rounds (K,), centres (K, m) and ranges (K, 2); grams has shape (K, m, m). Returns arrays
    of shapes (n,), (K, 2) and (K,).
    """
    count, centre, scale = arms
    size = data.size
    inverse, literal = _inverses(grams[:, :size, :size], centre[:, :size], count)
    slope = inverse @ grams[:, :size, size:]
    residual, crossed = np.zeros((_BLOCK, 2)), np.zeros((data.n_arms, size + 1, 2))
    for _, action, columns in _blocks(data, time):
        kernels.add_residuals(action, columns, centre, slope, crossed, residual)
    # The second time takes out the rounding of the first.
    slope += inverse @ crossed[:, :size]
    centre = centre.copy()
    centre[:, size:] += crossed[:, size] / np.maximum(count, 1.0)[:, None]
    terms, left = np.empty(data.nobs), np.zeros((data.n_arms, 2))
    unit = np.where(scale > 0.0, scale, 1.0)
    for rows, action, columns in _blocks(data, time):
        kernels.add_residuals(action, columns, centre, slope, crossed, residual)
        both = residual[: len(action)] / unit[action]
        terms[rows] = both[:, 0] * both[:, 1]
        for k in range(2):
            left[:, k] += np.bincount(action, both[:, k] ** 2, data.n_arms)
    return terms, left, literal


def _inverses(grams: FloatArray, centre: FloatArray, count: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Inverses of the arms' sums of products, from upper triangles, and arms with collinear columns.

    Shapes: grams (K, p, p), centre (K, p), count (K,); returns (K, p, p), (K,).
    """
    found, literal = np.zeros(grams.shape), np.zeros(len(grams), dtype=bool)
    for code, gram in enumerate(grams):
        length = np.sqrt(np.diag(gram))
        level = np.abs(centre[code]) * np.sqrt(count[code])
        varies = length > _ROUNDING * level
        literal[code] = bool(np.any(varies & (length < _DETERMINED * level)))
        if not varies.any():
            continue
        kept = np.ix_(varies, varies)
        whole = np.triu(gram) + np.triu(gram, 1).T
        values, directions = np.linalg.eigh(whole[kept] / np.outer(length[varies], length[varies]))
        literal[code] |= bool(values[0] < _DETERMINED * values[-1])
        part = (directions / np.maximum(values, _DETERMINED)) @ directions.T
        found[code][kept] = part / np.outer(length[varies], length[varies])
    return found, literal


def literal_terms(x: FloatArray, both: FloatArray) -> FloatArray | None:
    """Products of an arm's residuals and rewards; None if residuals are 0; x (n, p), both (n, 2)."""
    used = x[:, x.any(axis=0)]
    if len(both) - used.shape[1] < LEAST_ROUNDS:
        return None
    scale = np.ptp(both, axis=0)
    if not (np.isfinite(scale) & (scale > 0.0)).all():
        return None
    both = (both - both[0]) / scale
    with_constant = np.column_stack([np.ones(len(both)), used])
    left = both - with_constant @ np.linalg.lstsq(with_constant, both, rcond=None)[0]
    if np.einsum("nk,nk->k", left, left).min() <= _ROUNDING * len(both):
        return None
    return np.asarray(left[:, 0] * left[:, 1], dtype=np.float64)
