"""The bands of LinUCB and LinPriv cover x'theta for all arms and rounds at once, at their nominal level."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from adaptinf.designs.contextual.linear_bandits import LinPriv, LinUCB
from adaptinf.designs.contextual.linear_bands import prediction_bands
from adaptinf.simulation.environments.vector_arms import LinearArms

THETA = np.array([[0.8, 0.3], [0.3, 0.8], [0.6, 0.6]])
ENVIRONMENT = LinearArms(THETA, contexts="orthant", rewards="bernoulli")
RUNS, HORIZON, FAILURE = 250, 300, 0.1


def misses(design: LinUCB | LinPriv, share: float = 1.0) -> np.ndarray:
    """Runs in which some band, cut to a share of its width, misses."""
    missed = []
    for log in design.logs(ENVIRONMENT, HORIZON, RUNS, rng=21):
        bands = prediction_bands(log)
        truth = np.einsum("tak,ak->ta", bands.contexts, THETA)
        missed.append((np.abs(bands.center - truth) > share * bands.width).any())
    return np.array(missed)


@pytest.mark.parametrize(
    "design",
    [
        LinUCB(failure=FAILURE),
        LinPriv(epsilon=0.5, failure=FAILURE),
        LinPriv(epsilon=5.0, failure=FAILURE, counter="binary", regularisation=0.2),
        LinPriv(epsilon=5.0, failure=FAILURE, noise_width="ridge"),
        LinPriv(epsilon=1.0, delta=1e-5, failure=FAILURE),
        LinPriv(epsilon=30.0, delta=1e-5, failure=FAILURE, regularisation=10.0),
    ],
    ids=["linucb", "hybrid", "binary", "ridge", "gaussian", "heavy ridge"],
)
def test_all_bands_of_a_run_cover(design: LinUCB | LinPriv) -> None:
    missed = int(misses(design).sum())
    assert stats.binomtest(missed, RUNS, FAILURE, alternative="greater").pvalue > 1e-4


@pytest.mark.parametrize(
    ("design", "share"),
    [
        (LinUCB(failure=FAILURE, bound=0.0, regularisation=30.0), 1.0),
        (LinPriv(epsilon=0.5, failure=FAILURE), 0.5),
        (LinPriv(epsilon=1.0, delta=1e-5, failure=FAILURE), 0.5),
    ],
    ids=["no bound on theta", "half of the width", "half of the width, normal"],
)
def test_bands_without_their_due_miss(design: LinUCB | LinPriv, share: float) -> None:
    """The check above can fail: with a part left out, more runs miss than may."""
    assert misses(design, share).mean() > 2 * FAILURE


def test_bands_cover_although_the_noise_drowns_the_data() -> None:
    """Predictions of means in [0, 1] are off by more than 3 in every run, and no band misses."""
    design = LinPriv(epsilon=1.0, failure=FAILURE)
    for log in design.logs(ENVIRONMENT, HORIZON, 20, rng=22):
        bands = prediction_bands(log)
        truth = np.einsum("tak,ak->ta", bands.contexts, THETA)
        off = np.abs(bands.center - truth)
        assert off.max() > 3.0
        assert (off <= bands.width).all()


def test_linucb_takes_the_scale_of_the_rewards_from_the_environment() -> None:
    """With the scale that serves for rewards in [0, 1] the bands miss far too often."""
    environment = LinearArms(THETA, noise=2.0)
    missed = dict.fromkeys((None, 0.5), 0)
    for scale in missed:
        for log in LinUCB(failure=FAILURE, noise_scale=scale).logs(environment, HORIZON, RUNS, rng=23):
            assert log.design is not None
            assert log.design.parameters["noise_scale"] == (2.0 if scale is None else scale)
            missed[scale] += int(prediction_bands(log).misses(THETA).any())
    assert stats.binomtest(missed[None], RUNS, FAILURE, alternative="greater").pvalue > 1e-4
    assert missed[0.5] > 0.3 * RUNS
