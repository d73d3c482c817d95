"""What cautions of a regression need from passes over the rounds: the numbers of the literal versions."""

from __future__ import annotations

import numpy as np
import pytest

import adaptinf as ai
from adaptinf.inference.distributions.sample_shape import uncommon_outcomes
from adaptinf.inference.regression import rare_coefficients
from adaptinf.inference.regression.design import RegressionData, regression_data
from adaptinf.inference.regression.facts import residual_trends
from adaptinf.inference.scores.means import unevenness
from adaptinf.inference.validity.profile import profile_of
from adaptinf.inference.validity.stationarity import standardised, times
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.typing import FloatArray

ROUNDS, ARMS = 600, 3


def log(*, common: float = 0.6, offset: float = 0.0, alike: float = 0.0) -> AdaptiveLog:
    """Rewards with a common value; `alike` is how far a column is from another's double."""
    rng = np.random.default_rng(5)
    action = rng.integers(ARMS, size=ROUNDS)
    x = rng.normal(size=(ROUNDS, 2)) + offset
    reward = np.where(rng.random(ROUNDS) < common, 1.0, rng.gamma(2.0, size=ROUNDS) + 0.3 * x[:, 0])
    context = {"a": x[:, 0], "b": x[:, 1]}
    if alike:
        context["c"] = 2.0 * x[:, 0] + alike * rng.normal(size=ROUNDS)
    arrays = LogArrays(action=action, reward=reward, context=context)
    return AdaptiveLog.from_arrays(arrays, arms=("p", "q", "r"))


def literal_trends(data: RegressionData) -> FloatArray:
    time, found = times(data.n_rounds, None), np.full(ARMS, np.nan)
    for arm in range(ARMS):
        own = data.action == arm
        terms = residual_trends.literal_terms(data.x[own], np.stack([time[own], data.y[own]], axis=1))
        if terms is not None:
            found[arm] = standardised(terms)
    return found


@pytest.mark.parametrize(
    ("made", "rtol"),
    [({}, 1e-12), ({"offset": 1e4}, 1e-9), ({"alike": 1e-2}, 1e-11), ({"alike": 1e-9}, 1e-12)],
)
def test_trends_are_those_of_least_squares_by_arm(made: dict[str, float], rtol: float) -> None:
    given = log(**made)
    data = regression_data(given)
    found = residual_trends.residual_trends(data, profile_of(given)).z
    expected = literal_trends(data)
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(found, expected, rtol=rtol)


def test_rewards_that_the_columns_explain_have_no_trend() -> None:
    given = log()
    data = regression_data(given)
    explained = RegressionData(**{**vars(data), "y": data.x @ np.array([1.0, 2.0, -3.0])})
    assert np.isnan(residual_trends.residual_trends(explained, profile_of(given)).z).all()
    few = RegressionData(**{**vars(data), "action": np.where(np.arange(ROUNDS) < 8, 1, 0)})
    np.testing.assert_array_equal(
        np.isfinite(residual_trends.residual_trends(few, profile_of(given)).z), [True, False, False]
    )


@pytest.mark.parametrize("common", [0.0, 0.45, 0.55, 0.95])
@pytest.mark.parametrize("block", [64, 1 << 14])
def test_sides_of_coefficients_are_those_of_their_pulls(
    common: float, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rare_coefficients, "_BLOCK", block)
    data = regression_data(log(common=common))
    uncommon, spread = rare_coefficients._sides(data)
    q, r = np.linalg.qr(data.x)
    for j, own in enumerate(np.linalg.solve(r, q.T)):
        used = np.abs(own) > 0.05 * np.abs(own).max()
        side, size = (own[used] > 0.0).astype(np.int64), np.abs(own[used])
        assert uncommon[j] == uncommon_outcomes(side, data.y[used], 2).min()
        squares, cubes = (np.bincount(side, size**power, 2) for power in (2, 3))
        assert spread[j] == pytest.approx(unevenness(squares, cubes).max(), rel=1e-10)
    assert np.isfinite(uncommon).all() == (common > 0.5)


def test_a_regression_computes_plain_least_squares_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from adaptinf.inference.regression import design

    calls = []
    plain = design.least_squares
    monkeypatch.setattr(design, "least_squares", lambda *given: calls.append(1) or plain(*given))
    given = log()
    ai.AdaptiveOLS(given).fit("none")
    assert len(calls) == 1
