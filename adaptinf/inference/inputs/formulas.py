"""Formulas, which are checked completely before formulaic receives any part, and their model matrices."""

from __future__ import annotations

import keyword
import re
import unicodedata
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from adaptinf.errors import ParameterError
from adaptinf.inference.inputs.expressions import (
    Expression,
    RefusedExpression,
    check_kinds,
    check_labels,
    check_products,
    numeric,
    read_expression,
    unnamed_problems,
    values,
)
from adaptinf.parameters import refuse
from adaptinf.texts import absent, did_you_mean
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

    from adaptinf.log import AdaptiveLog


def main_effects(
    columns: Mapping[str, NDArray[Any]], rounds: IntArray | None, n: int
) -> tuple[FloatArray, tuple[str, ...]]:
    """A column of ones, the numeric columns, and a column of 0 and 1 for each label except the first.

    Columns have shape (T,); rounds has shape (n,), and by default contains all rounds. The entries of a
    column of the result are contiguous in memory.
    """
    parts = [
        part
        for name, column in columns.items()
        for part in _coded(name, column if rounds is None else column[rounds])
    ]
    x = np.ones((n, 1 + len(parts)), order="F")
    for place, (_, column) in enumerate(parts, start=1):
        x[:, place] = column
    return x, ("Intercept", *(name for name, _ in parts))


def _coded(name: str, values: NDArray[Any]) -> list[tuple[str, NDArray[Any]]]:
    """Treatment coding of sorted labels, with the column names that formulaic would use."""
    if values.dtype.kind in "biuf":
        return [(name, values)]
    import pandas as pd

    coded = pd.Categorical(values)
    return [
        (f"{name}[T.{label}]", coded.codes == place) for place, label in enumerate(coded.categories) if place
    ]


_COLOURS = re.compile("\x1b\\[[0-9;]*m|[\u29da\u29db]")
_PLACE = re.compile(r"`?\b_(\d+)_`?")
_NAME = re.compile(r"`([^`]*)`|([^\W\d]\w*)")
_WRONG = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError)
_DOTTED = re.compile(r"[^\W\d][\w.]*")


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """A parsed formula.

    The sides are those parsed by formulaic, with names and expressions that are looked up and never
    evaluated; a side is None if it is missing or has several parts. The data must contain the names in
    `needed`. Trusted formulas are parsed and evaluated by formulaic.
    """

    text: str
    left: Any
    right: Any
    names: frozenset[str]
    needed: frozenset[str] = frozenset()
    expressions: Mapping[str, Expression] = field(default_factory=dict)
    trusted: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class CovariateModel:
    """A formula, its model matrix (T, p), the statistics of its columns, and which columns are numeric."""

    formula: Formula
    names: tuple[str, ...]
    matrix: FloatArray
    spec: Any
    states: Mapping[str, Any]
    numbers: Mapping[str, bool]

    def rows(self, subject: str, frame: Any) -> FloatArray:
        """Model matrix of other data, shape (m, p), with the levels and statistics of the log."""
        import pandas as pd

        try:
            table = frame.to_pandas() if hasattr(frame, "to_pandas") else pd.DataFrame(frame)
        except (ValueError, TypeError) as error:
            problem = (
                "covariates must be a frame or a dict of columns, with one row per prediction: "
                f"{plain_text(error)}"
            )
            raise ParameterError(subject, [problem]) from None
        if missing := sorted(self.formula.needed - set(table.columns)):
            raise ParameterError(subject, [absent("column", name, list(table.columns)) for name in missing])
        check_kinds(subject, self.numbers, table)
        return _made(subject, self.formula, self.spec, table, dict(self.states))[0]


def read_formula(subject: str, text: str, *, trusted: bool = False) -> Formula:
    """Parse a formula, and refuse Python that is not allowed before anything is evaluated."""
    from formulaic.errors import FormulaicError

    try:
        return _trusted(text) if trusted else _checked(text)
    except RefusedExpression as error:
        problems = [f"the formula {text!r:.200}: {problem}" for problem in dict.fromkeys(error.args)]
        problems[-1] += " (trusted=True evaluates any Python code in a formula, as if it were your own)"
        raise ParameterError(subject, problems) from None
    except (FormulaicError, SyntaxError, ValueError, TypeError, RecursionError) as error:
        problem = f"cannot read the formula {text!r:.200}: {plain_text(error)}"
        raise ParameterError(subject, [problem]) from None


def _trusted(text: str) -> Formula:
    """A formula that formulaic parses and evaluates."""
    import formulaic

    left, right = _sides(formulaic.Formula(text))
    names: set[str] = set()
    for factor in (factor for term in right or () for factor in term.factors):
        plain = factor.eval_method is factor.EvalMethod.LOOKUP
        names.update([factor.expr] if plain else map("".join, _NAME.findall(factor.expr)))
    return Formula(text, left, right, frozenset(names), trusted=True)


