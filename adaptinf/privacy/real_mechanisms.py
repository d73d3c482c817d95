"""Mechanisms for real-valued statistics: Laplace and Gaussian noise, and the smallest valid scales.

A mechanism is an immutable value. A mechanism knows the distribution of its noise, the resulting guarantee,
and how to release an array with either backend: ``"simulation"`` draws from NumPy, is fast and can be seeded,
but is **not private**; ``"release"`` draws exact integers on a grid and cannot be seeded.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from adaptinf.parameters import NON_NEGATIVE, OPEN_SHARE, POSITIVE, SHARE, Number, OneOf, Positive, refuse
from adaptinf.privacy.mechanism import Mechanism, draws_from, finite, probabilities, reals, whole_units
from adaptinf.privacy.release import (
    GRID_UNITS,
    discrete_gaussian,
    discrete_laplace,
    from_units,
    scale_above,
)
from adaptinf.typing import FloatArray, RandomSource

CLASSICAL_LIMIT = (
    "the classical calibration is proved only for epsilon below 1: use the analytic one, which holds at "
    "every epsilon with less noise"
)
"""Why a classical calibration is refused."""

# No other package serves: dp-accounting's scale is too small in 50 of 90 cases (epsilon .001 to 50, delta
# 1e-15 to .3), by a relative 1.5e-12 (3.5e-8 at 1e-6, 1e-100), and it needs five more packages; OpenDP's, by
# zCDP, is 4 to 26% too large.
_MARGIN = 1e-13
"""Relative tolerance; the solver below is accurate to about 1e-14."""
_FAR = 1e7
"""Point from which M(x) equals 1 / x to a relative 1e-14, so that the difference of the two cancels."""
_SMOOTHING = 3.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)


def gaussian_delta(epsilon: float, scale: float, sensitivity: float = 1.0) -> float:
    """Smallest delta for which normal noise is (epsilon, delta)-differentially private.

    Parameters
    ----------
    epsilon : float
        Privacy parameter, at least 0.
    scale : float
        Standard deviation of the noise.
    sensitivity : float
        Largest change of the statistic between neighbours, in L2.

    Returns
    -------
    float
        Phi(D/(2s) - epsilon s/D) - e^epsilon Phi(-D/(2s) - epsilon s/D), computed without cancellation.

    Raises
    ------
    ParameterError
        If an argument is out of range; the message lists every problem.

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
    refuse("gaussian_delta", problems)
    return math.exp(_log_delta(float(epsilon), sensitivity / scale))


