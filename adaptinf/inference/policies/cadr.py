"""Contextual adaptive doubly robust estimation (CADR) of policy values.

The score of round t is D_t = p_t + c_t / g_t, where p_t is the policy's mean of the predicted rewards, c_t is
the policy's probability of the chosen arm times the residual, and g_t is the arm's propensity. The score is
weighted by the inverse of a predictable estimate of its conditional standard deviation. For this estimate,
each earlier round s has a weight rho, the ratio of its arm's propensity under the design of round t to the
propensity in round s. The score of round s is recomputed with the propensity under the design of round t, and
with the predictions of round s.

References
----------
Bibaut, Dimakopoulou, Kallus, Chambaz, van der Laan (2021), "Post-contextual-bandit inference".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adaptinf.errors import InvalidForLog
from adaptinf.inference.policies.fit_facts import WeightFacts
from adaptinf.inference.policies.policy_order import policy_verdict
from adaptinf.inference.policies.policy_question import PolicyQuestion
from adaptinf.inference.policies.policy_scores import (
    PolicyFit,
    PolicyOptions,
    policy_fit,
    policy_length,
    score_parts,
)
from adaptinf.inference.scores.means import effective_size
from adaptinf.inference.validity.methods import MethodRecord, Verdict
from adaptinf.inference.validity.policies import LoggingPolicies, chunks
from adaptinf.typing import FloatArray, IntArray

_FLOOR = 0.1
_NOTHING = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class CadrFit:
    """CADR estimates of k values.

    Shapes: estimate, std_error (k,), covariance (k, k), weights, influence (T, k).
    """

    estimate: FloatArray
    std_error: FloatArray
    covariance: FloatArray
    weights: FloatArray
    influence: FloatArray


def default_burn_in(n_rounds: int) -> int:
    """Number of initial rounds that CADR leaves out: a tenth of the log, but at least 1 and at most 100."""
    return max(1, min(100, n_rounds // 10))


def conditional_variances(
    logging: LoggingPolicies, action: IntArray, propensity: FloatArray, plain: FloatArray, change: FloatArray
) -> FloatArray:
    """Predictable estimates of the conditional variances of the scores.

    Shapes: action (T,), propensity (T,), plain, change (T,); returns (T,).

    The estimate for round t is mean(rho D^2) - mean(rho D)^2 over the earlier rounds. Besides the snapshots,
    the computation takes O(T B) time, or O(T K) if propensities do not depend on contexts. If the average of
    the ratios happens to be far from 1, the estimate can be close to 0 by chance. The estimate is therefore
    kept above a tenth of mean(rho (D - mean(rho D))^2), which has the same limit and is not negative.
    """
    weighted = 1.0 / propensity, plain / propensity, change / propensity
    sums = (
        _sums_by_batch(logging, action, weighted, plain, change)
        if logging.rows is None
        else _sums_context_free(logging.rows[logging.batch], action, weighted, plain, change)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio, first, second = sums / np.arange(len(action))
        variance = second - first**2
        centred = variance + first**2 * (ratio - 1.0)
        variance = np.maximum(variance, _FLOOR * centred)
        # If moments cancel, what remains is rounding error, and its inverse square root would outweigh all
        # other rounds.
        variance[np.isfinite(second) & (variance <= _NOTHING * second)] = 0.0
    return np.asarray(variance, dtype=np.float64)


def cadr_fit(
    logging: LoggingPolicies,
    action: IntArray,
    propensity: FloatArray,
    plain: FloatArray,
    change: FloatArray,
    burn_in: int,
) -> CadrFit:
    """CADR estimates; action (T,), propensity (T,), plain, change (T, k)."""
    scores = plain + change / propensity[:, None]
    weights = np.zeros(scores.shape)
    for k in range(scores.shape[1]):
        variance = conditional_variances(logging, action, propensity, plain[:, k], change[:, k])
        usable = variance > 0.0
        usable[:burn_in] = False
        weights[usable, k] = 1.0 / np.sqrt(variance[usable])
    total = weights.sum(axis=0)
    total = np.where(total > 0.0, total, np.nan)
    estimate = (weights * scores).sum(axis=0) / total
    # Each weight is an inverse standard deviation, so a weighted score has variance 1 and the sum of n of
    # them has variance n.
    std_error = np.sqrt(np.count_nonzero(weights, axis=0)) / total
    influence = np.nan_to_num(weights * (scores - estimate))
    size = np.sqrt(np.einsum("tk,tk->k", influence, influence))
    correlation = (influence.T @ influence) / np.where(size > 0, np.outer(size, size), 1.0)
    np.fill_diagonal(correlation, 1.0)
    covariance = correlation * np.outer(std_error, std_error)
    return CadrFit(
        estimate, std_error, covariance, weights, influence * (std_error / np.where(size > 0, size, 1.0))
    )


def _moments(
    density: FloatArray,
    weighted: tuple[FloatArray, FloatArray, FloatArray],
    plain: FloatArray,
    change: FloatArray,
) -> FloatArray:
    """The stack of rho, rho D and rho D^2, shape (3, n), for these densities of the chosen arms."""
    inverse, p, c = weighted
    rest = np.where(change == 0.0, 0.0, change * c)
    with np.errstate(divide="ignore", invalid="ignore"):
        tail = np.where(rest == 0.0, 0.0, rest / density)
    # The square rho D^2 = (density / e) (plain + change / density)^2 is multiplied out, so that only one term
    # divides by the density.
    return np.stack([density * inverse, density * p + c, density * (plain * p) + 2.0 * plain * c + tail])


def _sums_by_batch(
    logging: LoggingPolicies,
    action: IntArray,
    weighted: tuple[FloatArray, FloatArray, FloatArray],
    plain: FloatArray,
    change: FloatArray,
) -> FloatArray:
    """Sums over earlier rounds, with the densities of each round's design; shape (3, T)."""
    sums = np.zeros((3, len(action)))
    inverse, p, c = weighted

    def seen(b: int, low: int, high: int) -> FloatArray:
        density = np.take_along_axis(logging.at(b, low, high), action[low:high, None], axis=1)[:, 0]
        part = inverse[low:high], p[low:high], c[low:high]
        return _moments(density, part, plain[low:high], change[low:high])

    for b, (start, size) in enumerate(zip(logging.starts.tolist(), logging.sizes.tolist(), strict=True)):
        before = np.zeros(3)
        for low, high in chunks(0, start):
            before += seen(b, low, high).sum(axis=1)
        sums[:, start] = before
        for low, high in chunks(start, start + size - 1):
            running = np.cumsum(seen(b, low, high), axis=1)
            sums[:, low + 1 : high + 1] = before[:, None] + running
            before += running[:, -1]
    return sums


