"""Normal noise: what it guarantees exactly, and the smallest scale that guarantees enough."""

from __future__ import annotations

import functools
import math

import numpy as np
from scipy import special

from adaptinf.errors import ParameterError
from adaptinf.parameters import NON_NEGATIVE, POSITIVE, SHARE
from adaptinf.typing import FloatArray

CLASSICAL_LIMIT = (
    "the classical calibration is proved for epsilon below 1 only: use the analytic one, which holds at "
    "every epsilon with less noise"
)
"""Why a classical calibration is refused."""

# dp-accounting's scale is too small in 50 of 90 cases (epsilon .001 to 50, delta 1e-15 to .3), by a relative
# 1.5e-12 (3.5e-8 at 1e-6, 1e-100), and needs five more packages; OpenDP's, by zCDP, is 4 to 26% too large
_MARGIN = 1e-13
"""Relative; the solver below is good to about 1e-14."""
_FAR = 1e7
"""From here on M(x) is 1 / x up to a relative 1e-14, and the difference of two has cancelled."""
_SMOOTHING = 3.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)


def gaussian_delta(epsilon: float, scale: float, sensitivity: float = 1.0) -> float:
    """Smallest delta at which normal noise is (epsilon, delta)-differentially private.

    Parameters
    ----------
    epsilon : float
        Privacy parameter, at least 0.
    scale : float
        Standard deviation of the noise.
    sensitivity : float
        Largest change of the statistic in L2.

    Returns
    -------
    float
        Phi(D/(2s) - epsilon s/D) - e^epsilon Phi(-D/(2s) - epsilon s/D), without cancellation.

    Raises
    ------
    ParameterError
        Listing every argument that is out of range.

    References
    ----------
    Balle, B. and Wang, Y.-X. (2018). Improving the Gaussian mechanism for differential privacy. ICML.

    Examples
    --------
    >>> import adaptinf as ai
    >>> round(ai.privacy.gaussian_delta(1.0, 1.0), 12)
    0.126936737507
    """
    problems = NON_NEGATIVE("epsilon", epsilon)
    problems += POSITIVE("scale", scale)
    problems += POSITIVE("sensitivity", sensitivity)
    if problems:
        raise ParameterError("gaussian_delta", problems)
    return math.exp(_log_delta(float(epsilon), sensitivity / scale))


