"""Facts about the rewards of all arms together: their shape, and how many are rare or missing."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from adaptinf.inference.distributions.sample_shape import (
    central_moments,
    rows_of_cells,
    skewness_doubt,
    squared_skewness,
    two_values,
    uncommon_outcomes,
)
from adaptinf.log import AdaptiveLog
from adaptinf.typing import FloatArray, IntArray

_HEAVY = 20.0
"""Tails count as heavy if the kurtosis of pooled rewards is above this value."""
_TWO_SIDED = 4.0


class RewardFacts:
    """The facts about the rewards of a log, each of which is computed when it is first used."""

    log: AdaptiveLog

    @cached_property
    def _some(self) -> dict[tuple[int, ...], RewardFacts]:
        return {}

    def of_arms(self, codes: IntArray) -> RewardFacts:
        """The facts about the pooled rewards of these arms, which are cached; codes has shape (k,)."""
        arms = tuple(sorted(codes.tolist()))
        if len(arms) == self.log.n_arms:
            return self
        if arms not in self._some:
            self._some[arms] = self._with_arms(arms)
        return self._some[arms]

    @cached_property
    def rows_of_arms(self) -> list[IntArray]:
        """Positions of each arm's rewards in `rewards`."""
        return rows_of_cells(self.rewarded_actions, self.log.n_arms)

    def _with_arms(self, arms: tuple[int, ...]) -> RewardFacts:
        return _RewardsOfArms(self, arms)

    @cached_property
    def varied(self) -> bool:
        """Whether rewards take more than one value."""
        return bool(self.rewards.size and np.any(self.rewards != self.rewards[0]))

    def all_at(self, low: float, high: float) -> bool:
        """Whether every reward is one of two values that bound the range."""
        reward = self.log.arrays.reward
        return bool(np.all((reward == low) | (reward == high)))

    @property
    def knows_skewness(self) -> bool:
        """Whether the log shows how skewed rewards are."""
        return True

    @property
    def knows_rarity(self) -> bool:
        """Whether the log shows how rare outcomes are."""
        return True

    @cached_property
    def incomplete(self) -> bool:
        """Whether some rewards are missing."""
        return self.log.arrays.observed is not None

    @cached_property
    def rewards(self) -> FloatArray:
        """The observed rewards of all arms."""
        observed = self.log.arrays.observed
        return self.log.arrays.reward if observed is None else self.log.arrays.recorded[observed]

    @cached_property
    def rare_rate(self) -> float:
        """Share of rewards other than the most common one; 0 if no reward is common."""
        reward = self.rewards
        uncommon = float(uncommon_outcomes(np.zeros(len(reward), dtype=np.int64), reward, 1)[0])
        return uncommon / len(reward) if np.isfinite(uncommon) else 0.0

    @cached_property
    def rewarded_actions(self) -> IntArray:
        """The arm of each reward in `rewards`."""
        observed = self.log.arrays.observed
        return self.log.arrays.action if observed is None else self.log.arrays.action[observed]

    @cached_property
    def two_values(self) -> tuple[float, float] | None:
        """The two values that rewards take, in ascending order; None if there are more or fewer."""
        return two_values(self.rewards)

    @cached_property
    def binary(self) -> bool:
        """Whether rewards take two values, which need not be 0 and 1."""
        return self.two_values is not None

    @cached_property
    def successes(self) -> FloatArray:
        """For each arm, number of rewards equal to the larger of two values, or 0 for other rewards; (K,)."""
        if self.two_values is None:
            return np.zeros(self.log.n_arms)
        larger = self.rewarded_actions[self.rewards == self.two_values[1]]
        return np.bincount(larger, minlength=self.log.n_arms).astype(np.float64)

    @cached_property
    def uncommon(self) -> FloatArray:
        """By arm, number of rewards other than the most common one, infinite if none is common; (K,)."""
        return uncommon_outcomes(self.rewarded_actions, self.rewards, self.log.n_arms)

    @cached_property
    def squared_skewness(self) -> float:
        """Squared skewness of all rewards together."""
        return squared_skewness(self.rewards)

    @cached_property
    def skewness_doubt(self) -> float:
        """Relative error of the skewness of all rewards together."""
        return skewness_doubt(self.squared_skewness, self.rewards.size)

    @cached_property
    def heavy_tailed(self) -> bool:
        """Whether the pooled rewards have heavy tails on both sides; False for rewards with two values.

        The sample kurtosis must be above 20 (it is 3 for the normal distribution, and 9 for the exponential),
        and above 4 times the squared skewness, which is at most the kurtosis minus 1. If skewness causes the
        kurtosis, an interval that allows for skewness is better than other weights. Rewards are pooled,
        because the choice of a method must not use the rewards of a single arm.
        """
        reward = self.rewards
        low, high = reward.min(initial=np.inf), reward.max(initial=-np.inf)
        if np.all((reward == low) | (reward == high)):
            return False
        second, third, fourth = central_moments(reward, low, high - low)
        kurtosis, skewness = fourth / second**2, third / second**1.5
        return bool(kurtosis > max(_HEAVY, _TWO_SIDED * skewness**2))

    @cached_property
    def pooled_mean(self) -> float:
        """Mean of all rewards, pooled over arms."""
        return float(self.rewards.mean()) if len(self.rewards) else math.nan

    @cached_property
    def pooled_std(self) -> float:
        """Standard deviation of all rewards, pooled over arms."""
        return float(self.rewards.std()) if len(self.rewards) else math.nan


class _Rewards(RewardFacts):
    """The facts about the given rewards; reward and action have shape (n,)."""

    def __init__(self, log: AdaptiveLog, reward: FloatArray, action: IntArray) -> None:
        self.log, self.rewards, self.rewarded_actions = log, reward, action


class _RewardsOfArms(RewardFacts):
    """The facts about the rewards of selected arms.

    If these rewards take only one value, the other value is determined from the rewards of all arms.
    """

    def __init__(self, whole: RewardFacts, arms: tuple[int, ...]) -> None:
        self.log = whole.log
        rows = np.sort(np.concatenate([whole.rows_of_arms[arm] for arm in arms]), kind="stable")
        own = _Rewards(whole.log, whole.rewards[rows], whole.rewarded_actions[rows])
        of_values = own if own.varied else whole
        self.two_values, self.successes = of_values.two_values, of_values.successes
        self.squared_skewness, self.heavy_tailed = own.squared_skewness, own.heavy_tailed
        self.skewness_doubt = own.skewness_doubt
