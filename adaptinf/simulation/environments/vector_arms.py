"""Arms whose expected reward depends on a context vector, through a linear or a smooth function."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.parameters import (
    BOOLEAN,
    COUNT,
    NON_NEGATIVE,
    POSITIVE,
    UNIT,
    OneOf,
    check,
    problems_of,
    refuse,
)
from adaptinf.simulation.environment import Environment, environment_tables, numbers, rows_problems
from adaptinf.simulation.environments.cube_contexts import AuxiliaryLog, gathered
from adaptinf.simulation.replicate import seed_sequence
from adaptinf.simulation.run import (
    BUMPS,
    CUBE,
    IN_ORDER,
    LINEAR_BERNOULLI,
    LINEAR_NORMAL,
    LINEAR_UNIFORM,
    ORTHANT,
    RESAMPLED,
    SPHERE,
)
from adaptinf.texts import unlisted
from adaptinf.typing import FloatArray, RandomSource

_LAWS = {"normal": LINEAR_NORMAL, "bernoulli": LINEAR_BERNOULLI, "uniform": LINEAR_UNIFORM}
_DRAWN = {"sphere": SPHERE, "orthant": ORTHANT}
_ORDERS = {"given": IN_ORDER, "resampled": RESAMPLED}
_ROUNDING = 1e-9


class LinearArms(Environment):
    """Arms with one coefficient vector each: in context x, arm a has expected reward x_a'theta_a.

    Parameters
    ----------
    theta : array_like of shape (arms, dimension)
        Coefficients of each arm.
    noise : float
        Standard deviation of normal rewards, or half the length of the interval of uniform rewards; not used
        for Bernoulli rewards.
    contexts : {"sphere", "orthant"} or array_like
        ``"sphere"``: uniform on the unit sphere, independent across arms. ``"orthant"``: as for the sphere,
        but with absolute values, so no coordinate is negative. Alternatively, given contexts as an array of
        shape (rows, arms, dimension), or (rows, dimension) if `shared`.
    shared : bool
        Whether all arms have the same context vector in a round.
    rewards : {"normal", "bernoulli", "uniform"}
        Distribution of the reward around the mean x'theta.
    order : {"given", "resampled"}
        Whether given contexts are used in order, or drawn with replacement.

    Attributes
    ----------
    theta : ndarray of shape (arms, dimension)
        Coefficients.
    context_norm : float
        Largest possible Euclidean norm of a context vector.
    mean_range : (float, float)
        Smallest and largest possible x'theta.
    rows : int or None
        Number of given contexts.
    noise_scale : float
        Sub-Gaussian scale of the rewards around x'theta: `noise`, or 1/2 for Bernoulli rewards.

    Raises
    ------
    ParameterError
        If arguments are inconsistent (the message lists every problem), including means of Bernoulli rewards
        outside [0, 1].

    Notes
    -----
    Contexts do not depend on the past. A log contains the vectors in columns ``x{k}_{arm}`` (k from 1), or
    ``x{k}`` if they are shared. `means` contains the averages of x'theta over the distribution of the
    contexts (over all given rows); regret compares each round's arm with the best one *in that round's
    context*.

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
        """Reasons why a horizon is too long: contexts used in order may run out."""
        return rows_problems(horizon, self.rows if self._in_order else None, "rows of contexts")


def _given(
    contexts: str | ArrayLike, theta: FloatArray, shared: bool, problems: list[str]
) -> FloatArray | None:
    """Given contexts as an array with shape (rows, arms, dimension); None if they are drawn."""
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
    """Columns of the context vectors: one set if all arms share it, otherwise one per arm."""
    places = range(1, dimension + 1)
    return tuple(f"x{k}" for k in places) if shared else tuple(f"x{k}_{arm}" for arm in arms for k in places)


def _mean_range(theta: FloatArray, contexts: str) -> tuple[float, float]:
    """Smallest and largest x'theta over the sphere or its nonnegative part."""
    if contexts == "sphere":
        longest = float(np.linalg.norm(theta, axis=1).max())
        return -longest, longest
    return -_largest_on_orthant(-theta), _largest_on_orthant(theta)


