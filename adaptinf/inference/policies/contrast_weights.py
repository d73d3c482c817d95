"""One weight a round for both policies of a contrast, fixed before the round's context is seen.

With d the difference of two policies, the difference of their scores has, given the past, a variance near
that of the rewards times

    v_t = E sum over arms a of d(X, a)^2 / e_t(X, a),

and the weight is v_t^(-1/2). What moves the rewards of all arms in a round counts sum_a d(X, a) = 0 times,
whatever the weight. A log lacks e_t at contexts that were not drawn, and the weight may not follow the one
that was: v_t is forecast from past rounds, as the mean of d^2 / e over that of d^2. Contexts being alike over
the rounds, the latter is one constant in the long run; divided by it a forecast does not move with how often
the policies happened to differ, and stays between the smallest and the largest 1 / e.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adaptinf.inference.inputs.rounds import turns
from adaptinf.inference.policies.weights import mean_variance, score_variance
from adaptinf.typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.policies.inputs import Policy
    from adaptinf.inference.policies.question import PolicyQuestion
    from adaptinf.inference.validity.policies import LoggingPolicies

NEAREST = 50
"""Rounds in which the policies differ that a forecast rests on, or more where the batch before has more."""


def contrast_weights(question: PolicyQuestion, logging: LoggingPolicies | None) -> FloatArray:
    """Weights of each policy's difference from the baseline, shape (T, k).

    Where the design's policies are known (`logging`), v_t is what the design of round t has at the contexts
    of earlier rounds; else it is that of the batch before, or of the last 50 rounds in which the policies
    differ, whichever are more. Before they have differed it is that of a fair draw.
    """
    *policies, baseline = question.policies
    weights = np.empty((len(baseline.probabilities), len(policies)))
    for k, policy in enumerate(policies):
        squares, constant = squared_differences(policy, baseline)
        if logging is None:
            forecast = _from_earlier_rounds(question, squares)
        else:
            forecast = _at_earlier_contexts(logging, squares, constant=constant)
        weights[:, k] = 1.0 / np.sqrt(np.where(np.isnan(forecast), float(squares.shape[1]), forecast))
    return weights


def squared_differences(policy: Policy, baseline: Policy) -> tuple[FloatArray, bool]:
    """Squared differences of two policies, shape (T, K), and whether they are the same in all rounds."""
    if policy.constant and baseline.constant and len(policy.probabilities):
        row = (policy.probabilities[0] - baseline.probabilities[0]) ** 2
        return np.broadcast_to(row, policy.probabilities.shape), True
    return (policy.probabilities - baseline.probabilities) ** 2, False


def differs(question: PolicyQuestion) -> BoolArray:
    """Rounds in which each policy differs from the baseline; shape (T, k)."""
    *policies, baseline = question.policies
    return np.column_stack([squared_differences(one, baseline)[0].any(axis=1) for one in policies])


def earlier_ratios(value: FloatArray, size: FloatArray, place: IntArray) -> FloatArray:
    """Sum of the values over that of the sizes, over the place before or the 50 last rounds with a size.

    Shapes: value, size (T,), place (T,), which does not fall; returns (T,), NaN before there is a size.

    Rounds of one place have the same ratio, of rounds before it: those of the last place, and as many before
    them as make 50 with a size.
    """
    sized = np.flatnonzero(size > 0.0)
    starts = np.flatnonzero(np.diff(place, prepend=place[:1] - 1))
    stop = np.searchsorted(sized, starts)
    begin = np.minimum(np.append(0, stop[:-1]), stop - NEAREST)
    ends = np.column_stack([np.maximum(begin, 0), stop]).ravel()
    above, below = (np.add.reduceat(np.append(one[sized], 0.0), ends)[::2] for one in (value, size))
    found = np.divide(above, below, out=np.full(len(starts), np.nan), where=stop > 0)
    return np.repeat(found, np.diff(starts, append=len(place)))


def _from_earlier_rounds(question: PolicyQuestion, squares: FloatArray) -> FloatArray:
    """Forecasts by the propensities of earlier rounds at their own contexts; squares (T, K), returns (T,)."""
    every = question.profile.propensities
    assert every is not None
    size = np.asarray(squares @ np.ones(squares.shape[1]), dtype=np.float64)
    return earlier_ratios(score_variance(squares, every), size, _place(question))


def _place(question: PolicyQuestion) -> IntArray:
    """Batches, or turns of units, or rounds; no round of one is the past of another; shape (T,)."""
    profile = question.profile
    if profile.log.arrays.batch is not None:
        return profile.log.arrays.batch
    rounds = np.arange(profile.log.n_rounds)
    return turns(np.zeros_like(rounds), profile.units)[0] if profile.repeated_units else rounds


def _at_earlier_contexts(logging: LoggingPolicies, squares: FloatArray, *, constant: bool) -> FloatArray:
    """The same ratio for each round's own design, at the contexts of earlier rounds; returns (T,)."""
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
