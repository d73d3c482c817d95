"""Exact probabilities that a best-arm design names the best arm, where two arms alone decide."""

from __future__ import annotations

import math
from functools import cache, lru_cache

import numpy as np
from scipy import fft, special, stats

from adaptinf.typing import FloatArray

__all__ = ["ahead", "half", "laplace_scale", "limit", "log_error", "log_tail"]


def half(budget: int) -> int:
    """Pulls of each of two arms that share a budget, rounded up."""
    return -(-budget // 2)


def laplace_scale(epsilon: float, delta: float) -> float:
    """Scale of Laplace noise that is (epsilon, delta)-private at sensitivity 1.

    With scale 1 / e it gives delta = 1 - exp((epsilon - e) / 2) for e >= epsilon.
    """
    return 1.0 / (epsilon - 2.0 * math.log1p(-delta))


def log_tail(x: FloatArray, law: str, scale: float) -> FloatArray:
    """Log of the probability that the difference of two independent noise variables exceeds x."""
    if law == "normal":
        return np.asarray(special.log_ndtr(-x / (math.sqrt(2.0) * scale)))
    z = np.abs(x) / scale
    far = np.log(0.5 * (1.0 + 0.5 * z)) - z
    return np.where(x >= 0.0, far, np.log1p(-np.exp(far)))


def log_error(pulls: int, gap: float, law: str, scale: float) -> float:
    """Log of the error of one phase on two arms with 0/1 rewards of means (1 + gap) / 2 and (1 - gap) / 2.

    Both arms are pulled as often, and noise of this scale enters each sum. The difference of the sums is a
    binomial variable of 2 * pulls trials less `pulls`, as failures of the second arm are successes of the
    first one's law.
    """
    lead, weights = _difference(pulls, gap)
    return float(special.logsumexp(weights + log_tail(lead, law, scale)))


@lru_cache(maxsize=4)
def _difference(pulls: int, gap: float) -> tuple[FloatArray, FloatArray]:
    """By how much the first sum can lead, and logs of the probabilities."""
    count = np.arange(2 * pulls + 1, dtype=np.float64)
    return count - pulls, stats.binom.logpmf(count, 2 * pulls, 0.5 * (1.0 + gap))


def limit(gap: float, normal_scale: float, scale: float, reach: int = 4_000) -> float:
    """Limit of the error with normal noise over that with Laplace noise as pulls grow.

    Far out the difference of the sums falls by exp(s) a step, s = log((1 + gap) / (1 - gap)), so that the
    error is a constant times the sum of exp(s k) P(noise > k) over integers k. Needs scale < 1 / s.
    """
    k = np.arange(-reach, reach + 1, dtype=np.float64)
    step = k * math.log((1.0 + gap) / (1.0 - gap))
    sums = [
        special.logsumexp(step + log_tail(k, *law)) for law in (("normal", normal_scale), ("laplace", scale))
    ]
    return float(math.exp(sums[0] - sums[1]))


@cache
def ahead(
    pulls: int,
    upper: tuple[float, float],
    scales: tuple[float, float],
    *,
    law: str = "laplace",
    positive: bool = False,
) -> float:
    """Probability that the first of two noisy sums of uniform rewards is larger, and above 0 if asked.

    Sums of `pulls` rewards that are uniform on [0, upper], with independent noise of these scales (0 is
    none). Densities are inverted from their characteristic functions by a fast Fourier transform.
    """
    spread = max(40.0 * max(scales), 4.0)
    low, high = -spread, pulls * max(upper) + spread
    size = 1 << math.ceil(math.log2((high - low) / 0.05))
    step = (high - low) / size
    frequency = 2.0 * math.pi * fft.fftfreq(size, d=step)
    density = []
    for edge, scale in zip(upper, scales, strict=True):
        sums = (np.sinc(frequency * edge / (2.0 * math.pi)) * np.exp(0.5j * frequency * edge)) ** pulls
        if law == "normal":
            noise = np.exp(-0.5 * (scale * frequency) ** 2)
        else:
            noise = 1.0 / (1.0 + (scale * frequency) ** 2)
        density.append(fft.fft(sums * noise * np.exp(-1j * frequency * low)).real / size)
    below = np.cumsum(density[1]) - 0.5 * density[1]
    where = low + step * np.arange(size)
    share = np.clip((where / step) + 0.5, 0.0, 1.0) if positive else 1.0
    return float((density[0] * below * share).sum())
