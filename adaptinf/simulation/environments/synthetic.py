"""Synthetic reward laws: Bernoulli, normal and uniform arms, with or without finitely many contexts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.parameters import COUNT, NON_NEGATIVE, POSITIVE, OneOf, OrNone, refuse
from adaptinf.simulation.environment import Environment, environment_tables, numbers, vector
from adaptinf.simulation.run import BERNOULLI, NORMAL, UNIFORM
from adaptinf.typing import FloatArray

_LAWS = {"bernoulli": BERNOULLI, "uniform": UNIFORM, "normal": NORMAL}


class BernoulliArms(Environment):
    """Arms that pay 1 with a fixed probability, else 0.

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
        Standard deviation, of all arms or one per arm.

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
    """Arms with rewards uniform on an interval.

    Parameters
    ----------
    low, high : sequence of float
        Ends of the interval, one per arm.

    Raises
    ------
    ParameterError
        If a low end is above its high end, or the lengths differ.

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
    """A finite number of contexts, each with a reward law of its own for each arm; context column: feature.

    Parameters
    ----------
    probabilities : array_like of shape (features,) or (periods, features)
        Arrival probabilities; with several rows they follow each other in turn, as seasons do.
    means : array_like of shape (features, arms)
        Mean rewards.
    rewards : {"bernoulli", "uniform", "normal"}
        Reward law. Uniform rewards lie within `half_width` of their mean.
    scale : float
        Standard deviation of normal rewards.
    half_width : float or None
        Half the length of the uniform interval; by default the largest that keeps a cell within [0, 1].
    period : int or None
        Rounds of a period; needed where `probabilities` has several rows.

    Raises
    ------
    ParameterError
        Listing everything that does not fit.

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
        problems.append("period (rounds of a period) is needed where probabilities has several rows")
    return problems + OrNone(COUNT)("period", period)
