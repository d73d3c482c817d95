"""Two-sided confidence sequences as reference distributions: intervals at any round, and p-values.

A claim is rejected at alpha if the evidence on one side has ever reached the threshold for alpha. The p-value
is the smallest such alpha, so p-values and intervals agree at every level.
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
    """The confidence sequence for one quantity, by round of the log."""

    def limits(self, log_alpha: float, rounds: IntArray) -> FloatArray:
        """Intervals after rounds (r,), from 1 and ascending; shape (r, 2), NaN if no value remains."""

    def estimates(self, rounds: IntArray) -> FloatArray:
        """Estimates after the given rounds, shape (r,); NaN before the first score."""

    def log_pvalue(self, null: float) -> float:
        """Natural logarithm of the smallest alpha at which the sequence ever excluded `null`."""

    def enclosure(self) -> tuple[float, float]:
        """Limits that contain all intervals of the sequence; infinite if the means are unbounded."""


@dataclass(frozen=True, slots=True, eq=False)
class SingleTrack:
    """The sequence for the mean of one set of scores; mean (n,), counts (T,)."""

    lower: Side
    upper: Side
    mirror: float
    origin: float
    width: float
    shares: float
    mean: FloatArray
    counts: IntArray

    def limits(self, log_alpha: float, rounds: IntArray) -> FloatArray:
        """Intervals after the given rounds, shape (r, 2); NaN if no value remains."""
        return _nonempty(*self.ends(math.log(self.shares) - log_alpha, rounds))

    def ends(self, threshold: float, rounds: IntArray) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends at which the log wealth of each side reaches a threshold, shape (r,) each."""
        counts = self.counts[rounds - 1]
        low = self.lower.bounds(threshold, counts)
        high = self.mirror - self.upper.bounds(threshold, counts)
        return self.origin + self.width * low, self.origin + self.width * high

    def estimates(self, rounds: IntArray) -> FloatArray:
        """Estimates after the given rounds, shape (r,); NaN before the first score."""
        padded = np.concatenate(([np.nan], self.mean))
        return np.asarray(self.origin + self.width * padded[self.counts[rounds - 1]], dtype=np.float64)

    def peaks(self, value: float) -> tuple[float, float]:
        """Largest log wealth against a claimed value on the lower side and on the upper side."""
        mean = (value - self.origin) / self.width
        return self.lower.peak(mean), self.upper.peak(self.mirror - mean)

    def log_pvalue(self, null: float) -> float:
        """Natural logarithm of the smallest alpha at which the sequence ever excluded `null`."""
        return min(0.0, math.log(self.shares) - max(self.peaks(null)))

    def enclosure(self) -> tuple[float, float]:
        """Limits that contain all intervals of the sequence, rounded in the same way as intervals."""
        low, high = self.lower.lowest, self.mirror - self.upper.lowest
        return self.origin + self.width * low, self.origin + self.width * high


@dataclass(frozen=True, slots=True, eq=False)
class DifferenceTrack:
    """The difference between two sequences, each at half of alpha."""

    first: SingleTrack
    second: SingleTrack

    def limits(self, log_alpha: float, rounds: IntArray) -> FloatArray:
        """Intervals after the given rounds, shape (r, 2); NaN if no value remains."""
        threshold = math.log(2.0 * self.first.shares) - log_alpha
        low_first, high_first = self.first.ends(threshold, rounds)
        low_second, high_second = self.second.ends(threshold, rounds)
        return _nonempty(low_first - high_second, high_first - low_second)

    def estimates(self, rounds: IntArray) -> FloatArray:
        """Estimates after the given rounds, shape (r,); NaN before both arms have a score."""
        return np.asarray(self.first.estimates(rounds) - self.second.estimates(rounds), dtype=np.float64)

    def log_pvalue(self, null: float) -> float:
        """Natural logarithm of the smallest alpha at which the sequence ever excluded `null`."""
        above = self._peak(null, 0)
        below = self._peak(null, 1)
        return min(0.0, math.log(2.0 * self.first.shares) - max(above, below))

    def enclosure(self) -> tuple[float, float]:
        """Limits that contain all intervals of the sequence, rounded in the same way as intervals."""
        (low_first, high_first), (low_second, high_second) = self.first.enclosure(), self.second.enclosure()
        return low_first - high_second, high_first - low_second

    def _peak(self, null: float, side: int) -> float:
        """Largest threshold at which one end has passed `null`.

        For each mean of the second arm, take the smaller of two peaks: the peak against the first arm's mean
        on this side, and the peak against the second arm's mean on the other side. The threshold is the
        maximum of this smaller peak over means of the second arm. As one of the peaks increases, the other
        decreases.
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

    Tracks are indexed by round, or by batch if `ends`, shape (B,), contains the number of rounds up to the
    end of each batch.
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
        """Limits, shape (k, 2), that contain the intervals at every level."""
        return np.array([track.enclosure() for track in self.tracks])

    def times(self, rounds: IntArray) -> IntArray:
        """Indices that tracks use for these rounds (r,): the rounds, or numbers of completed batches."""
        if self.ends is None:
            return rounds
        return np.searchsorted(self.ends, rounds, side="right").astype(np.int64)


def _nonempty(low: FloatArray, high: FloatArray) -> FloatArray:
    limits = np.column_stack((low, high))
    limits[low > high] = np.nan
    return limits
