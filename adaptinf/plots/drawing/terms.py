"""What is drawn, by name and by term: which ones, what they are called, and their true values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.inference.results.base import Results
from adaptinf.parameters import number_array
from adaptinf.plots.drawing.style import arm_label
from adaptinf.texts import absent
from adaptinf.typing import FloatArray

ESTIMANDS = {
    "arm-mean": "mean reward",
    "bin-mean": "mean reward in the bin",
    "policy-value": "mean reward of the policy",
    "coefficient": "coefficient",
    "projection": "coefficient of the effect",
    "contrast": "difference in mean reward",
    "lift": "relative lift",
    "ratio": "ratio of means",
    "ratio-contrast": "difference of ratios of means",
    "ratio-lift": "relative lift of the ratio",
    "cate": "difference in mean reward",
    "interaction": "difference of effects",
    "policy-contrast": "difference in mean reward",
}
MEANS = {"arm-mean", "bin-mean", "policy-value"}


def by_name(
    name: str, given: Any, kinds: tuple[type, ...], known: str | None = None
) -> tuple[dict[str, Any], list[str]]:
    """What is to be drawn by name, and what is wrong with it; `known` says what the kinds are."""
    if isinstance(given, kinds):
        return {"": given}, []
    if known is None:
        known = " or ".join(kind.__name__ for kind in kinds)
    if not isinstance(given, Mapping) or not given:
        return {}, [f"{name} must be {known}, or a dict of them by name, got {given!r:.60}"]
    problems = [
        f"{name}[{key!r}] must be {known}, got {value!r:.60}"
        for key, value in given.items()
        if not isinstance(value, kinds)
    ]
    return {str(key): value for key, value in given.items() if isinstance(value, kinds)}, problems


def term_label(one: Results, term: str) -> str:
    """What a term is called: means of arms by their arm, others as they are."""
    estimand = one.estimands[one.terms.index(term)]
    own = estimand.kind in ("arm-mean", "ratio") and term == str(estimand.arm)
    return arm_label(estimand.arm) if own else term


def chosen_terms(terms: Any, known: list[str], problems: list[str]) -> list[str]:
    """Terms that were asked for; adds what is wrong with them."""
    if isinstance(terms, str) or not isinstance(terms, Sequence) or not terms:
        problems.append(f"terms must be a list of terms, got {terms!r:.60}")
        return known
    unknown = [term for term in terms if term not in known]
    problems += [absent("term", term, known) for term in unknown]
    if len(set(terms)) < len(terms):
        problems.append("terms must differ")
    return list(terms)


def true_values(truth: Any, rows: list[str], known: list[str], problems: list[str]) -> FloatArray | None:
    """True values of the rows, NaN where none was given."""
    if truth is None or not rows:
        return None
    if isinstance(truth, (Mapping, pd.Series)):
        given = {str(key): value for key, value in truth.items()}
        unknown = [key for key in given if key not in known]
        problems += [f"truth: {absent('term', key, known)}" for key in unknown]
        truth = [given.get(row, np.nan) for row in rows]
    values = number_array(truth)
    if values is not None and values.ndim == 0:
        values = np.full(len(rows), float(values))
    if values is None or values.shape != (len(rows),) or np.isinf(values).any():
        problems.append(f"truth must be a finite number, one for each of {len(rows)} rows, or a dict by term")
        return None
    return values
