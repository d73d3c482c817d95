"""Weights of rounds for policy values, and the weight that both policies of a contrast share.

Given context x and the past, the variance of a policy's score is determined by

    v_t(x) = sum over arms w of pi(x, w)^2 / e_t(x, w),

where pi are the policy's probabilities and e_t those of the design. Non-contextual weights use the mean of
v_t over the contexts of earlier rounds. Contextual weights use v_t at the round's own context, relative to
its values under the designs of all other rounds at that context.

Let d be the difference between two policies. Given the past, the difference between their scores has a
variance close to that of the rewards times

    v_t = E sum over arms a of d(X, a)^2 / e_t(X, a).

The weight is v_t^(-1/2). An effect common to the rewards of all arms in a round is multiplied by sum_a d(X,
a) = 0, whatever the weight. A log does not contain e_t at contexts that were not drawn, and the weight must
not depend on the context that was drawn. Therefore, v_t is forecast from past rounds, as the mean of d^2 / e
divided by the mean of d^2. If contexts have the same distribution in all rounds, the mean of d^2 converges to
a constant. Dividing by it makes the forecast independent of how often the policies happened to differ, and
keeps it between the smallest and the largest 1 / e.

References
----------
Zhan, Hadad, Hirshberg, Athey (2021), "Off-policy evaluation via adaptive weighting with data from contextual
bandits".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.inference.inputs.rounds import turns
from adaptinf.inference.policies.policy_question import Policy
from adaptinf.inference.validity.policies import LoggingPolicies, chunks
from adaptinf.typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.policies.policy_question import PolicyQuestion


KINDS = ("stable-variance", "min-variance")
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class ContextualFit:
    """Contextually weighted estimates for k policies; estimate (k,), influence (T, k), share (T, k)."""

    estimate: FloatArray
    influence: FloatArray
    share: FloatArray


def stabiliser(kind: str, variance: FloatArray) -> FloatArray:
    """Weight for a conditional variance: 1/sqrt(v) (stable-variance) or 1/v (min-variance)."""
    root = np.sqrt(variance) if kind == "stable-variance" else variance
    return np.asarray(1.0 / root, dtype=np.float64)


def score_variance(squares: FloatArray, propensities: FloatArray) -> FloatArray:
    """Sum over arms of the squared policy probability divided by the propensity.

    Shapes: squares (n, K), propensities (n, K); returns (n,).
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = squares / propensities
    if propensities.size and propensities.min() <= 0.0:
        # An arm that the policy never takes adds no variance, even if its propensity is 0: here 0 / 0 is 0.
        ratio[squares == 0.0] = 0.0
    # NumPy's own sum along such short rows is several times slower.
    return np.asarray(ratio @ np.ones(ratio.shape[1]), dtype=np.float64)


def mean_variances(logging: LoggingPolicies, policies: Sequence[Policy]) -> FloatArray:
    """Each round's conditional variance, averaged over the contexts of earlier rounds; returns (T, k)."""
    means = np.empty((logging.n_rounds, len(policies)))
    for k, policy in enumerate(policies):
        squares = policy.probabilities**2 if not policy.constant else _constant_squares(policy)
        means[:, k] = mean_variance(logging, squares, constant=policy.constant)
    return means


def mean_variance(logging: LoggingPolicies, squares: FloatArray, *, constant: bool) -> FloatArray:
    """The same for one policy, or for the difference between two, from its squares (T, K); returns (T,)."""
    if logging.rows is None:
        mean = _running_by_batch(logging, squares)
    else:
        mean = _running_context_free(logging, squares, constant)
    # Before the first round there were no contexts, so its variance is set to infinity and its weight to 0.
    mean[0] = np.inf
    if constant and logging.first is not None:
        mean[0] = score_variance(squares[:1], logging.first[None, :])[0]
    return mean


def contextual_fit(
    logging: LoggingPolicies, policies: Sequence[Policy], scores: FloatArray, kind: str, start: int = 0
) -> ContextualFit:
    """Contextually weighted estimates.

    Shapes: scores (T, k).

    If h_t is the weight and Z(x) = sum_s h_s(x), the share of round t is h_t(X_t)/Z(X_t). Shares sum to 1 on
    average. Zhan et al. use them unchanged; here, they are divided by their sum, so that a constant added to
    all rewards is also added to the estimate. If B_t is the share times the score minus the estimate, round t
    contributes B_t - sum_s h_t(X_s)/Z(X_s) B_s to the error. Rounds before `start`, which is 0 or 1, have no
    weight.
    """
    shape = scores.shape
    total, own = np.zeros(shape), np.zeros(shape)
    centre = np.zeros((len(logging.starts), shape[1]))
    batch, sizes = logging.batch, logging.sizes.astype(np.float64)
    sizes[0] -= start
    if logging.rows is not None:
        for k, policy in enumerate(policies):
            total[:, k], own[:, k] = _context_free_weights(logging.rows, batch, sizes, policy, kind)
    else:
        for b, low, high, k, weight in _weights(logging, policies, kind):
            total[low:high, k] += sizes[b] * weight
            end = int(logging.starts[b] + logging.sizes[b])
            mine = slice(max(low, int(logging.starts[b])), min(high, end))
            if mine.start < mine.stop:
                own[mine, k] = weight[mine.start - low : mine.stop - low]
    own[:start] = 0.0
    share = np.divide(own, total, out=np.zeros(shape), where=total > 0.0)
    sums = share.sum(axis=0)
    share /= np.where(sums > 0.0, sums, 1.0)
    estimate = np.einsum("tk,tk->k", share, scores)
    terms = share * (scores - estimate)
    ratio = np.divide(terms, total, out=np.zeros(shape), where=total > 0.0)
    if logging.rows is not None:
        for k, policy in enumerate(policies):
            centre[:, k] = _context_free_centre(logging.rows, policy, ratio[:, k], kind)
    else:
        for b, low, high, k, weight in _weights(logging, policies, kind):
            centre[b, k] += weight @ ratio[low:high, k]
    influence = terms - centre[batch]
    influence[:start] = 0.0
    return ContextualFit(estimate, influence, share)


