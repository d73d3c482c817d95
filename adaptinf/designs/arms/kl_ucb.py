"""KL-UCB: upper confidence bounds based on the Kullback-Leibler divergence of Bernoulli distributions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from numpy.random import Generator

from adaptinf.compilation import compiled, kernel
from adaptinf.designs.base import Design, Needs
from adaptinf.log import DesignTraits
from adaptinf.parameters import NonNegative
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.replicate import Program, written_arrays
from adaptinf.simulation.run import (
    ROUND,
    SCALARS,
    Results,
    Step,
    World,
    certain_arm,
    no_outcome,
    pass_round,
    simulate_block,
    single_step,
)
from adaptinf.typing import FloatArray, IntArray

_COUNT, _SUM = 1, 2
_PULLED = 2
_SCALAR_COLUMNS = 3
# Newton's method needs about six steps; more are needed only for means within rounding error of 0 or 1.
_STEPS = 60
_CLOSE = 1e-14


class _Tables(NamedTuple):
    """The bound for an arm's divergence is (log t + log_log * log log t) / pulls."""

    n_arms: int
    log_log: float
    status: IntArray
    propensity: FloatArray
    released: FloatArray


@kernel
def _upper(mean: float, budget: float) -> float:
    """A point above the index: by Pinsker's inequality, or by the divergence without its term in log q."""
    pinsker = mean + math.sqrt(0.5 * budget)
    if mean >= 1.0:
        return 1.0
    entropy = 0.0
    if mean > 0.0:
        entropy = -mean * math.log(mean) - (1.0 - mean) * math.log1p(-mean)
    # Since -mean log q >= 0, kl(mean, q) >= -entropy - (1 - mean) log(1 - q), and the root of this bound is
    # an upper bound of the index.
    return min(pinsker, -math.expm1(-(budget + entropy) / (1.0 - mean)))


@kernel
def _index(mean: float, budget: float, start: float) -> float:
    """The largest q with kl(mean, q) <= budget, by Newton's method from the right, where kl is convex."""
    q = start
    if mean <= 0.0 or mean >= 1.0 or q >= 1.0:
        return q  # Here `start` is the index itself, or equals 1 up to rounding error.
    for _ in range(_STEPS):
        gap = mean * math.log(mean / q) + (1.0 - mean) * math.log((1.0 - mean) / (1.0 - q)) - budget
        # The slope (q - mean) / (q (1 - q)) is 0 at the mean, which q may reach by rounding.
        step = gap * q * (1.0 - q) / (q - mean) if q > mean else 0.0
        q -= step
        if step <= _CLOSE * q:
            break
    return max(q, mean)


@kernel
def _choose(tables: _Tables, state: FloatArray, context: FloatArray, source: Any) -> int:
    best = 0
    if state[SCALARS, _PULLED] < tables.n_arms:
        while state[_COUNT, best] > 0.0:
            best += 1
    else:
        log_now = math.log(state[SCALARS, ROUND] + 1.0)
        budget = log_now + tables.log_log * math.log(max(log_now, 1.0))
        highest = -1.0
        for arm in range(tables.n_arms):
            mean = state[_SUM, arm] / state[_COUNT, arm]
            own = budget / state[_COUNT, arm]
            start = _upper(mean, own)
            # The upper bound is cheap to compute, and an arm whose bound does not exceed the best index
            # cannot be chosen.
            if start > highest:
                index = _index(mean, own, start)
                if index > highest:
                    highest = index
                    best = arm
    certain_arm(tables, best)
    return best


@kernel
def _update(
    tables: _Tables, state: FloatArray, context: FloatArray, arm: int, reward: float, source: Any
) -> None:
    state[SCALARS, ROUND] += 1.0
    if state[_COUNT, arm] == 0.0:
        state[SCALARS, _PULLED] += 1.0
    state[_COUNT, arm] += 1.0
    state[_SUM, arm] += min(max(reward, 0.0), 1.0)


@compiled
def _run_block(tables: _Tables, world: World, rng: Generator, state: FloatArray, results: Results) -> None:
    simulate_block(_choose, _update, no_outcome, tables, world, rng, state, results)


@compiled
def _run_step(tables: _Tables, step: Step, rng: Generator, state: FloatArray) -> int:
    return single_step(_choose, pass_round, _update, no_outcome, tables, step, rng, state)


@dataclass(frozen=True, kw_only=True)
class KLUCB(Design):
    """KL-UCB: pull the arm with the highest mean that is still compatible with its rewards.

    Parameters
    ----------
    log_log : float
        The constant c in log t + c log log t. The regret bound is proved for 3; the authors recommend 0, the
        default, for practice.

    Notes
    -----
    The index of an arm with mean m after N pulls is the largest q with N kl(m, q) <= log t + c log log t,
    where kl is the Kullback-Leibler divergence of Bernoulli distributions; rewards must lie in [0, 1]. For
    0/1 rewards, the regret divided by log t tends to the lower bound of Lai and Robbins. Each arm is first
    pulled once, in order, and ties are broken in favour of the first arm; log log t is taken to be 0 before
    round 3. Propensities are 0 or 1, so inverse weighting is impossible. Whether the arm counts are stable is
    unknown.

    References
    ----------
    Garivier, A. and Cappé, O. (2011). The KL-UCB algorithm for bounded stochastic bandits and beyond. COLT.

    Examples
    --------
    >>> import adaptinf as ai
    >>> log = ai.designs.KLUCB().run(ai.environments.BernoulliArms([0.9, 0.5]), horizon=200, rng=0)
    >>> int((log.arrays.action == 0).sum()) > 150
    True
    """

    log_log: NonNegative = 0.0

    pending: ClassVar[str] = "any"
    growing: ClassVar[bool] = True
    needs: ClassVar[Needs] = Needs(unit_rewards=True)

    @property
    def traits(self) -> DesignTraits:
        """No coins."""
        return DesignTraits(uses_context="no", own_coins=False)

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """Compiled entry point and tables for an environment and a horizon."""
        n_arms = environment.n_arms
        tables = _Tables(
            n_arms=n_arms,
            log_log=float(self.log_log),
            **written_arrays(n_arms if recording else 0),
        )
        return Program(_run_block, tables, (_SUM + 1, max(n_arms, _SCALAR_COLUMNS)), step=_run_step)