def analytic_scale(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Smallest standard deviation of normal noise that is (epsilon, delta)-differentially private.

    Parameters
    ----------
    epsilon, delta : float
        Privacy parameters, epsilon above 0 and delta strictly between 0 and 1.
    sensitivity : float
        Largest change of the statistic in L2.

    Returns
    -------
    float
        Above the exact solution by a relative 1e-13, so that rounding does not weaken the guarantee.

    Raises
    ------
    ParameterError
        Listing every argument that is out of range.

    References
    ----------
    Balle, B. and Wang, Y.-X. (2018). Improving the Gaussian mechanism for differential privacy. ICML.

    Examples
    --------
    >>> import adaptinf as ai
    >>> round(ai.privacy.analytic_scale(1.0, 1e-5), 6)
    3.730632
    """
    problems = _budget_problems(epsilon, delta, sensitivity)
    if problems:
        raise ParameterError("analytic_scale", problems)
    return float(sensitivity) * _unit_scale(float(epsilon), float(delta))


@functools.lru_cache(maxsize=1024)
def _unit_scale(epsilon: float, delta: float) -> float:
    """`analytic_scale` at a sensitivity of 1."""
    from scipy import optimize  # a quarter of a second, which whoever needs no scale is spared

    def excess(log_ratio: float) -> float:
        return _log_delta(epsilon, math.exp(log_ratio)) - math.log(delta)

    low, high = -1.0, 1.0
    while excess(low) > 0.0:
        low *= 2.0
    while excess(high) < 0.0:
        high *= 2.0
    return math.exp(-optimize.brentq(excess, low, high, xtol=1e-15)) * (1.0 + _MARGIN)


def classical_scale(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Standard deviation sensitivity sqrt(2 log(1.25 / delta)) / epsilon, proved for epsilon below 1 only.

    Parameters
    ----------
    epsilon, delta : float
        Privacy parameters, both strictly between 0 and 1.
    sensitivity : float
        Largest change of the statistic in L2.

    Returns
    -------
    float
        The standard deviation; never below `analytic_scale`.

    Raises
    ------
    ParameterError
        Listing every argument that is out of range.

    References
    ----------
    Dwork, C. and Roth, A. (2014). The algorithmic foundations of differential privacy. Theorem A.1.

    Examples
    --------
    >>> import adaptinf as ai
    >>> round(ai.privacy.classical_scale(0.5, 1e-5), 6)
    9.689611
    """
    problems = _budget_problems(epsilon, delta, sensitivity)
    if not problems and epsilon >= 1.0:
        problems.append(CLASSICAL_LIMIT)
    if problems:
        raise ParameterError("classical_scale", problems)
    return float(sensitivity * math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon)


def discrete_scale(scale: float) -> float:
    """Scale, in grid units, of discrete Gaussian noise that protects like normal noise of a given scale.

    Normal noise of standard deviation s, followed by rounding y to the integer k with probability
    proportional to exp(-(k - y)^2 / (2 tau^2)), has the law of discrete Gaussian noise of scale
    sqrt(s^2 + tau^2) up to a factor between (1 - eta) / (1 + eta) and 1 + eta a coordinate, with eta below
    3 exp(-2 pi^2 tau^2). For tau = 3 that is 1e-76: nothing beside the margin that the scale of the normal
    noise has.
    """
    return math.hypot(scale, _SMOOTHING)


def _budget_problems(epsilon: float, delta: float, sensitivity: float) -> list[str]:
    problems = POSITIVE("epsilon", epsilon)
    problems += POSITIVE("sensitivity", sensitivity)
    share = SHARE("delta", delta)
    if not share and delta == 1.0:
        share = ["delta must be below 1"]
    return problems + share


def _log_delta(epsilon: float, ratio: float) -> float:
    """Log of delta at ratio = sensitivity / scale.

    With a = epsilon / ratio - ratio / 2, b = a + ratio and Mills' M = (1 - Phi) / phi: delta is
    phi(a) (M(a) - M(b)), because e^epsilon phi(b) = phi(a).
    """
    a = epsilon / ratio - 0.5 * ratio
    b = epsilon / ratio + 0.5 * ratio
    log_density = -0.5 * a * a - 0.5 * math.log(2.0 * math.pi)
    if a < -1.0:
        # delta is above 2/3: what is missing to 1 is the number to be accurate about
        complement = float(special.ndtr(a)) + math.exp(log_density) * _mills(b)
        return math.log1p(-complement)
    if ratio < 1.0:
        # minus the slope of M has one sign: its integral from a to b has no cancellation
        x = a + 0.5 * ratio * (_NODES + 1.0)
        difference = 0.5 * ratio * float(_WEIGHTS @ _minus_mills_slope(x))
    elif a < _FAR:
        difference = _mills(a) - _mills(b)
    else:
        difference = ratio / a / b
    return log_density + (math.log(difference) if difference > 0.0 else -math.inf)


def _mills(x: float) -> float:
    return math.sqrt(0.5 * math.pi) * float(special.erfcx(x / math.sqrt(2.0)))


def _minus_mills_slope(x: FloatArray) -> FloatArray:
    """1 - x M(x), by its asymptotic series far out."""
    direct = 1.0 - x * math.sqrt(0.5 * math.pi) * special.erfcx(x / math.sqrt(2.0))
    square = np.maximum(x, 1.0) ** -2.0
    series = square * (1.0 - 3.0 * square * (1.0 - 5.0 * square * (1.0 - 7.0 * square)))
    return np.where(x > 300.0, series, direct)
