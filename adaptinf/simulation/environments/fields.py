"""What trials in the field have: levels that drift, heavy tails, units that come again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.errors import ParameterError
from adaptinf.parameters import FINITE, NON_NEGATIVE, OPEN_SHARE, POSITIVE, Count, OneOf, refuse
from adaptinf.simulation.environment import vector
from adaptinf.simulation.environments.function import FunctionEnvironment
from adaptinf.typing import FloatArray

_WEEK, _WEEKEND = 7, 5


class DriftingArms(FunctionEnvironment):
    """Arms whose level drifts while a trial runs, by the same amount for all arms.

    Parameters
    ----------
    means : sequence of float
        Mean reward of each arm over the rounds of a run, whatever their number.
    drift : {"linear", "weekend", "change"}
        Whether the level rises in a line from the first round to the last; is higher on two days of seven; or
        changes once.
    size : float
        From the lowest level to the highest.
    rewards : {"normal", "bernoulli"}
        Law of a reward, given the level of its round.
    scale : float
        Standard deviation of normal rewards.
    day : int
        Rounds of a day, for weekends: the first is a Monday.
    at : float
        Share of the rounds after which the level changes.

    Raises
    ------
    ParameterError
        Listing everything out of range; for 0/1 rewards also levels outside [0, 1].

    Notes
    -----
    Levels are centred over the rounds of a run, so that `means` are the averages of the arms' expected
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
            Rounds of a run.
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
        """Expected rewards, shape (horizon, arms), which for 0/1 rewards must be probabilities."""
        expected = self.levels(horizon)[:, None] + self._means
        low, high = float(expected.min()), float(expected.max())
        if self.law_of_rewards == "bernoulli" and not (low >= 0.0 and high <= 1.0):
            problem = f"probabilities go from {low:.4g} to {high:.4g} with a drift of size {self.size:g}"
            raise ParameterError("DriftingArms", [f"{problem}: take another size, or other means"])
        return expected

    def _drawn(self, rng: np.random.Generator, horizon: int) -> FloatArray:
        expected = self._expected(horizon)
        if self.law_of_rewards == "bernoulli":
            return (rng.random(expected.shape) < expected).astype(np.float64)
        return np.asarray(expected + self.scale * rng.standard_normal(expected.shape), dtype=np.float64)


class HeavyTailedArms(FunctionEnvironment):
    """Arms whose rewards have heavy tails: Student's t, or what few buyers spend.

    Parameters
    ----------
    means : sequence of float
        Mean rewards, one per arm; above 0 for spending.
    law : {"student", "spending"}
        Student's t about the mean; or 0 for most, and a lognormal amount for a share of buyers.
    scale : float
        Scale of t.
    degrees : float
        Degrees of freedom of t, above 1.
    buyers : float
        Share of rewards above 0, for spending.
    spread : float
        Standard deviation of the logarithm of what a buyer spends.

    Raises
    ------
    ParameterError
        Listing everything out of range.

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
            problems.append(f"degrees must be above 1, or there is no mean, got {degrees:g}")
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
    """Normal rewards of units that come again, each with a level of its own; logs keep the units.

    Parameters
    ----------
    means : sequence of float
        Mean rewards, one per arm.
    units : int
        Number of units; each round's is drawn uniformly.
    unit_scale : float
        Standard deviation of the units' levels, drawn anew in every run.
    scale : float
        Standard deviation of a reward about its unit's mean.

    Raises
    ------
    ParameterError
        Listing everything out of range.

    Notes
    -----
    Rewards of one unit are correlated by unit_scale^2 / (unit_scale^2 + scale^2): as many rounds of few units
    tell less than they seem to.

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
