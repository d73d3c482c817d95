"""Rows that stand in a log twice: a file that was appended to itself, a block that was read again, doublets.

Rows in a log are equal by chance, and long stretches of 0/1 rewards are, too. What counts is therefore how
improbable a stretch of equal rows is: the sum of -log p over its rewards, p being the frequency of the reward
among those of its arm around both places, or after the reward before it, whichever is the larger, and at
least 1/20. Arms, propensities and contexts count nothing: a design may repeat them. Over all pairs of places
the chance of such a stretch is below `ALARM` where rewards are as independent as that takes them to be.

Stretches are found by hashes of rows, or of as many rows in line as it takes to be unlikely twice, of every
fourth row by its hash, so that originals and copies are looked at alike.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from adaptinf.typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.log.validation import LogArrays

ALARM = 1e-3
"""Chance, at most, of an alarm in a log without copies."""
_LEAST_ROWS, _LEAST_CHANCE = 20, 0.05
_AROUND = 200
_SAMPLED, _FEW, _MOST_LAGS, _FEW_LAGS, _PROBE = 2, 100, 20, 3, 1024
_MOST_FAILED = 2
"""Stretches at a distance that may be chance before shorter ones are left alone."""
_ODD = np.uint64(0x9E3779B97F4A7C15)
_OTHER = np.uint64(0xC2B2AE3D27D4EB4F)
_SHIFT = np.uint64(32)


def copied_rows(arrays: LogArrays, units: NDArray[Any] | None) -> dict[str, int]:
    """How many rows repeat earlier ones, with the first stretch and its copy; empty where none do.

    Rows are counted from 0, as in errors.
    """
    size = len(arrays.action)
    if size < 2 * _LEAST_ROWS:
        return {}
    rows = _hashed(arrays.reward)
    places = _sampled(rows)
    lags = _lags(rows, places)
    if len(lags) > _FEW:  # rewards are of few values: whole rows tell more, and several in line
        rows = _whole(rows, arrays)
        lags = _lags_of_windows(rows)
    if _doubled(rows):
        lags = np.append(np.ones(len(lags) + 1, dtype=np.int64), lags)  # the first to be looked at
    if not len(lags):
        return {}
    return _confirmed(rows, lags, arrays, units)


def _hashed(values: NDArray[Any]) -> NDArray[np.uint64]:
    """A hash of each value of a column of numbers; (T,)."""
    kind = np.float64 if values.dtype.kind == "f" else np.int64
    bits = np.ascontiguousarray(values, dtype=kind).view(np.uint64)
    mixed = bits * _ODD
    mixed ^= mixed >> _SHIFT
    mixed *= _OTHER
    return mixed


def _whole(rewards: NDArray[np.uint64], arrays: LogArrays) -> NDArray[np.uint64]:
    """Hashes of rows: rewards, arms, propensities, batches and numeric contexts; (T,)."""
    columns = [arrays.action, arrays.propensity, arrays.batch]
    columns += [values for values in arrays.context.values() if values.dtype.kind in "iufb"]
    rows = rewards
    for values in columns:
        if values is not None:
            rows = (rows ^ (rows >> _SHIFT)) * _ODD + _hashed(values)
    return rows


def _sampled(hashes: NDArray[np.uint64]) -> IntArray:
    """Places of every fourth row or so, picked by its hash."""
    return np.flatnonzero(hashes >> np.uint64(64 - _SAMPLED) == 0)


def _lags(hashes: NDArray[np.uint64], places: IntArray) -> IntArray:
    """Distances between places of equal hashes next to each other in time."""
    picked = hashes[places]
    order = np.argsort(picked, kind="stable")
    ordered = picked[order]
    same = np.flatnonzero(ordered[1:] == ordered[:-1])
    if not len(same):
        return np.zeros(0, dtype=np.int64)
    return places[order[same + 1]] - places[order[same]]


def _lags_of_windows(rows: NDArray[np.uint64]) -> IntArray:
    """The same of windows of rows in line, as long as makes equal ones improbable."""
    probe = np.unique(rows[:: max(1, len(rows) // _PROBE)], return_counts=True)[1]
    equal = float((probe**2).sum() / probe.sum() ** 2)
    window, width, needed = rows, 1, 2.0 * math.log(len(rows)) / max(-math.log(equal), 1e-12)
    while width <= len(rows) // 4:
        window = (window[:-width] ^ (window[:-width] >> _SHIFT)) * _ODD + window[width:]
        width *= 2
        if width >= needed:
            lags = _lags(window, _sampled(window * _OTHER))
            if len(lags) <= _FEW or _agree(lags):
                return lags
    return np.zeros(0, dtype=np.int64)


def _agree(lags: IntArray) -> bool:
    """Whether most of many distances are the same few, as those of copies are."""
    counts = np.sort(np.unique(lags, return_counts=True)[1])[::-1]
    return bool(counts[:_MOST_LAGS].sum() > 0.5 * len(lags))


def _doubled(rows: NDArray[np.uint64]) -> bool:
    """Whether each row stands twice in its place."""
    few = slice(None, 2 * _LEAST_ROWS)
    return len(rows) % 2 == 0 and bool(
        np.all(rows[few][::2] == rows[few][1::2]) and np.all(rows[::2] == rows[1::2])
    )


def _confirmed(
    rows: NDArray[np.uint64], lags: IntArray, arrays: LogArrays, units: NDArray[Any] | None
) -> dict[str, int]:
    """What is told of copies at some of these distances, where they are too long to be chance."""
    needed = math.log(len(rows) ** 2 / 2.0 / ALARM)
    found, counts = np.unique(lags, return_counts=True)
    copies, first = np.zeros(len(rows), dtype=bool), (0, 0, 0)
    for lag in found[np.argsort(-counts, kind="stable")][
        : _MOST_LAGS if _agree(lags) else _FEW_LAGS
    ].tolist():
        equal = _equal(rows, lag, arrays, units)
        steps, left = 2 if lag == 1 else 1, _MOST_FAILED
        for start, length in _stretches(equal[::steps]):
            if length < _LEAST_ROWS or not left:
                break
            at = np.arange(start, start + length) * steps
            if _surprise(arrays, at, at + lag) > needed:
                first = first if first[2] else (int(at[0]), int(at[-1]), lag)
                copies[at + lag] = True
            else:
                left -= 1
    number = int(copies.sum())
    if not number:
        return {}
    start, last, lag = first
    return {"n": number, "rows": len(rows), "start": start, "last": last, "again": start + lag}


def _equal(rows: NDArray[np.uint64], lag: int, arrays: LogArrays, units: NDArray[Any] | None) -> BoolArray:
    """Rows that are equal to those a lag later, in every column; (T - lag,)."""
    equal: BoolArray = rows[:-lag] == rows[lag:]
    columns = [arrays.action, arrays.propensity, arrays.batch, units]
    for values in (*columns, *arrays.context.values(), *arrays.outcomes.values()):
        if values is not None:
            at = np.flatnonzero(equal)
            equal[at] = values[at] == values[at + lag]
    return equal


def _stretches(equal: BoolArray) -> list[tuple[int, int]]:
    """Starts and lengths of the longest stretches of rows that are so, the longest first."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], equal, [False]]).astype(np.int8)))
    starts, lengths = edges[::2], edges[1::2] - edges[::2]
    order = np.argsort(-lengths, kind="stable")[:_FEW]
    return list(zip(starts[order].tolist(), lengths[order].tolist(), strict=True))


