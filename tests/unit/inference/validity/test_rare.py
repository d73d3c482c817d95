"""Rare outcomes and skewness are facts of the shape of rewards, whatever their coding."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from adaptinf.claims import rare_outcomes
from adaptinf.inference.distributions import sample_shape
from adaptinf.inference.distributions.sample_shape import (
    combined_skewness,
    skewness_doubt,
    squared_skewness,
    two_values,
    uncommon_outcomes,
)
from adaptinf.inference.validity.profile import profile_of
from adaptinf.inference.validity.rare import rare_cautions, rare_notes, tail_errors, without_interval
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.sums import aggregate
from tests.claims_said import says

CODINGS = [(0.0, 1.0), (0.0, 100.0), (1.0, -2.0), (1e6, 1.0), (0.0, 1e-9), (-3.0, 1e9)]


def test_two_values_whatever_they_are() -> None:
    sample = np.array([0.0, 1.0, 1.0, 0.0])
    for origin, step in CODINGS:
        values = origin + step * sample
        assert two_values(values) == (values.min(), values.max())
    assert two_values(np.zeros(3)) == two_values(np.ones(3)) == (0.0, 1.0)
    assert two_values(np.full(3, 7.0)) is None
    assert two_values(np.array([0.0, 1.0, 2.0])) is None


def test_uncommon_outcomes_are_what_the_commonest_leaves() -> None:
    rng = np.random.default_rng(3)
    values = rng.choice([0.0, 0.0, 0.0, 1.5, 2.5, 9.0], size=3000)
    values = np.where(rng.random(3000) < 0.2, rng.normal(size=3000), values)
    cell = rng.integers(0, 400, 3000)
    cell[cell == 7] = 8
    literal = np.full(400, np.inf)
    for code in range(400):
        own = values[cell == code]
        if own.size >= 2:
            most = np.unique(own, return_counts=True)[1].max()
            literal[code] = own.size - most if 2 * most >= own.size and most > 1 else np.inf
    np.testing.assert_array_equal(uncommon_outcomes(cell, values, 400), literal)
    assert np.isfinite(literal).any()
    assert np.isinf(literal[7])
    for origin, step in CODINGS:
        coded = origin + step * np.round(values)
        np.testing.assert_array_equal(
            uncommon_outcomes(cell, coded, 400), uncommon_outcomes(cell, np.round(values), 400)
        )


@pytest.mark.parametrize("share", [0.01, 0.5, 0.97])
def test_uncommon_outcomes_of_two_values_are_the_rarer_ones(share: float) -> None:
    rng = np.random.default_rng(4)
    reward, arm = (rng.random(500) < share).astype(float), rng.integers(0, 3, 500)
    for code, found in enumerate(uncommon_outcomes(arm, reward, 3)):
        own = reward[arm == code]
        assert found == min(own.sum(), (1 - own).sum())


def test_squared_skewness_is_scipys_and_invariant() -> None:
    sample = np.random.default_rng(5).lognormal(size=2000)
    expected = stats.skew(sample) ** 2
    for origin, step in CODINGS[:-1]:
        assert squared_skewness(origin + step * sample) == pytest.approx(expected, rel=1e-7)
    assert squared_skewness(np.full(9, 0.1)) == 0.0
    assert squared_skewness(np.zeros(0)) == 0.0
    rate = np.array([0.0] * 97 + [1.0] * 3)
    assert squared_skewness(rate) == pytest.approx((1 - 0.06) ** 2 / (0.03 * 0.97), rel=1e-12)


def test_a_profile_knows_the_shape_of_rewards() -> None:
    action, reward = np.array([0, 0, 0, 1, 1, 1]), np.array([0.0, 0.0, 1.0, 1.0, 1.0, 0.0])
    for origin, step in CODINGS:
        log = AdaptiveLog.from_arrays(LogArrays(action, origin + step * reward), arms=("a", "b"))
        profile = profile_of(log)
        assert profile.binary
        assert profile.uncommon.tolist() == [1.0, 1.0]
        assert profile.successes.tolist() == ([1.0, 2.0] if step > 0 else [2.0, 1.0])


def test_what_is_said_of_rare_outcomes() -> None:
    uncommon, skewness = np.array([3.0, 4.0, 5.0, 19.0, 20.0, np.inf]), np.array([0.0, 0, 0, 0.51, 0.5, 0.6])
    terms = tuple("abcdef")
    assert without_interval(uncommon).tolist() == [True, True, False, False, False, False]
    (note,) = rare_notes(terms, uncommon)
    assert says(note, rare_outcomes.NO_INTERVAL, terms="a (3), b (4)", fewest=5)
    tails = np.array([0.0, 0.0126, 0.0125, 0.0, 0.0, 0.0])
    few, strong = rare_cautions(terms, uncommon, skewness, tails)
    assert says(few, rare_outcomes.FEW_OUTCOMES, terms="c (5), d (19)", enough=20)
    assert says(strong, rare_outcomes.SKEWED_THOUGH_CORRECTED, terms="b, d, f")
    plain = rare_cautions(terms, uncommon, np.array([0.05, 0.051, 0, 0, 0, 0]))[1]
    assert says(plain, rare_outcomes.SKEWED_UNCORRECTED, terms="b")
    assert rare_notes(terms[4:], uncommon[4:]) == []
    assert rare_cautions(terms[4:5], uncommon[4:5], skewness[4:5], tails[4:5]) == ()


def test_the_error_of_a_corrected_tail_is_that_of_its_skewness() -> None:
    z = stats.norm.ppf(0.975)
    edgeworth = (2 * z**2 + 1) * stats.norm.pdf(z) / 6
    assert tail_errors(np.array([1.0, 0.25]), 0.5) == pytest.approx([edgeworth / 2, edgeworth / 4], rel=1e-4)
    # The sixth moment of an exponential distribution is 265, and its skewness 2.
    assert skewness_doubt(4.0, 2000) == pytest.approx(np.sqrt(265 / 4 / 2000), rel=1e-12)
    assert skewness_doubt(900.0, 1000) == skewness_doubt(0.0, 1000) == 1.0
    # The skewness of a difference of two means, with variances 1 and 3, and the cubes of their errors.
    skewness, variance = np.array([[0.4, 0.2]]), np.array([[1.0, 3.0]])
    cubes = skewness * variance**3
    assert combined_skewness(skewness, variance) == pytest.approx(cubes.sum() / 4**3)


def test_rows_and_sums_doubt_the_skewness_alike() -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"arm": rng.integers(3, size=600), "y": rng.lognormal(size=600)})
    frame["day"], frame["p"] = np.arange(600) // 100, 1 / 3
    log = AdaptiveLog(frame, action="arm", reward="y", batch="day", propensity="p")
    sums = aggregate(frame, action="arm", reward="y", batch="day", propensity="p")
    for codes in (np.arange(3), np.array([0, 2])):
        rows, cells = (profile_of(one).of_arms(codes) for one in (log, sums))
        assert cells.skewness_doubt == pytest.approx(rows.skewness_doubt, rel=1e-9)
        own = frame.y[np.isin(frame.arm, codes)]
        assert rows.skewness_doubt == skewness_doubt(rows.squared_skewness, len(own))


def test_many_cells_have_the_outcomes_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    cell = rng.integers(60, size=900)
    values = np.where(rng.random(900) < 0.4, 0.0, rng.integers(3, size=900).astype(float))
    values[::9] = -0.0
    few = uncommon_outcomes(cell, values, 60)
    assert 10 < np.count_nonzero(np.isfinite(few)) < 60
    monkeypatch.setattr(sample_shape, "_MANY_CELLS", 1)
    np.testing.assert_array_equal(uncommon_outcomes(cell, values, 60), few)
    np.testing.assert_array_equal(uncommon_outcomes(cell[:0], values[:0], 3), np.full(3, np.inf))
