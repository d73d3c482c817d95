"""Propensities that stay within batches: what those of the chosen arms tell of every arm's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from adaptinf.log.validation.findings import SUM_TOLERANCE, Findings
from adaptinf.typing import BoolArray, FloatArray, IntArray

FROM_BATCHES = "from batches"
"""What `propensities=` says where those of the chosen arms are to fill every arm's."""
_SAME = 1e-9
"""Propensities closer than this are the same: rounding of a frame that was written and read."""
_SHOWN = 5


@dataclass(frozen=True, slots=True, eq=False)
class BatchCells:
    """The chosen arms' propensities by batch, of the arms that it chose; batch, arm, propensity (C,).

    `moved` and `total` (B,): batches in which one of them is not the same in all rounds, and their sums.
    """

    batch: IntArray
    arm: IntArray
    propensity: FloatArray
    moved: BoolArray
    total: FloatArray


def batch_cells(batch: IntArray, action: IntArray, propensity: FloatArray, n_arms: int) -> BatchCells:
    """The cells of rounds; shapes batch, from 0, action, propensity of the chosen arm (T,)."""
    size = int(batch.max(initial=-1)) + 1
    cell, served = pd.factorize(batch * n_arms + action)
    one = np.empty(len(served))
    one[cell] = propensity
    moved = np.zeros(size, dtype=bool)
    moved[batch[np.abs(propensity - one[cell]) > _SAME]] = True
    place, arm = np.divmod(np.asarray(served, dtype=np.int64), n_arms)
    total = np.bincount(place, weights=one, minlength=size).astype(np.float64)
    return BatchCells(place, arm, one, moved, total)


def full_batches(batch: IntArray, action: IntArray, propensity: FloatArray, n_arms: int) -> BoolArray:
    """Batches in which each chosen arm has one propensity, and these add up to 1: no other arm was possible.

    Shapes: batch, from 0, action, propensity of the chosen arm (T,); returns (B,).
    """
    return _full(batch_cells(batch, action, propensity, n_arms))


def _full(cells: BatchCells) -> BoolArray:
    return np.asarray(~cells.moved & (np.abs(cells.total - 1.0) <= SUM_TOLERANCE))


def propensities_as_far_as_known(
    batch: IntArray, action: IntArray, propensity: FloatArray, n_arms: int
) -> FloatArray | None:
    """Every arm's propensity as far as that of the chosen arms tells; None where no arm is ruled out.

    Shapes: batch, from 0, action, propensity of the chosen arm (T,); returns (T, K): the logged one of the
    chosen arm, 0 beside one that was sure, and for arms without rounds in a batch whose chosen arms leave no
    room to others, else 1.
    """
    cells = batch_cells(batch, action, propensity, n_arms)
    lacking = _full(cells) & (np.bincount(cells.batch, minlength=len(cells.total)) < n_arms)
    if not lacking.any():
        return None
    place, inside = np.cumsum(lacking) - 1, lacking[cells.batch]
    served = np.zeros((int(lacking.sum()), n_arms))
    served[place[cells.batch[inside]], cells.arm[inside]] = 1.0
    rows = np.flatnonzero(lacking[batch])
    table = np.ones((len(action), n_arms))
    table[rows] = served[place[batch[rows]]]
    table[propensity >= 1.0] = 0.0
    table[np.arange(len(action)), action] = propensity
    return table


def filled_from_batches(
    batch: IntArray | None,
    action: IntArray,
    propensity: FloatArray | None,
    n_arms: int,
    found: Findings,
) -> FloatArray | None:
    """Every arm's propensity, shape (T, K), from those of the chosen arms; None with a problem.

    Shapes: batch, from 0, action, propensity (T,).

    In a batch that leaves no room, an arm without rounds has propensity 0; one alone has what is left.
    """
    if batch is None or propensity is None:
        found.add("no-batches", f"propensities={FROM_BATCHES!r} needs batch= and propensity=")
        return None
    cells = batch_cells(batch, action, propensity, n_arms)
    size = len(cells.total)
    chosen = np.bincount(cells.batch, minlength=size)
    full, over = np.abs(cells.total - 1.0) <= SUM_TOLERANCE, cells.total > 1.0 + SUM_TOLERANCE
    short = ~full & ~over
    reasons = {
        "a chosen arm's propensity is not the same in all rounds": cells.moved,
        "the chosen arms' propensities add up to more than 1": over & ~cells.moved,
        "every arm was chosen, and their propensities do not add up to 1": (
            short & (chosen == n_arms) & ~cells.moved
        ),
        "several arms were not chosen, and what is left to them cannot be told apart": (
            short & (chosen < n_arms - 1) & ~cells.moved
        ),
    }
    for reason, batches in reasons.items():
        if batches.any():
            places = np.flatnonzero(batches)
            first = places[:_SHOWN].tolist()
            shown = ", ".join(map(str, first if len(places) <= _SHOWN else [*first, "..."]))
            told = f"in {len(places)} batches ({shown}, counted from 0)"
            found.add("unfilled-propensities", f"propensities={FROM_BATCHES!r}: {told} {reason}")
    if any(batches.any() for batches in reasons.values()):
        return None
    left = np.where(full, 0.0, 1.0 - cells.total)
    table = np.repeat(left[:, None], n_arms, axis=1)
    table[cells.batch, cells.arm] = cells.propensity
    return table[batch]
