"""What designs by epochs release: log-likelihood ratios where one reward differs, and the noise of means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from adaptinf.audit.privacy.designs.audited_trial import FAIR, NodeNoise, NodeUnits, laplace_uniforms
from adaptinf.designs.base_design import Design
from adaptinf.simulation.environments import Tableau
from adaptinf.simulation.replicate import iterate_runs
from adaptinf.simulation.transcripts import Transcripts
from adaptinf.typing import BoolArray, FloatArray, IntArray

_END, _GROUP, _VALUE, _SCALE = 0, 2, 3, 4


def first_epoch(design: Design, n_arms: int, horizon: int) -> IntArray:
    """Actions up to the first releases: the same in every run, as nothing has been seen before."""
    run = next(iterate_runs(design, Tableau(np.full((horizon, n_arms), 0.5)), horizon, 0, 1, 0))
    return np.asarray(run.record.action[: int(run.released[0, _END])])


@dataclass(frozen=True, eq=False)
class EpochMeanScore:
    """Log-likelihood ratio of all actions and releases, where these are noisy means of fresh epochs.

    Shapes: first, second (rounds, arms).

    Given the releases the actions are fixed, and every release is the mean of an arm's rewards since the last
    releases of any arm, plus noise. One release at most has the round's reward in it; the densities of all
    others cancel. The ratio does not depend on what the design made of the releases.
    """

    first: FloatArray
    second: FloatArray
    row: int
    normal: bool = False
    override: int = -1

    def __call__(self, seen: Transcripts) -> FloatArray:
        """One number per run; large where the second table is the likelier one."""
        ends = seen.releases[:, :, _END]
        arm = seen.actions[:, self.row]
        # comparisons with NaN, where a run made fewer releases, are false
        holds = (ends > self.row) & (seen.releases[:, :, _GROUP] == arm[:, None])
        counted = _counted(seen, self.override)
        holds &= counted[:, self.row, None]
        end = np.where(holds, ends, np.inf)
        place = end.argmin(axis=1)
        runs = np.arange(arm.size)
        found = np.isfinite(end[runs, place])
        start = np.where(ends <= self.row, ends, 0.0).max(axis=1)
        stop = np.where(found, end[runs, place], start)
        count, total = self._epoch(seen.actions, counted, arm, start, stop)
        count = np.where(found, count, 1.0)
        moved = np.clip(self.second[self.row], 0.0, 1.0) - np.clip(self.first[self.row], 0.0, 1.0)
        value, scale = seen.releases[runs, place, _VALUE], seen.releases[runs, place, _SCALE]
        at_first = (value - total / count) / scale
        at_second = (value - (total + moved[arm]) / count) / scale
        if self.normal:
            ratio = 0.5 * (at_first - at_second) * (at_first + at_second)
        else:
            ratio = np.abs(at_first) - np.abs(at_second)
        return np.asarray(np.where(found, ratio, 0.0))

    def _epoch(
        self, actions: IntArray, counted: BoolArray, arm: IntArray, start: FloatArray, stop: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Pulls of each run's arm in the rounds from `start` to `stop`, and the sum of their rewards."""
        low, high = int(start.min()), int(stop.max())
        inside = (actions[:, low:high] == arm[:, None]) & counted[:, low:high]
        if start.max() > low or stop.min() < high:
            step = np.arange(low, high)
            inside &= (step >= start[:, None]) & (step < stop[:, None])
        sums = np.empty((arm.size, 2))
        for one in np.unique(arm):
            rewards = np.clip(self.first[low:high, one], 0.0, 1.0)
            runs = arm == one
            sums[runs] = inside[runs].astype(np.float64) @ np.column_stack([np.ones(high - low), rewards])
        return sums[:, 0], sums[:, 1]


