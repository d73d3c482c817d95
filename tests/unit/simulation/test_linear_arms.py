"""LinearArms: contexts, rewards, the log's columns, regret, and everything that it refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from adaptinf.designs import Uniform
from adaptinf.errors import ParameterError
from adaptinf.simulation.environments.vector_arms import LinearArms

THETA = np.array([[0.6, 0.2, 0.1], [0.1, 0.7, 0.3]])
PLAIN = Uniform()


def contexts_of(log: object, n_arms: int, dimension: int) -> np.ndarray:
    """Context vectors of a log, by the names of its columns."""
    arrays = log.arrays  # type: ignore[attr-defined]
    return np.stack(
        [
            np.stack([arrays.context[f"x{k}_{arm}"] for k in range(1, dimension + 1)], axis=1)
            for arm in range(n_arms)
        ],
        axis=1,
    )


def test_attributes() -> None:
    environment = LinearArms(THETA, 0.3)
    assert environment.n_arms == 2
    assert environment.dimension == 3
    assert environment.n_features == 1
    assert environment.vector_names == ("x1_0", "x2_0", "x3_0", "x1_1", "x2_1", "x3_1")
    assert environment.means.tolist() == [[0.0, 0.0]]
    assert environment.reward_range == (-math.inf, math.inf)
    assert environment.context_norm == 1.0
    assert environment.mean_range == pytest.approx((-math.sqrt(0.59), math.sqrt(0.59)))
    assert LinearArms(THETA, shared=True).vector_names == ("x1", "x2", "x3")


@pytest.mark.parametrize("contexts", ["sphere", "orthant"])
def test_drawn_contexts_are_uniform_and_independent_between_arms(contexts: str) -> None:
    log = PLAIN.run(LinearArms(THETA, contexts=contexts), horizon=20_000, rng=1)
    vectors = contexts_of(log, 2, 3)
    assert np.abs(np.linalg.norm(vectors, axis=2) - 1.0).max() < 1e-12
    # in three dimensions a coordinate of a uniform point on the sphere is itself uniform
    law = stats.uniform(-1, 2) if contexts == "sphere" else stats.uniform(0, 1)
    for arm in range(2):
        for k in range(3):
            assert stats.kstest(vectors[:, arm, k], law.cdf).pvalue > 1e-5
    assert abs(stats.spearmanr(vectors[:, 0, 0], vectors[:, 1, 0]).statistic) < 4.5 / math.sqrt(20_000)
    assert abs(stats.spearmanr(vectors[1:, 0, 0], vectors[:-1, 0, 0]).statistic) < 4.5 / math.sqrt(20_000)


def test_means_of_drawn_contexts() -> None:
    """E|x_k| over the sphere is 1/2 in three dimensions, 2/pi in two."""
    assert LinearArms(THETA, contexts="orthant").arm_means() == pytest.approx([0.45, 0.55])
    assert LinearArms([[1.0, 0.5]], contexts="orthant").arm_means() == pytest.approx([3.0 / math.pi])
    sims = PLAIN.replicate(LinearArms(THETA, 0.1, contexts="orthant"), 1000, 128, rng=2)
    pooled = sims.sums.sum(axis=0) / sims.pulls.sum(axis=0)
    assert np.abs(pooled - sims.truth[0]).max() < 5 * 0.2 / math.sqrt(64_000)


@pytest.mark.parametrize(("theta", "low", "high"), [([[0.3, 0.4]], 0.3, 0.5), ([[-0.3, 0.4]], -0.3, 0.4)])
def test_range_of_means_on_the_orthant(theta: list[list[float]], low: float, high: float) -> None:
    assert LinearArms(theta, contexts="orthant").mean_range == pytest.approx((low, high))
    angle = np.linspace(0.0, np.pi / 2, 100_001)
    values = np.stack([np.cos(angle), np.sin(angle)], axis=1) @ np.array(theta[0])
    assert (values.min(), values.max()) == pytest.approx((low, high), abs=1e-9)
    mirrored = LinearArms(-np.array(theta), contexts="orthant").mean_range
    assert mirrored == pytest.approx((-high, -low))


def test_rewards_follow_their_means() -> None:
    rng = np.random.default_rng(3)
    given = rng.random((4, 2, 3)) / 2.0
    for rewards, spread in (("bernoulli", None), ("normal", 0.3), ("uniform", 0.3 / math.sqrt(3.0))):
        environment = LinearArms(THETA, 0.3, contexts=given, rewards=rewards, order="resampled")
        log = PLAIN.run(environment, horizon=40_000, rng=4)
        vectors, action = contexts_of(log, 2, 3), log.arrays.action
        mean = np.einsum("tak,ak->ta", vectors, THETA)[np.arange(40_000), action]
        deviation = log.arrays.reward - mean
        sd = np.sqrt(mean * (1.0 - mean)) if spread is None else np.full(40_000, spread)
        assert abs(np.mean(deviation / sd)) < 4.5 / math.sqrt(40_000)
        assert abs(np.mean((deviation / sd) ** 2) - 1.0) < 0.06
        if rewards == "uniform":
            assert 0.299 < np.abs(deviation).max() <= 0.3
            assert environment.reward_range == pytest.approx(
                (environment.mean_range[0] - 0.3, environment.mean_range[1] + 0.3)
            )
        if rewards == "bernoulli":
            assert set(log.arrays.reward) == {0.0, 1.0}
            assert environment.reward_range == (0.0, 1.0)
        rows = {tuple(row) for row in vectors.reshape(40_000, -1)}
        assert rows == {tuple(row) for row in given.reshape(4, -1)}


def test_given_contexts_in_order() -> None:
    given = np.random.default_rng(5).normal(size=(50, 2, 3))
    environment = LinearArms(THETA, contexts=given)
    log = PLAIN.run(environment, horizon=50, rng=0)
    assert np.array_equal(contexts_of(log, 2, 3), given)
    assert environment.rows == 50
    assert environment.context_norm == pytest.approx(np.linalg.norm(given, axis=2).max())
    expected = np.einsum("nak,ak->na", given, THETA)
    assert environment.arm_means() == pytest.approx(expected.mean(axis=0))
    assert environment.mean_range == pytest.approx((expected.min(), expected.max()))
    with pytest.raises(ParameterError, match="at most 50, the number of rows of contexts, got 51"):
        PLAIN.run(environment, horizon=51)
    resampled = LinearArms(THETA, contexts=given, order="resampled")
    assert PLAIN.run(resampled, horizon=51, rng=0).n_rounds == 51


def test_shared_contexts_are_one_vector_for_all_arms() -> None:
    given = np.random.default_rng(6).normal(size=(30, 3))
    log = PLAIN.run(LinearArms(THETA, 0.0, contexts=given, shared=True), horizon=30, rng=0)
    assert log.context == ("x1", "x2", "x3")
    table = np.stack([log.arrays.context[name] for name in log.context], axis=1)
    assert np.array_equal(table, given)
    assert log.arrays.reward == pytest.approx((given @ THETA.T)[np.arange(30), log.arrays.action])
    drawn = PLAIN.run(LinearArms(THETA, 0.0, shared=True), horizon=30, rng=0)
    table = np.stack([drawn.arrays.context[name] for name in drawn.context], axis=1)
    assert drawn.arrays.reward == pytest.approx((table @ THETA.T)[np.arange(30), drawn.arrays.action])


def test_regret_is_that_of_the_rounds_own_contexts() -> None:
    given = np.random.default_rng(7).random((200, 2, 3))
    environment = LinearArms(THETA, contexts=given)
    sims = PLAIN.replicate(environment, horizon=200, replications=3, rng=8)
    for run, log in enumerate(PLAIN.logs(environment, 200, 3, rng=8)):
        expected = np.einsum("nak,ak->na", given, THETA)
        lost = expected.max(axis=1) - expected[np.arange(200), log.arrays.action]
        assert sims.regret[run] == pytest.approx(lost.sum(), rel=1e-12)


def test_everything_wrong_is_listed() -> None:
    with pytest.raises(ParameterError) as caught:
        LinearArms([[1.0, math.nan]], -1.0, contexts="ball", rewards="poisson", order="last", shared=1)  # type: ignore[arg-type]
    message = str(caught.value)
    for part in ("theta must be finite", "noise", "contexts must be one of", "rewards", "order", "shared"):
        assert part in message


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"theta": [1.0, 2.0]}, r"shape \(arms, dimension\), got \(2,\)"),
        ({"theta": [[1.0], [2.0, 3.0]]}, "theta must be numbers in rows of equal length"),
        ({"theta": THETA, "contexts": np.zeros((5, 2, 2))}, r"here \(rows, 2, 3\), got \(5, 2, 2\)"),
        ({"theta": THETA, "contexts": np.zeros((5, 2, 3)), "shared": True}, r"here \(rows, 3\)"),
        ({"theta": THETA, "contexts": np.zeros((0, 2, 3))}, "contexts must have shape"),
        ({"theta": THETA, "contexts": np.full((5, 2, 3), np.inf)}, "contexts must be finite"),
        ({"theta": THETA, "rewards": "bernoulli"}, r"x'theta must lie in \[0, 1\].*\[-0.768115, 0.768115\]"),
        ({"theta": 2 * THETA, "contexts": "orthant", "rewards": "bernoulli"}, r"\[0.2, 1.53623\]"),
        ({"theta": -THETA, "contexts": "orthant", "rewards": "bernoulli"}, r"\[0, 1\]"),
        ({"theta": THETA, "contexts": np.full((1, 2, 3), 2.0), "rewards": "bernoulli"}, r"\[1.8, 2.2\]"),
    ],
)
def test_refusals(arguments: dict[str, object], reason: str) -> None:
    with pytest.raises(ParameterError, match=reason):
        LinearArms(**arguments)  # type: ignore[arg-type]
