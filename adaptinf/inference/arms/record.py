"""The record of a method for arm means: one per file; `METHODS` lists them."""

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
    """False, for a method that has no intervals for arms with too few outcomes."""
    return False


def always(question: Question, verdict: Verdict) -> bool:
    """True, for a method whose intervals do not depend on how rare outcomes are."""
    return True


@dataclass(frozen=True, slots=True, eq=False)
class ArmMethod(MethodRecord[Question]):
    """One method of inference for arm means, their differences, or both."""

    settle: Callable[[Question, Asked], Choice]
    """Completes the request, or raises `Refused`."""
    claims: tuple[Claim | Part, ...] = arm_fits.FIT
    """Claims that a fit may state, in order: assumptions, notes and cautions."""
    facts: Callable[[Question, ArmFit, str, Correction | None], ArmFacts] = fit_facts
    """The facts used by these claims."""
    holds: Callable[[Question, str, Correction | None], bool] = holds_always
    """Whether the uncorrected output of a fit is valid."""
    of_counts: Callable[[Question, Verdict], bool] = never
    """Whether a valid variant has intervals for arms with too few outcomes for the usual intervals."""
    resolve_test: Callable[..., str] = normal_test
    """The test that a fit uses: "normal", "t", "exact" or "few" (exact tests for few events)."""
    rows: Callable[[Question, ArmFit], Mapping[str, FloatArray]] = residual_rows
    """The contributions of rounds."""
    events: Callable[[Question, ArmFit], EventSums | None] | None = None
    """Sums of the uncommon rewards behind the means, or behind a difference, if rare rewards are counted."""
    options: tuple[str, ...] = ()
    """Arguments of `fit` that the method accepts, beyond the test."""
    implied_by: tuple[str, ...] = ()
    """Options and tests that imply this method if no estimator is named."""
    no_weights: str = ""
    """The name of the method in a refusal of weights; empty if the method accepts weights."""
    contrast_only: bool = False
    """Whether it estimates only differences; `fit` then returns a `Difference` and chooses its own test."""
    baseline: bool = False
    """Whether the method also runs when it is not valid, as a naive baseline."""
    takes_gaps: bool = False
    """Whether the method can handle rewards missing at random."""
    takes_sums: bool = False
    """Whether sums by batch and arm are sufficient for the method."""
    pairs: bool = False
    """Whether differences between a table's arms are those of `Contrast`."""
    bound: Literal["", "shares", "propensities"] = ""
    """The basis of the smallest possible variance; empty if errors ignore adaptivity."""

    def contributions(self, question: Question, fit: ArmFit) -> Mapping[str, FloatArray]:
        """Contributions to estimates from each round, and from each unit with several rounds."""
        return self.rows(question, fit) if fit.kept is None else fit.kept
