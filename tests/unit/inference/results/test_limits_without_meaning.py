"""Intervals so long that they say nothing are none, with the reason under the table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims import tables
from adaptinf.inference.distributions.references import NormalReference, StudentReference
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.results.log_facts import meaningful
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
    assert np.ptp(law.interval(np.log(0.05))[0]) > 1e6 * spread
    wild = replace(found, reference=law)
    for limits in (wild.conf_int(), wild.conf_int_simultaneous(method="bonferroni")):
        assert limits.isna().all(axis=1).tolist() == [True, False]
    assert np.isfinite(wild.pvalues).all()
    notes = wild.summary(adjust=None).notes
    assert says(notes, tables.TOO_LONG, terms="1 - 0", scale=tables.OF_REWARDS())
    assert says(wild.notes, tables.TOO_LONG, terms="1 - 0")
    assert not says(found.notes, tables.TOO_LONG)
    assert sum(says([note], tables.TOO_LONG) for note in replace(wild, null=1.0).summary().notes) == 1
    assert not says(found.summary().notes, tables.TOO_LONG)


def test_lengths_are_of_the_scale_of_what_is_estimated() -> None:
    limits, errors = np.array([[-2e6, 0.0], [0.0, 5e5]]), np.array([1.0, 0.1])

    def left(kind: str, spread: float) -> list[bool]:
        return np.isfinite(meaningful(limits, [Estimand(kind)] * 2, spread, errors)[:, 0]).tolist()

    assert left("arm-mean", 1.0) == [False, True]
    assert left("policy-contrast", 1e-3) == [False, False]
    assert left("contrast", 1e3) == [True, True]
    assert left("lift", 1e3) == [False, True]
    assert left("coefficient", 1e3) == [False, False]
    assert left("arm-mean", np.nan) == [False, False]
    unbounded = np.array([[-np.inf, 3.0]])
    assert np.array_equal(meaningful(unbounded, [Estimand("lift")], 1.0, errors[:1]), unbounded)


def test_sums_and_declared_ranges_have_a_scale(log: AdaptiveLog) -> None:
    sums = ai.Sums.of_log(log)
    assert ai.ArmMeans(sums).fit().facts.spread == pytest.approx(log.arrays.reward.std())
    found = ai.ArmMeans(log).fit()
    wide = found.std_error * 1e8
    normal = replace(found, reference=NormalReference(found.estimate, wide), std_error=wide)
    assert normal.conf_int().isna().all(axis=None)
    assert says(normal.summary().notes, tables.TOO_LONG, longest=1_000_000)
