"""Bias of least-squares predictions from data collected by a private linear bandit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.errors import ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.parameters import NON_NEGATIVE, Count, number_array, refuse
from adaptinf.typing import BoolArray, FloatArray, IntArray

# Singular values below this share of the largest one are rounding error.
_RANK = 1e-10
# The hat matrix has as many entries as rounds squared, so it is computed in blocks of rows to limit memory.
_ROWS_AT_ONCE = 512
# Rounding error alone may move a model's means out of [0, 1] by this much.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class LinearBiasBound:
    """Bounds on the average bias of least-squares predictions, given the contexts at which an arm was pulled.

    Attributes
    ----------
    bound : float
        Largest bias of a prediction at any of the contexts. The bound is the smallest valid bound, because
        some design with Bernoulli rewards attains it.
    by_context : ndarray of shape (n,)
        The same bound for each context.
    absolute_weights : float
        The bound (e^epsilon - 1) max_t sum_s abs(H_ts) x_s'theta, which is looser.
    published : float
        The published bound e^epsilon - 1.
    published_holds : bool
        Whether the hat matrix H has no negative entry, in which case the published bound is valid.
    """

    bound: float
    by_context: FloatArray
    absolute_weights: float
    published: float
    published_holds: bool


def reward_shift(epsilon: float, means: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Largest shift in a reward's conditional mean, given the actions of an epsilon-private design.

    Parameters
    ----------
    epsilon : float
        Privacy parameter for the rewards; may be infinite.
    means : array_like
        Means of rewards in [0, 1].

    Returns
    -------
    down, up : ndarray of the shape of `means`
        Shifts such that the conditional mean lies in [mean - down, mean + up]; both ends can be attained.

    Raises
    ------
    ParameterError
        If epsilon is negative or NaN, or a mean is outside [0, 1].

    Notes
    -----
    Given the reward y, let B be 1 with probability y and 0 otherwise. Knowing the history changes the odds of
    B by a factor of at most e^epsilon, and P(B = 1) given the history is the mean of y given the history.

    Examples
    --------
    >>> from adaptinf.inference.corrections.prediction_bias import reward_shift
    >>> down, up = reward_shift(0.1, [0.5, 0.9])
    >>> up.round(4)
    array([0.025 , 0.0086])
    """
    array = number_array(means)
    values = np.full(1, math.nan) if array is None else array
    problems = [] if epsilon >= 0.0 else [f"epsilon must be at least 0, got {epsilon!r}"]
    if not ((values >= 0.0) & (values <= 1.0)).all():
        problems.append("means must lie in [0, 1]")
    refuse("reward_shift", problems)
    # This is (e^eps - 1) m (1 - m) / (1 - m + e^eps m) with both parts divided by e^eps, which could
    # overflow.
    shrunk, lost = math.exp(-epsilon), -math.expm1(-epsilon)
    product = lost * values * (1.0 - values)
    ends = (values == 0.0) | (values == 1.0)
    up = product / np.where(ends, 1.0, shrunk * (1.0 - values) + values)
    down = product / np.where(ends, 1.0, shrunk * values + (1.0 - values))
    return down, up


