"""The rounds to which a user restricts a model, and the times of rounds."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from adaptinf.claims.logs.rows import MARKED
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.inputs.arguments import by_round
from adaptinf.log.validation import arrays_of
from adaptinf.parameters import refuse
from adaptinf.sums import NEEDS_ROWS, Sums
from adaptinf.typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog

_SAME = 1e-9
"""Largest relative difference at which values are treated as equal: storing a frame can round them."""
_PIECE = 2**18
"""Number of values that are compared at a time, so that they fit into a processor's cache."""


def marked_log(
    subject: str, log: AdaptiveLog, rounds: Any
) -> tuple[AdaptiveLog, BoolArray | None, tuple[str, ...]]:
    """The log of the rounds that the user selected, the mask that selects them, and a note.

    The mask has shape (T,). If it does not depend on rewards, every model can use the shorter log like the
    whole log: given the past, its arms were drawn with the logged propensities.
    """
    keep = round_mask(subject, log, rounds)
    if keep is None:
        return log, None, ()
    return log_of_rounds(log, keep), keep, (MARKED(kept=int(keep.sum()), rounds=log.n_rounds),)


def round_mask(subject: str, log: AdaptiveLog, rounds: Any) -> BoolArray | None:
    """The mask of the rounds selected by the user, shape (T,), or None if the user selected none."""
    if rounds is None:
        return None
    if isinstance(cast(object, log), Sums):
        raise InvalidForLog(f"{subject}(rounds=)", NEEDS_ROWS, ["Sums of only the required batches"])
    try:
        given = log.column(rounds) if isinstance(rounds, str) else rounds
    except ParameterError as error:
        raise ParameterError(subject, [f"rounds: {problem}" for problem in error.problems]) from None
    values, problems = by_round("rounds", given, pd.RangeIndex(log.n_rounds))
    refuse(subject, problems)
    problem = None
    if values.shape != (log.n_rounds,):
        problem = f"rounds must have one entry per round, shape ({log.n_rounds},), got shape {values.shape}"
    elif not set(np.unique(values).tolist()) <= {0, 1}:
        problem = "rounds must contain booleans (or 0 and 1), true for the rounds to use"
    elif not values.any():
        problem = "rounds selects no round"
    if problem is not None:
        raise ParameterError(subject, [problem])
    return values.astype(bool)


def log_of_rounds(log: AdaptiveLog, keep: BoolArray) -> AdaptiveLog:
    """A log of the rounds that are kept, without the releases, which refer to all rounds; keep (T,)."""
    part = copy.copy(log)
    for name, value in vars(log).items():
        setattr(part, name, _rows(value, keep))
    columns = {name: _rows(value, keep) for name, value in log.arrays.by_field().items()}
    # `known` counts rounds, so it has to be recounted in the rounds that are kept.
    if columns["known"] is not None:
        columns["known"] = np.concatenate([[0], np.cumsum(keep)])[columns["known"]]
    part.arrays = arrays_of(columns)
    if part.arrays.batch is not None:
        batch = np.unique(part.arrays.batch, return_inverse=True)[1]
        part.arrays = arrays_of({**columns, "batch": batch.astype(np.int64)})
    part.n_rounds = int(keep.sum())
    part.omitted = log.omitted + log.n_rounds - part.n_rounds
    # For a part of the rounds, the number that could affect an action is unknown, unless none could in the
    # whole log.
    part.feedback_rounds = log.feedback_rounds if log.feedback_rounds == 0 else None
    part.released_rounds = None
    part._releases = part._frame = None
    part.kept = {}
    return part


def _rows(column: Any, keep: BoolArray) -> Any:
    """The rounds of a column, or of each column in a mapping, that are kept; other values are unchanged."""
    if isinstance(column, dict):
        return {name: _rows(value, keep) for name, value in column.items()}
    return column[keep] if isinstance(column, np.ndarray) and column.shape[:1] == keep.shape else column


