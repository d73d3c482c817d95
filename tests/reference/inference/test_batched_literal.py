"""Batched least squares against its formula written out, scipy, and Monte Carlo."""

from __future__ import annotations

import math

import numpy as np
import pytest
from claims_said import says, wording
from scipy import stats

from adaptinf import designs
from adaptinf.claims.adaptivity import BY_DESIGN
from adaptinf.claims.arms.batched import BENT, LACKING, NO_BATCHES, UNVARYING
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.arms import ArmMeans, Contrast, batched
from adaptinf.inference.arms.batched import batch_contrasts
from adaptinf.inference.distributions.student_sums import MeanStudent
from adaptinf.log import AdaptiveLog, LogArrays


def batched_log(seed: int, batches: int = 4, size: int = 12, effect: float = 0.0) -> AdaptiveLog:
    """The next batch favours the arm with the higher mean so far."""
    rng = np.random.default_rng(seed)
    action, reward = np.zeros(batches * size, dtype=np.int64), np.zeros(batches * size)
    share = size // 2
    for b in range(batches):
        rows = slice(b * size, (b + 1) * size)
        arms = np.repeat([0, 1], [size - share, share])
        action[rows] = rng.permutation(arms)
        reward[rows] = 5.0 + b + effect * action[rows] + rng.normal(size=size)
        gap = reward[rows][action[rows] == 1].mean() - reward[rows][action[rows] == 0].mean()
        share = size - 3 if gap > 0 else 3
    arrays = LogArrays(action=action, reward=reward, batch=np.repeat(np.arange(batches), size))
    return AdaptiveLog.from_arrays(arrays, arms=("a", "b"))


def literal(log: AdaptiveLog, null: float) -> tuple[list[float], list[float], list[int]]:
    """Z_b for a difference, precisions and degrees of freedom, batch by batch."""
    arrays = log.arrays
    assert arrays.batch is not None
    z, precision, freedom = [], [], []
    for b in range(int(arrays.batch.max()) + 1):
        ones, zeros = (
            [
                float(y)
                for y, c, a in zip(arrays.reward, arrays.batch, arrays.action, strict=True)
                if (c, a) == (b, arm)
            ]
            for arm in (1, 0)
        )
        n1, n0 = len(ones), len(zeros)
        m1, m0 = math.fsum(ones) / n1, math.fsum(zeros) / n0
        residual = math.fsum((y - m1) ** 2 for y in ones) + math.fsum((y - m0) ** 2 for y in zeros)
        sigma = math.sqrt(residual / (n1 + n0 - 2))
        precision.append(math.sqrt(n0 * n1 / (n0 + n1)) / sigma)
        z.append(precision[-1] * (m1 - m0 - null))
        freedom.append(n1 + n0 - 2)
    return z, precision, freedom


@pytest.mark.parametrize("seed", range(3))
def test_against_the_formula(seed: int) -> None:
    log = batched_log(seed, effect=0.4)
    model = Contrast(log, treatment="b", control="a")
    result = model.fit("batched", test="normal", null=0.1)
    z, precision, freedom = literal(log, 0.1)
    statistic = math.fsum(z) / math.sqrt(len(z))
    assert result.tvalues.iloc[0] == pytest.approx(statistic, rel=1e-9)
    assert result.pvalues.iloc[0] == pytest.approx(2 * stats.norm.sf(abs(statistic)), rel=1e-9)
    for limit in result.conf_int(0.1).to_numpy()[0]:
        at_limit, _, _ = literal(log, float(limit))
        assert abs(math.fsum(at_limit)) / 2.0 == pytest.approx(stats.norm.isf(0.05), rel=1e-9)
    assert result.std_error[0] == pytest.approx(math.sqrt(len(z)) / math.fsum(precision), rel=1e-9)
    # Each t-statistic is mapped to the normal one of the same tail.
    squares = [stats.norm.isf(stats.t.sf(abs(x), f)) ** 2 for x, f in zip(z, freedom, strict=True)]
    drifting = model.batch_test(0.1)
    assert drifting.statistic == pytest.approx(math.fsum(squares), rel=1e-9)
    assert drifting.df == 4
    assert drifting.pvalue == pytest.approx(stats.chi2.sf(math.fsum(squares), 4), rel=1e-9)
    assert "b - a = 0.1 in every batch" in str(drifting)


def test_one_batch_is_the_pooled_t_test() -> None:
    log = batched_log(3, batches=1, effect=0.8)
    y, a = log.arrays.reward, log.arrays.action
    theirs = stats.ttest_ind(y[a == 1], y[a == 0])
    result = Contrast(log, treatment="b", control="a").fit("batched")
    assert result.tvalues.iloc[0] == pytest.approx(theirs.statistic, rel=1e-9)
    assert result.pvalues.iloc[0] == pytest.approx(theirs.pvalue, rel=1e-9)
    low, high = theirs.confidence_interval(0.9)
    assert result.conf_int(0.1).to_numpy()[0] == pytest.approx([low, high], rel=1e-9)


