"""BinMeans: reads releases alone, refuses what it cannot use, and its tests agree with its intervals."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.audit.simulation.engine import true_value
from adaptinf.audit.simulation.simulated_coverage import coverage
from adaptinf.claims.privacy import bin_means as claims
from adaptinf.claims.privacy import guarantees
from adaptinf.designs import Uniform
from adaptinf.designs.local.bins import LDPBandit
from adaptinf.designs.mixture import Mixture
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.released.bin_tests import (
    AnytimeTest,
    BinReports,
    BudgetTest,
    InvertedTest,
    read_reports,
)
from adaptinf.inference.released.released_bin_means import BinMeans
from adaptinf.inference.results.estimand import Estimand
from adaptinf.log import AdaptiveLog
from adaptinf.simulation.environments import BernoulliArms
from adaptinf.simulation.environments.vector_arms import SmoothArms

ARMS = SmoothArms(3, 2)
METHODS = ("budget", "anytime")


@functools.cache
def gathered() -> AdaptiveLog:
    return LDPBandit(epsilon=200.0).run(ARMS, 6_000, rng=0)


def with_releases(releases: pd.DataFrame) -> AdaptiveLog:
    columns = {name: releases[name].to_numpy() for name in releases}
    return AdaptiveLog.from_arrays(
        gathered().arrays,
        arms=gathered().arms,
        propensity_status="exact",
        guarantee=gathered().guarantee,
        releases=columns,
    )


def reports(**changes: Any) -> BinReports:
    """One pair whose 1,000 participants make one stage."""
    one = np.ones((1, 1))
    known = BinReports(
        bins=np.zeros(1, dtype=np.int64),
        arms=(0,),
        low=np.zeros((1, 1)),
        high=np.ones((1, 1)),
        participants=np.array([1_000.0]),
        count=np.array([500.0]),
        total=np.array([200.0]),
        ahead=np.array([1_000.0]),
        spent=one,
        weighted_count=one * 500.0 / math.sqrt(1_000.0),
        weighted_total=one * 200.0 / math.sqrt(1_000.0),
        weighted_squares=one * 0.5,
        scale=1e-9,
        words=(1, 2, 3, 4),
    )
    return dataclasses.replace(known, **changes)


@pytest.mark.parametrize("method", METHODS)
def test_arrays_of_the_log_are_never_read(method: str) -> None:
    rng = np.random.default_rng(0)
    n = gathered().n_rounds
    garbage = dataclasses.replace(
        gathered().arrays,
        action=rng.integers(3, size=n),
        reward=np.full(n, np.nan),
        propensity=None,
        propensities=None,
        context={"x1": np.full(n, np.nan), "x2": rng.normal(size=n)},
    )
    columns = {name: gathered().releases[name].to_numpy() for name in gathered().releases}
    other = AdaptiveLog.from_arrays(
        garbage, arms=gathered().arms, propensity_status="absent", releases=columns
    )
    ours, theirs = BinMeans(gathered()).fit(method=method), BinMeans(other).fit(method=method)
    pd.testing.assert_frame_equal(ours.conf_int(), theirs.conf_int())
    pd.testing.assert_series_equal(ours.pvalues, theirs.pvalues)
    pd.testing.assert_series_equal(ours.params, theirs.params)
    assert ours.private


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.3])
def test_p_is_at_most_alpha_exactly_where_the_interval_excludes_the_null(method: str, alpha: float) -> None:
    result = BinMeans(gathered()).fit(method=method)
    assert result.validity == {"budget": "asymptotic", "anytime": "exact"}[method]
    limits = result.conf_int(alpha)
    assert len(limits) > 20
    for null in (*np.linspace(0.0, 1.0, 53), 0.337, 1e-9):
        accepted = np.exp(result.reference.log_pvalues(float(null))) > alpha
        inside = (limits["low"] <= null) & (null <= limits["high"])
        np.testing.assert_array_equal(accepted, inside)
    at = result.reference.test.log_pvalues_at  # type: ignore[attr-defined]
    for column, side in (("low", -1e-9), ("high", 1e-9)):
        ends = limits[column].to_numpy()
        inner = (ends > 1e-6) & (ends < 1 - 1e-6) & (limits["low"] < limits["high"]).to_numpy()
        assert inner.sum() > 10
        assert (at((ends + side)[:, None])[inner, 0] <= math.log(alpha)).all()
        assert (at((ends - side)[:, None])[inner, 0] > math.log(alpha)).all()
    assert (result.reference.log_pvalues(-0.1) == -np.inf).all()
    assert (result.reference.log_pvalues(1.1) == -np.inf).all()


def test_without_noise_and_at_a_spent_budget_it_is_the_score_interval_of_a_proportion() -> None:
    """Wilson's interval: 200 of 500."""
    known = reports()
    limits = InvertedTest(BudgetTest(known, np.array([3.0])), "", False).interval(math.log(0.05))
    z, n, p = 1.959963984540054, 500, 0.4
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    assert limits[0] == pytest.approx([middle - half, middle + half], abs=1e-6)


