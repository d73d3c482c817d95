"""Tests of a fit by a method: what stands under its table, its validity, and the difference of two arms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adaptinf.claims import under_table
from adaptinf.errors import InvalidForLog
from adaptinf.inference.arms.arm_fit import ArmFit, Difference, Shown
from adaptinf.inference.arms.data import arm_laws
from adaptinf.inference.arms.fit import fit_efficiency, is_skewed
from adaptinf.inference.arms.question import Asked, Question
from adaptinf.inference.distributions.references import NormalReference, Reference, StudentReference
from adaptinf.inference.distributions.two_samples import FEW_EVENTS
from adaptinf.inference.validity.rare import CAUTIOUS
from adaptinf.typing import FloatArray, Validity

if TYPE_CHECKING:
    from adaptinf.inference.arms.record import ArmMethod
    from adaptinf.inference.corrections.information import Correction


def _remarkable(question: Question, fit: ArmFit) -> bool:
    """Whether outcomes are rare, or rewards skewed, so that something is to be said of them."""
    uncommon = question.profile.uncommon[question.codes]
    if (uncommon < CAUTIOUS).any() or is_skewed(question, fit):
        return True
    worth = uncommon * np.maximum(fit.ess / np.maximum(fit.pulls, 1.0), 1e-9)
    return bool((worth < FEW_EVENTS).any())


def tested(question: Question, method: ArmMethod, fit: ArmFit, asked: Asked) -> tuple[ArmFit, Shown]:
    """The fit that tests rest on, and the kind of test with what is to be said of it."""
    correction = question.profile.correction_chosen_from(asked.chosen_from) if fit.naive else None
    if asked.chosen_from != "actions" and correction is None:
        reason = question.profile.no_correction if fit.naive else f"{fit.choice.estimator} has none"
        raise InvalidForLog(
            f"chosen_from={asked.chosen_from!r}",
            f"it belongs to corrected columns, and {reason}",
            ["estimator='sample-mean', for a log with a pure reward-level guarantee"],
        )
    kind = method.resolve_test(question, fit, asked.test, corrected=correction is not None)
    told, warned = under_table(method.claims, method.facts(question, fit, kind, correction))
    notes = [*fit.told, *told]
    unvarying = arm_laws.unvarying(question, fit, kind) if (fit.std_error == 0.0).any() else []
    cautions = [*fit.warned, *warned, *unvarying]
    if kind not in ("exact", "few") and (kind == "hall" or _remarkable(question, fit)):
        notes += arm_laws.shape_notes(question, fit, kind)
        cautions += arm_laws.shape_cautions(question, fit, kind)
        fit = arm_laws.without_rare(question, fit)
    return fit, Shown(kind, correction, tuple(notes), tuple(cautions))


def bound_of(method: ArmMethod, fit: ArmFit) -> str:
    """What the least possible variance rests on; empty where errors are by unit, of which it is none."""
    return method.bound if fit.by_unit is None else ""


def validity(
    question: Question, method: ArmMethod, kind: str, correction: Correction | None, reference: Reference
) -> Validity:
    """How valid the uncorrected numbers are."""
    if not method.holds(question, kind, correction):
        return "not valid"
    return "exact" if reference.exact else "asymptotic"


def difference(
    question: Question, method: ArmMethod, fit: ArmFit, asked: Asked, keep_scores: bool
) -> Difference:
    """The first arm's mean minus the second's."""
    fit, shown = tested(question, method, fit, asked)
    kind, correction = shown.kind, shown.correction
    difference, std_error, df = fit.difference(0, 1)
    rows = method.contributions(question, fit) if keep_scores else None
    if rows is not None:
        own = {name: part for name, part in rows.items() if name.startswith("influence")}
        rows = {**rows, **{name: part[:, :1] - part[:, 1:] for name, part in own.items()}}
    reference = difference_reference(question, fit, kind, np.array([difference, std_error, df]))
    efficiency, lost = fit_efficiency(question, bound_of(method, fit), np.array([std_error]))
    details = {
        "pulls_treatment": fit.pulls[:1],
        "pulls_control": fit.pulls[1:],
        "ess": fit.ess.min(keepdims=True),
        "min_propensity": fit.min_propensity.min(keepdims=True),
        **efficiency,
    }
    return Difference(
        choice=fit.choice,
        estimate=difference,
        std_error=std_error,
        reference=reference,
        details=details,
        notes=shown.notes,
        cautions=shown.cautions,
        validity=validity(question, method, kind, correction, reference),
        correction=correction,
        efficiency_note=lost,
        scores=rows,
        by_unit=fit.by_unit is not None,
    )


def difference_reference(question: Question, fit: ArmFit, kind: str, found: FloatArray) -> Reference:
    """Distribution of a difference; found (3,), the difference, its standard error and degrees of freedom."""
    if kind in ("t", "normal"):
        return StudentReference(*found[:, None]) if kind == "t" else NormalReference(*found[:2, None])
    return arm_laws.difference_reference(question, fit, kind, found[0], found[2])
