"""What methods for policy values share: options, scores, and policies without an estimate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.inference.distributions.event_sums import event_sums
from adaptinf.inference.distributions.sample_shape import part_shapes
from adaptinf.inference.distributions.two_samples import FEW_EVENTS
from adaptinf.inference.policies.policy_question import UNOBSERVED, Policy, PolicyQuestion
from adaptinf.inference.policies.policy_weights import contrast_weights, score_variance
from adaptinf.inference.scores.inverse import indicators, origin_of, predictions_after
from adaptinf.inference.scores.means import effective_events, effective_size
from adaptinf.inference.scores.outcome_predictions import Outcome
from adaptinf.inference.scores.unit_errors import others_means
from adaptinf.inference.validity.lengths import student_length, typical
from adaptinf.inference.validity.policies import LoggingPolicies
from adaptinf.inference.validity.profile import LogProfile
from adaptinf.inference.validity.rare import (
    FewEvents,
    PartsLaw,
    law_of_parts,
    rare_cautions,
    without_interval,
)
from adaptinf.typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.policies.policy_question import Policy, PolicyQuestion
    from adaptinf.inference.validity.methods import Verdict
    from adaptinf.log import AdaptiveLog

    Gain = tuple[FloatArray, Policy]


COMMON = "combined"
"""Weights of a contrast: one weight per round, which both policies share."""
SHARED = ("uniform", COMMON)
"""Kinds of weights that all policies share."""
_LITTLE = 0.05
"""A side of a difference with a smaller share of the variance does not count for the degrees of freedom."""


@dataclass(frozen=True, slots=True, eq=False)
class PolicyOptions:
    """A valid way to estimate policy values from a log."""

    estimator: str
    weights: str | None
    contextual: bool
    logging: LoggingPolicies | None
    outcome: Outcome | None
    burn_in: int = 0
    stationary: bool = False
    defaulted: bool = False

    @property
    def label(self) -> str:
        """The name of the weights in tables."""
        if self.weights is None:
            return "1 / conditional sd"
        if self.weights in SHARED:
            return self.weights
        return f"{self.weights}, {'contextual' if self.contextual else 'non-contextual'}"


@dataclass(frozen=True, slots=True, eq=False)
class ScoreParts:
    """Components of the scores of k policies, with rewards and predictions relative to an origin.

    All arrays have shape (T, k). `plain` is the policy's mean of the predictions, `taken` its probability of
    the chosen arm, and `change` this probability times the residual.
    """

    plain: FloatArray
    change: FloatArray
    taken: FloatArray
    origin: float
    known: BoolArray | None = None
    """Rounds for which the outcome model had an earlier reward; None if these are all rounds from `start`."""


@dataclass(frozen=True, slots=True, eq=False)
class PolicyFit:
    """Estimates of k values, or of differences of values.

    Shapes: estimate (k,), covariance (k, k), df, ess, min_propensity (k,), rows, influence, share (T, k).

    `influence` is the contribution of each round to the error of an estimate, and `share` is the amount that
    one unit of the round's reward adds to the estimate.
    """

    estimate: FloatArray
    covariance: FloatArray
    df: FloatArray
    ess: FloatArray
    min_propensity: FloatArray
    rows: dict[str, FloatArray]
    influence: FloatArray
    share: FloatArray
    units: IntArray | None = None
    """Number of units on which each value is based, if errors are clustered by unit; shape (k,)."""
    events: FloatArray | None = None
    """Number of these units that have an event."""


def policy_fit(
    question: PolicyQuestion,
    estimate: FloatArray,
    covariance: FloatArray,
    influence: FloatArray,
    share: FloatArray,
    ess: FloatArray,
    rows: dict[str, FloatArray],
) -> PolicyFit:
    """A fit in which numbers that are not known are NaN.

    Shapes: estimate, ess (k,), covariance (k, k), influence, share (T, k).
    """
    smallest = np.array([_smallest(question.profile, one) for one in question.policies])
    gone, bare = (question.unobserved(fewest) >= UNOBSERVED for fewest in (1, 2))
    if question.contrast:
        smallest = np.minimum(smallest[:-1], smallest[-1])
        gone, bare = gone[:-1] | gone[-1], bare[:-1] | bare[-1]
    empty = np.where(gone | ~np.isfinite(estimate), np.nan, 0.0)
    vague = np.where(bare, np.nan, empty)
    return PolicyFit(
        estimate=estimate + empty,
        covariance=covariance + vague[:, None] + vague[None, :],
        df=policy_freedom(share),
        ess=ess,
        min_propensity=smallest,
        rows=rows,
        influence=influence,
        share=share,
    )


def policy_law(question: PolicyQuestion, terms: Sequence[str], fit: PolicyFit) -> PartsLaw:
    """Student's t or, if rewards are skewed, MOVER for rounds that raise and that lower an estimate."""
    profile = question.profile
    shapes = part_shapes(
        (fit.share < 0.0).astype(np.int64),
        fit.influence,
        np.abs(fit.share),
        profile.log.arrays.reward,
        2,
        profile.squared_skewness,
    )
    std_error = np.sqrt(np.diag(fit.covariance))
    if fit.units is not None:
        # Hall's transformation assumes independent rounds, so errors by unit use Student's t.
        told = rare_cautions(terms, np.full(len(terms), np.inf), shapes.expected)
        return replace(PartsLaw.student(fit.estimate, std_error, fit.covariance, fit.df), cautions=told)
    rate = profile.rare_rate
    worth = np.where(fit.ess > 0.0, effective_events(fit.ess, rate), np.inf)
    events = None
    if rate > 0.0 and (np.any(worth < FEW_EVENTS) or np.any(without_interval(shapes.uncommon))):
        events = FewEvents(event_sums(fit.share, profile.log.arrays.reward), worth)
    doubt = profile.skewness_doubt
    return law_of_parts(terms, shapes, fit.estimate, std_error, fit.covariance, fit.df, doubt, events)


