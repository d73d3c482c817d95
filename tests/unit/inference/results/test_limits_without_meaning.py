"""Intervals so long that they say nothing are none, with the reason under the table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims import tables
from adaptinf.inference.distributions.references import NormalReference, StudentReference
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.results.log_facts import RANGES, meaningful
from adaptinf.inference.sequences.tracks import SequenceReference
from adaptinf.inference.winners.winner_law import METHODS, WinnerLaw
from adaptinf.log import AdaptiveLog


@pytest.fixture(scope="module")
def log() -> AdaptiveLog:
    arms = ai.environments.NormalArms([0.0, 0.5, 1.0])
    return ai.designs.EpsilonGreedy(exploration=0.3, batch_size=50).run(arms, horizon=300, rng=0)


def test_limits_of_too_few_degrees_of_freedom_are_none(log: AdaptiveLog) -> None:
    found = ai.Contrasts(log, control=0).fit()
    spread = np.ptp(log.arrays.reward)
    assert found.facts.spread == spread
    law = StudentReference(found.estimate, found.std_error, np.array([0.05, 30.0]))
    assert np.ptp(law.interval(np.log(0.05))[0]) > RANGES * spread
    wild = replace(found, reference=law)
    for limits in (wild.conf_int(), wild.conf_int_simultaneous(method="bonferroni")):
        assert limits.isna().all(axis=1).tolist() == [True, False]
    assert np.isfinite(wild.pvalues).all()
    notes = wild.explain(adjust=None).texts
    assert says(notes, tables.TOO_LONG, terms="1 - 0", scale=tables.OF_RANGE(), longest=10)
    assert says(wild.notes, tables.TOO_LONG, terms="1 - 0")
    assert not says(found.notes, tables.TOO_LONG)
    assert sum(says([note], tables.TOO_LONG) for note in replace(wild, null=1.0).explain().texts) == 1
    assert not says(found.explain().texts, tables.TOO_LONG)


def test_a_term_without_information_does_not_widen_the_others(log: AdaptiveLog) -> None:
    found = ai.Contrasts(log, control=0).fit()
    law = StudentReference(found.estimate, found.std_error, np.array([0.05, 30.0]))
    wild = replace(found, reference=law)
    limits, alone = wild.conf_int_simultaneous(), wild.conf_int()
    assert limits.isna().all(axis=1).tolist() == [True, False]
    np.testing.assert_allclose(limits.iloc[1], alone.iloc[1], rtol=1e-12)
    pvalues = wild.pvalues_simultaneous()
    assert np.isnan(pvalues.iloc[0])
    assert pvalues.iloc[1] == pytest.approx(wild.pvalues.iloc[1], rel=1e-12)
    assert says(wild.explain(adjust="max-t").texts, tables.OUTSIDE_FAMILY, terms="1 - 0")
    assert says(wild.explain(adjust="max-t").texts, tables.AT_ONCE, count=1)
    assert not says(wild.explain(adjust=None).texts, tables.OUTSIDE_FAMILY)
    assert not says(found.explain(adjust="max-t").texts, tables.OUTSIDE_FAMILY)


def test_an_interval_of_two_rounds_of_no_and_yes_has_no_information() -> None:
    frame = pd.DataFrame({"arm": ["a", "b"] * 40, "y": 0.0, "p": 0.5, "group": "large"})
    frame.loc[::3, "y"] = 1.0
    found = ai.CATE(
        ai.AdaptiveLog(frame, action="arm", reward="y", propensity="p", context=["group"]), by="group"
    ).fit("aipw")
    law = StudentReference(found.estimate, found.std_error, np.full(1, 0.5))
    low, high = law.interval(np.log(0.05))[0]
    assert 10.0 < high - low < 1e6
    wild = replace(found, reference=law)
    assert wild.conf_int().isna().all(axis=None)
    assert "without an interval" in wild.sentence()
    assert [one.kind for one in wild.explain().reasons if "uninformative" in one.text] == ["missing"]


def test_lengths_are_of_the_scale_of_what_is_estimated() -> None:
    limits, errors = np.array([[-2e6, 0.0], [0.0, 5e5]]), np.array([1.0, 0.1])

    def left(kind: str, longest: float) -> list[bool]:
        return np.isfinite(meaningful(limits, [Estimand(kind)] * 2, longest, errors)[:, 0]).tolist()

    assert left("arm-mean", 1e6) == [False, True]
    assert left("policy-contrast", 1e3) == [False, False]
    assert left("contrast", 1e9) == [True, True]
    assert left("lift", 1e3) == [False, True]
    assert left("coefficient", 1e3) == [False, False]
    assert left("arm-mean", np.nan) == [False, False]
    unbounded = np.array([[-np.inf, 3.0]])
    assert np.array_equal(meaningful(unbounded, [Estimand("lift")], 1.0, errors[:1]), unbounded)


def test_sums_and_declared_ranges_have_a_scale(log: AdaptiveLog) -> None:
    facts = ai.ArmMeans(ai.Sums.of_log(log)).fit().facts
    assert facts.spread == pytest.approx(log.arrays.reward.std())
    assert (facts.ranged, facts.longest) == (False, 1e6 * facts.spread)
    arms = ai.environments.BernoulliArms([0.3, 0.6])
    binary = ai.Sums.of_log(ai.designs.EpsilonGreedy(exploration=0.3, batch_size=50).run(arms, 300, rng=0))
    facts = ai.ArmMeans(binary).fit().facts
    assert (facts.ranged, facts.spread, facts.longest) == (True, pytest.approx(1.0), pytest.approx(10.0))
    found = ai.ArmMeans(log).fit()
    wide = found.std_error * 1e8
    normal = replace(found, reference=NormalReference(found.estimate, wide), std_error=wide)
    assert normal.conf_int().isna().all(axis=None)
    assert says(normal.explain().texts, tables.TOO_LONG, longest=10)


def test_intervals_between_limits_that_are_near_are_left_to_who_asks(
    log: AdaptiveLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[Any] = []
    for law in (SequenceReference, WinnerLaw):
        interval = law.interval
        monkeypatch.setattr(law, "interval", lambda *one, own=interval: (computed.append(one), own(*one))[1])
    binary = ai.designs.EpsilonGreedy(exploration=0.3).run(
        ai.environments.BernoulliArms([0.4, 0.6]), horizon=200, rng=0
    )
    sequence, winner = ai.ConfidenceSequence(binary).fit(), ai.Winner(log).fit()
    assert isinstance(winner.reference, WinnerLaw)
    assert computed == []
    assert sequence.conf_int().notna().all(axis=None)
    assert winner.conf_int().notna().all(axis=None)
    assert len(computed) == 2


@pytest.mark.parametrize("alpha", [1e-300, 0.05, 0.4])
def test_an_interval_lies_within_its_enclosure(log: AdaptiveLog, alpha: float) -> None:
    for method in METHODS:
        law = ai.Winner(log).fit(method=method).reference
        assert isinstance(law, WinnerLaw)
        around, (limits,) = law.enclosure(np.log(alpha))[0], law.interval(np.log(alpha))
        assert around[0] <= limits[0] < limits[1] <= around[1]
        assert np.isfinite(around).all() == (method != "conditional")
        assert np.array_equal(around, limits) == (method == "projection")


def test_where_limits_are_far_the_interval_decides() -> None:
    design = ai.designs.EpsilonGreedy(exploration=0.3)
    log = design.run(ai.environments.BernoulliArms([0.4, 0.6]), horizon=200, rng=0)
    found = ai.ConfidenceSequence(log).fit()
    lengths = np.diff(found.conf_int().to_numpy())[:, 0]
    assert found.facts.spread == 1.0 > lengths.max() > lengths.min()

    def told(spread: float) -> bool:
        return says(replace(found, facts=replace(found.facts, spread=spread)).notes, tables.TOO_LONG)

    assert not told((1.0 + lengths.max()) / 2.0 / RANGES)
    assert told((lengths.min() + lengths.max()) / 2.0 / RANGES)
