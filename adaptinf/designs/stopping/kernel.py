"""The decisions of the stopping rules, compiled: one halting test for data, simulations and integer noise.

Sums, noise and thresholds are kept in *units*: one unit is `Rule.unit` of the data's scale, 1 for simulated
noise and a grid step for integer noise.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from adaptinf.compilation import compiled, kernel
from adaptinf.privacy.noise import laplace
from adaptinf.simulation.run import EnvironmentTables, draw_reward
from adaptinf.typing import FloatArray

SAMPLES, LOOKS, NEXT_LOOK, TOTAL, THRESHOLD_NOISE = range(5)
STATE = 5
"""Numbers that a run remembers: samples, looks so far, samples at the next look, their sum, the noise B."""

ESTIMATE, STOPPED, READ = range(3)
OUTCOMES = 3
"""Columns of what a run reports: estimate, whether it stopped, samples that were read."""


class Rule(NamedTuple):
    """Constants of a stopping rule; look j at t samples halts where |sum| - B - A_j >= `halting_sum`."""

    exponential: bool
    private: bool
    bound: float
    unit: float
    factor: float
    width_log: float
    noise_log: float
    allowance: float
    threshold_scale: float
    query_scale: float
    release_scale: float


@kernel
def halting_sum(rule: Rule, samples: float, looks: float) -> float:
    """What the absolute sum of the samples must reach at a look: t h_t (1 + 1/alpha) + c_t, in units."""
    repeated = 2.0 * math.log(looks)
    needed = rule.factor * rule.bound * math.sqrt(2.0 * samples * (rule.width_log + repeated))
    if rule.private:
        needed += rule.allowance + rule.query_scale * (rule.noise_log + repeated)
    return float(needed)


@kernel
def _begin(rule: Rule, state: FloatArray, source: Any) -> None:
    state[:] = 0.0
    state[NEXT_LOOK] = 2.0 if rule.exponential else 1.0
    if rule.private:
        state[THRESHOLD_NOISE] = laplace(source, rule.threshold_scale)


@kernel
def _halts(rule: Rule, state: FloatArray, source: Any) -> bool:
    """Look at the sum: whether the rule halts here."""
    samples = state[NEXT_LOOK]
    state[LOOKS] += 1.0
    state[NEXT_LOOK] = 2.0 * samples if rule.exponential else samples + 1.0
    total = abs(state[TOTAL])
    if rule.private:
        total -= state[THRESHOLD_NOISE] + laplace(source, rule.query_scale)
    return bool(total >= halting_sum(rule, samples, state[LOOKS]))


@kernel
def _take(rule: Rule, state: FloatArray, value: float, source: Any) -> bool:
    """Take one sample, clipped to the bound: whether the rule halts after it."""
    state[SAMPLES] += 1.0
    state[TOTAL] += min(max(value, -rule.bound), rule.bound)
    return state[SAMPLES] == state[NEXT_LOOK] and _halts(rule, state, source)


@kernel
def _estimate(rule: Rule, state: FloatArray, source: Any) -> float:
    """Mean of the samples, with noise on their sum."""
    total = state[TOTAL]
    if rule.private:
        total += laplace(source, rule.release_scale)
    return float(rule.unit * total / state[SAMPLES])


@compiled
def begin_run(rule: Rule, state: FloatArray, source: Any) -> None:
    """Start a run: the memory is cleared and the noise of the threshold drawn."""
    _begin(rule, state, source)


@compiled
def read_values(rule: Rule, state: FloatArray, values: FloatArray, source: Any) -> bool:
    """Take samples up to the one at which the rule halts: whether it does."""
    halted = False
    position = 0
    while position < values.shape[0] and not halted:
        halted = _take(rule, state, values[position], source)
        position += 1
    return halted


@compiled
def finish_run(rule: Rule, state: FloatArray, source: Any) -> float:
    """Estimate of a run that has halted."""
    return _estimate(rule, state, source)


@kernel
def _report(rule: Rule, state: FloatArray, halted: bool, rng: Generator, outcome: FloatArray) -> None:
    outcome[ESTIMATE] = _estimate(rule, state, rng) if halted else np.nan
    outcome[STOPPED] = 1.0 if halted else 0.0
    outcome[READ] = state[SAMPLES]


@compiled
def run_by_rounds(
    rule: Rule,
    environment: EnvironmentTables,
    last: int,
    rng: Generator,
    state: FloatArray,
    outcomes: FloatArray,
) -> None:
    """Run the rule `len(outcomes)` times in an environment of one arm, sample by sample.

    Shapes: state (STATE,), outcomes (runs, OUTCOMES).
    """
    for run in range(outcomes.shape[0]):
        _begin(rule, state, rng)
        halted = False
        step = 0
        while step < last and not halted:
            halted = _take(rule, state, draw_reward(environment, step, 0, 0, 0.0, rng), rng)
            step += 1
        _report(rule, state, halted, rng, outcomes[run])


@compiled
def run_by_looks(
    rule: Rule,
    low: float,
    high: float,
    share: float,
    last: int,
    rng: Generator,
    state: FloatArray,
    outcomes: FloatArray,
) -> None:
    """Run the rule on two-valued samples, look by look: between looks the number of highs is binomial."""
    for run in range(outcomes.shape[0]):
        _begin(rule, state, rng)
        halted = False
        while state[SAMPLES] < last and not halted:
            fresh = int(state[NEXT_LOOK] - state[SAMPLES])
            highs = rng.binomial(fresh, share)
            state[SAMPLES] = state[NEXT_LOOK]
            state[TOTAL] += low * (fresh - highs) + high * highs
            halted = _halts(rule, state, rng)
        _report(rule, state, halted, rng, outcomes[run])


@compiled
def run_on_sums(
    rule: Rule, sums: FloatArray, rng: Generator, state: FloatArray, outcomes: FloatArray
) -> None:
    """Run the rule on a fixed stream, look by look, with the numbers of `run_by_rounds`; sums (looks,)."""
    for run in range(outcomes.shape[0]):
        _begin(rule, state, rng)
        halted = False
        look = 0
        while look < sums.shape[0] and not halted:
            state[SAMPLES] = state[NEXT_LOOK]
            state[TOTAL] = sums[look]
            halted = _halts(rule, state, rng)
            look += 1
        _report(rule, state, halted, rng, outcomes[run])