def policy_freedom(share: FloatArray) -> FloatArray:
    """Degrees of freedom of the standard errors of values and their differences.

    Shapes: share (T, k), the amount that one unit of a round's residual adds to each estimate; returns (k,).

    With share c, the variance is estimated by the sum of squared residuals times w = c^2. If rewards are
    normal with a common variance, this sum has the mean and the variance of chi-squared with (sum w)^2 / sum
    w^2 degrees of freedom (Satterthwaite 1946), from which one is subtracted for the mean. For a policy that
    always chooses one arm, c is proportional to h / e in the arm's rounds. The rounds that raise and those
    that lower a difference are two samples, of which the one with fewer rounds determines the degrees of
    freedom, as for two arms. A sample that contributes less than a twentieth of the variance is ignored.
    """
    found = _fewer(share, 2) - 1.0
    return np.maximum(found, 0.0)


def difference_size(share: FloatArray) -> FloatArray:
    """Effective number of rewards on the smaller side of a difference; share (T, k); returns (k,).

    Rounds on one side raise the difference, and rounds on the other lower it; rounds in which the policies
    agree are on neither side.
    """
    return _fewer(share, 1)


def deciding_sides(share: FloatArray) -> list[tuple[FloatArray, BoolArray]]:
    """For each side, the shares of rewards that raise or lower estimates (T, k), and which are used (k,)."""
    sides = [np.maximum(sign * share, 0.0) for sign in (1.0, -1.0)]
    squares = [np.einsum("tk,tk->k", one, one) for one in sides]
    least = _LITTLE * (squares[0] + squares[1])
    return [(one, size > least) for one, size in zip(sides, squares, strict=True)]


def _fewer(share: FloatArray, power: int) -> FloatArray:
    """Effective size of the smaller side, from powers of the shares; 0 if there is none; shape (k,)."""
    sizes = [np.where(says, effective_size(one**power), np.inf) for one, says in deciding_sides(share)]
    found = np.minimum(*sizes)
    return np.where(np.isfinite(found), found, 0.0)


