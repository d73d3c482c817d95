"""ConSE: successive elimination by context, then a randomised trial of data-dependent length."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from adaptinf.compilation import compiled, kernel
from adaptinf.designs.base import Design, Needs
from adaptinf.designs.run_results import Status
from adaptinf.log import DesignTraits
from adaptinf.parameters import Unit
from adaptinf.privacy.noise import uniform
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.replicate import Program, written_arrays
from adaptinf.simulation.run import (
    BERNOULLI,
    ROUND,
    SCALARS,
    EnvironmentTables,
    Results,
    Step,
    World,
    draw_arm,
    draw_arrivals,
    pass_round,
    simulate_block,
    single_step,
)
from adaptinf.typing import FloatArray, IntArray

LEARNING_RANDOMISED, LEARNING_BETTER, ESTIMATION_RANDOMISED, ESTIMATION_BETTER = range(4)
"""Status codes: the phase, and whether a fair coin determined the arm."""

CONSE_STATUSES = (
    Status("learning", randomised=True),
    Status("learning", randomised=False),
    Status("estimation", randomised=True),
    Status("estimation", randomised=False),
)

_T_MIN = 2
_ARRIVALS, _EPOCH, _IN_EPOCH, _KEPT, _SECOND = range(1, 6)
_COUNT, _SUM, _POOLED_COUNT, _POOLED_SUM = 6, 8, 10, 12
_ROWS = 14
_SCALAR_COLUMNS = 8
_EPOCHS = 40
"""Largest number of epochs for any horizon: epoch 40 takes over 32 * 4^40 rounds."""


class _Tables(NamedTuple):
    """Lengths and thresholds by epoch (entry 0 is unused)."""

    horizon: int
    n_features: int
    alpha: float
    lengths: FloatArray
    thresholds: FloatArray
    status: IntArray
    propensity: FloatArray
    released: FloatArray


@kernel
def write_propensity(propensity: FloatArray, treated: float) -> None:
    """Write the propensities of two arms into an array, if there is one."""
    if propensity.shape[0] > 0:
        propensity[0] = 1.0 - treated
        propensity[1] = treated


@kernel
def estimation_budget(least: float, totals: FloatArray, n_features: int, alpha: float) -> float:
    """T_min: the larger of `least` and the smallest feature's expected arrivals to the power 1 - alpha."""
    smallest = totals[0]
    for feature in range(n_features):
        smallest = min(smallest, totals[feature])
    return max(least, math.pow(smallest, 1.0 - alpha))


@kernel
def _choose(tables: _Tables, state: FloatArray, context: FloatArray, source: Any) -> int:
    feature = int(context[0])
    first_half = state[SCALARS, ROUND] < tables.horizon // 2
    if first_half:
        randomised = state[_KEPT, feature] == 0.0
    else:
        randomised = state[_SECOND, feature] < math.ceil(state[SCALARS, _T_MIN])
    if randomised:
        tables.status[0] = LEARNING_RANDOMISED if first_half else ESTIMATION_RANDOMISED
        write_propensity(tables.propensity, 0.5)
        return 1 if uniform(source) < 0.5 else 0
    tables.status[0] = LEARNING_BETTER if first_half else ESTIMATION_BETTER
    arm = int(state[_KEPT, feature]) - 1
    write_propensity(tables.propensity, float(arm))
    return arm


@kernel
def _epoch_ends(tables: _Tables, state: FloatArray, feature: int) -> None:
    """Compare the means of the epoch, and start the next one."""
    epoch = int(state[_EPOCH, feature])
    counts = state[_COUNT, feature], state[_COUNT + 1, feature]
    if counts[0] > 0.0 and counts[1] > 0.0:
        gap = state[_SUM + 1, feature] / counts[1] - state[_SUM, feature] / counts[0]
        if abs(gap) > tables.thresholds[epoch]:
            state[_KEPT, feature] = 2.0 if gap > 0.0 else 1.0
    state[_EPOCH, feature] = min(epoch + 1, tables.lengths.shape[0] - 1)
    state[_IN_EPOCH, feature] = 0.0
    for arm in range(2):
        state[_COUNT + arm, feature] = 0.0
        state[_SUM + arm, feature] = 0.0


