"""Weights for effect scores, based on information from before a round's contexts are observed.

References
----------
Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
experiments" (weights that are known before the arm is drawn).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adaptinf.errors import ParameterError
from adaptinf.inference.inputs.rounds import turns
from adaptinf.inference.scores.inverse import (
    Fixed,
    combined_stays,
    lagged_combined_weights,
    two_point_weights,
)
from adaptinf.inference.validity.profile import LogProfile
from adaptinf.typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Past:
    """The order of the rounds that are used, within their cells.

    Shapes: cell, unit, batch (n,); unit and batch are None if they are unknown. `free` states whether
    propensities depended only on the cell.
    """

    cell: IntArray
    unit: IntArray | None
    batch: IntArray | None
    free: bool


def past_of(profile: LogProfile, cell: IntArray, keep: BoolArray, *, others: bool) -> Past:
    """The past of the rounds used; cell (n,), keep (T,); `others` is whether the log has other contexts.

    If the design declares that it uses contexts, the log contains the contexts that it uses.
    """
    traits = profile.traits
    unit, batch = (
        None if column is None else column[keep] for column in (profile.units, profile.log.arrays.batch)
    )
    told = traits is not None and traits.uses_context != "unknown" and not others
    return Past(cell, unit, batch, profile.fixed_in_time or told)


def contrast_weights(propensities: FloatArray, weights: str, decay: float | None = None) -> FloatArray:
    """Weights for effect scores that are known before the arm is drawn.

    Shapes: propensities (T, 2); returns (T,).

    If rewards have variance s^2, the score has variance s^2 (1/e1 + 1/e0). ``"combined"`` weights, h = (1/e1
    + 1/e0)^(-1/2), give every weighted score the same variance. ``"two-point"`` weights are those of Hadad et
    al. for an arm with propensity q = 4 / (1/e1 + 1/e0). This is 1 if both arms are chosen with equal
    probability, and otherwise at most 4 times the rarer arm's propensity. The two points are balance of the
    arms (q = 1 always), and a fall of one arm's propensity to its floor.
    """
    total = propensities.sum(axis=1)
    product = propensities[:, 0] * propensities[:, 1]
    balance = np.where(product > 0.0, product / np.where(total > 0.0, total, 1.0), 0.0)
    if weights == "uniform":
        return np.asarray(balance > 0.0, dtype=np.float64)
    if weights == "combined":
        return np.sqrt(balance)
    if decay is None:
        raise ParameterError("two-point weights", ["decay must be in [0, 1), got None"])
    return two_point_weights(np.minimum(4.0 * balance, 1.0)[:, None], decay)[:, 0]


def combined_weights(
    propensities: FloatArray, past: Past, *, movers: bool
) -> tuple[FloatArray, Fixed] | None:
    """Combined weights that are fixed before the round's context, and the source of their propensities.

    Shapes: propensities (n, 2), both positive; returns (n,), or None if no such weights exist.

    A cell is a group, or a combination of contexts. Within it, a round's own propensities are used if it is
    known that no other context affects them, or if the weights turn out to be constant. Otherwise, a weight
    that depends on the round's own context, which the log may lack, would change the shares of contexts. In
    this case, the mean of 1/e1 + 1/e0 over the cell's previous batch (or, without batches, its previous
    round) is used, because it is determined by the past alone; the first weight of a cell is 1. If there are
    no batches, and contexts of the log may affect propensities within a cell (`movers`), no such weights
    exist.
    """
    batch = past.batch
    if past.free or combined_stays(propensities, past.cell, batch):
        return contrast_weights(propensities, "combined"), "round"
    if batch is None and movers:
        return None
    if batch is None or len(np.unique(batch)) == len(batch):
        fixed: Fixed = "round before" if batch is None else "batch"
        return lagged_combined_weights(propensities, turns(past.cell, past.unit)[0], past.cell), fixed
    return lagged_combined_weights(propensities, batch, past.cell), "batch"
