"""Confidence sequences: edge cases, the running table, refusals, and agreement of p-values with intervals."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from claims_said import says
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptinf import designs
from adaptinf.claims import Said
from adaptinf.claims import sequences as claims
from adaptinf.claims.contexts import BY_DESIGN, FOLLOWED, NO_PART, VISIBLY
from adaptinf.claims.data.availability import NEVER_TOGETHER
from adaptinf.claims.propensities import EVERY_ONE_NEEDED, NEEDED
from adaptinf.claims.tables import WITHOUT_STD_ERROR
from adaptinf.designs import UCB, EpsilonGreedy
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.arms.arm_order import ORDER
from adaptinf.inference.recommend.rows import sequence_rows
from adaptinf.inference.sequences import sequence_methods
from adaptinf.inference.sequences.confidence_sequence import ConfidenceSequence
from adaptinf.inference.sequences.sequence_results import SequenceResults, spread_rounds
from adaptinf.inference.sequences.sides import BettingSide, betting_peak, predictable_moments
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.simulation.environments import BernoulliArms

METHODS = ("betting", "empirical-bernstein", "gamma-exponential", "normal-mixture", "asymptotic")


def log_of(
    action: Any,
    reward: Any,
    propensities: Any = None,
    *,
    chosen_only: bool = False,
    reward_range: tuple[float, float] | None = (0.0, 1.0),
    n_arms: int = 2,
    **others: Any,
) -> AdaptiveLog:
    codes = np.asarray(action, dtype=np.int64)
    rows = None if propensities is None else np.broadcast_to(propensities, (len(codes), n_arms)).copy()
    arrays = LogArrays(
        action=codes,
        reward=np.asarray(reward, dtype=float),
        propensity=None if rows is None else rows[np.arange(len(codes)), codes],
        propensities=None if chosen_only else rows,
        context=others.pop("context", {}),
    )
    return AdaptiveLog.from_arrays(arrays, arms=tuple("abcd"[:n_arms]), reward_range=reward_range, **others)


def greedy(seed: int = 0, horizon: int = 400) -> AdaptiveLog:
    return EpsilonGreedy(exploration=0.3).run(BernoulliArms([0.3, 0.6]), horizon=horizon, rng=seed)


def fits(log: AdaptiveLog) -> list[SequenceResults]:
    results = []
    for method in METHODS:
        options: dict[str, Any] = {"start": 10} if method == "asymptotic" else {}
        for estimator in ("sample-mean", "ipw", "aipw"):
            results.append(ConfidenceSequence(log).fit(method, estimator=estimator, **options))
            contrast = ConfidenceSequence(log, "contrast", treatment=log.arms[1], control=log.arms[0])
            results.append(contrast.fit(method, estimator=estimator, **options))
    return results


def test_later_rounds_do_not_move_the_table() -> None:
    """The past of a sequence is fixed: row t of the table is the same when the log ends at t."""
    log = greedy()
    arrays = log.arrays
    assert arrays.propensity is not None
    assert arrays.propensities is not None
    for stop in (1, 40, 233):
        short = AdaptiveLog.from_arrays(
            LogArrays(
                action=arrays.action[:stop],
                reward=arrays.reward[:stop],
                propensity=arrays.propensity[:stop],
                propensities=arrays.propensities[:stop],
            ),
            arms=log.arms,
            reward_range=log.reward_range,
            context_free=True,
        )
        for long_run, short_run in zip(fits(log), fits(short), strict=True):
            row = long_run.table(rounds=[stop])
            np.testing.assert_allclose(
                row[["low", "high"]].to_numpy(), short_run.conf_int().to_numpy(), atol=1e-12
            )
            np.testing.assert_allclose(row["estimate"], short_run.params, atol=1e-12)


def test_table_is_nested_and_ends_at_the_interval() -> None:
    log = greedy(3)
    for result in fits(log):
        table = result.table(0.1)
        assert list(table.columns) == ["t", "term", "estimate", "low", "high"]
        assert table["t"].is_monotonic_increasing
        assert table["t"].unique().tolist() == spread_rounds(400).tolist()
        for term in result.terms:
            rows = table[table["term"] == term]
            assert np.all(np.diff(rows["low"]) >= 0)
            assert np.all(np.diff(rows["high"]) <= 0)
            assert rows["low"].iloc[-1] == pytest.approx(result.conf_int(0.1).loc[term, "low"], abs=1e-12)
            assert rows["high"].iloc[-1] == pytest.approx(result.conf_int(0.1).loc[term, "high"], abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 500])
def test_moments_before_each_round_are_those_of_the_rounds_so_far(n: int) -> None:
    """With a score of 1/2 and a square of 1/4 before all, and the mean kept between 0 and 1; to the bit."""
    for score in (np.random.default_rng(n).random(2 * n)[::2], np.full(n, -3.0), np.full(n, 7.0)):
        count = np.arange(2.0, n + 2.0)
        mean = np.clip((0.5 + np.cumsum(score)) / count, 0.0, 1.0)
        spread = (0.25 + np.cumsum((score - mean) ** 2)) / count
        centre, variance = predictable_moments(score)
        assert np.array_equal(centre, np.append(0.5, mean)[:-1])
        assert np.array_equal(variance, np.append(0.25, spread)[:-1])


def test_every_interval_lies_within_the_range_of_its_means() -> None:
    """That of sample means and scores, and of their differences; only means without bounds have none."""
    for result in fits(greedy()):
        around = result.reference.enclosure(math.log(0.3))
        bounded = result.reference.name != "asymptotic"
        assert np.isfinite(around).all() == bounded
        one = 1.0 if len(result.terms) == 2 else 2.0
        assert not bounded or np.allclose(around[:, 1] - around[:, 0], one, rtol=1e-12)
        for alpha in (1e-9, 0.3):
            limits = result.conf_int(alpha).to_numpy()
            assert (around[:, 0] <= limits[:, 0]).all()
            assert (limits[:, 1] <= around[:, 1]).all()


def test_intervals_shrink_and_narrow_methods_are_narrow() -> None:
    """Widths are a few standard errors, and fall like 1/sqrt(n) up to slowly growing factors."""
    rng = np.random.default_rng(2)
    n = 40_000
    log = log_of(np.zeros(n), (rng.random(n) < 0.05).astype(float), n_arms=1)
    widths = {}
    for method in METHODS:
        table = ConfidenceSequence(log).fit(method).table(rounds=[400, n])
        widths[method] = (table["high"] - table["low"]).to_numpy()
    deviation = math.sqrt(0.05 * 0.95)
    for method in METHODS:
        scale = 0.5 if method == "normal-mixture" else deviation
        assert 3.0 < widths[method][1] * math.sqrt(n) / scale < 12.0
        assert 5.0 < widths[method][0] / widths[method][1] < 20.0
    assert widths["betting"][0] < widths["empirical-bernstein"][0]
    assert widths["betting"][1] < 0.75 * widths["normal-mixture"][1]


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 50),
    null=st.floats(-1.2, 1.2),
    log_alpha=st.floats(math.log(1e-6), math.log(0.49)),
)
def test_pvalue_at_most_alpha_exactly_when_the_interval_excludes_the_null(
    seed: int, null: float, log_alpha: float
) -> None:
    for result in fits(greedy(seed, 80)):
        limits = result.reference.interval(log_alpha)
        for (low, high), log_p in zip(limits, result.reference.log_pvalues(null), strict=True):
            if min(abs(null - low), abs(null - high)) < 1e-9:
                continue
            outside = math.isnan(low) or null < low or null > high
            assert (log_p <= log_alpha) == outside


def test_pvalue_meets_alpha_at_the_limits() -> None:
    for result in fits(greedy(1)):
        limits = result.reference.interval(math.log(0.02))
        for track, (low, high) in zip(result.reference.tracks, limits, strict=True):
            start = track.limits(math.log(1e-300), np.array([1]))[0]
            for end, trivial in ((low, start[0]), (high, start[1])):
                if end != trivial:
                    assert math.exp(track.log_pvalue(end)) == pytest.approx(0.02, rel=1e-6)


def test_sides_are_mirror_images() -> None:
    log = greedy(4)
    arrays = log.arrays
    turned = AdaptiveLog.from_arrays(
        LogArrays(
            action=arrays.action,
            reward=1.0 - arrays.reward,
            propensity=arrays.propensity,
            propensities=arrays.propensities,
        ),
        arms=log.arms,
        reward_range=(0.0, 1.0),
        context_free=True,
    )
    for method in METHODS:
        for estimator in ("sample-mean", "ipw"):
            first = ConfidenceSequence(log).fit(method, estimator=estimator).conf_int().to_numpy()
            second = ConfidenceSequence(turned).fit(method, estimator=estimator).conf_int().to_numpy()
            np.testing.assert_allclose(first, 1.0 - second[:, ::-1], atol=1e-9)


def test_sequences_move_with_the_unit_of_the_rewards() -> None:
    log = greedy(5)
    arrays = log.arrays
    moved = AdaptiveLog.from_arrays(
        LogArrays(
            action=arrays.action,
            reward=10.0 * arrays.reward - 4.0,
            propensity=arrays.propensity,
            propensities=arrays.propensities,
        ),
        arms=log.arms,
        reward_range=(-4.0, 6.0),
        context_free=True,
    )
    for first, second in zip(fits(log), fits(moved), strict=True):
        shift = 0.0 if len(first.terms) == 1 else -4.0
        for name in ("params", "bse"):
            expected = 10.0 * getattr(first, name) + (shift if name == "params" else 0.0)
            np.testing.assert_allclose(getattr(second, name), expected, atol=1e-9)
        np.testing.assert_allclose(
            second.conf_int().to_numpy(), 10.0 * first.conf_int().to_numpy() + shift, atol=1e-9
        )


def test_sequences_that_errors_suggest() -> None:
    assert {name for name, one in sequence_methods.METHODS.items() if one.offered} == {
        "betting",
        "asymptotic",
    }


@pytest.mark.parametrize("method", METHODS)
def test_one_round(method: str) -> None:
    log = log_of([0], [1.0], [0.5, 0.5])
    result = ConfidenceSequence(log).fit(method)
    assert result.conf_int().loc["b"].tolist() == [0.0, 1.0]
    assert math.isnan(result.params["b"])
    assert result.params["a"] == 1.0
    assert np.all(result.pvalues <= 1.0)
    assert np.all(result.bse.isna())
    assert len(result.table()) == 2
    contrast = ConfidenceSequence(log, "contrast", treatment="b", control="a").fit(method)
    assert contrast.conf_int().iloc[0, 0] == -1.0
    assert contrast.conf_int().iloc[0, 1] <= 1.0
    assert math.isnan(contrast.params.iloc[0])
    assert contrast.pvalues.iloc[0] == 1.0
    assert "ConfidenceSequence Results" in str(result)


@pytest.mark.parametrize("method", METHODS)
def test_constant_rewards(method: str) -> None:
    log = log_of(np.zeros(500), np.full(500, 0.25), n_arms=1)
    result = ConfidenceSequence(log).fit(method)
    low, high = result.conf_int().iloc[0]
    assert low <= 0.25 <= high
    assert result.params["a"] == pytest.approx(0.25)
    if method == "asymptotic":  # rewards that never varied say nothing about their variance
        assert (low, high) == (0.0, 1.0)
    else:
        assert high - low < 0.25


def test_an_arm_that_was_never_pulled_keeps_the_whole_range() -> None:
    log = log_of(np.zeros(50), np.tile([0.0, 1.0], 25), [0.7, 0.3])
    for method in METHODS:
        result = ConfidenceSequence(log).fit(method)
        assert result.conf_int().loc["b"].tolist() == [0.0, 1.0]
        assert result.pvalues["b"] == 1.0
        assert result.ess.tolist() == [50.0, 0.0]
    unbounded = log_of(np.zeros(50), np.tile([0.0, 1.0], 25), reward_range=None)
    result = ConfidenceSequence(unbounded).fit("asymptotic", start=10)
    assert result.conf_int().loc["b"].tolist() == [-math.inf, math.inf]
    contrast = ConfidenceSequence(unbounded, "contrast", treatment="b", control="a").fit("asymptotic")
    assert contrast.conf_int().iloc[0].tolist() == [-math.inf, math.inf]
    assert contrast.pvalues.iloc[0] == 1.0


def test_nulls_beyond_the_range_are_excluded_at_once() -> None:
    log = greedy(0, 20)
    for method in METHODS[:4]:
        arms = ConfidenceSequence(log).fit(method, null=1.01)
        assert np.all(arms.pvalues == 0.0)
        contrast = ConfidenceSequence(log, "contrast", treatment=1, control=0).fit(method, null=-1.5)
        assert contrast.pvalues.iloc[0] == 0.0
        assert ConfidenceSequence(log).fit(method, null=1.0).pvalues.min() > 0.0


def test_a_mean_that_changes_can_leave_nothing() -> None:
    log = log_of(np.zeros(2000), np.repeat([0.0, 1.0], 1000), n_arms=1)
    result = ConfidenceSequence(log).fit("empirical-bernstein")
    assert result.conf_int().isna().all(axis=None)
    assert result.pvalues.iloc[0] < 1e-6
    assert result.table(rounds=[1000])["high"].iloc[0] < 0.1


def test_wealth_beyond_the_range_of_floats() -> None:
    score = np.repeat([1.0, 0.0, 1.0, 0.0, 1.0], [5_000, 12_000, 4_000, 3_000, 15_000])
    bet, floor = np.full(len(score), 0.5), np.zeros(len(score))
    steps = np.cumsum(np.log(1.0 + 0.5 * (score - 0.5)))
    assert steps[4_999] > 1000.0
    assert steps.min() < -1500.0
    assert steps.max() == steps[4_999]
    assert betting_peak(score, bet, floor, 0.5, 0.5) == pytest.approx(steps.max(), rel=1e-12)
    late = score[5_000:]
    assert betting_peak(late, bet, floor, 0.5, 0.5) == pytest.approx(
        max(0.0, np.cumsum(np.log(1.0 + 0.5 * (late - 0.5))).max()), abs=1e-9
    )
    side = BettingSide(score[::-1].copy(), bet, floor)
    for threshold in (50.0, 400.0, 900.0):
        bound = side.bounds(threshold, np.array([len(score)]))[0]
        assert side.peak(bound) == pytest.approx(threshold, rel=1e-6)


def test_unbounded_contrasts_find_their_bracket() -> None:
    rng = np.random.default_rng(0)
    action = rng.integers(0, 2, 2000)
    for centre in (0.0, 1e7):
        reward = rng.normal(centre + 2.0 * action, 1.0)
        log = log_of(action, reward, reward_range=None)
        model = ConfidenceSequence(log, "contrast", treatment="b", control="a")
        result = model.fit("normal-mixture", sigma=1.0)
        low, high = result.conf_int(0.01).iloc[0]
        assert low < 2.0 < high < low + 0.6
        for end in (low, high):
            assert math.exp(result.reference.tracks[0].log_pvalue(end)) == pytest.approx(0.01, rel=1e-4)


def test_defaults() -> None:
    assert ConfidenceSequence(greedy()).fit().estimator == "sample-mean"
    ucb = UCB().run(BernoulliArms([0.2, 0.7]), horizon=300, rng=1)
    result = ConfidenceSequence(ucb).fit()
    assert result.estimator == "sample-mean"
    assert result.reference.exact
    assert not ConfidenceSequence(ucb).fit("asymptotic").reference.exact
    grouped = log_of(
        np.tile([0, 1], 50),
        np.tile([0.0, 1.0], 50),
        [0.5, 0.5],
        design=designs.ConSE(alpha=0.2).record(),
        context={"feature": np.tile([0, 0, 1, 1], 25)},
    )
    assert ConfidenceSequence(grouped).fit().estimator == "ipw"
    with pytest.raises(InvalidForLog) as caught:
        ConfidenceSequence(grouped).fit(estimator="sample-mean")
    assert says(caught.value.reason, BY_DESIGN)
    value = ConfidenceSequence(greedy(), "policy-value", policy=np.array([0.5, 0.5])).fit()
    assert value.estimator == "ipw"
    assert value.estimands[0].kind == "policy-value"
    assert value.min_propensity == pytest.approx(0.15)
    log = log_of([0, 0, 1, 1], [0.0, 1.0, 1.0, 0.0], [[0.5, 0.5], [0.25, 0.75], [0.5, 0.5], [0.5, 0.5]])
    scored = ConfidenceSequence(log).fit(estimator="ipw")
    assert scored.ess.tolist() == [pytest.approx(36.0 / 20.0), 2.0]
    contrast = ConfidenceSequence(log, "contrast", treatment="b", control="a").fit(estimator="ipw")
    assert contrast.ess.tolist() == [pytest.approx(36.0 / 20.0)]
    mixed = ConfidenceSequence(log, "policy-value", policy=np.array([0.5, 0.5])).fit()
    assert mixed.ess.tolist() == [pytest.approx(25.0 / 7.0)]


def by_context(seed: int = 0, horizon: int = 1000, **others: Any) -> AdaptiveLog:
    """A log without a design, of equal arms: the better context gets arm b four times as often."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, horizon)
    share = np.where(x == 1, 0.8, 0.2)
    action = (rng.random(horizon) < share).astype(int)
    reward = rng.binomial(1, share)
    return log_of(action, reward, np.c_[1.0 - share, share], context={"x": x}, **others)


