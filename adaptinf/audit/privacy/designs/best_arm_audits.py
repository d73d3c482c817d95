"""Audits of private best-arm designs: one reward of the first phase, actions from releases."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from adaptinf.audit.privacy.designs.audited_trial import (
    FAIR,
    AuditTrial,
    NodeNoise,
    Noise,
    audit_trials,
    laplace_uniforms,
)
from adaptinf.audit.privacy.designs.epoch_ratios import (
    EpochMeanNoise,
    EpochMeanScore,
    MomentScore,
    first_epoch,
)
from adaptinf.audit.privacy.designs.neighbours import (
    UNIT_RANGE,
    Neighbours,
    neighbouring_trials,
    one_reward_apart,
    refuse_unit,
)
from adaptinf.designs.best_arm.base import FeatureDesign
from adaptinf.designs.best_arm.dp_bai import DPBAI, DPBAIGauss
from adaptinf.designs.best_arm.estimates import GAUSSIAN_NOISE
from adaptinf.designs.best_arm.optimal import DPOD
from adaptinf.designs.best_arm.schedule import reserve
from adaptinf.simulation.environments import BernoulliArms, Tableau
from adaptinf.simulation.transcripts import Transcripts
from adaptinf.typing import FloatArray

_BEYOND = 3.0
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
                seen.rewards - FAIR if self.fair else np.zeros((0, 0)),
                [f"the reward of round {step + 1}" for step in range(seen.rewards.shape[1])],
            ),
        )


def best_arm_trials(design: Any, horizon: int, noise: Noise, fair: Noise) -> tuple[AuditTrial, ...]:
    """A budget with rewards beyond [0, 1] that are alike for all arms, and one with 0/1 rewards.

    Where the arms are alike, noise alone decides who is left.
    """
    n_arms = len(design.features)
    alike = Tableau(np.full((horizon, n_arms), _BEYOND))
    coins = BernoulliArms(np.full(n_arms, FAIR))
    kinds: Any = ((f"all rewards {_BEYOND:g}", alike, noise), ("rewards by fair coins", coins, fair))
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
    """Pulls of an arm that let its mean lie two scales of the noise below the others', if feasible."""
    feasible = max(1, min(_MOST_PULLS, _MOST_ROUNDS // rounds_for_one))
    return min(feasible, math.ceil(1.0 + _REACH * noise))


def best_arm_neighbours(
    design: FeatureDesign,
    horizon: int,
    noise: float,
    weight: FloatArray,
    score: Callable[[FloatArray, FloatArray, int], Score],
) -> Neighbours:
    """Trials that differ in a reward of the first phase, of the arm that moves the releases most.

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
    # if it survives the first phase it is named
    rewards[opening.size :, moved] = 1.0
    first, second = one_reward_apart(rewards, row)
    return Neighbours(
        Tableau(first, reward_range=UNIT_RANGE),
        Tableau(second, reward_range=UNIT_RANGE),
        horizon,
        "reward",
        f"the rewards of round {row + 1} are 0 and 1",
        score(first, second, row),
        hidden=tuple(range(horizon - 1)),
    )


@neighbouring_trials.register(DPBAI)
@neighbouring_trials.register(DPBAIGauss)
def mean_neighbours(design: DPBAI | DPBAIGauss, unit: str | None = None) -> tuple[Neighbours, ...]:
    """The reward of the first round, 0 and 1, which moves the first mean.

    One pair. The score of its releases is exact: one noisy mean moves by as much as a reward can move any.
    The last round pulls the arm that is named, and its action is the only one shown.
    """
    refuse_unit(unit)
    weight = np.ones(len(design.features))
    score = partial(EpochMeanScore, normal=design.law == GAUSSIAN_NOISE)
    return (best_arm_neighbours(design, _horizon(design), design._noise(), weight, score),)


@audit_trials.register(DPBAI)
@audit_trials.register(DPBAIGauss)
def mean_trials(design: DPBAI | DPBAIGauss) -> tuple[AuditTrial, ...]:
    """Who is left is recomputed from the noisy means, and their noise is tested."""
    kind = DPBAIGauss if design.law == GAUSSIAN_NOISE else DPBAI
    # the scale that the guarantee needs: not what a subclass draws
    noise = EpochMeanNoise(kind._noise(design), design.law == GAUSSIAN_NOISE)  # type: ignore[arg-type]
    return best_arm_trials(design, _horizon(design), noise, replace(noise, fair=True))


def _horizon(design: DPBAI | DPBAIGauss) -> int:
    """Rounds that leave one at least for the arm that is named."""
    schedule = design.schedule()
    n, dimension = design.rows.shape
    if not design.max_det:
        one = schedule.phases * n
        return int(one * wanted_pulls(design._noise(), one) + 1)
    # two beyond whole multiples: rounding pulls up then never costs all of the reserve
    one = schedule.phases * (dimension if dimension**2 < n else n)
    return int(reserve(schedule, dimension) + one * (wanted_pulls(design._noise(), one) - 1) + 2)


@neighbouring_trials.register
def moment_neighbours(design: DPOD, unit: str | None = None) -> tuple[Neighbours, ...]:
    """The reward of a round of the first phase, 0 and 1: of the pulled arm that moves the moments most.

    One pair. The score of its releases is exact. An arm with the largest sum of absolute coordinates moves
    the moments by all that the noise allows for; where the first phase does not pull such an arm the pair
    spends less than epsilon. The last round pulls the arm that is named, and its action is the only one
    shown.
    """
    refuse_unit(unit)
    sums = np.abs(design.rows).sum(axis=1)
    noise = design._noise() * float(sums.max())
    rounds = design.sizes().size - 1
    one = rounds * design.rows.shape[1]
    # whole shares: what is rounded up is then less than the reserve
    horizon = design._reserve() + one * wanted_pulls(noise, one)
    # among arms that move the moments as much, one with few coordinates: less noise hides it
    weight = sums / sums.max() - 1e-9 * np.count_nonzero(design.rows, axis=1)
    return (best_arm_neighbours(design, horizon, noise, weight, partial(_moment_score, design.rows)),)


def _moment_score(rows: FloatArray, first: FloatArray, second: FloatArray, row: int) -> MomentScore:
    return MomentScore(first, second, rows)


@audit_trials.register
def moment_trials(design: DPOD) -> tuple[AuditTrial, ...]:
    """Who is left is recomputed from the noisy moments, and their noise is tested."""
    scale = float(np.abs(design.rows).sum(axis=1).max()) / float(design.epsilon)
    noise = MomentNoise(design.rows, scale)
    horizon = neighbouring_trials(design)[0].horizon
    return best_arm_trials(design, horizon, noise, replace(noise, fair=True))
