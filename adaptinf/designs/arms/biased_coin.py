"""Response-adaptive randomisation towards a target: doubly adaptive biased coins, ERADE, permuted blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from adaptinf.compilation import compiled, kernel
from adaptinf.designs.arms.uniform import NonAdaptive
from adaptinf.designs.base import Design, Needs
from adaptinf.log import DesignTraits, Outputs
from adaptinf.parameters import Count, NonNegative, OneOf, Unit
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

TARGETS = ("neyman", "rsihr")
"""Target shares of the arms, proportional to sqrt(p (1 - p)) and to sqrt(p) for success rates p."""
_COUNT, _SUM, _SHARE, _ROWS = 1, 2, 3, 4
_SCALAR_COLUMNS = 8
_COIN, _ERADE, _BLOCKS = range(3)


class _Tables(NamedTuple):
    """A kind of coin, its target and its parameter; `block` rounds of each arm are assigned in random order.

    Blocks make up the burn-in, or the whole trial.
    """

    n_arms: int
    kind: int
    square_root: int
    strength: float
    block: int
    status: IntArray
    propensity: FloatArray
    released: FloatArray


@kernel
def _write_block(tables: _Tables, state: FloatArray, done: int) -> None:
    """Shares of the arms in the remaining rounds of a block."""
    blocks = done // (tables.block * tables.n_arms)
    left = tables.block * tables.n_arms - done % (tables.block * tables.n_arms)
    for arm in range(tables.n_arms):
        state[_SHARE, arm] = (tables.block * (blocks + 1) - state[_COUNT, arm]) / left


@kernel
def _write_target(tables: _Tables, state: FloatArray) -> None:
    """Target shares at the estimates (successes + 1) / (rounds + 2)."""
    total = 0.0
    for arm in range(tables.n_arms):
        rate = (state[_SUM, arm] + 1.0) / (state[_COUNT, arm] + 2.0)
        state[_SHARE, arm] = math.sqrt(rate if tables.square_root == 1 else rate * (1.0 - rate))
        total += state[_SHARE, arm]
    for arm in range(tables.n_arms):
        state[_SHARE, arm] /= total


@kernel
def _write_coin(tables: _Tables, state: FloatArray, done: int) -> None:
    """Hu and Zhang's allocation: target * (target / share so far)^strength, scaled to sum to 1."""
    total = 0.0
    for arm in range(tables.n_arms):
        ratio = state[_SHARE, arm] * done / max(state[_COUNT, arm], 0.5)
        state[_SHARE, arm] *= math.pow(ratio, tables.strength)
        total += state[_SHARE, arm]
    for arm in range(tables.n_arms):
        state[_SHARE, arm] /= total


@kernel
def _write_erade(tables: _Tables, state: FloatArray, done: int) -> None:
    """Multiply the target of the arm that exceeds it by `strength`; if neither arm does, use the targets."""
    over = state[_COUNT, 0] - done * state[_SHARE, 0]
    if over > 0.0:
        state[_SHARE, 0] *= tables.strength
        state[_SHARE, 1] = 1.0 - state[_SHARE, 0]
    elif over < 0.0:
        state[_SHARE, 1] *= tables.strength
        state[_SHARE, 0] = 1.0 - state[_SHARE, 1]


@kernel
def _choose(tables: _Tables, state: FloatArray, context: FloatArray, source: Any) -> int:
    done = int(state[SCALARS, ROUND])
    if tables.kind == _BLOCKS or done < tables.block * tables.n_arms:
        _write_block(tables, state, done)
    else:
        _write_target(tables, state)
        if tables.kind == _ERADE:
            _write_erade(tables, state, done)
        elif done > 0:
            _write_coin(tables, state, done)
    if tables.propensity.shape[0] > 0:
        for arm in range(tables.n_arms):
            tables.propensity[arm] = state[_SHARE, arm]
    left, last = uniform(source), 0
    for arm in range(tables.n_arms):
        if state[_SHARE, arm] > 0.0:
            last = arm
            left -= state[_SHARE, arm]
            if left < 0.0:
                return arm
    return last


