"""The law of what is asked of the highest of several normal estimates, given what is independent of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.special import log_ndtr, ndtri

from adaptinf.claims.laws import TRUNCATED
from adaptinf.inference.winners.contest import Contest
from adaptinf.inference.winners.noisy import NoisyChoice
from adaptinf.inference.winners.truncated import log_distribution, mean_at
from adaptinf.typing import FloatArray

METHODS = ("hybrid", "conditional", "projection")
_SHARE = 0.1
"""Share of alpha that a hybrid interval spends on its projection, as its authors choose."""
_STEPS = 60
_USUAL = 0.005


@dataclass(frozen=True, eq=False)
class WinnerLaw:
    """Intervals and p-values for what is asked of the winner: a `Reference` of one term.

    Attributes
    ----------
    family : int
        How many questions there might have been.
    own, low, high : float
        The estimate, and the limits within which the same question is asked, in standard errors.
    scale : float
        Its standard error.
    method : str
        How intervals are made.
    tied : bool
        Whether another one is as high.
    law : callable
        Log of the distribution function at a value, by the mean and limits of the estimate.
    """

    family: int
    own: float
    low: float
    high: float
    scale: float
    method: str
    tied: bool
    law: Callable[[float, float, float, float], float] = log_distribution
    exact: bool = field(default=False, init=False)
    statistic, normal, uses_std_error = "z", False, False

    @classmethod
    def of(
        cls,
        x: FloatArray,
        sigma: FloatArray,
        method: str,
        contest: Contest,
        noise: FloatArray | None = None,
    ) -> WinnerLaw:
        """The law for estimates (k,) with covariance (k, k), chosen from with noise of scales (k,)."""
        direction = contest.direction
        scale = math.sqrt(float(direction @ sigma @ direction))
        if noise is not None:
            own, choice = float(direction @ x) / scale, NoisyChoice.of(x, sigma, contest, noise, scale)
            ends = -math.inf, math.inf
            return cls(contest.family, own, *ends, scale, method, tied=False, law=choice.log_distribution)
        low, high = contest.limits(x, sigma)
        tied = contest.tied(x, scale)
        own = float(direction @ x) / scale
        used = "projection" if tied else method
        return cls(contest.family, own, low / scale, high / scale, scale, used, tied)

    @property
    def name(self) -> str:
        """The law behind the numbers."""
        return "simultaneous normal" if self.method == "projection" else TRUNCATED()

    @property
    def median(self) -> float:
        """The mean at which the estimate is as often lower as higher; of a tie, the estimate.

        But for the conditional method it is sought within the simultaneous interval of level .995.
        """
        if self.tied:
            return self.own * self.scale
        window = math.inf if self.method == "conditional" else self._critical(_USUAL)
        return mean_at(math.log(0.5), self.own, self.low, self.high, window, self.law) * self.scale

    def interval(self, log_alpha: float) -> FloatArray:
        """Interval at level 1 - exp(log_alpha), shape (1, 2)."""
        alpha = math.exp(log_alpha)
        if alpha == 0.0:
            return np.array([[-math.inf, math.inf]])
        if self.method == "projection":
            width = self._critical(alpha)
            return np.array([[self.own - width, self.own + width]]) * self.scale
        window, level = math.inf, alpha
        if self.method == "hybrid":
            beta = _SHARE * alpha
            window, level = self._critical(beta), (alpha - beta) / (1.0 - beta)
        logs = math.log1p(-0.5 * level), math.log(0.5 * level)
        ends = [mean_at(log, self.own, self.low, self.high, window, self.law) for log in logs]
        return np.array([ends]) * self.scale

    def log_pvalues(self, null: float) -> FloatArray:
        """Log of the level from which on the interval excludes the null, shape (1,)."""
        if self.method == "projection":
            single = min(0.0, math.log(2.0) + float(log_ndtr(-abs(self.own - null / self.scale))))
            kept = self.family * math.log1p(-math.exp(single)) if single < 0.0 else -math.inf
            far = single + math.log(self.family)
            return np.array([far if kept == 0.0 else math.log(-math.expm1(kept))])
        low, high = -700.0, 0.0
        for _ in range(_STEPS):
            middle = 0.5 * (low + high)
            ends = self.interval(middle)[0]
            low, high = (middle, high) if ends[0] <= null <= ends[1] else (low, middle)
        return np.array([high])

    def _critical(self, level: float) -> float:
        """Simultaneous critical value by Šidák's inequality, in standard errors."""
        return -float(ndtri(-0.5 * math.expm1(math.log1p(-level) / self.family)))
