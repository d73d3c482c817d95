"""Transcripts of many runs against the logs of the same runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adaptinf.designs import (
    DPBAI,
    DPConSE,
    LDPBandit,
    LinPriv,
    Mixture,
    PrivateSuccessiveElimination,
    PrivateUCB,
    Thompson,
)
from adaptinf.simulation.environments import BernoulliArms, FiniteContext, LinearArms, SmoothArms, Tableau
from adaptinf.simulation.replicate import BLOCK, iterate_runs
from adaptinf.simulation.transcripts import Transcripts, sample_transcripts

ORTHANT = LinearArms([[0.9, 0.1], [0.1, 0.9]], contexts="orthant", rewards="bernoulli")
TABLEAU = Tableau(np.random.default_rng(0).random((40, 2)), reward_range=(0, 1))
CASES = [
    (PrivateUCB(epsilon=1.0), TABLEAU, 40),
    (PrivateUCB(epsilon=1.0, calibration="published", counter="binary"), BernoulliArms([0.5] * 3), 40),
    (LinPriv(epsilon=1.0), ORTHANT, 30),
    (LinPriv(epsilon=1.0, delta=0.01, noise="gaussian"), ORTHANT, 30),
    (Mixture(PrivateUCB(epsilon=1.0), exploration=0.3), TABLEAU, 40),
    (Mixture(LinPriv(epsilon=1.0), exploration=0.3), ORTHANT, 30),
    (PrivateSuccessiveElimination(epsilon=4.0), BernoulliArms([0.9, 0.1]), 3_000),
    (Mixture(PrivateSuccessiveElimination(epsilon=4.0), exploration=0.2), BernoulliArms([0.9, 0.1]), 3_000),
    (DPConSE(epsilon=1.0), FiniteContext([0.5, 0.5], [[0.4, 0.7], [0.6, 0.3]]), 400),
    (DPBAI(epsilon=1.0, features=[[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]), BernoulliArms([0.2, 0.5, 0.8]), 60),
    (LDPBandit(epsilon=1.0), SmoothArms(2, 1), 30),
    (Thompson(), TABLEAU, 40),
]


def sampled(
    design: Any, environment: Any, horizon: int, start: int, stop: int, **options: Any
) -> Transcripts:
    root = np.random.SeedSequence(7)
    pieces = list(sample_transcripts(design, environment, horizon, start, stop, root, **options))
    return Transcripts(
        *(
            np.concatenate([getattr(piece, name) for piece in pieces])
            for name in ("actions", "releases", "outcomes", "statuses")
        )
    )


@pytest.mark.slow
@pytest.mark.parametrize(("design", "environment", "horizon"), CASES)
def test_transcripts_are_those_of_the_logs(design: Any, environment: Any, horizon: int) -> None:
    runs = 2 * BLOCK + 5
    found = sampled(design, environment, horizon, 0, runs)
    assert found.actions.shape == found.statuses.shape == (runs, horizon)
    logs = design.logs(environment, horizon, runs, np.random.SeedSequence(7))
    raw = iterate_runs(design, environment, horizon, 0, runs, np.random.SeedSequence(7))
    for run, (log, one) in enumerate(zip(logs, raw, strict=True)):
        np.testing.assert_array_equal(found.actions[run], log.arrays.action)
        made = len(one.released)
        np.testing.assert_array_equal(found.releases[run, :made], one.released)
        assert np.isnan(found.releases[run, made:]).all()
        values = np.sort(found.releases[run, :made, 3])
        np.testing.assert_array_equal(values, np.sort(log.releases["value"].to_numpy(dtype=float)))
        if log.arrays.randomised is not None:
            kept = np.array([status.randomised for status in design.statuses])
            np.testing.assert_array_equal(kept[found.statuses[run]], log.arrays.randomised)
    named = design.replicate(environment, horizon, runs, np.random.SeedSequence(7), by_rounds=True)
    np.testing.assert_array_equal(found.outcomes, named.outcomes)


def test_a_run_depends_on_its_number_alone() -> None:
    design = PrivateUCB(epsilon=1.0)
    whole = sampled(design, TABLEAU, 20, 0, 5 * BLOCK + 3)
    pieces = sampled(design, TABLEAU, 20, 2 * BLOCK, 5 * BLOCK + 3, size=BLOCK)
    np.testing.assert_array_equal(whole.actions[2 * BLOCK :], pieces.actions)
    np.testing.assert_array_equal(whole.releases[2 * BLOCK :], pieces.releases)


def test_statuses_tell_which_rounds_were_overridden() -> None:
    design = Mixture(PrivateUCB(epsilon=1.0), exploration=0.3)
    found = sampled(design, TABLEAU, 40, 0, 4 * BLOCK)
    share = (found.statuses == 1).mean()
    assert abs(share - 0.3) < 4.0 * np.sqrt(0.3 * 0.7 / found.statuses.size)
    forced = sampled(Mixture(PrivateUCB(epsilon=1.0), exploration=1.0), TABLEAU, 40, 0, BLOCK)
    assert (forced.statuses == 1).all()
