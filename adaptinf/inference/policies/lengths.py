"""Lengths to expect of intervals for policy values, of one policy on average."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.inference.policies.contrast_weights import contrast_weights
from adaptinf.inference.policies.scores import COMMON
from adaptinf.inference.policies.weights import score_variance
from adaptinf.inference.validity.lengths import student_length, typical
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from adaptinf.inference.policies.inputs import Policy
    from adaptinf.inference.policies.question import PolicyQuestion
    from adaptinf.inference.validity.verdicts import Verdict
    from adaptinf.log import AdaptiveLog

    Gain = tuple[FloatArray, Policy]

_BLOCK = 65_536


def policy_length(question: PolicyQuestion, verdict: Verdict) -> float:
    """By the propensities; own weights by each round's own score variance in the place of its forecast."""
    profile, kind = question.profile, verdict.arguments.get("weights")
    std, log = profile.pooled_std, profile.log
    mean = profile.pooled_mean if verdict.arguments["estimator"] == "ipw" else 0.0
    uniform = kind == "uniform"
    if log.arrays.propensity is None or (log.arrays.propensities is None and not uniform):
        return math.nan
    errors = []
    for gains in _gains(question, verdict):
        first, second = _score_sums(log, gains, chosen=uniform)
        errors.append(math.sqrt(max((std**2 + mean**2) * first - mean**2 * second, 0.0)))
    return typical(student_length(np.array(errors), np.inf))


def _gains(question: PolicyQuestion, verdict: Verdict) -> list[list[Gain]]:
    """What the rounds count for, (T,), and for which policy: for each value, or each difference."""
    log, (*policies, last) = question.profile.log, question.policies
    if verdict.arguments.get("weights") == COMMON:
        weights = contrast_weights(question, question.check_combined(verdict.name))
        common = (weights / weights.sum(axis=0)).T
        return [[(share, one), (-share, last)] for share, one in zip(common, policies, strict=True)]
    own = [(_own_shares(log, policy, verdict), policy) for policy in question.policies]
    if not question.contrast:
        return [[one] for one in own]
    return [[one, (-own[-1][0], last)] for one in own[:-1]]


def _own_shares(log: AdaptiveLog, policy: Policy, verdict: Verdict) -> FloatArray:
    """Each round's share of the total weight, by weights of the policy's own or uniform ones; shape (T,)."""
    kind = verdict.arguments.get("weights")
    if kind == "uniform":
        return np.full(log.n_rounds, 1.0 / log.n_rounds)
    forecast = _score_variances(log, policy)
    if verdict.arguments.get("contextual") is False:
        forecast = _batch_means(forecast, log)
    power = 1.0 if kind == "min-variance" else 0.5
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.where(np.isfinite(forecast), forecast**-power, 0.0)
        return np.asarray(weight / weight.sum(), dtype=np.float64)


def _score_sums(log: AdaptiveLog, gains: Sequence[Gain], *, chosen: bool) -> tuple[float, float]:
    """Sums over rounds of the arms' gain^2 / propensity, and of the square of all arms' gain.

    An arm's gain is the sum of share times policy. By the chosen arms alone the first has the same mean.
    """
    first = second = 0.0
    for start in range(0, log.n_rounds, _BLOCK):
        block = slice(start, start + _BLOCK)
        gain = np.sum([share[block, None] * policy.probabilities[block] for share, policy in gains], axis=0)
        second += float(np.square(gain.sum(axis=1)).sum())
        if chosen:
            assert log.arrays.propensity is not None
            own = np.take_along_axis(gain, log.arrays.action[block, None], axis=1)[:, 0]
            first += float(np.square(own / log.arrays.propensity[block]).sum())
        else:
            assert log.arrays.propensities is not None
            first += float(score_variance(gain**2, log.arrays.propensities[block]).sum())
    return first, second


def _score_variances(log: AdaptiveLog, policy: Policy) -> FloatArray:
    """Sum over the arms of policy^2 / propensity, in blocks; infinite without support; shape (T,)."""
    every = log.arrays.propensities
    assert every is not None
    blocks = [slice(start, start + _BLOCK) for start in range(0, log.n_rounds, _BLOCK)]
    found = [score_variance(policy.probabilities[block] ** 2, every[block]) for block in blocks]
    return np.concatenate([np.zeros(0), *found])


def _batch_means(values: FloatArray, log: AdaptiveLog) -> FloatArray:
    """Means over each round's batch, or the values themselves where there are none; values (T,)."""
    batch = log.arrays.batch
    if batch is None:
        return values
    code = batch - int(batch[0])
    count = np.bincount(code)
    return np.asarray((np.bincount(code, weights=values) / np.maximum(count, 1))[code], dtype=np.float64)
