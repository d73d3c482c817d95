"""Projections of effects against the formula written out, and against statsmodels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.regression.linear_model import WLS

from adaptinf.inference.effects.cate import CATE
from adaptinf.inference.regression.score_projection import weighted_projection
from adaptinf.log import AdaptiveLog, LogArrays

ROUNDS = 300


def adaptive_data(seed=0, rounds=ROUNDS, arms=2):
    """Arms leaning to the one that was better so far among rounds of the same site."""
    rng = np.random.default_rng(seed)
    site, age = rng.integers(0, 3, rounds), rng.uniform(20, 60, rounds)
    action, reward = np.zeros(rounds, dtype=np.int64), np.zeros(rounds)
    propensities = np.zeros((rounds, arms))
    sums, counts = np.zeros((3, arms)), np.ones((3, arms))
    for t in range(rounds):
        lean = np.full(arms, 0.3 / arms)
        lean[np.argmax(sums[site[t]] / counts[site[t]])] += 0.7
        propensities[t] = lean
        action[t] = rng.choice(arms, p=lean)
        reward[t] = rng.normal((action[t] == 1) * (0.05 * age[t] - 1.5) + 0.3 * site[t], 1.0)
        sums[site[t], action[t]] += reward[t]
        counts[site[t], action[t]] += 1
    return site, age, action, reward, propensities


def make_log(data, **others):
    site, age, action, reward, propensities = data
    arrays = LogArrays(
        action,
        reward,
        propensity=propensities[np.arange(len(action)), action],
        propensities=propensities,
        context={"age": age, "site": np.array(["a", "b", "c"], dtype=object)[site], **others},
    )
    return AdaptiveLog.from_arrays(arrays, arms=tuple("uvw"[: propensities.shape[1]]))


def literal_scores(action, reward, propensities):
    """Round by round, with the arms' running means; the first round, which knows none, is left out."""
    seen, every = {0: [], 1: []}, []
    scores = []
    for a, y, e in zip(action, reward, propensities, strict=True):
        model = [np.mean(seen[k] or every or [0.0]) for k in (0, 1)]
        parts = [model[k] + (a == k) / e[k] * (y - model[k]) for k in (0, 1)]
        scores.append(parts[1] - parts[0])
        every.append(y)
        if a in seen:
            seen[a].append(y)
    return np.array(scores[1:])


def literal_df(x, action, propensities, weights):
    """Effective rewards of the smaller arm behind each coefficient, minus 1."""
    bread = sum(h * np.outer(row, row) for row, h in zip(x, weights, strict=True))
    found = []
    for j in range(x.shape[1]):
        sizes = []
        for arm in (0, 1):
            w = [
                (np.linalg.solve(bread, row)[j] * h / e[arm]) ** 2
                for row, a, e, h in zip(x, action, propensities, weights, strict=True)
                if a == arm
            ]
            sizes.append(sum(w) ** 2 / sum(one**2 for one in w))
        found.append(min(sizes) - 1)
    return np.array(found)


def literal_weight(kind, t, rounds, e0, e1, left, decay=0.5):
    """Weight of round t (from 1) and the budget that it leaves."""
    if kind == "uniform":
        return 1.0, left
    variance = 1 / e0 + 1 / e1
    if kind == "combined":
        return variance**-0.5, left
    balance = 4 / variance
    floored = t**-decay / (t**-decay + (rounds ** (1 - decay) - t ** (1 - decay)) / (1 - decay))
    share = (1 - balance) * floored + balance / (1 + rounds - t)
    return math.sqrt(share * left * balance), left * (1 - share)


def literal_fit(x, scores, weights):
    p = x.shape[1]
    bread, moment = np.zeros((p, p)), np.zeros(p)
    for row, score, h in zip(x, scores, weights, strict=True):
        bread += h * np.outer(row, row)
        moment += h * row * score
    coefficient = np.linalg.solve(bread, moment)
    meat = np.zeros((p, p))
    for row, score, h in zip(x, scores, weights, strict=True):
        meat += h**2 * (score - row @ coefficient) ** 2 * np.outer(row, row)
    return coefficient, np.linalg.inv(bread) @ meat @ np.linalg.inv(bread)


def model_matrix(site, age):
    return np.column_stack([np.ones(len(age)), (age - 40) / 10, site == 1, site == 2]).astype(float)


FORMULA = "~ I((age - 40) / 10) + site"


