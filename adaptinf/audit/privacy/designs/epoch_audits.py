"""Audits of designs that release at the ends of epochs: likelihood ratios, noise and trials."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import special

from adaptinf.audit.privacy.designs.audited_trial import (
    FAIR,
    AuditTrial,
    Neighbours,
    NodeNoise,
    NodeUnits,
    Noise,
    audit_trials,
    fair_rewards,
    laplace_uniforms,
    neighbouring_trials,
    one_reward_apart,
    refuse_unit,
    reward_neighbours,
)
from adaptinf.designs.arms.elimination import PrivateSuccessiveElimination
from adaptinf.designs.arms.elimination_kernel import elimination_epochs, shortest_horizon
from adaptinf.designs.base import Design
from adaptinf.designs.best_arm.best_arm_kernel import GAUSSIAN_NOISE
from adaptinf.designs.best_arm.fixed_budget import FeatureDesign, reserve
from adaptinf.designs.best_arm.linear_best_arm import DPBAI, DPOD, DPBAIGauss
from adaptinf.simulation.environments import BernoulliArms, Tableau
from adaptinf.simulation.replicate import iterate_runs
from adaptinf.simulation.transcripts import Transcripts
from adaptinf.typing import BoolArray, FloatArray, IntArray

_END, _GROUP, _VALUE, _SCALE = 0, 2, 3, 4


def first_epoch(design: Design, n_arms: int, horizon: int) -> IntArray:
    """Actions before the first releases, which are the same in every run."""
    run = next(iterate_runs(design, Tableau(np.full((horizon, n_arms), 0.5)), horizon, 0, 1, 0))
    return np.asarray(run.record.action[: int(run.released[0, _END])])


@dataclass(frozen=True, eq=False)
class EpochMeanScore:
    """Log-likelihood ratio of all actions and releases, if the releases are noisy means of new epochs.

    Shapes: first, second (rounds, arms).
    """

    # Given the releases, the actions are fixed. Each release is the noisy mean of an arm's rewards since the
    # previous releases of any arm, so at most one release contains the round's reward, and all other
    # densities cancel. The ratio does not depend on how the design used the releases.

    first: FloatArray
    second: FloatArray
    row: int
    normal: bool = False
    override: int = -1

    def __call__(self, seen: Transcripts) -> FloatArray:
        """One number per run; large if the second table is more likely."""
        ends = seen.releases[:, :, _END]
        arm = seen.actions[:, self.row]
        # Rows are NaN if a run made fewer releases, and comparisons with NaN are false.
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
        """Pulls of each run's arm in rounds `start` to `stop`, and the sum of their rewards."""
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
    """Log-likelihood ratio of actions and releases, if the releases are noisy sums of features times rewards.

    Shapes: first, second (rounds, arms), features (arms, dimension).
    """

    # Only the first releases, one number for each coordinate, contain the round's reward, so the densities of
    # all later ones cancel. A run without releases has a log ratio of 0. With overrides, the first releases
    # may precede the round; its contribution to later ones is then omitted.

    first: FloatArray
    second: FloatArray
    features: FloatArray
    override: int = -1

    def __call__(self, seen: Transcripts) -> FloatArray:
        """One number per run; large if the second table is more likely."""
        dimension = self.features.shape[1]
        end = seen.releases[:, 0, _END]
        released = np.isfinite(end)
        last = int(end[released].max(initial=0.0))
        actions = seen.actions[:, :last]
        # `end` is NaN if a run released nothing, and comparisons with NaN are false.
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
    """Noise of an arm's mean of clipped rewards since the last release; its scale is `scale` / count."""

    # Overridden rounds do not count, because the design skips them.

    scale: float
    normal: bool = False
    override: int = -1
    fair: bool = False

    def __call__(self, seen: Transcripts) -> tuple[NodeNoise, ...]:
        """Noise of each run's first release, second release, and so on."""
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
                **fair_rewards(seen, self.fair),
                units=units,
            ),
        )

    def _of_run(self, seen: Transcripts, run: int) -> tuple[FloatArray, FloatArray]:
        """Noise of the sums whose means were released in a run, and these sums minus half of their counts."""
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


