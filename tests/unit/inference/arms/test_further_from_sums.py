"""Ratios and covariates by batch: round by round from the definition, the same from rows and from sums."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says
from hypothesis import given, settings
from hypothesis import strategies as st

import adaptinf as ai
from adaptinf.claims.data import covariates, ratios
from adaptinf.errors import InvalidForLog, ParameterError

pytestmark = pytest.mark.filterwarnings("ignore::adaptinf.errors.AdaptinfWarning")


def frame_of(
    seed: int, n_arms: int = 2, sizes: tuple[int, ...] = (40, 50, 60), varying: bool = True
) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    batch = np.repeat(np.arange(len(sizes)), sizes)
    share = rng.dirichlet(np.full(n_arms, 3.0), len(sizes))[batch] * 0.8 + 0.2 / n_arms
    if varying:
        share = share * rng.uniform(0.6, 1.4, share.shape)
        share /= share.sum(axis=1, keepdims=True)
    arm = (rng.random(len(batch))[:, None] > share.cumsum(axis=1)).sum(axis=1)
    orders = rng.poisson(1.5 + arm) * rng.integers(0, 2, len(batch)) + rng.integers(0, 2, len(batch))
    x, w = rng.normal(50.0, 3.0, len(batch)), rng.gamma(1.0, size=len(batch))
    frame = pd.DataFrame({"batch": batch, "arm": arm, "orders": orders, "x": x, "w": w})
    frame["y"] = orders * rng.gamma(1.0, size=len(batch)) + 0.4 * (x - 50.0) + w + 5.0
    return frame.assign(**{f"propensity_{k}": share[:, k] for k in range(n_arms)})


def log_of(frame: pd.DataFrame, **options: Any) -> ai.AdaptiveLog:
    roles = {"action": "arm", "reward": "y", "batch": "batch", "outcomes": "orders", "context": ["x", "w"]}
    return ai.AdaptiveLog(frame, **{**roles, **options})


def sums_of(log: ai.AdaptiveLog) -> ai.Sums:
    return ai.Sums.of_log(log, denominator="orders", covariate=["x", "w"])


def line(known: pd.DataFrame, everyone: pd.DataFrame, penalty: float) -> tuple[float, float, float]:
    """Mean of rewards, slope in x, and its mean, of rounds that are known."""
    y, x, spread = known["y"].tolist(), known["x"].tolist(), everyone["x"].tolist()
    mean, level, middle = (math.fsum(each) / len(each) for each in (y, x, spread))
    variance = math.fsum((each - middle) ** 2 for each in spread) / len(spread)
    top = math.fsum((a - mean) * (b - level) for a, b in zip(y, x, strict=True))
    return mean, top / (math.fsum((b - level) ** 2 for b in x) + penalty * variance), level


@pytest.mark.parametrize("penalty", [1.0, 20.0])
def test_the_literal_line_of_earlier_batches(penalty: float) -> None:
    """In the first batch the mean of its other rounds, without the covariate."""
    frame, scores = frame_of(1), np.zeros((150, 2))
    for t, row in frame.iterrows():
        before = frame[frame["batch"] < row["batch"]]
        for k in (0, 1):
            if len(before):
                mean, slope, level = line(before[before["arm"] == k], before, penalty)
                m = mean + slope * (row["x"] - level)
            else:
                m = frame["y"][(frame["batch"] == 0) & (frame.index != t)].mean()
            scores[int(t), k] = m + (row["arm"] == k) * (row["y"] - m) / row[f"propensity_{k}"]
    mean = scores.mean(axis=0)
    covariance = (scores - mean).T @ (scores - mean) / 150**2
    for data in (log_of(frame), sums_of(log_of(frame))):
        asked = {"weights": "uniform", "outcome": "batch-mean", "covariate": "x", "ridge": penalty}
        found = ai.ArmMeans(data).fit(**asked)
        np.testing.assert_allclose(found.estimate, mean, rtol=1e-12)
        np.testing.assert_allclose(found.covariance, covariance, rtol=1e-9, atol=1e-13)
        plain = ai.ArmMeans(data).fit("aipw", weights="uniform", outcome="batch-mean")
        ratio = (found.std_error / plain.std_error) ** 2
        np.testing.assert_allclose(found.details["variance_ratio"], ratio, rtol=1e-12)
        assert says(found.notes[0], covariates.VARIANCE, means="means over earlier batches")


def fitted(model: Any, **asked: Any) -> Any:
    try:
        return model.fit(**asked)
    except InvalidForLog as error:
        return error.method, error.reason


def assert_same(rows: Any, sums: Any) -> None:
    if isinstance(rows, tuple) or isinstance(sums, tuple):
        assert rows == sums
        return
    for name in ("estimate", "std_error"):
        np.testing.assert_allclose(getattr(sums, name), getattr(rows, name), rtol=1e-10, atol=1e-14)
    if rows.covariance is not None and sums.covariance is not None:
        scale = np.max(np.nan_to_num(np.abs(rows.covariance)))
        np.testing.assert_allclose(sums.covariance, rows.covariance, rtol=1e-10, atol=1e-10 * scale)
    np.testing.assert_allclose(sums.conf_int(), rows.conf_int(), rtol=1e-9)
    for name, values in rows.details.items():
        np.testing.assert_allclose(sums.details[name], values, rtol=1e-9)
    assert (sums.validity, sums.weights) == (rows.validity, rows.weights)


@pytest.mark.slow
@settings(max_examples=8, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    n_arms=st.integers(2, 3),
    sizes=st.lists(st.integers(30, 80), min_size=1, max_size=4),
    varying=st.booleans(),
    test=st.sampled_from(["auto", "t", "hall"]),
    covariate=st.sampled_from([None, "x", ["w", "x"]]),
)
def test_sums_equal_rows(
    seed: int, n_arms: int, sizes: list[int], varying: bool, test: str, covariate: Any
) -> None:
    log = log_of(frame_of(seed, n_arms, tuple(sizes), varying))
    sums = sums_of(log)
    calls: list[dict[str, Any]] = [
        {"estimator": "aipw", "outcome": "batch-mean", "covariate": covariate, "weights": weights}
        for weights in ("uniform", "combined", *(() if varying else ("sqrt",)))
    ]
    if covariate is None:
        calls += [{"estimator": "ipw", "weights": "combined"}, {"estimator": "sample-mean"}]
    for below in (None, "orders"):
        for call in calls:
            own = call | ({"weights": "uniform"} if call.get("weights") == "combined" else {})
            means = (ai.ArmMeans(data, denominator=below) for data in (log, sums))
            assert_same(*(fitted(model, **own, test=test) for model in means))
            for lift in (False, True):
                models = (ai.Contrasts(data, control=0, denominator=below) for data in (log, sums))
                assert_same(*(fitted(model, **call, test=test, lift=lift) for model in models))


def test_digits_far_from_zero() -> None:
    """Rewards and a covariate at 1e6, with orders: no digits that matter are lost."""
    frame = frame_of(3)
    near, far = (
        sums_of(log_of(frame.assign(y=frame["y"] + away, x=frame["x"] + away))) for away in (0.0, 1e6)
    )
    asked = {"covariate": "x", "test": "t"}
    one, other = (ai.Contrast(data, treatment=1, control=0).fit(**asked) for data in (near, far))
    np.testing.assert_allclose(other.estimate, one.estimate, rtol=1e-8)
    np.testing.assert_allclose(other.std_error, one.std_error, rtol=1e-8)


def test_rewards_in_proportion_have_no_error() -> None:
    frame = frame_of(4)
    sums = sums_of(log_of(frame.assign(y=0.3 * frame["orders"])))
    result = ai.ArmMeans(sums, denominator="orders").fit("sample-mean", test="t")
    np.testing.assert_allclose(result.estimate, 0.3, rtol=1e-12)
    np.testing.assert_array_equal(result.std_error, 0.0)


def test_no_ratio_to_a_mean_near_zero() -> None:
    frame = frame_of(5, sizes=(100, 100))
    own = np.flatnonzero(frame["arm"] == 0)
    frame.loc[own, "orders"] = 0
    frame.loc[own[:19], "orders"] = 1
    log = log_of(frame)
    for data in (log, sums_of(log)):
        result = ai.ArmMeans(data, denominator="orders").fit("sample-mean")
        assert math.isnan(result.estimate[0])
        assert says(result.cautions, ratios.FEW_ROUNDS, arm="0", below="orders", n=19, fewest=20)


def test_units_and_other_outcome_models_are_refused() -> None:
    frame = frame_of(6)
    log = log_of(frame.assign(who=np.arange(len(frame)) // 2), unit="who")
    with pytest.raises(InvalidForLog, match="a unit's own earlier rewards"):
        ai.ArmMeans(log).fit(covariate="x", outcome="batch-mean")
    sums = sums_of(log_of(frame))
    with pytest.raises(ParameterError, match="model: omit outcome=, or set it to 'batch-mean'"):
        ai.ArmMeans(sums).fit(covariate="x", outcome="running-mean")
    with pytest.raises(ParameterError, match="ridge must be positive"):
        ai.ArmMeans(sums).fit(covariate="x", ridge=-1.0)
    with pytest.raises(ParameterError, match="covariate= applies to aipw"):
        ai.ArmMeans(sums).fit("ipw", covariate="x")
