"""Arms whose expected reward is linear in a context vector: per-arm or shared contexts, drawn or given."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.parameters import BOOLEAN, NON_NEGATIVE, OneOf, problems_of, refuse
from adaptinf.simulation.environment import Environment, environment_tables, numbers, rows_problems
from adaptinf.simulation.run import LINEAR_BERNOULLI, LINEAR_NORMAL, LINEAR_UNIFORM
from adaptinf.simulation.vectors import IN_ORDER, ORTHANT, RESAMPLED, SPHERE
from adaptinf.texts import unlisted
from adaptinf.typing import FloatArray

_LAWS = {"normal": LINEAR_NORMAL, "bernoulli": LINEAR_BERNOULLI, "uniform": LINEAR_UNIFORM}
_DRAWN = {"sphere": SPHERE, "orthant": ORTHANT}
_ORDERS = {"given": IN_ORDER, "resampled": RESAMPLED}
_ROUNDING = 1e-9


class LinearArms(Environment):
    """Arms with a coefficient vector each: in a round with context x, arm a pays x_a'theta_a on average.

    Parameters
    ----------
    theta : array_like of shape (arms, dimension)
        Coefficients of each arm.
    noise : float
        Standard deviation of normal rewards, half the length of the interval of uniform ones; Bernoulli
        rewards do not use it.
    contexts : {"sphere", "orthant"} or array_like
        ``"sphere"``: uniform on the unit sphere, independent from arm to arm. ``"orthant"``: the same with
        absolute values, so that no coordinate is negative. An array of shape (rows, arms, dimension), or
        (rows, dimension) where `shared`, gives them.
    shared : bool
        Whether all arms have the same context vector in a round.
    rewards : {"normal", "bernoulli", "uniform"}
        Reward law around the mean x'theta.
    order : {"given", "resampled"}
        Whether given contexts are used row after row, or drawn from the rows with replacement.

    Attributes
    ----------
    theta : ndarray of shape (arms, dimension)
        Coefficients.
    context_norm : float
        Largest Euclidean length that a context vector can have.
    mean_range : (float, float)
        Smallest and largest possible x'theta.
    rows : int or None
        Number of given contexts.
    noise_scale : float
        Sub-Gaussian scale of the rewards around x'theta: `noise`, or 1/2 where they are Bernoulli.

    Raises
    ------
    ParameterError
        Listing everything that does not fit; means of Bernoulli rewards outside [0, 1] among it.

    Notes
    -----
    Contexts depend on nothing that happened before. A log has them in columns ``x{k}_{arm}`` (k from 1), or
    ``x{k}`` where they are shared. `means` are the averages of x'theta over the law of the contexts (over
    all given rows); regret compares each round's arm with the best one *in that round's context*.

    Examples
    --------
    >>> import adaptinf as ai
    >>> theta = [[0.6, 0.2], [0.1, 0.7]]
    >>> environment = ai.environments.LinearArms(theta, contexts="orthant", rewards="bernoulli")
    >>> environment.dimension, environment.vector_names
    (2, ('x1_0', 'x2_0', 'x1_1', 'x2_1'))
    >>> environment.arm_means().round(4)
    array([0.5093, 0.5093])
    """

    def __init__(
        self,
        theta: ArrayLike,
        noise: float = 1.0,
        *,
        contexts: str | ArrayLike = "sphere",
        shared: bool = False,
        rewards: str = "normal",
        order: str = "given",
    ) -> None:
        problems: list[str] = []
        coefficients = numbers("theta", theta, problems)
        if not problems and (coefficients.ndim != 2 or coefficients.size == 0):
            problems.append(f"theta must have shape (arms, dimension), got {coefficients.shape}")
        elif not np.isfinite(coefficients).all():
            problems.append("theta must be finite numbers")
        problems += problems_of(
            noise=(noise, NON_NEGATIVE),
            rewards=(rewards, OneOf(*_LAWS)),
            order=(order, OneOf(*_ORDERS)),
            shared=(shared, BOOLEAN),
        )
        given = _given(contexts, coefficients, shared, problems)
        refuse("LinearArms", problems)
        n_arms, dimension = coefficients.shape
        self.theta = coefficients
        self.dimension = dimension
        self.rows = None if given is None else given.shape[0]
        self._in_order = given is not None and order == "given"
        if given is None:
            name = str(contexts)
            law = _DRAWN[name]
            self.context_norm = 1.0
            self.mean_range = _mean_range(coefficients, name)
            self.means = _arm_means(coefficients, name)[None]
        else:
            law = _ORDERS[order]
            self.context_norm = float(np.sqrt(np.einsum("nak,nak->na", given, given).max()))
            expected = np.einsum("nak,ak->na", given, coefficients)
            self.mean_range = (float(expected.min()), float(expected.max()))
            self.means = expected.mean(axis=0)[None]
        low, high = self.mean_range
        if rewards == "bernoulli" and (low < -_ROUNDING or high > 1.0 + _ROUNDING):
            text = f"x'theta must lie in [0, 1] for Bernoulli rewards; it ranges over [{low:.6g}, {high:.6g}]"
            refuse("LinearArms", [f"{text}; give other contexts or coefficients, or other rewards"])
        self.arms = tuple(range(n_arms))
        self.probabilities = np.ones((1, 1))
        self.vector_names = _vector_names(self.arms, dimension, shared)
        self.noise_scale = 0.5 if rewards == "bernoulli" else float(noise)
        spread = {"normal": math.inf, "bernoulli": 0.0, "uniform": float(noise)}[rewards]
        self.reward_range = (0.0, 1.0) if rewards == "bernoulli" else (low - spread, high + spread)
        self._tables = environment_tables(
            _LAWS[rewards],
            self.means,
            np.full((1, n_arms), float(noise)),
            theta=coefficients,
            vector_law=law,
            shared=shared,
            vectors=None if given is None else given.reshape(given.shape[0], -1),
        )

    def horizon_problems(self, horizon: int) -> list[str]:
        """What is wrong with a horizon: contexts that are used in their order come to an end."""
        return rows_problems(horizon, self.rows if self._in_order else None, "rows of contexts")


def _given(
    contexts: str | ArrayLike, theta: FloatArray, shared: bool, problems: list[str]
) -> FloatArray | None:
    """Given contexts in an array of shape (rows, arms, dimension); None where they are drawn."""
    if isinstance(contexts, str):
        if contexts not in _DRAWN:
            problems.append(unlisted("contexts", _DRAWN, contexts, ", or an array of vectors"))
        return None
    known = len(problems)
    array = numbers("contexts", contexts, problems)
    if len(problems) > known or theta.ndim != 2:
        return None
    expected = theta.shape[1:] if shared is True else theta.shape
    if array.ndim != len(expected) + 1 or array.shape[1:] != expected or array.size == 0:
        axes = "(rows, dimension)" if shared is True else "(rows, arms, dimension)"
        sizes = ", ".join(str(size) for size in expected)
        problems.append(f"contexts must have shape {axes}, here (rows, {sizes}), got {array.shape}")
        return None
    if not np.isfinite(array).all():
        problems.append("contexts must be finite numbers")
        return None
    if shared is True:
        array = np.broadcast_to(array[:, None], (array.shape[0], *theta.shape))
    return np.ascontiguousarray(array)


def _arm_means(theta: FloatArray, contexts: str) -> FloatArray:
    """Average of x'theta over the sphere or its nonnegative part."""
    if contexts == "sphere":
        return np.zeros(theta.shape[0])
    dimension = theta.shape[1]
    log_mean = math.lgamma(dimension / 2) - math.lgamma((dimension + 1) / 2) - 0.5 * math.log(math.pi)
    return np.asarray(theta.sum(axis=1) * math.exp(log_mean), dtype=np.float64)


def _vector_names(arms: tuple[int, ...], dimension: int, shared: bool) -> tuple[str, ...]:
    """Columns of the context vectors: one set where all arms share it, else one per arm."""
    places = range(1, dimension + 1)
    return tuple(f"x{k}" for k in places) if shared else tuple(f"x{k}_{arm}" for arm in arms for k in places)


def _mean_range(theta: FloatArray, contexts: str) -> tuple[float, float]:
    """Smallest and largest x'theta over the sphere or its nonnegative part."""
    if contexts == "sphere":
        longest = float(np.linalg.norm(theta, axis=1).max())
        return -longest, longest
    return -_largest_on_orthant(-theta), _largest_on_orthant(theta)


def _largest_on_orthant(theta: FloatArray) -> float:
    """Largest x'theta over nonnegative unit x: the length of the positive part, or the largest entry."""
    positive = np.linalg.norm(np.maximum(theta, 0.0), axis=1)
    return float(np.where(theta.max(axis=1) > 0.0, positive, theta.max(axis=1)).max())
