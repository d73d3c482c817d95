"""The common interface of environments, and checks for constructing one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.parameters import number_array, refuse
from adaptinf.simulation.run import LINEAR, EnvironmentTables
from adaptinf.typing import FloatArray, IntArray


class Renewed(NamedTuple):
    """A further run of an environment; units has shape (rounds,) if rounds belong to units.

    Additional outcomes are stored by name, each with shape (rounds, arms).
    """

    tables: EnvironmentTables
    units: NDArray[Any] | None = None
    outcomes: Mapping[str, FloatArray] = MappingProxyType({})


class Environment:
    """The world in which a design acts: arriving contexts, and reward distributions by context and arm.

    Attributes
    ----------
    means : ndarray of shape (features, arms)
        Mean reward of each cell; one row if there is no context.
    arms : tuple
        Labels of the arms.
    features : tuple
        Labels of the possible contexts; empty if there are none.
    probabilities : ndarray of shape (periods, features)
        Arrival probabilities in each period.
    context_name : str or None
        Name of the context column.
    reward_range : (float, float)
        Smallest and largest possible reward.
    range_learnt : bool
        Whether `reward_range` was taken from the data. Private designs refuse to run on such an environment.
    renewed : bool
        Whether a function draws new rewards and contexts for each run.
    delayed : bool
        Whether outcomes become known only after further rounds.
    dimension : int
        Length of the context vector of every arm; 0 if contexts are not vectors.
    vector_names : tuple of str
        Names of the columns of a log that contain the context vectors.
    context_norm : float
        Largest possible Euclidean norm of a context vector; 0 if contexts are not vectors.
    outcome_means : mapping of str to ndarray of shape (features, arms)
        True means of additional outcomes by name, such as the denominators of ratio metrics.

    Examples
    --------
    >>> import adaptinf as ai
    >>> env = ai.environments.FiniteContext(probabilities=[0.5, 0.5], means=[[0.2, 0.8], [0.9, 0.4]])
    >>> isinstance(env, ai.environments.Environment), env.n_arms, env.features
    (True, 2, (0, 1))
    >>> env.effects(treatment=1, control=0).round(2).tolist()
    [0.6, -0.5]
    """

    means: FloatArray
    arms: tuple[Any, ...]
    features: tuple[Any, ...] = ()
    probabilities: FloatArray
    context_name: str | None = None
    dimension: int = 0
    vector_names: tuple[str, ...] = ()
    context_norm: float = 0.0
    reward_range: tuple[float, float]
    range_learnt: bool = False
    renewed: bool = False
    delayed: bool = False
    outcome_means: Mapping[str, FloatArray] = MappingProxyType({})
    _tables: EnvironmentTables

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return len(self.arms)

    @property
    def n_features(self) -> int:
        """Number of possible contexts, 1 if there are none."""
        return max(1, len(self.features))

    def horizon_problems(self, horizon: int) -> list[str]:
        """Reasons why a horizon is too long, since given data are finite."""
        return []

    def range_problems(self, promised: PrivacyGuarantee | None) -> list[str]:
        """Reasons why no log can have this guarantee: its reward range would depend on the rewards."""
        private = promised is not None and 0.0 < promised.epsilon < np.inf
        if not private or not self.range_learnt:
            return []
        return [
            f"the range of rewards was learned from the data of {type(self).__name__}, which the guarantee "
            "does not cover: declare it there, for example reward_range=(0, 1)"
        ]

    def tables(self, horizon: int) -> EnvironmentTables:
        """Arrays that the run loop reads, after checking that `horizon` rounds are available."""
        refuse(type(self).__name__, self.horizon_problems(horizon))
        return self._tables

    @property
    def law(self) -> int:
        """Code of the reward distribution."""
        return int(self._tables.kind)

    def layout(self, horizon: int) -> EnvironmentTables:
        """Tables shown to a program before a run; for a renewed environment, without rounds."""
        return self.tables(horizon)

    def renew(self, horizon: int, rng: np.random.Generator) -> Renewed:
        """Tables for a further run; the same for all runs if the environment is not renewed."""
        return Renewed(self.tables(horizon))

    def arm_means(self) -> FloatArray:
        """Mean reward of each arm over contexts, weighted by their average frequencies, shape (arms,)."""
        weights = self.probabilities.mean(axis=0)
        return np.asarray(weights @ self.means, dtype=np.float64)

    def ratios(self, denominator: str) -> FloatArray:
        """A ratio metric for each arm: its mean reward over its mean of another outcome, shape (arms,)."""
        weights = self.probabilities.mean(axis=0)
        return np.asarray((weights @ self.means) / (weights @ self.outcome_means[denominator]))

    def effects(self, treatment: int = 1, control: int = 0) -> FloatArray:
        """Difference between two arms' means (given by position) in each context, shape (features,)."""
        return np.asarray(self.means[:, treatment] - self.means[:, control], dtype=np.float64)

    def regret(self, pulls: FloatArray, sums: FloatArray) -> FloatArray:
        """Pseudo-regret of runs, computed from their numbers of pulls.

        Parameters
        ----------
        pulls, sums : ndarray of shape (runs, features, arms)
            Pulls and sums of rewards.

        Returns
        -------
        ndarray of shape (runs,)
            Sum over rounds of the best mean in the context minus the mean of the pulled arm.
        """
        gaps = self.means.max(axis=1, keepdims=True) - self.means
        return np.asarray(np.einsum("rfa,fa->r", pulls, gaps), dtype=np.float64)

    def __repr__(self) -> str:
        contexts = f", features={list(self.features)}" if self.features else ""
        contexts += f", dimension={self.dimension}" if self.dimension else ""
        return f"{type(self).__name__}(arms={list(self.arms)}{contexts})"


