"""Arm means and contrasts of rare outcomes and skewed rewards: Hall, MOVER, cautions, no interval."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from claims_said import says
from scipy import stats

from adaptinf.claims import rare_outcomes
from adaptinf.claims.arms import batched
from adaptinf.errors import InvalidForLog
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.inference.distributions.references import RecodedReference, StudentReference
from adaptinf.inference.distributions.skewed import SkewedReference, SkewedSumReference
from adaptinf.inference.scores.inverse import arm_scores
from adaptinf.inference.scores.means import arm_score_means
from adaptinf.inference.scores.score_stream import streamed_means
from adaptinf.log import AdaptiveLog, DesignRecord, DesignTraits, LogArrays
from adaptinf.typing import FloatArray

ROUNDS = 600


def made(reward: str, seed: int = 0, rounds: int = ROUNDS, lowest: float = 0.1) -> LogArrays:
    """Two arms whose propensities wander, with rewards of one law for both."""
    rng = np.random.default_rng(seed)
    share = np.clip(0.5 + 0.4 * np.sin(np.arange(rounds) / 40.0), lowest, 1.0 - lowest)
    action = (rng.random(rounds) < share).astype(np.int64)
    both = np.column_stack([1.0 - share, share])
    values = {
        "lognormal": lambda: rng.lognormal(size=rounds),
        "buyers": lambda: np.where(rng.random(rounds) < 0.1, rng.lognormal(size=rounds), 0.0),
        "normal": lambda: rng.normal(size=rounds),
        "events": lambda: (rng.random(rounds) < 0.04).astype(float),
        "few": lambda: np.where((action == 1) & (np.cumsum(action == 1) > 3), 0.0, rng.normal(size=rounds)),
    }[reward]()
    own = both[np.arange(rounds), action]
    return LogArrays(action=action, reward=values, propensity=own, propensities=both)


def log_of(arrays: LogArrays, origin: float = 0.0, step: float = 1.0, **stated: Any) -> AdaptiveLog:
    moved = LogArrays(
        action=arrays.action,
        reward=origin + step * arrays.reward,
        propensity=arrays.propensity,
        propensities=arrays.propensities,
    )
    return AdaptiveLog.from_arrays(moved, arms=("a", "b"), **stated)


def fixed(arrays: LogArrays, origin: float = 0.0, step: float = 1.0) -> AdaptiveLog:
    """The rewards under a design that does not adapt, without propensities."""
    plain = LogArrays(action=arrays.action, reward=origin + step * arrays.reward)
    record = DesignRecord("coin", {}, traits=DesignTraits(adapts=False, uses_context="no"))
    return AdaptiveLog.from_arrays(plain, arms=("a", "b"), design=record)


def literal_parts(arrays: LogArrays, weights: str) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Influences (T, 2), gains of the arms' rounds and their degrees of freedom, round by round."""
    p, sums, counts, every = arrays.propensities, [0.0, 0.0], [0, 0], 0.0
    assert p is not None
    scores, h, gains = [], [], np.zeros((ROUNDS, 2))
    for t, (arm, y) in enumerate(zip(arrays.action.tolist(), arrays.reward.tolist(), strict=True)):
        row = []
        for k in (0, 1):
            m = sums[k] / counts[k] if counts[k] else every / max(t, 1)
            row.append(m + (y - m) / p[t, k] if k == arm else m)
        scores.append(row)
        shared = [(1 / p[t, 0] + 1 / p[t, 1]) ** -0.5] * 2
        h.append([0.0, 0.0] if t == 0 else shared if weights == "combined" else np.sqrt(p[t]).tolist())
        gains[t, arm] = h[-1][arm] / p[t, arm]
        sums[arm], counts[arm], every = sums[arm] + y, counts[arm] + 1, every + y
    weight, score = np.array(h), np.array(scores)
    mean = (weight * score).sum(axis=0) / weight.sum(axis=0)
    influence = weight * (score - mean) / weight.sum(axis=0)
    df = (gains**2).sum(axis=0) ** 2 / (gains**4).sum(axis=0) - 1
    return influence, gains, df


def test_means_have_the_interval_of_the_formula() -> None:
    arrays = made("lognormal")
    result = ArmMeans(log_of(arrays, context_free=True)).fit("aipw", "sqrt")
    assert isinstance(result.reference, SkewedReference)
    influence, _, df = literal_parts(arrays, "sqrt")
    limits = result.conf_int(0.1).to_numpy()
    for k in (0, 1):
        d = influence[:, k]
        s, g = np.sqrt(np.sum(d**2)), np.sum(d**3) / np.sum(d**2) ** 1.5
        for column, z in enumerate((stats.t.ppf(0.95, df[k]), stats.t.ppf(0.05, df[k]))):
            x = 3 / g * (np.cbrt(1 + g * (z - g / 6)) - 1)
            assert limits[k, column] == pytest.approx(result.estimate[k] - s * x, rel=1e-9)
    assert says(result.notes, rare_outcomes.CORRECTED)


