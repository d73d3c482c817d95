"""Randomised play-the-winner: arms are drawn from an urn, to which successful arms add balls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from numpy.random import Generator

from adaptinf.compilation import compiled, kernel
from adaptinf.designs.base import Design, Needs
from adaptinf.log import DesignTraits
from adaptinf.parameters import Positive
from adaptinf.privacy.noise import uniform
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.replicate import Program, written_arrays
from adaptinf.simulation.run import (
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

_ADDED, _ROWS = 1, 2
_SCALAR_COLUMNS = 8


class _Tables(NamedTuple):
    """An arm has `initial` balls plus those added so far, which its row of the state contains."""

    n_arms: int
    initial: float
    added: float
    status: IntArray
    propensity: FloatArray
    released: FloatArray


@kernel
def _choose(tables: _Tables, state: FloatArray, context: FloatArray, source: Any) -> int:
    total = 0.0
    for arm in range(tables.n_arms):
        total += tables.initial + state[_ADDED, arm]
    if tables.propensity.shape[0] > 0:
        for arm in range(tables.n_arms):
            tables.propensity[arm] = (tables.initial + state[_ADDED, arm]) / total
    left = uniform(source) * total
    for arm in range(tables.n_arms - 1):
        left -= tables.initial + state[_ADDED, arm]
        if left < 0.0:
            return arm
    return int(tables.n_arms - 1)


@kernel
def _update(
    tables: _Tables, state: FloatArray, context: FloatArray, arm: int, reward: float, source: Any
) -> None:
    state[SCALARS, ROUND] += 1.0
    success = min(max(reward, 0.0), 1.0)
    for other in range(tables.n_arms):
        if other == arm:
            state[_ADDED, other] += tables.added * success
        else:
            state[_ADDED, other] += tables.added * (1.0 - success) / (tables.n_arms - 1)


@compiled
def _run_block(tables: _Tables, world: World, rng: Generator, state: FloatArray, results: Results) -> None:
    simulate_block(_choose, _update, no_outcome, tables, world, rng, state, results)


@compiled
def _run_step(tables: _Tables, step: Step, rng: Generator, state: FloatArray) -> int:
    return single_step(_choose, pass_round, _update, no_outcome, tables, step, rng, state)


@dataclass(frozen=True, kw_only=True)
class PlayTheWinner(Design):
    """Randomised play-the-winner: draw the arm from an urn, and add balls for successful arms.

    Parameters
    ----------
    initial : float
        Initial number of balls of each arm.
    added : float
        Number of balls added after each round: to the arm itself after a success; to the other arms, in equal
        shares, after a failure.

    Raises
    ------
    ParameterError
        If a number of balls is not positive; when run, if rewards may lie outside [0, 1].

    Notes
    -----
    An arm's propensity is its share of the balls, known exactly and never 0. A reward r between 0 and 1
    counts as a fraction r of a success and 1 - r of a failure; rewards outside this range are clipped. Every
    response is assumed to be known before the next round.

    References
    ----------
    Wei, L. J. and Durham, S. (1978). The randomized play-the-winner rule in medical trials. Journal of the
    American Statistical Association 73, 840-843.

    Examples
    --------
    >>> import adaptinf as ai
    >>> rewards = ai.environments.Tableau([[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]])
    >>> log = ai.designs.PlayTheWinner().run(rewards, 3, rng=0)
    >>> log.arrays.propensities[0].tolist()
    [0.5, 0.5]
    """

    initial: Positive = 1.0
    added: Positive = 1.0

    pending: ClassVar[str] = "any"
    needs: ClassVar[Needs] = Needs(min_arms=2, unit_rewards=True)

    @property
    def traits(self) -> DesignTraits:
        """Traits: an urn that ignores contexts."""
        return DesignTraits(uses_context="no")

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """Compiled entry point and tables for an environment and a horizon."""
        n_arms = environment.n_arms
        tables = _Tables(
            n_arms=n_arms,
            initial=float(self.initial),
            added=float(self.added),
            **written_arrays(n_arms if recording else 0),
        )
        return Program(_run_block, tables, (_ROWS, max(n_arms, _SCALAR_COLUMNS)), step=_run_step)
