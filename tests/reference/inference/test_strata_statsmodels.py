"""Stratified looks at 0/1 outcomes against the Cochran-Mantel-Haenszel test of statsmodels: fair coins."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.contingency_tables import StratifiedTable

import adaptinf as ai

COIN = ai.designs.Uniform()


@pytest.mark.parametrize("effect", [0.0, 0.05])
def test_the_statistic_is_close_to_mantel_and_haenszel(effect: float) -> None:
    """40 trials of 4,000 in three strata; the difference has a standard deviation of about .1."""
    base = np.array([0.1, 0.3, 0.7])
    world = ai.environments.FiniteContext([0.5, 0.3, 0.2], np.column_stack([base, base + effect]))
    plan = ai.Plan(COIN, arms=(0, 1), treatment=1, control=0, looks=[4_000], strata="feature")
    rng, pairs = np.random.default_rng(0), []
    for _ in range(40):
        log = COIN.run(world, horizon=4_000, rng=rng)
        frame = log.frame
        counts = frame.groupby(["feature", "action", "reward"]).size().to_numpy().reshape(3, 2, 2)
        table = StratifiedTable([one[::-1, ::-1].astype(float) for one in counts])
        chi_square = table.test_null_odds(correction=False).statistic
        z = np.sign(table.logodds_pooled) * np.sqrt(chi_square)
        pairs.append((plan.look(log).statistic, z))
    ours, theirs = np.array(pairs).T
    assert np.corrcoef(ours, theirs)[0, 1] > 0.98
    assert np.abs(ours - theirs).max() < 0.35
    assert abs((ours - theirs).mean()) < 4 * 0.12 / np.sqrt(40)
