"""The run loop: one loop for every design and every environment.

A design hands in four kernels and its tables; the loop is inlined into the design's own compiled entry
point, so that Numba caches it and LLVM sees one flat function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from adaptinf.compilation import inlined, kernel
from adaptinf.simulation.vectors import draw_vectors, expected_rewards
from adaptinf.typing import FloatArray, IntArray

__all__ = [
    "BERNOULLI",
    "LINEAR_BERNOULLI",
    "LINEAR_NORMAL",
    "LINEAR_UNIFORM",
    "NORMAL",
    "POOL",
    "RELEASED",
    "ROUND",
    "SCALARS",
    "TABLEAU",
    "UNIFORM",
    "EnvironmentTables",
    "Record",
    "Results",
    "World",
    "certain_arm",
    "draw_reward",
    "empty_record",
    "release",
    "simulate_block",
]

BERNOULLI, NORMAL, UNIFORM, POOL, TABLEAU, LINEAR_NORMAL, LINEAR_BERNOULLI, LINEAR_UNIFORM = range(8)
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
        Fixed potential rewards, of rounds or of rows of context vectors.
    tableau_features : ndarray of int, shape (rounds,)
        Their contexts.
    theta : ndarray of shape (arms, dimension)
        Coefficients, where the context is a vector an arm; no rows where it is not.
    vector_law : int
        How context vectors come about, a code of `simulation.vectors`.
    shared : bool
        Whether all arms have the same context vector.
    vectors : ndarray of shape (rows, arms * dimension) or (rows, dimension)
        Context vectors that are given: one an arm, or one that all have.
    order : ndarray of int, shape (rows,) or (0,)
        Where a run keeps the order of rows that it shuffles.
    mean_law : int
        How context vectors decide expected rewards, a code of `simulation.vectors`.
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
    theta: FloatArray
    vector_law: int
    shared: bool
    vectors: FloatArray
    order: IntArray
    mean_law: int


class World(NamedTuple):
    """What a run is exposed to.

    Attributes
    ----------
    environment : EnvironmentTables
        Where contexts and rewards come from.
    horizon : int
        Rounds of a run.
    share : ndarray of shape (0,) or (rounds,)
        Probability, round by round, that the design's proposal is overridden by a uniform draw.
    overridden : int
        Status code of a round that was overridden.
    forced : ndarray of int, shape (0,) or (rounds,)
        Arms that are pulled whatever the design proposes, so that its propensities on a given path can be
        recorded.
    """

    environment: EnvironmentTables
    horizon: int
    share: FloatArray
    overridden: int
    forced: IntArray


class Record(NamedTuple):
    """One row a round of the last run; arrays of length 0 where nothing is recorded.

    Attributes
    ----------
    action, status, feature : ndarray of int, shape (rounds,)
        Arm, the design's status code and the context of each round.
    reward : ndarray of shape (rounds,)
        Rewards as drawn, never clipped.
    propensity, propensities : ndarray of shape (rounds,) and (rounds, arms)
        Of the chosen arm and of every arm, given the past; of length 0 where the design has none.
    vectors : ndarray of shape (rounds, arms * dimension)
        Context vectors of each round; no columns where there are none.
    context : ndarray of shape (1,) or (arms * dimension,)
        Where the loop puts the context of the round: its code, or a vector an arm.
    expected : ndarray of shape (arms,)
        Where the loop puts the expected rewards that follow from context vectors.
    actions, statuses : ndarray of int, shape (runs, rounds)
        `action` and `status` of every run; no rows where those of the last run will do.
    releases : ndarray of shape (runs, releases, 5)
        What every run released, likewise; entries that it did not need are left as they are.
    """

    action: IntArray
    status: IntArray
    feature: IntArray
    reward: FloatArray
    propensity: FloatArray
    propensities: FloatArray
    vectors: FloatArray
    context: FloatArray
    expected: FloatArray
    actions: IntArray
    statuses: IntArray
    releases: FloatArray


class Results(NamedTuple):
    """Where the loop leaves what consecutive runs came to.

    Attributes
    ----------
    tallies : ndarray of shape (runs, statuses, features, arms, 3)
        Counts, sums and sums of squares of the rewards.
    outcomes : ndarray of shape (runs, outcomes)
        What the design reports at the end.
    regret : ndarray of shape (runs,)
        Pseudo-regret, where expected rewards follow from context vectors or their rows; 0 elsewhere.
    record : Record
        The rounds of the last run or of all, where its arrays are long enough.
    """

    tallies: FloatArray
    outcomes: FloatArray
    regret: FloatArray
    record: Record


def empty_record(horizon: int, n_arms: int, with_propensities: bool, dimension: int = 0) -> Record:
    """Space for the rounds of one run; a horizon of 0 records nothing."""
    return Record(
        action=np.empty(horizon, dtype=np.int64),
        status=np.empty(horizon, dtype=np.int64),
        feature=np.empty(horizon, dtype=np.int64),
        reward=np.empty(horizon),
        propensity=np.empty(horizon if with_propensities else 0),
        propensities=np.empty((horizon, n_arms if with_propensities else 0)),
        vectors=np.empty((horizon, n_arms * dimension)),
        context=np.zeros(max(1, n_arms * dimension)),
        expected=np.zeros(n_arms),
        actions=np.empty((0, horizon), dtype=np.int64),
        statuses=np.empty((0, horizon), dtype=np.int64),
        releases=np.empty((0, 0, 5)),
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
def certain_arm(tables: Any, arm: int) -> None:
    """Write propensities of 1 for an arm and 0 for the others, where there is room for any."""
    if tables.propensity.shape[0] > 0:
        tables.propensity[:] = 0.0
        tables.propensity[arm] = 1.0


@kernel
def draw_reward(
    environment: EnvironmentTables, step: int, feature: int, arm: int, mean: float, rng: np.random.Generator
) -> float:
    """One reward; `mean` is the expected reward where it follows from context vectors."""
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
    if environment.kind == TABLEAU:
        return float(environment.tableau[step, arm])
    if environment.kind == LINEAR_BERNOULLI:
        return 1.0 if rng.random() < mean else 0.0
    if environment.kind == LINEAR_NORMAL:
        return float(mean + environment.scale[0, 0] * rng.standard_normal())
    return float(mean + environment.scale[0, 0] * (2.0 * rng.random() - 1.0))


@kernel
def _write_propensities(
    tables: Any, record: Record, step: int, proposal: int, arm: int, share: float
) -> None:
    """Propensities of the round: the design's own, or 0 and 1, mixed with a uniform draw."""
    n_arms = record.propensities.shape[1]
    for other in range(n_arms):
        own = 1.0 if other == proposal else 0.0
        if tables.propensity.shape[0] > 0:
            own = tables.propensity[other]
        record.propensities[step, other] = (1.0 - share) * own + share / n_arms
    record.propensity[step] = record.propensities[step, arm]


