"""Stopping rules made again from their outputs: choices and reports read the public part of a run alone."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from adaptinf.designs.stopping import stopping_kernel as kernel
from adaptinf.designs.stopping.stopping_rules import DPNAS, NAS
from adaptinf.privacy.noise import Buffer

RULES = {
    f"{name}, {steps}": kind(alpha=0.5, beta=0.3, steps=steps, **given)
    for (name, kind, given), steps in itertools.product(
        [("NAS", NAS, {}), ("DPNAS", DPNAS, {"epsilon": 2.0})], ["every", "exponential"]
    )
}


def played(
    rule: kernel.Rule, samples: np.ndarray, noises: np.ndarray
) -> tuple[list[np.ndarray], list[bool], float, np.ndarray]:
    """A run: the public part after each sample, whether it halted there, what is released and reported."""
    source = Buffer(np.zeros(0), noises, np.zeros(2, dtype=np.int64))
    state, outcome = np.zeros(kernel.STATE), np.zeros(kernel.OUTCOMES)
    kernel.begin_run(rule, state, source)
    parts, halts = [], []
    for value in samples:
        if not kernel._choose(state[: kernel.PUBLIC]):
            break
        halts.append(kernel.read_values(rule, state, np.array([value]), source))
        parts.append(state[: kernel.PUBLIC].copy())
    if halts[-1]:
        kernel.finish_run(rule, state, source)
    kernel._finish(rule, state[: kernel.PUBLIC], outcome)
    return parts, halts, float(state[kernel.RELEASED]), outcome


@pytest.mark.parametrize("name", RULES)
def test_a_run_follows_from_where_it_halted_and_what_it_released(name: str) -> None:
    """No sum, sample or noise is at hand when the public part is made again, sample by sample."""
    design, halted = RULES[name], 0
    rule, rng = design.rule(1.0, 1.0), np.random.default_rng(0)
    for mean in (0.9, 0.9, -0.8, 0.0):
        samples = np.clip(rng.normal(mean, 0.3, 2_400), -1.0, 1.0)
        parts, halts, released, outcome = played(rule, samples, rng.laplace(scale=6.0, size=2_500))
        public, again = np.zeros(kernel.PUBLIC), np.zeros(kernel.OUTCOMES)
        kernel._start(rule, public)
        for part, here in zip(parts, halts, strict=True):
            assert kernel._choose(public)
            due = kernel._advance(public, 1.0)
            assert due or not here
            public[kernel.HALTED] = float(here)
            kernel._publish(rule, public, due)
            assert np.array_equal(public, part)
        public[kernel.RELEASED] = released
        kernel._finish(rule, public, again)
        assert kernel._choose(public) == (not halts[-1])
        assert np.array_equal(again, outcome, equal_nan=True)
        halted += halts[-1]
    assert halted == 3


@pytest.mark.parametrize("name", RULES)
def test_learning_changes_no_count_and_no_look(name: str) -> None:
    """What sees samples and noise writes whether the rule halts, the raw sum and, once, the released one."""
    rule = RULES[name].rule(1.0, 1.0)
    source = Buffer(np.zeros(0), np.full(4, 0.25), np.zeros(2, dtype=np.int64))
    for due, total in itertools.product((False, True), (0.0, 1e9)):
        state = np.arange(3.0, 3.0 + kernel.STATE)
        state[kernel.HALTED] = 0.0
        before = state.copy()
        kernel._learn(rule, state, total, due, source)
        written = np.flatnonzero(state != before).tolist()
        assert written == ([kernel.HALTED] if due and total else []) + [kernel.TOTAL]
        before = state.copy()
        kernel._release(rule, state, source)
        assert np.flatnonzero(state != before).tolist() == [kernel.RELEASED]
