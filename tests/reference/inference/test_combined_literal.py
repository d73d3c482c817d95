"""Combined weights, the t law and the origin of rewards, against formulas written out round by round.

The literal versions and the simulators share no code with the package.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from claims_said import says
from scipy import stats

from adaptinf.claims.propensities import BATCH_BEFORE, ROUND_BEFORE
from adaptinf.claims.stationarity import OWN_WEIGHTS
from adaptinf.errors import ParameterError
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.inference.scores.inverse import arm_scores, combined_weights, lagged_combined_weights
from adaptinf.log import AdaptiveLog, LogArrays

T = 150


def rows(seed: int, *, batches: int = 0, contexts: bool = False) -> LogArrays:
    """Three arms, a propensity of each that moves by rounds, or by batches (and a context within them)."""
    rng = np.random.default_rng(seed)
    batch = np.arange(T) * batches // T if batches else None
    p = rng.dirichlet([1.0, 1.0, 1.0], size=T) * 0.85 + 0.05
    if batches and not contexts:
        p = p[batch]
    action = np.array([rng.choice(3, p=row) for row in p])
    return LogArrays(
        action=action,
        reward=rng.normal(action + 3.0, 1.0 + action),
        propensity=p[np.arange(T), action],
        propensities=p,
        batch=batch,
        context={"x": rng.normal(size=T)} if contexts else {},
    )


def literal(arrays: LogArrays, first: int, second: int, h: list[float]) -> tuple[float, float, float]:
    """Estimate, standard error and degrees of freedom of a contrast with one weight per round."""
    p = arrays.propensities
    assert p is not None
    sums, counts, every = [0.0] * 3, [0] * 3, 0.0
    gamma = []
    for t in range(T):
        arm, y = int(arrays.action[t]), float(arrays.reward[t])
        scores = []
        for k in (first, second):
            m = sums[k] / counts[k] if counts[k] else every / max(t, 1)
            scores.append(m + (y - m) / p[t, k] if k == arm else m)
        gamma.append(scores[0] - scores[1])
        sums[arm], counts[arm], every = sums[arm] + y, counts[arm] + 1, every + y
    total = math.fsum(h)
    estimate = math.fsum(w * g for w, g in zip(h, gamma, strict=True)) / total
    squares = math.fsum((w * (g - estimate)) ** 2 for w, g in zip(h, gamma, strict=True))
    freedom = []
    for k in (first, second):
        w = [(h[t] / p[t, k]) ** 2 for t in range(T) if arrays.action[t] == k]
        freedom.append(math.fsum(w) ** 2 / math.fsum(x * x for x in w) - 1.0)
    return estimate, math.sqrt(squares) / total, min(freedom)


def check(log: AdaptiveLog, h: list[float], **asked: str) -> None:
    result = Contrast(log, treatment="c", control="a").fit(test="t", **asked)
    estimate, error, freedom = literal(log.arrays, 2, 0, h)
    assert result.weights == "combined"
    assert result.estimate[0] == pytest.approx(estimate, rel=1e-10)
    assert result.std_error[0] == pytest.approx(error, rel=1e-10)
    assert result.pvalues.iloc[0] == pytest.approx(2 * stats.t.sf(abs(estimate / error), freedom), rel=1e-8)
    half = stats.t.ppf(0.95, freedom) * error
    np.testing.assert_allclose(result.conf_int(0.1).to_numpy()[0], [estimate - half, estimate + half])


@pytest.mark.parametrize("batches", [0, 5])
def test_a_contrast_by_its_rounds_propensities(batches: int) -> None:
    """The default; batches in which propensities stay the same change nothing."""
    arrays = rows(1, batches=batches)
    assert arrays.propensities is not None
    h = [0.0] + [(1 / p[2] + 1 / p[0]) ** -0.5 for p in arrays.propensities[1:].tolist()]
    log = AdaptiveLog.from_arrays(arrays, arms=("a", "b", "c"), context_free=None if batches else True)
    check(log, h)
    check(log, h, weights="combined")


@pytest.mark.parametrize("batches", [0, T])
def test_a_contrast_by_the_propensities_of_the_round_before(batches: int) -> None:
    """Where nobody says that contexts which the log lacks had no part; single rounds are batches too."""
    arrays = rows(4, batches=batches)
    assert arrays.propensities is not None
    h = [0.0] + [(1 / p[2] + 1 / p[0]) ** -0.5 for p in arrays.propensities[:-1].tolist()]
    log = AdaptiveLog.from_arrays(arrays, arms=("a", "b", "c"))
    check(log, h)
    told = " ".join(Contrast(log, treatment="c", control="a").fit().notes)
    assert (BATCH_BEFORE() if batches else ROUND_BEFORE()) in told


@pytest.mark.parametrize("batches", [6, T])
def test_a_contrast_by_the_batch_before(batches: int) -> None:
    """Where contexts move propensities within a batch, or may move them and batches are single rounds."""
    arrays = rows(2, batches=batches, contexts=True)
    assert arrays.propensities is not None
    assert arrays.batch is not None
    sums = [1 / p[2] + 1 / p[0] for p in arrays.propensities.tolist()]
    h = []
    for t in range(T):
        b = int(arrays.batch[t])
        last = [s for s, other in zip(sums, arrays.batch.tolist(), strict=True) if other == b - 1]
        h.append((sum(last) / len(last)) ** -0.5 if b else 1.0)
    h[0] = 0.0
    log = AdaptiveLog.from_arrays(arrays, arms=("a", "b", "c"))
    check(log, h)
    told = AdaptiveLog.from_arrays(arrays, arms=("a", "b", "c"), context_free=True)
    check(told, [0.0] + [s**-0.5 for s in sums[1:]])  # the log says that contexts had no part


def test_without_batches_contexts_leave_uniform_weights() -> None:
    log = AdaptiveLog.from_arrays(rows(3, contexts=True), arms=("a", "b", "c"))
    assert Contrast(log, treatment="c", control="a").fit().weights == "uniform"


def test_batches_in_which_a_pair_was_not_possible() -> None:
    p = np.array([[0.5, 0.0], [0.5, 0.5], [0.25, 0.25], [0.5, 0.0], [0.1, 0.4]])
    h = lagged_combined_weights(p, np.arange(5))
    np.testing.assert_allclose(h, [0.0, 1.0, 4.0**-0.5, 0.0, 8.0**-0.5])
    np.testing.assert_allclose(combined_weights(p), [0.0, 0.5, 8.0**-0.5, 0.0, 12.5**-0.5])
    assert lagged_combined_weights(p[:0], np.arange(0)).shape == (0,)


def test_means_of_a_table_may_have_one_weight_a_round() -> None:
    arrays = rows(3)
    log = AdaptiveLog.from_arrays(arrays, arms=("a", "b", "c"), context_free=True)
    result = ArmMeans(log).fit(weights="combined", test="t")
    assert arrays.propensities is not None
    h = 1.0 / np.sqrt((1.0 / arrays.propensities).sum(axis=1))
    h[0] = 0.0  # nothing is known before the first round
    scored = arm_scores(
        arrays.action, arrays.reward, arrays.propensity, arrays.propensities, np.arange(3), weights="uniform"
    )
    means = (h @ scored.scores) / h.sum() + scored.origin
    np.testing.assert_allclose(result.estimate, means, rtol=1e-12)
    errors = np.sqrt(((h[:, None] * (scored.scores + scored.origin - means)) ** 2).sum(axis=0)) / h.sum()
    np.testing.assert_allclose(result.std_error, errors, rtol=1e-12)
    joint = ArmMeans(log).fit(weights="joint", test="t")
    with pytest.raises(ParameterError, match="joint weights apply to the means of several arms"):
        Contrast(log, treatment="b", control="a").fit(weights="joint")
    assert joint.weights == "joint"


def test_own_weights_are_for_what_does_not_drift() -> None:
    log = AdaptiveLog.from_arrays(rows(4), arms=("a", "b", "c"))
    contrast = Contrast(log, treatment="c", control="a")
    own = contrast.fit(weights="sqrt")
    assert says(own.cautions[0], OWN_WEIGHTS, weights="sqrt")
    stated = contrast.fit(stationary=True)
    assert stated.weights == "sqrt"
    assert not any("drift" in caution for caution in (*stated.cautions, *contrast.fit().cautions))
    np.testing.assert_array_equal(own.estimate, stated.estimate)


@pytest.mark.parametrize("weights", ["uniform", "sqrt", "two-point", "combined"])
@pytest.mark.parametrize(("shift", "scale"), [(1e6, 1.0), (0.0, 1e9), (0.0, 1e-9), (-12.0, 3.0)])
def test_the_origin_and_the_scale_of_rewards_change_nothing(weights: str, shift: float, scale: float) -> None:
    base = rows(5)
    moved = LogArrays(
        action=base.action,
        reward=base.reward * scale + shift,
        propensity=base.propensity,
        propensities=base.propensities,
    )
    decay = 0.6 if weights == "two-point" else None
    found = []
    for arrays in (base, moved):
        log = AdaptiveLog.from_arrays(arrays, arms=("a", "b", "c"))
        pair = Contrast(log, treatment="c", control="a").fit("aipw", weights, decay)
        means = pair if weights == "combined" else ArmMeans(log).fit("aipw", weights, decay)
        found.append((pair, means))
    (plain_pair, plain), (pair, means) = found
    error = plain_pair.std_error[0]
    assert abs(pair.estimate[0] / scale - plain_pair.estimate[0]) < 1e-9 * error
    assert abs(pair.std_error[0] / scale - error) < 1e-9 * error
    assert pair.pvalues.iloc[0] == pytest.approx(plain_pair.pvalues.iloc[0], rel=1e-8)
    if weights != "combined":
        np.testing.assert_allclose(
            (means.estimate - shift) / scale, plain.estimate, atol=2e-9 * plain.std_error.min(), rtol=0
        )
        np.testing.assert_allclose(means.std_error / scale, plain.std_error, rtol=1e-9)
