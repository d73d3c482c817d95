"""Several lifts at once: their covariance, and intervals by the law of the largest t."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says
from scipy import stats

import adaptinf as ai
from adaptinf.claims.arms import contrasts as claims
from adaptinf.inference.distributions.references import JoinedReference
from adaptinf.typing import FloatArray

RATES = (0.3, 0.3, 0.4, 0.5)
DESIGN = ai.designs.EpsilonGreedy(exploration=0.4, batch_size=100)


@cache
def log_of(rounds: int = 2_000) -> ai.AdaptiveLog:
    return DESIGN.run(ai.environments.BernoulliArms(RATES), rounds, rng=0)


def correlation(found: Any) -> FloatArray:
    size = np.sqrt(np.diag(found.covariance))
    return np.asarray(found.covariance / np.outer(size, size))


def test_sample_means_share_the_control_alone() -> None:
    """With v the squared relative errors, logs of ratios k and l have covariance v0 and variance v0 + vk."""
    log = log_of()
    means = ai.ArmMeans(log).fit("sample-mean")
    v = (means.std_error / means.estimate) ** 2
    found = ai.Contrasts(log, control=0).fit("sample-mean", lift=True)
    covariance = np.full((3, 3), v[0]) + np.diag(v[1:])
    size = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(correlation(found), covariance / np.outer(size, size), rtol=2e-3)
    np.testing.assert_allclose(np.diag(found.covariance), found.std_error**2, rtol=1e-12)


def test_scores_by_the_formula() -> None:
    """With uniform weights: sums over rounds of products of (a - R c) / m, literally."""
    log = log_of()
    parts = []
    for arm in (1, 2, 3):
        pair = ai.ArmMeans(log, [arm, 0]).fit("aipw", "uniform", keep_scores=True)
        assert pair.scores is not None
        ratio = pair.estimate[0] / pair.estimate[1]
        rows = pair.scores["influence"]
        parts.append([(a - ratio * c) / pair.estimate[1] for a, c in rows])
    literal = np.array([[sum(x * y for x, y in zip(p, q, strict=True)) for q in parts] for p in parts])
    found = ai.Contrasts(log, control=0).fit("aipw", "uniform", lift=True)
    np.testing.assert_allclose(found.covariance, literal, rtol=1e-8)


def test_sums_give_the_correlations_of_rows() -> None:
    """By the same outcome model, means over earlier batches, the numbers are the same."""
    log = log_of()
    rows = ai.Contrasts(log, control=0).fit("aipw", "combined", lift=True, outcome="batch-mean")
    sums = ai.Contrasts(ai.Sums.of_log(log), control=0).fit("aipw", "combined", lift=True)
    np.testing.assert_allclose(sums.estimate, rows.estimate, rtol=1e-8)
    np.testing.assert_allclose(correlation(sums), correlation(rows), rtol=1e-6)


def test_intervals_lie_between_single_ones_and_bonferronis() -> None:
    found = ai.Contrasts(log_of(), control=0).fit(lift=True)
    widths = [
        np.diff(limits.to_numpy(), axis=1)[:, 0]
        for limits in (
            found.conf_int(),
            found.conf_int_simultaneous(),
            found.conf_int_simultaneous(method="bonferroni"),
        )
    ]
    assert (widths[0] < widths[1]).all()
    assert (widths[1] < 0.99 * widths[2]).all()
    assert not any("Bonferroni" in note for note in found.notes)


def test_negative_means_are_by_fieller_and_joint_as_well() -> None:
    """A change of sign of all rewards keeps the covariance, and makes intervals Fieller's."""
    log = ai.designs.EpsilonGreedy(exploration=0.4).run(
        ai.environments.NormalArms([2.0, 2.2, 2.4]), 800, rng=1
    )
    frame = log.frame.assign(reward=-log.frame["reward"])
    turned = ai.AdaptiveLog(
        frame, action="action", reward="reward", propensities="propensity_{arm}", about={"design": log.design}
    )
    one, other = (ai.Contrasts(data, control=0).fit(lift=True) for data in (log, turned))
    assert isinstance(other.reference, JoinedReference)
    assert "Anderson-Rubin" in other.reference.name
    np.testing.assert_allclose(other.covariance, one.covariance, rtol=1e-8)
    fieller, logs = (found.conf_int_simultaneous().to_numpy() for found in (other, one))
    np.testing.assert_allclose(fieller, logs, atol=0.02)
    assert np.isfinite(other.reference.df).all()


def test_a_lift_that_is_refused_leaves_the_others_joint() -> None:
    """The family is then of the lifts that there are: as without the arm that has too few events."""
    rng = np.random.default_rng(3)
    rates = np.array([0.3, 0.4, 0.5, 0.01])
    action = rng.integers(0, 4, 1_200)
    frame = pd.DataFrame({"arm": action, "y": (rng.random(1_200) < rates[action]).astype(float)})
    frame[[f"p{arm}" for arm in range(4)]] = 0.25
    log = ai.AdaptiveLog(frame, action="arm", reward="y", propensities="p{arm}")
    every = ai.Contrasts(log, control=0).fit(lift=True)
    some = ai.Contrasts(log, control=0, treatments=[1, 2]).fit(lift=True)
    assert np.isnan(every.estimate[2])
    np.testing.assert_allclose(
        every.conf_int_simultaneous().to_numpy()[:2], some.conf_int_simultaneous().to_numpy(), rtol=1e-3
    )


def test_a_lift_has_welch_s_degrees_of_freedom_on_the_logarithm() -> None:
    rng = np.random.default_rng(4)
    control, treated = rng.normal(10.0, 1.0, 40), rng.normal(12.0, 4.0, 25)
    frame = pd.DataFrame({"arm": ["a"] * 40 + ["b"] * 25, "y": np.append(control, treated)})
    log = ai.AdaptiveLog(frame, action="arm", reward="y", about={"design": ai.designs.Uniform()})
    found = ai.Contrasts(log, control="a").fit("sample-mean", lift=True)
    parts = np.array([x.var(ddof=1) / len(x) / x.mean() ** 2 for x in (control, treated)])
    df = parts.sum() ** 2 / (parts[0] ** 2 / 39.0 + parts[1] ** 2 / 24.0)
    assert 29.0 < df < 30.0  # more than the 24 of the arm with fewer
    half = stats.t.ppf(0.975, df) * np.sqrt(parts.sum())
    ratio = treated.mean() / control.mean()
    expected = [ratio * np.exp(-half) - 1.0, ratio * np.exp(half) - 1.0]
    np.testing.assert_allclose(found.conf_int().to_numpy()[0], expected, rtol=1e-9)


def test_a_negative_control_reverses_the_sign_of_lifts() -> None:
    rng = np.random.default_rng(8)
    arm = rng.choice(["A", "B"], 2000)
    frame = pd.DataFrame({"arm": arm, "y": rng.normal(-5.0 - 0.5 * (arm == "B")), "p": 0.5})
    for sign in (1.0, -1.0):
        log = ai.AdaptiveLog(frame.assign(y=sign * frame["y"]), action="arm", reward="y", propensity="p")
        found = ai.Contrasts(log, control="A").fit(lift=True)
        assert found.params.iloc[0] == pytest.approx(0.114, abs=1e-3)
        assert says(found.cautions, claims.NEGATIVE_CONTROL, control="A", what="mean") == (sign > 0.0)
        assert not says(ai.Contrasts(log, control="A").fit().cautions, claims.NEGATIVE_CONTROL)