@pytest.mark.parametrize("kind", ["uniform", "combined", "two-point"])
@pytest.mark.parametrize("arms", [2, 3])
def test_projection_equals_the_round_by_round_version(kind, arms):
    data = adaptive_data(arms=arms)
    site, age, action, reward, propensities = data
    decay = {"decay": 0.5} if kind == "two-point" else {}
    model = CATE.from_formula(FORMULA, make_log(data), treatment="v", control="u")
    result = model.fit(weights=kind, **decay)
    weights, left = [], 1.0
    for t, e in enumerate(propensities, start=1):
        h, left = literal_weight(kind, t, ROUNDS, e[0], e[1], left)
        weights.append(h)
    x = model_matrix(site, age)[1:]
    coefficient, covariance = literal_fit(x, literal_scores(action, reward, propensities), weights[1:])
    df = literal_df(x, action[1:], propensities[1:], weights[1:])
    np.testing.assert_allclose(result.reference.df, df, rtol=1e-8)
    np.testing.assert_allclose(result.params, coefficient, rtol=1e-9)
    np.testing.assert_allclose(result.cov_params(), covariance, rtol=1e-9)
    np.testing.assert_allclose(result.bse, np.sqrt(np.diag(covariance)), rtol=1e-9)
    assert list(result.terms)[2:] == ["site[T.b]", "site[T.c]"]


@pytest.mark.parametrize("kind", ["HC0", "HC1", "HC2", "HC3"])
def test_covariances_and_hypotheses_are_those_of_statsmodels(kind):
    data = adaptive_data(seed=1)
    site, age, action, reward, propensities = data
    x, scores = model_matrix(site, age)[1:], literal_scores(action, reward, propensities)
    for weights in ("uniform", "combined"):
        result = CATE.from_formula(FORMULA, make_log(data)).fit(weights=weights, covariance=kind)
        h = np.ones(ROUNDS) if weights == "uniform" else (1 / propensities).sum(axis=1) ** -0.5
        other = WLS(scores, x, weights=h[1:]).fit(cov_type=kind)
        np.testing.assert_allclose(result.params, other.params, rtol=1e-9)
        np.testing.assert_allclose(result.cov_params(), other.cov_params(), rtol=1e-8, atol=1e-14)
        test = result.wald_test("site[T.b] = 0, site[T.c] = 0.5")
        theirs = other.wald_test("x2 = 0, x3 = 0.5", use_f=False, scalar=True)
        assert test.statistic == pytest.approx(float(theirs.statistic), rel=1e-8)
        df = literal_df(x, action[1:], propensities[1:], h[1:])
        assert test.df_denom == pytest.approx(df[2:].min(), rel=1e-8)
        assert test.pvalue == pytest.approx(stats.f.sf(test.statistic / 2, 2, df[2:].min()), rel=1e-8)
        half = stats.t.isf(0.025, df) * other.bse
        limits = np.column_stack([other.params - half, other.params + half])
        np.testing.assert_allclose(result.conf_int(), limits, rtol=1e-7)


def test_covariates_far_from_zero_lose_no_more_digits_than_elsewhere():
    data = adaptive_data(seed=2)
    site, age, action, reward, propensities = data
    near = CATE.from_formula("~ age + site", make_log(data)).fit()
    shift = 1e7
    far = CATE.from_formula("~ age + site", make_log((site, age + shift, *data[2:]))).fit()
    x = np.column_stack([np.ones(ROUNDS), age + shift, site == 1, site == 2]).astype(float)
    other = WLS(literal_scores(action, reward, propensities), x[1:]).fit(cov_type="HC0")
    slope, std_error = near.params["age"], near.bse["age"]
    ours = abs(far.params["age"] / slope - 1), abs(far.bse["age"] / std_error - 1)
    theirs = abs(other.params[1] / slope - 1), abs(other.bse[1] / std_error - 1)
    # Adding 1e7 rounds the ages themselves, to a relative 1e-10 of their spread.
    assert max(ours) < 1e-9
    assert ours[0] <= theirs[0] + 1e-9
    assert ours[1] <= theirs[1] + 1e-9
    one = near.predict({"age": [30.0], "site": ["b"]}), far.predict({"age": [30.0 + shift], "site": ["b"]})
    np.testing.assert_allclose(one[1], one[0], rtol=1e-8)


def test_singular_columns_are_named_and_scales_do_not_matter():
    rng = np.random.default_rng(3)
    x = np.column_stack([np.ones(50), rng.normal(0, 1e-9, 50), rng.normal(0, 1e9, 50)])
    y, h = rng.normal(0, 1, 50), rng.uniform(0.5, 1, 50)
    fit = weighted_projection(x, y, h, ["one", "small", "large"])
    plain = weighted_projection(x * [1, 1e9, 1e-9], y, h, ["one", "small", "large"])
    np.testing.assert_allclose(fit.coefficient * [1, 1e-9, 1e9], plain.coefficient, rtol=1e-9)
    coefficient, covariance = literal_fit(x * [1, 1e9, 1e-9], y, h)
    np.testing.assert_allclose(plain.coefficient, coefficient, rtol=1e-9)
    np.testing.assert_allclose(plain.covariance, covariance, rtol=1e-9, atol=1e-18)
    np.testing.assert_allclose(plain.influence.T @ plain.influence, plain.covariance, rtol=1e-12)
    with pytest.raises(
        ValueError,
        match=r"the columns \w+ cannot be distinguished from the others: they are linear "
        r"combinations",
    ):
        weighted_projection(np.column_stack([x, x[:, 1] + x[:, 1]]), y, h, ["one", "small", "large", "twice"])
