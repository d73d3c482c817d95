"""The sparse vector technique: many threshold questions, of which only the first "yes" has a cost."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.compilation import compiled
from adaptinf.errors import ParameterError
from adaptinf.parameters import Positive, open_share
from adaptinf.privacy.mechanism import Mechanism, draws_from, finite, number, probabilities, reals
from adaptinf.privacy.release import GRID_UNITS, discrete_laplace, scale_above, to_units
from adaptinf.typing import BoolArray, FloatArray, RandomSource

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_FEW_NODES, _FEW_WEIGHTS = np.polynomial.legendre.leggauss(4)
_NARROW = 1.0 / 16.0
"""Width, in noise scales, below which a piece needs few nodes; there is one piece per statistic."""


@compiled
def _integrate(point: FloatArray, weight: FloatArray, margins: FloatArray, law: FloatArray) -> None:
    """Add the probabilities of the first yes to `law`; points and margins are in units of the scale of A."""
    for node in range(point.shape[0]):
        so_far = weight[node]
        for place in range(margins.shape[0]):
            # The answer "not above" means A < B - margin, so `above` is the probability of the contrary.
            distance = point[node] - margins[place]
            half = 0.5 * math.exp(-abs(distance))
            above = half if distance >= 0.0 else 1.0 - half
            law[place] += so_far * above
            so_far *= 1.0 - half if distance >= 0.0 else half
        law[-1] += so_far


@dataclass(frozen=True, kw_only=True)
class SparseVector(Mechanism):
    """AboveThreshold: test one statistic after another against a noisy threshold.

    Parameters
    ----------
    epsilon : float
        Privacy parameter for all answers together, regardless of their number.
    sensitivity : float
        Largest change of each statistic between neighbours.
    threshold_share : float
        Share of epsilon for the noise of the threshold; the rest is for that of the statistics. One third
        makes both scales equal, as in Sajed and Sheffet; 1 / (1 + 2^(2/3)) = .386 minimises the variance of
        their difference.

    Notes
    -----
    The answer for a statistic v with public threshold c is yes if v - c + A >= B, where B ~ Laplace of scale
    sensitivity / (share epsilon) is drawn once, and A ~ Laplace of scale 2 sensitivity / ((1 - share)
    epsilon) is drawn for every statistic. Nothing else that depends on A and B may be released. Statistics
    may depend on earlier answers.

    References
    ----------
    Dwork, C. and Roth, A. (2014). The algorithmic foundations of differential privacy, section 3.6.

    Lyu, M., Su, D. and Li, N. (2017). Understanding the sparse vector technique for differential privacy.
    VLDB.

    Sajed, T. and Sheffet, O. (2019). An optimal private stochastic-MAB algorithm based on optimal private
    stopping rule. ICML.

    Examples
    --------
    >>> import adaptinf as ai
    >>> mechanism = ai.privacy.SparseVector(epsilon=1.0, sensitivity=2.0)
    >>> round(mechanism.threshold_scale, 12), round(mechanism.query_scale, 12)
    (6.0, 6.0)
    >>> mechanism.release([0.0, 0.0, 500.0, 0.0], threshold=100.0, rng=0)
    array([False, False,  True])
    """

    sensitivity: Positive = 1.0
    threshold_share: Annotated[float, open_share(": the statistics also require noise")] = 1.0 / 3.0

    @property
    def threshold_scale(self) -> float:
        """Laplace scale of the threshold's noise."""
        return self.sensitivity / (self.threshold_share * self.epsilon)

    @property
    def query_scale(self) -> float:
        """Laplace scale of each statistic's noise."""
        # The factor 2 is needed because the proof shifts the threshold by the sensitivity while the statistic
        # moves the other way.
        return 2.0 * self.sensitivity / ((1.0 - self.threshold_share) * self.epsilon)

    @property
    def variance(self) -> float:
        """Variance of the difference between the two noise terms, which determines an answer."""
        return 2.0 * (self.threshold_scale**2 + self.query_scale**2)

    def tail(self, x: ArrayLike) -> FloatArray:
        """Probability that a single statistic at distance x below its threshold is reported as above it.

        Examples
        --------
        >>> import adaptinf as ai
        >>> ai.privacy.SparseVector(epsilon=3.0).tail([0.0, 1.0, -1.0]).round(6)
        array([0.5    , 0.27591, 0.72409])
        """
        x = reals("SparseVector.tail", x, "x")
        wide = max(self.threshold_scale, self.query_scale)
        narrow = min(self.threshold_scale, self.query_scale)
        distance = np.abs(x)
        # This form of (1 - e^(-g d)) / g with g = 1/narrow - 1/wide does not cancel if the scales nearly
        # agree.
        gap = (wide - narrow) / (wide * narrow)
        if gap > 0.0:
            grown = -np.expm1(-gap * distance) / gap
        else:
            grown = distance
        upper = 0.5 * np.exp(-distance / wide) * (1.0 + grown * narrow / (wide * (wide + narrow)))
        return np.asarray(np.where(x >= 0.0, upper, 1.0 - upper))

    def quantile(self, p: ArrayLike) -> FloatArray:
        """Quantiles of the difference between the two noise terms.

        Examples
        --------
        >>> import adaptinf as ai
        >>> ai.privacy.SparseVector(epsilon=3.0).quantile([0.5, 0.724090]).round(4)
        array([0., 1.])
        """
        p = probabilities("SparseVector.quantile", p)
        upper = np.minimum(p, 1.0 - p)
        low = np.zeros_like(p)
        high = (self.threshold_scale + self.query_scale) * (5.0 - np.log(upper))
        for _ in range(100):
            middle = 0.5 * (low + high)
            beyond = self.tail(middle) > upper
            low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
        return np.asarray(np.where(p < 0.5, -low, low) + 0.0)

    def start(self, rng: RandomSource | None = None, backend: str = "simulation") -> Questions:
        """Draw the noise of the threshold, then answer questions one at a time.

        Parameters
        ----------
        rng : int, SeedSequence, Generator or None
            Source of randomness for a simulation; must be omitted for a release.
        backend : {"simulation", "release"}
            ``"simulation"`` is not private. ``"release"`` rounds each statistic to the nearest of 2^20 units
            per sensitivity and compares integers (requires OpenDP).

        Examples
        --------
        >>> import adaptinf as ai
        >>> questions = ai.privacy.SparseVector(epsilon=1.0).start(rng=1)
        >>> questions.above(2.0, threshold=50.0), questions.above(200.0, threshold=50.0)
        (False, True)
        >>> questions.stopped, questions.asked
        (True, 2)
        """
        return Questions(self, draws_from("SparseVector.start", rng, backend))

    def release(
        self,
        values: ArrayLike,
        rng: RandomSource | None = None,
        backend: str = "simulation",
        *,
        threshold: ArrayLike = 0.0,
    ) -> BoolArray:
        """Answers for a sequence of statistics, up to and including the first yes.

        Parameters
        ----------
        values : array_like of shape (n,)
            The statistics, in order.
        rng, backend
            As in `start`.
        threshold : float or array_like of shape (n,)
            Public thresholds.

        Returns
        -------
        ndarray of bool, of at most n entries
            False for every statistic that was reported as below its threshold; the last entry is True if one
            was reported as above.
        """
        statistics, thresholds = self._sequence(values, threshold)
        questions = self.start(rng, backend)
        answers: list[bool] = []
        for value, limit in zip(statistics.tolist(), thresholds.tolist(), strict=True):
            answers.append(questions.above(value, limit))
            if answers[-1]:
                break
        return np.array(answers, dtype=np.bool_)

    def stopping_law(self, values: ArrayLike, threshold: ArrayLike = 0.0) -> FloatArray:
        """Probabilities of stopping at each statistic of a fixed sequence, and of never stopping.

        Parameters
        ----------
        values : array_like of shape (n,)
            The statistics, in order.
        threshold : float or array_like of shape (n,)
            Public thresholds.

        Returns
        -------
        ndarray of shape (n + 1,)
            Probabilities; the last one is that of never stopping.

        Notes
        -----
        The probabilities are computed by Gauss-Legendre quadrature over the noise of the threshold between
        the kinks of the integrand, and accurate to about 1e-13. The time grows with n^2.

        Examples
        --------
        >>> import adaptinf as ai
        >>> ai.privacy.SparseVector(epsilon=3.0).stopping_law([0.0, 0.0]).round(6)
        array([0.5     , 0.166667, 0.333333])
        """
        statistics, thresholds = self._sequence(values, threshold)
        margins = statistics - thresholds
        point, weight = self._quadrature(margins)
        law = np.zeros(margins.size + 1)
        _integrate(point / self.query_scale, weight, margins / self.query_scale, law)
        return law

    def _sequence(self, values: ArrayLike, threshold: ArrayLike) -> tuple[FloatArray, FloatArray]:
        statistics = finite("SparseVector", values)
        thresholds = finite("SparseVector", threshold)
        if statistics.ndim != 1 or thresholds.shape not in ((), statistics.shape):
            raise ParameterError(
                "SparseVector",
                [
                    "values must be a sequence, and threshold must be one number or a sequence "
                    "of the same length"
                ],
            )
        return statistics, np.broadcast_to(thresholds, statistics.shape)

    def _quadrature(self, margins: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Points and weights, with the density of the threshold's noise, between the kinks."""
        # The tail e^-40 beyond this reach is smaller than the rounding error of 1.
        reach = 40.0 * self.threshold_scale
        kinks = np.unique(np.concatenate([[0.0, -reach, reach], margins[np.abs(margins) < reach]]))
        pieces = []
        for low, high in itertools.pairwise(kinks.tolist()):
            parts = math.ceil((high - low) / min(self.threshold_scale, self.query_scale))
            pieces.append(np.linspace(low, high, parts + 1)[:-1])
        edges = np.append(np.concatenate(pieces), reach)
        width = np.diff(edges)
        narrow = width < _NARROW * min(self.threshold_scale, self.query_scale)
        points, weights = [], []
        for chosen, nodes, shares in (
            (~narrow, _NODES, _WEIGHTS),
            (narrow, _FEW_NODES, _FEW_WEIGHTS),
        ):
            half = 0.5 * width[chosen][:, None]
            points.append((edges[:-1][chosen][:, None] + half * (nodes + 1.0)).ravel())
            weights.append((half * shares).ravel())
        point = np.concatenate(points)
        density = 0.5 * np.exp(-np.abs(point) / self.threshold_scale) / self.threshold_scale
        return point, np.concatenate(weights) * density


class Questions:
    """One run of a sparse vector: it answers until the first yes, and then stops.

    Created by `SparseVector.start`. A question that is not answered, because of an error or an interrupt, is
    not counted.

    Attributes
    ----------
    mechanism : SparseVector
        The mechanism being run.

    Examples
    --------
    >>> import adaptinf as ai
    >>> questions = ai.privacy.SparseVector(epsilon=1.0).start(rng=0)
    >>> questions.asked
    0
    """

    def __init__(self, mechanism: SparseVector, generator: np.random.Generator | None) -> None:
        self.mechanism = mechanism
        self._state = 0, False
        self._generator = generator
        self._threshold: float
        if generator is None:
            self._threshold = int(discrete_laplace(self._unit_scales()[0], 1)[0])
        else:
            self._threshold = generator.laplace(scale=mechanism.threshold_scale)

    @property
    def asked(self) -> int:
        """Number of questions answered so far."""
        return self._state[0]

    @property
    def stopped(self) -> bool:
        """Whether a question has been answered with yes."""
        return self._state[1]

    def __repr__(self) -> str:
        state = "stopped" if self.stopped else "waiting"
        return f"<Questions: {self.asked} asked, {state}; {self.mechanism!r}>"

    def above(self, value: float, threshold: float = 0.0) -> bool:
        """Whether a statistic is above its threshold, with noise.

        Parameters
        ----------
        value : float
            The statistic, which may depend on earlier answers.
        threshold : float
            Its public threshold.

        Raises
        ------
        ParameterError
            If the statistic or the threshold is not a finite number, or the run has stopped, because a
            further answer would need additional privacy budget.
        """
        if self.stopped:
            raise ParameterError(
                "Questions.above", ["the run has stopped: start a new run, which spends epsilon again"]
            )
        value, threshold = number("Questions.above", value), number("Questions.above", threshold)
        answer = self._margin(value, threshold) >= self._threshold
        # Both are assigned together, so an error or an interrupt before leaves the run unchanged.
        self._state = self.asked + 1, answer
        return answer

    def _margin(self, value: float, threshold: float) -> float:
        """Noisy distance to the threshold: in whole units for a release."""
        mechanism = self.mechanism
        if self._generator is not None:
            return value - threshold + self._generator.laplace(scale=mechanism.query_scale)
        at, limit = to_units([value, threshold], mechanism.sensitivity)
        return at - limit + int(discrete_laplace(self._unit_scales()[1], 1)[0])

    def _unit_scales(self) -> tuple[float, float]:
        """Scales of both noise terms in units; the shares sum to epsilon exactly."""
        budget = Fraction(float(self.mechanism.epsilon))
        first = budget * Fraction(float(self.mechanism.threshold_share))
        return scale_above(GRID_UNITS, first), scale_above(2 * GRID_UNITS, budget - first)
