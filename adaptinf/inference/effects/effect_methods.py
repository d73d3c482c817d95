"""The record of a method for effects within groups, the output of the method, and the table of results."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.claims import Claim, Part, Said, under_table
from adaptinf.claims.effects import rounds_and_weights as claims
from adaptinf.errors import AdaptinfWarning
from adaptinf.inference.distributions.references import Reference
from adaptinf.inference.effects.comparisons import GroupResults
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.results.log_facts import LogFacts
from adaptinf.inference.validity.methods import MethodRecord, Question
from adaptinf.inference.validity.order import Order
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from adaptinf.inference.effects.group_question import GroupQuestion


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class GroupFit:
    """Effects in G groups; estimate and std_error (G,); covariance (G, G) if errors are clustered by unit."""

    estimate: FloatArray
    std_error: FloatArray
    reference: Reference
    details: Mapping[str, FloatArray]
    facts: Any
    """The facts on which the method's claims depend."""
    weights: str | None = None
    covariance: FloatArray | None = None
    terms: tuple[str, ...] | None = None
    """Terms of this fit, if they differ from those of the question."""
    groups: Sequence[Any] | None = None
    """Groups of this fit, if they differ from those of the question."""
    private: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class EffectMethod(MethodRecord[Question]):
    """A method of inference for effects."""

    claims: tuple[Claim | Part, ...] = ()
    """The claims that a fit may state, in order: assumptions, notes and cautions."""


def effect(question: Any) -> Said:
    """The statement of which effect is estimated, for a question with a treatment and a control."""
    return claims.EFFECT(treatment=question.treatment, control=question.control)


def group_results(
    question: GroupQuestion, method: EffectMethod[GroupQuestion], fit: GroupFit, null: float
) -> GroupResults:
    """Effects of the groups as a table."""
    treatment, control, groups = question.treatment, question.control, fit.groups
    by_unit = fit.covariance is not None
    covariance = fit.covariance if by_unit else np.diag(fit.std_error**2)
    if groups is None:
        groups = [label[0] if len(label) == 1 else label for label in question.labels]
    warn_of_tiny("CATE.fit", fit.facts.tiny_propensities)
    notes, cautions = under_table(method.claims, fit.facts)
    return GroupResults(
        model="CATE",
        estimands=tuple(
            Estimand("cate", treatment=treatment, control=control, group=group) for group in groups
        ),
        terms=question.terms if fit.terms is None else fit.terms,
        estimate=fit.estimate,
        std_error=fit.std_error,
        covariance=None if fit.private else covariance,
        reference=fit.reference,
        estimator=fit.facts.estimator,
        facts=LogFacts.of(question.profile.log, by_unit=by_unit, private=fit.private),
        validity="asymptotic",
        weights=fit.weights,
        null=null,
        details=fit.details,
        notes=(effect(question), *notes),
        cautions=tuple(cautions),
        private=fit.private,
    )


def warn_of_tiny(subject: str, tiny: Sequence[Mapping[str, Any]]) -> None:
    """Warn about terms with such small propensities that a few rewards dominate the estimates."""
    if tiny:
        told = "; ".join(claims.TINY_PROPENSITIES(**one) for one in tiny)
        warnings.warn(f"{subject}: {told}.", AdaptinfWarning, stacklevel=4)


GROUPS = Order(
    [
        # Means of randomised rounds need no model, no weights and no propensities.
        "difference-in-means",
        # Over all rounds of a phase, differences in means additionally assume that propensities are constant
        # within groups.
        "difference-in-means, pooled",
        # Sums permit only these contrasts, which are ordered among themselves as for `Contrast`.
        "contrasts of sums",
        # Weights computed from propensities make the rounds of a unit dependent; uniform weights do not.
        "uniform weights, by unit",
        # A common weight for both arms keeps the variance even and accounts for drift that both share.
        "combined weights",
        "combined weights, by unit",
        "uniform weights",
        # Separate weights for each arm require constant means.
        "sqrt weights",
        "sqrt weights, by unit",
        # Privacy noise makes these intervals long; they are for readers who may see nothing else.
        "released",
    ]
)
"""Methods for effects by group, in the order in which they are recommended."""
PROJECTIONS = Order(
    [
        # The default is combined weights if they cannot change the estimand or make a unit's rounds
        # dependent, and uniform weights otherwise.
        "weights by default",
        "uniform weights",
        "combined weights",
        # If contexts affected the choice, these weights give contexts more or less influence according to
        # their propensities.
        "two-point weights",
    ]
)
"""Methods for projections of the effect on covariates, in the order in which they are recommended."""
