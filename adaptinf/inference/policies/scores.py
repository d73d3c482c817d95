"""What the methods of policy values share: options, scores, and which policies have no estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adaptinf.inference.policies.inputs import Policy
from adaptinf.inference.policies.question import UNOBSERVED, PolicyQuestion
from adaptinf.inference.scores.inverse import indicators, running_means
from adaptinf.inference.scores.outcome_models import Outcome
from adaptinf.inference.validity.methods import UNSETTLED, refusal
from adaptinf.inference.validity.policies import LoggingPolicies
from adaptinf.inference.validity.profile import SMALL
from adaptinf.inference.validity.verdicts import Verdict
from adaptinf.log import AdaptiveLog
from adaptinf.typing import FloatArray

_DRAWN = (
    "contexts and potential rewards are drawn afresh in every round; the policy was fixed without this log"
)
_SMALL = "small propensities: at moderate numbers of rounds normal intervals may be too short"


@dataclass(frozen=True, slots=True, eq=False)
class PolicyOptions:
    """A valid way to estimate policy values from a log."""

    estimator: str
    weights: str | None
    contextual: bool
    logging: LoggingPolicies | None
    outcome: Outcome | None
    burn_in: int = 0
    defaulted: bool = False

    @property
    def label(self) -> str:
        """Weights in words, for a table."""
        if self.weights is None:
            return "1 / conditional sd"
        if self.weights == "uniform":
            return "uniform"
        return f"{self.weights}, {'contextual' if self.contextual else 'non-contextual'}"


@dataclass(frozen=True, slots=True, eq=False)
class PolicyFit:
    """Estimates of k values; estimate (k,), covariance (k, k), ess, min_propensity (k,), rows (T, k)."""

    estimate: FloatArray
    covariance: FloatArray
    ess: FloatArray
    min_propensity: FloatArray
    rows: dict[str, FloatArray]


def policy_verdict(
    question: PolicyQuestion,
    name: str,
    rank: float,
    arguments: Mapping[str, Any],
    reason: str,
    assumes: str = "",
    *,
    uniform: bool = False,
) -> Verdict:
    """What one way to weight is worth; all but uniform weights need the design's policies."""
    profile = question.profile
    call = dict(arguments) if question.snapshots is None else {**arguments, "snapshots": question.snapshots}
    refused = refusal(question.check_support, name) or refusal(question.check_propensities, name)
    if not refused and not (uniform and question.snapshots is None):
        refused = refusal(question.check_logging, name)
    if refused:
        return Verdict(name, "not valid", rank, call, refused)
    warning = ""
    if uniform and profile.moves:
        warning = UNSETTLED
    elif question.check_propensities(name).min(initial=1.0) < SMALL:
        warning = _SMALL
    estimated = "propensities are estimates, whose error is ignored" if profile.estimated else ""
    rests = "; ".join(part for part in (_DRAWN, assumes, estimated) if part)
    return Verdict(name, "asymptotic", rank, call, reason, rests, warning)


def policy_fit(
    question: PolicyQuestion,
    estimate: FloatArray,
    covariance: FloatArray,
    ess: FloatArray,
    rows: dict[str, FloatArray],
) -> PolicyFit:
    """A fit without the numbers that nothing is known of.

    Shapes: estimate (k,), covariance (k, k), ess (k,).
    """
    smallest = np.array([_smallest(question.profile.log, one) for one in question.policies])
    gone, bare = (question.unobserved(fewest) >= UNOBSERVED for fewest in (1, 2))
    if question.contrast:
        smallest = np.minimum(smallest[:-1], smallest[-1])
        gone, bare = gone[:-1] | gone[-1], bare[:-1] | bare[-1]
    empty = np.where(gone | ~np.isfinite(estimate), np.nan, 0.0)
    vague = np.where(bare, np.nan, empty)
    return PolicyFit(
        estimate=estimate + empty,
        covariance=covariance + vague[:, None] + vague[None, :],
        ess=ess,
        min_propensity=smallest,
        rows=rows,
    )


def score_parts(
    log: AdaptiveLog, policies: Sequence[Policy], outcome: Outcome | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Policy means of the predictions, policy probabilities times residuals, and those probabilities."""
    arrays = log.arrays
    rounds = np.arange(log.n_rounds)
    taken = np.column_stack([policy.probabilities[rounds, arrays.action] for policy in policies])
    if outcome is None:
        return np.zeros(taken.shape), taken * arrays.reward[:, None], taken
    predicted = (
        running_means(indicators(arrays.action, np.arange(log.n_arms)), arrays.reward)
        if isinstance(outcome.values, str)
        else outcome.values
    )
    plain = np.column_stack(
        [
            predicted @ policy.probabilities[0]
            if policy.constant
            else np.einsum("tk,tk->t", predicted, policy.probabilities)
            for policy in policies
        ]
    )
    residual = arrays.reward - predicted[rounds, arrays.action]
    return plain, taken * residual[:, None], taken


def _smallest(log: AdaptiveLog, policy: Policy) -> float:
    """Smallest propensity, as far as the log tells, of an arm that the policy takes."""
    arrays = log.arrays
    if arrays.propensities is not None:
        return float(np.min(arrays.propensities, where=policy.probabilities > 0.0, initial=1.0))
    assert arrays.propensity is not None
    taken = policy.probabilities[np.arange(log.n_rounds), arrays.action] > 0.0
    return float(np.min(arrays.propensity, where=taken, initial=1.0))
