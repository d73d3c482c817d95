"""Audits of the best-arm designs: never above epsilon, and close to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adaptinf.audit import epsilon_lower_bound
from adaptinf.audit.privacy.designs import neighbouring_trials
from adaptinf.designs.best_arm.linear_best_arm import DPBAI, DPOD, DPBAIGauss
from adaptinf.errors import ParameterError
from adaptinf.privacy.real_mechanisms import gaussian_delta

AXES = np.eye(2)
PLANE = [[1.0, 0.0], [0.0, 1.0], [0.7, 0.6]]
MANY = np.random.default_rng(0).normal(size=(30, 3))


@pytest.mark.parametrize(
    ("epsilon", "least"),
    # at 30,000 runs; 10^6 give .9 epsilon or more at 1 and 4, .85 at .1 (one Laplace variable)
    [(0.1, 0.0), (1.0, 0.85), (4.0, 3.5)],
)
@pytest.mark.parametrize("max_det", [True, False])
def test_noisy_means(epsilon: float, least: float, max_det: bool) -> None:
    design = DPBAI(epsilon=epsilon, features=MANY if max_det else AXES, max_det=max_det)
    found = epsilon_lower_bound(design, view="releases", runs=30_000, rng=1)
    assert found.promised == design.guarantee(100, len(design.features))
    assert least <= found.epsilon <= epsilon


@pytest.mark.parametrize(
    ("features", "epsilon", "least"),
    # the third arm of the plane moves two moments at once, each with noise of its own
    [(AXES, 1.0, 0.85), (PLANE, 0.1, 0.0), (PLANE, 1.0, 0.6), (PLANE, 4.0, 2.7)],
)
def test_noisy_moments(features: Any, epsilon: float, least: float) -> None:
    found = epsilon_lower_bound(DPOD(epsilon=epsilon, features=features), view="releases", runs=30_000, rng=2)
    assert least <= found.epsilon <= epsilon


@pytest.mark.parametrize(
    ("epsilon", "delta", "least"), [(0.1, 0.05, 0.0), (1.0, 0.05, 0.75), (4.0, 0.05, 3.0)]
)
def test_normal_noise(epsilon: float, delta: float, least: float) -> None:
    """The event of the privacy theorem is rare: its probability is delta and little more."""
    design = DPBAIGauss(epsilon=epsilon, delta=delta, features=AXES)
    found = epsilon_lower_bound(design, view="releases", runs=30_000, rng=3)
    assert found.delta == delta
    assert least <= found.epsilon <= epsilon


@pytest.mark.parametrize(("epsilon", "delta"), [(6.0, 0.5), (0.9, 0.05)])
def test_published_normal_noise_keeps_what_its_guarantee_says(epsilon: float, delta: float) -> None:
    design = DPBAIGauss(epsilon=epsilon, delta=delta, features=AXES, calibration="published")
    found = epsilon_lower_bound(design, view="releases", runs=30_000, rng=4)
    assert found.promised is not None
    assert found.delta == found.promised.delta == max(delta, gaussian_delta(epsilon, design._noise()))
    assert found.epsilon <= epsilon


@pytest.mark.parametrize(
    ("design", "least"),
    [
        (DPBAI(epsilon=1.0, features=AXES), 0.5),
        (DPBAI(epsilon=4.0, features=AXES), 2.7),
        (DPBAI(epsilon=1.0, features=MANY), 0.4),
        (DPBAI(epsilon=4.0, features=PLANE, max_det=False), 1.5),
        (DPOD(epsilon=4.0, features=PLANE), 1.8),
    ],
    ids=repr,
)
def test_the_arm_that_is_named(design: Any, least: float) -> None:
    """The last round pulls it; naming follows a difference of noisy numbers and reveals less."""
    (pair,) = neighbouring_trials(design)
    found = epsilon_lower_bound(design, view="actions", runs=30_000, rng=5)
    assert f"the arms pulled in rounds {pair.horizon} are " in found.event
    assert least <= found.epsilon <= design.epsilon


@pytest.mark.parametrize("epsilon", [0.001, 0.1, 1.0, 100.0])
@pytest.mark.parametrize("features", [AXES, PLANE, MANY, [[1.0], [0.5]], [[1.0], [0.5], [0.2]]])
@pytest.mark.parametrize("design", ["means", "every mean", "moments"])
def test_neighbours_fit_every_set_of_features(design: str, features: Any, epsilon: float) -> None:
    """They differ in one round before the first releases, and the last round pulls the arm that is named."""
    audited: Any = DPOD(epsilon=epsilon, features=features)
    if design != "moments":
        audited = DPBAI(epsilon=epsilon, features=features, max_det=design == "means")
    (pair,) = neighbouring_trials(audited, "reward")
    tables = [env.tables(pair.horizon).tableau for env in (pair.first, pair.second)]
    (row,) = np.flatnonzero((tables[0] != tables[1]).any(axis=1))
    for log in audited.logs(pair.first, pair.horizon, 20, rng=0):
        assert row < log.releases["round"].min()
        assert log.releases["round"].max() < pair.horizon
        assert log.arrays.action[-1] == log.recommended


@pytest.mark.parametrize("design", [DPBAI, DPOD])
def test_units_that_are_refused(design: Any) -> None:
    with pytest.raises(ParameterError, match=r"neighbouring_trials: unit, if given"):
        neighbouring_trials(design(epsilon=1.0, features=AXES), "record")