_BEYOND = 3.0
# The difference of two means stays below the threshold by this many scales of the noise, so that the arms
# that remain reveal nearly as much as the release itself.
_REACH = 2.0
_MOST_PULLS, _MOST_ROUNDS = 64, 4_096

Score = Callable[[Transcripts], FloatArray]


@dataclass(frozen=True, slots=True, eq=False)
class MomentNoise:
    """Noise of the first phase's moments, sums of clipped rewards times features; features (arms, d)."""

    features: FloatArray
    scale: float
    override: int = -1
    fair: bool = False

    def __call__(self, seen: Transcripts) -> tuple[NodeNoise, ...]:
        """One number per coordinate."""
        dimension = self.features.shape[1]
        end = seen.releases[:, 0, _END]
        counted = (seen.statuses != self.override) & (np.arange(seen.actions.shape[1]) < end[:, None])
        clipped = np.where(counted, np.clip(seen.rewards, 0.0, 1.0), 0.0)
        moments = np.einsum("rt,rtk->rk", clipped, self.features[seen.actions])
        noise = seen.releases[:, :dimension, _VALUE] - moments
        return (
            NodeNoise(
                laplace_uniforms(noise, self.scale),
                [f"noisy moment {k + 1}" for k in range(dimension)],
                np.zeros(dimension, dtype=np.int64),
                ["all noisy moments"],
                **fair_rewards(seen, self.fair),
            ),
        )


def best_arm_trials(design: Any, horizon: int, noise: Noise, fair: Noise) -> tuple[AuditTrial, ...]:
    """Two trials: rewards outside [0, 1] that are equal for all arms, and 0/1 rewards."""
    # If the arms are alike, only the noise decides which of them remain.
    n_arms = len(design.features)
    alike = Tableau(np.full((horizon, n_arms), _BEYOND))
    coins = BernoulliArms(np.full(n_arms, FAIR))
    kinds: Any = ((f"all rewards {_BEYOND:g}", alike, noise), ("rewards from fair coins", coins, fair))
    return tuple(
        AuditTrial(
            f"{n_arms} arms for {horizon:,} rounds, {paid}",
            env,
            horizon,
            noise=told,
        )
        for paid, env, told in kinds
    )


