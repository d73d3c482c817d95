"""Least squares and its covariances against statsmodels, and both against sixty digits."""

from __future__ import annotations

import mpmath
import numpy as np
import pandas as pd
import pytest
from statsmodels.formula.api import ols as formula_ols
from statsmodels.regression.linear_model import OLS

from adaptinf import designs
from adaptinf.inference.distributions.tails import log_f_tail
from adaptinf.inference.regression.adaptive_ols import AdaptiveOLS
from adaptinf.inference.regression.least_squares import COVARIANCES, least_squares
from adaptinf.log import AdaptiveLog
from adaptinf.typing import FloatArray, IntArray

NAMES = ("Intercept", "x1", "x2", "x3")
ROBUST = ("HC0", "HC1", "HC2", "HC3")


def sample(n: int = 300, seed: int = 7, offset: float = 0.0) -> tuple[FloatArray, FloatArray, IntArray]:
    """Columns, rewards of unequal variances with errors shared within clusters, and clusters."""
    rng = np.random.default_rng(seed)
    clusters = rng.integers(0, 25, n)
    z = rng.normal(size=(n, 3)) @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, -0.3], [0.0, 0.0, 2.0]])
    y = 1.0 + z @ [0.5, -1.0, 0.2] + rng.normal(size=n) * (0.5 + z[:, 0] ** 2) + rng.normal(size=25)[clusters]
    return np.column_stack([np.ones(n), z + offset]), y, clusters


def theirs(x: FloatArray, y: FloatArray, kind: str, clusters: IntArray) -> FloatArray:
    """Covariance by statsmodels."""
    if kind == "classical":
        return OLS(y, x).fit().cov_params()
    if kind == "cluster":
        return OLS(y, x).fit(cov_type="cluster", cov_kwds={"groups": clusters}).cov_params()
    return OLS(y, x).fit(cov_type=kind).cov_params()


@pytest.mark.parametrize("kind", [kind for kind in COVARIANCES if kind != "CR2"])  # statsmodels has none
@pytest.mark.parametrize("n", [300, 7])
@pytest.mark.parametrize("intercept", [True, False])
def test_covariances(kind: str, n: int, intercept: bool) -> None:
    x, y, clusters = sample(n)
    x = x if intercept else x[:, 1:]
    fit = least_squares(x, y, NAMES[-x.shape[1] :])
    clusters = np.unique(clusters, return_inverse=True)[1]
    mine = fit.root @ fit.middle(kind, clusters) @ fit.root.T
    np.testing.assert_allclose(mine, theirs(x, y, kind, clusters), rtol=1e-10)
    model = OLS(y, x).fit()
    np.testing.assert_allclose(fit.coefficient, model.params, rtol=1e-10)
    np.testing.assert_allclose(fit.residual, model.resid, atol=1e-11)
    assert fit.df_resid == model.df_resid
    assert fit.rsquared == pytest.approx(model.rsquared, rel=1e-11)
    assert fit.intercept == bool(model.k_constant)


def test_a_constant_that_is_only_in_the_span() -> None:
    x, y, clusters = sample()
    dummies = np.eye(25)[clusters]
    fit = least_squares(np.column_stack([dummies, x[:, 1]]), y, [f"d{j}" for j in range(25)] + ["x1"])
    model = OLS(y, np.column_stack([dummies, x[:, 1]])).fit()
    assert fit.intercept
    assert model.k_constant == 1
    assert fit.rsquared == pytest.approx(model.rsquared, rel=1e-11)


def exact(x: FloatArray, y: FloatArray, kind: str) -> tuple[FloatArray, FloatArray]:
    """Coefficients and covariance in sixty digits, from the formulas."""
    mpmath.mp.dps = 60
    n, p = x.shape
    rows = mpmath.matrix(x.tolist())
    inverse = (rows.T * rows) ** -1
    beta = inverse * (rows.T * mpmath.matrix(y.tolist()))
    residual = mpmath.matrix(y.tolist()) - rows * beta
    middle = mpmath.zeros(p)
    for t in range(n):
        row = rows[t, :]
        leverage = (row * inverse * row.T)[0]
        square = residual[t] ** 2
        if kind == "classical":
            continue
        power = {"HC0": 0, "HC1": 0, "HC2": 1, "HC3": 2}[kind]
        middle += row.T * row * (square / (1 - leverage) ** power)
    if kind == "classical":
        covariance = inverse * (mpmath.fsum(e**2 for e in residual) / (n - p))
    else:
        covariance = inverse * middle * inverse * (mpmath.mpf(n) / (n - p) if kind == "HC1" else 1)
    return np.array(beta.tolist(), dtype=float).ravel(), np.array(covariance.tolist(), dtype=float)


