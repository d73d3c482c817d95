"""Draws of exact noise against their distributions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from scipy import stats

from adaptinf.privacy import discrete_gaussian, discrete_laplace
from adaptinf.qualification.rows import Known
from adaptinf.typing import FloatArray, IntArray

DRAWS, SCALE, REACH, ALARM = 4_000, 3.0, 12, 1e-6
_AGREES = "agrees with its distribution"
_SOURCE = f"probabilities in closed form; chi-squared test of {DRAWS:,} draws, false alarm {ALARM:g}"
_LAWS: dict[str, tuple[Callable[[float, int], IntArray], Callable[[FloatArray], FloatArray]]] = {
    "discrete_laplace": (discrete_laplace, lambda sizes: np.exp(-sizes / SCALE)),
    "discrete_gaussian": (discrete_gaussian, lambda sizes: np.exp(-(sizes**2) / (2.0 * SCALE**2))),
}


def noise_tests() -> Iterator[Known]:
    """One test for each sampler."""
    for name in _LAWS:
        yield Known("Exact noise", f"{name}, scale {SCALE:g}", _SOURCE, partial(_law, name), _AGREES)


def _law(name: str) -> str:
    """Whether the frequencies of single values, and of the tails, are those of the distribution."""
    draw, weight = _LAWS[name]
    every = np.arange(-400, 401)
    chances = weight(np.abs(every).astype(np.float64))
    chances /= chances.sum()
    kept = np.clip(every, -REACH, REACH)
    drawn = np.clip(draw(SCALE, DRAWS), -REACH, REACH)
    cells = np.arange(-REACH, REACH + 1)
    expected = np.array([chances[kept == cell].sum() for cell in cells]) * DRAWS
    found = np.array([(drawn == cell).sum() for cell in cells])
    p_value = float(stats.chisquare(found, expected).pvalue)
    return _AGREES if p_value > ALARM else f"p = {p_value:.2g}"
