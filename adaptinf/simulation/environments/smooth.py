"""Arms whose expected reward is a smooth function of a context in the unit cube."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.parameters import COUNT, NON_NEGATIVE, POSITIVE, UNIT, OneOf, check, problems_of, refuse
from adaptinf.simulation.environment import Environment, environment_tables, numbers, rows_problems
from adaptinf.simulation.environments.auxiliary import AuxiliaryLog, gathered
from adaptinf.simulation.replicate import seed_sequence
from adaptinf.simulation.run import LINEAR_BERNOULLI
from adaptinf.simulation.vectors import BUMPS, CUBE, IN_ORDER, RESAMPLED
from adaptinf.typing import FloatArray, RandomSource

_ORDERS = {"given": IN_ORDER, "resampled": RESAMPLED}
_NODES = 32


class SmoothArms(Environment):
    """Arms that are best in bands of the first coordinate; contexts in [0, 1]^d, rewards 0 or 1.

    Parameters
    ----------
    n_arms : int
        Number of arms, K.
    dimension : int
        Coordinates of a context, d; all but the first are noise.
    contexts : {"uniform"} or array_like of shape (rows, dimension)
        Uniform on the unit cube, or given.
    order : {"given", "resampled"}
        Whether given contexts are used row after row, or drawn from the rows with replacement.

    Attributes
    ----------
    rows : int or None
        Number of given contexts.

    Raises
    ------
    ParameterError
        Listing everything that does not fit; contexts outside the cube among it.

    Notes
    -----
    In a context x arm k = 1, ..., K pays 1 with probability f_k(x) = 2 / (1 + exp(2 K^2 (x_1 - k/K)^2)),
    otherwise 0. The bump of arm k is at x_1 = k/K, where it is 1; the arms are labelled 0 to K - 1. All arms
    see the same context, in columns ``x1`` to ``xd`` of a log. `means` are averages over the law of the
    contexts; regret compares each round's arm with the best one in that round's context.

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
        given = None if problems else _given(contexts, int(dimension), problems)
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
        """Expected rewards in given contexts.

        Parameters
        ----------
        contexts : array_like of shape (n, dimension)
            Points of the unit cube.

        Returns
        -------
        ndarray of shape (n, arms)
            f_k of every context.
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
            Average of f_k for a context that is uniform on the box, to about 1e-14.
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
        """Data from elsewhere: the same expected rewards, other contexts, arms from a fixed policy.

        Parameters
        ----------
        n : int
            Participants.
        gamma : float
            Contexts have a density proportional to max_k abs(x_k - 1/2)^gamma: 0 is uniform, and the larger
            it is, the fewer lie in the middle.
        kappa : float
            In [0, 1]: arm a of 0, ..., K - 1 is given with probability kappa / K + 2 (1 - kappa) a /
            (K (K - 1)).
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
            Listing everything that does not fit.
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
        """What is wrong with a horizon: contexts that are used in their order come to an end."""
        return rows_problems(horizon, self.rows if self._in_order else None, "rows of contexts")


def _given(contexts: str | ArrayLike, dimension: int, problems: list[str]) -> FloatArray | None:
    """Given contexts in an array of shape (rows, dimension); None where they are drawn."""
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
            f"contexts must lie in [0, 1]^{dimension}, by a scaling that is fixed beforehand; "
            f"{len(outside)} rows do not, the first is row {outside[0]}: {array[outside[0]].tolist()}"
        )
    return array
