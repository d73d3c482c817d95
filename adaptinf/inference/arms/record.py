"""The record of a method for arm means; each file defines one method, and `METHODS` lists them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from adaptinf.claims import Claim, Part
from adaptinf.claims.arms import arm_fits
from adaptinf.inference.arms.facts.arm_facts import ArmFacts
from adaptinf.inference.arms.fit import fit_facts, holds_always, normal_test, residual_rows
from adaptinf.inference.arms.question import ArmFit, Asked, Choice, Question
from adaptinf.inference.validity.methods import MethodRecord, Verdict
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from adaptinf.inference.corrections.information import Correction
    from adaptinf.inference.distributions.event_sums import EventSums


def never(question: Question, verdict: Verdict) -> bool:
    """False, for methods that give no interval for arms with too few uncommon outcomes."""
    return False


def always(question: Question, verdict: Verdict) -> bool:
    """True, for methods whose intervals do not depend on how rare outcomes are."""
    return True


@dataclass(frozen=True, slots=True, eq=False)
class ArmMethod(MethodRecord[Question]):
    """A method of inference for arm means, for their differences, or for both."""

    settle: Callable[[Question, Asked], Choice]
    """Completes the request with defaults, or raises `Refused`."""
    claims: tuple[Claim | Part, ...] = arm_fits.FIT
    """Claims that a fit may state, in order: assumptions, notes and cautions."""
    facts: Callable[[Question, ArmFit, str, Correction | None], ArmFacts] = fit_facts
    """The facts on which these claims depend."""
    holds: Callable[[Question, str, Correction | None], bool] = holds_always
    """Whether the uncorrected p-values and intervals of a fit are valid."""
    of_counts: Callable[[Question, Verdict], bool] = never
    """Whether a valid variant gives intervals for arms with too few uncommon outcomes for the usual ones."""
    resolve_test: Callable[..., str] = normal_test
    """Selects the test of a fit: "normal", "t", "exact" or "few" (exact tests for few events)."""
    rows: Callable[[Question, ArmFit], Mapping[str, FloatArray]] = residual_rows
    """Computes the contribution of each round to the errors."""
    events: Callable[[Question, ArmFit], EventSums | None] | None = None
    """Sums of uncommon rewards from which means, or a difference, are computed, if these are counted."""
    options: tuple[str, ...] = ()
    """Arguments of `fit`, besides the test, that the method accepts."""
    implied_by: tuple[str, ...] = ()
    """Options and tests that imply this method if no estimator is named."""
    no_weights: str = ""
    """The name of the method in a refusal of weights; empty if the method accepts weights."""
    contrast_only: bool = False
    """Whether the method estimates only differences; its `fit` then selects the test."""
    baseline: bool = False
    """Whether the method also runs when it is not valid, as a naive baseline."""
    takes_gaps: bool = False
    """Whether the method allows for rewards that are missing at random."""
    takes_sums: bool = False
    """Whether sums by batch and arm are sufficient for the method."""
    pairs: bool = False
    """Whether differences between the arms of a table are computed by `Contrast`."""
    bound: Literal["", "shares", "propensities"] = ""
    """The basis of the smallest possible variance; empty if errors ignore adaptivity."""

    def contributions(self, question: Question, fit: ArmFit) -> Mapping[str, FloatArray]:
        """Contribution of each round, or of each unit with several rounds, to the estimates' errors."""
        return self.rows(question, fit) if fit.kept is None else fit.kept