def test_contexts_that_may_have_chosen_take_ipw_scores() -> None:
    for seed in range(5):
        log = by_context(seed)
        for chosen_only in (False, True):
            means = ConfidenceSequence(by_context(seed, chosen_only=chosen_only)).fit()
            assert means.estimator == "ipw"
            limits = means.conf_int()
            assert bool(((limits["low"] < 0.5) & (limits["high"] > 0.5)).all())
        contrast = ConfidenceSequence(log, "contrast", treatment="b", control="a")
        low, high = contrast.fit().conf_int().to_numpy()[0]
        assert low < 0.0 < high
        naive = contrast.fit(estimator="sample-mean")
        assert naive.conf_int().to_numpy()[0, 0] > 0.0
        assert says(naive.notes, NO_PART)
        assert says(naive.cautions, FOLLOWED)


def test_contexts_without_usable_propensities_are_noted() -> None:
    log = by_context()
    arrays = log.arrays
    bare = log_of(arrays.action, arrays.reward, context=dict(arrays.context))
    zero = log_of(arrays.action, arrays.reward, np.eye(2)[arrays.action], context=dict(arrays.context))
    for silent in (bare, zero):
        with pytest.raises(InvalidForLog) as caught:
            ConfidenceSequence(silent).fit()
        assert says(caught.value.reason, VISIBLY, context="x")
    result = ConfidenceSequence(by_context(propensity_status="estimated")).fit()
    assert result.estimator == "sample-mean"
    assert says(result.notes, NO_PART)
    assert says(result.cautions, FOLLOWED)
    blind = by_context(design=designs.UCB().record())
    result = ConfidenceSequence(blind).fit()
    assert result.estimator == "sample-mean"
    assert not says(result.notes, NO_PART)
    with pytest.raises(ParameterError, match="omit it, or use estimator='sample-mean'"):
        ConfidenceSequence(log).fit("normal-mixture", sigma=0.5)
    assert ConfidenceSequence(log).fit("normal-mixture", floor=0.2).estimator == "ipw"
    with pytest.raises(InvalidForLog, match=r"floor=.*estimator='sample-mean'"):
        ConfidenceSequence(log).fit("normal-mixture")