def test_with_noise_alone_it_is_fiellers_interval() -> None:
    """(V - f U)^2 = 2 t b^2 z^2 (1 + f^2), a quadratic equation in f."""
    b, t, u, v = 0.2, 1_000.0, 500.0, 200.0
    known = reports(scale=b, weighted_squares=np.zeros((1, 1)))
    limits = InvertedTest(BudgetTest(known, np.zeros(1)), "", False).interval(math.log(0.05))
    c = 2 * t * b * b * 1.959963984540054**2
    roots = np.sort(np.roots([u * u - c, -2 * u * v, v * v - c]).real)
    assert limits[0] == pytest.approx(roots, abs=1e-9)


def test_a_coin_fills_what_is_left_of_the_budget() -> None:
    quarter = np.full((1, 1), 0.25)
    known = reports(
        spent=quarter,
        weighted_squares=0.5 * quarter,
        **{name: 0.5 * getattr(reports(), name) for name in ("weighted_count", "weighted_total")},
    )
    value = np.array([[0.35]])
    alone = BudgetTest(known, np.zeros(1)).statistic(value)[0, 0]
    full = BudgetTest(reports(), np.zeros(1)).statistic(value)[0, 0]
    assert full == pytest.approx((200 - 0.35 * 500) / math.sqrt(500 * 0.35 * 0.65), abs=1e-6)
    assert alone == pytest.approx(0.5 * full, abs=1e-6)
    other = BudgetTest(known, np.array([1.3])).statistic(value)[0, 0]
    assert other - alone == pytest.approx(math.sqrt(0.75) * 1.3)


def test_where_no_mean_is_accepted_the_interval_is_the_mean_that_fits_best() -> None:
    for total, best in ((-400.0, 0.0), (900.0, 1.0)):
        known = reports(
            scale=0.2,
            weighted_total=np.full((1, 1), total / math.sqrt(1_000.0)),
            weighted_squares=np.zeros((1, 1)),
        )
        reference = InvertedTest(BudgetTest(known, np.zeros(1)), "", False)
        assert reference.interval(math.log(0.05))[0].tolist() == [best, best]
        assert reference.log_pvalues(best)[0] == 0.0
        assert reference.log_pvalues(0.5)[0] < -10.0


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("calibration", ["corrected", "published"])
def test_every_term_has_an_interval_and_a_p_value_though_ratios_mean_nothing(
    method: str, calibration: str
) -> None:
    """An interval that were left out because of outcomes would select among the others."""
    log = LDPBandit(epsilon=8.0, calibration=calibration).run(ARMS, 1_000, rng=0)
    result = BinMeans(log).fit(method=method)
    sums = ai.designs.bin_sums(log)
    limits = result.conf_int()
    assert len(limits) == len(sums)
    assert set(sums.loc[sums["bin"] == 0, "arm"]) == set(ARMS.arms)
    assert np.isfinite(limits.to_numpy()).all()
    assert (limits["low"] <= limits["high"]).all()
    assert result.pvalues.between(0.0, 1.0).all()
    gone = result.params.isna().to_numpy()
    assert gone.any()
    np.testing.assert_array_equal(gone, ~read_reports(log).clear())
    np.testing.assert_array_equal(np.isnan(result.bse), gone)
    assert says(result.notes, claims.NO_ESTIMATE)


