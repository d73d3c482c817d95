"""Thompson sampling with propensities that are exact by construction."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.random import Generator

from adaptinf.compilation import compiled, kernel
from adaptinf.designs.base import Design
from adaptinf.errors import ParameterError
from adaptinf.log import DesignTraits, Floor, Stability
from adaptinf.parameters import FINITE, NON_NEGATIVE, POSITIVE, UNIT, Count, OneOf, Positive, Whole
from adaptinf.privacy.noise import uniform
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.replicate import Program, written_arrays
from adaptinf.simulation.run import ROUND, SCALARS, Results, World, no_outcome, simulate_block
from adaptinf.typing import FloatArray, IntArray

_COUNT, _SUM, _PROBABILITY, _MEAN, _SPREAD, _SQUARES, _ROWS = range(1, 8)
_SCALAR_COLUMNS = 8


class _Tables(NamedTuple):
    """Prior, floor scale * t^-decay, and how the probability of being best is computed."""

    n_arms: int
    beta_prior: bool
    prior_first: float
    prior_second: float
    noise_variance: float
    draws: int
    initial_pulls: int
    floor_scale: float
    floor_decay: float
    batch_size: int
    status: IntArray
    propensity: FloatArray
    released: FloatArray


@kernel
def _posterior_draw(tables: _Tables, state: FloatArray, arm: int, source: Any) -> float:
    if tables.beta_prior:
        successes = state[_SUM, arm]
        failures = state[_COUNT, arm] - successes
        return float(source.beta(tables.prior_first + successes, tables.prior_second + failures))
    return float(state[_MEAN, arm] + state[_SPREAD, arm] * source.standard_normal())


@kernel
def _noise_variance(tables: _Tables, state: FloatArray, arm: int) -> float:
    if tables.noise_variance > 0.0:
        return tables.noise_variance
    variance = state[_SQUARES, arm] / max(state[_COUNT, arm], 1.0)
    return variance if variance > 0.0 else tables.prior_second


@kernel
def _normal_posterior(tables: _Tables, state: FloatArray, arm: int) -> tuple[float, float]:
    noise_variance = _noise_variance(tables, state, arm)
    precision = 1.0 / tables.prior_second + state[_COUNT, arm] / noise_variance
    mean = (tables.prior_first / tables.prior_second + state[_SUM, arm] / noise_variance) / precision
    return mean, 1.0 / precision


@kernel
def _best_probabilities(tables: _Tables, state: FloatArray, source: Any) -> None:
    """Write each arm's probability of being best: in closed form for two normal arms, else by frequency."""
    if tables.n_arms == 2 and not tables.beta_prior:
        first_mean, first_variance = _normal_posterior(tables, state, 0)
        second_mean, second_variance = _normal_posterior(tables, state, 1)
        gap = (second_mean - first_mean) / math.sqrt(first_variance + second_variance)
        state[_PROBABILITY, 1] = 0.5 * math.erfc(-gap / math.sqrt(2.0))
        state[_PROBABILITY, 0] = 1.0 - state[_PROBABILITY, 1]
        return
    for arm in range(tables.n_arms):
        state[_PROBABILITY, arm] = 0.0
        if not tables.beta_prior:
            state[_MEAN, arm], variance = _normal_posterior(tables, state, arm)
            state[_SPREAD, arm] = math.sqrt(variance)
    for _ in range(tables.draws):
        best = 0
        highest = -np.inf
        for arm in range(tables.n_arms):
            draw = _posterior_draw(tables, state, arm, source)
            if draw > highest:
                highest = draw
                best = arm
        state[_PROBABILITY, best] += 1.0
    for arm in range(tables.n_arms):
        state[_PROBABILITY, arm] /= tables.draws


@kernel
def _lift_to_floor(tables: _Tables, state: FloatArray, now: float) -> None:
    """Raise every probability to the floor and shrink what lies above it in proportion."""
    floor = min(tables.floor_scale * math.pow(now, -tables.floor_decay), 1.0 / tables.n_arms)
    if floor <= 0.0:
        return
    above = 0.0
    for arm in range(tables.n_arms):
        above += max(state[_PROBABILITY, arm] - floor, 0.0)
    room = 1.0 - tables.n_arms * floor
    for arm in range(tables.n_arms):
        share = max(state[_PROBABILITY, arm] - floor, 0.0) / above if above > 0.0 else 0.0
        state[_PROBABILITY, arm] = floor + room * share


@kernel
def _choose(tables: _Tables, state: FloatArray, context: FloatArray, source: Any) -> int:
    step = int(state[SCALARS, ROUND])
    initial = tables.initial_pulls * tables.n_arms
    if step < initial:
        for arm in range(tables.n_arms):
            state[_PROBABILITY, arm] = 1.0 / tables.n_arms
    elif (step - initial) % tables.batch_size == 0:
        _best_probabilities(tables, state, source)
        _lift_to_floor(tables, state, step + 1.0)
    if tables.propensity.shape[0] > 0:
        for arm in range(tables.n_arms):
            tables.propensity[arm] = state[_PROBABILITY, arm]
    draw = uniform(source)
    last = 0
    for arm in range(tables.n_arms):
        if state[_PROBABILITY, arm] > 0.0:
            last = arm
            draw -= state[_PROBABILITY, arm]
            if draw < 0.0:
                return arm
    return last


@kernel
def _update(
    tables: _Tables, state: FloatArray, context: FloatArray, arm: int, reward: float, source: Any
) -> None:
    state[SCALARS, ROUND] += 1.0
    if tables.beta_prior:
        state[_SUM, arm] += min(max(reward, 0.0), 1.0)
    else:
        if state[_COUNT, arm] > 0.0:
            gap = reward - state[_SUM, arm] / state[_COUNT, arm]
            state[_SQUARES, arm] += gap * gap * state[_COUNT, arm] / (state[_COUNT, arm] + 1.0)
        state[_SUM, arm] += reward
    state[_COUNT, arm] += 1.0


