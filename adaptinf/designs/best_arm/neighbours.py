"""Neighbouring trials of best-arm designs: one reward of the first phase, which moves a mean or a moment."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from adaptinf.designs.best_arm.base import FeatureDesign
from adaptinf.designs.neighbours import UNIT_RANGE, Neighbours, one_reward_apart
from adaptinf.designs.ratios.epochs import first_epoch
from adaptinf.simulation.environments import Tableau
from adaptinf.simulation.transcripts import Transcripts
from adaptinf.typing import FloatArray

_REACH = 2.0
_MOST_PULLS, _MOST_ROUNDS = 64, 4_096

Score = Callable[[Transcripts], FloatArray]


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