def _sides(parsed: Any) -> tuple[Any, Any]:
    """The left and right sides parsed by formulaic; a side that is missing or has several parts is None."""
    from formulaic.formula import SimpleFormula

    if isinstance(parsed, SimpleFormula):
        return None, parsed
    left, right = getattr(parsed, "lhs", None), getattr(parsed, "rhs", None)
    if not isinstance(left, SimpleFormula):
        left = None
    return left, right if isinstance(right, SimpleFormula) else None


def _checked(text: str) -> Formula:
    """A formula of which formulaic's parser sees only numbered placeholders for names and expressions."""
    import formulaic
    from formulaic.parser import DefaultFormulaParser

    pieces, found = _pieces(text)
    places = list(found.values())
    try:
        check_products(DefaultFormulaParser().get_ast(" ".join(pieces)))
        parsed = formulaic.Formula(" ".join(pieces))
    except Exception as error:
        shown = _PLACE.sub(lambda place: f"`{_shown(places[int(place[1])])}`", plain_text(error))
        raise ValueError(shown) from None
    used: list[str | Expression] = []
    left, right = _sides(parsed)
    left, right = _looked_up(left, places, []), _looked_up(right, places, used)
    expressions = {one.text: one for one in used if isinstance(one, Expression)}
    plain = frozenset(one for one in used if isinstance(one, str))
    computed = frozenset(name for one in expressions.values() for name in one.names)
    return Formula(text, left, right, plain | computed, plain | (computed - values().keys()), expressions)


def _pieces(text: str) -> tuple[list[str], dict[str, str | Expression]]:
    """The formula with numbered placeholders for names and expressions, and what each one stands for."""
    from formulaic.parser.algos.tokenize import tokenize

    pieces: list[str] = []
    places: dict[str, str | Expression] = {}
    problems = unnamed_problems(text)
    for token in tokenize(text):
        quote = "" if token.source_start is None else text[token.source_start]
        piece = f"%{token.token}%" if quote == "%" else token.token
        try:
            place = _place(token.kind.value, piece, quoted=quote == "`")
        except RefusedExpression as error:
            problems += error.args
            continue
        if place is not None:
            piece = _shown(place)
            if type(places.setdefault(piece, place)) is not type(place) and not piece.isidentifier():
                problems.append(f"{piece!r} is both a column and an expression: rename the column")
            piece = f"_{list(places).index(piece)}_"
        pieces.append(piece)
    if problems:
        raise RefusedExpression(*problems)
    return pieces, places


def _place(kind: str, piece: str, *, quoted: bool) -> str | Expression | None:
    """The name or the expression that a token contains; None for other tokens."""
    if kind == "python":
        return read_expression(piece)
    return piece if kind == "name" and (quoted or piece != ".") else None


def _shown(place: str | Expression) -> str:
    return place if isinstance(place, str) else place.text


def _looked_up(side: Any, places: list[str | Expression], used: list[str | Expression]) -> Any:
    """A side of a formula with its placeholders resolved; what they stand for is added to `used`."""
    from formulaic.formula import SimpleFormula
    from formulaic.parser.types import Factor, Term

    if side is None:
        return None
    terms = []
    for term in side:
        factors = []
        for factor in term.factors:
            if factor.eval_method is Factor.EvalMethod.LOOKUP:
                used.append(places[int(factor.expr.strip("_"))])
                factor = Factor(_shown(used[-1]), eval_method="lookup")
            factors.append(factor)
        terms.append(Term(factors))
    literals = {
        one.expr for term in terms for one in term.factors if one.eval_method is one.EvalMethod.LITERAL
    }
    if taken := sorted(literals & {one for one in used if isinstance(one, str)}):
        raise RefusedExpression(f"{taken[0]!r} is both a column and a number: rename the column")
    return SimpleFormula(terms)


def covariate_model(subject: str, text: Any, log: AdaptiveLog, *, trusted: bool = False) -> CovariateModel:
    """Build the model matrix of a formula from the contexts of a log."""
    if not isinstance(text, str) or not text.strip():
        raise ParameterError(subject, [f"formula must be text such as '~ age + group', got {text!r}"])
    formula = read_formula(subject, text, trusted=trusted)
    if formula.left is not None or formula.right is None:
        problem = (
            f"the formula {text!r} has a response or several parts: give only the covariates, such as '~ "
            "age + group'; the response is the effect's score in each round"
        )
        raise ParameterError(subject, [problem])
    frame = context_frame(log)
    if unknown := sorted(formula.needed - set(frame.columns)):
        raise ParameterError(subject, [_unknown_problem(unknown, frame)])
    return model_on(subject, formula, frame)


