"""From the numbers of a method to `GroupResults`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adaptinf.inference.distributions.base import Reference
from adaptinf.inference.effects.comparisons import GroupResults
from adaptinf.inference.effects.question import GroupQuestion
from adaptinf.inference.results.base import Estimand, LogFacts
from adaptinf.typing import FloatArray

__all__ = ["group_results"]


def group_results(
    question: GroupQuestion,
    estimator: str,
    estimate: FloatArray,
    std_error: FloatArray,
    reference: Reference,
    *,
    null: float,
    details: Mapping[str, FloatArray],
    notes: Sequence[str],
    weights: str | None = None,
    terms: tuple[str, ...] | None = None,
    groups: Sequence[Any] | None = None,
    private: bool = False,
) -> GroupResults:
    """Effects of the groups as a table; estimate, std_error (G,)."""
    treatment, control = question.treatment, question.control
    if groups is None:
        groups = [label[0] if len(label) == 1 else label for label in question.labels]
    return GroupResults(
        model="CATE",
        estimands=tuple(
            Estimand("cate", treatment=treatment, control=control, group=group) for group in groups
        ),
        terms=question.terms if terms is None else terms,
        estimate=estimate,
        std_error=std_error,
        covariance=None if private else np.diag(std_error**2),
        reference=reference,
        estimator=estimator,
        facts=LogFacts.of(question.profile.log),
        validity="asymptotic",
        weights=weights,
        null=null,
        details=details,
        notes=(f"Effect of {treatment!r} over {control!r}.", *notes),
        private=private,
    )