@kernel
def _update(
    tables: _Tables, state: FloatArray, context: FloatArray, arm: int, reward: float, source: Any
) -> None:
    state[SCALARS, ROUND] += 1.0
    state[_COUNT, arm] += 1.0
    state[_SUM, arm] += min(max(reward, 0.0), 1.0)


@compiled
def _run_block(tables: _Tables, world: World, rng: Generator, state: FloatArray, results: Results) -> None:
    simulate_block(_choose, _update, no_outcome, tables, world, rng, state, results)


@compiled
def _run_step(tables: _Tables, step: Step, rng: Generator, state: FloatArray) -> int:
    return single_step(_choose, pass_round, _update, no_outcome, tables, step, rng, state)


def _program(
    environment: Environment, recording: bool, *, kind: int, target: str, strength: float, block: int
) -> Program:
    n_arms = environment.n_arms
    tables = _Tables(
        n_arms=n_arms,
        kind=kind,
        square_root=int(target == "rsihr"),
        strength=float(strength),
        block=int(block),
        **written_arrays(n_arms if recording else 0),
    )
    return Program(_run_block, tables, (_ROWS, max(n_arms, _SCALAR_COLUMNS)), step=_run_step)


@dataclass(frozen=True, kw_only=True)
class _Coin(Design):
    """A design whose coin favours estimated target shares, after a burn-in."""

    rule: Annotated[str, OneOf(*TARGETS)] = "neyman"
    burn_in: Annotated[int, Count(0)] = 0

    pending: ClassVar[str] = "any"
    needs: ClassVar[Needs] = Needs(min_arms=2, unit_rewards=True)

    @property
    def traits(self) -> DesignTraits:
        """Traits: a biased coin that ignores contexts."""
        return DesignTraits(uses_context="no")


@dataclass(frozen=True, kw_only=True)
class DBCD(_Coin):
    """Doubly adaptive biased coin: allocate towards a target that is estimated from the responses so far.

    Parameters
    ----------
    rule : {"neyman", "rsihr"}
        Target shares: proportional to sqrt(p (1 - p)) for success rates p, which minimises the variance of
        the difference of two arms, or to sqrt(p), which for two arms minimises the number of failures at a
        given variance.
    gamma : float
        Strength with which the share of each arm is pulled towards its target: with 0, arms are drawn
        according to the estimated target; larger values reduce the variance of the shares.
    burn_in : int
        Rounds of each arm at the start, in random order.

    Raises
    ------
    ParameterError
        If a parameter is invalid; when run, if rewards may lie outside [0, 1].

    Notes
    -----
    The success rate of an arm is estimated by (successes + 1) / (rounds + 2); a reward r between 0 and 1
    counts as a fraction r of a success, and rewards outside this range are clipped. With target shares rho
    and shares so far x, arm k is drawn with probability proportional to rho_k (rho_k / x_k)^gamma; an arm
    that has never been drawn is counted as half a round. Propensities are known exactly.

    References
    ----------
    Hu, F. and Zhang, L.-X. (2004). Asymptotic properties of doubly adaptive biased coin designs for
    multitreatment clinical trials. Annals of Statistics 32, 268-301. Rosenberger, W. F., Stallard, N.,
    Ivanova, A., Harper, C. N. and Ricks, M. L. (2001). Optimal adaptive designs for binary response trials.
    Biometrics 57, 909-913.

    Examples
    --------
    >>> import adaptinf as ai
    >>> design = ai.designs.DBCD(rule="rsihr", burn_in=5)
    >>> log = design.run(ai.environments.BernoulliArms([0.9, 0.1]), horizon=2_000, rng=0)
    >>> round(float((log.arrays.action == 0).mean()), 1)  # sqrt(.9) / (sqrt(.9) + sqrt(.1)) = .75
    0.8
    """

    gamma: NonNegative = 2.0

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """Compiled entry point and tables for one environment and horizon."""
        return _program(
            environment, recording, kind=_COIN, target=self.rule, strength=self.gamma, block=self.burn_in
        )


