"""Designs that explore without using outcomes: uniform assignment and epsilon-greedy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from adaptinf.compilation import compiled, kernel
from adaptinf.designs.base import Design
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.log import DesignTraits, Floor, Outputs
from adaptinf.parameters import NonNegative, Unit, Whole
from adaptinf.privacy.noise import uniform
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.replicate import Program, Run, written_arrays
from adaptinf.simulation.run import (
    RELEASED,
    ROUND,
    SCALARS,
    Results,
    Step,
    World,
    no_outcome,
    pass_round,
    simulate_block,
    single_step,
)
from adaptinf.typing import FloatArray, IntArray

_COUNT, _SUM, _ROWS = 1, 2, 3
_GREEDY = 2
_SCALAR_COLUMNS = 8


class _UniformTables(NamedTuple):
    """The number of arms, and the arrays that kernels write."""

    n_arms: int
    status: IntArray
    propensity: FloatArray
    released: FloatArray


@kernel
def _choose_uniform(tables: _UniformTables, state: FloatArray, context: FloatArray, source: Any) -> int:
    arm = min(int(uniform(source) * tables.n_arms), tables.n_arms - 1)
    if tables.propensity.shape[0] > 0:
        tables.propensity[:] = 1.0 / tables.n_arms
    return arm


@kernel
def _pass_uniform(
    tables: _UniformTables, state: FloatArray, context: FloatArray, arm: int, reward: float, source: Any
) -> None:
    pass_round(tables, state)


@compiled
def _run_uniform_block(
    tables: _UniformTables, world: World, rng: Generator, state: FloatArray, results: Results
) -> None:
    simulate_block(_choose_uniform, _pass_uniform, no_outcome, tables, world, rng, state, results)


@compiled
def _run_uniform_step(tables: _UniformTables, step: Step, rng: Generator, state: FloatArray) -> int:
    return single_step(_choose_uniform, pass_round, _pass_uniform, no_outcome, tables, step, rng, state)


class _Tables(NamedTuple):
    """Exploration at round t is min(1, exploration * t^-decay); the greedy arm is updated once per batch."""

    n_arms: int
    exploration: float
    decay: float
    batch_size: int
    status: IntArray
    propensity: FloatArray
    released: FloatArray


@kernel
def _greedy(tables: _Tables, state: FloatArray) -> int:
    """Arm with the highest sample mean; arms that were never pulled come first."""
    best = 0
    highest = -np.inf
    for arm in range(tables.n_arms):
        mean = np.inf
        if state[_COUNT, arm] > 0.0:
            mean = state[_SUM, arm] / state[_COUNT, arm]
        if mean > highest:
            highest = mean
            best = arm
    return best


@kernel
def _choose(tables: _Tables, state: FloatArray, context: FloatArray, source: Any) -> int:
    step = int(state[SCALARS, ROUND])
    explore = min(1.0, tables.exploration * math.pow(step + 1.0, -tables.decay))
    if step % tables.batch_size == 0:
        state[SCALARS, _GREEDY] = _greedy(tables, state)
    arm = int(state[SCALARS, _GREEDY])
    greedy = arm
    draw = uniform(source)
    if draw < explore:
        arm = min(int(draw / explore * tables.n_arms), tables.n_arms - 1)
    if tables.propensity.shape[0] > 0:
        tables.propensity[:] = explore / tables.n_arms
        tables.propensity[greedy] += 1.0 - explore
    return arm


@kernel
def _update(
    tables: _Tables, state: FloatArray, context: FloatArray, arm: int, reward: float, source: Any
) -> None:
    state[SCALARS, ROUND] += 1.0
    state[_COUNT, arm] += 1.0
    state[_SUM, arm] += reward


@compiled
def _run_block(tables: _Tables, world: World, rng: Generator, state: FloatArray, results: Results) -> None:
    simulate_block(_choose, _update, no_outcome, tables, world, rng, state, results)


@compiled
def _run_step(tables: _Tables, step: Step, rng: Generator, state: FloatArray) -> int:
    return single_step(_choose, pass_round, _update, no_outcome, tables, step, rng, state)


@dataclass(frozen=True, kw_only=True)
class NonAdaptive(Design):
    """Base of designs whose actions do not depend on any data, so they are 0-differentially private."""

    pending: ClassVar[str] = "any"

    def guarantee(self, horizon: int, n_arms: int) -> PrivacyGuarantee:
        """The actions do not depend on the data: epsilon is 0 for whole records."""
        self._refuse_sizes(horizon, n_arms)
        return PrivacyGuarantee(epsilon=0.0, unit="record")

    def _feedback_rounds(self, run: Run, horizon: int) -> int | None:
        return 0

    def _released_rounds(self, run: Run, horizon: int) -> int | None:
        return 0


@dataclass(frozen=True, kw_only=True)
class Uniform(NonAdaptive):
    """Assign each arm with the same probability in every round.

    Notes
    -----
    The actions do not depend on any data, so they are 0-differentially private, and ordinary statistics are
    valid.

    Examples
    --------
    >>> import adaptinf as ai
    >>> log = ai.designs.Uniform().run(ai.environments.BernoulliArms([0.5, 0.5]), horizon=10, rng=0)
    >>> log.arrays.propensity.tolist() == [0.5] * 10
    True
    """

    growing: ClassVar[bool] = True

    @property
    def traits(self) -> DesignTraits:
        """Traits: nothing affects the choice."""
        outputs = Outputs(propensities="outputs")
        return DesignTraits(adapts=False, uses_context="no", floor=Floor(1.0, shared=True), outputs=outputs)

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """Compiled entry point and tables for an environment and a horizon."""
        tables = _UniformTables(environment.n_arms, **written_arrays(environment.n_arms if recording else 0))
        return Program(_run_uniform_block, tables, (SCALARS + 1, RELEASED + 1), step=_run_uniform_step)


@dataclass(frozen=True, kw_only=True)
class EpsilonGreedy(Design):
    """Pull the arm with the highest sample mean or, with a small probability, any arm.

    Parameters
    ----------
    exploration : float
        Probability of drawing an arm uniformly, in [0, 1] (the epsilon in the name; not a privacy parameter).
    decay : float
        Exploration at round t is min(1, exploration * t^-decay).
    batch_size : int
        Number of rounds between updates of the greedy arm.

    Notes
    -----
    An arm that has never been pulled is treated as the best one. Propensities are known: exploration / K for
    every arm, plus 1 - exploration for the greedy arm.

    References
    ----------
    Sutton, R. S. and Barto, A. G. (2018). Reinforcement Learning, 2nd edition, chapter 2.

    Examples
    --------
    >>> import adaptinf as ai
    >>> arms = ai.environments.BernoulliArms([0.9, 0.1])
    >>> log = ai.designs.EpsilonGreedy(exploration=0.2).run(arms, horizon=100, rng=0)
    >>> sorted(set(log.arrays.propensity.round(2).tolist()))
    [0.1, 0.9]
    """

    exploration: Unit = 0.1
    decay: NonNegative = 0.0
    batch_size: Whole = 1

    pending: ClassVar[str] = "any"
    growing: ClassVar[bool] = True

    @property
    def traits(self) -> DesignTraits:
        """Traits: exploration keeps every propensity above a floor that decays at the same rate."""
        return DesignTraits(uses_context="no", floor=Floor(self.exploration, self.decay, shared=True))

    def _batches(self, horizon: int, n_arms: int) -> Any:
        return None if self.batch_size == 1 else np.arange(horizon) // self.batch_size

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """Compiled entry point and tables for an environment and a horizon."""
        tables = _Tables(
            n_arms=environment.n_arms,
            exploration=float(self.exploration),
            decay=float(self.decay),
            batch_size=int(self.batch_size),
            **written_arrays(environment.n_arms if recording else 0),
        )
        return Program(_run_block, tables, (_ROWS, max(environment.n_arms, _SCALAR_COLUMNS)), step=_run_step)
