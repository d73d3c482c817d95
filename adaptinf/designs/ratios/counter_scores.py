"""Log-likelihood ratio of all that counters release in a trial, on two tapes of rewards."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adaptinf.simulation.transcripts import Transcripts
from adaptinf.typing import FloatArray, IntArray


def laplace_log_ratio(noise: FloatArray, shift: FloatArray, scale: FloatArray) -> FloatArray:
    """Log-ratio of the densities of centre + `shift` and of the centre, at the centre + `noise`."""
    return np.asarray((np.abs(noise) - np.abs(noise - shift)) / scale)


def normal_log_ratio(noise: FloatArray, shift: FloatArray, scale: FloatArray) -> FloatArray:
    """The same for normal densities of standard deviation `scale`."""
    return np.asarray(shift * (2.0 * noise - shift) / (2.0 * scale**2))


def earlier_counts(hybrid: bool, counts: IntArray) -> IntArray:
    """Items before the node whose noise is new in the running sum at each count."""
    earlier = counts & (counts - 1)
    return np.where(earlier == 0, counts >> 1, earlier) if hybrid else earlier


@dataclass(frozen=True, slots=True, eq=False)
class CounterScore:
    """Log-likelihood ratio of actions and noisy sums, one counter an arm, on a second and a first tape.

    Shapes: first, second (rounds, arms), vectors (rounds, arms, dimension).

    Given the actions, each counter has received known rewards, and each of its releases brings one noisy
    sum of consecutive items that is independent of the others: the ratio is a product over nodes. The rules
    that choose the arms are the same on both tapes and cancel. Scales are read off the releases.
    """

    first: FloatArray
    second: FloatArray
    hybrid: bool
    gaussian: bool = False
    vectors: FloatArray | None = None

    def __call__(self, transcripts: Transcripts) -> FloatArray:
        """Score of each run, shape (runs,)."""
        actions = transcripts.actions
        runs, rounds = actions.shape
        n_arms = self.first.shape[1]
        vectors = np.ones((*self.first.shape, 1)) if self.vectors is None else self.vectors
        items = self.first[:, :, None] * vectors
        changes = (self.second - self.first)[:, :, None] * vectors
        released = transcripts.releases.reshape(runs, rounds, vectors.shape[2], -1)
        ratio = normal_log_ratio if self.gaussian else laplace_log_ratio
        # row: (cell of a run and an arm) * (rounds + 1) + count; noise on the first tape, shift to the second
        noise = np.zeros((runs * n_arms * (rounds + 1), vectors.shape[2]))
        shift = np.zeros_like(noise)
        sums = np.zeros((runs * n_arms, vectors.shape[2]))
        counts = np.zeros(runs * n_arms, dtype=np.int64)
        every = np.arange(runs) * n_arms
        total = np.zeros(runs)
        for step in range(rounds):
            arms = actions[:, step]
            cell = every + arms
            count = counts[cell] + 1
            counts[cell] = count
            sum_here = sums.take(cell, axis=0) + items[step].take(arms, axis=0)
            sums[cell] = sum_here
            here = cell * (rounds + 1) + count
            noise_here = released[:, step, :, 3] - sum_here
            shift_here = shift.take(here - 1, axis=0) + changes[step].take(arms, axis=0)
            noise[here], shift[here] = noise_here, shift_here
            before = here - count + earlier_counts(self.hybrid, count)
            moved = shift_here - shift.take(before, axis=0)
            if moved.any():
                fresh = noise_here - noise.take(before, axis=0)
                total += ratio(fresh, moved, released[:, step, :, 4]).sum(axis=1)
        return total
