"""Lengths to expect of intervals for policy values, of one policy on average."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.inference.validity.lengths import student_length, typical
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from adaptinf.inference.policies.inputs import Policy
    from adaptinf.inference.policies.question import PolicyQuestion
    from adaptinf.inference.validity.verdicts import Verdict
    from adaptinf.log import AdaptiveLog

_BLOCK = 65_536


def policy_length(question: PolicyQuestion, verdict: Verdict) -> float:
    """By the propensities, with each round's own score variance in the place of its forecast."""
    profile, kind = question.profile, verdict.arguments.get("weights")
    std, log = profile.pooled_std, profile.log
    mean = profile.pooled_mean if verdict.arguments["estimator"] == "ipw" else 0.0
    uniform = kind == "uniform"
    if log.arrays.propensity is None or (log.arrays.propensities is None and not uniform):
        return math.nan
    errors = []
    for policy in question.policies:
        variance = _chosen_variances(log, policy) if uniform else score_variances(log, policy)
        forecast = variance
        if verdict.arguments.get("contextual") is False:
            forecast = _batch_means(variance, log)
        with np.errstate(divide="ignore"):
            power = {"stable-variance": 0.5, "min-variance": 1.0}.get(kind or "stable-variance", 0.0)
            weight = np.where(np.isfinite(forecast), forecast**-power, 0.0)
        used = np.where(weight > 0.0, variance, 0.0)
        squares = float(weight**2 @ ((std**2 + mean**2) * used - mean**2))
        total = float(weight.sum())
        errors.append(math.sqrt(max(squares, 0.0)) / total if total > 0.0 else math.inf)
    return typical(student_length(np.array(errors), np.inf))


def _chosen_variances(log: AdaptiveLog, policy: Policy) -> FloatArray:
    """Squared ratios of the chosen arms, whose means given the past are `score_variances`; shape (T,)."""
    assert log.arrays.propensity is not None
    taken = policy.probabilities[np.arange(log.n_rounds) % len(policy.probabilities), log.arrays.action]
    return np.asarray((taken / log.arrays.propensity) ** 2, dtype=np.float64)


def score_variances(log: AdaptiveLog, policy: Policy) -> FloatArray:
    """Sum over the arms of policy^2 / propensity, in blocks; infinite without support; shape (T,)."""
    every = log.arrays.propensities
    assert every is not None
    found = np.empty(log.n_rounds)
    for start in range(0, log.n_rounds, _BLOCK):
        block = slice(start, start + _BLOCK)
        e = every[block]
        share = np.broadcast_to(
            policy.probabilities if len(policy.probabilities) == 1 else policy.probabilities[block], e.shape
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            found[block] = np.where(share > 0.0, share**2 / e, 0.0).sum(axis=1)
    return found


def _batch_means(values: FloatArray, log: AdaptiveLog) -> FloatArray:
    """Means over each round's batch, or the values themselves where there are none; values (T,)."""
    batch = log.arrays.batch
    if batch is None:
        return values
    code = batch - int(batch[0])
    count = np.bincount(code)
    return np.asarray((np.bincount(code, weights=values) / np.maximum(count, 1))[code], dtype=np.float64)