@pytest.mark.parametrize("kind", ["classical", "HC3"])
def test_ill_conditioned_columns_take_the_other_factorisation(kind: str) -> None:
    x, y, _ = sample(60)
    x[:, 3] = x[:, 2] + 1e-5 * x[:, 3]
    beta, covariance = exact(x, y, kind)
    fit = least_squares(x, y, NAMES)
    np.testing.assert_allclose(fit.coefficient, beta, rtol=1e-9)
    np.testing.assert_allclose(fit.root @ fit.middle(kind) @ fit.root.T, covariance, rtol=1e-9)


@pytest.mark.parametrize("kind", ["classical", *ROBUST])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e7])
def test_offsets_lose_no_more_digits_than_statsmodels(kind: str, offset: float) -> None:
    x, y, clusters = sample(60, offset=offset)
    beta, covariance = exact(x, y, kind)
    fit = least_squares(x, y, NAMES)
    mine = fit.root @ fit.middle(kind) @ fit.root.T
    losses = [
        float(np.max(np.abs(found / beta - 1.0))) for found in (fit.coefficient, OLS(y, x).fit().params)
    ]
    spread = [
        float(np.max(np.abs(found / covariance - 1.0))) for found in (mine, theirs(x, y, kind, clusters))
    ]
    # A digit is granted where both are at the rounding.
    assert losses[0] <= max(losses[1], 1e-12)
    assert spread[0] <= max(spread[1], 1e-12)
    # The offsets of the columns cost next to nothing: the slopes keep their digits.
    assert losses[0] < 1e-11
    assert spread[0] < 1e-11


@pytest.mark.parametrize("kind", ["classical", *ROBUST, "cluster"])
def test_tests_of_single_coefficients_and_restrictions(kind: str) -> None:
    log, frame = labelled_log()
    mine = AdaptiveOLS.from_formula("reward ~ C(action) * x1 + x2", log).fit("none", kind)
    keywords: dict[str, object] = {}
    if kind == "cluster":
        keywords = {"cov_type": "cluster", "cov_kwds": {"groups": frame["unit_id"]}, "use_t": True}
    elif kind != "classical":
        keywords = {"cov_type": kind, "use_t": True}
    model = formula_ols("reward ~ C(action) * x1 + x2", frame).fit(**keywords)
    assert set(mine.params.index) == set(model.params.index)
    order = list(model.params.index)
    np.testing.assert_allclose(mine.params[order], model.params, rtol=1e-10)
    np.testing.assert_allclose(
        mine.cov_params().loc[order, order], model.cov_params(), rtol=1e-10, atol=1e-14
    )
    np.testing.assert_allclose(mine.pvalues[order], model.pvalues, rtol=1e-8)
    np.testing.assert_allclose(mine.conf_int(0.1).loc[order], model.conf_int(0.1), rtol=1e-9)
    assert mine.rsquared == pytest.approx(model.rsquared, rel=1e-11)
    assert mine.rsquared_adj == pytest.approx(model.rsquared_adj, rel=1e-11)
    assert (mine.nobs, mine.df_resid, mine.df_model) == (model.nobs, len(frame) - len(order), model.df_model)

    joint = np.zeros((2, len(order)))
    joint[0, order.index("C(action)[T.b]:x1")] = 1.0
    joint[1, order.index("C(action)[T.c]:x1")] = 1.0
    test = mine.wald_test("`C(action)[T.b]:x1` = 0, `C(action)[T.c]:x1` = 0")
    reference = model.wald_test(joint, scalar=True)
    assert test.statistic == pytest.approx(float(reference.statistic), rel=1e-9)
    assert test.pvalue == pytest.approx(float(reference.pvalue), rel=1e-8)
    single = mine.t_test("x1 + `C(action)[T.b]:x1` = 0.3")
    row = np.zeros(len(order))
    row[[order.index("x1"), order.index("C(action)[T.b]:x1")]] = 1.0
    other = model.t_test((row, 0.3))
    assert single.effect[0] == pytest.approx(float(other.effect[0]), rel=1e-10)
    assert single.pvalue[0] == pytest.approx(float(other.pvalue), rel=1e-8)
    np.testing.assert_allclose(single.conf_int(0.05), other.conf_int(0.05), rtol=1e-9)