@compiled
def _run_block(tables: _Tables, world: World, rng: Generator, state: FloatArray, results: Results) -> None:
    simulate_block(_choose, _update, no_outcome, tables, world, rng, state, results)


_UNSTABLE = Stability(
    False,
    "its counts stay random where arms are equally good",
    "Halder, Pan, Khamaru (2025), 'Stable Thompson sampling: valid inference via variance inflation'",
)


@dataclass(frozen=True, kw_only=True)
class Thompson(Design):
    """Thompson sampling: pull an arm with its posterior probability of being the best.

    Parameters
    ----------
    prior : {"beta", "normal"}
        Conjugate prior: Beta for rewards in [0, 1] (clipped, fractional successes), or normal.
    prior_parameters : (float, float)
        (successes, failures) of the Beta, or (mean, variance) of the normal; (1, 1) and (0, 1) by default.
    noise_scale : float or None
        Standard deviation of a normal reward; None for the one that each arm's rewards have so far (with
        their number as the denominator), taken as known. While that is 0 the prior's stands in for it.
    floor : float, (float, float) or None
        Smallest propensity: a constant, or (scale, decay) for scale * t^-decay; at most 1/K.
    initial_pulls : int
        Rounds an arm, on average, that are assigned uniformly at the start; they are a batch of their own.
    batch_size : int
        Rounds after which the posterior is renewed.
    draws : int
        Posterior draws behind the frequencies.

    Notes
    -----
    The probability of being best has a closed form for two normal arms; otherwise the frequency among
    `draws` posterior draws stands for it. The arm is drawn from these very numbers, after the floor, so the
    logged propensities are exact, given the past and the frequencies. Probabilities below the floor are
    raised to it and the excess of the others over it shrinks in proportion.

    References
    ----------
    Thompson, W. R. (1933). On the likelihood that one unknown probability exceeds another in view of the
    evidence of two samples. Biometrika 25, 285-294.

    Examples
    --------
    >>> import adaptinf as ai
    >>> design = ai.designs.Thompson(floor=(0.5, 0.7), batch_size=10)
    >>> log = design.run(ai.environments.BernoulliArms([0.2, 0.8]), horizon=200, rng=0)
    >>> bool(log.arrays.propensities.min() >= 0.5 * 200**-0.7)
    True
    """

    prior: Annotated[str, OneOf("beta", "normal")] = "beta"
    prior_parameters: tuple[float, float] | None = None
    noise_scale: Positive | None = 1.0
    floor: float | tuple[float, float] | None = None
    initial_pulls: Annotated[int, Count(0)] = 0
    batch_size: Whole = 1
    draws: Whole = 100

    @property
    def traits(self) -> DesignTraits:
        """Counts stay random where arms are equally good."""
        scale, decay = self.floor if isinstance(self.floor, tuple) else (self.floor, 0.0)
        floor = None if scale is None else Floor(scale, decay)
        return DesignTraits(uses_context="no", floor=floor, stability=_UNSTABLE)

    def _problems(self) -> list[str]:
        return self._prior_problems() + self._floor_problems()

    def _prior_problems(self) -> list[str]:
        if self.prior_parameters is None:
            return []
        pair: Any = self.prior_parameters
        if not isinstance(pair, tuple) or len(pair) != 2:
            return [f"prior_parameters must be a pair of numbers, got {pair!r}"]
        first, second = pair
        if self.prior == "normal":
            return FINITE("prior mean", first) + POSITIVE("prior variance", second)
        return POSITIVE("prior successes", first) + POSITIVE("prior failures", second)

    def _floor_problems(self) -> list[str]:
        floor: Any = self.floor
        if floor is None:
            return []
        if not isinstance(floor, tuple):
            return UNIT("floor", floor)
        if len(floor) != 2:
            return [f"floor must be a number or a pair (scale, decay), got {floor!r}"]
        return UNIT("floor scale", floor[0]) + NON_NEGATIVE("floor decay", floor[1])

    def _batches(self, horizon: int, n_arms: int) -> Any:
        if self.batch_size == 1:
            return None
        initial = self.initial_pulls * n_arms
        steps = np.arange(horizon)
        later = (steps - initial) // self.batch_size + (1 if initial else 0)
        return np.where(steps < initial, 0, later)

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """Compiled entry point and tables for one environment and horizon."""
        n_arms = environment.n_arms
        scale, decay = self.floor if isinstance(self.floor, tuple) else (self.floor or 0.0, 0.0)
        if scale > 1.0 / n_arms:
            raise ParameterError(
                "Thompson", [f"floor must be at most 1/K = {1 / n_arms:g} for {n_arms} arms, got {scale:g}"]
            )
        beta_prior = self.prior == "beta"
        first, second = self.prior_parameters or ((1.0, 1.0) if beta_prior else (0.0, 1.0))
        tables = _Tables(
            n_arms=n_arms,
            beta_prior=beta_prior,
            prior_first=float(first),
            prior_second=float(second),
            noise_variance=0.0 if self.noise_scale is None else float(self.noise_scale) ** 2,
            draws=int(self.draws),
            initial_pulls=int(self.initial_pulls),
            floor_scale=float(scale),
            floor_decay=float(decay),
            batch_size=int(self.batch_size),
            **written_arrays(n_arms if recording else 0),
        )
        return Program(_run_block, tables, (_ROWS, max(n_arms, _SCALAR_COLUMNS)))