def model_on(subject: str, formula: Formula, frame: pd.DataFrame) -> CovariateModel:
    """The model matrix of the right side of a formula, for the columns of a frame."""
    states: dict[str, Any] = {}
    matrix, spec = _made(subject, formula, formula.right, frame, states)
    numbers = {name: numeric(frame[name]) for name in frame.columns if name in formula.names}
    return CovariateModel(formula, tuple(map(str, spec.column_names)), matrix, spec, states, numbers)


def context_frame(log: AdaptiveLog) -> pd.DataFrame:
    """The context columns of a log, under their canonical names and under the user's."""
    import pandas as pd

    columns: dict[str, Any] = dict(log.arrays.context)
    for name, canonical in log.columns.items():
        if canonical in log.arrays.context:
            columns[str(name)] = log.arrays.context[canonical]
    return pd.DataFrame(columns, index=pd.RangeIndex(log.n_rounds))


def _unknown_problem(names: list[str], frame: pd.DataFrame) -> str:
    # A formula is read only if there are columns, so the list is not empty.
    known = ", ".join(map(str, frame.columns))
    return (
        f"there is no covariate {', '.join(map(repr, names))}; the log's contexts are {known} (actions, "
        f"rewards and propensities cannot be covariates of an effect){did_you_mean(names[0], frame.columns)}"
    )


def _made(
    subject: str, formula: Formula, model: Any, frame: pd.DataFrame, states: dict[str, Any]
) -> tuple[FloatArray, Any]:
    """The model matrix as floats, shape (T, p), and the specification for further matrices."""
    from formulaic.errors import DataMismatchWarning, FormulaicError

    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", DataMismatchWarning)
            data, computed = frame, {}
            if not formula.trusted:
                data = frame[[name for name in frame.columns if name in formula.names]]
                _check_labels(subject, data)
                columns = {str(name): data[name] for name in data.columns}
                computed = {text: one.compute(columns, states) for text, one in formula.expressions.items()}
                data = data.drop(columns=[name for name in computed if name in data.columns])
            check_labels(model, data)
            made = model.get_model_matrix(data, context=computed, output="numpy", na_action="raise")
        matrix = np.asarray(made, dtype=np.float64)
    except DataMismatchWarning as error:
        raise ParameterError(subject, [f"labels that are not in the log: {plain_text(error)}"]) from None
    except ParameterError:
        raise
    except (FormulaicError, MemoryError, RuntimeError, *_WRONG) as error:
        known = ", ".join(map(str, frame.columns)) or "none"
        problem = f"cannot evaluate the formula {formula.text!r} on the columns {known}: {plain_text(error)}"
        raise ParameterError(subject, [problem]) from None
    spec = made.model_spec
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise ParameterError(subject, [f"the formula {formula.text!r} has no columns"])
    refuse(subject, column_problems(matrix, list(map(str, spec.column_names))))
    return matrix, spec


def column_problems(matrix: FloatArray, names: list[str]) -> list[str]:
    """Problems with the columns of a model matrix, shape (T, p), and with their names."""
    finite = np.atleast_1d(np.isfinite(matrix).all(axis=0))
    bad = [name for name, fine in zip(names, finite, strict=True) if not fine]
    problems = [f"columns have values that are not finite: {', '.join(bad)}"] if bad else []
    if twice := sorted({name for name in names if names.count(name) > 1}):
        problems.append(f"several columns are called {', '.join(map(repr, twice))}: rename the contexts")
    return problems


def _check_labels(subject: str, frame: pd.DataFrame) -> None:
    """Refuse labels that formulaic would silently omit."""
    for name in frame.columns:
        column = frame[name]
        if getattr(column, "ndim", 2) == 1 and column.dtype.kind == "O":
            hidden = sorted({x for x in column.unique() if isinstance(x, str) and x.startswith("__")})
            if hidden:
                problem = f"{name!r} has labels that begin with two underscores, {hidden[0]!r}: rename them"
                raise ParameterError(subject, [problem])


def name_in_formula(name: str) -> str:
    """A name in the form that formulas require: unchanged, in backticks, or as an escaped string."""
    plain = unicodedata.is_normalized("NFKC", name)
    if plain and _DOTTED.fullmatch(name) and not keyword.iskeyword(name):
        return name
    if name and not set(name) & set("`\\") and name.isprintable():
        return f"`{name}`"
    odd = "".join(char if char.isalnum() or char in " _.,;:" else f"\\U{ord(char):08x}" for char in name)
    return f"Q('{odd}')"


def plain_text(error: BaseException) -> str:
    """The text of an error in one line, without codes for colours."""
    return " ".join(_COLOURS.sub("", str(error)).split())