@dataclass(frozen=True, kw_only=True)
class ERADE(_Coin):
    """Efficient randomised adaptive design: a biased coin with two sides, for two arms.

    Parameters
    ----------
    rule : {"neyman", "rsihr"}
        Target shares, as in `DBCD`.
    alpha : float
        An arm that exceeds its target share is drawn with probability alpha times that share, with alpha in
        [0, 1]. Smaller values reduce the variance of the shares; .4 to .7 are usual.
    burn_in : int
        Rounds of each arm at the start, in random order.

    Raises
    ------
    ParameterError
        If a parameter is invalid; when run, if there are not two arms, or rewards may lie outside [0, 1].

    Notes
    -----
    The shares attain the lower bound of the variance among designs with this target. With alpha = 0, the arm
    that exceeds its target has propensity 0.

    References
    ----------
    Hu, F., Zhang, L.-X. and He, X. (2009). Efficient randomized-adaptive designs. Annals of Statistics 37,
    2543-2560.

    Examples
    --------
    >>> import adaptinf as ai
    >>> log = ai.designs.ERADE(burn_in=10).run(ai.environments.BernoulliArms([0.5, 0.5]), horizon=40, rng=0)
    >>> sorted(set(log.arrays.action[:20].tolist()))
    [0, 1]
    """

    alpha: Unit = 0.5

    needs: ClassVar[Needs] = Needs(min_arms=2, max_arms=2, unit_rewards=True)

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """Compiled entry point and tables for one environment and horizon."""
        return _program(
            environment, recording, kind=_ERADE, target=self.rule, strength=self.alpha, block=self.burn_in
        )


@dataclass(frozen=True, kw_only=True)
class PermutedBlocks(NonAdaptive):
    """Assign all arms equally often in every block, in random order.

    Parameters
    ----------
    per_arm : int
        Number of rounds of each arm in a block.

    Notes
    -----
    An arm's propensity is its share of the remaining rounds of the block, and 0 once all of its rounds in the
    block are used. Nothing adapts to outcomes.

    Examples
    --------
    >>> import adaptinf as ai
    >>> arms = ai.environments.BernoulliArms([0.5, 0.5])
    >>> log = ai.designs.PermutedBlocks(per_arm=2).run(arms, horizon=8, rng=0)
    >>> [int(log.arrays.action[start : start + 4].sum()) for start in (0, 4)]
    [2, 2]
    """

    per_arm: Annotated[int, Count(1)] = 2

    needs: ClassVar[Needs] = Needs(min_arms=2)

    @property
    def traits(self) -> DesignTraits:
        """Traits: only the arms assigned so far in the current block affect the choice."""
        return DesignTraits(adapts=False, uses_context="no", outputs=Outputs(propensities="outputs"))

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """Compiled entry point and tables for one environment and horizon."""
        return _program(
            environment, recording, kind=_BLOCKS, target="neyman", strength=0.0, block=self.per_arm
        )


def coin_probability(
    rule: str, strength: float, burn_in: int, erade: bool, n1: Any, s1: Any, n0: Any, s0: Any, t: int
) -> FloatArray:
    """Probability of arm 1 of two in round t (from 1), given the counts so far, arrays of equal shape."""
    counts, sums = (
        np.array([np.asarray(one, dtype=np.float64) for one in pair]) for pair in ((n0, n1), (s0, s1))
    )
    done = t - 1
    if done < 2 * burn_in:
        return np.asarray((burn_in - counts[1]) / (2 * burn_in - done), dtype=np.float64)
    rates = (sums + 1.0) / (counts + 2.0)
    target = np.sqrt(rates if rule == "rsihr" else rates * (1.0 - rates))
    target /= target.sum(axis=0)
    if erade:
        over = counts[0] - done * target[0]
        ahead = np.where(over > 0.0, 1.0 - strength * target[0], strength * target[1])
        return np.asarray(np.where(over == 0.0, target[1], ahead), dtype=np.float64)
    if done == 0:
        return np.asarray(target[1], dtype=np.float64)
    drawn = target * (target * done / np.maximum(counts, 0.5)) ** strength
    return np.asarray(drawn[1] / drawn.sum(axis=0), dtype=np.float64)
