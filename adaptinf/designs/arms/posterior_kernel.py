"""Designs that depend only on the posterior: propensities from the probabilities of being best."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy import special

from adaptinf.compilation import compiled, inlined, kernel
from adaptinf.designs.arms.beta_kernel import BetaSpace, best_of_betas, log_beta_ratio
from adaptinf.privacy.noise import uniform
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

_CELLS, _ORDER = 32, 6
_REACH = 8.0
"""Standard deviations beyond which a normal tail counts as empty: it contains 6e-16."""
_STEP, _WIDTH, _HALVINGS, _NEGLIGIBLE = 0.05, 4.0, 5, 1e-13
"""Settings of the nodes: their spacing in the logarithm, their first width in units of the smallest spread,
the number of bisections for their start, and the largest probability that the maximum is below the start.
"""


@functools.cache
def normal_table() -> FloatArray:
    """Taylor coefficients of the normal distribution function at 32 points per unit; shape (513, 7)."""
    point = np.arange(2 * int(_REACH) * _CELLS + 1) / _CELLS - _REACH
    density = np.exp(-0.5 * point**2) / math.sqrt(2.0 * math.pi)
    before, hermite, terms = np.zeros_like(point), np.ones_like(point), [special.ndtr(point)]
    for order in range(_ORDER):
        terms.append((-1.0) ** order * hermite * density / math.factorial(order + 1))
        before, hermite = hermite, point * hermite - order * before
    return np.ascontiguousarray(np.stack(terms, axis=1))


@kernel
def _distribution(table: FloatArray, z: float) -> float:
    """Normal distribution function; constant below -8."""
    if z >= _REACH:
        return 1.0
    place = (max(z, -_REACH) + _REACH) * _CELLS
    cell = int(place + 0.5)
    d = (place - cell) / _CELLS
    value = table[cell, _ORDER]
    for order in range(_ORDER - 1, -1, -1):
        value = table[cell, order] + d * value
    return float(value)


@kernel
def _hazard(table: FloatArray, z: float) -> tuple[float, float]:
    """Distribution function, and density divided by it, from -8 to 8."""
    place = (max(z, -_REACH) + _REACH) * _CELLS
    cell = int(place + 0.5)
    d = (place - cell) / _CELLS
    value, slope = table[cell, _ORDER], _ORDER * table[cell, _ORDER]
    for order in range(_ORDER - 1, 0, -1):
        value = table[cell, order] + d * value
        slope = order * table[cell, order] + d * slope
    value = table[cell, 0] + d * value
    return value, slope / value


@kernel
def _start(table: FloatArray, mean: FloatArray, inverse: FloatArray, n_arms: int, low: float) -> float:
    """A point from `low` onwards below which the maximum lies with probability under 1e-13."""
    high = -np.inf
    for arm in range(n_arms):
        high = max(high, mean[arm])
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        below = 1.0
        for arm in range(n_arms):
            below *= _distribution(table, (middle - mean[arm]) * inverse[arm])
        if below < _NEGLIGIBLE:
            low = middle
        else:
            high = middle
    return low


@kernel
def best_of_normals(
    table: FloatArray,
    mean: FloatArray,
    spread: FloatArray,
    n_arms: int,
    best: FloatArray,
    inverse: FloatArray,
    hazard: FloatArray,
) -> None:
    """Write into `best` the probability that each variable is the largest; it sums to 1.

    Shapes: mean, spread, best, inverse, hazard (at least n_arms,); the last two are working space.
    """
    # At a point, the density of "arm a is the maximum" is the density of the maximum times a's share of the
    # hazard rates. The integral starts at `low`; every arm that can still win has its mean within 8 standard
    # deviations of that point, so nodes whose distance from it grows geometrically resolve all of them,
    # however different their spreads. In the logarithm of the distance this is the trapezoidal rule, which is
    # about as accurate as Gauss's rule for such integrands.
    low, high, ahead = -np.inf, -np.inf, 0
    for arm in range(n_arms):
        inverse[arm] = 1.0 / spread[arm]
        high = max(high, mean[arm] + _REACH * spread[arm])
        if mean[arm] - _REACH * spread[arm] > low:
            low = mean[arm] - _REACH * spread[arm]
            ahead = arm
    low = _start(table, mean, inverse, n_arms, low)
    narrow = np.inf
    for arm in range(n_arms):
        best[arm] = 0.0
        hazard[arm] = 0.0
        if mean[arm] + _REACH * spread[arm] > low:
            narrow = min(narrow, spread[arm])
    x, gap = low, _WIDTH * narrow
    growth = math.expm1(_STEP)
    while x < high:
        weight = gap
        for arm in range(n_arms):
            z = (x - mean[arm]) * inverse[arm]
            hazard[arm] = 0.0
            if z < _REACH:
                below, rate = _hazard(table, z)
                weight *= below
                hazard[arm] = rate * inverse[arm]
        for arm in range(n_arms):
            best[arm] += weight * hazard[arm]
        x += gap * growth
        gap *= 1.0 + growth
    total = 0.0
    for arm in range(n_arms):
        best[arm] *= _STEP
        # The probability that such an arm beats the leader is below 1e-13, too small for the quadrature, so
        # it is computed directly.
        if mean[arm] + _REACH * spread[arm] <= low:
            distance = (mean[ahead] - mean[arm]) / math.hypot(spread[ahead], spread[arm])
            best[arm] = 0.5 * math.erfc(distance / math.sqrt(2.0))
        total += best[arm]
    for arm in range(n_arms):
        best[arm] /= total


MATCHING, EXPLORATION, TOP_TWO = range(3)
"""Use of the probabilities of being best: unchanged, alpha (1 - alpha), or top two."""

_COUNT, _SUM, _PROBABILITY, _MEAN, _SPREAD, _SQUARES, _SECOND, _SPACE, ROWS = range(1, 10)
SCALAR_COLUMNS = 8
_NOTHING = 1e-280  # The inverse of this number does not overflow.
_CHANCE, _RATIO, _LEFT = range(2, 5)
"""Scalars of two Beta posteriors: P(arm 0 beats arm 1), what its changes are multiples of, and how many more
rewards of 0 or 1 these may follow before the integral is computed again."""
_RENEWAL = 1024.0


class PosteriorTables(NamedTuple):
    """Prior, floor scale * t^-decay, and how the probability of being best is computed.

    Without `draws`, the computation is exact, by quadrature: for normal posteriors, `normal` is a table
    (513, 7), otherwise (0, 7); for Beta posteriors, `betas` has space for the arms. With `single`, one draw
    per arm determines the choice, and nothing is computed.
    """

    n_arms: int
    rule: int
    leader_share: float
    beta_prior: bool
    prior_first: float
    prior_second: float
    noise_variance: float
    draws: int
    single: bool
    initial_pulls: int
    dealt: bool
    floor_scale: float
    floor_decay: float
    batch_size: int
    normal: FloatArray
    betas: BetaSpace
    status: IntArray
    propensity: FloatArray
    released: FloatArray


@kernel
def _beta_parameters(tables: PosteriorTables, state: FloatArray, arm: int) -> tuple[float, float]:
    """Both parameters of an arm's posterior."""
    successes = state[_SUM, arm]
    failures = state[_COUNT, arm] - successes
    return tables.prior_first + successes, tables.prior_second + failures