def test_sample_means_rank_last_where_contexts_may_have_chosen() -> None:
    for log, mixed in (
        (by_context(), True),
        (by_context(design=designs.UCB().record()), False),
    ):
        rows = {
            one.verdict.name: one.verdict
            for one in sequence_rows(log, "arm-means", {}, ORDER)
            if one.verdict.valid
        }
        means = [row for name, row in rows.items() if "sample means" in name]
        scores = [row for name, row in rows.items() if "sample means" not in name]
        assert len(means) == len(METHODS) + 1  # rewards are 0 or 1: the beta-binomial too
        assert scores
        assert all(says(row.assumes, NO_PART) is mixed for row in means)
        assert (min(row.rank for row in means) > max(row.rank for row in scores)) is mixed


def test_chosen_propensities_are_enough_for_bets_on_ipw_scores() -> None:
    rng = np.random.default_rng(1)
    action, reward = rng.integers(0, 2, 300), rng.random(300)
    full = log_of(action, reward, [0.5, 0.5])
    chosen = log_of(action, reward, [0.5, 0.5], chosen_only=True)
    for method in METHODS[:2]:
        first = ConfidenceSequence(full).fit(method, estimator="ipw").conf_int()
        assert first.equals(ConfidenceSequence(chosen).fit(method, estimator="ipw").conf_int())
    for method, estimator in (("betting", "aipw"), ("normal-mixture", "ipw")):
        with pytest.raises(InvalidForLog) as caught:
            ConfidenceSequence(chosen).fit(method, estimator=estimator)
        assert says(caught.value.reason, EVERY_ONE_NEEDED)
        assert says(caught.value.alternatives, claims.GUARANTEED_FLOOR)
        same = ConfidenceSequence(chosen).fit(method, estimator=estimator, floor=0.5).conf_int()
        np.testing.assert_allclose(
            same, ConfidenceSequence(full).fit(method, estimator=estimator).conf_int(), atol=1e-12
        )


