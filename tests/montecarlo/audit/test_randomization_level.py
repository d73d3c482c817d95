"""The level of randomisation tests: one in twenty, to the binomial error, and some power beside it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from adaptinf import designs
from adaptinf.audit.randomization.randomization_tests import randomization_test
from adaptinf.designs.arms.play_the_winner import PlayTheWinner
from adaptinf.simulation.environments import BernoulliArms, FiniteContext, NormalArms, Tableau

LEVEL, RE_RUNS = 0.05, 19
EQUAL, NORMAL = BernoulliArms([0.5, 0.5]), NormalArms([0.0, 0.0])
SITES = FiniteContext([0.4, 0.6], [[0.3, 0.3], [0.7, 0.7]])


def rejections(
    design: designs.Design, env: Any, horizon: int, runs: int, seed: int, **given: Any
) -> np.ndarray:
    """P-values of independent logs."""
    own = design if isinstance(design, PlayTheWinner) else None
    return np.array(
        [
            randomization_test(log, own, replications=RE_RUNS, rng=run, **given).pvalue
            for run, log in enumerate(design.logs(env, horizon, runs, seed))
        ]
    )


@pytest.mark.parametrize(
    ("design", "env", "horizon", "given"),
    [
        (designs.Thompson(prior="normal"), NORMAL, 60, {}),
        (designs.EpsilonGreedy(exploration=0.2), EQUAL, 60, {}),
        (designs.EpsilonGreedy(exploration=0.2), EQUAL, 30, {"alternative": "greater"}),
        (designs.DPConSE(epsilon=1.0), SITES, 300, {}),
        (PlayTheWinner(), EQUAL, 12, {"statistic": "pulls"}),
        (designs.Mixture(designs.PrivateUCB(epsilon=1.0), 0.3), EQUAL, 60, {}),
        (designs.PrivateUCB(epsilon=1.0), EQUAL, 60, {"resample": "assignment"}),
        (designs.UCB(), EQUAL, 40, {}),
        (designs.PrivateUCB(epsilon=1.0), EQUAL, 40, {}),
        (designs.UCB(width=0.3), BernoulliArms([0.4, 0.4, 0.4]), 40, {}),
    ],
    ids=lambda part: f"{part!r:.40}",
)
def test_one_in_twenty(design: designs.Design, env: Any, horizon: int, given: dict[str, Any]) -> None:
    runs = 600
    p = rejections(design, env, horizon, runs, 1, **given)
    for level in (LEVEL, 0.25, 0.5):
        assert abs((p <= level).sum() - level * runs) < 4.2 * math.sqrt(runs * level * (1 - level))


@pytest.mark.parametrize("design", [designs.EpsilonGreedy(exploration=0.4), designs.UCB()])
def test_power(design: designs.Design) -> None:
    p = rejections(design, BernoulliArms([0.2, 0.6]), 120, 100, 2)
    assert (p <= LEVEL).mean() > 0.7


def test_a_drift_breaks_order_but_not_assignment() -> None:
    """Rewards that rise with time, the same for both arms; epsilon-greedy changes over once it is tempted."""
    drift = np.repeat(np.linspace(0.0, 4.0, 60)[:, None], 2, axis=1)
    noise = np.random.default_rng(0)
    found: dict[str, list[float]] = {"assignment": [], "order": []}
    design = designs.EpsilonGreedy(exploration=0.1)
    for run in range(300):
        env = Tableau(drift + np.repeat(0.1 * noise.standard_normal((60, 1)), 2, axis=1))
        log = design.run(env, 60, rng=run)
        for form, p_values in found.items():
            test = randomization_test(log, resample=form, replications=RE_RUNS, rng=run)
            p_values.append(test.pvalue)
    rejected = {form: (np.array(p) <= LEVEL).mean() for form, p in found.items()}
    assert abs(rejected["assignment"] - LEVEL) < 4.2 * math.sqrt(LEVEL * (1 - LEVEL) / 300)
    assert rejected["order"] > 0.3
