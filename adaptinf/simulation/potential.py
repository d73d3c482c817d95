"""What a run could pay: contexts, and a reward for every arm in every round."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adaptinf.compilation import compiled
from adaptinf.simulation.run import EnvironmentTables, arrival, draw_reward
from adaptinf.simulation.vectors import draw_vectors, expected_rewards
from adaptinf.typing import FloatArray, IntArray


class Potential(NamedTuple):
    """One run's contexts and potential rewards.

    Shapes: feature (rounds,), vectors (rounds, arms * dimension), expected (rounds, arms) or (0, arms)
    without context vectors, best (rounds,) or (0,), reward (rounds, arms).
    """

    feature: IntArray
    vectors: FloatArray
    expected: FloatArray
    best: FloatArray
    reward: FloatArray


def empty_potential(horizon: int, n_arms: int, dimension: int) -> Potential:
    """Space for one run."""
    expected = horizon if dimension else 0
    return Potential(
        feature=np.zeros(horizon, dtype=np.int64),
        vectors=np.zeros((horizon, n_arms * dimension)),
        expected=np.zeros((expected, n_arms)),
        best=np.zeros(expected),
        reward=np.zeros((horizon, n_arms)),
    )


@compiled
def draw_potential(environment: EnvironmentTables, rng: np.random.Generator, potential: Potential) -> None:
    """Draw a run, round by round: its context, then a reward for every arm."""
    n_rounds, n_arms = potential.reward.shape
    has_context = environment.n_features > 1
    has_vectors = environment.theta.shape[0] > 0
    for step in range(n_rounds):
        if has_context:
            potential.feature[step] = arrival(environment, step, rng)
        if has_vectors:
            row = draw_vectors(environment, step, rng, potential.vectors[step])
            potential.best[step] = expected_rewards(
                environment, row, potential.vectors[step], potential.expected[step]
            )
        for arm in range(n_arms):
            mean = potential.expected[step, arm] if has_vectors else 0.0
            potential.reward[step, arm] = draw_reward(
                environment, step, potential.feature[step], arm, mean, rng
            )
