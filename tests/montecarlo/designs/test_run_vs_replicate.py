"""One recorded run and many replicates are the same experiment: exactly run by run, and in distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from adaptinf.designs import (
    UCB,
    ConSE,
    DPConSE,
    EpsilonGreedy,
    ExplorationSampling,
    PrivateUCB,
    Replications,
    Thompson,
    TopTwoThompson,
    Uniform,
)
from adaptinf.log import AdaptiveLog
from adaptinf.simulation.environments import (
    BernoulliArms,
    Environment,
    FiniteContext,
    NormalArms,
    Replay,
    Tableau,
    UniformArms,
)

RNG = np.random.default_rng(0)
ARMS = BernoulliArms([0.3, 0.5, 0.7])
CONTEXTS = FiniteContext([0.6, 0.4], [[0.3, 0.7], [0.6, 0.2]])
TABLE = pd.DataFrame(
    {"a": RNG.choice(["x", "y"], 200), "r": RNG.uniform(size=200), "g": RNG.choice(["p", "q", "s"], 200)}
)

EVERY: list[tuple[Any, Environment]] = [
    (Uniform(), ARMS),
    (Uniform(), Tableau(RNG.normal(size=(150, 4)), RNG.integers(0, 3, 150))),
    (EpsilonGreedy(exploration=0.2, decay=0.1, batch_size=5), UniformArms([0.0, 0.1], [1.0, 1.0])),
    (EpsilonGreedy(), CONTEXTS),
    (Thompson(draws=20, floor=0.05, batch_size=4), ARMS),
    (Thompson(prior="normal", initial_pulls=2), NormalArms([0.0, 0.2])),
    (ExplorationSampling(prior="normal", batch_size=7), NormalArms([0.0, 0.2, 0.1])),
    (TopTwoThompson(draws=10), ARMS),
    (UCB(), NormalArms([0.0, 0.2, 0.1], scale=0.5)),
    (PrivateUCB(epsilon=1.0), ARMS),
    (PrivateUCB(epsilon=5.0, counter="binary"), NormalArms([0.3, 0.8])),
    (PrivateUCB(epsilon=3.0, calibration="published", relaxation=False), ARMS),
    (ConSE(alpha=0.3), CONTEXTS),
    (DPConSE(epsilon=1.0, alpha=0.3), CONTEXTS),
    (DPConSE(epsilon=2.0, alpha=0.3), Replay(TABLE, "a", "r", "g", reward_range=(0, 1))),
    (DPConSE(epsilon=1.0, calibration="published"), CONTEXTS),
]
NAMES = [f"{type(design).__name__}-{i}" for i, (design, _) in enumerate(EVERY)]
HORIZON = 150


def tally(log: AdaptiveLog, design: Any, environment: Environment) -> np.ndarray:
    """Counts, sums and sums of squares by kind of round, context and arm."""
    arrays = log.arrays
    kinds = len(design.statuses) or 1
    shape = (kinds, environment.n_features, environment.n_arms)
    feature = np.zeros(log.n_rounds, dtype=int)
    if environment.features:
        labels = list(environment.features)
        feature = np.array([labels.index(label) for label in arrays.context[environment.context_name]])
    status = np.zeros(log.n_rounds, dtype=int)
    if design.statuses:
        names = [(s.phase, s.randomised) for s in design.statuses]
        pairs = zip(arrays.phase, arrays.randomised, strict=True)
        status = np.array([names.index((log.phases[phase], bool(coin))) for phase, coin in pairs])
    cell = np.ravel_multi_index((status, feature, arrays.action), shape)
    parts = [np.ones(log.n_rounds), arrays.reward, np.square(arrays.reward)]
    sums = [np.bincount(cell, weights=values, minlength=int(np.prod(shape))) for values in parts]
    return np.stack(sums, axis=-1).reshape(*shape, 3)


@pytest.mark.parametrize(("design", "environment"), EVERY, ids=NAMES)
def test_run_r_has_the_numbers_of_replicate_r(design: Any, environment: Environment) -> None:
    sims = design.replicate(environment, horizon=HORIZON, replications=70, rng=12, by_rounds=True)
    logs = list(design.logs(environment, horizon=HORIZON, replications=70, rng=12))
    assert len(logs) == 70
    for r, log in enumerate(logs):
        np.testing.assert_allclose(tally(log, design, environment), sims.tallies[r], rtol=1e-12, atol=1e-12)
    alone = design.run(environment, horizon=HORIZON, rng=12)
    np.testing.assert_array_equal(alone.arrays.action, logs[0].arrays.action)
    np.testing.assert_array_equal(alone.arrays.reward, logs[0].arrays.reward)
    late = next(design.logs(environment, horizon=HORIZON, replications=70, rng=12, start=64))
    np.testing.assert_array_equal(late.arrays.reward, logs[64].arrays.reward)


def features_of_runs(sims: Replications) -> np.ndarray:
    """Numbers that tell runs apart, one row per run: pulls, sums, regret and what is reported."""
    runs = sims.regret.size
    pulls, sums = sims.pulls.reshape(runs, -1), sims.sums.reshape(runs, -1)
    return np.column_stack([pulls, sums, sims.regret, sims.outcomes])


@pytest.mark.parametrize(("design", "environment"), EVERY, ids=NAMES)
def test_seeds_and_replicates_are_draws_of_one_law(design: Any, environment: Environment) -> None:
    """300 runs with seeds of their own against 1,024 replicates of one seed."""
    logs = [design.run(environment, horizon=HORIZON, rng=1_000 + i) for i in range(300)]
    tallies = np.array([tally(log, design, environment) for log in logs])
    cells = tallies.sum(axis=1)
    sims = design.replicate(environment, horizon=HORIZON, replications=1_024, rng=77)
    runs = np.column_stack(
        [
            cells[..., 0].reshape(300, -1),
            cells[..., 1].reshape(300, -1),
            environment.regret(cells[..., 0], cells[..., 1]),
        ]
    )
    replicates = features_of_runs(sims)[:, : runs.shape[1]]
    p_values = [
        stats.ks_2samp(runs[:, column], replicates[:, column]).pvalue
        for column in range(runs.shape[1])
        if np.ptp(replicates[:, column]) > 0
    ]
    assert p_values
    assert min(p_values) > 1e-5 / len(p_values)
    z = (runs.mean(axis=0) - replicates.mean(axis=0)) / np.sqrt(
        runs.var(axis=0) / 300 + replicates.var(axis=0) / 1_024 + 1e-300
    )
    assert np.abs(z).max() < 5.0