def _largest_on_orthant(theta: FloatArray) -> float:
    """Largest x'theta over nonnegative unit x: the norm of the positive part, or the largest entry."""
    positive = np.linalg.norm(np.maximum(theta, 0.0), axis=1)
    return float(np.where(theta.max(axis=1) > 0.0, positive, theta.max(axis=1)).max())


_NODES = 32


class SmoothArms(Environment):
    """Arms that are best in bands of the first coordinate; contexts in [0, 1]^d, rewards 0 or 1.

    Parameters
    ----------
    n_arms : int
        Number of arms, K.
    dimension : int
        Dimension of a context, d; all coordinates but the first are noise.
    contexts : {"uniform"} or array_like of shape (rows, dimension)
        Contexts that are uniform on the unit cube, or given.
    order : {"given", "resampled"}
        Whether given contexts are used in order, or drawn with replacement.

    Attributes
    ----------
    rows : int or None
        Number of given contexts.

    Raises
    ------
    ParameterError
        If arguments are inconsistent (the message lists every problem), including contexts outside the cube.

    Notes
    -----
    In context x, arm k = 1, ..., K pays 1 with probability f_k(x) = 2 / (1 + exp(2 K^2 (x_1 - k/K)^2)), and
    otherwise 0. The peak of arm k is at x_1 = k/K, where f_k is 1; the arms are labelled 0 to K - 1. All arms
    share the same context, in columns ``x1`` to ``xd`` of a log. `means` contains averages over the
    distribution of the contexts; regret compares each round's arm with the best one in that round's context.

    References
    ----------
    Ma, Y., Jiang, F., Zhao, Z., Yang, H. and Yu, Y. (2025). Locally private nonparametric contextual
    multi-armed bandits with transfer learning. Section 4.1.

    Examples
    --------
    >>> import adaptinf as ai
    >>> environment = ai.environments.SmoothArms(n_arms=3, dimension=2)
    >>> environment.expected([[1 / 3, 0.9], [0.5, 0.1]]).round(3)
    array([[1.   , 0.238, 0.001],
           [0.755, 0.755, 0.022]])
    """

    def __init__(
        self,
        n_arms: int = 3,
        dimension: int = 2,
        *,
        contexts: str | ArrayLike = "uniform",
        order: str = "given",
    ) -> None:
        problems = problems_of(
            n_arms=(n_arms, COUNT), dimension=(dimension, COUNT), order=(order, OneOf(*_ORDERS))
        )
        given = None if problems else _given_points(contexts, int(dimension), problems)
        refuse("SmoothArms", problems)
        self.arms = tuple(range(int(n_arms)))
        self.dimension = int(dimension)
        self.rows = None if given is None else given.shape[0]
        self._in_order = given is not None and order == "given"
        self.probabilities = np.ones((1, 1))
        self.reward_range = (0.0, 1.0)
        self.vector_names = tuple(f"x{k}" for k in range(1, self.dimension + 1))
        if given is None:
            cube = np.zeros((1, self.dimension))
            self.means = self.averages(cube, cube + 1.0)
            self.context_norm = math.sqrt(self.dimension)
        else:
            self.means = self.expected(given).mean(axis=0)[None]
            self.context_norm = float(np.linalg.norm(given, axis=1).max())
        self._tables = environment_tables(
            LINEAR_BERNOULLI,
            self.means,
            theta=np.zeros((self.n_arms, self.dimension)),
            vector_law=CUBE if given is None else _ORDERS[order],
            shared=True,
            vectors=None if given is None else np.tile(given, (1, self.n_arms)),
            mean_law=BUMPS,
        )

    def expected(self, contexts: ArrayLike) -> FloatArray:
        """Expected rewards for given contexts.

        Parameters
        ----------
        contexts : array_like of shape (n, dimension)
            Points of the unit cube.

        Returns
        -------
        ndarray of shape (n, arms)
            f_k at every context.
        """
        first = np.asarray(contexts, dtype=np.float64)[:, :1]
        decay = np.exp(-2.0 * (self.n_arms * first - np.arange(1.0, self.n_arms + 1.0)) ** 2)
        return np.asarray(2.0 * decay / (1.0 + decay), dtype=np.float64)

    def averages(self, low: ArrayLike, high: ArrayLike) -> FloatArray:
        """Averages of the expected rewards over boxes.

        Parameters
        ----------
        low, high : array_like of shape (boxes, dimension)
            Corners of each box.

        Returns
        -------
        ndarray of shape (boxes, arms)
            Average of f_k for a context that is uniform on the box, accurate to about 1e-14.
        """
        begin = np.asarray(low, dtype=np.float64)[:, 0]
        width = np.asarray(high, dtype=np.float64)[:, 0] - begin
        nodes, weights = np.polynomial.legendre.leggauss(_NODES)
        places = (np.arange(self.n_arms)[:, None] + 0.5 * (nodes + 1.0)).ravel() / self.n_arms
        shares = np.tile(0.5 * weights, self.n_arms) / self.n_arms
        points = begin[:, None] + width[:, None] * places
        values = self.expected(points.reshape(-1, 1)).reshape(*points.shape, self.n_arms)
        return np.asarray(np.einsum("bpa,p->ba", values, shares), dtype=np.float64)

    def auxiliary(
        self,
        n: int,
        gamma: float = 0.0,
        kappa: float = 1.0,
        epsilon: float = 8.0,
        rng: RandomSource | None = None,
    ) -> AuxiliaryLog:
        """External data: the same expected rewards, other contexts, and arms from a fixed policy.

        Parameters
        ----------
        n : int
            Participants.
        gamma : float
            Contexts have a density proportional to max_k abs(x_k - 1/2)^gamma: 0 is uniform, and larger
            values leave fewer contexts in the middle.
        kappa : float
            A number in [0, 1]: arm a of 0, ..., K - 1 is chosen with probability kappa / K + 2 (1 - kappa) a
            / (K (K - 1)).
        epsilon : float
            Privacy parameter under which these participants will report.
        rng : int, SeedSequence, Generator or None
            Source of randomness.

        Returns
        -------
        AuxiliaryLog
            The raw log, with its propensities, and the epsilon.

        Raises
        ------
        ParameterError
            If arguments are inconsistent; the message lists every problem.
        """
        check(
            "SmoothArms.auxiliary",
            n=(n, COUNT),
            gamma=(gamma, NON_NEGATIVE),
            kappa=(kappa, UNIT),
            epsilon=(epsilon, POSITIVE),
        )
        draws = np.random.default_rng(seed_sequence(rng))
        radius = 0.5 * draws.random(n) ** (1.0 / (gamma + self.dimension))
        contexts = radius[:, None] * draws.uniform(-1.0, 1.0, (n, self.dimension))
        face = draws.integers(self.dimension, size=n)
        contexts[np.arange(n), face] = np.where(draws.random(n) < 0.5, -radius, radius)
        contexts = np.clip(contexts + 0.5, 0.0, 1.0)
        policy = np.full(self.n_arms, kappa / self.n_arms)
        if self.n_arms > 1:
            policy += 2.0 * (1.0 - kappa) * np.arange(self.n_arms) / (self.n_arms * (self.n_arms - 1))
        policy /= policy.sum()
        action = draws.choice(self.n_arms, size=n, p=policy)
        expected = self.expected(contexts)[np.arange(n), action]
        reward = (draws.random(n) < expected).astype(np.float64)
        return gathered(self, contexts, action, reward, policy, epsilon)

    def horizon_problems(self, horizon: int) -> list[str]:
        """Reasons why a horizon is too long: contexts used in order may run out."""
        return rows_problems(horizon, self.rows if self._in_order else None, "rows of contexts")


def _given_points(contexts: str | ArrayLike, dimension: int, problems: list[str]) -> FloatArray | None:
    """Given contexts as an array with shape (rows, dimension); None if they are drawn."""
    if isinstance(contexts, str):
        if contexts != "uniform":
            problems.append(f"contexts must be uniform, or an array of vectors, got {contexts!r}")
        return None
    array = numbers("contexts", contexts, problems)
    if problems:
        return None
    if array.ndim != 2 or array.shape[1] != dimension or array.size == 0:
        problems.append(
            f"contexts must have shape (rows, dimension), here (rows, {dimension}), got {array.shape}"
        )
    elif outside := np.flatnonzero(~((array >= 0.0) & (array <= 1.0)).all(axis=1)).tolist():
        problems.append(
            f"contexts must lie in [0, 1]^{dimension}, by a scaling fixed in advance; {len(outside)} rows "
            f"do not, the first being row {outside[0]}: {array[outside[0]].tolist()}"
        )
    return array