def analytic_scale(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Smallest standard deviation of normal noise that is (epsilon, delta)-differentially private.

    Parameters
    ----------
    epsilon, delta : float
        Privacy parameters; epsilon is positive, and delta lies strictly between 0 and 1.
    sensitivity : float
        Largest change of the statistic between neighbours, in L2.

    Returns
    -------
    float
        The standard deviation, above the exact solution by a relative 1e-13, so that rounding does not weaken
        the guarantee.

    Raises
    ------
    ParameterError
        If an argument is out of range; the message lists every problem.

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
    refuse("analytic_scale", problems)
    return float(sensitivity) * _unit_scale(float(epsilon), float(delta))


@functools.lru_cache(maxsize=1024)
def _unit_scale(epsilon: float, delta: float) -> float:
    """`analytic_scale` for a sensitivity of 1."""
    # scipy.optimize takes a quarter of a second to load, which those who need no scale are spared.
    from scipy import optimize

    def excess(log_ratio: float) -> float:
        return _log_delta(epsilon, math.exp(log_ratio)) - math.log(delta)

    low, high = -1.0, 1.0
    while excess(low) > 0.0:
        low *= 2.0
    while excess(high) < 0.0:
        high *= 2.0
    return math.exp(-optimize.brentq(excess, low, high, xtol=1e-15)) * (1.0 + _MARGIN)


def classical_scale(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Standard deviation sensitivity sqrt(2 log(1.25 / delta)) / epsilon, proved only for epsilon below 1.

    Parameters
    ----------
    epsilon, delta : float
        Privacy parameters, both strictly between 0 and 1.
    sensitivity : float
        Largest change of the statistic between neighbours, in L2.

    Returns
    -------
    float
        The standard deviation, which is never below `analytic_scale`.

    Raises
    ------
    ParameterError
        If an argument is out of range; the message lists every problem.

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
    refuse("classical_scale", problems)
    return float(sensitivity * math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon)


def discrete_scale(scale: float) -> float:
    """Scale, in grid units, of discrete Gaussian noise that protects at least as well as normal noise."""
    # Take normal noise of standard deviation s and round the result y to the integer k with probability
    # proportional to exp(-(k - y)^2 / (2 tau^2)). Its distribution is that of discrete Gaussian noise of
    # scale sqrt(s^2 + tau^2), up to a factor between (1 - eta) / (1 + eta) and 1 + eta per coordinate, where
    # eta < 3 exp(-2 pi^2 tau^2). For tau = 3 this is 1e-76, which is negligible compared with the margin in
    # the scale of the normal noise.
    return math.hypot(scale, _SMOOTHING)


def _budget_problems(epsilon: float, delta: float, sensitivity: float) -> list[str]:
    problems = POSITIVE("epsilon", epsilon)
    problems += POSITIVE("sensitivity", sensitivity)
    share = SHARE("delta", delta)
    if not share and delta == 1.0:
        share = ["delta must be below 1"]
    return problems + share


def _log_delta(epsilon: float, ratio: float) -> float:
    """Log of delta for ratio = sensitivity / scale."""
    # Let a = epsilon / ratio - ratio / 2, b = a + ratio, and let M = (1 - Phi) / phi be Mills' ratio. Then
    # delta = phi(a) (M(a) - M(b)), because e^epsilon phi(b) = phi(a); this form does not overflow.
    a = epsilon / ratio - 0.5 * ratio
    b = epsilon / ratio + 0.5 * ratio
    log_density = -0.5 * a * a - 0.5 * math.log(2.0 * math.pi)
    if a < -1.0:
        # Here delta is above 2/3, so 1 - delta is computed, which keeps its digits.
        complement = float(special.ndtr(a)) + math.exp(log_density) * _mills(b)
        return math.log1p(-complement)
    if ratio < 1.0:
        # The derivative of M has one sign, so its integral from a to b involves no cancellation.
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
    """1 - x M(x), by its asymptotic series in the far tail."""
    direct = 1.0 - x * math.sqrt(0.5 * math.pi) * special.erfcx(x / math.sqrt(2.0))
    square = np.maximum(x, 1.0) ** -2.0
    series = square * (1.0 - 3.0 * square * (1.0 - 5.0 * square * (1.0 - 7.0 * square)))
    return np.where(x > 300.0, series, direct)


@dataclass(frozen=True, kw_only=True)
class Laplace(Mechanism):
    """The Laplace mechanism: noise with density exp(-abs(x) / scale) / (2 scale) on every coordinate.

    Parameters
    ----------
    epsilon : float
        Privacy parameter for one release.
    sensitivity : float
        Largest change of the released array between neighbours, in L1.

    References
    ----------
    Dwork, C., McSherry, F., Nissim, K. and Smith, A. (2006). Calibrating noise to sensitivity in private data
    analysis. TCC.

    Examples
    --------
    >>> import adaptinf as ai
    >>> mechanism = ai.privacy.Laplace(epsilon=0.5)
    >>> mechanism.scale, mechanism.variance
    (2.0, 8.0)
    >>> print(mechanism.guarantee())
    epsilon = 0.5, pure, per reward, central, standard
    >>> mechanism.release([10.0, 20.0], rng=0).round(2)
    array([10.64, 18.77])
    """

    sensitivity: Positive = 1.0

    @property
    def scale(self) -> float:
        """Scale of the noise: sensitivity / epsilon."""
        return self.sensitivity / self.epsilon

    @property
    def variance(self) -> float:
        """Variance of the noise."""
        return 2.0 * self.scale**2

    def tail(self, x: ArrayLike) -> FloatArray:
        """Probability that the noise of a coordinate exceeds x.

        Examples
        --------
        >>> import adaptinf as ai
        >>> import numpy as np
        >>> ai.privacy.Laplace(epsilon=1.0).tail([0.0, np.log(50.0)])
        array([0.5 , 0.01])
        """
        x = reals("Laplace.tail", x, "x")
        half = 0.5 * np.exp(-np.abs(x) / self.scale)
        return np.asarray(np.where(x >= 0.0, half, 1.0 - half))

    def quantile(self, p: ArrayLike) -> FloatArray:
        """Quantiles of the noise of a coordinate: the x that it does not exceed with probability p.

        Examples
        --------
        >>> import adaptinf as ai
        >>> ai.privacy.Laplace(epsilon=2.0).quantile([0.5, 0.975]).round(6)
        array([0.      , 1.497866])
        """
        p = probabilities("Laplace.quantile", p)
        distance = -self.scale * np.log(2.0 * np.minimum(p, 1.0 - p))
        return np.asarray(np.where(p < 0.5, -distance, distance) + 0.0)

    def release(
        self,
        values: ArrayLike,
        rng: RandomSource | None = None,
        backend: str = "simulation",
        *,
        on_grid: bool = False,
    ) -> FloatArray:
        """The values with noise: one private release of the whole array.

        Parameters
        ----------
        values : array_like
            Statistics of any shape, whose L1 sensitivity is that of the mechanism.
        rng : int, SeedSequence, Generator or None
            Source of randomness for a simulation; must be omitted for a release.
        backend : {"simulation", "release"}
            ``"simulation"`` is not private. ``"release"`` rounds to the nearest of 2^20 units per sensitivity
            and adds exact discrete Laplace noise (requires OpenDP).
        on_grid : bool
            Whether these statistics are always multiples of sensitivity / 2^20, as are counts and sums of
            items from `to_grid`.

        Returns
        -------
        ndarray of float, of the shape of `values`
            Noisy values; in a release, multiples of sensitivity / 2^20.

        Raises
        ------
        ParameterError
            If a value is not finite or contradicts `on_grid`, the backend is unknown, or `rng` is given for a
            release.
        MissingDependencyError
            If OpenDP is required but not installed.

        Notes
        -----
        Rounding changes d coordinates by at most d - 1 units more than the statistics themselves change, so
        the scale of a release is larger by a factor of 1 + (d - 1) / 2^20, unless `on_grid` is set.

        Examples
        --------
        >>> import adaptinf as ai
        >>> noisy = ai.privacy.Laplace(epsilon=1.0).release([3.0, 4.0], backend="release")
        >>> bool((noisy * 2**20 % 1 == 0).all())
        True
        """
        generator = draws_from("Laplace.release", rng, backend)
        array = finite("Laplace.release", values)
        if generator is not None:
            return np.asarray(array + generator.laplace(scale=self.scale, size=array.shape))
        units = whole_units("Laplace.release", array, self.sensitivity, on_grid)
        moved = GRID_UNITS + (0 if on_grid else max(array.size - 1, 0))
        noise = discrete_laplace(scale_above(moved, self.epsilon), array.size).tolist()
        noisy = [unit + z for unit, z in zip(units, noise, strict=True)]
        return from_units(noisy, self.sensitivity, array.shape)


@dataclass(frozen=True, kw_only=True)
class Gaussian(Mechanism):
    """The Gaussian mechanism: independent normal noise on every coordinate.

    Parameters
    ----------
    epsilon, delta : float
        Privacy parameters for one release.
    sensitivity : float
        Largest change of the released array between neighbours, in L2.
    calibration : {"analytic", "classical"}
        ``"analytic"`` uses the smallest valid scale for every epsilon. ``"classical"`` uses sensitivity
        sqrt(2 log(1.25 / delta)) / epsilon, which is proved only for epsilon below 1, and adds more noise
        than necessary there.

    Raises
    ------
    ParameterError
        If a parameter is out of range (the message lists every problem), including a classical calibration
        with epsilon of 1 or more.

    References
    ----------
    Balle, B. and Wang, Y.-X. (2018). Improving the Gaussian mechanism for differential privacy. ICML.

    Canonne, C., Kamath, G. and Steinke, T. (2020). The discrete Gaussian for differential privacy. NeurIPS.

    Examples
    --------
    >>> import adaptinf as ai
    >>> mechanism = ai.privacy.Gaussian(epsilon=0.5, delta=1e-5)
    >>> round(mechanism.scale, 4)
    7.0318
    >>> round(ai.privacy.Gaussian(epsilon=0.5, delta=1e-5, calibration="classical").scale, 4)
    9.6896
    >>> print(mechanism.guarantee())
    epsilon = 0.5, delta = 1e-05, per reward, central, standard
    """

    delta: Annotated[float, OPEN_SHARE]
    sensitivity: Positive = 1.0
    calibration: Annotated[str, OneOf("analytic", "classical")] = "analytic"

    def _problems(self) -> list[str]:
        beyond = self.calibration == "classical" and not Number(1.0)("epsilon", self.epsilon)
        return [CLASSICAL_LIMIT] if beyond else []

    @property
    def scale(self) -> float:
        """Standard deviation of the noise."""
        find = analytic_scale if self.calibration == "analytic" else classical_scale
        return find(self.epsilon, self.delta, self.sensitivity)

    @property
    def variance(self) -> float:
        """Variance of the noise."""
        return self.scale**2

    def tail(self, x: ArrayLike) -> FloatArray:
        """Probability that the noise of a coordinate exceeds x."""
        return np.asarray(special.ndtr(-reals("Gaussian.tail", x, "x") / self.scale))

    def quantile(self, p: ArrayLike) -> FloatArray:
        """Quantiles of the noise of a coordinate: the x that it does not exceed with probability p."""
        return np.asarray(self.scale * special.ndtri(probabilities("Gaussian.quantile", p)))

    def _loss(self) -> tuple[float, float, tuple[str, ...]]:
        return float(self.epsilon), float(self.delta), ()

    def release(
        self,
        values: ArrayLike,
        rng: RandomSource | None = None,
        backend: str = "simulation",
        *,
        on_grid: bool = False,
    ) -> FloatArray:
        """The values with noise: one private release of the whole array.

        Parameters
        ----------
        values : array_like
            Statistics of any shape, whose L2 sensitivity is that of the mechanism.
        rng, backend, on_grid
            As in `Laplace.release`.

        Returns
        -------
        ndarray of float, of the shape of `values`
            Noisy values; in a release, multiples of sensitivity / 2^20.

        Notes
        -----
        A release adds discrete Gaussian noise that is wider than the scale by at most a relative 1e-11 if the
        scale exceeds the sensitivity, and by a factor of 1 + sqrt(d) / 2^20 for rounding d > 1 coordinates.
        """
        generator = draws_from("Gaussian.release", rng, backend)
        array = finite("Gaussian.release", values)
        if generator is not None:
            return np.asarray(array + generator.normal(scale=self.scale, size=array.shape))
        units = whole_units("Gaussian.release", array, self.sensitivity, on_grid)
        moved = GRID_UNITS + (0.0 if on_grid or array.size <= 1 else math.sqrt(array.size))
        noise = discrete_gaussian(discrete_scale(self.scale / self.sensitivity * moved), array.size).tolist()
        noisy = [unit + z for unit, z in zip(units, noise, strict=True)]
        return from_units(noisy, self.sensitivity, array.shape)
