"""Audits of private UCB, and of a mixture with it: never above the promise, and near it where runs suffice.

60,000 runs cannot tell epsilon = 0.1 from 0; with 10^6 the bounds are 0.058 (hybrid) and 0.067 (binary).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adaptinf.audit.privacy.designs import neighbouring_trials
from adaptinf.audit.privacy.designs.counter_audits import CounterScore
from adaptinf.audit.privacy.epsilon_audit import epsilon_lower_bound
from adaptinf.designs import UCB, Mixture, PrivateUCB
from adaptinf.errors import ParameterError

RUNS, FEWER, SEED = 60_000, 16_000, 5
NEAR = {0.1: 0.0, 1.0: 0.7, 4.0: 0.85}


def audited(design: Any, epsilon: float, near: float) -> None:
    for place, pair in enumerate(neighbouring_trials(design, "reward")):
        runs = RUNS if place == 0 and near > 0.0 else FEWER
        seen = epsilon_lower_bound(design, pair, view="releases", runs=runs, rng=SEED)
        assert seen.promised is not None
        assert seen.promised.epsilon == pytest.approx(epsilon)
        assert not seen.refuted
        if place == 0:
            assert seen.epsilon >= near * epsilon
        blind = epsilon_lower_bound(design, pair, view="actions", runs=FEWER, rng=SEED)
        assert not blind.refuted
        if near > 0.0 and place == 0:
            assert blind.epsilon < seen.epsilon


@pytest.mark.parametrize("epsilon", NEAR)
@pytest.mark.parametrize("counter", ["binary", "hybrid"])
def test_corrected(counter: str, epsilon: float) -> None:
    audited(PrivateUCB(epsilon=epsilon, counter=counter), epsilon, NEAR[epsilon])


@pytest.mark.parametrize("epsilon", NEAR)
@pytest.mark.parametrize("counter", ["binary", "hybrid"])
def test_published_spends_half_of_epsilon_on_two_arms(counter: str, epsilon: float) -> None:
    near = {0.1: 0.0, 1.0: 0.6, 4.0: 0.85}[epsilon]
    audited(PrivateUCB(epsilon=epsilon, calibration="published", counter=counter), epsilon / 2.0, near)


@pytest.mark.parametrize("epsilon", NEAR)
def test_published_without_its_relaxation(epsilon: float) -> None:
    near = {0.1: 0.0, 1.0: 0.4, 4.0: 0.8}[epsilon]
    audited(PrivateUCB(epsilon=epsilon, calibration="published", relaxation=False), epsilon / 2.0, near)


@pytest.mark.parametrize("epsilon", NEAR)
def test_mixture(epsilon: float) -> None:
    audited(Mixture(PrivateUCB(epsilon=epsilon), exploration=0.2), epsilon, NEAR[epsilon])


def test_actions_reveal_rewards() -> None:
    """The black box is not blind: actions alone show half of epsilon = 4."""
    for counter, place in (("hybrid", 1), ("binary", 0)):
        design = PrivateUCB(epsilon=4.0, counter=counter)
        pair = neighbouring_trials(design)[place]
        seen = epsilon_lower_bound(design, pair, view="actions", runs=RUNS, rng=SEED)
        assert 1.8 < seen.epsilon < 4.0


@pytest.mark.parametrize("design", [PrivateUCB(epsilon=1.0), Mixture(PrivateUCB(epsilon=1.0))])
def test_neighbours_differ_in_one_round(design: Any) -> None:
    for pair in neighbouring_trials(design):
        first, second = (env.tables(pair.horizon).tableau for env in (pair.first, pair.second))
        (row,) = np.flatnonzero((first != second).any(axis=1))
        assert (first[row] == 0.0).all()
        assert (second[row] == 1.0).all()
        assert pair.differs == f"the rewards of round {row + 1} are 0 and 1"
        assert isinstance(pair.score, CounterScore)
    with pytest.raises(ParameterError, match="must be one of 'reward', got 'record'"):
        neighbouring_trials(design, "record")


def test_no_privacy_no_neighbours() -> None:
    for design in (UCB(), Mixture(UCB())):
        with pytest.raises(ParameterError, match="no privacy guarantee"):
            neighbouring_trials(design)
