"""Mean difference, and double machine learning in the readings that the paper's words allow.

The paper names neither learner nor score. Its own hints are that the method predicts the missing rewards from
linear features of the arms, after Kim, Kim and Paik (2021), and that it fails where the features are nearly
collinear. All functions take many trials at once: actions 0 or 1, drawn by fair coins, and rewards, both of
shape (runs, rounds), with the arms' features of shape (2, d).
"""

from __future__ import annotations

import numpy as np

from adaptinf.typing import FloatArray, IntArray

FOLDS = 5
RIDGE = 1.0
COIN = 0.5


def mean_difference(action: IntArray, reward: FloatArray) -> FloatArray:
    """Arm 1's mean reward minus arm 0's, shape (runs,)."""
    counts, sums = arm_sums(action, reward)
    return np.asarray(sums[..., 1] / counts[..., 1] - sums[..., 0] / counts[..., 0])


def arm_sums(action: IntArray, reward: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Pulls and sums of rewards by arm, shape (runs, 2) each."""
    treated = action == 1
    count, total = treated.sum(axis=1), (reward * treated).sum(axis=1)
    return (
        np.stack([action.shape[1] - count, count], axis=1).astype(np.float64),
        np.stack([reward.sum(axis=1) - total, total], axis=1),
    )


def ridge_means(
    counts: FloatArray, sums: FloatArray, features: FloatArray, ridge: float = RIDGE
) -> FloatArray:
    """Predicted means of both arms by ridge regression of rewards on the pulled arm's features, (runs, 2)."""
    gram = np.einsum("ra,ai,aj->rij", counts, features, features) + ridge * np.eye(features.shape[1])
    moments = np.einsum("ra,ai->ri", sums, features)
    return np.asarray(np.linalg.solve(gram, moments[..., None])[..., 0] @ features.T)


def pseudo_rewards(
    action: IntArray, reward: FloatArray, features: FloatArray, folds: int = FOLDS, ridge: float = RIDGE
) -> FloatArray:
    """Means over rounds of both arms' doubly robust rewards, shape (runs, 2).

    In a round the arm that was pulled has prediction + (reward - prediction) / (1/2), the other one its
    prediction, made from the other folds. Round t is in fold t modulo the number of folds.
    """
    counts, sums = arm_sums(action, reward)
    total = np.zeros(counts.shape)
    for fold in range(folds):
        part = slice(fold, None, folds)
        own_counts, own_sums = arm_sums(action[:, part], reward[:, part])
        predicted = ridge_means(counts - own_counts, sums - own_sums, features, ridge)
        rounds = own_counts.sum(axis=1, keepdims=True)
        total += rounds * predicted + (own_sums - own_counts * predicted) / COIN
    return np.asarray(total / action.shape[1])


def dr_ridge(
    action: IntArray, reward: FloatArray, features: FloatArray, folds: int = FOLDS, ridge: float = RIDGE
) -> FloatArray:
    """Doubly robust rewards of both arms in all rounds, regressed on the features; the contrast, (runs,)."""
    means = pseudo_rewards(action, reward, features, folds, ridge)
    rounds = np.full(means.shape, float(action.shape[1]))
    fitted = ridge_means(rounds, rounds * means, features, ridge)
    return np.asarray(fitted[:, 1] - fitted[:, 0])


def aipw(
    action: IntArray, reward: FloatArray, features: FloatArray, folds: int = FOLDS, ridge: float = RIDGE
) -> FloatArray:
    """Cross-fitted augmented inverse propensity weighting with known propensities, shape (runs,)."""
    means = pseudo_rewards(action, reward, features, folds, ridge)
    return np.asarray(means[:, 1] - means[:, 0])


def partialling_out(action: IntArray, reward: FloatArray, folds: int = FOLDS) -> FloatArray:
    """Residuals of rewards regressed on residuals of actions, (runs,).

    There are no covariates: both nuisances are means over the other folds.
    """
    product, square = np.zeros(action.shape[0]), np.zeros(action.shape[0])
    for fold in range(folds):
        own = np.zeros(action.shape[1], dtype=bool)
        own[fold::folds] = True
        outcome = reward[:, own] - reward[:, ~own].mean(axis=1, keepdims=True)
        treatment = action[:, own] - action[:, ~own].mean(axis=1, keepdims=True)
        product += (outcome * treatment).sum(axis=1)
        square += np.square(treatment).sum(axis=1)
    return product / square


def refitted_dr_ridge(
    action: IntArray, reward: FloatArray, features: FloatArray, ridge: float = RIDGE
) -> float:
    """One trial, shape (rounds,), with the prediction refitted after every round, as in the cited design."""
    size = features.shape[1]
    seen, seen_moments = ridge * np.eye(size), np.zeros(size)
    gram, moments = ridge * np.eye(size), np.zeros(size)
    for arm, paid in zip(action, reward, strict=True):
        filled = features @ np.linalg.solve(seen, seen_moments)
        filled[arm] += (paid - filled[arm]) / COIN
        gram += features.T @ features
        moments += filled @ features
        seen += np.outer(features[arm], features[arm])
        seen_moments += paid * features[arm]
    return float((features[1] - features[0]) @ np.linalg.solve(gram, moments))
