"""Terms of results: which are drawn, what they are called, and their true values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.errors import ParameterError
from adaptinf.inference.results import check_alpha
from adaptinf.parameters import number_array
from adaptinf.typing import FloatArray

__all__ = ["ESTIMANDS", "MEANS", "alpha_problem", "chosen_terms", "true_values"]

ESTIMANDS = {
    "arm-mean": "mean reward",
    "bin-mean": "mean reward in the bin",
    "policy-value": "mean reward of the policy",
    "coefficient": "coefficient",
    "projection": "coefficient of the effect",
    "contrast": "difference in mean reward",
    "cate": "difference in mean reward",
    "interaction": "difference of effects",
    "policy-contrast": "difference in mean reward",
}
MEANS = {"arm-mean", "bin-mean", "policy-value"}


def alpha_problem(alpha: Any) -> list[str]:
    """Say what is wrong with an alpha."""
    try:
        check_alpha("alpha", alpha)
    except ParameterError as error:
        return list(error.problems)
    return []


def chosen_terms(terms: Any, known: list[str], problems: list[str]) -> list[str]:
    """Terms that were asked for; adds what is wrong with them."""
    if isinstance(terms, str) or not isinstance(terms, Sequence) or not terms:
        problems.append(f"terms must be a list of terms, got {terms!r:.60}")
        return known
    unknown = [term for term in terms if term not in known]
    problems += [f"there is no term {term!r}; there are: {', '.join(known[:8])}" for term in unknown]
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
        problems += [f"truth is given for {key!r}, which is no term" for key in unknown]
        truth = [given.get(row, np.nan) for row in rows]
    values = number_array(truth)
    if values is not None and values.ndim == 0:
        values = np.full(len(rows), float(values))
    if values is None or values.shape != (len(rows),) or np.isinf(values).any():
        problems.append(f"truth must be a finite number, one for each of {len(rows)} rows, or a dict by term")
        return None
    return values