def test_a_contrast_has_movers_interval() -> None:
    arrays = made("lognormal")
    result = Contrast(log_of(arrays, context_free=True), treatment="b", control="a").fit("aipw")
    assert result.weights == "combined"
    assert isinstance(result.reference, SkewedSumReference)
    influence, _, df = literal_parts(arrays, "combined")
    s = np.sqrt(np.sum(influence**2, axis=0))
    g = np.sum(influence**3, axis=0) / s**3
    r = np.sum(influence[:, 0] * influence[:, 1]) / (s[0] * s[1])
    z = stats.t.ppf(0.95, df.min())

    def reach(k: int, sign: float) -> float:
        """How far the lower (1) or upper (-1) limit of a mean is from it."""
        return float(sign * s[k] * 3 / g[k] * (np.cbrt(1 + g[k] * (sign * z - g[k] / 6)) - 1))

    l1, u1, l0, u0 = reach(1, 1.0), reach(1, -1.0), reach(0, 1.0), reach(0, -1.0)
    below = np.sqrt(l1**2 + u0**2 - 2 * r * l1 * u0)
    above = np.sqrt(u1**2 + l0**2 - 2 * r * u1 * l0)
    low, high = result.conf_int(0.1).to_numpy()[0]
    assert low == pytest.approx(result.estimate[0] - below, rel=1e-9)
    assert high == pytest.approx(result.estimate[0] + above, rel=1e-9)


@pytest.mark.parametrize("reward", ["lognormal", "normal", "buyers"])
def test_the_pooled_skewness_decides(reward: str) -> None:
    arrays = made(reward, rounds=ROUNDS)
    log = log_of(arrays, context_free=True)
    _, gains, _ = literal_parts(arrays, "sqrt")
    pooled = stats.skew(arrays.reward) ** 2
    expected = pooled * np.sum(gains**3, axis=0) ** 2 / np.sum(gains**2, axis=0) ** 3
    result = ArmMeans(log).fit("aipw", "sqrt")
    assert isinstance(result.reference, SkewedReference) == bool(np.any(1 / expected < 100))
    assert isinstance(result.reference, SkewedReference) == (reward != "normal")
    assert isinstance(ArmMeans(log).fit("aipw", "sqrt", test="t").reference, StudentReference)
    assert isinstance(ArmMeans(log).fit("aipw", "sqrt", test="hall").reference, SkewedReference)


def test_streams_have_the_moments_of_the_scores() -> None:
    arrays = made("lognormal")
    codes = np.array([1, 0])
    columns = (arrays.action, arrays.reward, arrays.propensity, arrays.propensities, codes)
    assert arrays.propensity is not None
    for weights in ("uniform", "sqrt"):
        plain = arm_score_means(*columns, weights=weights)  # type: ignore[arg-type]
        streamed = streamed_means(*columns, weights=weights)  # type: ignore[arg-type]
        np.testing.assert_allclose(streamed.skewness, plain.skewness, rtol=1e-9)
        np.testing.assert_allclose(streamed.unevenness, plain.unevenness, rtol=1e-9)
    scored = arm_scores(*columns, weights="sqrt")  # type: ignore[arg-type]
    gains = scored.chosen * scored.weights / arrays.propensity[:, None]
    np.testing.assert_allclose(plain.unevenness, np.sum(gains**3, 0) ** 2 / np.sum(gains**2, 0) ** 3)


@pytest.mark.parametrize("reward", ["lognormal", "events", "buyers"])
@pytest.mark.parametrize(("origin", "step"), [(1e6, 1.0), (0.0, 1e9), (0.0, 1e-9), (5.0, -2.0)])
@pytest.mark.parametrize("estimator", ["aipw", "sample-mean", "alee"])
def test_any_coding_of_rewards_gives_the_same_inference(
    reward: str, origin: float, step: float, estimator: str
) -> None:
    arrays = made(reward)
    make = fixed if estimator == "sample-mean" else log_of
    for fit in (
        lambda log: ArmMeans(log).fit(estimator),
        lambda log: Contrast(log, treatment="b", control="a").fit(estimator),
    ):
        plain, moved = fit(make(arrays)), fit(make(arrays, origin, step))
        start = origin if plain.model == "ArmMeans" else 0.0
        size = abs(step) * plain.std_error
        expected = start + step * plain.conf_int(0.1).to_numpy()
        if step < 0:
            expected = expected[:, ::-1]
        digits = 1e-9 + 4e-16 * abs(origin) / size  # rewards so far from 0 are rounded themselves
        assert np.all(np.abs(moved.conf_int(0.1).to_numpy() - expected) / size[:, None] < digits[:, None])
        assert moved.cautions == plain.cautions
        assert len(moved.notes) == len(plain.notes)
        law = moved.reference.inner if isinstance(moved.reference, RecodedReference) else moved.reference
        assert law.name == plain.reference.name


