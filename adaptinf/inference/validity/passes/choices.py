"""Choices of arms compared with their propensities, summed by groups of rounds.

Short logs are summed in NumPy, because loading Numba would take longer than the time that it saves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adaptinf.typing import FloatArray, IntArray

PIECES, STRETCHES = 20, 8
"""Numbers of groups of rounds by size of the propensity, and by time."""
_SMALL = 500_000
"""Largest number of propensities for which NumPy is faster than loading Numba."""


class Counts(NamedTuple):
    """Choices of each arm by group, with mean and variance implied by the propensities; shapes (G, K)."""

    observed: FloatArray
    expected: FloatArray
    variance: FloatArray

    def total(self) -> Counts:
        """Choices for all groups together, in arrays of shape (K,)."""
        return Counts(*(part.sum(axis=0) for part in self))


class Choices(NamedTuple):
    """Sums over all rounds.

    `pieces` are counts by size of the propensity, and `stretches` are counts by time. Shapes: possible,
    inverse, largest, chosen (K,): for each arm, the number of rounds in which it was possible, the sum and
    the maximum of 1 / e over these, and the sum of 1 / e over the rounds that chose it.
    """

    pieces: Counts
    stretches: Counts
    possible: FloatArray
    inverse: FloatArray
    largest: FloatArray
    chosen: FloatArray


def choices_of(action: IntArray, every: FloatArray) -> Choices:
    """Sums over at least several hundred rounds; action (T,), every (T, K)."""
    if every.size > _SMALL:
        from adaptinf.inference.validity.passes.kernel import add_choices

        arms = every.shape[1]
        by_piece, by_time = np.zeros((PIECES, arms, 3)), np.zeros((STRETCHES, arms, 3))
        inverse = np.zeros((arms, 4))
        add_choices(np.ascontiguousarray(action), np.ascontiguousarray(every), by_piece, by_time, inverse)
        return Choices(_split(by_piece), _split(by_time), *inverse.T)
    # Sums along rows are fast, because a row is contiguous in memory.
    columns = np.ascontiguousarray(every.T)
    arms, rounds = columns.shape
    spread = columns * (1.0 - columns)
    place = np.arange(rounds)
    mine = action * rounds + place
    piece = (columns * PIECES).astype(np.int64)
    np.minimum(piece, PIECES - 1, out=piece)
    piece *= arms
    piece += np.arange(arms)[:, None]
    cell = piece.ravel()
    pieces = _counts((PIECES, arms), cell[mine], cell, columns, spread)
    starts = -(-np.arange(STRETCHES) * rounds // STRETCHES)
    stretch = np.repeat(np.arange(STRETCHES) * arms, np.diff(starts, append=rounds))
    stretches = Counts(
        np.bincount(stretch + action, minlength=STRETCHES * arms).reshape(STRETCHES, arms).astype(np.float64),
        *(np.add.reduceat(part, starts, axis=1).T for part in (columns, spread)),
    )
    if columns.min() > 0.0:
        possible, inverse = np.full(arms, float(rounds)), 1.0 / columns
    else:
        open_to = columns > 0.0
        possible = open_to.sum(axis=1).astype(np.float64)
        inverse = np.divide(1.0, columns, out=np.zeros_like(columns), where=open_to)
    chosen = np.bincount(action, inverse.ravel()[mine], arms).astype(np.float64)
    return Choices(pieces, stretches, possible, inverse.sum(axis=1), inverse.max(axis=1), chosen)


def counts_by(action: IntArray, every: FloatArray, group: IntArray, groups: int) -> Counts:
    """Choices by groups of rounds; action, group (T,), every (T, K)."""
    arms = every.shape[1]
    if every.size > _SMALL:
        from adaptinf.inference.validity.passes.kernel import add_groups

        found = np.zeros((groups, arms, 3))
        ready = np.ascontiguousarray(action), np.ascontiguousarray(every), np.ascontiguousarray(group)
        add_groups(*ready, found)
        return _split(found)
    cell = (group[:, None] * arms + np.arange(arms)).ravel()
    return _counts((groups, arms), group * arms + action, cell, every, every * (1.0 - every))


def _split(found: FloatArray) -> Counts:
    """The three counts from one array; found (G, K, 3)."""
    return Counts(found[..., 0], found[..., 1], found[..., 2])


def _counts(
    shape: tuple[int, int], own: IntArray, cell: IntArray, every: FloatArray, spread: FloatArray
) -> Counts:
    """Counts by cell; own (T,), cell (T K,), every and spread with the same number of entries."""
    size = shape[0] * shape[1]
    parts = (
        np.bincount(own, minlength=size),
        np.bincount(cell, every.ravel(), size),
        np.bincount(cell, spread.ravel(), size),
    )
    return Counts(*(part.reshape(shape).astype(np.float64) for part in parts))


class Chosen(NamedTuple):
    """For each arm, sums of 1 / p and 1 / p^2, smallest p when chosen, and the number of possible rounds."""

    inverse: FloatArray
    squares: FloatArray
    possible: FloatArray
    least: FloatArray


def chosen_of(action: IntArray, own: FloatArray, table: FloatArray | None, n_arms: int) -> Chosen:
    """Sums for chosen arms' propensities; action, own (T,), table (T, K), positive for possible arms.

    Rounds in which an arm may have been chosen are counted up to the last round in which it was chosen. Later
    rounds give no information, because the propensity of the arm may have fallen almost to 0. Without a
    table, rounds with propensity 1 exclude the other arms.
    """
    if len(own) > _SMALL:
        from adaptinf.inference.validity.passes.kernel import add_chosen

        state = np.zeros((n_arms, 6))
        state[:, 3] = 1.0
        known = np.zeros((0, 0)) if table is None else np.ascontiguousarray(table)
        add_chosen(np.ascontiguousarray(action), np.ascontiguousarray(own), known, state)
        return Chosen(*state.T[:4])
    inverse = 1.0 / own
    last, least = np.zeros(n_arms, dtype=np.int64), np.ones(n_arms)
    last[action] = np.arange(len(action))
    np.minimum.at(least, action, own)
    first, second = (
        np.bincount(action, part, n_arms).astype(np.float64) for part in (inverse, inverse * inverse)
    )
    possible = np.asarray(last + 1.0, dtype=np.float64)
    if table is not None:
        possible[:] = [np.count_nonzero(table[: end + 1, k] > 0.0) for k, end in enumerate(last)]
    elif own.max(initial=0.0) >= 1.0:
        sure = np.cumsum(own >= 1.0)
        possible -= sure[last] - np.bincount(action[own >= 1.0], minlength=n_arms)
    return Chosen(first, second, possible, least)