def test_whether_a_count_drowns_is_told_by_the_other_arms() -> None:
    known = read_reports(LDPBandit(epsilon=8.0).run(ARMS, 1_000, rng=0))
    first = known.clear()
    own = known.bins == 1
    code = int(np.flatnonzero(own)[0])
    count = known.count.copy()
    count[code] = 1e6
    moved = dataclasses.replace(known, count=count).clear()
    assert moved[code] == first[code]
    assert moved[own].sum() == own.sum() - 1
    lone = reports(count=np.array([3.0 * 0.1 * math.sqrt(2_000.0) - 0.01]), scale=0.1)
    assert not lone.clear()[0]
    assert dataclasses.replace(lone, count=lone.count + 0.02).clear()[0]


def test_terms_estimands_and_details() -> None:
    result = BinMeans(gathered()).fit()
    sums = ai.designs.bin_sums(gathered())
    assert list(result.terms) == [
        f"arm {arm}, bin {b}" for b, arm in zip(sums["bin"], sums["arm"], strict=True)
    ]
    np.testing.assert_array_equal(result.details["participants"], sums["participants"])
    np.testing.assert_array_equal(result.details["released_count"], sums["count"])
    ratio = (sums["sum"] / sums["count"]).clip(0.0, 1.0).to_numpy()
    np.testing.assert_allclose(result.params, ratio, atol=1e-12)
    row = sums.iloc[7]
    box = ((row["low_x1"], row["high_x1"]), (row["low_x2"], row["high_x2"]))
    assert result.estimands[7] == Estimand("bin-mean", arm=row["arm"], group=box)
    truth = ARMS.averages([[box[0][0], box[1][0]]], [[box[0][1], box[1][1]]])[0, int(row["arm"])]
    assert true_value(result.estimands[7], ARMS) == truth
    assert result.model == "BinMeans"
    assert guarantees.COVERS_RELEASES() in result.explain().texts


def test_true_values_over_bins_need_averages() -> None:
    estimand = Estimand("bin-mean", arm=0, group=((0.0, 0.5),))
    for env in (BernoulliArms([0.5, 0.4]), SmoothArms(2, 1, contexts=[[0.2]], order="resampled")):
        with pytest.raises(ParameterError, match="no averages over bins"):
            true_value(estimand, env)
    with pytest.raises(ParameterError, match="no arm 7"):
        true_value(dataclasses.replace(estimand, arm=7), SmoothArms(2, 1))


def test_budget_is_spent_in_full_where_the_trial_ends_a_bin_and_nearly_so_where_it_is_halved() -> None:
    log = LDPBandit(epsilon=30.0).run(ARMS, 40_000, rng=1)
    known, sums = read_reports(log), ai.designs.bin_sums(log)
    spent = known.spent.sum(axis=1)
    assert (known.spent >= 0.0).all()
    assert (spent <= 1.0 + 1e-12).all()
    ends = (sums["until"] == 40_000).to_numpy()
    assert 5 < ends.sum() < ends.size
    np.testing.assert_allclose(spent[ends], 1.0, atol=1e-12)
    longest = sums.groupby("bin")["participants"].transform("max")
    halved = ~ends & (sums["participants"] == longest).to_numpy()
    assert halved.sum() > 10
    assert np.median(spent[halved]) > 0.9
    assert spent[~ends & ~halved].max() < np.median(spent[halved])


def test_weighted_sums_are_those_of_the_trial_alone() -> None:
    """At an epsilon without noise, a bin with arms that never change: squares are weights of what is seen."""
    logs = (ARMS.auxiliary(3_000, epsilon=1e9, rng=1),)
    design = LDPBandit(epsilon=1e9, auxiliary=logs, max_bins=1, width=1e9)
    log = design.run(ARMS, 500, rng=2)
    known = read_reports(log)
    assert known.count == pytest.approx(np.bincount(log.arrays.action, minlength=3), abs=1e-4)
    assert known.spent.sum(axis=1) == pytest.approx(np.ones(3))
    t = np.arange(1, 501)
    weight = np.sqrt((np.sqrt(t) - np.sqrt(t - 1)) / math.sqrt(500))
    for arm in range(3):
        pulled = log.arrays.action == arm
        assert known.weighted_count[arm, 0] == pytest.approx(weight[pulled].sum(), abs=1e-5)
        paid = (weight * log.arrays.reward)[pulled].sum()
        assert known.weighted_total[arm, 0] == pytest.approx(paid, abs=1e-5)
        assert known.weighted_squares[arm, 0] == pytest.approx((weight**2)[pulled].sum(), abs=1e-5)


