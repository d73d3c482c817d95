"""Formulas of covariates: reading them, and model matrices with all that is found wrong said at once."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.errors import ParameterError
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    import pandas as pd

    from adaptinf.log import AdaptiveLog

_COLOURS = re.compile("\x1b\\[[0-9;]*m|[\u29da\u29db]")


@dataclass(frozen=True, slots=True, eq=False)
class CovariateModel:
    """A formula with the statistics of the contexts it was read on; matrix (T, p)."""

    formula: str
    names: tuple[str, ...]
    matrix: FloatArray
    spec: Any

    def rows(self, subject: str, frame: Any) -> FloatArray:
        """Model matrix of other covariates, by the levels and statistics of the log; returns (m, p)."""
        import pandas as pd

        try:
            table = frame.to_pandas() if hasattr(frame, "to_pandas") else pd.DataFrame(frame)
        except (ValueError, TypeError) as error:
            problem = (
                f"covariates must be a frame, or columns of values, one row a prediction: {plain_text(error)}"
            )
            raise ParameterError(subject, [problem]) from None
        return model_matrix(subject, self.formula, self.spec, table)[0]


def covariate_model(subject: str, formula: Any, log: AdaptiveLog) -> CovariateModel:
    """Read a formula on the contexts of a log."""
    from formulaic import Formula
    from formulaic.errors import FormulaicError
    from formulaic.formula import SimpleFormula

    if not isinstance(formula, str) or not formula.strip():
        raise ParameterError(subject, [f"formula must be text such as '~ age + group', got {formula!r}"])
    try:
        parsed = Formula(formula)
    except (FormulaicError, SyntaxError, ValueError, TypeError) as error:
        raise ParameterError(subject, [f"cannot read the formula {formula!r}: {plain_text(error)}"]) from None
    if not isinstance(parsed, SimpleFormula):
        problem = (
            f"the formula {formula!r} has a response or several parts: give the covariates alone, such as "
            "'~ age + group'; the response is the effect's score of each round"
        )
        raise ParameterError(subject, [problem])
    frame = context_frame(log)
    unknown = sorted(str(name) for name in parsed.required_variables if str(name) not in frame.columns)
    if unknown:
        raise ParameterError(subject, [_unknown(unknown, frame)])
    matrix, spec = model_matrix(subject, formula, parsed, frame)
    return CovariateModel(formula, tuple(map(str, spec.column_names)), matrix, spec)


def context_frame(log: AdaptiveLog) -> pd.DataFrame:
    """Context columns by their canonical names and by the user's."""
    import pandas as pd

    columns: dict[str, Any] = dict(log.arrays.context)
    for name, canonical in log.columns.items():
        if canonical in log.arrays.context:
            columns[str(name)] = log.arrays.context[canonical]
    return pd.DataFrame(columns, index=pd.RangeIndex(log.n_rounds))


def _unknown(names: list[str], frame: pd.DataFrame) -> str:
    known = ", ".join(map(str, frame.columns)) or "none"
    return (
        f"there is no covariate {', '.join(map(repr, names))}; the log's contexts are {known} (actions, "
        "rewards and propensities are no covariates of an effect)"
    )


def model_matrix(subject: str, formula: str, model: Any, frame: pd.DataFrame) -> tuple[FloatArray, Any]:
    """Model matrix as floats, and the specification that makes further ones alike; returns matrix (T, p)."""
    from formulaic.errors import DataMismatchWarning, FormulaicError

    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", DataMismatchWarning)
            made = model.get_model_matrix(frame, output="numpy", na_action="raise")
        matrix = np.asarray(made, dtype=np.float64)
    except DataMismatchWarning as error:
        raise ParameterError(subject, [f"labels that the log does not have: {plain_text(error)}"]) from None
    except (FormulaicError, ValueError, TypeError, KeyError, ArithmeticError, AttributeError) as error:
        known = ", ".join(map(str, frame.columns)) or "none"
        problem = f"cannot evaluate the formula {formula!r} on the columns {known}: {plain_text(error)}"
        raise ParameterError(subject, [problem]) from None
    spec = made.model_spec
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise ParameterError(subject, [f"the formula {formula!r} has no columns"])
    finite = np.atleast_1d(np.isfinite(matrix).all(axis=0))
    bad = [str(name) for name, fine in zip(spec.column_names, finite, strict=True) if not fine]
    if bad:
        raise ParameterError(subject, [f"columns of the formula are not finite everywhere: {', '.join(bad)}"])
    return matrix, spec


def plain_text(error: BaseException) -> str:
    """What an error says, in one line without colours."""
    return " ".join(_COLOURS.sub("", str(error)).split())