def _sums_context_free(
    rows: FloatArray,
    action: IntArray,
    weighted: tuple[FloatArray, FloatArray, FloatArray],
    plain: FloatArray,
    change: FloatArray,
) -> FloatArray:
    """The same sums, from running sums by arm, for densities that depend only on the arm."""
    sums = np.zeros((3, len(action)))
    inverse, p, c = weighted
    for arm in range(rows.shape[1]):
        mine, density = action == arm, rows[:, arm]
        sums[0] += density * _lagged(mine * inverse)
        sums[1] += density * _lagged(mine * p) + _lagged(mine * c)
        rest = _lagged(mine * change * c)
        with np.errstate(divide="ignore", invalid="ignore"):
            tail = np.where(rest > 0.0, rest / density, 0.0)
        sums[2] += density * _lagged(mine * plain * p) + 2.0 * _lagged(mine * plain * c) + tail
    return sums


def _lagged(values: FloatArray) -> FloatArray:
    """For each round, the sum over all earlier rounds."""
    total = np.zeros(len(values))
    np.cumsum(values[:-1], out=total[1:])
    return total


def _assess(question: PolicyQuestion) -> list[Verdict]:
    return [policy_verdict(WeightFacts(question, "cadr", None))]


def _fit(question: PolicyQuestion, options: PolicyOptions) -> PolicyFit:
    log, propensity = question.profile.log, question.check_propensities("cadr")
    if question.profile.unit_refusal:
        raise InvalidForLog(
            "cadr", question.profile.unit_refusal, ["estimator='aipw' with standard errors clustered by unit"]
        )
    parts = score_parts(question.profile, question.policies, options.outcome)
    plain, change, taken, origin = parts.plain, parts.change, parts.taken, parts.origin
    if question.contrast:
        plain, change = plain[:, :-1] - plain[:, -1:], change[:, :-1] - change[:, -1:]
    logging = question.check_logging("cadr")
    found = cadr_fit(logging, log.arrays.action, propensity, plain, change, options.burn_in)
    observed = taken / propensity[:, None]
    if question.contrast:
        last = effective_size(found.weights * observed[:, -1:])
        ess = np.minimum(effective_size(found.weights * observed[:, :-1]), last)
        observed, origin = observed[:, :-1] - observed[:, -1:], 0.0
    else:
        ess = effective_size(found.weights * observed)
    rows = {"scores": origin + plain + change / propensity[:, None], "weights": found.weights}
    total = found.weights.sum(axis=0)
    share = found.weights * observed / np.where(total > 0.0, total, 1.0)
    estimate = origin + found.estimate
    return policy_fit(question, estimate, found.covariance, found.influence, share, ess, rows)


CADR: MethodRecord[PolicyQuestion] = MethodRecord("cadr", _assess, _fit, length=policy_length)
"""A method that uses an outcome model and its own weights."""
