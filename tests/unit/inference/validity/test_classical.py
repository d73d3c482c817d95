"""The classical analysis where nothing adapted, as stated or seen in propensities; and shares that move."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says
from scipy import stats

import adaptinf as ai
from adaptinf.claims import adaptivity, propensities, stationarity
from adaptinf.claims.arms import alee, batched, sample_means
from adaptinf.claims.logs.promises import ADAPTIVE
from adaptinf.inference.validity.assignment import runs_pvalue, shares_pvalue, shares_pvalue_of_counts
from adaptinf.inference.validity.calibration import ALARM
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log.validation import OF_AGGREGATES, nested_options
from adaptinf.typing import FloatArray, IntArray

MOVED = stationarity.BOTH_MOVED


def coin(seed: int = 0, n: int = 500, arms: int = 2) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"arm": rng.integers(0, arms, n), "y": rng.normal(size=n)})


def log_of(frame: Any, **options: Any) -> ai.AdaptiveLog:
    return ai.AdaptiveLog(frame, action="arm", reward="y", **nested_options(options))


def welch(frame: pd.DataFrame) -> list[float]:
    own = [frame["y"][frame["arm"] == arm] for arm in (1, 0)]
    found = stats.ttest_ind(*own, equal_var=False).confidence_interval()
    return [float(found.low), float(found.high)]


def contrast(data: Any) -> ai.Results:
    return ai.Contrast(data, treatment=1, control=0).fit()


def limits(result: ai.Results) -> list[float]:
    return [float(end) for end in result.conf_int().to_numpy().ravel()]


def by_hour(seed: int, length: int = 40) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """24 hours, arms, rewards and shares of arm 1: shares and levels by hour, equal arms."""
    rng, rounds = np.random.default_rng(seed), 24 * length
    hour = np.arange(rounds) // length
    wave = np.sin(2.0 * np.pi * hour / 24.0)
    share = 0.5 + 0.35 * wave
    return hour, (rng.random(rounds) < share).astype(int), wave + rng.normal(size=rounds), share


class TestStated:
    def test_a_contrast_is_welch(self) -> None:
        result = contrast(log_of(coin(), adaptive=False))
        assert limits(result) == pytest.approx(welch(coin()), rel=1e-12)
        assert (result.estimator, result.validity, result.cautions) == ("sample-mean", "asymptotic", ())
        told = [note for note in result.notes if says(note, adaptivity.AS_STATED)]
        assert says(told, sample_means.OPENING, worth=sample_means.NOT_DUE(why=adaptivity.AS_STATED()))

    def test_means_have_t_intervals(self) -> None:
        frame = coin(1)
        result = ai.ArmMeans(log_of(frame, adaptive=False)).fit()
        for place, arm in enumerate((0, 1)):
            own = frame["y"][frame["arm"] == arm]
            wanted = stats.t.interval(0.95, len(own) - 1, own.mean(), own.std() / np.sqrt(len(own)))
            assert result.conf_int().to_numpy()[place] == pytest.approx(wanted, rel=1e-12)

    def test_it_is_what_a_uniform_design_gives(self) -> None:
        stated, design = log_of(coin(2), adaptive=False), log_of(coin(2), design=ai.designs.Uniform())
        assert limits(contrast(stated)) == limits(contrast(design))
        assert ai.Winner(stated).fit().estimator == "sample-mean"
        assert limits(ai.Winner(stated).fit()) == limits(ai.Winner(design).fit())
        rows = [ai.recommend(log, "contrast").frame["label"].tolist() for log in (stated, design)]
        assert rows[0] == rows[1]

    def test_recommend_and_regressions_follow(self) -> None:
        log = log_of(coin(3), adaptive=False)
        best = ai.recommend(log, "contrast").best
        assert best.verdict.arguments == {"estimator": "sample-mean"}
        assert says(best.verdict.reason, adaptivity.AS_STATED)
        facts = dict(ai.recommend(log).facts)
        assert facts["Design"] == f"unknown; {ADAPTIVE(reacted='did not adapt')}"
        fit = ai.AdaptiveOLS.from_formula("reward ~ C(action)", log).fit()
        assert fit.estimate[1] == pytest.approx(contrast(log).estimate[0], rel=1e-12)
        assert (fit.estimator, fit.validity) == ("ols", "asymptotic")

    def test_sums(self) -> None:
        frame = coin(4).assign(week=np.arange(500) // 100)
        sums = ai.aggregate(frame, action="arm", reward="y", batch="week", adaptive=False)
        assert limits(contrast(sums)) == pytest.approx(welch(frame), rel=1e-9)

    def test_unknown_is_as_it_was_but_says_what_helps(self) -> None:
        result = contrast(log_of(coin()))
        assert result.estimator == "alee"
        assert result.cautions == ()
        unless = alee.UNLESS_NOTHING_ADAPTED
        assert says(result.notes[0], unless, test="Welch")
        means = ai.ArmMeans(log_of(coin())).fit()
        assert says(means.notes[0], unless, test="t")

    @pytest.mark.parametrize(
        "options",
        [
            {"adaptive": True},
            {"design": ai.designs.Thompson()},
            {"feedback_rounds": 200},
            {"adaptive": False},
        ],
    )
    def test_nobody_is_asked_who_has_answered(self, options: dict[str, Any]) -> None:
        result = ai.Contrast(log_of(coin(), **options), treatment=1, control=0).fit("alee")
        assert not says(result.notes, alee.UNLESS_NOTHING_ADAPTED)


class TestConstantPropensities:
    @pytest.mark.parametrize("known", [{"propensity": "p"}, {"propensities": "p_{arm}"}])
    @pytest.mark.parametrize("options", [{}, {"adaptive": False}])
    def test_they_give_the_classical_analysis(self, known: dict[str, str], options: dict[str, Any]) -> None:
        frame = coin(5).assign(p=0.5, p_0=0.5, p_1=0.5)
        log = log_of(
            frame[["arm", "y", *(["p"] if "propensity" in known else ["p_0", "p_1"])]], **known, **options
        )
        assert limits(contrast(log)) == pytest.approx(welch(frame), rel=1e-12)

    def test_the_chosen_arms_alone_tell_it_if_they_leave_no_room(self) -> None:
        share = np.array([0.2, 0.3, 0.5])
        rng = np.random.default_rng(6)
        arm = rng.choice(3, 600, p=share)
        frame = pd.DataFrame({"arm": arm, "y": rng.normal(size=600), "p": share[arm]})
        assert profile_of(log_of(frame, propensity="p")).constant_propensities
        for changed in (
            frame.assign(p=0.9 * frame["p"]),
            frame.assign(p=frame["p"].where(frame.index > 0, 0.9)),
        ):
            assert not profile_of(log_of(changed, propensity="p")).constant_propensities
        assert not profile_of(log_of(frame[frame["arm"] > 0], propensity="p")).constant_propensities

    def test_a_log_that_says_that_it_reacted_is_treated_with_care(self) -> None:
        frame = coin(5).assign(p_0=0.5, p_1=0.5)
        result = contrast(log_of(frame, propensities="p_{arm}", adaptive=True))
        assert result.estimator == "aipw"
        assert says(result.cautions, propensities.CONTRADICTED)

    @pytest.mark.parametrize("known", [{"propensity": "p"}, {"propensities": "p_{arm}"}])
    def test_sums_say_the_same(self, known: dict[str, str]) -> None:
        frame = coin(5).assign(p=0.5, p_0=0.5, p_1=0.5, week=np.arange(500) // 100)
        rows = frame[["arm", "y", "week", *(["p"] if "propensity" in known else ["p_0", "p_1"])]]
        named = {"action": "arm", "reward": "y", "batch": "week", **known}
        for options in ({}, {"design": ai.designs.Uniform()}):
            assert limits(
                contrast(ai.aggregate(rows, **nested_options({**named, **options}, OF_AGGREGATES)))
            ) == pytest.approx(welch(frame), rel=1e-9)
        stated = contrast(ai.aggregate(rows, **named, adaptive=True))
        assert stated.estimator == "aipw"
        assert says(stated.cautions, propensities.CONTRADICTED)
        if "propensity" in known:
            for changed in (rows.assign(p=0.45), rows.assign(p=np.where(rows["week"] == 4, 0.6, 0.5))):
                assert contrast(ai.aggregate(changed, **named)).estimator == "aipw"

    def test_a_coin_that_was_none_is_cautioned(self) -> None:
        """A column of 1/2 beside choices that were not made so."""
        rng = np.random.default_rng(7)
        frame = pd.DataFrame(
            {"arm": (rng.random(2_000) < 0.7).astype(int), "y": rng.normal(size=2_000), "p": 0.5}
        )
        result = contrast(log_of(frame, propensity="p"))
        assert result.estimator == "sample-mean"
        assert says(result.cautions, propensities.NOT_FOLLOWED, alarm=ALARM)


class TestMovingShares:
    def test_propensities_that_move_keep_inverse_weights_first(self) -> None:
        _, arm, reward, share = by_hour(0)
        frame = pd.DataFrame({"arm": arm, "y": reward, "p_0": 1.0 - share, "p_1": share})
        log = log_of(frame, propensities="p_{arm}", adaptive=False)
        result = contrast(log)
        assert (result.estimator, result.weights, result.cautions) == ("aipw", "combined", ())
        plain = ai.Contrast(log, treatment=1, control=0).fit("sample-mean")
        assert says(plain.cautions, MOVED)

    @pytest.mark.slow
    def test_batches_come_first_where_nothing_tells_the_propensities(self) -> None:
        """200 logs of equal arms: batched differences cover 0, plain ones do not and say so."""
        covered, plain, said = 0, 0, 0
        for seed in range(200):
            hour, arm, reward, _ = by_hour(seed)
            log = log_of(pd.DataFrame({"arm": arm, "y": reward, "hour": hour}), batch="hour", adaptive=False)
            result = contrast(log)
            assert (result.estimator, result.cautions) == ("batched", ())
            low, high = limits(result)
            covered += low <= 0.0 <= high
            naive = ai.Contrast(log, treatment=1, control=0).fit("sample-mean")
            low, high = limits(naive)
            plain += low <= 0.0 <= high
            said += says(naive.cautions, MOVED)
        assert covered / 200 > 0.95 - 4.0 * np.sqrt(0.05 * 0.95 / 200)
        assert plain / 200 < 0.1
        assert said == 200

    def test_without_batches_the_caution_stands(self) -> None:
        _, arm, reward, _ = by_hour(1)
        log = log_of(pd.DataFrame({"arm": arm, "y": reward}), adaptive=False)
        for result in (contrast(log), ai.ArmMeans(log).fit(), ai.Winner(log).fit()):
            assert result.estimator == "sample-mean"
            assert any(says(told, MOVED) and "batch=" in told for told in result.cautions)
        assert says(ai.recommend(log).frame["warning"].iloc[0], MOVED)

    @pytest.mark.slow
    def test_sums_weigh_by_the_shares_of_batches(self) -> None:
        covered = 0
        for seed in range(100):
            hour, arm, reward, _ = by_hour(seed + 500, length=120)
            frame = pd.DataFrame({"arm": arm, "y": reward, "hour": hour})
            sums = ai.aggregate(frame, action="arm", reward="y", batch="hour", adaptive=False)
            result = contrast(sums)
            assert result.estimator == "aipw"
            low, high = limits(result)
            covered += low <= 0.0 <= high
        assert covered / 100 > 0.95 - 4.0 * np.sqrt(0.05 * 0.95 / 100)

    @pytest.mark.parametrize("batch", [None, "day"])
    def test_a_cycle_within_days_shows_in_the_runs_of_arms(self, batch: str | None) -> None:
        """A round an hour: no stretch of rounds shows it, and shares move within days, taken as batches."""
        rng = np.random.default_rng(12)
        wave = np.sin(2.0 * np.pi * (np.arange(960) % 24) / 24.0)
        arm = (rng.random(960) < 0.5 + 0.35 * wave).astype(int)
        frame = pd.DataFrame({"arm": arm, "y": wave + rng.normal(size=960), "day": np.arange(960) // 24})
        log = log_of(frame, adaptive=False, batch=batch)
        result = contrast(log)
        assert says(result.cautions, MOVED)
        assert result.estimator == "sample-mean"
        if batch is not None:
            inside = ai.Contrast(log, treatment=1, control=0).fit("batched")
            assert says(inside.cautions, batched.MOVED_INSIDE)

    def test_runs_by_permutation(self) -> None:
        rng = np.random.default_rng(13)
        arm, batch = rng.choice(3, 60, p=[0.2, 0.3, 0.5]), np.repeat([0, 1, 2], 20)
        drawn = []
        for _ in range(20_000):
            mixed = arm.copy()
            for one in range(3):
                rng.shuffle(mixed[20 * one : 20 * one + 20])
            drawn.append(np.count_nonzero((mixed[1:] != mixed[:-1]) & (batch[1:] == batch[:-1])))
        own = np.count_nonzero((arm[1:] != arm[:-1]) & (batch[1:] == batch[:-1]))
        wanted = stats.norm.cdf((own - np.mean(drawn)) / np.std(drawn))
        assert runs_pvalue(arm, 3, batch) == pytest.approx(wanted, abs=0.01)
        assert runs_pvalue(np.arange(40) % 2, 2, None) > 0.999  # arms that take turns
        assert runs_pvalue(np.arange(40) // 20, 2, None) < 1e-8
        assert runs_pvalue(np.zeros(40, dtype=np.int64), 2, None) == 1.0

    def test_false_alarms_are_rare(self) -> None:
        """At .001: of 3,000 coins, and of rare arms in small batches, hardly any."""
        rng = np.random.default_rng(8)
        share = np.array([0.02, 0.08, 0.3, 0.6])
        alarms = [0, 0, 0, 0]
        for _ in range(1_000):
            arm, batch = rng.choice(4, 700, p=share), np.sort(rng.integers(0, 100, 700))
            counts = np.zeros((100, 4))
            np.add.at(counts, (batch, arm), 1.0)
            alarms[0] += shares_pvalue(arm, 4, None) < 1e-3
            alarms[1] += shares_pvalue(arm, 4, batch) < 1e-3
            alarms[2] += shares_pvalue_of_counts(counts) < 1e-3
            alarms[3] += min(runs_pvalue(arm, 4, None), runs_pvalue(arm, 4, batch)) < 5e-4
        assert max(alarms) <= 8  # P(more than 8) at .001 is 1e-6, at .002 2e-4

    def test_the_statistic_by_scipy(self) -> None:
        rng = np.random.default_rng(9)
        batch = np.repeat(np.arange(5), 100)
        arm = (rng.random(500) < np.repeat([0.3, 0.5, 0.4, 0.6, 0.5], 100)).astype(int)
        table = np.array([np.bincount(arm[batch == one], minlength=2) for one in range(5)])
        wanted = stats.chi2_contingency(table, correction=False).pvalue
        assert shares_pvalue(arm, 2, batch) == pytest.approx(wanted, rel=1e-9)
        assert shares_pvalue_of_counts(table.astype(float)) == pytest.approx(wanted, rel=1e-9)
        assert shares_pvalue(arm, 2, np.zeros(500, dtype=np.int64)) == 1.0
        assert shares_pvalue(np.zeros(500, dtype=np.int64), 1, batch) == 1.0

    def test_units_that_keep_their_arms_raise_no_alarm(self) -> None:
        rng = np.random.default_rng(10)
        unit = np.repeat(np.arange(20), 50)
        frame = pd.DataFrame({"arm": rng.integers(0, 2, 20)[unit], "y": rng.normal(size=1_000), "unit": unit})
        assert not profile_of(log_of(frame, unit="unit", adaptive=False)).shares_move


class TestRegression:
    """Plain least squares where nothing adapted, and what takes its place where shares moved."""

    def test_propensities_that_move_are_weights(self) -> None:
        _, arm, reward, share = by_hour(1)
        frame = pd.DataFrame({"arm": arm, "y": reward, "p0": 1.0 - share, "p1": share})
        log = ai.AdaptiveLog(
            frame,
            action="arm",
            reward="y",
            propensities="p{arm}",
            adaptive=False,
            about={"context_free": True},
        )
        found = ai.AdaptiveOLS.from_formula("reward ~ C(action)", log).fit()
        assert found.estimator == "weighted"
        low, high = found.conf_int().to_numpy()[1]
        assert low <= 0.0 <= high

    def test_plain_least_squares_say_that_shares_moved(self) -> None:
        _, arm, reward, _ = by_hour(1)
        log = log_of(pd.DataFrame({"arm": arm, "y": reward}), adaptive=False)
        found = ai.AdaptiveOLS.from_formula("reward ~ C(action)", log).fit()
        assert found.estimator == "ols"
        assert says(found.cautions, MOVED)
        assert says(found.notes, adaptivity.AS_STATED)
        alone = ai.AdaptiveOLS.from_formula("reward ~ 1", log, arm=0).fit()
        assert not says(alone.cautions, MOVED)