@kernel
def _half_time(tables: _Tables, state: FloatArray) -> None:
    """Fix the length of the trial; an undecided context gets the arm with the higher pooled mean."""
    state[SCALARS, _T_MIN] = estimation_budget(
        math.log(tables.horizon), state[_ARRIVALS], tables.n_features, tables.alpha
    )
    for feature in range(tables.n_features):
        if state[_KEPT, feature] == 0.0:
            control = state[_POOLED_SUM, feature] / max(state[_POOLED_COUNT, feature], 1.0)
            treated = state[_POOLED_SUM + 1, feature] / max(state[_POOLED_COUNT + 1, feature], 1.0)
            state[_KEPT, feature] = 2.0 if treated > control else 1.0


@kernel
def _update(
    tables: _Tables, state: FloatArray, context: FloatArray, arm: int, reward: float, source: Any
) -> None:
    state[SCALARS, ROUND] += 1.0
    feature = int(context[0])
    half = tables.horizon // 2
    if state[SCALARS, ROUND] <= half:
        state[_ARRIVALS, feature] += 1.0
        if tables.status[0] == LEARNING_RANDOMISED:
            if state[_EPOCH, feature] == 0.0:
                state[_EPOCH, feature] = 1.0
            state[_IN_EPOCH, feature] += 1.0
            state[_COUNT + arm, feature] += 1.0
            state[_SUM + arm, feature] += reward
            state[_POOLED_COUNT + arm, feature] += 1.0
            state[_POOLED_SUM + arm, feature] += reward
            if state[_IN_EPOCH, feature] >= tables.lengths[int(state[_EPOCH, feature])]:
                _epoch_ends(tables, state, feature)
        if state[SCALARS, ROUND] == half:
            _half_time(tables, state)
    else:
        state[_SECOND, feature] += 1.0


@kernel
def _finish(tables: _Tables, state: FloatArray, outcome: FloatArray) -> None:
    outcome[0] = state[SCALARS, _T_MIN]
    for feature in range(tables.n_features):
        outcome[1 + feature] = state[_KEPT, feature] - 1.0


@compiled
def _run_block(tables: _Tables, world: World, rng: Generator, state: FloatArray, results: Results) -> None:
    simulate_block(_choose, _update, _finish, tables, world, rng, state, results)


@compiled
def _run_step(tables: _Tables, step: Step, rng: Generator, state: FloatArray) -> int:
    return single_step(_choose, pass_round, _update, _finish, tables, step, rng, state)


@compiled
def _run_epochs(tables: _Tables, world: World, rng: Generator, state: FloatArray, results: Results) -> None:
    environment, tallies = world.environment, results.tallies
    half = world.horizon // 2
    for run in range(tallies.shape[0]):
        state[:] = 0.0
        draw_arrivals(environment, 0, half, rng, state[_ARRIVALS])
        for feature in range(tables.n_features):
            left = int(state[_ARRIVALS, feature])
            state[_EPOCH, feature] = 1.0
            while left > 0 and state[_KEPT, feature] == 0.0:
                length = int(np.ceil(tables.lengths[int(state[_EPOCH, feature])]))
                stretch = min(length, left)
                _randomise(environment, feature, stretch, rng, state, tallies[run, LEARNING_RANDOMISED])
                left -= stretch
                if stretch == length:
                    _epoch_ends(tables, state, feature)
            better = int(state[_KEPT, feature]) - 1
            if left > 0:
                draw_arm(environment, feature, better, left, rng, tallies[run, LEARNING_BETTER])
        _half_time(tables, state)
        draw_arrivals(environment, half, world.horizon, rng, state[_SECOND])
        trial = int(np.ceil(state[SCALARS, _T_MIN]))
        for feature in range(tables.n_features):
            arrivals = int(state[_SECOND, feature])
            included = min(arrivals, trial)
            _randomise(environment, feature, included, rng, state, tallies[run, ESTIMATION_RANDOMISED])
            better = int(state[_KEPT, feature]) - 1
            draw_arm(environment, feature, better, arrivals - included, rng, tallies[run, ESTIMATION_BETTER])
        _finish(tables, state, results.outcomes[run])


