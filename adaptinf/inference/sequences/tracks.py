"""Two-sided confidence sequences as reference distributions: intervals at any round, and p-values.

A claim is rejected at alpha once the evidence on one side has ever reached the threshold of alpha. The
p-value is the smallest such alpha, so p-values and intervals agree at every level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from adaptinf.inference.distributions.references import EnclosedReference
from adaptinf.inference.sequences.sides import Side
from adaptinf.typing import FloatArray, IntArray

# A double has fewer digits than this, so the search always ends earlier, when the middle equals one of the
# ends.
_HALVINGS, _DOUBLINGS = 200, 40


class Track(Protocol):
    """Confidence sequence for one quantity, by round of the log."""

    def limits(self, log_alpha: float, rounds: IntArray) -> FloatArray:
        """Intervals after some rounds (from 1, ascending), shape (r, 2); NaN if nothing remains."""

    def estimates(self, rounds: IntArray) -> FloatArray:
        """Estimates after some rounds, shape (r,); NaN before the first score."""

    def log_pvalue(self, null: float) -> float:
        """Natural log of the smallest alpha at which the sequence ever excluded a value."""

    def enclosure(self) -> tuple[float, float]:
        """Limits that contain every interval; infinite if the means are unbounded."""


@dataclass(frozen=True, slots=True, eq=False)
class SingleTrack:
    """Sequence for the mean of one set of scores; mean (n,), counts (T,)."""

    lower: Side
    upper: Side
    mirror: float
    origin: float
    width: float
    shares: float
    mean: FloatArray
    counts: IntArray

    def limits(self, log_alpha: float, rounds: IntArray) -> FloatArray:
        """Intervals after some rounds, shape (r, 2); NaN if nothing remains."""
        return _nonempty(*self.ends(math.log(self.shares) - log_alpha, rounds))

    def ends(self, threshold: float, rounds: IntArray) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends at which each side's log wealth reaches a threshold, shapes (r,)."""
        counts = self.counts[rounds - 1]
        low = self.lower.bounds(threshold, counts)
        high = self.mirror - self.upper.bounds(threshold, counts)
        return self.origin + self.width * low, self.origin + self.width * high

    def estimates(self, rounds: IntArray) -> FloatArray:
        """Estimates after some rounds, shape (r,); NaN before the first score."""
        padded = np.concatenate(([np.nan], self.mean))
        return np.asarray(self.origin + self.width * padded[self.counts[rounds - 1]], dtype=np.float64)

    def peaks(self, value: float) -> tuple[float, float]:
        """Largest log wealth on the lower and the upper side against a claimed value."""
        mean = (value - self.origin) / self.width
        return self.lower.peak(mean), self.upper.peak(self.mirror - mean)

    def log_pvalue(self, null: float) -> float:
        """Natural log of the smallest alpha at which the sequence ever excluded a value."""
        return min(0.0, math.log(self.shares) - max(self.peaks(null)))

    def enclosure(self) -> tuple[float, float]:
        """Limits that contain every interval, rounded like the ends of the intervals."""
        low, high = self.lower.lowest, self.mirror - self.upper.lowest
        return self.origin + self.width * low, self.origin + self.width * high


@dataclass(frozen=True, slots=True, eq=False)
class DifferenceTrack:
    """Difference between two sequences, each at half of alpha."""

    first: SingleTrack
    second: SingleTrack

    def limits(self, log_alpha: float, rounds: IntArray) -> FloatArray:
        """Intervals after some rounds, shape (r, 2); NaN if nothing remains."""
        threshold = math.log(2.0 * self.first.shares) - log_alpha
        low_first, high_first = self.first.ends(threshold, rounds)
        low_second, high_second = self.second.ends(threshold, rounds)
        return _nonempty(low_first - high_second, high_first - low_second)

    def estimates(self, rounds: IntArray) -> FloatArray:
        """Estimates after some rounds, shape (r,); NaN before both arms have a score."""
        return np.asarray(self.first.estimates(rounds) - self.second.estimates(rounds), dtype=np.float64)

    def log_pvalue(self, null: float) -> float:
        """Natural log of the smallest alpha at which the sequence ever excluded a value."""
        above = self._peak(null, 0)
        below = self._peak(null, 1)
        return min(0.0, math.log(2.0 * self.first.shares) - max(above, below))

    def enclosure(self) -> tuple[float, float]:
        """Limits that contain every interval, rounded like the ends of the intervals."""
        (low_first, high_first), (low_second, high_second) = self.first.enclosure(), self.second.enclosure()
        return low_first - high_second, high_first - low_second

    def _peak(self, null: float, side: int) -> float:
        """Largest threshold at which one end has passed the null.

        It is the largest value, over means of the second arm, of the smaller of two peaks: against the first
        arm's mean on this side, and against the second's on the other. As one of the peaks increases, the
        other decreases.
        """

        def peaks(value: float) -> tuple[float, float]:
            return self.first.peaks(value + null)[side], self.second.peaks(value)[1 - side]

        sign = 1.0 if side == 0 else -1.0
        centre = self.second.origin + 0.5 * self.second.width
        reach = self.first.width + self.second.width + abs(null)
        near, far = centre - sign * reach, centre + sign * reach
        for _ in range(_DOUBLINGS):  # The first bracket may be too short only if the means have no bounds.
            (own_near, other_near), (own_far, other_far) = peaks(near), peaks(far)
            if own_near >= other_near and own_far < other_far:
                break
            reach *= 2.0
            near, far = centre - sign * reach, centre + sign * reach
        for _ in range(_HALVINGS):
            middle = 0.5 * (near + far)
            if middle in (near, far):
                break
            own, other = peaks(middle)
            if own >= other:
                near = middle
            else:
                far = middle
        return max(min(peaks(near)), min(peaks(far)))


@dataclass(frozen=True, slots=True, eq=False)
class SequenceReference(EnclosedReference):
    """Confidence sequences for k quantities over T rounds.

    Tracks are by round, or by batch if `ends` contains the number of rounds after each batch, shape (B,).
    """

    name: str
    exact: bool
    tracks: tuple[Track, ...]
    n_rounds: int
    ends: IntArray | None = None
    statistic, normal, uses_std_error = "z", False, False

    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logarithms of the anytime-valid p-values, shape (k,)."""
        return np.array([track.log_pvalue(null) for track in self.tracks])

    def interval(self, log_alpha: float) -> FloatArray:
        """Intervals after the last round at level 1 - exp(log_alpha), shape (k, 2)."""
        last = self.times(np.array([self.n_rounds], dtype=np.int64))
        return np.vstack([track.limits(log_alpha, last) for track in self.tracks])

    def enclosure(self, log_alpha: float) -> FloatArray:
        """Limits that contain the intervals at every level, shape (k, 2)."""
        return np.array([track.enclosure() for track in self.tracks])

    def times(self, rounds: IntArray) -> IntArray:
        """Index used by tracks after some rounds: the rounds, or the number of completed batches; (r,)."""
        if self.ends is None:
            return rounds
        return np.searchsorted(self.ends, rounds, side="right").astype(np.int64)


def _nonempty(low: FloatArray, high: FloatArray) -> FloatArray:
    limits = np.column_stack((low, high))
    limits[low > high] = np.nan
    return limits