@kernel
def _keep(tables: Any, state: FloatArray, record: Record, run: int) -> None:
    """Copy what an onlooker sees of the run that just ended."""
    for step in range(record.actions.shape[1]):
        record.actions[run, step] = record.action[step]
        record.statuses[run, step] = record.status[step]
    for row in range(int(state[SCALARS, RELEASED])):
        for column in range(record.releases.shape[2]):
            record.releases[run, row, column] = tables.released[row, column]


@inlined
def simulate_block(
    choose: Callable[..., int],
    update: Callable[..., None],
    finish: Callable[..., None],
    tables: Any,
    world: World,
    rng: np.random.Generator,
    state: FloatArray,
    results: Results,
) -> None:
    """Run a design once for each row of the results, in a row on one stream of random numbers.

    Parameters
    ----------
    choose, update, finish : kernels
        The design: ``choose(tables, state, context, source) -> arm``, ``update(tables, state, context, arm,
        reward, source)`` and ``finish(tables, state, outcome)``.
    tables : NamedTuple
        The design's parameters, with ``status`` (1,) and ``propensity`` (arms,) that `choose` writes.
    world : World
        Where contexts and rewards come from, for how many rounds, and which rounds are overridden.
    rng : Generator
        The stream.
    state : ndarray of shape (rows, columns)
        The design's memory, zeroed before each run.
    results : Results
        Receives the sums of every run, and the rounds of the last one or, where there is room, of all.

    Notes
    -----
    Where a round is overridden, ``status`` holds ``world.overridden`` when `update` is called, with the arm
    that was pulled.
    """
    environment = world.environment
    tallies = results.tallies
    record = results.record
    n_arms = tallies.shape[3]
    has_context = environment.n_features > 1
    has_vectors = environment.theta.shape[0] > 0
    mixing = world.share.shape[0] > 0
    forcing = world.forced.shape[0] > 0
    recording = record.action.shape[0] > 0
    with_propensities = record.propensities.shape[1] > 0
    keeping = record.actions.shape[0] > 0
    context = record.context
    for run in range(tallies.shape[0]):
        state[:] = 0.0
        tables.status[0] = 0
        tally = tallies[run].reshape(-1)
        for step in range(world.horizon):
            feature = 0
            row = 0
            mean = 0.0
            if has_context:
                feature = _arrival(environment, step, rng)
                context[0] = feature
            if has_vectors:
                row = draw_vectors(environment, step, rng, context)
            arm = choose(tables, state, context, rng)
            proposal = arm
            if mixing and rng.random() < world.share[step]:
                arm = min(int(rng.random() * n_arms), n_arms - 1)
                tables.status[0] = world.overridden
            if forcing:
                arm = world.forced[step]
            if has_vectors:
                best = expected_rewards(environment, row, context, record.expected)
                mean = record.expected[arm]
                results.regret[run] += best - mean
            reward = draw_reward(environment, step, feature, arm, mean, rng)
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
                    share = world.share[step] if mixing else 0.0
                    _write_propensities(tables, record, step, proposal, arm, share)
                for entry in range(record.vectors.shape[1]):
                    record.vectors[step, entry] = context[entry]
            update(tables, state, context, arm, reward, rng)
            if mixing:
                tables.status[0] = 0
        finish(tables, state, results.outcomes[run])
        if keeping:
            _keep(tables, state, record, run)