@kernel
def _randomise(
    environment: EnvironmentTables,
    feature: int,
    arrivals: int,
    rng: Generator,
    state: FloatArray,
    tally: FloatArray,
) -> None:
    """Assign arrivals by fair coins, and add their rewards to the sums of the epoch."""
    treated = rng.binomial(arrivals, 0.5)
    for arm in range(2):
        count = treated if arm == 1 else arrivals - treated
        total = draw_arm(environment, feature, arm, count, rng, tally)
        state[_COUNT + arm, feature] += count
        state[_SUM + arm, feature] += total
        state[_POOLED_COUNT + arm, feature] += count
        state[_POOLED_SUM + arm, feature] += total


@dataclass(frozen=True, kw_only=True)
class ConSE(Design):
    """Contextual successive elimination, then a randomised trial, for two arms and finitely many contexts.

    Parameters
    ----------
    alpha : float
        Trade-off in [0, 1]: 0 devotes everything to estimation, 1 to regret.

    Raises
    ------
    ParameterError
        If alpha is not in [0, 1]; when run, if the environment's rewards may lie outside [0, 1].

    Notes
    -----
    First half: arrivals of each context are randomised by fair coins, in epochs of R_e arrivals, until the
    means of the two arms differ by more than 2 h_e; later arrivals receive the better arm. Second half: the
    first T_min arrivals of each context are randomised, where T_min = max(log n, min_j f_j^(1 - alpha)) and
    f_j is the number of arrivals of context j in the first half; the others receive the better arm. The
    paper's epoch 0 involves log 0, so epochs start at 1 here. T_min is rounded up. If half a horizon is too
    short for one epoch (n below about 2,750), nothing is learned: the first half is then a randomised trial,
    and the second half starts from its means. A context that is undecided at half-time is assigned the arm
    with the higher mean over all of its randomised arrivals; the mean of an arm that was never pulled is
    taken to be 0, and ties are broken in favour of the first arm.

    Rewards are assumed to lie in [0, 1]. Given the first half, the randomised rounds of the second half are a
    randomised trial, so differences in means over them are unbiased. Later propensities are 0 or 1.

    References
    ----------
    Li, J., Shi, K. and Simchi-Levi, D. (2024). Privacy preserving adaptive experiment design. ICML.

    Examples
    --------
    >>> import adaptinf as ai
    >>> environment = ai.environments.FiniteContext([0.5, 0.5], [[0.4, 0.7], [0.6, 0.3]])
    >>> log = ai.designs.ConSE(alpha=0.2).run(environment, horizon=20_000, rng=0)
    >>> log.phases
    ('learning', 'estimation')
    """

    alpha: Unit = 0.0

    statuses: ClassVar[tuple[Status, ...]] = CONSE_STATUSES
    needs: ClassVar[Needs] = Needs(
        min_arms=2, max_arms=2, min_horizon=2, vectors="refused", unit_rewards=True
    )

    @property
    def traits(self) -> DesignTraits:
        """Traits: the choice depends on the group."""
        return DesignTraits(uses_context="groups", arm_means="by-group")

    def outcome_names(self, n_features: int) -> tuple[str, ...]:
        """Names of the values reported at the end of a run."""
        return ("t_min", *["better_arm"] * n_features)

    def _has_shortcut(self, environment: Environment) -> bool:
        return environment.law == BERNOULLI

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """Compiled entry point and tables for an environment and a horizon."""
        lengths, widths = epoch_sequences(horizon)
        tables = _Tables(
            horizon=horizon,
            n_features=environment.n_features,
            alpha=float(self.alpha),
            lengths=lengths,
            thresholds=2.0 * widths,
            **written_arrays(2 if recording else 0),
        )
        return Program(
            _run_block if by_rounds else _run_epochs,
            tables,
            (_ROWS, max(environment.n_features, _SCALAR_COLUMNS)),
            n_statuses=len(CONSE_STATUSES),
            step=_run_step,
            n_outcomes=len(self.outcome_names(environment.n_features)),
        )


def epoch_sequences(horizon: int, epsilon: float = 1.0) -> tuple[FloatArray, FloatArray]:
    """Lengths R_e and half-widths h_e of the epochs; entry 0 is unused."""
    epoch = np.arange(1, _EPOCHS)
    gap = 0.5**epoch
    wide = np.log(16.0 * horizon * epoch**2)
    lengths = np.maximum(32.0 * wide / gap**2, 8.0 * np.log(8.0 * horizon * epoch**2) / (epsilon * gap)) + 1.0
    widths = np.sqrt(wide / (2.0 * lengths))
    return np.concatenate([[np.inf], lengths]), np.concatenate([[np.inf], widths])