def _weights(
    logging: LoggingPolicies, policies: Sequence[Policy], kind: str
) -> Iterator[tuple[int, int, int, int, FloatArray]]:
    """Weights of every batch at every context, in chunks of a batch, rows, a policy and weights."""
    for low, high in chunks(0, logging.n_rounds):
        squares = [policy.probabilities[low:high] ** 2 for policy in policies]
        for b in range(len(logging.starts)):
            propensities = logging.at(b, low, high)
            for k, square in enumerate(squares):
                yield b, low, high, k, stabiliser(kind, score_variance(square, propensities))


def _constant_squares(policy: Policy) -> FloatArray:
    return np.broadcast_to(policy.probabilities[0] ** 2, policy.probabilities.shape)


def _running_by_batch(logging: LoggingPolicies, squares: FloatArray) -> FloatArray:
    """For each round t of a batch b, the mean of v_b(X_s) over earlier rounds s; undefined for the first."""
    sums = np.zeros(logging.n_rounds)
    for b, (start, size) in enumerate(zip(logging.starts.tolist(), logging.sizes.tolist(), strict=True)):
        before = 0.0
        for low, high in chunks(0, start):
            before += float(score_variance(squares[low:high], logging.at(b, low, high)).sum())
        sums[start] = before
        for low, high in chunks(start, start + size - 1):
            running = np.cumsum(score_variance(squares[low:high], logging.at(b, low, high)))
            sums[low + 1 : high + 1] = before + running
            before += float(running[-1])
    return sums / np.maximum(np.arange(logging.n_rounds), 1)


def _running_context_free(logging: LoggingPolicies, squares: FloatArray, constant: bool) -> FloatArray:
    assert logging.rows is not None
    propensities = logging.rows[logging.batch]
    if constant:
        return score_variance(squares, propensities)
    means = np.zeros(squares.shape)
    np.cumsum(squares[:-1], axis=0, out=means[1:])
    means /= np.maximum(np.arange(logging.n_rounds), 1)[:, None]
    return score_variance(means, propensities)


def _context_free_weights(
    rows: FloatArray, batch: IntArray, sizes: FloatArray, policy: Policy, kind: str
) -> tuple[FloatArray, FloatArray]:
    """The total weight of all rounds at each round's context, and the round's own weight; shapes (T,)."""
    distinct, place = _distinct(policy)
    total = np.zeros(len(distinct))
    for block, weights in _blocks(rows, distinct, kind):
        total[block] = sizes @ weights
    squares = _constant_squares(policy) if policy.constant else policy.probabilities**2
    return total[place], stabiliser(kind, score_variance(squares, rows[batch]))


def _context_free_centre(rows: FloatArray, policy: Policy, ratio: FloatArray, kind: str) -> FloatArray:
    distinct, place = _distinct(policy)
    sums = np.bincount(place, weights=ratio, minlength=len(distinct))
    centre = np.zeros(len(rows))
    for block, weights in _blocks(rows, distinct, kind):
        centre += weights @ sums[block]
    return centre


def _distinct(policy: Policy) -> tuple[FloatArray, IntArray]:
    """The distinct rows of a policy, and the position of each round's row among them."""
    if policy.constant:
        return policy.probabilities[:1], np.zeros(len(policy.probabilities), dtype=np.int64)
    rows, place = np.unique(policy.probabilities, axis=0, return_inverse=True)
    return rows, place.reshape(-1).astype(np.int64)


