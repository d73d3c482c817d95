"""ALEE (adaptive linear estimating equations) for arm means, with weights that need no propensities.

References
----------
Ying, Khamaru, Zhang (2023), "Adaptive linear estimating equations".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.claims import first, said, sentence
from adaptinf.claims.arms import alee as claims
from adaptinf.inference.arms.arm_lengths import typical_arms
from adaptinf.inference.arms.arm_order import ORDER
from adaptinf.inference.arms.facts.arm_facts import ArmFacts
from adaptinf.inference.arms.fit import arm_labels, independent_rounds
from adaptinf.inference.arms.question import ArmFit, Asked, Choice, Question
from adaptinf.inference.arms.record import ArmMethod
from adaptinf.inference.validity.lengths import student_length, typical
from adaptinf.inference.validity.methods import Verdict
from adaptinf.inference.validity.profile import compared
from adaptinf.inference.validity.stationarity import STATED
from adaptinf.parameters import refuse
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.corrections.information import Correction

_EXPONENT = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class AleeMeans:
    """Solutions of the adaptive linear estimating equations, one for each arm.

    All arrays have shape (k,).
    """

    count: FloatArray
    estimate: FloatArray
    scale: FloatArray
    total: FloatArray
    squares: FloatArray

    def std_error(self, kind: str = "conservative") -> FloatArray:
        """Standard errors, shape (k,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            conservative = self.scale / self.total
        shrunk = conservative * np.sqrt(self.squares) if kind == "self-normalised" else conservative
        return np.asarray(shrunk, dtype=np.float64)

    @property
    def ess(self) -> FloatArray:
        """Effective sample sizes (sum w)^2 / sum w^2, shape (k,); 0 for arms without rewards."""
        return self.total**2 / np.where(self.squares > 0.0, self.squares, 1.0)


def allocation(x: ArrayLike, exponent: float = _EXPONENT) -> FloatArray:
    """Weight function f(x) = sqrt(b log(2)^b / (x log(2x)^(1 + b))).

    The integral of f^2 from 1 to z is 1 - (log 2 / log 2z)^b, as the substitution u = log 2x shows. Thus f^2
    integrates to 1 over [1, infinity). Moreover, f is decreasing.
    """
    ratio = np.asarray(x, dtype=np.float64)
    squared = exponent * math.log(2.0) ** exponent / (ratio * np.log(2.0 * ratio) ** (1.0 + exponent))
    return np.asarray(np.sqrt(squared), dtype=np.float64)


def alee_offset(n_rounds: int) -> float:
    """The offset s0 that is added to pull counts: e^2 log T, but at least e^2 log 2."""
    return math.exp(2.0) * math.log(max(n_rounds, 2))


def alee_weights(n_pulls: int, offset: float, exponent: float = _EXPONENT) -> FloatArray:
    """Weights for an arm's rewards in the order in which they were observed.

    Returns shape (n,).

    The pull count includes the pull to which the weight belongs. The count is known before that pull's
    reward, so the weights are predictable. Because f is decreasing, the sum of squares is a lower Riemann
    sum for every n:

        sum w^2 <= integral of f^2 from 1 to 1 + n/s0 = 1 - (log 2 / log(2 + 2n/s0))^b < 1.

    Counts of earlier pulls only would also be predictable, but the sum could then exceed 1.
    """
    problems = []
    if n_pulls < 0:
        problems.append(f"n_pulls must be at least 0, got {n_pulls}")
    if not (math.isfinite(offset) and offset > 0.0):
        problems.append(f"offset must be positive, got {offset!r}")
    if not (math.isfinite(exponent) and exponent > 0.0):
        problems.append(f"exponent must be positive, got {exponent!r}")
    refuse("ALEE weights", problems)
    return allocation(1.0 + np.arange(1.0, n_pulls + 1.0) / offset, exponent) / math.sqrt(offset)


def alee_means(
    action: IntArray, reward: FloatArray, codes: IntArray, offset: float | None = None
) -> AleeMeans:
    """Estimate arm means by adaptive linear estimating equations.

    Shapes: action (T,), reward (T,), codes (k,).

    The weighted errors of an arm are martingale differences whose conditional variances sum to sigma^2 sum
    w^2. The sum of w^2 tends to 1 as the number of the arm's pulls outgrows s0, although slowly (it is .76
    after 500 of 1,000 rounds). Therefore, (estimate - mean) sum w / sigma is asymptotically normal however
    rewards affected the choice of arms. Two arms are never pulled in the same round, so their errors are
    uncorrelated.

    Ying, Khamaru, Zhang (2023), "Adaptive linear estimating equations".
    """
    start = alee_offset(len(action)) if offset is None else offset
    moments = np.full((5, len(codes)), np.nan)
    for column, code in enumerate(codes):
        own = reward[action == code]
        weights = alee_weights(len(own), start)
        total = float(weights.sum())
        moments[0, column] = len(own)
        # Differences from one of the rewards are exactly 0 if all rewards are equal, so constant rewards have
        # a standard error of exactly 0.
        away = own - own[:1]
        if len(own) > 0:
            moments[1, column] = own[0] + float(weights @ away) / total
        if len(own) > 1:
            away -= away.sum() / len(own)
            moments[2, column] = math.sqrt(float(away @ away) / (len(own) - 1))
        moments[3:, column] = total, float(weights @ weights)
    return AleeMeans(*moments)


class AleeFacts(ArmFacts):
    """The facts on which claims about ALEE depend, for one kind of standard error."""

    def __init__(
        self, question: Question, arm_error: str | None, fit: ArmFit | None = None, test: str = ""
    ) -> None:
        super().__init__(question, fit, test)
        self.conservative = arm_error == "conservative"

    @property
    def self_normalised(self) -> bool:
        """Whether the self-normalised standard errors, which are smaller, are reported."""
        return not self.conservative

    @property
    def propensities_unused(self) -> bool:
        """Whether propensities vary, possibly because of earlier rewards or contexts that were not logged."""
        return bool(not self.profile.has_contexts and self.profile.varying_propensities)

    @property
    def may_not_adapt(self) -> dict[str, str]:
        """The test that is valid if nothing adapted, for a log that does not show whether anything did."""
        test = "Welch" if self.question.contrast else "t"
        return {"test": test} if self.profile.may_not_adapt else {}


def _assess(question: Question) -> list[Verdict]:
    """Verdicts with conservative and with self-normalised standard errors."""
    call: dict[str, Any] = {"estimator": "alee", **STATED}
    short = {**call, "arm_error": "self-normalised"}
    name = "alee with self-normalised errors"
    facts, other = AleeFacts(question, "conservative"), AleeFacts(question, "self-normalised")
    if refusal := first(claims.NEEDS, facts):
        return [
            Verdict("alee", "not valid", ORDER["alee"], call, refusal),
            Verdict(name, "not valid", ORDER["alee self-normalised: refused"], short, refusal),
        ]
    assumes = tuple(said(claims.ASSUMES, facts))
    kept, shorter = (sentence(said(claims.REASONS, one)) for one in (facts, other))
    warning = sentence(said(claims.ROW_CAUTIONS, other))
    rank = ORDER["alee self-normalised"]
    return [
        Verdict("alee", "asymptotic", ORDER["alee"], call, kept, assumes),
        Verdict(name, "asymptotic", rank, short, shorter, assumes, warning, offered=False),
    ]


def _fit(question: Question, choice: Choice, asked: Asked) -> ArmFit:
    arrays = question.profile.log.arrays
    means = alee_means(arrays.action, arrays.reward, question.codes)
    return ArmFit(
        choice=choice,
        labels=arm_labels(question),
        estimate=means.estimate,
        covariance=np.diag(means.std_error(asked.arm_error) ** 2),
        pulls=means.count,
        successes=compared(question).successes[question.codes],
        ess=means.ess,
        min_propensity=np.full(len(question.codes), np.nan),
        arm_error=asked.arm_error,
        stationary=asked.stationary,
        told=tuple(said((claims.UNLESS_NOTHING_ADAPTED,), AleeFacts(question, asked.arm_error))),
    )


def _facts(question: Question, fit: ArmFit, test: str, correction: Correction | None) -> AleeFacts:
    """The facts on which claims about a fit depend."""
    return AleeFacts(question, fit.arm_error, fit, test)


def _length(question: Question, verdict: Verdict) -> float:
    """Expected length of intervals, computed from pull counts alone."""
    _, count = typical_arms(question)
    offset = alee_offset(question.profile.log.n_rounds)
    short = verdict.arguments.get("arm_error") == "self-normalised"
    error = np.full(len(count), np.inf)
    for place, pulls in enumerate(count):
        weights = alee_weights(int(pulls), offset)
        if pulls > 1:
            size = math.sqrt(float(weights @ weights)) if short else 1.0
            error[place] = question.profile.pooled_std * size / float(weights.sum())
    return typical(student_length(error, np.inf), difference=question.contrast)


ALEE = ArmMethod(
    name="alee",
    assess=_assess,
    settle=partial(independent_rounds, "alee"),
    fit=_fit,
    length=_length,
    claims=claims.FIT,
    facts=_facts,
    options=("arm_error",),
    no_weights="ALEE",
    bound="shares",
)
