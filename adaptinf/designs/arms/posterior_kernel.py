"""Designs that depend only on the posterior: propensities from the probabilities of being best."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from adaptinf.compilation import compiled, inlined, kernel
from adaptinf.designs.arms.beta_kernel import best_of_betas, log_beta_ratio
from adaptinf.designs.arms.normal_kernel import best_of_normals
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

MATCHING, EXPLORATION, TOP_TWO = range(3)
"""Use of the probabilities of being best: unchanged, alpha (1 - alpha), or top two."""

_COUNT, _SUM, _PROBABILITY, _MEAN, _SPREAD, _SQUARES, _SECOND, _SPACE, ROWS = range(1, 10)
SCALAR_COLUMNS = 8
_NOTHING = 1e-280  # The inverse of this number does not overflow.
_CHANCE, _RATIO, _LEFT = range(2, 5)
"""Scalars of two Beta posteriors: P(arm 0 beats arm 1), the unit of its changes, and the number of further
0/1 rewards after which the integral is computed again."""
_RENEWAL = 1024.0


class PosteriorTables(NamedTuple):
    """Prior, floor scale * t^-decay, and how the probability of being best is computed.

    Without `draws`, the computation is exact, by quadrature: for normal posteriors, `normal` is a table
    (513, 7), otherwise (0, 7); for Beta posteriors, `betas` is a `BetaSpace`, otherwise None. With `single`,
    one draw per arm determines the choice, and nothing is computed. Each of these three cases has its own
    entry points, which are compiled on first use.
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
    betas: Any
    status: IntArray
    propensity: FloatArray
    released: FloatArray


@kernel
def _beta_parameters(tables: PosteriorTables, state: FloatArray, arm: int) -> tuple[float, float]:
    """The two parameters of an arm's posterior."""
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
    """Update P(arm 0 beats arm 1) for a 0/1 reward not yet counted; any other reward ends such updates."""
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
def _best_normal(tables: PosteriorTables, state: FloatArray) -> None:
    """Write the probability that each normal posterior is the highest."""
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
    """If one arm leads in every draw, write its limiting share, and the others' by their second places."""
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

    The complement of an arm's probability is computed as the sum over the others, because 1 - alpha would
    lose precision.
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


@kernel
def _drawn_arm(tables: PosteriorTables, state: FloatArray, draw: float) -> int:
    """The arm selected by a uniform number; an arm with probability 0 is never selected."""
    last = 0
    for arm in range(tables.n_arms):
        if state[_PROBABILITY, arm] > 0.0:
            last = arm
            draw -= state[_PROBABILITY, arm]
            if draw < 0.0:
                return arm
    return last


@inlined
def _choose_by(renew: Callable[..., None], tables: PosteriorTables, state: FloatArray, source: Any) -> int:
    """Draw an arm; at the start of a batch, `renew` first writes propensities, and the floor raises them."""
    step = int(state[SCALARS, ROUND])
    initial = tables.initial_pulls * tables.n_arms
    if step < initial and tables.dealt:
        certain_arm(tables, step % tables.n_arms)
        return step % tables.n_arms
    if step < initial:
        for arm in range(tables.n_arms):
            state[_PROBABILITY, arm] = 1.0 / tables.n_arms
    elif (step - initial) % tables.batch_size == 0:
        renew(tables, state, source)
        _lift_to_floor(tables, state, step + 1.0)
    if tables.propensity.shape[0] > 0:
        for arm in range(tables.n_arms):
            tables.propensity[arm] = state[_PROBABILITY, arm]
    return _drawn_arm(tables, state, uniform(source))


@kernel
def _begin_normal(tables: PosteriorTables, state: FloatArray) -> None:
    """Write the prior of each arm before the first round."""
    if state[SCALARS, ROUND] == 0.0:
        for arm in range(tables.n_arms):
            _renew_normal(tables, state, arm)


@inlined
def _match_betas(tables: PosteriorTables, state: FloatArray, source: Any) -> None:
    _best_beta(tables, state)


@inlined
def _model_betas(tables: PosteriorTables, state: FloatArray, source: Any) -> None:
    _best_beta(tables, state)
    _remodel(tables, state)


@inlined
def _renew_normals(tables: PosteriorTables, state: FloatArray, source: Any) -> None:
    _best_normal(tables, state)
    if tables.rule != MATCHING:
        _remodel(tables, state)


@inlined
def _renew_frequencies(tables: PosteriorTables, state: FloatArray, source: Any) -> None:
    _frequencies(tables, state, source)
    if tables.rule != MATCHING:
        _remodel(tables, state)


@inlined
def _choose_matching(tables: PosteriorTables, state: FloatArray, context: FloatArray, source: Any) -> int:
    return _choose_by(_match_betas, tables, state, source)


