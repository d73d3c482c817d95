"""SmoothArms: the paper's reward functions, contexts in the cube, regret, and everything that it refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from adaptinf.designs import Uniform
from adaptinf.errors import ParameterError
from adaptinf.simulation.environments.vector_arms import SmoothArms

PLAIN = Uniform()


def reward(x: float, k: int, K: int) -> float:
    """Section 4.1, as printed."""
    bump = math.exp(-2 * K**2 * (x - k / K) ** 2)
    return 2 * bump / (1 + bump)


@pytest.mark.parametrize(("K", "d"), [(2, 1), (3, 2), (5, 4)])
def test_expected_rewards_are_the_papers(K: int, d: int) -> None:
    points = np.random.default_rng(1).random((40, d))
    literal = [[reward(x, k, K) for k in range(1, K + 1)] for x in points[:, 0]]
    np.testing.assert_allclose(SmoothArms(K, d).expected(points), literal, rtol=1e-13)


@pytest.mark.parametrize("K", [2, 3, 12])
def test_averages_over_the_cube_and_over_boxes(K: int) -> None:
    environment = SmoothArms(K, 2)
    whole = [integrate.quad(reward, 0, 1, (k, K), limit=200, epsabs=1e-12)[0] for k in range(1, K + 1)]
    np.testing.assert_allclose(environment.arm_means(), whole, atol=1e-10)
    part = [integrate.quad(reward, 0.25, 0.375, (k, K), epsabs=1e-13)[0] / 0.125 for k in range(1, K + 1)]
    boxes = environment.averages([[0.0, 0.2], [0.25, 0.5]], [[1.0, 0.4], [0.375, 0.75]])
    np.testing.assert_allclose(boxes, [whole, part], atol=1e-10)


def test_the_log_has_the_shared_context() -> None:
    environment = SmoothArms(3, 2)
    log = PLAIN.run(environment, horizon=20_000, rng=2)
    assert log.context == ("x1", "x2")
    assert log.arms == (0, 1, 2)
    assert log.reward_range == (0.0, 1.0)
    points = np.stack([log.arrays.context["x1"], log.arrays.context["x2"]], axis=1)
    for k in range(2):
        assert stats.kstest(points[:, k], stats.uniform.cdf).pvalue > 1e-5
    assert abs(stats.spearmanr(points[:, 0], points[:, 1]).statistic) < 4.5 / math.sqrt(20_000)
    assert abs(stats.spearmanr(points[1:, 0], points[:-1, 0]).statistic) < 4.5 / math.sqrt(20_000)
    assert set(log.arrays.reward) == {0.0, 1.0}
    mean = environment.expected(points)[np.arange(20_000), log.arrays.action]
    deviation = (log.arrays.reward - mean) / np.sqrt(np.maximum(mean * (1.0 - mean), 1e-9))
    keep = mean * (1.0 - mean) > 1e-3
    assert abs(deviation[keep].mean()) < 4.5 / math.sqrt(keep.sum())
    assert abs((deviation[keep] ** 2).mean() - 1.0) < 0.15


def test_regret_is_that_of_the_contexts_that_came() -> None:
    given = np.random.default_rng(3).random((500, 2))
    environment = SmoothArms(3, 2, contexts=given)
    log = PLAIN.run(environment, horizon=500, rng=4)
    assert np.array_equal(log.arrays.context["x1"], given[:, 0])
    expected = environment.expected(given)
    regret = (expected.max(axis=1) - expected[np.arange(500), log.arrays.action]).sum()
    sims = PLAIN.replicate(environment, horizon=500, replications=1, rng=4)
    assert sims.regret[0] == pytest.approx(regret, rel=1e-12)
    np.testing.assert_allclose(environment.means[0], expected.mean(axis=0))


def test_uniform_choice_loses_what_it_must() -> None:
    """35.0 thousand at n = 80,000, K = 3: the integral of the best minus the average reward function."""
    grid = (np.arange(100_000) + 0.5) / 100_000
    f = SmoothArms(3, 1).expected(grid[:, None])
    each = float((f.max(axis=1) - f.mean(axis=1)).mean())
    assert 80_000 * each == pytest.approx(34_978, abs=1.0)
    regret = PLAIN.replicate(SmoothArms(3, 1), 10_000, 64, rng=5).regret
    assert abs(regret.mean() - 10_000 * each) < 4.5 * regret.std(ddof=1) / 8.0


def test_given_contexts_run_out_or_are_resampled() -> None:
    given = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    with pytest.raises(ParameterError, match="at most 3, the number of rows of contexts, got 4"):
        PLAIN.run(SmoothArms(2, 2, contexts=given), horizon=4, rng=0)
    log = PLAIN.run(SmoothArms(2, 2, contexts=given, order="resampled"), horizon=400, rng=0)
    seen, times = np.unique(log.arrays.context["x1"], return_counts=True)
    assert seen.tolist() == [0.0, 0.5, 1.0]
    assert times.min() > 90


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_arms": 0}, "n_arms must be a whole number of at least 1, got 0"),
        ({"dimension": 1.5}, "dimension must be a whole number"),
        ({"contexts": "sphere"}, "contexts must be uniform, or an array of vectors"),
        ({"order": "random"}, "order must be one of 'given', 'resampled'"),
        (
            {"contexts": [[0.5, 0.5], [0.2, 1.01]]},
            r"lie in \[0, 1\]\^2.*1 rows do not, the first being row 1",
        ),
        ({"contexts": [[0.5, math.nan]]}, "1 rows do not"),
        ({"contexts": [[0.5]]}, r"here \(rows, 2\), got \(1, 1\)"),
        ({"contexts": [["a", "b"]]}, "contexts must be numbers"),
    ],
)
def test_what_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        SmoothArms(**arguments)  # type: ignore[arg-type]


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(ParameterError) as error:
        SmoothArms(n_arms=0, dimension=-1, order="x")
    assert all(name in str(error.value) for name in ("n_arms", "dimension", "order"))