def environment_tables(
    kind: int,
    location: FloatArray,
    scale: FloatArray | None = None,
    arrivals: FloatArray | None = None,
    period: int = 1,
    pool: tuple[Any, Any, Any] | None = None,
    tableau: tuple[FloatArray, Any] | None = None,
    theta: FloatArray | None = None,
    vector_law: int = 0,
    shared: bool = False,
    vectors: FloatArray | None = None,
    mean_law: int = LINEAR,
    delay: IntArray | None = None,
) -> EnvironmentTables:
    """Tables of an environment; unused tables are empty."""
    n_features = location.shape[0]
    probabilities = np.ones((1, 1)) if arrivals is None else arrivals
    cumulative = np.cumsum(probabilities, axis=1)
    start, size, values = pool or (np.zeros((1, 1), np.int64), np.zeros((1, 1), np.int64), np.zeros(0))
    rewards, features = tableau or (np.zeros((0, 0)), np.zeros(0, np.int64))
    return EnvironmentTables(
        kind=kind,
        n_features=n_features,
        period=period,
        arrivals=np.ascontiguousarray(cumulative),
        location=_writable(location),
        scale=_writable(np.ones_like(location) if scale is None else scale),
        start=start,
        size=size,
        pool=values,
        tableau=_writable(rewards),
        tableau_features=features,
        theta=np.zeros((0, 0)) if theta is None else _writable(theta),
        vector_law=vector_law,
        shared=shared,
        vectors=np.zeros((0, 0)) if vectors is None else np.ascontiguousarray(vectors, dtype=np.float64),
        order=np.zeros(0, dtype=np.int64),
        mean_law=mean_law,
        delay=np.zeros((0, 0), dtype=np.int64) if delay is None else delay,
    )


def _writable(values: FloatArray) -> FloatArray:
    """Floats in C order that can be written: for read-only ones Numba would compile a design once more."""
    return np.require(values, np.float64, ["C", "W"])


def numbers(name: str, values: ArrayLike, problems: list[str]) -> FloatArray:
    """Values as an array of floats; values that are not numbers are added to the problems."""
    array = number_array(values)
    if array is None:
        problems.append(f"{name} must be numbers in rows of equal length, got {values!r:.60}")
        return np.zeros(0)
    return array


def vector(name: str, values: ArrayLike, problems: list[str]) -> FloatArray:
    """One finite number per arm; other values are added to the problems."""
    known = len(problems)
    array = np.atleast_1d(numbers(name, values, problems))
    if len(problems) > known:
        return array
    if array.ndim != 1 or array.size == 0:
        problems.append(f"{name} must be a list with one number per arm, got shape {array.shape}")
    elif not np.isfinite(array).all():
        problems.append(f"{name} must be finite numbers, got {array.tolist()}")
    return array


def reward_range_problems(reward_range: Any) -> list[str]:
    """Reasons why a reward range is not a pair of numbers with the smaller one first."""
    array = number_array(reward_range)
    if array is not None and array.shape == (2,) and array[0] < array[1]:
        return []
    return [f"reward_range must be a pair of numbers, the smaller first, got {reward_range!r:.60}"]


def rows_problems(horizon: int, rows: int | None, what: str) -> list[str]:
    """Report that rows that are used only once are exhausted; None for unlimited rows."""
    if rows is None or horizon <= rows:
        return []
    more = 'order="resampled" draws as many as required'
    return [f"horizon must be at most {rows}, the number of {what}, got {horizon}; {more}"]
