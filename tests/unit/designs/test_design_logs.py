"""Many logs of one call: what they promise is built once, and the same as for a single run."""

from __future__ import annotations

import numpy as np
import pytest

from adaptinf.designs import UCB, DPConSE, LDPBandit, LinPriv, Mixture, PrivateUCB
from adaptinf.designs.base_design import Design
from adaptinf.simulation.environments import (
    BernoulliArms,
    Environment,
    FiniteContext,
    LinearArms,
    SmoothArms,
)

PLACES: list[tuple[Design, Environment]] = [
    (PrivateUCB(epsilon=1.0), BernoulliArms([0.4, 0.6])),
    (Mixture(PrivateUCB(epsilon=0.5), exploration=0.2), BernoulliArms([0.4, 0.6])),
    (DPConSE(epsilon=1.0), FiniteContext([0.5, 0.5], [[0.4, 0.7], [0.6, 0.3]])),
    (LDPBandit(epsilon=4.0), SmoothArms(n_arms=2, dimension=1)),
    (LinPriv(epsilon=1.0), LinearArms([[0.3, 0.1], [0.1, 0.3]])),
    (UCB(), BernoulliArms([0.4, 0.6])),
]


@pytest.mark.parametrize(("design", "env"), PLACES, ids=lambda value: type(value).__name__)
def test_guarantees_of_many_logs_are_those_of_one(design: Design, env: Environment) -> None:
    single = design.run(env, 100, rng=3)
    logs = list(design.logs(env, 100, 3, rng=3))
    for log in logs:
        assert log.guarantee == single.guarantee
        assert log.reward_guarantee == single.reward_guarantee
    np.testing.assert_array_equal(logs[0].arrays.reward, single.arrays.reward)


def test_guarantees_are_built_once_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    original = PrivateUCB.guarantee

    def counted(self: PrivateUCB, horizon: int, n_arms: int) -> object:
        calls.append(horizon)
        return original(self, horizon, n_arms)

    monkeypatch.setattr(PrivateUCB, "guarantee", counted)
    counts = []
    for runs in (1, 20):
        calls.clear()
        list(PrivateUCB(epsilon=1.0).logs(BernoulliArms([0.4, 0.6]), 50, runs, rng=0))
        counts.append(len(calls))
    assert counts[0] == counts[1]
