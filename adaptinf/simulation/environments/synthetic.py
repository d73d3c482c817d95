"""Arms with synthetic rewards: Bernoulli, normal, uniform; drifting levels, heavy tails, repeated units."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.errors import ParameterError
from adaptinf.parameters import (
    COUNT,
    FINITE,
    NON_NEGATIVE,
    OPEN_SHARE,
    POSITIVE,
    Count,
    OneOf,
    OrNone,
    refuse,
)
from adaptinf.simulation.environment import Environment, environment_tables, numbers, vector
from adaptinf.simulation.environments.function_environment import FunctionEnvironment
from adaptinf.simulation.run import BERNOULLI, NORMAL, UNIFORM
from adaptinf.typing import FloatArray

_LAWS = {"bernoulli": BERNOULLI, "uniform": UNIFORM, "normal": NORMAL}


class BernoulliArms(Environment):
    """Arms that pay 1 with a fixed probability, and otherwise 0.

    Parameters
    ----------
    means : sequence of float
        Success probabilities in [0, 1], one per arm.

    Raises
    ------
    ParameterError
        If a probability is not in [0, 1].

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.environments.BernoulliArms([0.9, 0.8]).arm_means()
    array([0.9, 0.8])
    """

    def __init__(self, means: ArrayLike) -> None:
        problems: list[str] = []
        array = vector("means", means, problems)
        if not problems and not ((array >= 0) & (array <= 1)).all():
            problems.append(f"means must lie in [0, 1], got {array.tolist()}")
        refuse("BernoulliArms", problems)
        self.means = array[None]
        self.arms = tuple(range(array.size))
        self.probabilities = np.ones((1, 1))
        self.reward_range = (0.0, 1.0)
        self._tables = environment_tables(BERNOULLI, self.means)


class NormalArms(Environment):
    """Arms with normal rewards.

    Parameters
    ----------
    means : sequence of float
        Means, one per arm.
    scale : float or sequence of float
        Standard deviation, common to all arms or one per arm.

    Raises
    ------
    ParameterError
        If a scale is not positive, or the lengths differ.

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.environments.NormalArms([0.0, 0.5], scale=2.0).reward_range
    (-inf, inf)
    """

    def __init__(self, means: ArrayLike, scale: ArrayLike = 1.0) -> None:
        problems: list[str] = []
        array = vector("means", means, problems)
        spread = vector("scale", scale, problems)
        if not problems and spread.size not in (1, array.size):
            problems.append(f"scale must be one number or one per arm ({array.size}), got {spread.size}")
        if not problems and not (spread > 0).all():
            problems.append(f"scale must be positive, got {spread.tolist()}")
        refuse("NormalArms", problems)
        self.means = array[None]
        self.arms = tuple(range(array.size))
        self.probabilities = np.ones((1, 1))
        self.reward_range = (-np.inf, np.inf)
        self._tables = environment_tables(NORMAL, self.means, np.broadcast_to(spread, array.shape)[None])


class UniformArms(Environment):
    """Arms with rewards uniformly distributed on an interval.

    Parameters
    ----------
    low, high : sequence of float
        Ends of the interval, one pair per arm.

    Raises
    ------
    ParameterError
        If a lower end exceeds the upper end, or the lengths differ.

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.environments.UniformArms(low=[0, 0], high=[1.0, 0.9]).arm_means()
    array([0.5 , 0.45])
    """

    def __init__(self, low: ArrayLike, high: ArrayLike) -> None:
        problems: list[str] = []
        lows, highs = vector("low", low, problems), vector("high", high, problems)
        if not problems and lows.size != highs.size:
            problems.append(f"low and high must have one number per arm, got {lows.size} and {highs.size}")
        if not problems and not (lows <= highs).all():
            problems.append(f"low must not be above high, got {lows.tolist()} and {highs.tolist()}")
        refuse("UniformArms", problems)
        self.means = (lows + highs)[None] / 2.0
        self.arms = tuple(range(lows.size))
        self.probabilities = np.ones((1, 1))
        self.reward_range = (float(lows.min()), float(highs.max()))
        self._tables = environment_tables(UNIFORM, lows[None], (highs - lows)[None])


class FiniteContext(Environment):
    """Finitely many contexts, in the column ``feature``, each with its own reward distribution per arm.

    Parameters
    ----------
    probabilities : array_like of shape (features,) or (periods, features)
        Arrival probabilities; several rows are used in turn, like seasons.
    means : array_like of shape (features, arms)
        Mean rewards.
    rewards : {"bernoulli", "uniform", "normal"}
        Reward law. Uniform rewards lie within `half_width` of their mean.
    scale : float
        Standard deviation of normal rewards.
    half_width : float or None
        Half the length of the uniform interval; by default the largest that keeps every cell within [0, 1].
    period : int or None
        Rounds of a period; required if `probabilities` has several rows.

    Raises
    ------
    ParameterError
        If arguments are inconsistent; the message lists every problem.

    Examples
    --------
    >>> import adaptinf as ai
    >>> environment = ai.environments.FiniteContext([0.5, 0.5], [[0.4, 0.7], [0.6, 0.3]])
    >>> environment.effects().round(2)
    array([ 0.3, -0.3])
    """

    def __init__(
        self,
        probabilities: ArrayLike,
        means: ArrayLike,
        rewards: str = "bernoulli",
        *,
        scale: float = 1.0,
        half_width: float | None = None,
        period: int | None = None,
    ) -> None:
        problems: list[str] = []
        arrivals = np.atleast_2d(numbers("probabilities", probabilities, problems))
        array = numbers("means", means, problems)
        refuse("FiniteContext", problems)
        refuse("FiniteContext", _context_problems(arrivals, array, rewards, scale, half_width, period))
        self.means = array
        self.arms = tuple(range(array.shape[1]))
        self.features = tuple(range(array.shape[0]))
        self.probabilities = arrivals
        self.context_name = "feature"
        location, width = array, np.full_like(array, scale)
        self.reward_range = (-np.inf, np.inf) if rewards == "normal" else (0.0, 1.0)
        if rewards == "uniform":
            half = np.minimum(array, 1.0 - array) if half_width is None else np.full_like(array, half_width)
            location, width = array - half, 2.0 * half
            self.reward_range = (float(min(0.0, location.min())), float(max(1.0, (location + width).max())))
        self._tables = environment_tables(_LAWS[rewards], location, width, arrivals, period or 1)


def _context_problems(
    arrivals: FloatArray,
    means: FloatArray,
    rewards: str,
    scale: float,
    half_width: float | None,
    period: int | None,
) -> list[str]:
    problems = []
    if (
        arrivals.ndim != 2
        or not np.isfinite(arrivals).all()
        or (arrivals < 0).any()
        or (arrivals > 1.0 + 1e-9).any()
    ):
        problems.append(
            "probabilities must be numbers in [0, 1], of shape (features,) or (periods, features)"
        )
    elif np.abs(arrivals.sum(axis=1) - 1.0).max() > 1e-9:
        problems.append(f"probabilities must sum to 1, got {arrivals.sum(axis=1).tolist()}")
    if means.ndim != 2 or means.shape[0] != arrivals.shape[-1]:
        problems.append(
            f"means must have shape (features, arms) with {arrivals.shape[-1]} features, got {means.shape}"
        )
    elif not np.isfinite(means).all():
        problems.append("means must be finite numbers")
    unknown = OneOf(*_LAWS)("rewards", rewards)
    problems += unknown
    within_unit = not unknown and (rewards == "bernoulli" or (rewards == "uniform" and half_width is None))
    if within_unit and not ((means >= 0) & (means <= 1)).all():
        problems.append(f"means of {rewards} rewards must lie in [0, 1]")
    problems += POSITIVE("scale", scale) + OrNone(NON_NEGATIVE)("half_width", half_width)
    if arrivals.shape[0] > 1 and period is None:
        problems.append(
            "period= (the number of rounds in a period) is required if probabilities has several rows"
        )
    return problems + OrNone(COUNT)("period", period)


_WEEK, _WEEKEND = 7, 5


class DriftingArms(FunctionEnvironment):
    """Arms whose level drifts during a trial, by the same amount for all arms.

    Parameters
    ----------
    means : sequence of float
        Mean reward of each arm over the rounds of a run, for any number of rounds.
    drift : {"linear", "weekend", "change"}
        Whether the level increases linearly from the first round to the last; is higher on two days of the
        week; or changes once.
    size : float
        Difference between the highest and the lowest level.
    rewards : {"normal", "bernoulli"}
        Distribution of a reward, given the level of its round.
    scale : float
        Standard deviation of normal rewards.
    day : int
        Number of rounds per day, for weekends; the first day is a Monday.
    at : float
        Share of the rounds after which the level changes.

    Raises
    ------
    ParameterError
        If an argument is out of range (the message lists every problem); for 0/1 rewards, also if levels lie
        outside [0, 1].

    Notes
    -----
    Levels are centred over the rounds of a run, so `means` contains the averages of the arms' expected
    rewards, and differences between arms are the same in every round.

    Examples
    --------
    >>> import adaptinf as ai
    >>> env = ai.environments.DriftingArms([0.4, 0.5], drift="weekend", size=0.2, rewards="bernoulli", day=50)
    >>> log = ai.designs.Uniform().run(env, horizon=700, rng=0)
    >>> log.frame["reward"].groupby((log.frame["t"] - 1) // 50 % 7 >= 5).mean().round(2).tolist()
    [0.4, 0.58]
    """

    def __init__(
        self,
        means: ArrayLike,
        drift: str = "linear",
        size: float = 0.5,
        *,
        rewards: str = "normal",
        scale: float = 1.0,
        day: int = 100,
        at: float = 0.5,
    ) -> None:
        problems = OneOf("linear", "weekend", "change")("drift", drift) + FINITE("size", size)
        problems += OneOf("normal", "bernoulli")("rewards", rewards) + NON_NEGATIVE("scale", scale)
        problems += Count(1)("day", day) + OPEN_SHARE("at", at)
        self._means = vector("means", means, problems)
        self.drift, self.size, self.law_of_rewards = drift, size, rewards
        self.scale, self.day, self.at = scale, day, at
        refuse("DriftingArms", problems)
        span = (0.0, 1.0) if rewards == "bernoulli" else (-np.inf, np.inf)
        self._expected(_WEEK * int(day))
        super().__init__(self._drawn, self._means, reward_range=span)

    def levels(self, horizon: int) -> FloatArray:
        """Level of each round, shape (horizon,), with mean 0.

        Parameters
        ----------
        horizon : int
            Number of rounds of a run.
        """
        rounds = np.arange(horizon, dtype=np.float64)
        if self.drift == "linear":
            shape = rounds / max(1, horizon - 1)
        elif self.drift == "weekend":
            shape = (rounds // self.day % _WEEK >= _WEEKEND).astype(np.float64)
        else:
            shape = (rounds >= self.at * horizon).astype(np.float64)
        return np.asarray(self.size * (shape - shape.mean()), dtype=np.float64)

    def _expected(self, horizon: int) -> FloatArray:
        """Expected rewards, shape (horizon, arms); for 0/1 rewards they must be probabilities."""
        expected = self.levels(horizon)[:, None] + self._means
        low, high = float(expected.min()), float(expected.max())
        if self.law_of_rewards == "bernoulli" and not (low >= 0.0 and high <= 1.0):
            problem = f"probabilities range from {low:.4g} to {high:.4g} with a drift of size {self.size:g}"
            raise ParameterError("DriftingArms", [f"{problem}: use another size, or other means"])
        return expected

    def _drawn(self, rng: np.random.Generator, horizon: int) -> FloatArray:
        expected = self._expected(horizon)
        if self.law_of_rewards == "bernoulli":
            return (rng.random(expected.shape) < expected).astype(np.float64)
        return np.asarray(expected + self.scale * rng.standard_normal(expected.shape), dtype=np.float64)


class HeavyTailedArms(FunctionEnvironment):
    """Arms with heavy-tailed rewards: Student's t, or amounts spent by a few buyers.

    Parameters
    ----------
    means : sequence of float
        Mean rewards, one per arm; positive for spending.
    law : {"student", "spending"}
        Student's t around the mean; or 0 for most rounds, and a lognormal amount for a share of buyers.
    scale : float
        Scale of t.
    degrees : float
        Degrees of freedom of t, above 1.
    buyers : float
        Share of positive rewards, for spending.
    spread : float
        Standard deviation of the logarithm of a buyer's spending.

    Raises
    ------
    ParameterError
        If an argument is out of range; the message lists every problem.

    Examples
    --------
    >>> import adaptinf as ai
    >>> env = ai.environments.HeavyTailedArms([1.0, 1.2], law="spending", buyers=0.05)
    >>> log = ai.designs.Uniform().run(env, horizon=1_000, rng=0)
    >>> round(float((log.arrays.reward > 0).mean()), 3)
    0.043
    """

    def __init__(
        self,
        means: ArrayLike,
        law: str = "student",
        *,
        scale: float = 1.0,
        degrees: float = 3.0,
        buyers: float = 0.05,
        spread: float = 1.0,
    ) -> None:
        problems = OneOf("student", "spending")("law", law) + POSITIVE("scale", scale)
        problems += POSITIVE("degrees", degrees) + OPEN_SHARE("buyers", buyers) + POSITIVE("spread", spread)
        self._means = vector("means", means, problems)
        if not problems and degrees <= 1.0:
            problems.append(f"degrees must be greater than 1 for the mean to exist, got {degrees:g}")
        if not problems and law == "spending" and not (self._means > 0.0).all():
            problems.append(f"means of spending must be above 0, got {self._means.tolist()}")
        refuse("HeavyTailedArms", problems)
        self.law_of_rewards, self.scale, self.degrees = law, scale, degrees
        self.buyers, self.spread = buyers, spread
        low = 0.0 if law == "spending" else -np.inf
        super().__init__(self._drawn, self._means, reward_range=(low, np.inf))

    def _drawn(self, rng: np.random.Generator, horizon: int) -> FloatArray:
        shape = (horizon, self._means.size)
        if self.law_of_rewards == "student":
            rewards = self._means + self.scale * rng.standard_t(self.degrees, shape)
        else:
            amount = np.exp(self.spread * rng.standard_normal(shape) - 0.5 * self.spread**2)
            rewards = (rng.random(shape) < self.buyers) * amount * self._means / self.buyers
        return np.asarray(rewards, dtype=np.float64)


class RepeatedUnits(FunctionEnvironment):
    """Normal rewards for returning units, each with its own level; logs record the units.

    Parameters
    ----------
    means : sequence of float
        Mean rewards, one per arm.
    units : int
        Number of units; the unit of each round is drawn uniformly.
    unit_scale : float
        Standard deviation of the units' levels, drawn again in every run.
    scale : float
        Standard deviation of a reward around its unit's mean.

    Raises
    ------
    ParameterError
        If an argument is out of range; the message lists every problem.

    Notes
    -----
    Rewards of the same unit have correlation unit_scale^2 / (unit_scale^2 + scale^2): many rounds of few
    units contain less information than it seems.

    Examples
    --------
    >>> import adaptinf as ai
    >>> env = ai.environments.RepeatedUnits([0.0, 0.3], units=50)
    >>> log = ai.designs.Uniform().run(env, horizon=500, rng=0)
    >>> len(set(log.units.tolist()))
    50
    """

    def __init__(
        self, means: ArrayLike, units: int = 100, *, unit_scale: float = 1.0, scale: float = 1.0
    ) -> None:
        problems = Count(2)("units", units)
        problems += NON_NEGATIVE("unit_scale", unit_scale) + NON_NEGATIVE("scale", scale)
        self._means = vector("means", means, problems)
        refuse("RepeatedUnits", problems)
        self.n_units, self.unit_scale, self.scale = int(units), unit_scale, scale
        super().__init__(self._drawn, self._means)

    def _drawn(self, rng: np.random.Generator, horizon: int) -> dict[str, Any]:
        units = rng.integers(0, self.n_units, horizon)
        levels = self.unit_scale * rng.standard_normal(self.n_units)
        noise = self.scale * rng.standard_normal((horizon, self._means.size))
        return {"rewards": self._means + levels[units, None] + noise, "units": units}