def test_summary_says_what_holds() -> None:
    notes = ConfidenceSequence(greedy()).fit().explain().texts
    assert claims.EXACT(law="betting confidence sequence") in notes
    assert says(notes, claims.SAME_AT_EACH_PULL)
    assert claims.TOGETHER(when="at all rounds", alpha=0.05) in notes
    assert says(notes, WITHOUT_STD_ERROR)
    frame = ConfidenceSequence(greedy()).fit().to_frame()
    assert list(frame.columns)[:5] == ["term", "estimate", "std_error", "statistic", "p_value"]
    notes = ConfidenceSequence(greedy()).fit("asymptotic").explain().texts
    assert claims.APPROXIMATE(law="asymptotic confidence sequence") in notes
    assert claims.LATE_START(start=100) in notes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "means"}, "target must be one of 'arm-means', 'contrast', 'policy-value', got 'means'"),
        ({"target": "contrast"}, "requires control="),
        ({"treatment": "a"}, "treatment does not apply to target='arm-means'"),
        ({"target": "policy-value"}, "requires policy="),
        ({"target": "policy-value", "policy": [np.array([0.5, 0.6])]}, "sum"),
        ({"arms": "a"}, "list of labels"),
        ({"arms": ["z"]}, "no arm 'z'"),
        ({"target": "contrast", "treatment": "a", "control": "a"}, "more than once"),
    ],
)
def test_wrong_targets(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        ConfidenceSequence(log_of([0, 1], [0.0, 1.0]), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "hoeffding"}, "method must be one of 'betting'"),
        ({"alpha": 0.95}, "alpha must be between 0 and 0.5"),
        ({"estimator": "dr"}, "estimator must be one of"),
        ({"sigma": 1.0}, "sigma applies to the normal mixture, not to betting"),
        ({"method": "normal-mixture", "sigma": -1.0}, "sigma must be above 0"),
        ({"method": "normal-mixture", "sigma": 1.0, "estimator": "ipw"}, "another scale"),
        ({"floor": 0.0, "estimator": "aipw"}, "floor must be above 0"),
        ({"floor": 0.1, "estimator": "sample-mean"}, "sample means do not use: omit"),
        (
            {"floor": 0.3, "estimator": "aipw"},
            "floor must hold in every round, but the log has a propensity of 0.25, below floor = 0.3",
        ),
        ({"t_opt": 100}, "t_opt applies to mixtures"),
        ({"method": "normal-mixture", "t_opt": 0}, "t_opt must be a whole number"),
        ({"start": 50}, "start applies to the asymptotic sequence"),
        ({"method": "asymptotic", "start": 1}, "start must be a whole number of at least 2"),
        ({"null": math.nan}, "null must be"),
        ({"method": "x", "estimator": "y", "floor": 2.0}, "3 problems"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    log = log_of([0, 1, 0], [0.0, 1.0, 1.0], [0.25, 0.75])
    with pytest.raises(ParameterError, match=message):
        ConfidenceSequence(log).fit(**options)


def test_several_sequences_at_once_are_bonferronis() -> None:
    result = ConfidenceSequence(greedy()).fit(null=0.5)
    for use in (result.conf_int_simultaneous, result.pvalues_simultaneous):
        with pytest.raises(InvalidForLog, match="method='bonferroni'"):
            use(method="sidak")
    assert result.conf_int_simultaneous(0.1, "bonferroni").equals(result.conf_int(0.05))
    assert result.conf_int_simultaneous(0.1).equals(result.conf_int(0.05))
    doubled = np.minimum(1.0, 2.0 * result.pvalues.to_numpy())
    np.testing.assert_allclose(result.pvalues_simultaneous("bonferroni"), doubled, rtol=1e-12)


def test_a_bad_level_is_listed_with_the_rest() -> None:
    with pytest.raises(ParameterError) as caught:
        ConfidenceSequence(log_of([0, 1], [0.0, 1.0])).fit("bets", alpha=0.95, estimator="apiw")
    assert [problem.split()[0] for problem in caught.value.problems] == ["method", "estimator", "alpha"]


def test_wrong_tables() -> None:
    result = ConfidenceSequence(log_of([0, 1], [0.0, 1.0])).fit()
    for rounds in ([0], [3], [], [1.5], ["1"]):
        with pytest.raises(ParameterError, match="rounds must be whole numbers from 1 to 2"):
            result.table(rounds=rounds)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="alpha"):
        result.table(0.9)
    with pytest.raises(ParameterError, match="alpha"):
        result.conf_int(0.9)


