"""Decisions of the stopping rules, compiled: one halting test for data, simulations and integer noise.

Sums, noise and thresholds are kept in *units*: one unit is `Rule.unit` of the data's scale, 1 for simulated
noise and a grid step for integer noise.

`_learn` and `_release` use sums and noise. Whether a look is due, whether a run continues and the contents of
its report depend only on the public part of the memory.
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

SAMPLES, LOOKS, NEXT_LOOK, HALTED, RELEASED, TOTAL, THRESHOLD_NOISE = range(7)
PUBLIC, STATE = TOTAL, 7
"""The memory of a run: samples and looks so far, samples at the next look, whether it has halted, and the sum
that it releases. All of these are public; the rest of the memory, the raw sum and the noise B of the
threshold, is private."""

ESTIMATE, STOPPED, READ = range(3)
OUTCOMES = 3
"""Columns of a run's report: estimate, whether it stopped, number of samples read."""


class Rule(NamedTuple):
    """Constants of a stopping rule; look j at t samples halts if abs(sum) - B - A_j >= `halting_sum`."""

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
    """Bound that the absolute sum must reach at a look: t h_t (1 + 1/alpha) + c_t, in units."""
    repeated = 2.0 * math.log(looks)
    needed = rule.factor * rule.bound * math.sqrt(2.0 * samples * (rule.width_log + repeated))
    if rule.private:
        needed += rule.allowance + rule.query_scale * (rule.noise_log + repeated)
    return float(needed)


@kernel
def _begin(rule: Rule, state: FloatArray, source: Any) -> None:
    state[:] = 0.0
    _start(rule, state[:PUBLIC])
    if rule.private:
        state[THRESHOLD_NOISE] = laplace(source, rule.threshold_scale)


@kernel
def _start(rule: Rule, public: FloatArray) -> None:
    public[NEXT_LOOK] = 2.0 if rule.exponential else 1.0


@kernel
def _choose(public: FloatArray) -> bool:
    """Whether a run continues, that is, has not halted."""
    return bool(public[HALTED] == 0.0)


@kernel
def _advance(public: FloatArray, samples: float) -> bool:
    """Count samples, at most up to the next look; return whether a look is due."""
    public[SAMPLES] += samples
    due = bool(public[SAMPLES] == public[NEXT_LOOK])
    if due:
        public[LOOKS] += 1.0
    return due


@kernel
def _learn(rule: Rule, state: FloatArray, total: float, due: bool, source: Any) -> None:
    """Process the sum of all samples so far; if a look is due, return whether the rule halts."""
    state[TOTAL] = total
    if due:
        reached = abs(total)
        if rule.private:
            reached -= state[THRESHOLD_NOISE] + laplace(source, rule.query_scale)
        if reached >= halting_sum(rule, state[SAMPLES], state[LOOKS]):
            state[HALTED] = 1.0


@kernel
def _publish(rule: Rule, public: FloatArray, due: bool) -> None:
    """After a look, determine the next one."""
    if due:
        public[NEXT_LOOK] = 2.0 * public[SAMPLES] if rule.exponential else public[SAMPLES] + 1.0


@kernel
def _update(rule: Rule, state: FloatArray, samples: float, total: float, source: Any) -> None:
    due = _advance(state[:PUBLIC], samples)
    _learn(rule, state, total, due, source)
    _publish(rule, state[:PUBLIC], due)


@kernel
def _take(rule: Rule, state: FloatArray, value: float, source: Any) -> None:
    """Process one sample, clipped to the bound."""
    _update(rule, state, 1.0, state[TOTAL] + min(max(value, -rule.bound), rule.bound), source)


@kernel
def _release(rule: Rule, state: FloatArray, source: Any) -> None:
    """Release the sum of a run that has halted, with noise."""
    state[RELEASED] = state[TOTAL]
    if rule.private:
        state[RELEASED] += laplace(source, rule.release_scale)


@kernel
def _estimate(rule: Rule, public: FloatArray) -> float:
    """Mean of the samples, from the released sum."""
    return float(rule.unit * public[RELEASED] / public[SAMPLES])


@kernel
def _finish(rule: Rule, public: FloatArray, outcome: FloatArray) -> None:
    halted = not _choose(public)
    outcome[ESTIMATE] = _estimate(rule, public) if halted else np.nan
    outcome[STOPPED] = 1.0 if halted else 0.0
    outcome[READ] = public[SAMPLES]


@kernel
def _report(rule: Rule, state: FloatArray, rng: Generator, outcome: FloatArray) -> None:
    """Release the sum if the rule has halted, and write the report of the run."""
    if not _choose(state[:PUBLIC]):
        _release(rule, state, rng)
    _finish(rule, state[:PUBLIC], outcome)


@compiled
def begin_run(rule: Rule, state: FloatArray, source: Any) -> None:
    """Start a run: clear the memory and draw the noise of the threshold."""
    _begin(rule, state, source)


@compiled
def read_values(rule: Rule, state: FloatArray, values: FloatArray, source: Any) -> bool:
    """Process samples up to the one at which the rule halts; return whether the rule halts."""
    position = 0
    while position < values.shape[0] and _choose(state[:PUBLIC]):
        _take(rule, state, values[position], source)
        position += 1
    return not _choose(state[:PUBLIC])


@compiled
def finish_run(rule: Rule, state: FloatArray, source: Any) -> float:
    """Estimate from a run that has halted."""
    _release(rule, state, source)
    return _estimate(rule, state[:PUBLIC])


@compiled
def run_by_rounds(
    rule: Rule,
    environment: EnvironmentTables,
    last: int,
    rng: Generator,
    state: FloatArray,
    outcomes: FloatArray,
) -> None:
    """Run the rule `len(outcomes)` times in an environment with one arm, sample by sample.

    Shapes: state (STATE,), outcomes (runs, OUTCOMES).
    """
    for run in range(outcomes.shape[0]):
        _begin(rule, state, rng)
        step = 0
        while step < last and _choose(state[:PUBLIC]):
            _take(rule, state, draw_reward(environment, step, 0, 0, 0.0, rng), rng)
            step += 1
        _report(rule, state, rng, outcomes[run])


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
    """Run the rule on two-valued samples, look by look; the number of high values in between is binomial."""
    for run in range(outcomes.shape[0]):
        _begin(rule, state, rng)
        while state[SAMPLES] < last and _choose(state[:PUBLIC]):
            fresh = int(state[NEXT_LOOK] - state[SAMPLES])
            highs = rng.binomial(fresh, share)
            _update(rule, state, float(fresh), state[TOTAL] + (low * (fresh - highs) + high * highs), rng)
        _report(rule, state, rng, outcomes[run])


@compiled
def run_on_sums(
    rule: Rule, sums: FloatArray, rng: Generator, state: FloatArray, outcomes: FloatArray
) -> None:
    """Run the rule look by look on a stream's sums, of shape (looks,), with the draws of `run_by_rounds`."""
    for run in range(outcomes.shape[0]):
        _begin(rule, state, rng)
        look = 0
        while look < sums.shape[0] and _choose(state[:PUBLIC]):
            _update(rule, state, state[NEXT_LOOK] - state[SAMPLES], sums[look], rng)
            look += 1
        _report(rule, state, rng, outcomes[run])
