"""The difference of two arms, from the fit of both, and what its table shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.inference.arms.circumstances import laws
from adaptinf.inference.arms.fit import ArmFit, fit_efficiency, tested, validity
from adaptinf.inference.arms.question import Asked, Choice, Question
from adaptinf.inference.distributions.references import NormalReference, Reference, StudentReference
from adaptinf.typing import FloatArray, Validity

if TYPE_CHECKING:
    from adaptinf.inference.arms.record import ArmMethod
    from adaptinf.inference.corrections.information import Correction


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """Difference of two arms, and what its table shows."""

    choice: Choice
    estimate: float
    std_error: float
    reference: Reference
    details: Mapping[str, FloatArray]
    notes: tuple[str, ...]
    cautions: tuple[str, ...] = ()
    validity: Validity = "asymptotic"
    correction: Correction | None = None
    efficiency_note: str = ""
    scores: Mapping[str, FloatArray] | None = None
    private: bool = False
    by_unit: bool = False


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
    efficiency, lost = fit_efficiency(question, fit.bound(method), np.array([std_error]))
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
    return laws.difference_reference(question, fit, kind, found[0], found[2])
