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

BERNOULLI, NORMAL, UNIFORM, POOL, TABLEAU, LINEAR_NORMAL, LINEAR_BERNOULLI, LINEAR_UNIFORM = range(8)
"""Reward laws that the loop can draw from."""

SCALARS = 0
"""Row of a design's state that holds its scalars."""
ROUND, RELEASED = 0, 1
"""Scalars that every design keeps: rounds completed, and releases made so far."""


class EnvironmentTables(NamedTuple):
    """What the loop needs to know of an environment; one layout for all, so nothing compiles twice.

    Shapes: arrivals (periods, features), location, scale (features, arms), start, size (features, arms),
    tableau (rounds, arms), tableau_features (rounds,), theta (arms, dimension), vectors (rows, arms *
    dimension) or (rows, dimension), order (rows,) or (0,), delay (rounds, arms) or (0, 0): after how many
    more rounds an outcome is known.
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
    delay: IntArray


class World(NamedTuple):
    """What a run is exposed to; share (0,) or (rounds,), forced (0,) or (rounds,)."""

    environment: EnvironmentTables
    horizon: int
    share: FloatArray
    overridden: int
    forced: IntArray


class Record(NamedTuple):
    """One row per round of the last run; arrays of length 0 where nothing is recorded.

    Shapes: action, status, feature (rounds,), reward (rounds,), propensity, propensities (rounds,), vectors
    (rounds, arms * dimension), context (1,) or (arms * dimension,), expected (arms,), actions, statuses
    (runs, rounds), rewards (runs, rounds) or (0, 0), releases (runs, releases, 5).
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
    rewards: FloatArray
    releases: FloatArray


class Results(NamedTuple):
    """Where the loop leaves what consecutive runs came to.

    Shapes: tallies (runs, statuses, features, arms, 3), outcomes (runs, outcomes), regret (runs,).
    """

    tallies: FloatArray
    outcomes: FloatArray
    regret: FloatArray
    record: Record

    def of_run(self, run: int) -> Results:
        """Space for one of the runs."""
        row, record = slice(run, run + 1), self.record
        kept = {name: getattr(record, name)[row] for name in ("actions", "statuses", "rewards", "releases")}
        return Results(self.tallies[row], self.outcomes[row], self.regret[row], record._replace(**kept))


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
        rewards=np.empty((0, 0)),
        releases=np.empty((0, 0, 5)),
    )


@kernel
def no_outcome(tables: Any, state: FloatArray, outcome: FloatArray) -> None:
    """The end of a run of a design that reports nothing."""


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
def arrival(environment: EnvironmentTables, step: int, rng: np.random.Generator) -> int:
    """Code of the context of a round."""
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
def _write_round(
    record: Record, step: int, arm: int, status: int, feature: int, reward: float, context: FloatArray
) -> None:
    """What a log keeps of every round; context (entries,)."""
    record.action[step] = arm
    record.status[step] = status
    record.feature[step] = feature
    record.reward[step] = reward
    for entry in range(record.vectors.shape[1]):
        record.vectors[step, entry] = context[entry]


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
    """Copy what an onlooker sees of the run that just ended, and the rewards where there is room for them."""
    for step in range(record.actions.shape[1]):
        record.actions[run, step] = record.action[step]
        record.statuses[run, step] = record.status[step]
    for step in range(record.rewards.shape[1]):
        record.rewards[run, step] = record.reward[step]
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

    Shapes: state (rows, columns).

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
            feature, row, mean = 0, 0, 0.0
            if has_context:
                feature = arrival(environment, step, rng)
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
                _write_round(record, step, arm, tables.status[0], feature, reward, context)
                if with_propensities:
                    share = world.share[step] if mixing else 0.0
                    _write_propensities(tables, record, step, proposal, arm, share)
            update(tables, state, context, arm, reward, rng)
            if mixing:
                tables.status[0] = 0
        finish(tables, state, results.outcomes[run])
        if keeping:
            _keep(tables, state, record, run)