def linear_bias_bound(
    guarantee: PrivacyGuarantee | float, contexts: ArrayLike, theta: ArrayLike
) -> LinearBiasBound:
    """Largest bias of an arm's least-squares predictions at the contexts used in the fit.

    Parameters
    ----------
    guarantee : PrivacyGuarantee or float
        Pure and standard guarantee for the rewards, or its epsilon.
    contexts : array_like of shape (n, d)
        Contexts of the rounds in which the arm was pulled.
    theta : array_like of shape (d,)
        True or assumed coefficients; x'theta must lie in [0, 1] for every context.

    Returns
    -------
    LinearBiasBound
        The bounds, and whether the published bound is valid.

    Raises
    ------
    ParameterError
        If arguments are inconsistent (the message lists every problem), including a guarantee with positive
        delta or an anticipating one.

    Notes
    -----
    The bias is the expectation of x_t'theta_hat - x_t'theta given the actions, for the worst sequence of
    actions with these contexts. Rewards lie in [0, 1] and are independent across rounds, and contexts are
    fixed. Let H be the hat matrix, and let [m_s - down_s, m_s + up_s] be the interval from `reward_shift`,
    where m_s = x_s'theta. The bias at t is at most the larger of sum_s (H_ts^+ up_s + H_ts^- down_s) and the
    same expression with up and down exchanged. The bound also holds for minimum-norm least squares if the
    contexts do not span R^d. The published e^epsilon - 1 assumes that H is nonnegative.

    If delta is positive, no bound holds given the actions, because an event of probability delta may reveal a
    reward.

    References
    ----------
    Neel, S. and Roth, A. (2018). Mitigating bias in adaptive data gathering via differential privacy.

    Examples
    --------
    >>> import adaptinf as ai
    >>> bound = ai.linear_bias_bound(0.1, [[1.0, 0.0], [0.6, 0.6], [0.0, 1.0]], [0.5, 0.5])
    >>> round(bound.bound, 4), round(bound.absolute_weights, 4), bound.published_holds
    (0.0334, 0.0746, False)
    """
    epsilon, problems = _pure_epsilon(guarantee)
    X, coefficients = _matrix(contexts, theta, problems)
    refuse("linear_bias_bound", problems)
    means = X @ coefficients
    outside = (means < -_ROUNDING) | (means > 1.0 + _ROUNDING)
    if outside.any():
        first = int(np.flatnonzero(outside)[0])
        problem = f"x'theta must lie in [0, 1], got {means[first]:g} for context {first}"
        raise ParameterError("linear_bias_bound", [problem])
    means = np.clip(means, 0.0, 1.0)
    down, up = reward_shift(epsilon, means)
    published = _expm1(epsilon)
    by_context = np.empty(means.size)
    heaviest, lowest = 0.0, 0.0
    for rows, hat in _hat_rows(X):
        positive, negative = np.maximum(hat, 0.0), np.maximum(-hat, 0.0)
        above = positive @ up + negative @ down
        below = positive @ down + negative @ up
        by_context[rows] = np.maximum(above, below)
        heaviest = max(heaviest, float((np.abs(hat) @ means).max()))
        lowest = min(lowest, float(hat.min()))
    return LinearBiasBound(
        bound=float(by_context.max()),
        by_context=by_context,
        absolute_weights=published * heaviest if heaviest > 0.0 else 0.0,
        published=published,
        published_holds=lowest >= -_ROUNDING,
    )


@dataclass(frozen=True, slots=True)
class LinearBias:
    """Measured bias of least-squares predictions, for each set of rounds in which an arm was pulled.

    Attributes
    ----------
    selected : ndarray of bool, shape (sets, rounds)
        The sets of rounds that occurred in enough runs, the most frequent first.
    runs : ndarray of int, shape (sets,)
        Number of runs with each set.
    bias, std_error : ndarray of shape (sets, rounds)
        Mean of x_t'theta_hat - x_t'theta over the runs with a set, and its standard error; NaN in rounds
        without a pull.
    left_out : float
        Share of the runs that were left out because their set of rounds is too rare.
    """

    selected: BoolArray
    runs: IntArray
    bias: FloatArray
    std_error: FloatArray
    left_out: float

    @property
    def largest(self) -> float:
        """Largest absolute bias; biased upwards, because it is the maximum of many noisy estimates."""
        finite = np.abs(self.bias[self.selected])
        return float(finite.max()) if finite.size else math.nan


