"""The rewards of all arms together: their shape, and how many are rare or missing."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from adaptinf.inference.distributions.shape import (
    central_moments,
    squared_skewness,
    two_values,
    uncommon_outcomes,
)
from adaptinf.log import AdaptiveLog
from adaptinf.typing import FloatArray, IntArray

_HEAVY = 20.0
"""Kurtosis of pooled rewards above which tails count as heavy."""
_TWO_SIDED = 4.0


class RewardFacts:
    """The facts of a log's rewards; each is computed when it is first asked for."""

    log: AdaptiveLog

    @cached_property
    def _of_some(self) -> dict[tuple[str, tuple[int, ...]], Any]:
        return {}

    def _fact(self, name: str, arms: tuple[int, ...] | None) -> Any:
        """A fact of the rewards of some arms together, or of all; it is kept, and the rewards are not."""
        if arms is None or len(arms) == self.log.n_arms:
            return getattr(self, name)
        if (name, arms) not in self._of_some:
            self._of_some[name, arms] = getattr(self._with_arms(arms), name)
        return self._of_some[name, arms]

    def _with_arms(self, arms: tuple[int, ...]) -> RewardFacts:
        """The facts of the rewards of some arms."""
        return _RewardsOfArms(self, arms)

    def squared_skewness_of(self, arms: tuple[int, ...] | None) -> float:
        """Squared skewness of the rewards of some arms together, None for all."""
        return float(self._fact("squared_skewness", arms))

    def two_values_of(self, arms: tuple[int, ...] | None) -> tuple[float, float] | None:
        """The two values that the rewards of some arms take, the smaller one first.

        Where these take one alone, those of all arms tell what the other is.
        """
        own = arms if self._fact("varied", arms) else None
        found: tuple[float, float] | None = self._fact("two_values", own)
        return found

    def successes_of(self, arms: tuple[int, ...] | None) -> FloatArray:
        """Number of rewards of each arm that are the larger of the two values of some; shape (K,)."""
        own = arms if self._fact("varied", arms) else None
        return np.asarray(self._fact("successes", own), dtype=np.float64)

    def heavy_tailed_of(self, arms: tuple[int, ...] | None) -> bool:
        """Whether the rewards of some arms together have heavy tails on both sides."""
        return bool(self._fact("heavy_tailed", arms))

    @cached_property
    def varied(self) -> bool:
        """Whether rewards take more than one value."""
        return bool(self.rewards.size and np.any(self.rewards != self.rewards[0]))

    def all_at(self, low: float, high: float) -> bool:
        """Whether every reward is one of two values, between which all lie."""
        reward = self.log.arrays.reward
        return bool(np.all((reward == low) | (reward == high)))

    @property
    def knows_skewness(self) -> bool:
        """Whether the log tells how skewed rewards are."""
        return True

    @cached_property
    def incomplete(self) -> bool:
        """Whether some rewards are missing."""
        return self.log.arrays.observed is not None

    @cached_property
    def rewards(self) -> FloatArray:
        """The rewards that are observed; for facts of all arms together."""
        observed = self.log.arrays.observed
        return self.log.arrays.reward if observed is None else self.log.arrays.recorded[observed]

    @cached_property
    def rewarded_actions(self) -> IntArray:
        """The arm of each reward in `rewards`."""
        observed = self.log.arrays.observed
        return self.log.arrays.action if observed is None else self.log.arrays.action[observed]

    @cached_property
    def two_values(self) -> tuple[float, float] | None:
        """The two values that rewards take, the smaller one first; None where they take others."""
        return two_values(self.rewards)

    @cached_property
    def binary(self) -> bool:
        """Whether rewards take two values, 0 and 1 or others."""
        return self.two_values is not None

    @cached_property
    def successes(self) -> FloatArray:
        """Number of rewards of each arm that are the larger of two values, else 0; shape (K,)."""
        if self.two_values is None:
            return np.zeros(self.log.n_arms)
        larger = self.rewarded_actions[self.rewards == self.two_values[1]]
        return np.bincount(larger, minlength=self.log.n_arms).astype(np.float64)

    @cached_property
    def uncommon(self) -> FloatArray:
        """Number of each arm's rewards other than its commonest, infinite where none is common; (K,)."""
        return uncommon_outcomes(self.rewarded_actions, self.rewards, self.log.n_arms)

    @cached_property
    def squared_skewness(self) -> float:
        """Squared skewness of all rewards together."""
        return squared_skewness(self.rewards)

    @cached_property
    def heavy_tailed(self) -> bool:
        """Whether the rewards of all arms together have heavy tails on both sides; never of two values.

        Sample kurtosis above 20 (the normal law has 3, the exponential one 9), and above 4 times the squared
        skewness, which is at most the kurtosis less 1: where skewness makes the kurtosis, an interval that
        allows for it serves better than other weights. Pooled: the choice of a method looks at no arm.
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
        """Mean of all rewards, whatever their arm."""
        return float(self.rewards.mean()) if len(self.rewards) else math.nan

    @cached_property
    def pooled_std(self) -> float:
        """Standard deviation of all rewards, whatever their arm."""
        return float(self.rewards.std()) if len(self.rewards) else math.nan


class _RewardsOfArms(RewardFacts):
    """The facts of the rewards of some arms of a log."""

    def __init__(self, whole: RewardFacts, arms: tuple[int, ...]) -> None:
        self.log = whole.log
        keep = np.zeros(whole.log.n_arms, dtype=bool)
        keep[list(arms)] = True
        self._rows, self._whole = keep[whole.rewarded_actions], whole

    @cached_property
    def rewards(self) -> FloatArray:
        """The rewards of these arms that are observed."""
        return self._whole.rewards[self._rows]

    @cached_property
    def rewarded_actions(self) -> IntArray:
        """The arm of each of them."""
        return self._whole.rewarded_actions[self._rows]
