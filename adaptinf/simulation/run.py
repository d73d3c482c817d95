"""The run loop: one loop for all designs and environments; single steps, and many rounds in one step.

A design provides four kernels and its tables; the loop is inlined into the design's own compiled entry point,
so Numba caches it and LLVM sees one flat function. The same is true of single steps, which are called from
outside. If nothing adapts, many rounds are drawn in one step: arrivals are multinomial, sums of 0/1 rewards
binomial, and sums of normal rewards normal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from adaptinf.compilation import inlined, kernel
from adaptinf.typing import FloatArray, IntArray

SPHERE, ORTHANT, IN_ORDER, RESAMPLED, CUBE, SHUFFLED = range(6)
"""How context vectors are generated: uniform on the unit sphere, on its part without negative coordinates,
from given rows, in order or drawn with replacement, uniform on the unit cube, or from given rows in an order
shuffled in every run."""

LINEAR, BUMPS, GIVEN = range(3)
"""How context vectors determine expected rewards: x'theta, a bump for each arm along the first coordinate, or
the given rewards of their row."""


@kernel
def _draw_row(environment: Any, step: int, rng: np.random.Generator) -> int:
    """Position of the round's row among the given ones."""
    if environment.vector_law == IN_ORDER:
        return step
    rows: int = environment.vectors.shape[0]
    if environment.vector_law == RESAMPLED:
        return min(int(rng.random() * rows), rows - 1)
    order = environment.order
    if step == 0:
        for row in range(rows):
            order[row] = row
    left = rows - step
    other = step + min(int(rng.random() * left), left - 1)
    drawn = order[other]
    order[other] = order[step]
    order[step] = drawn
    return int(drawn)


@kernel
def draw_vectors(environment: Any, step: int, rng: np.random.Generator, context: FloatArray) -> int:
    """Write the round's context vectors arm by arm, entry ``arm * dimension + k``, and return their row."""
    # If a row of given vectors covers only the first arms, the others have the same vectors.
    n_arms, dimension = environment.theta.shape
    law = environment.vector_law
    if law in (IN_ORDER, RESAMPLED, SHUFFLED):
        row: int = _draw_row(environment, step, rng)
        width = environment.vectors.shape[1]
        for entry in range(width):
            context[entry] = environment.vectors[row, entry]
        for entry in range(width, n_arms * dimension):
            context[entry] = context[entry - width]
        return row
    for arm in range(n_arms):
        base = arm * dimension
        if arm > 0 and environment.shared:
            for k in range(dimension):
                context[base + k] = context[k]
            continue
        if law == CUBE:
            for k in range(dimension):
                context[base + k] = rng.random()
            continue
        squares = 0.0
        for k in range(dimension):
            draw = rng.standard_normal()
            context[base + k] = abs(draw) if law == ORTHANT else draw
            squares += draw * draw
        inverse = 1.0 / math.sqrt(squares)
        for k in range(dimension):
            context[base + k] *= inverse
    return 0


@kernel
def expected_rewards(environment: Any, row: int, context: FloatArray, expected: FloatArray) -> float:
    """Write every arm's expected reward in this context, from a row, and return the largest."""
    n_arms, dimension = environment.theta.shape
    best = -np.inf
    for arm in range(n_arms):
        mean = 0.0
        if environment.mean_law == BUMPS:
            distance = n_arms * context[arm * dimension] - (arm + 1.0)
            mean = 2.0 / (1.0 + math.exp(2.0 * distance * distance))
        elif environment.mean_law == GIVEN:
            mean = environment.tableau[row, arm]
        else:
            for k in range(dimension):
                mean += context[arm * dimension + k] * environment.theta[arm, k]
        expected[arm] = mean
        best = max(best, mean)
    return best


BERNOULLI, NORMAL, UNIFORM, POOL, TABLEAU, LINEAR_NORMAL, LINEAR_BERNOULLI, LINEAR_UNIFORM = range(8)
"""Reward distributions from which the loop can draw."""

SCALARS = 0
"""Row of a design's state that contains its scalars."""
ROUND, RELEASED = 0, 1
"""Scalars stored by every design: rounds completed, and releases made so far."""


