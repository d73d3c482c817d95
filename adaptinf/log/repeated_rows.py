"""Duplicated rows in a log: a file appended to itself, a block read twice, or doubled rows.

Rows in a log may be equal by chance, and so may long stretches of 0/1 rewards. The criterion is therefore the
improbability of a stretch of equal rows: the sum of -log p over its rewards, where p is the larger of two
frequencies of the reward, among the rewards of its arm around both places and among those that follow the
same reward, and at least 1/20. Arms, propensities and contexts are ignored, because a design may repeat them.
Over all pairs of places, the probability of such a stretch is below `ALARM` if rewards are as independent as
this criterion assumes.

Stretches are found by windows that are just long enough to be unlikely to occur twice. Windows are retained
or not depending on their hash, so originals and copies are treated alike. Copies in another order are not
searched for, and copies of single rows only if every row of the log is directly followed by its copy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adaptinf.log.validation import LogArrays
from adaptinf.typing import BoolArray, FloatArray, IntArray

ALARM = 1e-3
"""Upper bound on the probability of an alarm in a log without copies."""
_LEAST_ROWS, _LEAST_CHANCE = 20, 0.05
_AROUND, _ENOUGH = 200, 4096
"""Rows on either side used for the frequency of a reward, and rows of a stretch that are examined."""
_PROBE = 1024
_BLOCK, _LONG = 2**15, 100_000
"""Number of rows hashed at a time, to fit a cache; a long log stores fewer windows."""
_FEW, _MOST_LAGS, _MOST_FAILED = 100, 8, 4
_ODD = np.uint64(0x9E3779B97F4A7C15)
_OTHER = np.uint64(0xC2B2AE3D27D4EB4F)
_TIMES = 0xD6E8FEB86659FD93
_HALF = np.uint64(32)


def copied_rows(arrays: LogArrays, units: NDArray[Any] | None) -> dict[str, int]:
    """Number of rows that repeat earlier ones, with the first stretch and its copy; empty if none exist."""
    # Rows are counted from 0, as in error messages.
    size = len(arrays.action)
    if size < 2 * _LEAST_ROWS:
        return {}
    rows = _Rows(arrays, units)
    if rows.all_twice():
        found = [_Stretch(0, size // 2, 1, 2)]
    else:
        found = [rows.around(place, lag) for place, lag in _repeated(rows)]
    needed = math.log(size**2 / 2.0 / ALARM)
    copies, first, left = np.zeros(0, dtype=bool), found[:0], _MOST_FAILED
    for stretch in found:
        if stretch.length < _LEAST_ROWS or (len(copies) and copies[stretch.start + stretch.lag]):
            continue
        rate = _surprise(arrays, stretch)
        if rate * stretch.length > needed:
            copies = copies if len(copies) else np.zeros(size, dtype=bool)
            least = max(_LEAST_ROWS, math.ceil(needed / rate))
            for other in (stretch,) if stretch.step > 1 else rows.stretches(stretch.lag, least):
                copies[other.places + other.lag] = True
            first = first or [stretch]
        elif not (left := left - 1):
            break
    if not first:
        return {}
    start, again = int(first[0].places[0]), int(first[0].places[0]) + first[0].lag
    return {
        "n": int(copies.sum()),
        "rows": size,
        "start": start,
        "last": int(first[0].places[-1]),
        "again": again,
    }


class _Stretch(NamedTuple):
    """Rows equal to those at a given lag: every row from the first onwards, or every second row."""

    start: int
    length: int
    lag: int
    step: int = 1

    @property
    def places(self) -> IntArray:
        """For the originals; (length,)."""
        return np.arange(self.start, self.start + self.length * self.step, self.step)


class _Rows:
    """Rows of a log, to be compared for equality."""

    def __init__(self, arrays: LogArrays, units: NDArray[Any] | None) -> None:
        self.size = len(arrays.action)
        self.action = np.ascontiguousarray(arrays.action, dtype=np.int64)
        self.reward = np.ascontiguousarray(arrays.recorded, dtype=np.float64).view(np.uint64)
        columns = (
            arrays.propensity,
            arrays.batch,
            units,
            *arrays.context.values(),
            *arrays.outcomes.values(),
        )
        self.others = [values for values in columns if values is not None]

    def hashes(self, part: slice) -> NDArray[np.uint64]:
        """Hashes of the rewards and arms of some rows."""
        mixed = self.reward[part] * _ODD
        mixed ^= mixed >> _HALF
        mixed += self.action[part].view(np.uint64) * _OTHER
        return mixed

    def equal(self, start: int, end: int, lag: int) -> BoolArray:
        """Whether rows equal those at a given lag in every column, of shape (end - start,)."""
        one, other = slice(start, end), slice(start + lag, end + lag)
        same: BoolArray = self.reward[one] == self.reward[other]
        same &= self.action[one] == self.action[other]
        for values in self.others:
            at = np.flatnonzero(same) + start
            here, there = values[at], values[at + lag]
            # NaN differs from itself, so two missing values have to be compared separately.
            same[at - start] = (here == there) | ((here != here) & (there != there))
        return same

    def all_twice(self) -> bool:
        """Whether every row is directly followed by its copy."""
        few = 2 * _LEAST_ROWS - 1
        if self.size % 2 or (self.reward[:few:2] != self.reward[1 : few + 1 : 2]).any():
            return False
        return bool(self.equal(0, self.size - 1, 1)[::2].all())

    def around(self, place: int, lag: int) -> _Stretch:
        """The rows around a position that equal those at a given lag."""
        start, end, most = place, place, self.size - lag
        for reach in _reaches(most - end):
            same = self.equal(end, end + reach, lag)
            end += reach if same.all() else int(same.argmin())
            if not same.all():
                break
        for reach in _reaches(start):
            same = self.equal(start - reach, start, lag)[::-1]
            start -= reach if same.all() else int(same.argmin())
            if not same.all():
                break
        return _Stretch(start, end - start, lag)

    def stretches(self, lag: int, least: int) -> list[_Stretch]:
        """All stretches at a lag with at least this many rows."""
        same = np.concatenate([[False], self.equal(0, self.size - lag, lag), [False]])
        edges = np.flatnonzero(same[1:] != same[:-1])
        starts, lengths = edges[::2], edges[1::2] - edges[::2]
        long = lengths >= least
        pairs = zip(starts[long].tolist(), lengths[long].tolist(), strict=True)
        return [_Stretch(start, length, lag) for start, length in pairs]


def _reaches(rows: int) -> Iterator[int]:
    """Numbers of rows to examine, increasing until all are included."""
    reach = 64
    while rows > 0:
        yield min(reach, rows)
        rows, reach = rows - reach, 4 * reach


def _repeated(rows: _Rows) -> list[tuple[int, int]]:
    """Positions of recurring windows, and their distances in rows, the most frequent ones first."""
    probe = rows.hashes(slice(None, None, max(1, rows.size // _PROBE)))
    equal = (np.count_nonzero(probe[1:] == probe[:-1]) + 1.0) / (len(probe) + 1.0)
    needed = 2.0 * math.log(rows.size) / max(-math.log(equal), 1e-12)
    width = 2 ** max(0, math.ceil(math.log2(needed)))
    while width <= rows.size // 4:
        place, lag = _pairs(rows, width)
        order = np.argsort(lag, kind="stable")
        found, at, counts = np.unique(lag[order], return_index=True, return_counts=True)
        most = np.argsort(-counts, kind="stable")[:_MOST_LAGS]
        # Many equal windows at many different distances come from regular patterns and not from copies, so
        # longer windows are tried.
        if len(lag) <= _FEW or counts[most].sum() > 0.5 * len(lag):
            own = [(order[at[k] + counts[k] * np.arange(3) // 3], found[k]) for k in most]
            return [(int(place[one]), int(far)) for ones, far in own for one in np.unique(ones)]
        width *= 2
    return []


def _pairs(rows: _Rows, width: int) -> tuple[IntArray, IntArray]:
    """Positions of windows of `width` rows and of the next equal windows, both of shape (n,)."""
    spare = np.uint64(2 if rows.size <= _LONG else 3)
    most, bits = np.uint64(2**64 - 1) >> spare, np.uint64(rows.size.bit_length())
    block = max(_BLOCK, 4 * width)
    found: list[NDArray[np.uint64]] = []
    for start in range(0, rows.size - width + 1, block):
        window, times, done = rows.hashes(slice(start, start + block + width - 1)), _TIMES, 1
        while done < width:
            longer = window[:-done] * np.uint64(times)
            longer += window[done:]
            window, times, done = longer, times * times % 2**64, 2 * done
        kept = np.flatnonzero(window <= most)
        found.append(window[kept] << spare >> bits << bits | (kept + start).astype(np.uint64))
    ordered = np.sort(np.concatenate(found))
    same = np.flatnonzero(ordered[1:] >> bits == ordered[:-1] >> bits)
    low = (np.uint64(1) << bits) - np.uint64(1)
    place = (ordered[same] & low).astype(np.int64)
    other = (ordered[same + 1] & low).astype(np.int64)
    # Only some bits of the hashes are kept, so they may agree by chance; the rows themselves decide.
    for ahead in (0, width - 1):
        real = rows.reward[place + ahead] == rows.reward[other + ahead]
        place, other = place[real], other[real]
    return place, other - place


def _surprise(arrays: LogArrays, stretch: _Stretch) -> float:
    """Improbability of a repetition of a stretch's rewards, as -log probability by row."""
    one = stretch.places[:_ENOUGH]
    reach = max(_AROUND, len(one))
    low, middle = max(0, int(one[0]) - reach), int(one[-1]) + 1 + reach
    after, high = int(one[0]) + stretch.lag - reach, min(middle + stretch.lag, len(arrays.action))
    parts = [(low, middle), (after, high)] if middle < after else [(low, high)]
    near = np.concatenate([np.arange(start, end) for start, end in parts])
    arm, value = arrays.action[near], np.unique(arrays.recorded[near], return_inverse=True)[1]
    before = np.concatenate([[0], value[:-1]])
    most, own = int(value.max()) + 1, np.searchsorted(near, one)
    chance = _frequency(arm, value, own, most)
    # If there are many values, each follows another too rarely for conditional frequencies to add
    # information.
    if most <= _LEAST_ROWS:
        chance = np.maximum(chance, _frequency(arm * most + before, value, own, most))
    return float(-np.log(np.maximum(chance, _LEAST_CHANCE)).mean())


def _frequency(given: IntArray, value: IntArray, asked: IntArray, most: int) -> FloatArray:
    """Share of a row's value among rows with the same condition, for the rows `asked`, of shape (m,)."""
    pair = given * most + value
    return np.asarray(np.bincount(pair)[pair[asked]] / np.bincount(given)[given[asked]], dtype=np.float64)