@dataclass(frozen=True, eq=False)
class MomentScore:
    """Log-likelihood ratio of all actions and releases, where these are noisy sums of features times rewards.

    Shapes: first, second (rounds, arms), features (arms, dimension).

    Only the first releases have the round's reward in them; they are one number for each coordinate. The
    densities of all later ones cancel. A run that released nothing has a ratio of 0. With overrides the
    first releases may come before the round, and what it adds to later ones is left out.
    """

    first: FloatArray
    second: FloatArray
    features: FloatArray
    override: int = -1

    def __call__(self, seen: Transcripts) -> FloatArray:
        """One number per run; large where the second table is the likelier one."""
        dimension = self.features.shape[1]
        end = seen.releases[:, 0, _END]
        released = np.isfinite(end)
        last = int(end[released].max(initial=0.0))
        actions = seen.actions[:, :last]
        # comparisons with NaN, where a run released nothing, are false
        counted = _counted(seen, self.override)[:, :last] & (np.arange(last) < end[:, None])
        rows = self.features[actions]
        value = seen.releases[:, :dimension, _VALUE]
        scale = seen.releases[:, :dimension, _SCALE]
        distance = []
        for table in (self.first, self.second):
            rewards = np.where(counted, np.clip(table, 0.0, 1.0)[np.arange(last), actions], 0.0)
            distance.append(np.abs(value - np.einsum("rt,rtk->rk", rewards, rows)) / scale)
        return np.where(released, (distance[0] - distance[1]).sum(axis=1), 0.0)


def _counted(seen: Transcripts, override: int) -> BoolArray:
    """Whether each round was not overridden, of shape (runs, rounds)."""
    if override < 0:
        return np.ones(seen.actions.shape, dtype=np.bool_)
    return np.asarray(seen.statuses != override)


@dataclass(frozen=True, slots=True, eq=False)
class EpochMeanNoise:
    """Noise of noisy means: of an arm's clipped rewards since the last releases, `scale` over their number.

    Rounds whose status is `override` do not count.
    """

    scale: float
    normal: bool = False
    override: int = -1
    fair: bool = False

    def __call__(self, seen: Transcripts) -> tuple[NodeNoise, ...]:
        """Releases in their order: the first, the second, ... of each run."""
        runs, most = seen.releases.shape[:2]
        noise, own = np.full((runs, most), np.nan), np.zeros((runs, most))
        for run in range(runs):
            noise[run], own[run] = self._of_run(seen, run)
        kept = np.isfinite(noise).sum(axis=0) * 2 >= runs
        standard = noise[:, kept] / self.scale
        uniforms = special.ndtr(standard) if self.normal else laplace_uniforms(standard, 1.0)
        places = np.flatnonzero(kept)
        steps = np.nan_to_num(seen.releases[:, kept, _END]).astype(np.int64) - 1
        units = NodeUnits(noise[:, kept], np.full(places.size, self.scale), steps, own[:, kept] * self.fair)
        return (
            NodeNoise(
                uniforms,
                [f"release {place + 1}, a noisy mean," for place in places],
                np.zeros(places.size, dtype=np.int64),
                ["all noisy means"],
                seen.rewards - FAIR if self.fair else np.zeros((0, 0)),
                [f"the reward of round {step + 1}" for step in range(seen.rewards.shape[1])],
                units=units,
            ),
        )

    def _of_run(self, seen: Transcripts, run: int) -> tuple[FloatArray, FloatArray]:
        """Noise of the sums whose means a run released, and these sums less half their number."""
        actions, releases = seen.actions[run], seen.releases[run]
        counted = seen.statuses[run] != self.override
        clipped = np.clip(seen.rewards[run], 0.0, 1.0)
        noise, own = np.full(releases.shape[0], np.nan), np.zeros(releases.shape[0])
        ends = releases[:, _END]
        for row in np.flatnonzero(np.isfinite(ends)):
            end = int(ends[row])
            start = int(np.max(ends[ends < end], initial=0.0))
            mine = (actions[start:end] == int(releases[row, _GROUP])) & counted[start:end]
            count = max(int(mine.sum()), 1)
            total = clipped[start:end][mine].sum()
            noise[row] = (releases[row, _VALUE] - total / count) * count
            own[row] = total - FAIR * mine.sum()
        return noise, own