def wanted_pulls(noise: float, rounds_for_one: int) -> int:
    """Number of pulls of an arm that puts its mean two noise scales below the others', if feasible."""
    feasible = max(1, min(_MOST_PULLS, _MOST_ROUNDS // rounds_for_one))
    return min(feasible, math.ceil(1.0 + _REACH * noise))


def best_arm_neighbours(
    design: FeatureDesign,
    horizon: int,
    noise: float,
    weight: FloatArray,
    score: Callable[[FloatArray, FloatArray, int], Score],
) -> Neighbours:
    """Trials that differ in one first-phase reward, of the arm that changes the releases most.

    Shapes: weight (arms,).
    """
    n_arms = len(design.features)
    opening = first_epoch(design, n_arms, horizon)
    row = int(np.argmax(weight[opening]))
    moved = opening[row]
    pulls = np.count_nonzero(opening == moved)
    rewards = np.zeros((horizon, n_arms))
    rewards[: opening.size] = min(1.0, (1.0 + _REACH * noise) / pulls)
    rewards[: opening.size, moved] = 0.0
    # If this arm survives the first phase, its high rewards make it the arm that is named.
    rewards[opening.size :, moved] = 1.0
    first, second = one_reward_apart(rewards, row)
    return reward_neighbours(first, second, row, score(first, second, row), tuple(range(horizon - 1)))


@neighbouring_trials.register(DPBAI)
@neighbouring_trials.register(DPBAIGauss)
def mean_neighbours(design: DPBAI | DPBAIGauss, unit: str | None = None) -> tuple[Neighbours, ...]:
    """Neighbours with reward 0 or 1 in the first round, which changes the first mean."""
    # There is one pair, and the score of its releases is exact: one noisy mean changes by as much as a reward
    # can change any mean. The last round pulls the arm that is named, so only its action is shown.
    refuse_unit(unit)
    weight = np.ones(len(design.features))
    score = partial(EpochMeanScore, normal=design.law == GAUSSIAN_NOISE)
    return (best_arm_neighbours(design, _horizon(design), design._noise(), weight, score),)


@audit_trials.register(DPBAI)
@audit_trials.register(DPBAIGauss)
def mean_trials(design: DPBAI | DPBAIGauss) -> tuple[AuditTrial, ...]:
    """The remaining arms are recomputed from the noisy means, and their noise is tested."""
    kind = DPBAIGauss if design.law == GAUSSIAN_NOISE else DPBAI
    # The noise is tested against the scale that the guarantee requires, not against what a subclass draws.
    noise = EpochMeanNoise(kind._noise(design), design.law == GAUSSIAN_NOISE)  # type: ignore[arg-type]
    return best_arm_trials(design, _horizon(design), noise, replace(noise, fair=True))


def _horizon(design: DPBAI | DPBAIGauss) -> int:
    """Horizon that leaves at least one round for the recommended arm."""
    schedule = design.schedule()
    n, dimension = design.rows.shape
    if not design.max_det:
        one = schedule.phases * n
        return int(one * wanted_pulls(design._noise(), one) + 1)
    # Two rounds beyond whole multiples ensure that rounding up the numbers of pulls never uses the whole
    # reserve.
    one = schedule.phases * (dimension if dimension**2 < n else n)
    return int(reserve(schedule, dimension) + one * (wanted_pulls(design._noise(), one) - 1) + 2)


@neighbouring_trials.register
def moment_neighbours(design: DPOD, unit: str | None = None) -> tuple[Neighbours, ...]:
    """Neighbours with reward 0 or 1 in a first-phase round of the arm that changes the moments most."""
    # There is one pair, and the score of its releases is exact. An arm with the largest sum of absolute
    # coordinates changes the moments by as much as the noise allows for; if the first phase does not pull
    # such an arm, the pair spends less than epsilon. The last round pulls the arm that is named, so only its
    # action is shown.
    refuse_unit(unit)
    sums = np.abs(design.rows).sum(axis=1)
    noise = design._noise() * float(sums.max())
    rounds = design.sizes().size - 1
    one = rounds * design.rows.shape[1]
    # With whole shares, rounding up costs less than the reserve.
    horizon = design._reserve() + one * wanted_pulls(noise, one)
    # Among arms that change the moments equally, one with few coordinates is preferred, because less noise
    # hides its reward.
    weight = sums / sums.max() - 1e-9 * np.count_nonzero(design.rows, axis=1)
    return (best_arm_neighbours(design, horizon, noise, weight, partial(_moment_score, design.rows)),)


def _moment_score(rows: FloatArray, first: FloatArray, second: FloatArray, row: int) -> MomentScore:
    return MomentScore(first, second, rows)


@audit_trials.register
def moment_trials(design: DPOD) -> tuple[AuditTrial, ...]:
    """The remaining arms are recomputed from the noisy moments, and their noise is tested."""
    scale = float(np.abs(design.rows).sum(axis=1).max()) / float(design.epsilon)
    noise = MomentNoise(design.rows, scale)
    horizon = neighbouring_trials(design)[0].horizon
    return best_arm_trials(design, horizon, noise, replace(noise, fair=True))


_ARMS, _SHOWN, _LONGEST = 3, 4, 100_000
# After an epoch of two arms, two rounds show which of them remain.
_AFTER = 2


@neighbouring_trials.register
def elimination_neighbours(
    design: PrivateSuccessiveElimination, unit: str | None = None
) -> tuple[Neighbours, ...]:
    """Two arms, one epoch and two more rounds, with reward 0 or 1 in the first round."""
    # There is one pair, and the score of its releases is exact: it is a single Laplace variable, which shifts
    # by epsilon times its scale whatever the length of the epoch. The first arm's mean is so far below the
    # second's that the remaining arms reveal nearly as much.
    refuse_unit(unit)
    horizon, passes, threshold = _shortest_trial(design)
    rewards = np.zeros((horizon, 2))
    rewards[:, 1] = max(0.0, threshold - _REACH / (design.epsilon * passes))
    first, second = one_reward_apart(rewards, row=0)
    score = EpochMeanScore(first, second, row=0)
    return (reward_neighbours(first, second, 0, score, hidden=tuple(range(2 * passes))),)


def _shortest_trial(design: PrivateSuccessiveElimination) -> tuple[int, int, float]:
    """Length of a two-arm trial barely longer than an epoch, with its passes and threshold."""
    horizon = shortest_horizon(2, design.beta, design.epsilon) + _AFTER
    while True:
        lengths, thresholds = _epochs(design, 2, horizon)
        passes = int(lengths[2, 0])
        if 2 * passes + _AFTER <= horizon:
            return horizon, passes, float(thresholds[2, 0])
        horizon = 2 * passes + _AFTER


@audit_trials.register
def elimination_trials(design: PrivateSuccessiveElimination) -> tuple[AuditTrial, ...]:
    """Three arms and two epochs; in the first, two arms lie about one threshold below the best."""
    trials = []
    for fair in (False, True):
        words, env, horizon = _fair_epoch(design) if fair else _near_threshold(design)
        noise = EpochMeanNoise(1.0 / float(design.epsilon), fair=fair)
        lengths, _ = _epochs(design, env.n_arms, horizon)
        opening = int(env.n_arms * lengths[env.n_arms, 0]) + _SHOWN
        trials.append(AuditTrial(words, env, horizon, noise=noise, live_rounds=opening * fair))
    return tuple(trials)


def _epochs(design: PrivateSuccessiveElimination, n_arms: int, horizon: int) -> tuple[FloatArray, FloatArray]:
    beta = 1.0 / horizon if design.beta is None else float(design.beta)
    return elimination_epochs(n_arms, horizon, beta, float(design.epsilon))


def _near_threshold(design: PrivateSuccessiveElimination) -> tuple[str, Tableau, int]:
    """Rewards outside [0, 1] whose clipped means lie one threshold apart."""
    horizon = shortest_horizon(_ARMS, design.beta, design.epsilon)
    lengths, thresholds = _epochs(design, _ARMS, horizon)
    # The second epoch is longest if all arms remain. The horizon is recomputed, because beta may decrease
    # with it.
    horizon = int(_ARMS * (lengths[_ARMS, 0] + 8.0 * lengths[_ARMS, 0]))
    lengths, thresholds = _epochs(design, _ARMS, horizon)
    one, two = (int(_ARMS * lengths[_ARMS, :epochs].sum()) + _SHOWN for epochs in (1, 2))
    horizon = min(horizon, two if two <= _LONGEST else one)
    lengths, thresholds = _epochs(design, _ARMS, horizon)
    low = max(0.0, 1.0 - float(thresholds[_ARMS, 0]))
    rewards = np.tile([3.0, low, -2.0 if low == 0.0 else low], (horizon, 1))
    return f"three arms for {horizon:,} rounds, one with rewards of 3", Tableau(rewards), horizon


def _fair_epoch(design: PrivateSuccessiveElimination) -> tuple[str, BernoulliArms, int]:
    # Twice the first epoch is enough even if a mixture skips some of the rounds.
    horizon = 2 * shortest_horizon(2, design.beta, design.epsilon) + _SHOWN
    return f"two arms for {horizon:,} rounds, rewards from fair coins", BernoulliArms([0.5, 0.5]), horizon
