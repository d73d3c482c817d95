"""Coverage of projections of effects when arms follow what was learnt about each context."""

from __future__ import annotations

import math

import numpy as np
import pytest

from adaptinf.inference.effects.effect_weights import contrast_weights
from adaptinf.inference.regression.score_projection import weighted_projection
from adaptinf.inference.scores.inverse import aipw_scores, indicators, running_means

SHARES = np.array([0.5, 0.3, 0.2])
ROUNDS, REPLICATIONS = 600, 1_200
LINEAR, CURVED = np.array([0.0, 0.5, 1.0]), np.array([0.0, -0.5, 1.5])
BASE = np.array([0.0, 1.0, -1.0])
Z = 1.959964


def epsilon_greedy(effects, rng, floor=0.2):
    """Runs side by side: the better arm so far in this context, the other with propensity floor / 2."""
    context = rng.choice(3, size=(REPLICATIONS, ROUNDS), p=SHARES)
    action = np.zeros((REPLICATIONS, ROUNDS), dtype=np.int64)
    reward, treated = np.zeros(action.shape), np.zeros(action.shape)
    sums, counts = np.zeros((REPLICATIONS, 3, 2)), np.zeros((REPLICATIONS, 3, 2))
    runs = np.arange(REPLICATIONS)
    for t in range(ROUNDS):
        x = context[:, t]
        means = sums[runs, x] / np.maximum(counts[runs, x], 1)
        share = np.where(means[:, 1] > means[:, 0], 1 - floor / 2, floor / 2)
        share = np.where(counts[runs, x].min(axis=1) < 1, 0.5, share)
        a = (rng.random(REPLICATIONS) < share).astype(np.int64)
        y = rng.normal(BASE[x] + a * effects[x], 1.0)
        sums[runs, x, a] += y
        counts[runs, x, a] += 1
        action[:, t], reward[:, t], treated[:, t] = a, y, share
    return context, action, reward, treated


def estimates(effects, kind, seed):
    context, action, reward, treated = epsilon_greedy(effects, np.random.default_rng(seed))
    coefficients, errors = [], []
    for x, a, y, share in zip(context, action, reward, treated, strict=True):
        chosen = indicators(a, np.array([0, 1]))
        both = np.column_stack([1 - share, share])
        own = np.where(a == 1, share, 1 - share)
        scores = aipw_scores(chosen, y, own, running_means(chosen, y))
        rows = np.column_stack([np.ones(ROUNDS), x.astype(float)])
        fit = weighted_projection(
            rows, scores[:, 1] - scores[:, 0], contrast_weights(both, kind), ["one", "x"]
        )
        coefficients.append(fit.coefficient)
        errors.append(np.sqrt(np.diag(fit.covariance)))
    return np.array(coefficients), np.array(errors)


def best_line(effects):
    x = np.column_stack([np.ones(3), np.arange(3.0)])
    return np.linalg.solve(x.T @ (SHARES[:, None] * x), x.T @ (SHARES * effects))


def check(coefficients, errors, truth):
    covered = (np.abs(coefficients - truth) <= Z * errors).mean(axis=0)
    tolerance = 4 * math.sqrt(0.05 * 0.95 / REPLICATIONS)
    assert (np.abs(covered - 0.95) < tolerance + 0.005).all(), covered
    bias = (coefficients.mean(axis=0) - truth) / (coefficients.std(axis=0) / math.sqrt(REPLICATIONS))
    assert (np.abs(bias) < 4.5).all(), bias


@pytest.mark.parametrize(("effects", "seed"), [(LINEAR, 1), (CURVED, 2)])
def test_uniform_weights_cover_the_best_line_right_or_wrong(effects, seed):
    check(*estimates(effects, "uniform", seed), best_line(effects))


def test_combined_weights_cover_where_the_formula_holds():
    check(*estimates(LINEAR, "combined", 3), best_line(LINEAR))


def test_combined_weights_estimate_something_else_where_it_does_not():
    # The arms of one context are far from balanced, so that its scores get a small weight.
    rng = np.random.default_rng(4)
    context = rng.choice(3, size=20_000, p=SHARES)
    share = np.array([0.5, 0.02, 0.5])[context]
    action = (rng.random(20_000) < share).astype(np.int64)
    reward = rng.normal(BASE[context] + action * CURVED[context], 1.0)
    chosen, both = indicators(action, np.array([0, 1])), np.column_stack([1 - share, share])
    own = np.where(action == 1, share, 1 - share)
    scores = aipw_scores(chosen, reward, own, running_means(chosen, reward))
    rows = np.column_stack([np.ones(20_000), context.astype(float)])
    lines = {
        kind: weighted_projection(
            rows, scores[:, 1] - scores[:, 0], contrast_weights(both, kind), ["one", "x"]
        )
        for kind in ("uniform", "combined")
    }
    error = {kind: np.sqrt(np.diag(fit.covariance)) for kind, fit in lines.items()}
    truth = best_line(CURVED)
    assert (np.abs(lines["uniform"].coefficient - truth) < 4 * error["uniform"]).all()
    assert (np.abs(lines["combined"].coefficient - truth) > 4 * error["combined"]).any()
    weighted = SHARES * np.array([0.5, math.sqrt(0.02 * 0.98), 0.5])
    x = np.column_stack([np.ones(3), np.arange(3.0)])
    other = np.linalg.solve(x.T @ (weighted[:, None] * x), x.T @ (weighted * CURVED))
    assert (np.abs(lines["combined"].coefficient - other) < 4 * error["combined"]).all()
