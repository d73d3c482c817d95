"""Stratified plans: scores within strata, literally summed; what they gain; refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import adaptinf as ai
from adaptinf.errors import ParameterError
from adaptinf.inference.group_sequential.score_process import score_process

CENTRES = ai.environments.FiniteContext(
    [0.5, 0.3, 0.2], [[-2.0, -2.0], [0.0, 0.0], [3.0, 3.0]], rewards="normal"
)
DESIGN = ai.designs.EpsilonGreedy(exploration=0.5)


def plan_of(**others: Any) -> ai.Plan:
    options = {"arms": (0, 1), "treatment": 1, "control": 0, "looks": [2, 60, 200], "strata": "feature"}
    return ai.Plan(DESIGN, **{**options, **others})


def test_scores_are_sums_over_the_strata() -> None:
    plan, log = plan_of(), DESIGN.run(CENTRES, horizon=200, rng=4)
    found, arrays = plan.process(log), log.arrays
    assert found is not None
    for place, look in enumerate(plan.looks):
        sums, weights = np.zeros(3), np.zeros((2, 2))
        for centre in range(3):
            rows = np.flatnonzero(log.frame["feature"].to_numpy()[:look] == centre)
            if len(rows):
                known = arrays.action[rows], arrays.reward[rows], arrays.propensities[rows]
                part = score_process(*known, (1, 0), np.array([len(rows)]))
                sums += np.array([values[0] for values in part[:3]])
                # The first reward of a stratum has no prediction, and is not used.
                drawn, chance = known[0][1:], known[2][1:]
                for arm in (0, 1):
                    ours = chance[drawn == arm]
                    sizes = (1.0 / (1.0 / ours).sum(axis=1) ** 0.5 / ours[:, arm]) ** 2
                    weights[arm] += sizes.sum(), (sizes**2).sum()
        np.testing.assert_allclose([values[place] for values in found[:3]], sums, rtol=1e-12)
        with np.errstate(invalid="ignore"):
            effective = np.nan_to_num(weights[:, 0] ** 2 / weights[:, 1]).min()
        np.testing.assert_allclose(found.effective[place], effective, rtol=1e-12)


def test_strata_with_heavy_weights_count_for_little() -> None:
    """Few rewards with propensity .02 have most of the weight: effective numbers of strata do not add up."""
    rng, rounds = np.random.default_rng(2), 2_000
    rare = np.arange(rounds) % 5 == 0
    chance = np.where(rare, 0.02, 0.5)
    action = (rng.random(rounds) < chance).astype(int)
    frame = pd.DataFrame({"action": action, "reward": rng.normal(size=rounds), "centre": rare.astype(int)})
    frame[["p_0", "p_1"]] = np.column_stack([1.0 - chance, chance])
    log = ai.AdaptiveLog(frame, action="action", reward="reward", propensities="p_{arm}", context="centre")
    plan = ai.Plan(ai.designs.Uniform(), arms=(0, 1), treatment=1, control=0, looks=[rounds], strata="centre")
    found = plan.process(log)
    assert found is not None
    counts = np.array([action[~rare].sum(), action[rare].sum()])
    sizes = np.array([1.0, 49.0])  # squared weights h / e of the treatment in the two strata
    assert found.effective[0] == pytest.approx((counts @ sizes) ** 2 / (counts @ sizes**2), rel=0.02)
    assert found.effective[0] < 0.15 * counts.sum()


def test_strata_remove_the_variance_between_them_and_keep_the_level() -> None:
    """512 trials, within 4 errors; the standard error falls from about 2.2 to about 1 standard deviation."""
    usual, within = (
        plan_of(looks=[100, 200], strata=strata, alpha=0.1, spending="pocock").operating_characteristics(
            CENTRES, 512, rng=2
        )
        for strata in (None, "feature")
    )
    assert within.frame.loc[0, "rejected"] <= 0.1 + 4 * 0.0133
    assert within.frame.loc[0, "rmse"] < 0.6 * usual.frame.loc[0, "rmse"]


def test_what_is_refused() -> None:
    log = DESIGN.run(ai.environments.NormalArms([0.0, 0.0]), horizon=60, rng=1)
    with pytest.raises(ParameterError, match="feature"):
        plan_of().look(log)
    with pytest.raises(ParameterError) as caught:
        plan_of(law="rerandomization", clock="days")
    problems = " ".join(caught.value.problems)
    assert "clock must be one of 'rounds', 'date', 'information', got 'days'" in problems
    assert 'strata requires law="z"' in problems
    with pytest.raises(ParameterError, match="strata must be the name of a column"):
        plan_of(strata=3)
