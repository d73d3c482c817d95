"""Trends of the arms' rewards, less what the columns of a regression tell of them."""

from __future__ import annotations

import numpy as np

from adaptinf.inference.regression.data import RegressionData
from adaptinf.inference.validity.profile import LogProfile
from adaptinf.inference.validity.stationarity import LEAST_ROUNDS, Trends, standardised, times
from adaptinf.typing import FloatArray

_ROUNDING = 1e-12


def residual_trends(data: RegressionData, profile: LogProfile) -> Trends:
    """Of each arm's rewards less what the columns tell of them, in the rounds used; of K arms.

    Rewards and times are both taken less their least squares on the columns within the arm's own rounds.
    """
    time = times(data.n_rounds, profile.log.arrays.batch)[data.rounds]
    unit = profile.units[data.rounds] if profile.repeated_units and profile.units is not None else None
    found = np.full(data.n_arms, np.nan)
    for code in np.unique(data.action):
        own = data.action == code
        terms = _terms(data.x[own], np.stack([time[own], data.y[own]], axis=1))
        if terms is None:
            continue
        if unit is not None:
            terms = np.bincount(np.unique(unit[own], return_inverse=True)[1], terms).astype(np.float64)
        if len(terms) >= LEAST_ROUNDS:
            found[code] = standardised(terms)
    return Trends(found)


def _terms(x: FloatArray, both: FloatArray) -> FloatArray | None:
    """Products of residual times and rewards, None where the columns leave none; x (n, p), both (n, 2)."""
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