class EnvironmentTables(NamedTuple):
    """The environment in the form used by the loop: one layout for all, so that no code is compiled twice.

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
    """The environment of a run; share and forced have shape (0,) or (rounds,)."""

    environment: EnvironmentTables
    horizon: int
    share: FloatArray
    overridden: int
    forced: IntArray


class Record(NamedTuple):
    """One row per round of the last run; arrays of length 0 if nothing is recorded.

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
    """Where the loop writes the results of consecutive runs.

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
    """Space for the rounds of one run; with a horizon of 0, nothing is recorded."""
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
    """End a run of a design that reports nothing."""


@kernel
def release(tables: Any, state: FloatArray, name: int, group: int, value: float, scale: float) -> None:
    """Record a private release in ``tables.released``, if there is space."""
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
    """Write propensities of 1 for an arm and 0 for the others, if there is space."""
    if tables.propensity.shape[0] > 0:
        tables.propensity[:] = 0.0
        tables.propensity[arm] = 1.0


@kernel
def draw_reward(
    environment: EnvironmentTables, step: int, feature: int, arm: int, mean: float, rng: np.random.Generator
) -> float:
    """One reward; `mean` is the expected reward if it depends on context vectors."""
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
    """Write the data on a round that a log stores; context has shape (entries,)."""
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
    """Write the propensities of a round: the design's own, or 0 and 1, mixed with a uniform draw."""
    n_arms = record.propensities.shape[1]
    for other in range(n_arms):
        own = 1.0 if other == proposal else 0.0
        if tables.propensity.shape[0] > 0:
            own = tables.propensity[other]
        record.propensities[step, other] = (1.0 - share) * own + share / n_arms
    record.propensity[step] = record.propensities[step, arm]


@kernel
def _keep(tables: Any, state: FloatArray, record: Record, run: int) -> None:
    """Copy the observable part of the run that just ended, and the rewards if there is space."""
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
    """Run a design once per row of the results, consecutively on one stream of random numbers.

    If a round is overridden, ``status`` is ``world.overridden`` when `update` is called, with the arm that
    was pulled. Shapes: state (rows, columns).
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


CHOOSE, WAIT, UPDATE, FINISH = range(4)
"""Which kernel a step calls."""


class Step(NamedTuple):
    """One call of a kernel, with the arm and the reward that `UPDATE` needs.

    Shapes: context as in `Record`, outcome (outcomes,), which is written by `FINISH`.
    """

    kernel: int
    arm: int
    reward: float
    context: FloatArray
    outcome: FloatArray


@kernel
def pass_round(tables: Any, state: FloatArray) -> None:
    """Pass a round whose outcome is pending: the clock advances, but nothing is learned."""
    state[SCALARS, ROUND] += 1.0


@inlined
def single_step(
    choose: Callable[..., int],
    wait: Callable[..., None],
    update: Callable[..., None],
    finish: Callable[..., None],
    tables: Any,
    step: Step,
    rng: np.random.Generator,
    state: FloatArray,
) -> int:
    """Call one kernel of a design; returns the arm if it chooses, otherwise -1.

    Shapes: state (rows, columns).
    """
    arm = -1
    if step.kernel == CHOOSE:
        arm = choose(tables, state, step.context, rng)
    elif step.kernel == WAIT:
        wait(tables, state)
    elif step.kernel == UPDATE:
        update(tables, state, step.context, step.arm, step.reward, rng)
    else:
        finish(tables, state, step.outcome)
    return arm


@kernel
def draw_arrivals(
    environment: EnvironmentTables, begin: int, end: int, rng: np.random.Generator, arrivals: FloatArray
) -> None:
    """Write each context's number of arrivals in rounds begin to end (exclusive, from 0)."""
    n_features = environment.n_features
    for feature in range(n_features):
        arrivals[feature] = 0.0
    step = begin
    while step < end:
        period = step // environment.period
        row = period % environment.arrivals.shape[0]
        until = end
        if environment.arrivals.shape[0] > 1:
            until = min(end, (period + 1) * environment.period)
        left = until - step
        before = 0.0
        for feature in range(n_features - 1):
            share = (environment.arrivals[row, feature] - before) / max(1.0 - before, 1e-300)
            count = rng.binomial(left, min(max(share, 0.0), 1.0))
            arrivals[feature] += count
            left -= count
            before = environment.arrivals[row, feature]
        arrivals[n_features - 1] += left
        step = until


@kernel
def _draw_one(mean: float, rng: np.random.Generator) -> float:
    """One 0/1 reward: what `rng.binomial(1, mean)` returns, without its logarithm and exponential."""
    if mean == 0.0:
        return 0.0
    rare = rng.random() > max(mean, 1.0 - mean)
    return 1.0 if rare == (mean <= 0.5) else 0.0


@kernel
def draw_arm(
    environment: EnvironmentTables,
    feature: int,
    arm: int,
    count: int,
    rng: np.random.Generator,
    tally: FloatArray,
) -> float:
    """Sum of `count` 0/1 or normal rewards of a context and arm, added to the (features, arms, 3) tally."""
    if count == 0:
        return 0.0
    mean = environment.location[feature, arm]
    if environment.kind == NORMAL:
        scale = environment.scale[feature, arm]
        total = count * mean + math.sqrt(count) * scale * rng.standard_normal()
        squares = total * total / count
        if count > 1:
            squares += scale * scale * rng.chisquare(count - 1.0)
    else:
        total = _draw_one(mean, rng) if count == 1 else float(rng.binomial(count, mean))
        squares = total
    tally[feature, arm, 0] += count
    tally[feature, arm, 1] += total
    tally[feature, arm, 2] += squares
    return float(total)