def _blocks(rows: FloatArray, distinct: FloatArray, kind: str) -> Iterator[tuple[slice, FloatArray]]:
    """Weights, shape (B, n), of every batch for blocks of n distinct rows of a policy."""
    # Arms with propensity 0 are counted separately: in a matrix product, their infinite 1 / e times 0 would
    # be NaN.
    inverse = np.divide(1.0, rows, out=np.zeros(rows.shape), where=rows > 0.0)
    closed = (rows <= 0.0).astype(np.float64)
    width = max(1, _BLOCK // len(rows))
    for low in range(0, len(distinct), width):
        squares = distinct[low : low + width] ** 2
        variance = inverse @ squares.T
        if closed.any():
            variance[closed @ (squares > 0.0).T > 0.0] = np.inf
        yield slice(low, low + width), stabiliser(kind, variance)


NEAREST = 50
"""Smallest number of rounds in which policies differ that are used for a forecast, if there are as many."""


def contrast_weights(question: PolicyQuestion, logging: LoggingPolicies | None) -> FloatArray:
    """Weights for each policy's difference from the baseline, shape (T, k).

    If the design's policies are known (`logging`), v_t is computed for the design of round t at the contexts
    of earlier rounds. Otherwise, it is computed from the previous batch, or from the last 50 rounds in which
    the policies differ, whichever has more rounds. Until the policies have differed, v_t is that of uniform
    probabilities.
    """
    *policies, baseline = question.policies
    weights = np.empty((len(baseline.probabilities), len(policies)))
    for k, policy in enumerate(policies):
        squares, constant = squared_differences(policy, baseline)
        if logging is None:
            forecast = _from_earlier_rounds(question, squares)
        else:
            forecast = _at_earlier_contexts(logging, squares, constant=constant)
        # Under a uniform draw e = 1 / K, so the sum of d^2 / e over the sum of d^2 is K for every difference
        # d.
        weights[:, k] = 1.0 / np.sqrt(np.where(np.isnan(forecast), float(squares.shape[1]), forecast))
    return weights


def squared_differences(policy: Policy, baseline: Policy) -> tuple[FloatArray, bool]:
    """Squared differences between two policies, shape (T, K), and whether they are the same in all rounds."""
    if policy.constant and baseline.constant and len(policy.probabilities):
        row = (policy.probabilities[0] - baseline.probabilities[0]) ** 2
        return np.broadcast_to(row, policy.probabilities.shape), True
    return (policy.probabilities - baseline.probabilities) ** 2, False


def differs(question: PolicyQuestion) -> BoolArray:
    """The rounds in which each policy differs from the baseline, shape (T, k)."""
    *policies, baseline = question.policies
    return np.column_stack([squared_differences(one, baseline)[0].any(axis=1) for one in policies])


def earlier_ratios(value: FloatArray, size: FloatArray, place: IntArray) -> FloatArray:
    """Sum of values divided by sum of sizes, over the previous place or the last 50 rounds with a size.

    Shapes: value, size (T,), place (T,), which must not decrease; returns (T,). The ratio is NaN until there
    is a size. Rounds in the same place have the same ratio, computed from the rounds of the previous place
    and as many earlier rounds as are needed for 50 rounds with a size.
    """
    sized = np.flatnonzero(size > 0.0)
    starts = np.flatnonzero(np.diff(place, prepend=place[:1] - 1))
    stop = np.searchsorted(sized, starts)
    begin = np.minimum(np.append(0, stop[:-1]), stop - NEAREST)
    ends = np.column_stack([np.maximum(begin, 0), stop]).ravel()
    # Every second sum of reduceat lies between two stretches and is dropped; the appended 0 allows a stretch
    # to end at the last round.
    above, below = (np.add.reduceat(np.append(one[sized], 0.0), ends)[::2] for one in (value, size))
    found = np.divide(above, below, out=np.full(len(starts), np.nan), where=stop > 0)
    return np.repeat(found, np.diff(starts, append=len(place)))


def _from_earlier_rounds(question: PolicyQuestion, squares: FloatArray) -> FloatArray:
    """Forecasts from earlier rounds' propensities at their own contexts; squares (T, K), returns (T,)."""
    every = question.profile.propensities
    assert every is not None
    size = np.asarray(squares @ np.ones(squares.shape[1]), dtype=np.float64)
    return earlier_ratios(score_variance(squares, every), size, _place(question))


def _place(question: PolicyQuestion) -> IntArray:
    """The batch, unit's turn or round, within which no round is the past of another; shape (T,)."""
    profile = question.profile
    if profile.log.arrays.batch is not None:
        return profile.log.arrays.batch
    rounds = np.arange(profile.log.n_rounds)
    return turns(np.zeros_like(rounds), profile.units)[0] if profile.repeated_units else rounds


def _at_earlier_contexts(logging: LoggingPolicies, squares: FloatArray, *, constant: bool) -> FloatArray:
    """Forecasts for each round's own design at the contexts of earlier rounds; returns (T,)."""
    size = np.asarray(squares @ np.ones(squares.shape[1]), dtype=np.float64)
    value = mean_variance(logging, squares, constant=constant)
    if constant:
        before = size
    else:
        before = np.append(0.0, np.cumsum(size[:-1])) / np.maximum(np.arange(len(size)), 1)
    known = np.isfinite(value) | (np.arange(len(size)) > 0)
    found = np.full(len(size), np.nan)
    np.divide(value, before, out=found, where=known & (before > 0.0))
    return found