def _surprise(arrays: LogArrays, one: IntArray, other: IntArray) -> float:
    """How improbable it is that the rewards of some rows come again, as -log; one, other (n,)."""
    size = len(arrays.action)
    reach = max(_AROUND, len(one))
    near = np.unique(
        np.concatenate([np.arange(max(0, at[0] - reach), min(size, at[-1] + reach)) for at in (one, other)])
    )
    arm = arrays.action
    value = np.zeros(size, dtype=np.int64)
    value[near] = np.unique(arrays.reward[near], return_inverse=True)[1]
    before = np.concatenate([[0], value[:-1]])
    most = int(value.max()) + 1
    plain = _frequency(arm[near], value[near], arm[one], value[one], most)
    after = arm * most + before
    chained = _frequency(after[near], value[near], after[one], value[one], most)
    # A value that is seldom seen after another has too few rounds to tell more than it does alone.
    chance = np.maximum(np.maximum(plain, np.where(most <= _LEAST_ROWS, chained, 0.0)), _LEAST_CHANCE)
    return float(-np.log(chance).sum())


def _frequency(given: IntArray, value: IntArray, asked: IntArray, wanted: IntArray, most: int) -> FloatArray:
    """Share of a value among rows with the same condition; (n,), (n,), (m,), (m,); returns (m,)."""
    conditions, place = np.unique(given, return_inverse=True)
    totals = np.bincount(place)
    pairs, number = np.unique(given.astype(np.int64) * most + value, return_counts=True)
    own = number[np.searchsorted(pairs, asked.astype(np.int64) * most + wanted)]
    return np.asarray(own / totals[np.searchsorted(conditions, asked)], dtype=np.float64)
