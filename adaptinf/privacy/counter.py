"""A running sum that is private at every count: the public interface to continual summation."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.parameters import (
    COUNT,
    FINITE,
    OPEN_SHARE,
    POSITIVE,
    Number,
    OneOf,
    OrNone,
    problems_of,
    refuse,
)
from adaptinf.privacy.counter_noise import gaussian_norm_bound, laplace_norm_bound, noise_quantile
from adaptinf.privacy.mechanism import draws_from, finite, number, probabilities, source_problems
from adaptinf.privacy.real_mechanisms import analytic_scale, discrete_scale
from adaptinf.privacy.release import (
    GRID_UNITS,
    discrete_gaussian,
    discrete_laplace,
    from_units,
    scale_above,
    to_units,
)
from adaptinf.privacy.tree_sums import CONTINUAL_SUMS, counter_scales, counter_slots, next_total, noise_nodes
from adaptinf.typing import FloatArray, RandomSource


def range_problems(low: float, high: float, sensitivity: float | None) -> list[str]:
    """Problems with the range of an item, and with a stated sensitivity."""
    problems = FINITE("low", low) + FINITE("high", high)
    if not problems and not low < high:
        problems.append(f"low must be below high, got {low} and {high}")
    return problems + OrNone(POSITIVE)("sensitivity", sensitivity)


def noise_problems(noise: str, delta: float, mechanism: str) -> list[str]:
    """Problems with a noise distribution, its delta and its mechanism."""
    problems = OneOf("laplace", "gaussian")("noise", noise)
    if not problems and noise == "gaussian":
        problems += OPEN_SHARE("delta", delta)
        if mechanism != "binary":
            problems.append("normal noise requires the binary mechanism and its horizon")
    elif Number(0.0, 0.0)("delta", delta):
        problems.append(f"delta must be 0 with Laplace noise, got {delta!r:.60}")
    return problems


_Totals: TypeAlias = NDArray[Any]
"""Sums of a vector: floats in a simulation, Python integers in a release."""


class Counter:
    """A differentially private running sum of numbers or vectors.

    Parameters
    ----------
    epsilon : float
        Privacy parameter for all noisy sums together.
    mechanism : {"hybrid", "binary", "logarithmic"}
        ``"binary"`` needs the horizon and has the least noise for it; ``"hybrid"`` runs forever;
        ``"logarithmic"`` runs forever with less noise, but updates the sum only at powers of two and repeats
        its last release in between.
    horizon : int or None
        Largest number of items; required by the binary mechanism, not used by the others.
    dimension : int
        Dimension of an item.
    low, high : float
        Range of every coordinate. Items outside the range are refused, because they would invalidate the
        guarantee.
    sensitivity : float or None
        Largest change of one item between neighbours: in L1 with Laplace noise, in L2 with normal noise. By
        default it follows from the range: dimension (high - low) or sqrt(dimension) (high - low). A smaller
        value is the caller's responsibility, such as sqrt(dimension) for y x with public x of length 1 and y
        in [0, 1].
    noise : {"laplace", "gaussian"}
        Distribution of the noise of a node. Normal noise requires delta and the binary mechanism.
    delta : float
        Failure probability with normal noise; 0 with Laplace noise.
    rng : int, SeedSequence, Generator or None
        Source of randomness for a simulation; must be omitted for a release.
    backend : {"simulation", "release"}
        ``"simulation"`` is not private. ``"release"`` keeps exact sums on a grid of 2^20 units per range and
        adds exact integer noise (requires OpenDP).

    Attributes
    ----------
    count : int
        Number of items added so far.

    Notes
    -----
    A node of the binary tree covers a dyadic interval of items and receives separate noise when its last item
    arrives. An item lies in at most L = floor(log2(horizon)) + 1 nodes: Laplace noise has L times the scale
    that a single sum would need, and normal noise the smallest valid scale for an L2 sensitivity that is
    sqrt(L) times as large. The hybrid mechanism spends half of epsilon on sums at powers of two and half on a
    tree within each block between them. An addition requires one draw per coordinate and constant time;
    memory is one vector per level.

    In a release, an item is rounded to the grid, which changes all d coordinates together by at most d - 1
    units more than the item itself changes; the scales account for this. Properties reported for the noise
    are those of the continuous distribution.

    References
    ----------
    Chan, T.-H. H., Shi, E. and Song, D. (2011). Private and continual release of statistics. ACM Transactions
    on Information and System Security 14.

    Dwork, C., Naor, M., Pitassi, T. and Rothblum, G. N. (2010). Differential privacy under continual
    observation. STOC.

    Denisov, S., McMahan, B., Rush, K., Smith, A. and Thakurta, A. (2022). Improved differential privacy for
    SGD via optimal private linear operators on adaptive streams. NeurIPS.

    Examples
    --------
    >>> import adaptinf as ai
    >>> counter = ai.privacy.Counter(epsilon=1.0, mechanism="binary", horizon=7, rng=0)
    >>> [round(counter.add(1.0), 2) for _ in range(4)]
    [1.96, 0.15, -6.36, -6.23]
    >>> counter.count, counter.noise_variance()
    (4, 18.0)
    >>> print(counter.guarantee())
    epsilon = 1, pure, per reward, central, standard
    >>> vectors = ai.privacy.Counter(epsilon=1.0, dimension=3, sensitivity=3**0.5, rng=0)
    >>> vectors.add([0.6, 0.8, 0.0]).round(2)
    array([ 1.71, -1.34, -8.67])
    """

    def __init__(
        self,
        *,
        epsilon: float,
        mechanism: str = "hybrid",
        horizon: int | None = None,
        dimension: int = 1,
        low: float = 0.0,
        high: float = 1.0,
        sensitivity: float | None = None,
        noise: str = "laplace",
        delta: float = 0.0,
        rng: RandomSource | None = None,
        backend: str = "simulation",
    ) -> None:
        problems = problems_of(
            epsilon=(epsilon, POSITIVE),
            mechanism=(mechanism, OneOf(*CONTINUAL_SUMS)),
            dimension=(dimension, COUNT),
            horizon=(horizon, OrNone(COUNT)),
        )
        if horizon is None and not OneOf("binary")("mechanism", mechanism):
            problems.append("the binary mechanism requires horizon")
        problems += range_problems(low, high, sensitivity) + noise_problems(noise, delta, mechanism)
        refuse("Counter", problems + source_problems(rng, backend))
        self.epsilon, self.delta, self.noise = float(epsilon), float(delta), noise
        self.mechanism, self.horizon, self.dimension = mechanism, horizon, int(dimension)
        self.low, self.high = float(low), float(high)
        self.count = 0
        self._generator = draws_from("Counter", rng, backend)
        if self._generator is None:
            discrete_laplace(1.0, 0)  # A missing library should cause an error before anything is counted.
        self._width = self.high - self.low
        self._moved = self._item_moves(sensitivity)
        # The number of levels is used only with a horizon.
        self._levels = counter_slots(horizon or 1)
        self._sum = self._zeros()
        self._trunk = self._zeros()
        self._nodes: list[_Totals] = []
        self._latest = self._zeros()

    @property
    def backend(self) -> str:
        """Source of the noise: ``"simulation"`` or ``"release"``."""
        return "release" if self._generator is None else "simulation"

    @property
    def sensitivity(self) -> float:
        """Largest change in an item between neighbours; in a release, on the grid."""
        return float(self._moved * self._unit)

    @property
    def scales(self) -> tuple[float, float]:
        """Scale of the noise at each power of two (0 for the binary mechanism), and of the noise of a node.

        In the hybrid mechanism, a node between 2^k and 2^(k + 1) has k times the second scale. For normal
        noise, the second scale is a standard deviation.
        """
        if self.noise == "gaussian":
            return 0.0, self.sensitivity * self._normal_scale()
        return counter_scales(self.mechanism, self.epsilon, self.horizon or 1, self.sensitivity)

    def __repr__(self) -> str:
        horizon = "" if self.horizon is None else f", horizon={self.horizon}"
        delta = "" if self.noise == "laplace" else f", delta={self.delta:g}, noise={self.noise!r}"
        return (
            f"<Counter: {self.count} items; epsilon={self.epsilon:g}{delta}, mechanism={self.mechanism!r}"
            f"{horizon}, dimension={self.dimension}, backend={self.backend!r}>"
        )

    def add(self, item: ArrayLike) -> Any:
        """Add an item and return the noisy sum of all items so far.

        Parameters
        ----------
        item : float or array_like of shape (dimension,)
            The item, with every coordinate in [low, high].

        Returns
        -------
        float or ndarray of shape (dimension,)
            The noisy sum, a float in one dimension. For the logarithmic mechanism, the noisy sum at the last
            power of two.

        Raises
        ------
        ParameterError
            If the item has the wrong shape, is not finite or lies outside the range, or the horizon is
            exceeded.

        Notes
        -----
        The operation is atomic: after an error or an interrupt at any point, the counter is unchanged.
        """
        vector = finite("Counter.add", item)
        problems = []
        if vector.shape not in ((self.dimension,), () if self.dimension == 1 else (self.dimension,)):
            problems.append(f"an item must have {self.dimension} coordinates, got shape {vector.shape}")
        if (vector < self.low).any() or (vector > self.high).any():
            problems.append(f"every coordinate must lie in [{self.low:g}, {self.high:g}]: clip items first")
        if self.mechanism == "binary" and self.count == self.horizon:
            problems.append(f"the horizon of {self.horizon} items has been reached")
        refuse("Counter.add", problems)
        # The item is added to a copy, which then replaces this counter in one step, so an error or an
        # interrupt changes nothing.
        after = copy.copy(self)
        after._nodes = self._nodes.copy()
        shown = after._take_in(vector.ravel())
        self.__dict__ = after.__dict__
        return shown

    @property
    def value(self) -> Any:
        """The last noisy sum, or 0 before the first item."""
        return self._shown(self._latest)

    def noise_variance(self, count: int | None = None) -> float:
        """Exact variance of a coordinate's noise after a number of items, by default the current number."""
        trunk_terms, node_terms, level = self._law(count)
        trunk, node = self.scales
        if self.noise == "gaussian":
            return float(node_terms * node**2)
        return float(2.0 * (trunk_terms * trunk**2 + node_terms * (level * node) ** 2))

    def noise_quantile(self, p: ArrayLike, count: int | None = None) -> FloatArray:
        """Quantiles of a coordinate's noise after a number of items, by default the current number.

        Parameters
        ----------
        p : array_like
            Probabilities strictly between 0 and 1.
        count : int or None
            Number of items.

        Returns
        -------
        ndarray of float, of the shape of `p`
            The quantiles are computed by inverting the exact distribution, not from a normal approximation.
        """
        p = probabilities("Counter.noise_quantile", p)
        _, node_terms, _ = self._law(count)
        if self.noise == "gaussian":
            return np.asarray(math.sqrt(node_terms) * self.scales[1] * special.ndtri(p))
        at = self.count if count is None else count
        return self.sensitivity * noise_quantile(self.mechanism, self.epsilon, self.horizon or 1, at, p)

    def norm_bound(self, count: int | None = None, probability: float = 0.95) -> float:
        """Bound on the L2 norm of the noise vector after a given number of items.

        Parameters
        ----------
        count : int or None
            Number of items, by default the current one.
        probability : float
            Probability, strictly between 0 and 1.

        Returns
        -------
        float
            The chi quantile for normal noise; otherwise see `laplace_norm_bound`.
        """
        probability = float(probabilities("Counter.norm_bound", number("Counter.norm_bound", probability)))
        trunk_terms, node_terms, level = self._law(count)
        trunk, node = self.scales
        log_failure = math.log1p(-probability)
        if self.noise == "gaussian":
            return gaussian_norm_bound(node, node_terms, self.dimension, log_failure)
        return laplace_norm_bound(trunk, trunk_terms, level * node, node_terms, self.dimension, log_failure)

    def guarantee(
        self, unit: str = "reward", model: str = "central", notion: str = "standard"
    ) -> PrivacyGuarantee:
        """Guarantee of all noisy sums together, for streams that differ in one item.

        Parameters
        ----------
        unit, model, notion : str
            Definition of neighbours: see `PrivacyGuarantee`. The sensitivity must be stated for the same
            definition.
        """
        return PrivacyGuarantee(self.epsilon, self.delta, unit, model, notion)

    @property
    def _unit(self) -> Fraction:
        """The value that one unit of the stored sums represents."""
        return Fraction(1) if self._generator is not None else Fraction(self._width) / GRID_UNITS

    def _item_moves(self, sensitivity: float | None) -> Fraction:
        """Largest change in an item in units, in L1 or L2."""
        coordinates = self.dimension if self.noise == "laplace" else math.sqrt(self.dimension)
        if self._generator is not None:
            largest = coordinates * self._width
            return Fraction(largest if sensitivity is None else min(largest, float(sensitivity)))
        low, high = to_units([self.low, self.high], self._width)
        whole = Fraction(coordinates) * (high - low)
        if sensitivity is None:
            return whole
        # In the worst case, rounding moves each coordinate of a difference up to the next whole unit.
        stated = Fraction(math.ceil(Fraction(float(sensitivity)) / self._unit))
        rounding = Fraction(0) if self.dimension == 1 else Fraction(coordinates) - (self.noise == "laplace")
        return min(whole, stated + rounding)

    def _normal_scale(self) -> float:
        """Standard deviation of a node's normal noise for items of sensitivity 1."""
        return analytic_scale(self.epsilon, self.delta, math.sqrt(self._levels))

    def _abreast(self, runs: int, rng: np.random.Generator | None) -> Counter:
        """An empty counter whose vectors contain several copies of this one, with independent noise."""
        wide = copy.copy(self)
        wide.dimension, wide.count, wide._generator = runs * self.dimension, 0, rng
        wide._sum, wide._trunk, wide._latest, wide._nodes = wide._zeros(), wide._zeros(), wide._zeros(), []
        return wide

    def _pass_over(self, items: FloatArray) -> None:
        """Add the same items, shape (items, coordinates), to every run without any release."""
        # Later releases keep their distribution only if the binary mechanism made a release at the start of
        # each new node.
        total = self._measured(items.ravel()).reshape(items.shape).sum(axis=0)
        self._sum = self._sum + np.tile(total, self.dimension // items.shape[1])
        self.count += len(items)

    def _zeros(self) -> _Totals:
        return np.zeros(self.dimension, dtype=np.float64 if self._generator is not None else object)

    def _measured(self, item: FloatArray) -> _Totals:
        if self._generator is not None:
            return item
        return np.array(to_units(item, self._width), dtype=object)

    def _shown(self, total: _Totals) -> Any:
        shown = total if self._generator is not None else from_units(total, self._width, (self.dimension,))
        return float(shown[0]) if self.dimension == 1 else shown.astype(np.float64)

    def _law(self, count: int | None) -> tuple[int, int, int]:
        at = self.count if count is None else count
        problems = COUNT("count", at)
        if not problems and self.mechanism == "binary" and at > (self.horizon or 0):
            problems = [f"count must be at most the horizon, {self.horizon}, got {at}"]
        refuse("Counter", problems)
        return noise_nodes(self.mechanism, int(at))

    def _take_in(self, item: FloatArray) -> Any:
        """Count an item, update the noise and return the noisy sum."""
        self.count += 1
        self._sum = self._sum + self._measured(item)
        if self.mechanism != "logarithmic" or self.count & (self.count - 1) == 0:
            self._latest = self._sum + self._next_noise()
        return self._shown(self._latest)

    def _next_noise(self) -> _Totals:
        """Noise in the sum at the current count; called once for each count with a release."""
        noise, self._trunk = next_total(
            self.mechanism, self._levels, self.count, self._trunk, self._nodes, self._draw
        )
        return noise

    def _draw(self, times: int) -> _Totals:
        """Noise of one node: its Laplace scale is `times` the sensitivity over epsilon."""
        size = self.dimension
        if self._generator is not None:
            if self.noise == "gaussian":
                return self._generator.normal(scale=self.scales[1], size=size)
            return self._generator.laplace(scale=times * self.sensitivity / self.epsilon, size=size)
        draw: Callable[[float, int], NDArray[np.int64]] = discrete_laplace
        scale = scale_above(int(times * self._moved), self.epsilon)
        if self.noise == "gaussian":
            draw, scale = discrete_gaussian, discrete_scale(float(self._moved) * self._normal_scale())
        return np.array(draw(scale, size).tolist(), dtype=object)
