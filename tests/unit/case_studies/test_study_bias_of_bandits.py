"""What the study of biased arm means computes of its runs."""

from __future__ import annotations

import numpy as np
import pytest

from adaptinf.designs import UCB
from adaptinf.simulation.environments import BernoulliArms
from case_studies.bias_of_bandits import run as study


def test_biases_are_those_of_the_sample_means() -> None:
    means = np.array([1.0, 0.5, 0.25])
    found = study.measure(UCB(), (60, means), 256, 1, 5)
    sims = UCB().replicate(BernoulliArms(means), 60, 256, rng=np.random.SeedSequence(5))
    errors = sims.sums / sims.pulls - means
    assert found.bias == pytest.approx(errors.mean(axis=0), abs=1e-15)
    assert found.error == pytest.approx(errors.std(axis=0, ddof=1) / 16.0)
    assert found.bias[0] == found.error[0] == 0.0
    assert found.size == pytest.approx(np.abs(errors.mean(axis=0)).mean())
    assert found.worst == found.bias[np.argmax(np.abs(found.bias))] < 0.0
    assert found.significant == 2
    assert found.floor == pytest.approx(np.sqrt(2 / np.pi) * found.error.mean())


def test_regret_paths_end_at_the_regret_of_the_runs() -> None:
    horizon, means = study.SECOND
    grid = np.array([1, 1_000, horizon])
    mean, error = study.regret_paths(UCB(), 4, grid, 9)
    sims = UCB().replicate(BernoulliArms(means), horizon, 4, rng=9)
    assert mean[-1] == pytest.approx(sims.regret.mean(), rel=1e-9)
    assert error[-1] == pytest.approx(sims.regret.std(ddof=1) / 2.0, rel=1e-9)
    # UCB begins with the first arm, which is the best
    assert mean[0] == 0.0


def test_without_noise_nothing_is_promised() -> None:
    assert study.guarantee(study.published(study.NO_NOISE), study.FIRST) is None
    promise = study.guarantee(study.published(0.05), study.FIRST)
    assert promise is not None
    assert promise.epsilon == pytest.approx(0.0025)
