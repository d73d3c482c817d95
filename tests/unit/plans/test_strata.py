"""Stratified plans: scores within strata, literally summed; what they gain; refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
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
        sums = np.zeros(5)
        for centre in range(3):
            rows = np.flatnonzero(log.frame["feature"].to_numpy()[:look] == centre)
            if len(rows):
                known = arrays.action[rows], arrays.reward[rows], arrays.propensities[rows]
                part = score_process(*known, (1, 0), np.array([len(rows)]))
                sums += np.array([values[0] for values in part])
        np.testing.assert_allclose([values[place] for values in found], sums, rtol=1e-12)


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
    assert "clock must be 'rounds' or 'date', got 'days'" in problems
    assert 'strata requires law="z"' in problems
    with pytest.raises(ParameterError, match="strata must be the name of a column"):
        plan_of(strata=3)