def test_what_a_log_does_not_support() -> None:
    plain = {"action": [0, 1], "reward": [0.0, 1.0]}
    moving = {**plain, "propensities": [[0.5, 0.5], [0.4, 0.6]]}
    sure = {**plain, "propensities": [[1.0, 0.0], [0.0, 1.0]]}
    never = NEVER_TOGETHER(arms="the requested arms", arm="a", n=1, rounds=2)
    cases: list[tuple[AdaptiveLog, dict[str, Any], Said, str]] = [
        (log_of(**plain, reward_range=None), {}, claims.BOUNDS_NEEDED(), "sigma=.*asymptotic"),
        (log_of(**plain, reward_range=(0.0, math.inf)), {}, claims.BOUNDS_NEEDED(), "sigma="),
        (log_of([0, 1], [0.0, 2.0]), {}, claims.OUTSIDE_RANGE(outside=1, low=0.0, high=1.0), ""),
        (
            log_of(**plain),
            {"estimator": "ipw"},
            NEEDED(),
            "^estimator='sample-mean'",
        ),
        (
            log_of(**plain, propensities=[0.5, 0.5], propensity_status="estimated"),
            {"estimator": "ipw"},
            claims.ESTIMATES(),
            "",
        ),
        (log_of(**sure), {"estimator": "ipw"}, never, ""),
        (log_of(**sure, chosen_only=True), {"estimator": "ipw"}, never, ""),
        (
            log_of(**moving, context={"x": np.zeros(2)}),
            {"estimator": "aipw"},
            claims.KNOWN_TOO_LATE(),
            "floor=.*'context_free': True.*estimator='ipw'",
        ),
        (
            log_of(**moving),
            {"method": "normal-mixture", "estimator": "ipw"},
            claims.UNLOGGED_TOO_LATE(),
            "floor=.*'context_free': True.*method='betting', estimator='ipw'",
        ),
        (
            log_of(**moving, context_free=False),
            {"method": "gamma-exponential", "estimator": "aipw"},
            claims.UNLOGGED_TOO_LATE(),
            r"^set floor=[^|]*\|estimator='ipw'",
        ),
    ]
    for log, options, reason, ways in cases:
        with pytest.raises(InvalidForLog) as caught:
            ConfidenceSequence(log).fit(**options)
        assert caught.value.reason == reason
        assert re.search(ways, "|".join(caught.value.alternatives))
    with pytest.raises(ParameterError, match="a policy's value requires scores"):
        ConfidenceSequence(log_of(**plain, propensities=[0.5, 0.5]), "policy-value", policy="a").fit(
            estimator="sample-mean"
        )


