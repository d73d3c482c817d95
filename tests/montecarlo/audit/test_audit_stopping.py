"""Audits of DP-NAS: stopping time and estimate together, and the stopping time alone."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest

from adaptinf.audit import epsilon_lower_bound
from adaptinf.audit.privacy.designs import neighbouring_trials
from adaptinf.audit.privacy.designs.stopping_audits import StoppingOutputs, stopping_outputs
from adaptinf.designs.stopping.stopping_kernel import OUTCOMES, STATE, run_by_rounds, run_on_sums
from adaptinf.designs.stopping.stopping_rules import DPNAS, StoppingRule
from adaptinf.errors import ParameterError
from adaptinf.simulation.environments import BernoulliArms, Tableau


@pytest.mark.parametrize(
    ("steps", "epsilon", "runs", "least"),
    [
        ("exponential", 0.1, 300_000, 0.02),
        ("exponential", 1.0, 300_000, 0.7),
        ("exponential", 4.0, 300_000, 3.2),
        ("every", 1.0, 40_000, 0.3),
        ("every", 4.0, 40_000, 2.5),
    ],
)
@pytest.mark.parametrize("calibration", ["corrected", "published"])
def test_stopping_time_and_estimate(
    steps: str, epsilon: float, runs: int, least: float, calibration: str
) -> None:
    """Half of epsilon is the stopping time's, half the estimate's: more than either is seen."""
    rule = DPNAS(epsilon=epsilon, alpha=0.9, beta=0.5, steps=steps, calibration=calibration)
    found = epsilon_lower_bound(stopping_outputs(rule), runs=runs, promised=rule.guarantee(), rng=1)
    assert least <= found.epsilon <= epsilon
    assert f"sample 1 is {1} and {-1}" in found.target


@pytest.mark.parametrize(("epsilon", "least"), [(0.1, 0.0), (1.0, 0.3), (4.0, 1.4)])
def test_the_stopping_time_alone_spends_half(epsilon: float, least: float) -> None:
    rule = DPNAS(epsilon=epsilon, alpha=0.9, beta=0.5, steps="exponential")
    found = epsilon_lower_bound(
        stopping_outputs(rule, view="actions"), runs=300_000, promised=rule.guarantee(), rng=2
    )
    assert least <= found.epsilon <= epsilon / 2.0


@pytest.mark.parametrize("steps", ["every", "exponential"])
def test_runs_look_by_look_are_those_sample_by_sample(steps: str) -> None:
    rule = DPNAS(epsilon=4.0, alpha=0.9, beta=0.5, bound=2.0, steps=steps)
    (pair,) = neighbouring_trials(rule)
    sampler = stopping_outputs(rule, pair)
    for side, env in enumerate((pair.first, pair.second)):
        looked = sampler.transcripts(side, 200, np.random.default_rng(3)).outcomes
        read = np.zeros((200, OUTCOMES))
        last = rule._last_look(pair.horizon)
        constants = rule.rule(2.0, 1.0)
        rng = np.random.default_rng(3)
        run_by_rounds(constants, env.tables(pair.horizon), last, rng, np.zeros(STATE), read)
        np.testing.assert_array_equal(looked, read)
        assert {0.0, 1.0} == set(looked[:, 1])


def test_no_look_at_all() -> None:
    outcomes = np.zeros((3, OUTCOMES))
    rule = DPNAS(epsilon=4.0, alpha=0.9, beta=0.5).rule(1.0, 1.0)
    run_on_sums(rule, np.zeros(0), np.random.default_rng(0), np.zeros(STATE), outcomes)
    np.testing.assert_array_equal(outcomes[:, 1:], 0.0)


@pytest.mark.parametrize("steps", ["every", "exponential"])
@pytest.mark.parametrize("epsilon", [0.5, 4.0, 30.0])
@pytest.mark.parametrize("bound", [0.1, 1.0, 40.0])
def test_streams_are_within_the_bound_and_stop_often_enough(steps: str, epsilon: float, bound: float) -> None:
    rule = DPNAS(epsilon=epsilon, alpha=0.8, beta=0.2, bound=bound, steps=steps)
    (pair,) = neighbouring_trials(rule, "reward")
    assert pickle.loads(pickle.dumps(pair)).horizon == pair.horizon
    streams = [env.tables(pair.horizon).tableau[:, 0] for env in (pair.first, pair.second)]
    assert np.flatnonzero(streams[0] != streams[1]).tolist() == [0]
    assert np.abs(streams).max() == bound
    outcomes = stopping_outputs(rule, pair).transcripts(0, 2_000, np.random.default_rng(1)).outcomes
    late = (outcomes[:, 1] > 0) & (outcomes[:, 0] < 0)
    assert 0.002 < late.mean() < 0.5


def test_everything_that_is_refused() -> None:
    rule = DPNAS(epsilon=1.0, alpha=0.9, beta=0.5)
    with pytest.raises(ParameterError, match=r"neighbouring_trials: unit, if given, must be one of"):
        neighbouring_trials(rule, "record")
    for steps in ("every", "exponential"):
        small = dataclasses.replace(rule, epsilon=1e-4, alpha=1e-4, steps=steps)
        with pytest.raises(ParameterError, match="samples are too short for the rule to stop"):
            neighbouring_trials(small)
    (pair,) = neighbouring_trials(dataclasses.replace(rule, epsilon=4.0))
    unscored = dataclasses.replace(pair, score=None)
    contextual = dataclasses.replace(pair, first=BernoulliArms([0.5]))
    table = np.zeros((pair.horizon, 2))
    wide = dataclasses.replace(pair, first=Tableau(table), second=Tableau(table))
    cases: list[tuple[Any, str, str]] = [
        (unscored, "releases", "neighbours must have a score if view is 'releases'"),
        (contextual, "releases", "neighbours must be tables of one arm"),
        (wide, "releases", "neighbours must be tables of one arm"),
        ("streams", "releases", "neighbours must be Neighbours, got 'streams'"),
        (pair, "times", "view must be one of 'releases', 'actions'"),
    ]
    for given, view, message in cases:
        with pytest.raises(ParameterError, match=message):
            StoppingOutputs(rule, given, view)
    assert isinstance(rule, StoppingRule)
    assert stopping_outputs(rule, unscored, "actions")(0, 5, np.random.default_rng(0)).shape == (5, 1)