def turns(cell: IntArray, unit: IntArray | None) -> tuple[IntArray, IntArray]:
    """The number of each round's turn within its cell, and the last round of the cell before the turn, or -1.

    Shapes: cell, unit (T,); returns two arrays (T,). A turn is a round or, if units are known, consecutive
    rounds of a cell that belong to the same unit. These share the unit's own contexts, so none of them is the
    past of another.
    """
    order = np.argsort(cell, kind="stable")
    position, first = np.arange(len(cell)), np.diff(cell[order], prepend=-1) != 0
    new = np.ones(len(cell), dtype=bool) if unit is None else np.diff(unit[order], prepend=-1) != 0
    start = np.maximum.accumulate(np.where(new | first, position, 0))
    turn, before = np.empty_like(order), np.empty_like(order)
    turn[order] = start
    before[order] = np.where(first[start], -1, order[start - 1])
    return turn, before


def propensities_before(propensities: FloatArray, n_arms: int, before: IntArray | None = None) -> FloatArray:
    """Propensities of an earlier round, by default the previous one; -1 stands for a uniform draw of n arms.

    Shapes: propensities (T, k), before (T,); returns (T, k).
    """
    if before is not None:
        return np.where(before[:, None] >= 0, propensities[before], 1.0 / n_arms)
    found = np.empty_like(propensities)
    found[:1] = 1.0 / n_arms
    found[1:] = propensities[:-1]
    return found


def moves(values: FloatArray, place: IntArray | None, beyond: float = 0.0) -> IntArray:
    """The rounds in which some column differs, beyond rounding, from the previous round in the same place.

    Shapes: values (T, k), place (T,). Places are in order; None stands for a single place.
    """
    found, step = [np.zeros(0, dtype=np.int64)], max(1, _PIECE // max(1, values.shape[1]))
    for start in range(1, len(values), step):
        stop = min(start + step, len(values))
        later, before = values[start:stop], values[start - 1 : stop - 1]
        moved = np.any(later != before if beyond == 0.0 else np.abs(later - before) > beyond, axis=1)
        if place is not None:
            moved &= place[start:stop] == place[start - 1 : stop - 1]
        found.append(start + np.flatnonzero(moved))
    return np.concatenate(found)


def stays(values: FloatArray, place: IntArray | None) -> BoolArray:
    """Whether each column is constant within every place, if places have two rounds or more on average.

    Shapes: values (T, k), place (T,), None if there is only one place; returns (k,). Places with a single
    round are no evidence that columns are constant.
    """
    if not len(values):
        return np.zeros(values.shape[1], dtype=bool)
    if place is not None and np.any(place[1:] < place[:-1]):
        order = np.argsort(place, kind="stable")
        values, place = values[order], place[order]
    starts = np.zeros(1, dtype=np.int64)
    if place is not None:
        starts = np.append(starts, np.flatnonzero(place[1:] != place[:-1]) + 1)
    if not len(moves(values, place)):
        return np.full(values.shape[1], len(values) >= 2 * len(starts))
    low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    still = np.all(high - low <= _SAME * high, axis=0) & (len(values) >= 2 * len(starts))
    return np.asarray(still, dtype=bool)


def all_at_once(possible: BoolArray) -> BoolArray:
    """Whether all arms were possible, with the same entry for each arm; takes and returns shape (R, k)."""
    return np.broadcast_to(possible.all(axis=1, keepdims=True), possible.shape)


def possible_rounds(
    chosen: FloatArray | BoolArray | None,
    propensity: FloatArray,
    propensities: FloatArray | None,
    *,
    jointly: bool = False,
) -> BoolArray:
    """Rounds in which each arm (if `jointly`, every arm) could be chosen, as far as is known.

    Shapes: chosen (T, k), which is needed if propensities is None; propensity (T,); propensities (T, k);
    returns (T, k).
    """
    if propensities is None:
        assert chosen is not None
        # If another arm had propensity 1, this arm could not have been chosen.
        possible = (propensity[:, None] < 1.0) | (chosen > 0.0)
    else:
        possible = propensities > 0.0
    return all_at_once(possible) if jointly else possible


def middles(sizes: FloatArray) -> FloatArray:
    """Times of the middles of consecutive batches; sizes, the numbers of rounds, has shape (B,)."""
    return np.asarray((np.cumsum(sizes) - 0.5 * sizes) / sizes.sum() - 0.5)


def times_of(n_rounds: int, batch: IntArray | None) -> FloatArray:
    """Times of rounds, shape (T,); all rounds of a batch have the time of the batch's middle."""
    if batch is None:
        return np.asarray((np.arange(n_rounds) + 0.5) / n_rounds - 0.5)
    return middles(np.bincount(batch).astype(np.float64))[batch]