@kernel
def _posterior_draw(tables: PosteriorTables, state: FloatArray, arm: int, source: Any) -> float:
    if tables.beta_prior:
        first, second = _beta_parameters(tables, state, arm)
        return float(source.beta(first, second))
    return float(state[_MEAN, arm] + state[_SPREAD, arm] * source.standard_normal())


@kernel
def _noise_variance(tables: PosteriorTables, state: FloatArray, arm: int) -> float:
    if tables.noise_variance > 0.0:
        return tables.noise_variance
    variance = state[_SQUARES, arm] / max(state[_COUNT, arm], 1.0)
    return variance if variance > 0.0 else tables.prior_second


@kernel
def _renew_normal(tables: PosteriorTables, state: FloatArray, arm: int) -> None:
    """Mean and standard deviation of an arm's normal posterior."""
    noise_variance = _noise_variance(tables, state, arm)
    precision = 1.0 / tables.prior_second + state[_COUNT, arm] / noise_variance
    mean = tables.prior_first / tables.prior_second + state[_SUM, arm] / noise_variance
    state[_MEAN, arm] = mean / precision
    state[_SPREAD, arm] = math.sqrt(1.0 / precision)


@kernel
def _highest_draw(tables: PosteriorTables, state: FloatArray, source: Any) -> int:
    """The arm with the highest posterior draw, with one draw per arm."""
    best = 0
    highest = -np.inf
    for arm in range(tables.n_arms):
        draw = _posterior_draw(tables, state, arm, source)
        if draw > highest:
            highest = draw
            best = arm
    return best


@kernel
def _first_two(tables: PosteriorTables, state: FloatArray, source: Any) -> tuple[int, int]:
    """The arms whose posterior draws are the highest and the second highest."""
    best, second = 0, 0
    highest, next_highest = -np.inf, -np.inf
    for arm in range(tables.n_arms):
        draw = _posterior_draw(tables, state, arm, source)
        if draw > highest:
            highest, next_highest = draw, highest
            best, second = arm, best
        elif draw > next_highest:
            next_highest = draw
            second = arm
    return best, second


