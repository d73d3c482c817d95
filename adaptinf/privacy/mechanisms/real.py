"""Mechanisms for real-valued statistics: Laplace and Gaussian noise.

A mechanism is a frozen value. It knows the law of its noise, the guarantee that follows from its parts, and
how to release an array with either backend: ``"simulation"`` draws from NumPy, is fast and seedable and **not
private**; ``"release"`` draws exact integers on a grid and cannot be seeded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from adaptinf.parameters import OPEN_SHARE, Number, OneOf, Positive
from adaptinf.privacy.base import Mechanism, draws_from, finite, probabilities, reals, whole_units
from adaptinf.privacy.mechanisms.gaussian import (
    CLASSICAL_LIMIT,
    analytic_scale,
    classical_scale,
    discrete_scale,
)
from adaptinf.privacy.release import (
    GRID_UNITS,
    discrete_gaussian,
    discrete_laplace,
    from_units,
    scale_above,
)
from adaptinf.typing import FloatArray, RandomSource


@dataclass(frozen=True, kw_only=True)
class Laplace(Mechanism):
    """The Laplace mechanism: noise of density exp(-abs(x) / scale) / (2 scale) on every coordinate.

    Parameters
    ----------
    epsilon : float
        Privacy parameter of one release.
    sensitivity : float
        Largest change of the released array in L1, between neighbours.

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
        """The x that the noise of a coordinate stays at or below with probability p.

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
        """The values with noise, one private release of the whole array.

        Parameters
        ----------
        values : array_like
            Statistics of any shape, whose L1 sensitivity is that of the mechanism.
        rng : int, SeedSequence, Generator or None
            Source of a simulation; must be left out in a release.
        backend : {"simulation", "release"}
            ``"simulation"`` is not private. ``"release"`` rounds to the nearest of 2^20 units per sensitivity
            and adds exact discrete Laplace noise (needs OpenDP).
        on_grid : bool
            Says that these statistics are multiples of sensitivity / 2^20 whatever the data are, as sums of
            items from `to_grid` and counts are.

        Returns
        -------
        ndarray of float, of the shape of `values`
            Noisy values; in a release, multiples of sensitivity / 2^20.

        Raises
        ------
        ParameterError
            If a value is not finite or contradicts `on_grid`, the backend is unknown, or a release is to be
            seeded.
        MissingDependencyError
            If a release needs OpenDP and it is missing.

        Notes
        -----
        Rounding moves d coordinates by at most d - 1 units more than the statistics themselves move, so
        that the scale of a release is larger by a factor of 1 + (d - 1) / 2^20; not with `on_grid`.

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
        Privacy parameters of one release.
    sensitivity : float
        Largest change of the released array in L2, between neighbours.
    calibration : {"analytic", "classical"}
        ``"analytic"`` takes the smallest valid scale at every epsilon. ``"classical"`` takes sensitivity
        sqrt(2 log(1.25 / delta)) / epsilon, which is proved for epsilon below 1 only and noisier there.

    Raises
    ------
    ParameterError
        Listing every parameter that is out of range; a classical calibration at epsilon 1 or more is one.

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
        """The x that the noise of a coordinate stays at or below with probability p."""
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
        """The values with noise, one private release of the whole array.

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
        A release adds discrete Gaussian noise that is wider than the scale by a relative 1e-11 at most where
        the scale exceeds the sensitivity, and by a factor of 1 + sqrt(d) / 2^20 for rounding d > 1
        coordinates.
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
