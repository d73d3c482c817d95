"""Propensities filled in from a design led along the logged path, or from shares of batches."""

from __future__ import annotations

import numpy as np
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf import designs
from adaptinf.audit import with_propensities
from adaptinf.claims import propensities
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.log import AdaptiveLog
from adaptinf.log.validation import nested_options
from adaptinf.simulation.environments import BernoulliArms, FiniteContext

ENV = BernoulliArms([0.4, 0.6, 0.5])


def stripped(log: AdaptiveLog, **more: object) -> AdaptiveLog:
    """The log without its propensities."""
    kept = [name for name in log.frame if not name.startswith("propensity")]
    frame = log.frame[kept]
    roles = {"batch": "batch"} if log.arrays.batch is not None else {}
    return AdaptiveLog(
        frame,
        action="action",
        reward="reward",
        context=list(log.context),
        **nested_options({**roles, **more}),
    )


@pytest.mark.parametrize(
    "design",
    [
        designs.EpsilonGreedy(exploration=0.3),
        designs.EpsilonGreedy(exploration=0.4, batch_size=40),
        designs.Uniform(),
    ],
    ids=["greedy", "batched", "uniform"],
)
def test_the_designs_own_propensities_come_back(design: designs.Design) -> None:
    whole = design.run(ENV, 600, rng=2)
    log = stripped(whole)
    assert log.arrays.propensity is None
    filled = with_propensities(log, design)
    np.testing.assert_allclose(filled.arrays.propensities, whole.arrays.propensities, rtol=0, atol=1e-12)
    np.testing.assert_allclose(filled.arrays.propensity, whole.arrays.propensity, rtol=0, atol=1e-12)
    assert filled.propensity_status == "exact"
    assert log.arrays.propensity is None
    assert "propensity_0" in filled.frame
    assert ai.ArmMeans(filled).fit("aipw").estimate == pytest.approx(ai.ArmMeans(whole).fit("aipw").estimate)


def test_groups_and_a_design_by_name() -> None:
    env = FiniteContext([0.5, 0.5], [[0.2, 0.8], [0.8, 0.2]])
    design = designs.EpsilonGreedy(exploration=0.4)
    whole = design.run(env, 500, rng=3)
    filled = with_propensities(stripped(whole, design=design))
    np.testing.assert_allclose(filled.arrays.propensities, whole.arrays.propensities, rtol=0, atol=1e-12)


def test_posterior_draws_give_estimates() -> None:
    design = designs.Thompson(floor=0.1, batch_size=50)
    whole = design.run(ENV, 300, rng=4)
    filled = with_propensities(stripped(whole), design, walks=50)
    if filled.propensity_status == "exact":
        np.testing.assert_allclose(filled.arrays.propensities, whole.arrays.propensities, atol=1e-12)
    else:
        assert np.abs(filled.arrays.propensities - whole.arrays.propensities).max() < 0.15
    np.testing.assert_allclose(filled.arrays.propensities.sum(axis=1), 1.0)


def test_shares_of_batches() -> None:
    whole = designs.EpsilonGreedy(exploration=0.4, batch_size=50).run(ENV, 200, rng=5)
    filled = with_propensities(stripped(whole), "batch-shares")
    for b in range(4):
        here = whole.arrays.batch == b
        share = np.bincount(whole.arrays.action[here], minlength=3) / 50
        np.testing.assert_allclose(filled.arrays.propensities[here], np.tile(share, (50, 1)))
    assert filled.propensity_status == "estimated"
    assert says(ai.ArmMeans(filled).fit("aipw", weights="uniform").notes, propensities.ESTIMATED)


def test_what_cannot_be_filled() -> None:
    whole = designs.EpsilonGreedy(exploration=0.2).run(ENV, 200, rng=6)
    log = stripped(whole)
    with pytest.raises(ParameterError, match="does not name its design"):
        with_propensities(log)
    with pytest.raises(ParameterError, match="'batch-shares', got 'shares'"):
        with_propensities(log, "shares")
    with pytest.raises(InvalidForLog, match="require a log with batches"):
        with_propensities(log, "batch-shares")
    chosen_alone = AdaptiveLog(whole.frame, action="action", reward="reward", propensity="propensity")
    with pytest.raises(ParameterError, match="could not have chosen arm"):
        with_propensities(log, designs.UCB())
    with pytest.raises(InvalidForLog, match="no propensities that follow"):
        with_propensities(log, designs.PrivateUCB(epsilon=0.5))
    with pytest.raises(ParameterError, match="logged propensities differ from those of EpsilonGreedy"):
        with_propensities(chosen_alone, designs.EpsilonGreedy(exploration=0.5))
    short = stripped(designs.EpsilonGreedy(exploration=0.2, batch_size=5).run(ENV, 50, rng=1))
    with pytest.raises(ParameterError, match=r"batches .* have fewer than 10 rounds"):
        with_propensities(short, "batch-shares")