@inlined
def _best_beta(tables: PosteriorTables, state: FloatArray) -> None:
    """Write the probability that each Beta posterior is the highest."""
    if tables.n_arms == 2 and state[SCALARS, _LEFT] > 0.0:
        chance = min(max(state[SCALARS, _CHANCE], 0.0), 1.0)
        state[_PROBABILITY, 0], state[_PROBABILITY, 1] = chance, 1.0 - chance
        return
    first, second = state[_MEAN], state[_SPREAD]
    for arm in range(tables.n_arms):
        first[arm], second[arm] = _beta_parameters(tables, state, arm)
    best_of_betas(tables.betas, first, second, tables.n_arms, state[_PROBABILITY])
    if tables.n_arms == 2:
        state[SCALARS, _CHANCE] = state[_PROBABILITY, 0]
        state[SCALARS, _RATIO] = math.exp(log_beta_ratio(first[0], second[0], first[1], second[1]))
        state[SCALARS, _LEFT] = _RENEWAL


@kernel
def _follow(tables: PosteriorTables, state: FloatArray, arm: int, reward: float) -> None:
    """Change P(arm 0 beats arm 1) with a reward of 0 or 1, before it is counted; another one ends that."""
    scalars = state[SCALARS]
    if reward != 0.0 and reward != 1.0:
        scalars[_LEFT] = 0.0
        return
    first, second = _beta_parameters(tables, state, arm)
    other, rest = _beta_parameters(tables, state, 1 - arm)
    own, both = (first, first + other) if reward == 1.0 else (second, second + rest)
    change = scalars[_RATIO] / own
    scalars[_CHANCE] += change if (reward == 1.0) == (arm == 0) else -change
    scalars[_RATIO] *= both / (first + second + other + rest) * ((first + second) / own)
    scalars[_LEFT] -= 1.0


@inlined
def _exact_probabilities(tables: PosteriorTables, state: FloatArray) -> None:
    """Write the probability that each posterior is the highest."""
    if tables.beta_prior:
        _best_beta(tables, state)
        return
    if tables.n_arms == 2:
        spread = math.sqrt(state[_SPREAD, 0] ** 2 + state[_SPREAD, 1] ** 2)
        gap = (state[_MEAN, 1] - state[_MEAN, 0]) / spread
        state[_PROBABILITY, 1] = 0.5 * math.erfc(-gap / math.sqrt(2.0))
        state[_PROBABILITY, 0] = 0.5 * math.erfc(gap / math.sqrt(2.0))
        return
    best_of_normals(
        tables.normal,
        state[_MEAN],
        state[_SPREAD],
        tables.n_arms,
        state[_PROBABILITY],
        state[_SECOND],
        state[_SPACE],
    )


@kernel
def _frequencies(tables: PosteriorTables, state: FloatArray, source: Any) -> None:
    """Write how often each arm's posterior draw was the highest, and the second highest."""
    for arm in range(tables.n_arms):
        state[_PROBABILITY, arm] = 0.0
        state[_SECOND, arm] = 0.0
    for _ in range(tables.draws):
        best, second = _first_two(tables, state, source)
        state[_PROBABILITY, best] += 1.0
        state[_SECOND, second] += 1.0
    for arm in range(tables.n_arms):
        state[_PROBABILITY, arm] /= tables.draws


@kernel
def _nearest_rival(tables: PosteriorTables, state: FloatArray, leader: int) -> None:
    """Write 1 for the arm most likely to beat a leader, by normal means or log-odds, and 0 for the others."""
    rival, least = leader, np.inf
    for arm in range(tables.n_arms if tables.beta_prior else 0):
        first, second = _beta_parameters(tables, state, arm)
        state[_MEAN, arm], state[_SPREAD, arm] = (
            math.log(first / second),
            math.sqrt(1.0 / first + 1.0 / second),
        )
    for arm in range(tables.n_arms):
        state[_SECOND, arm] = 0.0
        spread = math.sqrt(state[_SPREAD, leader] ** 2 + state[_SPREAD, arm] ** 2)
        gap = (state[_MEAN, leader] - state[_MEAN, arm]) / spread
        # In the far tail, the arm with the smallest standardised gap is much more likely than all others to
        # beat the leader.
        if arm != leader and gap < least:
            rival, least = arm, gap
    state[_SECOND, rival] = 1.0


@kernel
def _certain_leader(tables: PosteriorTables, state: FloatArray) -> bool:
    """If one arm leads in every draw: its limiting share, and shares of the rest by second places."""
    leader, others, seconds = 0, 0.0, 0.0
    for arm in range(tables.n_arms):
        if state[_PROBABILITY, arm] > state[_PROBABILITY, leader]:
            leader = arm
    for arm in range(tables.n_arms):
        if arm != leader:
            others += state[_PROBABILITY, arm]
    if others > _NOTHING:
        return False
    if tables.draws == 0:
        _nearest_rival(tables, state, leader)
    for arm in range(tables.n_arms):
        if arm != leader:
            seconds += state[_SECOND, arm]
    for arm in range(tables.n_arms):
        state[_PROBABILITY, arm] = (1.0 - tables.leader_share) * state[_SECOND, arm] / seconds
    state[_PROBABILITY, leader] = tables.leader_share
    return True