def test_an_estimate_outside_its_interval_is_said_to_be() -> None:
    """Rewards of 0.9 exclude 0.8; then rewards of 0.1 bring the mean below it."""
    reward = np.concatenate([np.full(400, 0.9), np.full(60, 0.1), np.full(460, 0.5)])
    action = np.repeat([0, 1], 460)
    log = AdaptiveLog.from_arrays(
        LogArrays(action=action, reward=reward), arms=("x", "y"), reward_range=(0.0, 1.0)
    )
    result = ConfidenceSequence(log).fit("normal-mixture")
    low = result.conf_int()["low"]
    assert result.estimate[0] < low["x"]
    assert result.estimate[1] > low["y"]
    told = result.explain().texts
    assert claims.TOGETHER(when="at all rounds", alpha=0.05) in told
    assert claims.OUTSIDE(term="x") in told
    assert claims.OUTSIDE(term="y") not in told


def test_the_origin_of_unbounded_rewards_changes_nothing_else() -> None:
    """Augmented scores predict an arm's mean, before its first reward that of all; round one is left out."""
    rng = np.random.default_rng(8)
    n = 400
    action = rng.integers(0, 2, n)
    reward = np.round(rng.normal(action, 1.0) * 1024.0) / 1024.0
    both = np.full((n, 2), 0.5)
    made = [
        AdaptiveLog.from_arrays(
            LogArrays(action=action, reward=reward + shift, propensity=both[:, 0], propensities=both),
            arms=("a", "b"),
        )
        for shift in (0.0, 2.0**20)
    ]
    for target, moves in (({}, 2.0**20), ({"target": "contrast", "treatment": "b", "control": "a"}, 0.0)):
        plain, moved = (ConfidenceSequence(log, **target).fit("asymptotic", estimator="aipw") for log in made)
        np.testing.assert_allclose(moved.conf_int() - moves, plain.conf_int(), rtol=0, atol=1e-9)
        np.testing.assert_allclose(moved.estimate - moves, plain.estimate, rtol=0, atol=1e-9)
        np.testing.assert_allclose(moved.std_error, plain.std_error, rtol=1e-9)
    sums, count, scores = np.zeros(2), np.zeros(2), []
    for t in range(n):
        means = [sums[k] / count[k] if count[k] else sums.sum() / max(t, 1) for k in (0, 1)]
        k = action[t]
        scores.append(means[1] + (reward[t] - means[1]) / 0.5 * (k == 1))
        sums[k], count[k] = sums[k] + reward[t], count[k] + 1
    expected = np.mean(scores[1:])
    found = ConfidenceSequence(made[0], arms=["b"]).fit("asymptotic", estimator="aipw").estimate[0]
    assert found == pytest.approx(expected, rel=1e-12)