def test_the_coin_is_the_same_in_each_analysis_and_moves_with_the_seed_and_the_releases() -> None:
    known = read_reports(gathered())
    first, again = BinMeans(gathered()).fit().conf_int(), BinMeans(gathered()).fit(rng=0).conf_int()
    pd.testing.assert_frame_equal(first, again)
    other = BinMeans(gathered()).fit(rng=1).conf_int()
    moved = (first != other).any(axis=1).to_numpy()
    left = 1.0 - known.spent.sum(axis=1)
    assert moved[left > 0.01].all()
    assert not moved[left < 1e-13].any()
    assert read_reports(LDPBandit(epsilon=200.0).run(ARMS, 6_000, rng=1)).words != known.words


def test_results_survive_storage_and_a_mixture_can_be_read(tmp_path: Any) -> None:
    gathered().to_parquet(tmp_path / "log.parquet")
    again = BinMeans(ai.read_log(tmp_path / "log.parquet")).fit()
    pd.testing.assert_frame_equal(again.conf_int(), BinMeans(gathered()).fit().conf_int())
    mixed = Mixture(LDPBandit(epsilon=200.0), exploration=0.5).run(ARMS, 3_000, rng=10)
    assert np.isfinite(BinMeans(mixed).fit().conf_int().to_numpy()).all()


@pytest.mark.slow
def test_coverage_knows_the_truth_of_every_term() -> None:
    seen = coverage(
        LDPBandit(epsilon=30.0), ARMS, lambda log: BinMeans(log).fit(), horizon=3_000, replications=40, rng=3
    ).frame
    assert len(seen) > 40
    assert 0.85 < np.average(seen["coverage"], weights=seen["runs"]) <= 1.0


@pytest.mark.parametrize("given", [None, pd.DataFrame({"value": [1.0]}), 3])
def test_what_is_not_a_log_is_refused(given: Any) -> None:
    with pytest.raises(ParameterError, match=f"log must be an AdaptiveLog, got {type(given).__name__}"):
        BinMeans(given)


def test_arms_that_read_the_same_are_refused() -> None:
    columns = {name: gathered().releases[name].to_numpy() for name in gathered().releases}
    log = AdaptiveLog.from_arrays(
        gathered().arrays,
        arms=(0, 1, "1"),
        propensity_status="exact",
        guarantee=gathered().guarantee,
        releases=columns,
    )
    with pytest.raises(InvalidForLog) as error:
        BinMeans(log)
    assert says(error.value.reason, claims.SAME_LABELS)


def test_logs_that_cannot_be_used() -> None:
    with pytest.raises(InvalidForLog) as error:
        BinMeans(Uniform().run(ARMS, 10, rng=0))
    assert says(error.value.reason, claims.NO_BIN_SUMS)
    releases = gathered().releases
    names = releases["name"].astype(str)
    plain = with_releases(releases[~names.str.startswith(("spent", "weighted_"))])
    with pytest.raises(InvalidForLog) as error:
        BinMeans(plain)
    assert says(error.value.reason, claims.NO_STAGES)
    assert len(ai.designs.bin_sums(plain)) == len(ai.designs.bin_sums(gathered()))
    for prefix in ("weighted_sum_1", "sum_2", "participants_0"):
        with pytest.raises(InvalidForLog) as error:
            BinMeans(with_releases(releases[names != prefix]))
        assert says(error.value.reason, claims.SUMS_MISSING)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "wald"}, "method must be one of 'budget', 'anytime'"),
        ({"rng": -1}, "rng must be a whole number of at least 0"),
        ({"rng": None}, "rng must be a whole number"),
        ({"null": math.nan}, "null must be"),
        ({"null": "half"}, "null must be a number"),
    ],
)
def test_arguments_that_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        BinMeans(gathered()).fit(**arguments)


def test_a_fair_guess_has_little_wealth_and_a_wrong_one_much() -> None:
    known = reports(scale=0.05)
    test = AnytimeTest(known)
    wealth = test.log_wealth(np.array([[0.4, 0.2, 0.8]]))[0]
    assert wealth[0] < 0.0 < 10.0 < min(wealth[1:])
    slopes = test.slopes()[0]
    np.testing.assert_allclose(np.sort(slopes), np.sort(-slopes))
    assert (np.abs(slopes) * known.scale < 1.0).all()
