"""Trials of private best-arm designs, and how their actions follow from the noisy means or moments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from adaptinf.designs.audit_trials import FAIR, AuditTrial, NodeNoise, Noise, Replayed, laplace_uniforms
from adaptinf.designs.best_arm.estimates import RELEASED
from adaptinf.designs.best_arm.kernel import BestArmTables, replay_phases
from adaptinf.privacy.noise import Buffer
from adaptinf.simulation.environments import BernoulliArms, Tableau
from adaptinf.simulation.replicate import Program
from adaptinf.simulation.transcripts import Transcripts
from adaptinf.typing import FloatArray

_BEYOND = 3.0
_END, _VALUE = 0, 3


@dataclass(frozen=True, slots=True, eq=False)
class PhaseReplay:
    """The design's own decisions where all rewards are 0 and its estimates are what was released.

    These are the very numbers of the run, whatever rewards they stood for: a decision that reads anything
    else comes out another one.
    """

    program: Program
    override: int = -1

    def __call__(self, seen: Transcripts) -> tuple[Replayed, ...]:
        """Actions of every round, and the rounds of the releases."""
        tables: BestArmTables = self.program.tables._replace(law=RELEASED)
        state = np.zeros(self.program.state_shape)
        actions, ends = np.empty_like(seen.actions), np.full(seen.releases.shape[:2], np.nan)
        overridden = seen.statuses == self.override
        for run in range(actions.shape[0]):
            values = np.nan_to_num(seen.releases[run, :, _VALUE])
            source = Buffer(np.zeros(0), values, np.zeros(2, dtype=np.int64))
            tables.released[:] = np.nan
            replay_phases(tables, state, source, overridden[run], actions[run])
            ends[run] = tables.released[:, _END]
        return (
            Replayed("the round of a release", seen.releases[:, :, _END], ends, "release"),
            Replayed("the arm", seen.actions, np.where(overridden, seen.actions, actions)),
        )


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
            PhaseReplay(design.program(env, horizon, recording=True)),
            told,
        )
        for paid, env, told in kinds
    )