def labelled_log() -> tuple[AdaptiveLog, pd.DataFrame]:
    """A log of three arms and forty units that does not adapt, and its frame."""
    rng = np.random.default_rng(11)
    n = 400
    frame = pd.DataFrame(
        {
            "action": rng.choice(["a", "b", "c"], n),
            "x1": rng.normal(3.0, 1.0, n),
            "x2": rng.uniform(size=n),
            "unit_id": rng.integers(0, 40, n),
        }
    )
    frame["reward"] = rng.normal(frame["x1"] * (frame["action"] == "b") + frame["x2"], 1.0)
    log = AdaptiveLog(
        frame,
        action="action",
        reward="reward",
        context=["x1", "x2"],
        unit="unit_id",
        about={"design": designs.Uniform().record()},
    )
    return log, frame


def test_one_arm_is_a_regression_of_its_rows() -> None:
    log, frame = labelled_log()
    mine = AdaptiveOLS.from_formula("reward ~ x1 + center(x2)", log, arm="b").fit("none", "classical")
    rows = frame[frame["action"] == "b"].reset_index(drop=True)
    model = formula_ols("reward ~ x1 + center(x2)", rows).fit()
    np.testing.assert_allclose(mine.params, model.params, rtol=1e-10)
    np.testing.assert_allclose(mine.bse, model.bse, rtol=1e-10)


def test_a_prediction_far_from_zero_keeps_its_digits() -> None:
    log, frame = labelled_log()
    far = frame.assign(x1=frame["x1"] + 1e7)
    shifted = AdaptiveLog(
        far,
        action="action",
        reward="reward",
        context=["x1", "x2"],
        about={"design": designs.Uniform().record()},
    )
    near = AdaptiveOLS.from_formula("reward ~ x1 + x2", log).fit("none", "classical")
    near = near.t_test("Intercept + 3 * x1 + x2 = 0")
    away = AdaptiveOLS.from_formula("reward ~ x1 + x2", shifted).fit("none", "classical")
    test = away.t_test("Intercept + 10000003 * x1 + x2 = 0")
    # Only the rounding of the shifted column itself is left, 1e-9.
    np.testing.assert_allclose(test.effect, near.effect, rtol=1e-7)
    np.testing.assert_allclose(test.std_error, near.std_error, rtol=1e-7)


@pytest.mark.parametrize("df", [1, 2, 7, 50])
@pytest.mark.parametrize("df_denom", [1, 3, 40, 5000])
@pytest.mark.parametrize("statistic", [1e-6, 0.4, 1.0, 3.0, 30.0, 1e4])
def test_f_tail(df: int, df_denom: int, statistic: float) -> None:
    mpmath.mp.dps = 40
    x = mpmath.mpf(df_denom) / (df_denom + df * mpmath.mpf(statistic))
    tail = mpmath.betainc(mpmath.mpf(df_denom) / 2, mpmath.mpf(df) / 2, 0, x, regularized=True)
    found = log_f_tail(statistic, df, df_denom)
    assert found == pytest.approx(float(mpmath.log(tail)), rel=1e-11, abs=1e-14)


def test_f_tail_at_its_ends() -> None:
    assert log_f_tail(0.0, 2, 9) == 0.0
    assert log_f_tail(np.inf, 2, 9) == -np.inf
    assert np.isnan(log_f_tail(np.nan, 2, 9))
    assert np.isnan(log_f_tail(1.0, 2, 0))
