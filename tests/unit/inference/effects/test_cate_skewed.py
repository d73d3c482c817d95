"""Effects of groups and their projections with rare outcomes and skewed rewards, whatever their coding."""

from __future__ import annotations

import numpy as np
import pytest
from claims_said import says
from scipy import stats

from adaptinf.claims import rare_outcomes
from adaptinf.inference.distributions.references import StudentReference
from adaptinf.inference.distributions.skewed import SkewedSumReference
from adaptinf.inference.distributions.two_samples import DifferenceReference
from adaptinf.inference.effects.cate import CATE
from adaptinf.inference.scores.inverse import aipw_scores, indicators, predictions
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.typing import FloatArray

ROUNDS = 1200


def arrays_of(reward: str, *, randomised: bool = False) -> LogArrays:
    """Two groups, propensities that wander alike in both."""
    rng = np.random.default_rng(1)
    share = np.clip(0.5 + 0.35 * np.sin(np.arange(ROUNDS) / 50.0), 0.15, 0.85)
    action = (rng.random(ROUNDS) < share).astype(np.int64)
    group = rng.integers(0, 2, ROUNDS)
    values = {
        "lognormal": lambda: rng.lognormal(size=ROUNDS),
        "normal": lambda: rng.normal(size=ROUNDS),
        "events": lambda: (rng.random(ROUNDS) < 0.04).astype(float),
        "few": lambda: np.where(
            (group == 1) & (action == 0) & (np.arange(ROUNDS) > 20), 0.0, rng.normal(size=ROUNDS)
        ),
    }[reward]()
    if randomised:
        return LogArrays(action, values, randomised=np.full(ROUNDS, True), context={"g": group})
    both = np.column_stack([1.0 - share, share])
    own = both[np.arange(ROUNDS), action]
    return LogArrays(action, values, propensity=own, propensities=both, context={"g": group})


def log_of(arrays: LogArrays, origin: float = 0.0, step: float = 1.0) -> AdaptiveLog:
    moved = LogArrays(
        arrays.action,
        origin + step * arrays.reward,
        propensity=arrays.propensity,
        propensities=arrays.propensities,
        randomised=arrays.randomised,
        context=arrays.context,
    )
    return AdaptiveLog.from_arrays(moved, arms=("a", "b"), context_free=True)


def literal(arrays: LogArrays, group: int) -> tuple[FloatArray, float, float]:
    """Influences of both arms' means with sqrt weights, the effect, and the degrees of freedom."""
    p = arrays.propensities
    assert p is not None
    assert arrays.propensity is not None
    rows = np.flatnonzero(arrays.context["g"] == group)
    every = np.append(0.0, np.cumsum(arrays.reward)[:-1] / np.arange(1, ROUNDS))
    chosen = indicators(arrays.action[rows], np.array([0, 1]))
    predicted = predictions(chosen, arrays.reward[rows])
    predicted[0] = every[rows[0]]
    scores = aipw_scores(chosen, arrays.reward[rows], arrays.propensity[rows], predicted)
    h = np.sqrt(p[rows])
    h[rows == 0] = 0.0
    mean = (h * scores).sum(axis=0) / h.sum(axis=0)
    gains = chosen * h / p[rows]
    df = (gains**2).sum(axis=0) ** 2 / (gains**4).sum(axis=0) - 1
    return h * (scores - mean) / h.sum(axis=0), float(mean[1] - mean[0]), float(df.min())


def test_a_group_has_movers_interval_of_its_two_arms() -> None:
    arrays = arrays_of("lognormal")
    result = CATE(log_of(arrays), by="g").fit("aipw", weights="sqrt", stationary=True)
    assert isinstance(result.reference, SkewedSumReference)
    limits = result.conf_int(0.1).to_numpy()
    for group in (0, 1):
        d, effect, df = literal(arrays, group)
        s = np.sqrt((d**2).sum(axis=0))
        g, r = (d**3).sum(axis=0) / s**3, (d[:, 0] @ d[:, 1]) / (s[0] * s[1])
        z = np.array([1.0, -1.0]) * stats.t.ppf(0.95, df)
        low, high = np.abs(s * 3 / g * (np.cbrt(1 + g * (z[:, None] - g / 6)) - 1))
        below = np.sqrt(low[1] ** 2 + high[0] ** 2 - 2 * r * low[1] * high[0])
        above = np.sqrt(high[1] ** 2 + low[0] ** 2 - 2 * r * high[1] * low[0])
        assert result.estimate[group] == pytest.approx(effect, rel=1e-9)
        np.testing.assert_allclose(limits[group], [effect - below, effect + above], rtol=1e-8)