def linear_bias(
    selected: ArrayLike, rewards: ArrayLike, contexts: ArrayLike, theta: ArrayLike, min_runs: int = 100
) -> LinearBias:
    """Bias of an arm's predictions over many runs with the same contexts (Definition 4 of the paper).

    Parameters
    ----------
    selected : array_like of bool, shape (runs, rounds)
        Whether the arm was pulled.
    rewards : array_like of shape (runs, rounds)
        The reward from these pulls; other entries are ignored.
    contexts : array_like of shape (rounds, d)
        The arm's contexts, the same in all runs.
    theta : array_like of shape (d,)
        Its true coefficients.
    min_runs : int
        Smallest number of runs with the same set of rounds, at least 2; rarer sets are left out.

    Returns
    -------
    LinearBias
        Bias given each set of rounds, with Monte Carlo standard errors.

    Raises
    ------
    ParameterError
        If arguments are inconsistent; the message lists every problem.

    Notes
    -----
    The definition conditions on the rounds in which the arm was pulled. The number of such sets grows like
    2^rounds, so a measurement requires a short horizon, or a design that makes few distinct sequences of
    choices.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> rewards = (rng.random((4000, 2)) < 0.5).astype(float)
    >>> selected = np.stack([np.ones(4000, bool), rewards[:, 0] == 1.0], axis=1)  # go on after a success
    >>> measured = ai.linear_bias(selected, rewards, [[1.0], [1.0]], [0.5])
    >>> measured.selected.tolist(), bool(abs(measured.bias[1, 0] - 0.25) < 0.03)
    ([[True, False], [True, True]], True)
    """
    problems = Count(2)("min_runs", min_runs)
    X, coefficients = _matrix(contexts, theta, problems)
    try:
        chosen = np.asarray(selected)
    except ValueError:
        chosen = np.zeros(0)
    paid = number_array(rewards)
    if paid is None:
        problems.append(f"rewards must be numbers in rows of equal length, got {rewards!r:.60}")
        paid = np.zeros(chosen.shape)
    if chosen.dtype != np.bool_ or chosen.ndim != 2 or chosen.size == 0:
        problems.append(f"selected must be True or False, of shape (runs, rounds), got {chosen.shape}")
    elif chosen.shape != paid.shape or (X.ndim == 2 and chosen.shape[1] != X.shape[0]):
        problems.append(
            f"selected {chosen.shape}, rewards {paid.shape} and contexts {X.shape} must have the same rounds"
        )
    elif not np.isfinite(paid[chosen]).all():
        problems.append("rewards must be finite in rounds in which the arm was pulled")
    refuse("linear_bias", problems)
    patterns, inverse, runs = np.unique(chosen, axis=0, return_inverse=True, return_counts=True)
    enough = [int(i) for i in np.argsort(-runs, kind="stable") if runs[i] >= min_runs and patterns[i].any()]
    bias = np.full((len(enough), chosen.shape[1]), np.nan)
    error = bias.copy()
    for row, pattern in enumerate(enough):
        rounds = patterns[pattern]
        predicted = paid[inverse.ravel() == pattern][:, rounds] @ _hat(X[rounds])
        bias[row, rounds] = predicted.mean(axis=0) - X[rounds] @ coefficients
        error[row, rounds] = predicted.std(axis=0, ddof=1) / math.sqrt(predicted.shape[0])
    pulled = runs[patterns.any(axis=1)].sum()
    kept = runs[enough].sum()
    left_out = float(1.0 - kept / pulled) if pulled else 0.0
    return LinearBias(patterns[enough], runs[enough], bias, error, left_out)


def _pure_epsilon(guarantee: PrivacyGuarantee | float) -> tuple[float, list[str]]:
    """Epsilon for the rewards of one round, or the reason why no epsilon can be used."""
    if not isinstance(guarantee, PrivacyGuarantee):
        given: Any = guarantee
        endless = isinstance(given, float) and given == math.inf
        problems = [] if endless else NON_NEGATIVE("epsilon", given)
        return 0.0 if problems else float(guarantee), problems
    level = guarantee.reward_level()
    if level is None:
        problem = "the guarantee is anticipating; the bound requires a standard one for the rewards"
        return 0.0, [problem]
    if level.delta > 0.0:
        problem = f"delta must be 0, got {level.delta:g}: no bound holds given the actions"
        return 0.0, [problem]
    return level.epsilon, []


def _matrix(contexts: ArrayLike, theta: ArrayLike, problems: list[str]) -> tuple[FloatArray, FloatArray]:
    X, coefficients = number_array(contexts), number_array(theta)
    if X is None or coefficients is None:
        problems.append("contexts and theta must be numbers in rows of equal length")
        return np.zeros(0), np.zeros(0)
    if X.ndim != 2 or X.size == 0:
        problems.append(f"contexts must have shape (n, d), got {X.shape}")
    elif coefficients.shape != X.shape[1:]:
        problems.append(f"theta must have one entry per coordinate ({X.shape[1]}), got {coefficients.shape}")
    if not (np.isfinite(X).all() and np.isfinite(coefficients).all()):
        problems.append("contexts and theta must be finite numbers")
    return X, coefficients


def _basis(X: FloatArray) -> FloatArray:
    """Orthonormal basis of the space of predictions, shape (n, rank)."""
    left, sizes, _ = np.linalg.svd(X, full_matrices=False)
    return np.asarray(left[:, sizes > _RANK * max(float(sizes[0]), np.finfo(float).tiny)])


def _hat(X: FloatArray) -> FloatArray:
    basis = _basis(X)
    return np.asarray(basis @ basis.T)


def _hat_rows(X: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
    """Blocks of a few rows of the hat matrix, computed one at a time."""
    basis = _basis(X)
    for first in range(0, X.shape[0], _ROWS_AT_ONCE):
        rows = slice(first, first + _ROWS_AT_ONCE)
        yield rows, basis[rows] @ basis.T


def _expm1(epsilon: float) -> float:
    return math.expm1(epsilon) if epsilon < 700.0 else math.inf
