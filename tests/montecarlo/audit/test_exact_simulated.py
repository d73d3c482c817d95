"""The exact law against simulated trials of the very designs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from adaptinf import environments
from adaptinf.audit.binary.count_states import normal_pvalue, unpooled_wald
from adaptinf.audit.binary.exact_law import exact
from adaptinf.designs import UCB, EpsilonGreedy, Mixture, Thompson, Uniform

HORIZON, RUNS = 50, 20_000
FALSE_ALARM = 1e-6  # of one comparison: 28 of them, so that all together are below 1e-4


@pytest.mark.parametrize(
    "design",
    [
        Thompson(),
        Thompson(prior="normal", prior_parameters=(0.5, 0.3), noise_scale=0.5, floor=0.05),
        Thompson(floor=(0.4, 0.3), draws=10, initial_pulls=2),
        Thompson(batch_size=10, draws=20, floor=0.1),
        EpsilonGreedy(exploration=0.5, decay=0.3, batch_size=4),
        UCB(width=0.5),
        Mixture(UCB(width=0.5), exploration=0.6, decay=0.4),
        Uniform(),
    ],
    ids=lambda design: f"{type(design).__name__}",
)
def test_simulated_trials_have_the_exact_law(design: Any) -> None:
    theta0, theta1 = 0.35, 0.55
    runs = design.replicate(environments.BernoulliArms([theta0, theta1]), HORIZON, RUNS, rng=11)
    cells = runs.tallies.reshape(RUNS, -1, 2, 3).sum(axis=1)
    n0, n1 = cells[:, 0, 0], cells[:, 1, 0]
    s0, s1 = cells[:, 0, 1], cells[:, 1, 1]
    law = exact(design, HORIZON)

    rejected = normal_pvalue(unpooled_wald(n1, s1, n0, s0)) <= 0.05
    power = float(law.power("wald", theta1, theta0))
    assert stats.binomtest(int(rejected.sum()), RUNS, power).pvalue > FALSE_ALARM

    chance = np.array(
        [float(law.expectation(lambda a, b, c, d, n=n: a == n, theta1, theta0)) for n in range(HORIZON + 1)]
    )
    assert chance.sum() == pytest.approx(1.0, abs=1e-11)
    found = np.bincount(n1.astype(int), minlength=HORIZON + 1)
    small = chance * RUNS < 20
    expected = np.append(chance[~small], chance[small].sum()) * RUNS
    seen = np.append(found[~small], found[small].sum())
    keep = expected > 1e-9
    assert not seen[~keep].any()
    if keep.sum() > 1:
        total = expected[keep].sum()
        assert stats.chisquare(seen[keep], expected[keep] * seen.sum() / total).pvalue > FALSE_ALARM

    for count, won, theta, bias in (
        (n1, s1, theta1, law.bias(theta1, theta0).arm1),
        (n0, s0, theta0, law.bias(theta1, theta0).arm0),
    ):
        means = won[count > 0] / count[count > 0]
        z = (means.mean() - theta - float(bias)) / (means.std() / np.sqrt(len(means)))
        assert 2.0 * stats.norm.sf(abs(z)) > FALSE_ALARM
