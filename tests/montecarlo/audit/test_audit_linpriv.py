"""Audits of LinPriv: the corrected noise keeps its promise, the published one exceeds the paper's epsilon."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from adaptinf.audit.privacy.designs import neighbouring_trials
from adaptinf.audit.privacy.epsilon_audit import epsilon_lower_bound
from adaptinf.designs import LinPriv, Mixture
from adaptinf.errors import ParameterError

RUNS, FEWER, SEED = 60_000, 16_000, 5
NEAR = {0.1: 0.0, 1.0: 0.75, 4.0: 0.8}
DELTA = 0.05


def audited(design: Any, epsilon: float, near: float, delta: float = 0.0) -> None:
    for place, pair in enumerate(neighbouring_trials(design, "reward")):
        runs = RUNS if place == 0 and near > 0.0 else FEWER
        seen = epsilon_lower_bound(design, pair, view="releases", runs=runs, rng=SEED)
        assert seen.promised is not None
        assert (seen.promised.epsilon, seen.delta) == (pytest.approx(epsilon), delta)
        assert not seen.refuted
        if place == 0:
            assert seen.epsilon >= near * epsilon
        assert not epsilon_lower_bound(design, pair, view="actions", runs=FEWER, rng=SEED).refuted


@pytest.mark.parametrize("epsilon", NEAR)
@pytest.mark.parametrize("counter", ["binary", "hybrid"])
def test_laplace_noise(counter: str, epsilon: float) -> None:
    audited(LinPriv(epsilon=epsilon, counter=counter), epsilon, NEAR[epsilon])


@pytest.mark.parametrize("epsilon", NEAR)
def test_normal_noise(epsilon: float) -> None:
    near = {0.1: 0.5, 1.0: 0.8, 4.0: 0.8}[epsilon]
    audited(LinPriv(epsilon=epsilon, delta=DELTA, noise="gaussian"), epsilon, near, DELTA)


@pytest.mark.parametrize("epsilon", NEAR)
def test_mixture(epsilon: float) -> None:
    audited(Mixture(LinPriv(epsilon=epsilon), exploration=0.2), epsilon, NEAR[epsilon])


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_published_noise_exceeds_the_papers_epsilon(epsilon: float) -> None:
    design = LinPriv(epsilon=epsilon, calibration="published", dimension=2)
    seen = epsilon_lower_bound(design, view="releases", runs=RUNS, rng=SEED)
    assert 1.1 * epsilon < seen.epsilon <= math.sqrt(2.0) * epsilon
    assert seen.promised is not None
    assert seen.promised.epsilon == pytest.approx(math.sqrt(2.0) * epsilon)
    audited(design, math.sqrt(2.0) * epsilon, 0.75)


def test_contexts_are_the_longest_in_l1() -> None:
    for dimension in (None, 5):
        design = LinPriv(epsilon=1.0, dimension=dimension)
        for pair in neighbouring_trials(design):
            context = pair.first.tables(pair.horizon).vectors[:, : pair.first.dimension]
            assert pair.first.dimension == (dimension or 2)
            np.testing.assert_allclose(np.abs(context).sum(axis=1), math.sqrt(pair.first.dimension))
            np.testing.assert_allclose(np.linalg.norm(context, axis=1), 1.0)
    with pytest.raises(ParameterError, match="must be one of 'reward', got 'record'"):
        neighbouring_trials(LinPriv(epsilon=1.0), "record")
