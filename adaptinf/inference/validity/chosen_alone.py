"""What the chosen arms' propensities alone tell: which arms they rule out, and whether choices followed them.

An arm k is chosen with propensities p: the sum of 1{A = k} / p - 1 over the rounds in which it was possible
is a martingale, whose variance the sum of 1{A = k} (1 - p) / p^2 estimates without bias. An arm that came
late, and counts as possible before, is far below 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import special

from adaptinf.log.validation.batches import full_batches
from adaptinf.typing import FloatArray, IntArray

DOUBTED = 1e-3
"""P-value, times the number of arms, below which the propensities of an arm are doubted."""
_LEAST = 20
"""Rounds of an arm from which the test is normal enough."""
_SHOWN = 5


def propensities_as_far_as_known(
    batch: IntArray, action: IntArray, propensity: FloatArray, n_arms: int
) -> FloatArray | None:
    """Every arm's propensity as far as that of the chosen arms tells; None where no arm is ruled out.

    Shapes: batch, from 0, action, propensity of the chosen arm (T,); returns (T, K): the logged one of the
    chosen arm, 0 beside one that was sure, and for arms without rounds in a batch whose chosen arms leave no
    room to others, else 1.
    """
    full = full_batches(batch, action, propensity, n_arms)
    out = []
    for code in range(n_arms):
        served = np.zeros(len(full), dtype=bool)
        served[batch[action == code]] = True
        out.append(full & ~served)
    if not any(one.any() for one in out):
        return None
    table = np.ones((len(action), n_arms))
    table[propensity >= 1.0] = 0.0
    for code, one in enumerate(out):
        table[one[batch], code] = 0.0
    table[np.arange(len(action)), action] = propensity
    return table


def chosen_alone_caution(
    action: IntArray, propensity: FloatArray, possible: IntArray, arms: Sequence[Any]
) -> tuple[str, ...]:
    """The caution that arms were not chosen as often as their own propensities say; none where nothing shows.

    Shapes: action, propensity of the chosen arm (T,), possible (K,), rounds in which each arm may have been
    chosen.
    """
    z = frequency_statistics(action, propensity, possible)
    usable = np.isfinite(z)
    p = 2.0 * special.ndtr(-np.abs(np.where(usable, z, 0.0))) * max(1, int(usable.sum()))
    found = [f"{arms[code]} (z = {z[code]:.1f})" for code in np.flatnonzero(usable & (p < DOUBTED)).tolist()]
    if not found:
        return ()
    named = ", ".join(found[:_SHOWN]) + (f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else "")
    return (
        f"{named}: not chosen as often as the chosen arms' propensities say, of rounds in which it counts as "
        "possible: look for rounds in which it was not (batch= or every arm's propensities tell), or "
        "propensities that are not those of the choices; what divides by them is not to be trusted",
    )


def frequency_statistics(action: IntArray, propensity: FloatArray, possible: IntArray) -> FloatArray:
    """Standardised sums of 1{A = k} / p - 1, NaN of arms of fewer than 20 rounds or always sure.

    Shapes: action, propensity of the chosen arm (T,), possible (K,); returns (K,).
    """
    size = len(possible)
    pulls = np.bincount(action, minlength=size)
    inverse = np.bincount(action, weights=1.0 / propensity, minlength=size)
    variance = np.bincount(action, weights=(1.0 - propensity) / propensity**2, minlength=size)
    usable = (pulls >= _LEAST) & (variance > 0.0)
    return np.where(usable, (inverse - possible) / np.sqrt(np.where(usable, variance, 1.0)), np.nan)
