"""Faulty versions of private UCB and LinPriv: each is caught, the right one beside it is not."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from adaptinf.audit.privacy.designs.counter_audits import CounterScore, earlier_counts, laplace_log_ratio
from adaptinf.audit.privacy.epsilon_audit import epsilon_lower_bound
from adaptinf.designs import LinPriv, PrivateUCB
from adaptinf.designs.contextual.linear_noise import NoiseLaw
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.privacy.real_mechanisms import analytic_scale
from adaptinf.privacy.tree_sums import counter_scales
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.replicate import Program
from adaptinf.simulation.transcripts import Transcripts

RUNS, SEED = 40_000, 3


class _Rescaled(PrivateUCB):
    """Counters with other scales than the promise is made of."""

    factors = (1.0, 1.0)

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        program = super().program(environment, horizon, recording=recording)
        trunk, node = self._scales(program.tables.trunk, program.tables.node, horizon)
        return dataclasses.replace(program, tables=program.tables._replace(trunk=trunk, node=node))

    def _scales(self, trunk: float, node: float, horizon: int) -> tuple[float, float]:
        return trunk * self.factors[0], node * self.factors[1]


class HalfTheNoise(_Rescaled):
    """All noise at half of its scale."""

    factors = (0.5, 0.5)


class BlockSpendsEverything(_Rescaled):
    """The trunk has half of the budget, and the block all of it."""

    factors = (1.0, 0.5)


class NoLevels(_Rescaled):
    """Every node of the binary tree has the scale of a single release."""

    def _scales(self, trunk: float, node: float, horizon: int) -> tuple[float, float]:
        return trunk, node / horizon.bit_length()


class NoRootOfDimension(LinPriv):
    """Noise for a sensitivity of 1."""

    def _law(self, dimension: int, horizon: int) -> NoiseLaw:
        return NoiseLaw(False, self.counter, *counter_scales(self.counter, self.epsilon, horizon))


class NormalNoiseForOneLevel(LinPriv):
    """Normal nodes that are calibrated as if an item lay in one of them."""

    def _law(self, dimension: int, horizon: int) -> NoiseLaw:
        return NoiseLaw(True, "binary", 0.0, analytic_scale(self.epsilon, self.delta))


NORMAL = {"delta": 0.05, "noise": "gaussian"}
FAULTS = [
    (HalfTheNoise, PrivateUCB, {"counter": "binary"}, (0.3, 1.0, 4.0)),
    (HalfTheNoise, PrivateUCB, {"counter": "hybrid"}, (0.3, 1.0, 4.0)),
    (BlockSpendsEverything, PrivateUCB, {"counter": "hybrid"}, (1.0, 4.0)),
    (NoLevels, PrivateUCB, {"counter": "binary"}, (0.1, 1.0, 4.0)),
    (NoRootOfDimension, LinPriv, {"counter": "hybrid"}, (1.0, 4.0)),
    (NoRootOfDimension, LinPriv, {"counter": "binary"}, (1.0, 4.0)),
    (NormalNoiseForOneLevel, LinPriv, NORMAL, (0.3, 1.0, 4.0)),
]


@pytest.mark.parametrize(
    ("faulty", "right", "options", "epsilon"),
    [(*case[:3], epsilon) for case in FAULTS for epsilon in case[3]],
)
def test_faults_in_the_scales(faulty: Any, right: Any, options: dict[str, Any], epsilon: float) -> None:
    caught = epsilon_lower_bound(faulty(epsilon=epsilon, **options), view="releases", runs=RUNS, rng=SEED)
    assert caught.promised is not None
    assert caught.promised.epsilon == epsilon
    assert caught.refuted
    assert not epsilon_lower_bound(
        right(epsilon=epsilon, **options), view="releases", runs=RUNS, rng=SEED
    ).refuted


# --- fresh noise at each release: another game, with the same index ----------------------------------------

ROUNDS, LEVELS, EPSILON = 7, 3, 1.0
TAPES = np.full((2, ROUNDS, 2), 0.5)
TAPES[0, 0], TAPES[1, 0] = 0.0, 1.0


def private_ucb(fresh: bool) -> Callable[[int, int, np.random.Generator], np.ndarray]:
    """Sampler of the log-likelihood ratio of all releases of a private UCB with binary counters."""

    def sample(side: int, runs: int, rng: np.random.Generator) -> np.ndarray:
        every, scale = np.arange(runs), LEVELS / EPSILON
        sums, noise = np.zeros((runs, 2)), np.zeros((runs, 2, ROUNDS + 1))
        counts = np.zeros((runs, 2), dtype=np.int64)
        noisy, actions = np.zeros((runs, 2)), np.zeros((runs, ROUNDS), dtype=np.int64)
        releases = np.full((runs, ROUNDS, 5), scale)
        for step in range(ROUNDS):
            pulls = np.maximum(counts, 1)
            index = (noisy + scale * math.log(step + 2.0)) / pulls + np.sqrt(
                2.0 * math.log(step + 1.0) / pulls
            )
            arms = np.where(np.full(runs, step < 2), step, index.argmax(axis=1))
            counts[every, arms] += 1
            sums[every, arms] += TAPES[side, step, arms]
            now = counts[every, arms]
            total = rng.laplace(0.0, scale, runs)
            if not fresh:
                total += noise[every, arms, earlier_counts(False, now)]
            noise[every, arms, now] = total
            noisy[every, arms] = sums[every, arms] + total
            actions[:, step], releases[:, step, 3] = arms, noisy[every, arms]
        if not fresh:
            return CounterScore(*TAPES, False)(Transcripts(actions, releases, np.zeros((runs, 0))))
        score = np.zeros(runs)
        for arm in range(2):
            first, second = (np.cumsum(tape[None, :, arm] * (actions == arm), axis=1) for tape in TAPES)
            ratio = laplace_log_ratio(releases[:, :, 3] - first, second - first, np.array(scale))
            score += (ratio * (actions == arm)).sum(axis=1)
        return score

    return sample


def test_fresh_noise_at_each_release() -> None:
    promised = PrivacyGuarantee(epsilon=EPSILON)
    caught = epsilon_lower_bound(private_ucb(fresh=True), runs=RUNS, promised=promised, rng=SEED)
    assert caught.refuted
    right = epsilon_lower_bound(private_ucb(fresh=False), runs=RUNS, promised=promised, rng=SEED)
    assert not right.refuted
    assert right.epsilon > 0.7 * EPSILON
