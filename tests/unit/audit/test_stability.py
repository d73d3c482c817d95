"""Arm counts by re-simulation: closed forms, a stable and an unstable design, and recommend."""

from __future__ import annotations

import math

import numpy as np
import pytest
from claims_said import says

from adaptinf import designs
from adaptinf.audit.rerun.simulated_counts import stability
from adaptinf.claims.arms.sample_means import VARIATION
from adaptinf.designs.recorded_designs import rebuilt
from adaptinf.errors import ParameterError
from adaptinf.inference.recommend.recommendation import recommend
from adaptinf.log import AdaptiveLog, DesignRecord, LogArrays
from adaptinf.simulation.environments import BernoulliArms, FiniteContext

EQUAL = BernoulliArms([0.5, 0.5])


def test_uniform_counts_are_binomial() -> None:
    """sd over median is sqrt(T/4) / (T/2); a standard deviation of 4,000 runs errs by 1.1%."""
    found = stability(designs.Uniform(), EQUAL, 400, 4000, rng=1)
    assert found.variation == pytest.approx(math.sqrt(100) / 200, rel=0.06)
    assert found.frame["mean"].sum() == pytest.approx(400)
    assert found.frame["median"].tolist() == pytest.approx([200, 200], abs=1.5)


def test_the_figures_are_those_of_the_runs() -> None:
    pulls = designs.UCB().replicate(EQUAL, 300, 100, 3).pulls
    found = stability(designs.UCB(), EQUAL, 300, 100, rng=3)
    assert found.frame["sd"].to_numpy() == pytest.approx(pulls.std(axis=0, ddof=1))
    expected = pulls.std(axis=0, ddof=1) / np.median(pulls, axis=0)
    assert found.frame["variation"].to_numpy() == pytest.approx(expected)
    assert found.variation == pytest.approx(expected.max())


def test_ucb_settles_and_thompson_does_not() -> None:
    ucb = [stability(designs.UCB(), EQUAL, t, 300, rng=0).variation for t in (200, 5000)]
    thompson = [
        stability(designs.Thompson(draws=20, batch_size=10), EQUAL, t, 200, rng=0).variation
        for t in (200, 2000)
    ]
    assert ucb[1] < 0.9 * ucb[0]
    assert thompson[1] > 0.9 * thompson[0]
    assert thompson[1] > 2.5 * ucb[1]


def test_a_log_gives_design_and_horizon_to_recommend() -> None:
    log = designs.UCB().run(EQUAL, 500, rng=0)
    found = stability(log, EQUAL, replications=64, rng=0)
    assert (found.horizon, found.replications) == (500, 64)
    assert "largest variation" in str(found)
    table = recommend(log, stability=found)
    reason = table.frame.set_index("method").loc["sample-mean", "reason"]
    assert says(reason, VARIATION, variation=found.variation)


def test_other_arms_or_rounds_than_the_logs() -> None:
    log = designs.UCB().run(EQUAL, 200, rng=0)
    three = BernoulliArms([0.5, 0.5, 0.5])
    with pytest.raises(ParameterError, match=r"environment has arms \(0, 1, 2\), but the log has \(0, 1\)"):
        stability(log, three, replications=2, rng=0)
    found = stability(designs.UCB(), three, 100, 2, rng=0)
    with pytest.raises(ParameterError, match="2 problems") as caught:
        recommend(log, stability=found)
    assert "stability refers to 100 rounds, but the log has 200" in str(caught.value)
    assert "stability refers to the arms [0, 1, 2]" in str(caught.value)
    assert recommend(log, stability=stability(designs.UCB(), EQUAL, 200, 2, rng=0)).methods


def test_contexts_are_summed_over() -> None:
    environment = FiniteContext([0.5, 0.5], [[0.3, 0.6], [0.7, 0.4]])
    found = stability(designs.Uniform(), environment, 200, 64, rng=0)
    assert found.frame["mean"].sum() == pytest.approx(200)


def test_an_arm_that_is_hardly_ever_chosen() -> None:
    found = stability(designs.Uniform(), BernoulliArms([0.5, 0.5, 0.5]), 1, 64, rng=0)
    assert found.variation == math.inf


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("ucb", "design must be a design or a log"),
        (None, "design must be"),
        ("unnamed", "does not name its design"),
        ("unknown", "Urn cannot be reconstructed from the log's record"),
        ("wrong", "UCB cannot be reconstructed from the log's record"),
    ],
)
def test_wrong_sources(source: str | None, message: str) -> None:
    records = {"unnamed": None, "unknown": DesignRecord("Urn"), "wrong": DesignRecord("UCB", {"a": 1})}
    given: object = source
    if source in records:
        arrays = LogArrays(action=np.zeros(3, dtype=np.int64), reward=np.zeros(3))
        given = AdaptiveLog.from_arrays(arrays, arms=("a", "b"), design=records[source])
    with pytest.raises(ParameterError, match=message):
        stability(given, EQUAL, 100, 64)


def test_no_horizon_and_too_few_runs() -> None:
    with pytest.raises(ParameterError, match="2 problems") as caught:
        stability(designs.UCB(), EQUAL, replications=1)
    assert "pass horizon=" in str(caught.value)


def test_a_name_alone_makes_no_design() -> None:
    """Defaults would be a guess: the log may be of any floor, width or prior."""
    assert rebuilt(DesignRecord("Thompson", {})) is None
    assert rebuilt(DesignRecord("UCB", {})) is None
    assert rebuilt(DesignRecord("nobody", {})) is None
    assert rebuilt(designs.Uniform().record()) == designs.Uniform()
    for design in (designs.Thompson(floor=(0.1, 0.5)), designs.Mixture(design=designs.UCB(width=3.0))):
        assert rebuilt(design.record()) == design
    partial = dict(designs.Thompson().record().parameters)
    del partial["floor"]
    assert rebuilt(DesignRecord("Thompson", partial)) is None