@inlined
def _choose_modelled(tables: PosteriorTables, state: FloatArray, context: FloatArray, source: Any) -> int:
    return _choose_by(_model_betas, tables, state, source)


@inlined
def _choose_normal(tables: PosteriorTables, state: FloatArray, context: FloatArray, source: Any) -> int:
    _begin_normal(tables, state)
    return _choose_by(_renew_normals, tables, state, source)


@inlined
def _choose_drawn(tables: PosteriorTables, state: FloatArray, context: FloatArray, source: Any) -> int:
    if not tables.beta_prior:
        _begin_normal(tables, state)
    if tables.single and state[SCALARS, ROUND] >= tables.initial_pulls * tables.n_arms:
        return _highest_draw(tables, state, source)
    return _choose_by(_renew_frequencies, tables, state, source)


@kernel
def _count_beta(tables: PosteriorTables, state: FloatArray, arm: int, reward: float) -> None:
    """Count a reward, clipped to [0, 1]."""
    state[SCALARS, ROUND] += 1.0
    state[_SUM, arm] += min(max(reward, 0.0), 1.0)
    state[_COUNT, arm] += 1.0


@kernel
def _update_exact(
    tables: PosteriorTables, state: FloatArray, context: FloatArray, arm: int, reward: float, source: Any
) -> None:
    if tables.n_arms == 2 and state[SCALARS, _LEFT] > 0.0:
        _follow(tables, state, arm, min(max(reward, 0.0), 1.0))
    _count_beta(tables, state, arm, reward)


@kernel
def _update_normal(
    tables: PosteriorTables, state: FloatArray, context: FloatArray, arm: int, reward: float, source: Any
) -> None:
    state[SCALARS, ROUND] += 1.0
    if state[_COUNT, arm] > 0.0:
        # Welford's update avoids the cancellation of raw squares when rewards are far from 0.
        gap = reward - state[_SUM, arm] / state[_COUNT, arm]
        state[_SQUARES, arm] += gap * gap * state[_COUNT, arm] / (state[_COUNT, arm] + 1.0)
    state[_SUM, arm] += reward
    state[_COUNT, arm] += 1.0
    _renew_normal(tables, state, arm)


@kernel
def _update_drawn(
    tables: PosteriorTables, state: FloatArray, context: FloatArray, arm: int, reward: float, source: Any
) -> None:
    if tables.beta_prior:
        _count_beta(tables, state, arm, reward)
    else:
        _update_normal(tables, state, context, arm, reward, source)


@compiled
def run_matching(
    tables: PosteriorTables, world: World, rng: Generator, state: FloatArray, results: Results
) -> None:
    """Run a design with exact probabilities of Beta posteriors, on one stream of random numbers."""
    simulate_block(_choose_matching, _update_exact, no_outcome, tables, world, rng, state, results)


@compiled
def step_matching(tables: PosteriorTables, step: Step, rng: Generator, state: FloatArray) -> int:
    """One step of a design with exact probabilities of Beta posteriors."""
    return single_step(_choose_matching, pass_round, _update_exact, no_outcome, tables, step, rng, state)


@compiled
def run_modelled(
    tables: PosteriorTables, world: World, rng: Generator, state: FloatArray, results: Results
) -> None:
    """Run a design that transforms probabilities of Beta posteriors, on one stream of random numbers."""
    simulate_block(_choose_modelled, _update_exact, no_outcome, tables, world, rng, state, results)


@compiled
def step_modelled(tables: PosteriorTables, step: Step, rng: Generator, state: FloatArray) -> int:
    """One step of a design that transforms probabilities of Beta posteriors."""
    return single_step(_choose_modelled, pass_round, _update_exact, no_outcome, tables, step, rng, state)


@compiled
def run_normal(
    tables: PosteriorTables, world: World, rng: Generator, state: FloatArray, results: Results
) -> None:
    """Run a design with exact probabilities of normal posteriors, on one stream of random numbers."""
    simulate_block(_choose_normal, _update_normal, no_outcome, tables, world, rng, state, results)


@compiled
def step_normal(tables: PosteriorTables, step: Step, rng: Generator, state: FloatArray) -> int:
    """One step of a design with exact probabilities of normal posteriors."""
    return single_step(_choose_normal, pass_round, _update_normal, no_outcome, tables, step, rng, state)


@compiled
def run_drawn(
    tables: PosteriorTables, world: World, rng: Generator, state: FloatArray, results: Results
) -> None:
    """Run a design with posterior draws, on one stream of random numbers."""
    simulate_block(_choose_drawn, _update_drawn, no_outcome, tables, world, rng, state, results)


@compiled
def step_drawn(tables: PosteriorTables, step: Step, rng: Generator, state: FloatArray) -> int:
    """One step of a design with posterior draws."""
    return single_step(_choose_drawn, pass_round, _update_drawn, no_outcome, tables, step, rng, state)