@pytest.mark.parametrize("estimator", ["aipw", "ipw", "alee", "sample-mean"])
def test_an_arm_with_few_uncommon_outcomes_has_no_interval(estimator: str) -> None:
    arrays = made("few")
    log = fixed(arrays) if estimator == "sample-mean" else log_of(arrays)
    result = ArmMeans(log).fit(estimator)
    assert np.isfinite(result.estimate).all()
    assert np.isnan(result.conf_int().to_numpy()).tolist() == [[False, False], [True, True]]
    assert np.isnan(result.bse["b"])
    assert says(result.notes, rare_outcomes.NO_INTERVAL, terms="b (3)")
    contrast = Contrast(log, treatment="b", control="a").fit(estimator)
    assert np.isnan(contrast.pvalues.iloc[0])
    assert says(contrast.notes, rare_outcomes.NO_INTERVAL, terms="b (3)")


def test_few_events_are_cautioned() -> None:
    arrays = made("events")
    counts = [int(arrays.reward[arrays.action == k].sum()) for k in (0, 1)]
    assert all(5 <= count < 20 for count in counts)
    result = ArmMeans(log_of(arrays)).fit("aipw", test="hall")
    terms = f"a ({counts[0]}), b ({counts[1]})"
    assert says(result.cautions, rare_outcomes.FEW_OUTCOMES, terms=terms, enough=20)
    assert "Caution   " in str(result)
    assert ArmMeans(log_of(made("normal"))).fit("aipw").cautions == ()


def test_strong_skewness_is_cautioned() -> None:
    arrays = made("lognormal", rounds=ROUNDS)
    heavy = LogArrays(arrays.action, arrays.reward**3, arrays.propensity, arrays.propensities)
    result = ArmMeans(log_of(heavy)).fit("aipw")
    assert says(result.cautions, rare_outcomes.SKEWED_THOUGH_CORRECTED)


def test_exact_tests_are_for_any_two_values() -> None:
    arrays = made("events")
    plain, moved = fixed(arrays), fixed(arrays, 1e6, 100.0)
    assert ArmMeans(moved).fit("sample-mean", test="exact").reference.exact
    low, high = ArmMeans(plain).fit("sample-mean", test="exact").conf_int().to_numpy().T
    np.testing.assert_allclose(
        ArmMeans(moved).fit("sample-mean", test="exact").conf_int().to_numpy().T,
        [1e6 + 100 * low, 1e6 + 100 * high],
        rtol=1e-13,
    )
    contrast = Contrast(moved, treatment="b", control="a").fit("sample-mean", test="exact")
    assert contrast.reference.exact
    assert contrast.conf_int().abs().to_numpy().max() <= 100.0


def test_skewed_sample_means_of_a_fixed_design_are_corrected() -> None:
    arrays = made("lognormal")
    result = ArmMeans(fixed(arrays)).fit("sample-mean")
    assert isinstance(result.reference, SkewedReference)
    own = arrays.reward[arrays.action == 1]
    assert result.reference.skewness[1] == pytest.approx(stats.skew(own) / np.sqrt(own.size), rel=1e-10)
    contrast = Contrast(fixed(arrays), treatment="b", control="a")
    symmetric = contrast.fit("sample-mean", test="t")
    assert isinstance(contrast.fit("sample-mean").reference, SkewedSumReference)
    assert contrast.fit("sample-mean").reference.df == symmetric.reference.df  # type: ignore[attr-defined]


def test_alee_has_no_hall() -> None:
    with pytest.raises(InvalidForLog, match="Hall's interval"):
        ArmMeans(log_of(made("lognormal"))).fit("alee", test="hall")


def test_batched_differences_of_rare_outcomes() -> None:
    def fit(reward: str, rounds: int = ROUNDS) -> Any:
        arrays = made(reward, rounds=rounds)
        batch = np.arange(rounds) // 100
        whole = LogArrays(action=arrays.action, reward=arrays.reward, batch=batch)
        record = DesignRecord("coin", {}, traits=DesignTraits(adapts=False, uses_context="no"))
        log = AdaptiveLog.from_arrays(whole, arms=("a", "b"), design=record)
        return Contrast(log, treatment="b", control="a").fit("batched")

    few, events, normal = fit("few"), fit("events"), fit("normal")
    assert np.isfinite(few.estimate[0])
    assert np.isnan(few.pvalues.iloc[0])
    assert np.isnan(few.conf_int().to_numpy()).all()
    assert says(few.notes, rare_outcomes.NO_INTERVAL)
    assert says(events.cautions, rare_outcomes.FEW_OUTCOMES, enough=20)
    # The coin's shares are made to move within these batches, which is all that is said.
    assert normal.cautions == (batched.MOVED_INSIDE(),)
