"""A winner that was chosen by released means, the estimates with Laplace noise: the chance of that choice."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import logsumexp

from adaptinf.inference.winners.contest import Contest, split
from adaptinf.typing import FloatArray

_REACH = 12.0
"""Standard errors about the estimate beyond which its law has nothing that a double shows."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_FAR = 45.0
"""Scales of the noise beyond which it has nothing that a double shows."""


@dataclass(frozen=True, eq=False)
class NoisyChoice:
    """Log of the chance of the choice by the estimate that is asked for, in standard errors."""

    log_chance: CubicSpline

    @classmethod
    def of(
        cls, x: FloatArray, sigma: FloatArray, contest: Contest, noise: FloatArray, scale: float
    ) -> NoisyChoice:
        """The chance given what is independent of the estimate; x and noise (k,), sigma (k, k)."""
        direction = contest.direction
        slope, rest = split(x, sigma, direction)
        own = float(direction @ x) / scale
        others = [second for _, second in contest.ahead]
        step = min(0.05, float(noise.min()) / scale / 10.0)
        at = own + np.linspace(-_REACH, _REACH, 2 * int(np.ceil(_REACH / step)) + 1)
        every = rest[:, None] + slope[:, None] * (scale * at)
        gaps = every[contest.won] - every[others]
        return cls(CubicSpline(at, log_choice(gaps.T, float(noise[contest.won]), noise[others])))

    def log_distribution(self, x: float, mean: float, low: float, high: float) -> float:
        """Log of the distribution function at x of the estimate, given the choice and a value in [low, high].

        Limits beyond 12 standard errors of the estimate count as there.
        """
        first, last = float(self.log_chance.x[0]), float(self.log_chance.x[-1])
        low, high = max(low, first), min(high, last)
        if not low < x < high:
            return -np.inf if x <= low else 0.0
        below, above = self._log_mass(mean, low, x), self._log_mass(mean, x, high)
        return float(below - np.logaddexp(below, above))

    def _log_mass(self, mean: float, low: float, high: float) -> float:
        """Log of the integral of the normal density about a mean times the chance."""
        edges = np.linspace(low, high, int(np.ceil((high - low) / 0.5)) + 1)
        half = 0.5 * np.diff(edges)[:, None]
        at = edges[:-1, None] + half * (1.0 + _NODES)
        logs = self.log_chance(at) - 0.5 * np.square(at - mean)
        return float(logsumexp(logs, b=half * _WEIGHTS))


def log_choice(gaps: FloatArray, own: float, noise: FloatArray) -> FloatArray:
    """Log of the chance that the winner stays ahead once all have their noise.

    Shapes: gaps (n, m), its lead over each other one before that; own its scale, noise (m,) theirs.
    """
    if gaps.shape[1] == 1 and noise[0] == own:
        return _log_two(gaps[:, 0] / own)
    return np.array([_log_of_several(row, own, noise) for row in gaps])


def _log_two(lead: FloatArray) -> FloatArray:
    """Of two with the same scale: F(d) = 1 - exp(-d) (2 + d) / 4 for d >= 0, and 1 - F(-d) below."""
    size = np.abs(lead)
    log_tail = np.log(0.25 * (2.0 + size)) - size
    return np.where(lead < 0.0, log_tail, np.log1p(-np.exp(log_tail)))


def _log_of_several(lead: FloatArray, own: float, noise: FloatArray) -> float:
    """Integral over the winner's noise of the chances that the others stay below; lead and noise (m,)."""
    kinks = np.unique(np.concatenate([[0.0], -lead]))
    width, most = min(own, float(noise.min())), max(own, float(noise.max()))
    ends = [kinks[0] - _FAR * most, *kinks, kinks[-1] + _FAR * most]
    edges = np.concatenate(
        [
            np.linspace(start, stop, int(np.ceil((stop - start) / (4.0 * width))) + 1)[:-1]
            for start, stop in pairwise(ends)
        ]
        + [[ends[-1]]]
    )
    half = 0.5 * np.diff(edges)[:, None]
    u = edges[:-1, None] + half * (1.0 + _NODES)
    logs = -np.abs(u) / own - np.log(2.0 * own)
    for gap, scale in zip(lead, noise, strict=True):
        below = (gap + u) / scale
        tail = -np.log(2.0) - np.abs(below)
        logs = logs + np.where(below < 0.0, tail, np.log1p(-np.exp(tail)))
    return float(logsumexp(logs, b=half * _WEIGHTS))
