"""Mechanisms for counts: two-sided geometric noise, unrestricted or truncated at zero."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.compilation import compiled, kernel
from adaptinf.errors import ParameterError
from adaptinf.parameters import Calibration, Count, Whole
from adaptinf.privacy.mechanism import (
    Mechanism,
    draws_from,
    finite,
    number,
    probabilities,
    reals,
    whole_numbers,
)
from adaptinf.privacy.noise import uniform
from adaptinf.privacy.release import discrete_laplace, scale_above
from adaptinf.typing import FloatArray, IntArray, RandomSource


@dataclass(frozen=True, kw_only=True)
class DiscreteLaplace(Mechanism):
    """Two-sided geometric noise for counts: probability proportional to exp(-epsilon abs(k) / sensitivity).

    Parameters
    ----------
    epsilon : float
        Privacy parameter for one release.
    sensitivity : int
        Largest change of the released counts between neighbours, in L1.

    References
    ----------
    Ghosh, A., Roughgarden, T. and Sundararajan, M. (2012). Universally utility-maximizing privacy mechanisms.
    SIAM Journal on Computing 41.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import numpy as np
    >>> mechanism = ai.privacy.DiscreteLaplace(epsilon=1.0)
    >>> np.log(mechanism.probability(0) / mechanism.probability(1)).round(12)
    np.float64(1.0)
    >>> mechanism.release([10, 20], rng=0)
    array([11, 20])
    """

    sensitivity: Whole = 1

    @property
    def scale(self) -> float:
        """Scale of the noise: sensitivity / epsilon."""
        return self.sensitivity / self.epsilon

    @property
    def variance(self) -> float:
        """Variance of the noise: 1 / (2 sinh^2(1 / (2 scale)))."""
        return 0.5 / math.sinh(0.5 / self.scale) ** 2

    def probability(self, k: ArrayLike) -> FloatArray:
        """Probability that the noise of a count equals k; 0 if k is not an integer.

        Examples
        --------
        >>> import adaptinf as ai
        >>> float(ai.privacy.DiscreteLaplace(epsilon=1.0).probability(0).round(6))
        0.462117
        """
        k = reals("DiscreteLaplace.probability", k, "k")
        weight = math.tanh(0.5 / self.scale) * np.exp(-np.abs(k) / self.scale)
        return np.where(k == np.rint(k), weight, 0.0)

    def tail(self, x: ArrayLike) -> FloatArray:
        """Probability that the noise of a count exceeds x.

        Examples
        --------
        >>> import adaptinf as ai
        >>> import numpy as np
        >>> ai.privacy.DiscreteLaplace(epsilon=np.log(2.0)).tail([-1.0, 0.0, 1.0]).round(6)
        array([0.666667, 0.333333, 0.166667])
        """
        k = np.floor(reals("DiscreteLaplace.tail", x, "x"))
        # P(Z > k) is one side's tail for k >= 0; for k < 0 it is one minus the other side's, to which the
        # atom at k belongs.
        steps = np.where(k >= 0.0, k + 1.0, -k)
        side = np.exp(-steps / self.scale) / (1.0 + math.exp(-1.0 / self.scale))
        return np.where(k >= 0.0, side, 1.0 - side)

    def quantile(self, p: ArrayLike) -> FloatArray:
        """The smallest integer that the noise does not exceed with probability at least p.

        Examples
        --------
        >>> import adaptinf as ai
        >>> import numpy as np
        >>> ai.privacy.DiscreteLaplace(epsilon=np.log(2.0)).quantile([0.3, 0.5, 0.9])
        array([-1.,  0.,  2.])
        """
        p = probabilities("DiscreteLaplace.quantile", p)
        log_total = math.log1p(math.exp(-1.0 / self.scale))
        with np.errstate(divide="ignore"):
            right = np.ceil(-self.scale * (np.log1p(-p) + log_total)) - 1.0
            left = np.ceil(self.scale * (np.log(p) + log_total))
        guess = np.where(right >= 0.0, right, left)
        # If a probability is met exactly, rounding error may make the ceilings one too large or too small.
        lower = guess - 1.0
        guess = np.where(self.tail(lower) <= 1.0 - p, lower, guess)
        return np.where(self.tail(guess) <= 1.0 - p, guess, guess + 1.0) + 0.0

    def release(
        self, values: ArrayLike, rng: RandomSource | None = None, backend: str = "simulation"
    ) -> IntArray:
        """The counts with noise: one private release of the whole array.

        Parameters
        ----------
        values : array_like of whole numbers
            Counts of any shape, whose L1 sensitivity is that of the mechanism.
        rng : int, SeedSequence, Generator or None
            Source of randomness for a simulation; must be omitted for a release.
        backend : {"simulation", "release"}
            ``"simulation"`` draws from NumPy and is not private. ``"release"`` is exact (requires OpenDP).

        Returns
        -------
        ndarray of int64, of the shape of `values`
            Noisy counts, which may be negative.

        Raises
        ------
        ParameterError
            If a value is not whole, the backend is unknown, or `rng` is given for a release.
        MissingDependencyError
            If OpenDP is required but not installed.
        """
        generator = draws_from("DiscreteLaplace.release", rng, backend)
        array = whole_numbers("DiscreteLaplace.release", values)
        if generator is None:
            scale = scale_above(self.sensitivity, self.epsilon)
            return np.asarray(array + discrete_laplace(scale, array.size).reshape(array.shape))
        success = -math.expm1(-1.0 / self.scale)
        draws = generator.geometric(success, (2, *array.shape))
        return np.asarray(array + draws[0] - draws[1], dtype=np.int64)


@kernel
def truncated_laplace(center: float, rate: float, source: Any) -> float:
    """Draw floor(centre) plus a two-sided geometric with ratio exp(-rate), given a nonnegative sum."""
    base = math.floor(center)
    total = -1.0
    while total < 0.0:
        # A uniform number may be 0 but never 1, so 1 - u always has a logarithm.
        first = math.floor(-math.log(1.0 - uniform(source)) / rate)
        second = math.floor(-math.log(1.0 - uniform(source)) / rate)
        total = base + first - second
    return total


@compiled
def _truncated_draws(centers: FloatArray, rate: float, rng: np.random.Generator, out: FloatArray) -> None:
    for i in range(centers.shape[0]):
        out[i] = truncated_laplace(centers[i], rate, rng)


@dataclass(frozen=True, kw_only=True)
class TruncatedLaplace(Mechanism):
    """Lap+: a nonnegative integer with a two-sided geometric distribution around a centre, truncated at zero.

    Parameters
    ----------
    epsilon : float
        Privacy parameter for one release.
    sensitivity : int
        Largest change of the integer parts of the centres between neighbours, in L1.
    lowest : int
        Public lower bound on every centre; the higher the bound, the lower the cost of truncation.
    calibration : {"corrected", "published"}
        ``"corrected"`` uses the smallest scale whose guarantee is epsilon. ``"published"`` uses the scale 2
        sensitivity / epsilon of Li, Shi and Simchi-Levi; the guarantee states the resulting epsilon.

    Notes
    -----
    P(N = n) = (1 - q) q^abs(n - m) / (1 + q - q^(m + 1)), where q = exp(-1 / scale) and m is the integer part
    of the centre. (The paper's normaliser contains a sign error.) The normaliser depends on the centre, most
    strongly at the lowest one: a sensitivity of 1 costs 1 / scale + log((1 + q - q^(lowest + 2)) / (1 + q -
    q^(lowest + 1))), which is attained; s centres that change by 1 each cost s times as much.

    References
    ----------
    Li, J., Shi, K. and Simchi-Levi, D. (2024). Privacy preserving adaptive experiment design. ICML.

    Examples
    --------
    >>> import adaptinf as ai
    >>> mechanism = ai.privacy.TruncatedLaplace(epsilon=1.0)
    >>> round(mechanism.scale, 4), round(mechanism.guarantee().epsilon, 12)
    (1.285, 1.0)
    >>> published = ai.privacy.TruncatedLaplace(epsilon=1.0, calibration="published")
    >>> published.scale, round(published.guarantee().epsilon, 4)
    (2.0, 0.714)
    >>> mechanism.release([0.0, 20.7], rng=0)
    array([ 1, 20])
    """

    sensitivity: Whole = 1
    lowest: Annotated[int, Count(0)] = 0
    calibration: Calibration = "corrected"

    @property
    def rate(self) -> float:
        """Logarithm of the ratio of neighbouring probabilities: 1 / scale."""
        share = self.epsilon / self.sensitivity
        if self.calibration == "published":
            return 0.5 * share
        low, high = 0.0, share
        for _ in range(200):
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            low, high = (middle, high) if self._unit_loss(middle) <= share else (low, middle)
        # Rounding error must not weaken the guarantee.
        return low * (1.0 - 1e-14)

    @property
    def scale(self) -> float:
        """Scale of the two-sided geometric distribution."""
        return 1.0 / self.rate

    def _unit_loss(self, rate: float) -> float:
        """Exact privacy loss if one centre changes by 1."""
        ratio = math.exp(-rate)
        floor = ratio ** (self.lowest + 1)
        return rate + math.log1p(floor * -math.expm1(-rate) / (1.0 + ratio - floor))

    def _loss(self) -> tuple[float, float, tuple[str, ...]]:
        if self.calibration == "corrected":
            return float(self.epsilon), 0.0, ()
        reason = (
            f"noise of scale {self.scale:g} around a centre costs {self.sensitivity * self.rate:.6g}, and "
            "the normaliser, which moves with the centre, costs the rest"
        )
        return self.sensitivity * self._unit_loss(self.rate), 0.0, (reason,)

    def _at(self, center: float) -> tuple[int, float, float]:
        """Integer part of a centre, with q and 1 + q - q^(m + 1)."""
        whole = int(self._centers("TruncatedLaplace", number("TruncatedLaplace", center)))
        ratio = math.exp(-self.rate)
        return whole, ratio, 1.0 + ratio - ratio ** (whole + 1)

    def _centers(self, subject: str, centers: ArrayLike) -> FloatArray:
        whole = np.floor(finite(subject, centers))
        if (whole < self.lowest).any() or (whole >= 2.0**53).any():
            raise ParameterError(subject, [f"centres must lie between lowest = {self.lowest} and 2^53"])
        return whole

    def probability(self, k: ArrayLike, center: float) -> FloatArray:
        """Probability that the released number is k.

        Examples
        --------
        >>> import adaptinf as ai
        >>> import numpy as np
        >>> noise = ai.privacy.TruncatedLaplace(epsilon=0.3)
        >>> bool(abs(noise.probability(np.arange(500), 7.2).sum() - 1.0) < 1e-12)
        True
        """
        whole, _, total = self._at(center)
        k = reals("TruncatedLaplace.probability", k, "k")
        weight = -math.expm1(-self.rate) / total * np.exp(-self.rate * np.abs(k - whole))
        return np.where((k == np.rint(k)) & (k >= 0.0), weight, 0.0)

    def tail(self, x: ArrayLike, center: float) -> FloatArray:
        """Probability that the released number exceeds x.

        Examples
        --------
        >>> import adaptinf as ai
        >>> ai.privacy.TruncatedLaplace(epsilon=1.0).tail([-1.0, 2.5], center=2).round(4)
        array([1.    , 0.3371])
        """
        whole, ratio, total = self._at(center)
        k = np.floor(reals("TruncatedLaplace.tail", x, "x"))
        right = np.exp(-self.rate * np.maximum(k + 1.0 - whole, 0.0)) / total
        left = 1.0 - (np.exp(-self.rate * np.maximum(whole - k, 0.0)) - ratio ** (whole + 1)) / total
        return np.where(k >= whole, right, np.where(k < 0.0, 1.0, left))

    def quantile(self, p: ArrayLike, center: float) -> FloatArray:
        """The smallest integer that the released number does not exceed with probability at least p.

        Examples
        --------
        >>> import adaptinf as ai
        >>> ai.privacy.TruncatedLaplace(epsilon=1.0).quantile([0.01, 0.5, 0.99], center=5)
        array([ 1.,  5., 10.])
        """
        whole, ratio, total = self._at(center)
        p = probabilities("TruncatedLaplace.quantile", p)
        right = whole - 1.0 + np.ceil(-self.scale * np.log((1.0 - p) * total))
        left = whole - np.floor(-self.scale * np.log(np.minimum(p * total + ratio ** (whole + 1), 1.0)))
        guess = np.where(right >= whole, right, left)
        # If a probability is met exactly, rounding error may make these one too large or too small.
        lower = guess - 1.0
        guess = np.where(self.tail(lower, center) <= 1.0 - p, lower, guess)
        return np.where(self.tail(guess, center) <= 1.0 - p, guess, guess + 1.0) + 0.0

    def moments(self, center: float) -> tuple[float, float]:
        """Exact mean and variance of the released number.

        Examples
        --------
        >>> import adaptinf as ai
        >>> mean, variance = ai.privacy.TruncatedLaplace(epsilon=1.0).moments(center=0)
        >>> round(mean, 4), round(variance, 4)
        (0.8492, 1.5705)
        """
        whole, q, total = self._at(center)
        gap, n = -math.expm1(-self.rate), whole + 1.0
        beyond = q**n
        first = beyond * (n / gap + q / gap**2)
        second = beyond * (n * n / gap + 2.0 * n * q / gap**2 + q * (1.0 + q) / gap**3)
        shift = first * gap / total
        square = (2.0 * q * (1.0 + q) / gap**3 - second) * gap / total
        return whole + shift, square - shift**2

    def release(
        self, centers: ArrayLike, rng: RandomSource | None = None, backend: str = "simulation"
    ) -> IntArray:
        """Integers around the centres: one private release of the whole array.

        Parameters
        ----------
        centers : array_like
            Centres of any shape, each at least `lowest`; only their integer parts matter.
        rng : int, SeedSequence, Generator or None
            Source of randomness for a simulation; must be omitted for a release.
        backend : {"simulation", "release"}
            ``"simulation"`` is not private. ``"release"`` is exact (requires OpenDP).

        Returns
        -------
        ndarray of int64, of the shape of `centers`
            Nonnegative integers.

        Raises
        ------
        ParameterError
            If a centre is too low or not finite, the backend is unknown, or `rng` is given for a release.
        MissingDependencyError
            If OpenDP is required but not installed.

        Notes
        -----
        Draws below 0 are discarded and repeated; the time that this takes is not protected.
        """
        generator = draws_from("TruncatedLaplace.release", rng, backend)
        whole = self._centers("TruncatedLaplace.release", centers)
        out = np.empty(whole.size)
        if generator is not None:
            _truncated_draws(whole.ravel(), self.rate, generator, out)
            return out.astype(np.int64).reshape(whole.shape)
        numbers = np.full(whole.size, -1, dtype=np.int64)
        base = whole.ravel().astype(np.int64)
        while (missing := np.flatnonzero(numbers < 0)).size:
            numbers[missing] = base[missing] + discrete_laplace(self.scale, missing.size)
        return numbers.reshape(whole.shape)