@kernel
def _remodel(tables: PosteriorTables, state: FloatArray) -> None:
    """Convert probabilities of being best to those of exploration sampling or top-two Thompson sampling.

    An arm's complement is the sum over the others: 1 - alpha would lose precision.
    """
    if _certain_leader(tables, state):
        return
    for arm in range(tables.n_arms):
        others = 0.0
        for other in range(tables.n_arms):
            if other != arm:
                others += state[_PROBABILITY, other]
        state[_SPACE, arm] = others
        state[_SECOND, arm] = state[_PROBABILITY, arm] / others
    share, scale = tables.leader_share, 0.0
    for arm in range(tables.n_arms):
        if tables.rule == EXPLORATION:
            state[_PROBABILITY, arm] *= state[_SPACE, arm]
        else:
            rivals = 0.0
            for other in range(tables.n_arms):
                if other != arm:
                    rivals += state[_SECOND, other]
            state[_PROBABILITY, arm] *= share + (1.0 - share) * rivals
        scale += state[_PROBABILITY, arm]
    for arm in range(tables.n_arms):
        state[_PROBABILITY, arm] /= scale


@kernel
def _lift_to_floor(tables: PosteriorTables, state: FloatArray, now: float) -> None:
    """Raise every probability to the floor, and shrink the excess of the others proportionally."""
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


@inlined
def _renew(tables: PosteriorTables, state: FloatArray, now: float, source: Any) -> None:
    """Write the propensities that follow from the posterior."""
    if tables.draws > 0:
        _frequencies(tables, state, source)
    else:
        _exact_probabilities(tables, state)
    if tables.rule != MATCHING:
        _remodel(tables, state)
    _lift_to_floor(tables, state, now)


@kernel
def _drawn_arm(tables: PosteriorTables, state: FloatArray, draw: float) -> int:
    """The arm selected by a uniform number; never one of probability 0."""
    last = 0
    for arm in range(tables.n_arms):
        if state[_PROBABILITY, arm] > 0.0:
            last = arm
            draw -= state[_PROBABILITY, arm]
            if draw < 0.0:
                return arm
    return last


@inlined
def _choose(tables: PosteriorTables, state: FloatArray, context: FloatArray, source: Any) -> int:
    step = int(state[SCALARS, ROUND])
    initial = tables.initial_pulls * tables.n_arms
    if step == 0 and not tables.beta_prior:
        for arm in range(tables.n_arms):
            _renew_normal(tables, state, arm)
    if step < initial and tables.dealt:
        certain_arm(tables, step % tables.n_arms)
        return step % tables.n_arms
    if step < initial:
        for arm in range(tables.n_arms):
            state[_PROBABILITY, arm] = 1.0 / tables.n_arms
    elif tables.single:
        return _highest_draw(tables, state, source)
    elif (step - initial) % tables.batch_size == 0:
        _renew(tables, state, step + 1.0, source)
    if tables.propensity.shape[0] > 0:
        for arm in range(tables.n_arms):
            tables.propensity[arm] = state[_PROBABILITY, arm]
    return _drawn_arm(tables, state, uniform(source))


@kernel
def _update(
    tables: PosteriorTables, state: FloatArray, context: FloatArray, arm: int, reward: float, source: Any
) -> None:
    state[SCALARS, ROUND] += 1.0
    if tables.beta_prior:
        success = min(max(reward, 0.0), 1.0)
        if tables.n_arms == 2 and state[SCALARS, _LEFT] > 0.0:
            _follow(tables, state, arm, success)
        state[_SUM, arm] += success
        state[_COUNT, arm] += 1.0
        return
    if state[_COUNT, arm] > 0.0:
        # Welford's update avoids the cancellation of raw squares when rewards are far from 0.
        gap = reward - state[_SUM, arm] / state[_COUNT, arm]
        state[_SQUARES, arm] += gap * gap * state[_COUNT, arm] / (state[_COUNT, arm] + 1.0)
    state[_SUM, arm] += reward
    state[_COUNT, arm] += 1.0
    _renew_normal(tables, state, arm)


@compiled
def run_block(
    tables: PosteriorTables, world: World, rng: Generator, state: FloatArray, results: Results
) -> None:
    """Run one of the designs, on one stream of random numbers."""
    simulate_block(_choose, _update, no_outcome, tables, world, rng, state, results)


@compiled
def run_step(tables: PosteriorTables, step: Step, rng: Generator, state: FloatArray) -> int:
    """One step of one of the designs."""
    return single_step(_choose, pass_round, _update, no_outcome, tables, step, rng, state)