class TestMeanStudent:
    @pytest.mark.parametrize("df", [1.0, 2.0, 3.0, 10.0, 150.0])
    def test_one_variable(self, df: float) -> None:
        law = MeanStudent(np.array([df]))
        for x in (-1.0, 0.2, 1.5, 4.0):
            assert law.tail(x) == pytest.approx(stats.t.sf(x, df), abs=1e-12)

    def test_cauchy_sums_stay_cauchy(self) -> None:
        law = MeanStudent(np.ones(5))
        for x in (0.5, 3.0, 40.0):
            assert law.tail(x) == pytest.approx(stats.cauchy.sf(x / math.sqrt(5)), abs=1e-12)

    def test_simulated(self) -> None:
        rng = np.random.default_rng(1)
        df = np.array([2.0, 4.0, 4.0, 30.0, 500.0])
        draws = sum(rng.standard_t(f, size=400_000) for f in df) / math.sqrt(5)
        law = MeanStudent(df)
        for p in (0.2, 0.025, 0.002):
            share = float(np.mean(draws > law.quantile(p)))
            assert share == pytest.approx(p, abs=4.5 * math.sqrt(p / 400_000))

    def test_large_batches_are_normal(self) -> None:
        law = MeanStudent(np.full(3, 5e6))
        assert law.quantile(0.025) == pytest.approx(stats.norm.isf(0.025), abs=1e-6)

    def test_the_expansion_for_large_batches_joins_the_bessel_function(self) -> None:
        for df in (201.0, 2_000.0, 50_000.0):
            law = MeanStudent(np.array([df]))
            for x in (0.5, 1.96, 4.0):
                assert law.tail(x) == pytest.approx(stats.t.sf(x, df), abs=2e-9)

    def test_floor_of_p_values(self) -> None:
        result = Contrast(batched_log(1, effect=90.0), treatment="b", control="a").fit("batched")
        assert result.pvalues.iloc[0] == pytest.approx(2e-10, rel=1e-6)
        assert result.reference.interval(math.log(1e-12)).tolist() == [
            [pytest.approx(math.nan, nan_ok=True)] * 2
        ]


@pytest.mark.slow
def test_type_one_error_under_adaptive_batches() -> None:
    """The batched test keeps its level where Welch's does not have to; means drift together."""
    runs = 1_500
    rejected = [
        Contrast(batched_log(1000 + r), treatment="b", control="a").fit("batched").pvalues.iloc[0] <= 0.05
        for r in range(runs)
    ]
    assert np.mean(rejected) == pytest.approx(0.05, abs=4.5 * math.sqrt(0.05 * 0.95 / runs))


class TestRefusals:
    def test_no_batches(self) -> None:
        log = AdaptiveLog.from_arrays(LogArrays(action=np.array([0, 1]), reward=np.ones(2)), arms=("a", "b"))
        with pytest.raises(InvalidForLog, match=wording(NO_BATCHES)):
            Contrast(log, treatment="b", control="a").fit("batched")

    def test_missing_arms(self) -> None:
        action = np.array([0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 1, 0])
        reward = np.random.default_rng(0).normal(size=12)
        arrays = LogArrays(action=action, reward=reward, batch=np.repeat([0, 1, 2], 4))
        model = Contrast(AdaptiveLog.from_arrays(arrays, arms=("a", "b")), treatment="b", control="a")
        with pytest.raises(InvalidForLog, match=wording(LACKING, n=1, batches=3, which="1")):
            model.fit("batched")
        with pytest.raises(InvalidForLog, match=wording(BENT)):
            model.batch_test()
        fixed = AdaptiveLog.from_arrays(arrays, arms=("a", "b"), design=designs.Uniform().record())
        result = Contrast(fixed, treatment="b", control="a").fit("batched")
        assert says(result.notes, BY_DESIGN)
        assert result.diagnostics()["batches"].iloc[0] == 2.0

    def test_constant_rewards(self) -> None:
        batch = np.zeros(4, dtype=np.int64)
        arrays = LogArrays(action=np.array([0, 1, 0, 1]), reward=np.full(4, 0.3), batch=batch)
        result = Contrast(AdaptiveLog.from_arrays(arrays, arms=(0, 1)), treatment=1, control=0).fit("batched")
        assert result.pvalues.isna().all()
        assert says(result.cautions, UNVARYING)
        found = batch_contrasts(batch, arrays.action, arrays.reward, 1, 0)
        assert found.scale[0] == 0.0

    def test_batches_in_stretches_are_the_same(self, monkeypatch: pytest.MonkeyPatch) -> None:
        rng = np.random.default_rng(5)
        batch = np.sort(rng.integers(0, 40, 900))
        action, reward = rng.integers(0, 3, 900), 1e6 + rng.normal(size=900)
        monkeypatch.setattr(batched, "_STRETCH", 10**6)
        whole = batch_contrasts(batch, action, reward, 1, 0)
        for stretch in (1, 7, 100):
            monkeypatch.setattr(batched, "_STRETCH", stretch)
            parts = batch_contrasts(batch, action, reward, 1, 0)
            for name in ("treated", "control", "difference", "scale"):
                np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))

    def test_wrong_uses(self) -> None:
        model = Contrast(batched_log(0), treatment="b", control="a")
        with pytest.raises(ParameterError, match="weights does not apply"):
            model.fit("batched", "sqrt")
        with pytest.raises(ParameterError, match="test must be auto, normal or t"):
            model.fit("batched", test="exact")
        with pytest.raises(ParameterError, match="null must be a finite number"):
            model.batch_test(math.nan)
        with pytest.raises(ParameterError, match="'batched' is for contrasts"):
            ArmMeans(model.log).fit("batched")
