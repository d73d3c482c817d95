"""The run loop: one loop for every design and every environment.

A design hands in four kernels and its tables; the loop is inlined into the design's own compiled entry
point, so that Numba caches it and LLVM sees one flat function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from adaptinf.compilation import inlined, kernel
from adaptinf.typing import FloatArray, IntArray

__all__ = [
    "BERNOULLI",
    "NORMAL",
    "POOL",
    "RELEASED",
    "ROUND",
    "SCALARS",
    "TABLEAU",
    "UNIFORM",
    "EnvironmentTables",
    "Record",
    "empty_record",
    "release",
    "simulate_block",
]

BERNOULLI, NORMAL, UNIFORM, POOL, TABLEAU = range(5)
"""Reward laws that the loop can draw from."""

SCALARS = 0
"""Row of a design's state that holds its scalars."""
ROUND, RELEASED = 0, 1
"""Scalars that every design keeps: rounds completed, and releases made so far."""


class EnvironmentTables(NamedTuple):
    """What the loop needs to know of an environment; one layout for all, so nothing compiles twice.

    Attributes
    ----------
    kind : int
        The reward law.
    n_features, period : int
        Number of contexts that can arrive, and rounds in a period of the arrival probabilities.
    arrivals : ndarray of shape (periods, features)
        Cumulative arrival probabilities.
    location, scale : ndarray of shape (features, arms)
        Mean and standard deviation (normal), low end and width (uniform), mean (Bernoulli).
    start, size : ndarray of int, shape (features, arms)
        Where a cell's rewards begin in `pool`, and how many there are.
    pool : ndarray of float
        Rewards that are resampled.
    tableau : ndarray of shape (rounds, arms)
        Fixed potential rewards.
    tableau_features : ndarray of int, shape (rounds,)
        Their contexts.
    """

    kind: int
    n_features: int
    period: int
    arrivals: FloatArray
    location: FloatArray
    scale: FloatArray
    start: IntArray
    size: IntArray
    pool: FloatArray
    tableau: FloatArray
    tableau_features: IntArray


class Record(NamedTuple):
    """One row a round of a single run; arrays of length 0 where nothing is recorded.

    Attributes
    ----------
    action, status, feature : ndarray of int, shape (rounds,)
        Arm, the design's status code and the context of each round.
    reward : ndarray of shape (rounds,)
        Rewards as drawn, never clipped.
    propensity, propensities : ndarray of shape (rounds,) and (rounds, arms)
        Of the chosen arm and of every arm, given the past; of length 0 where the design has none.
    context : ndarray of shape (1,)
        Where the loop puts the context of the round.
    """

    action: IntArray
    status: IntArray
    feature: IntArray
    reward: FloatArray
    propensity: FloatArray
    propensities: FloatArray
    context: FloatArray


def empty_record(horizon: int, n_arms: int, with_propensities: bool) -> Record:
    """Space for the rounds of one run; a horizon of 0 records nothing."""
    return Record(
        action=np.empty(horizon, dtype=np.int64),
        status=np.empty(horizon, dtype=np.int64),
        feature=np.empty(horizon, dtype=np.int64),
        reward=np.empty(horizon),
        propensity=np.empty(horizon if with_propensities else 0),
        propensities=np.empty((horizon, n_arms if with_propensities else 0)),
        context=np.zeros(1),
    )


@kernel
def release(tables: Any, state: FloatArray, name: int, group: int, value: float, scale: float) -> None:
    """Note a private release in ``tables.released``, where there is room for any."""
    if tables.released.shape[0] > 0:
        row = int(state[SCALARS, RELEASED])
        tables.released[row, 0] = state[SCALARS, ROUND]
        tables.released[row, 1] = name
        tables.released[row, 2] = group
        tables.released[row, 3] = value
        tables.released[row, 4] = scale
        state[SCALARS, RELEASED] = row + 1.0


@kernel
def _arrival(environment: EnvironmentTables, step: int, rng: np.random.Generator) -> int:
    if environment.kind == TABLEAU:
        return int(environment.tableau_features[step])
    row = (step // environment.period) % environment.arrivals.shape[0]
    draw = rng.random()
    feature = 0
    while draw >= environment.arrivals[row, feature] and feature < environment.n_features - 1:
        feature += 1
    return feature


@kernel
def _reward(
    environment: EnvironmentTables, step: int, feature: int, arm: int, rng: np.random.Generator
) -> float:
    if environment.kind == BERNOULLI:
        return 1.0 if rng.random() < environment.location[feature, arm] else 0.0
    if environment.kind == NORMAL:
        return float(
            environment.location[feature, arm] + environment.scale[feature, arm] * rng.standard_normal()
        )
    if environment.kind == UNIFORM:
        return float(environment.location[feature, arm] + environment.scale[feature, arm] * rng.random())
    if environment.kind == POOL:
        size = environment.size[feature, arm]
        return float(
            environment.pool[environment.start[feature, arm] + min(int(rng.random() * size), size - 1)]
        )
    return float(environment.tableau[step, arm])


@inlined
def simulate_block(
    choose: Callable[..., int],
    update: Callable[..., None],
    finish: Callable[..., None],
    tables: Any,
    environment: EnvironmentTables,
    horizon: int,
    rng: np.random.Generator,
    state: FloatArray,
    tallies: FloatArray,
    outcomes: FloatArray,
    record: Record,
) -> None:
    """Run a design `len(tallies)` times in a row on one stream of random numbers.

    Parameters
    ----------
    choose, update, finish : kernels
        The design: ``choose(tables, state, context, source) -> arm``, ``update(tables, state, context, arm,
        reward, source)`` and ``finish(tables, state, outcome)``.
    tables : NamedTuple
        The design's parameters, with ``status`` (1,) and ``propensity`` (arms,) that `choose` writes.
    environment : EnvironmentTables
        Where contexts and rewards come from.
    horizon : int
        Rounds of a run.
    rng : Generator
        The stream.
    state : ndarray of shape (rows, columns)
        The design's memory, zeroed before each run.
    tallies : ndarray of shape (runs, statuses, features, arms, 3)
        Receives counts, sums and sums of squares of the rewards.
    outcomes : ndarray of shape (runs, outcomes)
        Receives what the design reports at the end.
    record : Record
        Receives the rounds where its arrays are long enough (a single run).
    """
    n_arms = tallies.shape[3]
    has_context = environment.n_features > 1
    recording = record.action.shape[0] > 0
    with_propensities = record.propensities.shape[1] > 0
    context = record.context
    for run in range(tallies.shape[0]):
        state[:] = 0.0
        tables.status[0] = 0
        tally = tallies[run].reshape(-1)
        for step in range(horizon):
            feature = 0
            if has_context:
                feature = _arrival(environment, step, rng)
                context[0] = feature
            arm = choose(tables, state, context, rng)
            reward = _reward(environment, step, feature, arm, rng)
            cell = 3 * ((tables.status[0] * environment.n_features + feature) * n_arms + arm)
            tally[cell] += 1.0
            tally[cell + 1] += reward
            tally[cell + 2] += reward * reward
            if recording:
                record.action[step] = arm
                record.status[step] = tables.status[0]
                record.feature[step] = feature
                record.reward[step] = reward
                if with_propensities:
                    record.propensity[step] = tables.propensity[arm]
                    for other in range(n_arms):
                        record.propensities[step, other] = tables.propensity[other]
            update(tables, state, context, arm, reward, rng)
        finish(tables, state, outcomes[run])