def test_differences_of_skewed_groups_combine_four_means() -> None:
    result = CATE(log_of(arrays_of("lognormal")), by="g").fit("aipw")
    law, effects = result.reference, result.estimate
    change = result.interactions()
    assert isinstance(law, SkewedSumReference)
    assert isinstance(change.reference, SkewedSumReference)
    low, high = change.conf_int().to_numpy()[0]
    # The groups are independent: their limits, at the difference's degrees of freedom, combine.
    df = np.repeat(change.reference.df, 2)
    same = SkewedSumReference(effects, law.std_error, law.skewness, df, law.correlation)
    limits = same.interval(np.log(0.05))
    below = np.hypot(effects[1] - limits[1, 0], limits[0, 1] - effects[0])
    above = np.hypot(limits[1, 1] - effects[1], effects[0] - limits[0, 0])
    assert low == pytest.approx(effects[1] - effects[0] - below, rel=1e-9)
    assert high == pytest.approx(effects[1] - effects[0] + above, rel=1e-9)


def test_normal_rewards_keep_student() -> None:
    assert isinstance(CATE(log_of(arrays_of("normal")), by="g").fit("aipw").reference, StudentReference)
    fixed = CATE(log_of(arrays_of("normal", randomised=True)), by="g").fit()
    assert isinstance(fixed.reference, DifferenceReference)
    assert CATE(log_of(arrays_of("normal")), by="g").fit("aipw").cautions == ()


def test_skewed_differences_in_means_use_the_moments_of_the_cells() -> None:
    arrays = arrays_of("lognormal", randomised=True)
    result = CATE(log_of(arrays), by="g").fit()
    assert isinstance(result.reference, SkewedSumReference)
    for group in (0, 1):
        cells = [arrays.reward[(arrays.context["g"] == group) & (arrays.action == arm)] for arm in (0, 1)]
        shape = [stats.skew(cell) / np.sqrt(cell.size) for cell in cells]
        np.testing.assert_allclose(result.reference.skewness[group], [-shape[0], shape[1]], rtol=1e-10)
        welch = stats.ttest_ind(cells[1], cells[0], equal_var=False)
        assert result.reference.df[group] == pytest.approx(welch.df, rel=1e-10)
        assert result.std_error[group] == pytest.approx(
            np.hypot(*(np.std(cell, ddof=1) / np.sqrt(cell.size) for cell in cells)), rel=1e-10
        )


@pytest.mark.parametrize("kind", ["aipw", "difference-in-means", "projection"])
def test_groups_with_few_uncommon_outcomes_have_no_interval(kind: str) -> None:
    log = log_of(arrays_of("few", randomised=kind == "difference-in-means"))
    if kind == "projection":
        result = CATE.from_formula("~ 0 + C(g)", log).fit()
    else:
        result = CATE(log, by="g").fit(kind)  # type: ignore[assignment]
    assert np.isfinite(result.estimate).all()
    assert np.isnan(result.std_error).tolist() == [False, True]
    assert np.isnan(result.conf_int().to_numpy()).any(axis=1).tolist() == [False, True]
    assert says(result.notes, rare_outcomes.NO_INTERVAL)


@pytest.mark.parametrize("kind", ["aipw", "difference-in-means", "projection"])
@pytest.mark.parametrize("reward", ["events", "lognormal"])
@pytest.mark.parametrize(("origin", "step"), [(1e6, 1.0), (0.0, 100.0), (-1.0, 2.0), (0.0, 1e-9)])
def test_any_coding_gives_the_same_effects(kind: str, reward: str, origin: float, step: float) -> None:
    arrays = arrays_of(reward, randomised=kind == "difference-in-means")

    def fit(log: AdaptiveLog) -> tuple[FloatArray, tuple[str, ...], str]:
        if kind == "projection":
            result = CATE.from_formula("~ C(g)", log).fit()
        else:
            result = CATE(log, by="g").fit(kind)  # type: ignore[assignment]
        return result.conf_int().to_numpy(), result.cautions, result.reference.name

    plain, moved = fit(log_of(arrays)), fit(log_of(arrays, origin, step))
    # Rewards so far from 0 are rounded themselves.
    np.testing.assert_allclose(moved[0], step * plain[0], atol=1e-8 * step * (1.0 + (origin > 1.0)))
    assert moved[1:] == plain[1:]


def test_few_events_of_a_group_are_cautioned() -> None:
    result = CATE(log_of(arrays_of("events")), by="g").fit("aipw")
    assert says(result.cautions, rare_outcomes.FEW_OUTCOMES, enough=20)
    assert says(result.interactions().cautions, rare_outcomes.FEW_OUTCOMES, enough=20)


def test_a_projection_on_groups_is_close_to_the_groups() -> None:
    log = log_of(arrays_of("lognormal"))
    projected = CATE.from_formula("~ 0 + C(g)", log).fit(weights="combined")
    groups = CATE(log, by="g").fit("aipw", weights="combined")
    assert isinstance(projected.reference, SkewedSumReference)
    length = np.diff(groups.conf_int().to_numpy())
    assert np.all(np.abs(projected.conf_int().to_numpy() - groups.conf_int().to_numpy()) < 0.1 * length)