def score_parts(profile: LogProfile, policies: Sequence[Policy], outcome: Outcome | None) -> ScoreParts:
    """Components of the scores; without an outcome model, the origin is 0."""
    log, arrays = profile.log, profile.log.arrays
    rounds = np.arange(log.n_rounds)
    taken = np.column_stack([policy.probabilities[rounds, arrays.action] for policy in policies])
    if outcome is None:
        return ScoreParts(np.zeros(taken.shape), taken * arrays.reward[:, None], taken, 0.0)
    origin = origin_of(arrays.reward, outcome)
    above = arrays.reward - origin
    known, parts = None, _running_means(arrays.action, above, log.n_arms)
    if not isinstance(outcome.values, str):
        parts = iter([(slice(None), outcome.values - origin)])
    elif profile.repeated_units and profile.units is not None:
        chosen = indicators(arrays.action, np.arange(log.n_arms))
        predicted, known = others_means(chosen, above, profile.units)
        parts = iter([(slice(None), predicted)])
    plain = np.empty(taken.shape)
    for rows, predicted in parts:
        for column, policy in enumerate(policies):
            plain[rows, column] = (
                predicted @ policy.probabilities[0]
                if policy.constant
                else np.einsum("tk,tk->t", predicted, policy.probabilities[rows])
            )
        above[rows] -= predicted[np.arange(len(predicted)), arrays.action[rows]]
    return ScoreParts(plain, taken * above[:, None], taken, origin, known)


def _running_means(action: IntArray, reward: FloatArray, n_arms: int) -> Iterator[tuple[slice, FloatArray]]:
    """Running means of rewards by arm, in blocks of rounds; equal to `predictions`."""
    past = None
    for start in range(0, len(action), _BLOCK):
        rows = slice(start, start + _BLOCK)
        found, past = predictions_after(indicators(action[rows], np.arange(n_arms)), reward[rows], past)
        yield rows, found


def _smallest(profile: LogProfile, policy: Policy) -> float:
    """Smallest propensity, as far as it is known, of an arm that the policy can choose."""
    if profile.propensities is not None:
        return float(np.min(profile.propensities, where=policy.probabilities > 0.0, initial=1.0))
    assert profile.propensity is not None
    taken = policy.probabilities[np.arange(profile.log.n_rounds), profile.log.arrays.action] > 0.0
    return float(np.min(profile.propensity, where=taken, initial=1.0))


_BLOCK = 65_536


def policy_length(question: PolicyQuestion, verdict: Verdict) -> float:
    """Length based on propensities; for separate weights, a round's score variance replaces its forecast."""
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
    """The rounds' shares of the weight, (T,), with their policies, for each value or difference."""
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
    """Each round's share of the total weight, shape (T,), for a policy's own weights or uniform weights."""
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
    """Sums over rounds of the arms' gain^2 / propensity, and of the square of the gains' sum over arms.

    An arm's gain is the sum of shares times policies. If the first sum is computed from the chosen arms
    alone, it has the same mean.
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
    """Sum over arms of policy^2 / propensity, shape (T,); infinite if an arm could not be chosen."""
    every = log.arrays.propensities
    assert every is not None
    blocks = [slice(start, start + _BLOCK) for start in range(0, log.n_rounds, _BLOCK)]
    found = [score_variance(policy.probabilities[block] ** 2, every[block]) for block in blocks]
    return np.concatenate([np.zeros(0), *found])


def _batch_means(values: FloatArray, log: AdaptiveLog) -> FloatArray:
    """Means of the values over each round's batch, or the values themselves if there are no batches."""
    batch = log.arrays.batch
    if batch is None:
        return values
    code = batch - int(batch[0])
    count = np.bincount(code)
    return np.asarray((np.bincount(code, weights=values) / np.maximum(count, 1))[code], dtype=np.float64)
