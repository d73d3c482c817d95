"""How much precision was lost: estimated variances over the semiparametric bound.

References
----------
Hahn (1998), "On the role of the propensity score in efficient semiparametric estimation of average treatment
effects".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.inference.scores.means import sample_means
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.arms.fit import ArmFit
    from adaptinf.log import AdaptiveLog

__all__ = ["arm_bounds", "efficiency_note", "fit_efficiency", "over_bound"]


def arm_bounds(log: AdaptiveLog, codes: IntArray, *, shares: bool = False) -> FloatArray:
    """Least variances of estimates of arm means, without use of contexts.

    Shapes: codes (k,); returns (k,).

    Notes
    -----
    Of T rounds whose arms are drawn with probabilities e(x), the efficient influence function of the mean of
    one arm is 1{W = w} / e(x) (Y - mu(x)) + mu(x) - mu, so that no regular estimate has a variance below
    E[sigma(x)^2 / e(x) + (mu(x) - mu)^2] / T. Without contexts that is sigma^2 / (e T). Two arms are never
    chosen in one round, and so the bound of a contrast is the sum of its arms' bounds; with contexts it is
    E[sigma1(x)^2 / e1(x) + sigma0(x)^2 / e0(x) + (tau(x) - tau)^2] / T. A good model of contexts can go below
    the bound without them.
    """
    arrays = log.arrays
    found = sample_means(arrays.action, arrays.reward, log.n_arms)
    counts = found.count[codes]
    spread = found.std_error[codes] ** 2 * counts
    rounds = counts
    if arrays.propensities is not None and not shares:
        rounds = np.einsum("tk->k", arrays.propensities)[codes]  # three times as quick as sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(spread / rounds, dtype=np.float64)


def over_bound(variance: FloatArray, bound: FloatArray) -> FloatArray:
    """Variances over their bounds; NaN where there is none."""
    ratio = np.full(np.shape(variance), np.nan)
    np.divide(variance, bound, out=ratio, where=np.isfinite(bound) & (bound > 0.0))
    return ratio


def fit_efficiency(
    log: AdaptiveLog, codes: IntArray, fit: ArmFit, variance: FloatArray
) -> tuple[Mapping[str, FloatArray], str]:
    """The ratio for a table of diagnostics, and its note; none for sample means.

    Shapes: codes (k,), variance (k,) or (1,).
    """
    if fit.sample is not None:  # their errors ignore adaptivity
        return {}, ""
    shares = fit.arm_error is not None
    bounds = arm_bounds(log, codes, shares=shares)
    whole = bounds if len(variance) == len(bounds) else bounds.sum(keepdims=True)
    ratios = over_bound(variance, whole)
    return {"efficiency": ratios}, efficiency_note(ratios, shares=shares)


def efficiency_note(ratios: FloatArray, *, shares: bool = False) -> str:
    """One sentence for a footer; empty where no ratio is known; ratios (k,)."""
    known = ratios[np.isfinite(ratios)]
    if len(known) == 0:
        return ""
    low, high = f"{known.min():.2f}", f"{known.max():.2f}"
    many = f"variances are {low} to {high}" if low != high else f"the variance is {low}"
    where = "the arms' shares of the rounds" if shares else "the average propensities"
    return f"Efficiency: {many} times the least possible at {where}, without use of contexts."
