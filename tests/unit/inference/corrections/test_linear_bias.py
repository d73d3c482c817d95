"""Bias of least-squares predictions after private collection: the bound, who attains it, and measurements."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptinf.errors import ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.inference.corrections.prediction_bias import linear_bias, linear_bias_bound, reward_shift


def hat(X: np.ndarray) -> np.ndarray:
    return X @ np.linalg.pinv(X)


# --- one reward ---


@settings(max_examples=200, deadline=None)
@given(
    epsilon=st.floats(0.0, 3.0),
    support=st.lists(st.floats(0.0, 1.0), min_size=2, max_size=5),
    seed=st.integers(0, 2**31),
)
def test_no_history_moves_a_reward_further(epsilon: float, support: list[float], seed: int) -> None:
    rng = np.random.default_rng(seed)
    values, weights = np.array(support), rng.dirichlet(np.ones(len(support)))
    likelihood = np.exp(epsilon * rng.choice([0.0, rng.random(), 1.0], size=len(support)))
    mean = float(np.clip(weights @ values, 0.0, 1.0))
    given_history = weights * likelihood @ values / (weights @ likelihood)
    down, up = reward_shift(epsilon, mean)
    assert mean - down - 1e-12 <= given_history <= mean + up + 1e-12


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 5.0, 700.0])
def test_randomised_response_attains_both_ends(epsilon: float) -> None:
    means = np.array([0.01, 0.3, 0.5, 0.8, 1.0])
    true = 1.0 / (1.0 + math.exp(-epsilon))
    lie = math.exp(-epsilon) / (1.0 + math.exp(-epsilon))
    high = means * true / (means * true + (1.0 - means) * lie)
    low = means * lie / (means * lie + (1.0 - means) * true)
    down, up = reward_shift(epsilon, means)
    assert up == pytest.approx(high - means, abs=1e-14)
    assert down == pytest.approx(means - low, abs=1e-14)


def test_shift_without_privacy_is_everything() -> None:
    down, up = reward_shift(math.inf, [0.0, 0.2, 1.0])
    assert up == pytest.approx([0.0, 0.8, 0.0])
    assert down == pytest.approx([0.0, 0.2, 0.0])
    assert reward_shift(0.1, 0.5)[0] == pytest.approx(0.5 * math.tanh(0.05))
    with pytest.raises(ParameterError, match="epsilon must be at least 0"):
        reward_shift(math.nan, 0.5)
    with pytest.raises(ParameterError, match="means must lie in"):
        reward_shift(0.1, [0.5, 1.5])


# --- the bound ---


def responses_bias(X: np.ndarray, theta: np.ndarray, epsilon: float) -> np.ndarray:
    """Exact bias of every prediction, given every answer: each reward is told by randomised response."""
    means, true = X @ theta, 1.0 / (1.0 + math.exp(-epsilon))
    answers = np.array(list(itertools.product([0, 1], repeat=len(means))))
    like_one, like_zero = np.where(answers, true, 1 - true), np.where(answers, 1 - true, true)
    given_answers = means * like_one / (means * like_one + (1 - means) * like_zero)
    return (given_answers - means) @ hat(X).T


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_the_bound_is_attained(seed: int, epsilon: float) -> None:
    rng = np.random.default_rng(seed)
    X, theta = rng.normal(size=(7, 3)) * 0.3, rng.random(3) * 0.3
    X[:, 0], theta[0] = 0.9, 0.55
    bound = linear_bias_bound(epsilon, X, theta)
    exact = np.abs(responses_bias(X, theta, epsilon))
    assert bound.by_context == pytest.approx(exact.max(axis=0), rel=1e-10)
    assert bound.bound == pytest.approx(exact.max(), rel=1e-10)
    assert bound.bound <= bound.absolute_weights
    weights = np.abs(hat(X)) @ (X @ theta)
    assert bound.absolute_weights == pytest.approx(math.expm1(epsilon) * weights.max(), rel=1e-10)
    assert bound.published == pytest.approx(math.expm1(epsilon))
    assert not bound.published_holds


@pytest.mark.slow
def test_the_published_bound_is_violated() -> None:
    """200 contexts in 100 dimensions at epsilon = .1: the history whose signs are those of a row of H."""
    n, d, epsilon = 200, 100, 0.1
    rng = np.random.default_rng(4)
    rest = rng.normal(size=(n, d - 1))
    X = np.column_stack([np.full(n, 0.5), math.sqrt(0.75) * rest / np.linalg.norm(rest, axis=1)[:, None]])
    theta = np.zeros(d)
    theta[0] = 1.0
    bound = linear_bias_bound(PrivacyGuarantee(epsilon=epsilon), X, theta)
    row = hat(X)[int(np.argmax(bound.by_context))]
    # given that history rewards are independent, 1 with probability e^eps / (1 + e^eps) where H is positive
    true = 1.0 / (1.0 + math.exp(-epsilon))
    draws = rng.random((20_000, n)) < np.where(row > 0, true, 1.0 - true)
    predicted = draws @ row
    bias, error = predicted.mean() - 0.5, predicted.std() / math.sqrt(20_000)
    assert bias == pytest.approx(0.5 * math.tanh(epsilon / 2) * np.abs(row).sum(), abs=4.5 * error)
    assert bias > math.expm1(epsilon) + 10 * error
    assert bias > 0.15
    assert bound.bound == pytest.approx(0.5 * math.tanh(epsilon / 2) * np.abs(row).sum())
    assert bias < bound.bound + 4.5 * error < bound.absolute_weights
    assert not bound.published_holds


def test_nonnegative_weights_keep_the_published_bound() -> None:
    one_arm = linear_bias_bound(0.5, np.ones((10, 1)), [0.3])
    assert one_arm.published_holds
    down, up = reward_shift(0.5, 0.3)
    assert one_arm.bound == pytest.approx(max(down, up))
    assert one_arm.absolute_weights == pytest.approx(math.expm1(0.5) * 0.3)
    orthogonal = linear_bias_bound(0.5, np.repeat(np.eye(3), 4, axis=0), [0.2, 0.5, 0.9])
    assert orthogonal.published_holds
    assert orthogonal.bound <= orthogonal.absolute_weights <= orthogonal.published
    collinear = linear_bias_bound(0.5, np.outer([1.0, 0.5, 0.2], [0.6, 0.8]), [0.5, 0.5])
    assert collinear.published_holds


def test_contexts_that_do_not_span() -> None:
    X = np.outer([1.0, 0.5, 0.2, 0.9], [0.6, 0.8])
    bound = linear_bias_bound(1.0, X, [0.5, 0.5])
    assert bound.by_context == pytest.approx(np.abs(responses_bias(X, np.array([0.5, 0.5]), 1.0)).max(axis=0))
    many = np.random.default_rng(1).random((1500, 2)) / 2.0
    weights = np.abs(hat(many)) @ (many @ [0.9, 0.4])
    assert linear_bias_bound(0.3, many, [0.9, 0.4]).absolute_weights == pytest.approx(
        math.expm1(0.3) * weights.max()
    )


@pytest.mark.parametrize(
    ("guarantee", "contexts", "theta", "reason"),
    [
        (PrivacyGuarantee(epsilon=0.1, delta=1e-6), [[1.0]], [0.5], "delta must be 0, got 1e-06"),
        (
            PrivacyGuarantee(epsilon=0.1, unit="record", notion="anticipating"),
            [[1.0]],
            [0.5],
            "anticipating; the bound requires a standard one",
        ),
        (-0.1, [[1.0]], [0.5], "epsilon must be at least 0"),
        (0.1, [1.0], [0.5], r"contexts must have shape \(n, d\)"),
        (0.1, [[1.0]], [0.5, 0.5], "one entry per coordinate"),
        (0.1, [[math.nan]], [0.5], "finite"),
        (0.1, [[1.0], [2.0]], [0.6], r"x'theta must lie in \[0, 1\], got 1.2 for context 1"),
    ],
)
def test_refusals_of_the_bound(guarantee: object, contexts: object, theta: object, reason: str) -> None:
    with pytest.raises(ParameterError, match=reason):
        linear_bias_bound(guarantee, contexts, theta)  # type: ignore[arg-type]


# --- measured ---


def test_measured_bias_is_the_exact_one() -> None:
    """Two rounds; the arm is pulled again where the first reward was answered to be 1."""
    rng = np.random.default_rng(2)
    runs, epsilon = 40_000, 1.0
    X, theta = np.array([[0.8, 0.1], [0.3, 0.7]]), np.array([0.6, 0.4])
    rewards = (rng.random((runs, 2)) < X @ theta).astype(float)
    true = 1.0 / (1.0 + math.exp(-epsilon))
    answer = np.where(rng.random(runs) < true, rewards[:, 0], 1 - rewards[:, 0]) == 1
    selected = np.stack([np.ones(runs, bool), answer], axis=1)
    rewards[~selected] = np.nan
    measured = linear_bias(selected, rewards, X, theta)
    mean = (X @ theta)[0]
    said_one = mean * true / (mean * true + (1 - mean) * (1 - true)) - mean
    said_zero = mean * (1 - true) / (mean * (1 - true) + (1 - mean) * true) - mean
    expected = np.array([[said_one, 0.0], [said_zero, np.nan]])
    order = [measured.selected.tolist().index(pattern) for pattern in ([True, True], [True, False])]
    off = np.abs(measured.bias[order] - expected) / measured.std_error[order]
    assert np.nanmax(off) < 4.5
    assert np.isnan(measured.bias[order][1, 1])
    assert measured.runs.sum() == runs
    assert measured.left_out == 0.0
    assert measured.largest == np.nanmax(np.abs(measured.bias))
    spread = rewards[answer, 0].std(ddof=1) / math.sqrt(answer.sum())
    assert measured.std_error[order[0], 0] == pytest.approx(spread)


def test_rare_sets_are_left_out() -> None:
    selected = np.array([[True, False]] * 6 + [[True, True]] * 3 + [[False, False]] * 2)
    measured = linear_bias(selected, np.ones((11, 2)), [[1.0], [1.0]], [0.5], min_runs=4)
    assert measured.selected.tolist() == [[True, False]]
    assert measured.runs.tolist() == [6]
    assert measured.left_out == pytest.approx(3 / 9)
    assert measured.bias[0, 0] == pytest.approx(0.5)
    nothing = linear_bias(selected, np.ones((11, 2)), [[1.0], [1.0]], [0.5])
    assert math.isnan(nothing.largest)
    assert nothing.left_out == 1.0


def test_refusals_of_the_measurement() -> None:
    with pytest.raises(ParameterError, match="selected must be True or False"):
        linear_bias([[1, 0]], [[1.0, 0.0]], [[1.0], [1.0]], [0.5])
    with pytest.raises(ParameterError, match="must have the same rounds"):
        linear_bias([[True, False]], [[1.0, 0.0]], [[1.0]], [0.5])
    with pytest.raises(ParameterError, match="finite in rounds in which the arm was pulled"):
        linear_bias([[True, False]], [[np.nan, 0.0]], [[1.0], [1.0]], [0.5])
    with pytest.raises(ParameterError, match="min_runs"):
        linear_bias([[True]], [[1.0]], [[1.0]], [0.5], min_runs=1)
