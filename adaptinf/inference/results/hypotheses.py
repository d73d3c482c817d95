"""Tests of linear hypotheses about the terms of a result whose covariance is known."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import linalg

from adaptinf.errors import ParameterError
from adaptinf.inference.distributions.references import (
    NormalReference,
    Reference,
    StudentReference,
    joined,
    recoded,
)
from adaptinf.inference.distributions.tails import log_chi2_tail, log_f_tail
from adaptinf.inference.results.log_facts import USUAL
from adaptinf.inference.results.multiplicity import (
    adjusted_logs,
    check_adjustment,
    family_of,
    familywise_level,
    probabilities,
)
from adaptinf.inference.results.tables import (
    format_number,
    format_pvalue,
    format_statistic,
    limit_heads,
    p_head,
    plain_table,
)
from adaptinf.parameters import check_alpha, refuse
from adaptinf.texts import ROOM, did_you_mean, literal, visible_lines
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from adaptinf.inference.results.estimates import Estimates

_RANK_TOLERANCE = 1e-10
_OUTSIDE = re.compile(r"`[^`]*`")
_SIGN_AFTER_EQUALS = re.compile(r"=\s*([+-])")
_EXPONENT = re.compile(r"(?<![\w.\])])\d+(?:\.\d*)?[eE][+-]?\d+")
_PLAIN_NAME = re.compile(r"[^\W\d][\w.\[\]]*")
_UNREADABLE = (LookupError, ArithmeticError, RuntimeError, ValueError, TypeError, SyntaxError)
# If the variance of a combination is a smaller share of that of its terms, it is rounding error.
_CERTAIN = 1e-14


@dataclass(frozen=True, slots=True, eq=False)
class LinearHypothesis:
    """The hypothesis that matrix @ terms = values; matrix (q, k), values (q,)."""

    matrix: FloatArray
    values: FloatArray
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WaldTest:
    """A joint test of linear restrictions.

    Attributes
    ----------
    statistic : float
        Quadratic form of the violations in the inverse of their covariance.
    df : int
        Number of independent restrictions, which is the degrees of freedom of the chi-squared distribution.
    log_pvalue : float
        Natural log of the p-value, which is accurate even if the p-value underflows.
    hypothesis : tuple of str
        The restrictions.
    notes : tuple of str
        Notes on the test.
    df_denom : float or None
        If the terms have Student's distribution, the smallest degrees of freedom of the terms involved. The
        statistic divided by `df` then has the F distribution with these denominator degrees of freedom.
    """

    statistic: float
    df: int
    log_pvalue: float
    hypothesis: tuple[str, ...]
    notes: tuple[str, ...] = ()
    df_denom: float | None = None

    @property
    def pvalue(self) -> float:
        """The p-value; 0 if it underflows."""
        return math.exp(self.log_pvalue)

    def __str__(self) -> str:
        law, size, letter = f"chi2({self.df})", self.statistic, "chi2"
        if self.df_denom is not None:
            law, size, letter = f"F({self.df}, {self.df_denom:.1f})", self.statistic / max(self.df, 1), "F"
        lines = [
            f"Wald test: {law} = {size:.4f}, P>{letter} = {format_pvalue(self.log_pvalue)}",
            *(f"  H0: {label}" for label in self.hypothesis),
            *(f"  {note}" for note in self.notes),
        ]
        return visible_lines(lines)


@dataclass(frozen=True, slots=True, eq=False)
class LinearTest:
    """Separate tests of linear combinations of terms.

    Attributes
    ----------
    labels : tuple of str
        The q restrictions.
    effect, std_error, value : ndarray, shape (q,)
        Estimates of the combinations, with their standard errors and their values under the null hypothesis.
    reference : Reference
        Distribution of effect minus value, so every null is 0.
    notes : tuple of str
        Notes on the tests.
    covariance : ndarray, shape (q, q), or None
        Covariance of the combinations, if known.
    """

    labels: tuple[str, ...]
    effect: FloatArray
    std_error: FloatArray
    value: FloatArray
    reference: Reference
    notes: tuple[str, ...] = ()
    covariance: FloatArray | None = None

    @property
    def tvalue(self) -> FloatArray:
        """Distances of the combinations from their null values, in standard errors, shape (q,)."""
        scale = np.where(self.std_error > 0.0, self.std_error, np.nan)
        return np.asarray((self.effect - self.value) / scale, dtype=np.float64)

    @property
    @np.errstate(under="ignore")
    def pvalue(self) -> FloatArray:
        """Two-sided p-values, shape (q,)."""
        return np.asarray(np.exp(self.reference.log_pvalues(0.0)), dtype=np.float64)

    @np.errstate(under="ignore")
    def conf_int(self, alpha: float = 0.05) -> FloatArray:
        """Intervals of the combinations, shape (q, 2).

        Parameters
        ----------
        alpha : float
            One minus the confidence level, between 0 and 0.5.
        """
        check_alpha("conf_int", alpha)
        return self.reference.interval(math.log(alpha)) + self.value[:, None]

    @np.errstate(under="ignore")
    def conf_int_simultaneous(self, alpha: float = 0.05) -> FloatArray:
        """Simultaneous intervals, shape (q, 2), by the largest statistic or, without covariance, Bonferroni.

        Parameters
        ----------
        alpha : float
            One minus the joint confidence level, between 0 and 0.5.
        """
        check_alpha("conf_int_simultaneous", alpha)
        law, tail, size = self._family()
        level = familywise_level(tail, alpha, size) if size else alpha
        return law.interval(math.log(level)) + self.value[:, None]

    @property
    @np.errstate(under="ignore")
    def pvalue_simultaneous(self) -> FloatArray:
        """P-values that are adjusted for testing all combinations simultaneously, shape (q,)."""
        law, tail, _ = self._family()
        single = np.exp(law.log_pvalues(0.0)).tolist()
        return np.array([math.nan if math.isnan(p) else tail(p) for p in single])

    def adjust(self, method: str = "holm") -> FloatArray:
        """P-values adjusted for the number of combinations, shape (q,).

        Parameters
        ----------
        method : {"holm", "bh"}
            Holm, or Benjamini and Hochberg.
        """
        check_adjustment("adjust", method)
        return probabilities(adjusted_logs(self._single_logs, method))

    @property
    def _single_logs(self) -> FloatArray:
        return self.reference.log_pvalues(0.0)

    def _family(self) -> tuple[Reference, Callable[[float], float], int]:
        return family_of(self.reference, self.covariance, np.isfinite(self.tvalue), "max-t")

    def to_frame(self, alpha: float = 0.05) -> Any:
        """Return columns hypothesis, estimate, std_error, statistic, p_value, conf_low and conf_high."""
        limits = self.conf_int(alpha)
        return pd.DataFrame(
            {
                "hypothesis": list(self.labels),
                "estimate": self.effect,
                "std_error": self.std_error,
                "statistic": self.tvalue,
                "p_value": self.pvalue,
                "conf_low": limits[:, 0],
                "conf_high": limits[:, 1],
            }
        )

    def __str__(self) -> str:
        columns, law = self._columns(), self.reference
        rows = [list(cells) for cells in zip(self.labels, *columns.values(), strict=True)]
        heads = [name.replace(" corrected", "\ncorrected") for name in columns]
        table = plain_table(rows, ["hypothesis", *heads], "l" + "r" * len(heads), folds=1)
        notes = [line for note in self.notes for line in textwrap.wrap(literal(note), ROOM)]
        return "\n".join([f"Tests of linear combinations ({law.name})", table.as_text(), *notes])

    def _columns(self) -> dict[str, list[str]]:
        """The cells of the printed table, keyed by the heads of the columns."""
        law = self.reference
        return {
            "coef": list(map(format_number, self.effect.tolist())),
            "std err": list(map(format_number, self.std_error.tolist())),
            law.statistic: list(map(format_statistic, self.tvalue.tolist())),
            **inference_columns(p_head(law), law.log_pvalues(0.0), self.conf_int(USUAL)),
        }


def inference_columns(test: str, logs: FloatArray, limits: FloatArray, of: str = "") -> dict[str, list[str]]:
    """Cells with p-values and limits, keyed by the heads of the columns; logs (q,), limits (q, 2)."""
    ends = zip(limit_heads(USUAL), limits.T.tolist(), strict=True)
    columns = {test: list(map(format_pvalue, logs.tolist()))}
    columns |= {name: list(map(format_number, values)) for name, values in ends}
    return {f"{name}{of}": cells for name, cells in columns.items()}


def linear_hypothesis(subject: str, restriction: Any, terms: Sequence[str]) -> LinearHypothesis:
    """Read a restriction."""
    if isinstance(restriction, (str, dict)) or _is_strings(restriction):
        matrix, values, labels = _from_text(subject, restriction, terms)
    else:
        matrix, values, labels = _from_arrays(subject, restriction, terms)
    problems = []
    if not (np.all(np.isfinite(matrix)) and np.all(np.isfinite(values))):
        problems.append("the restriction's numbers must be finite")
    elif matrix.size == 0:
        problems.append(f"the restriction is empty{_problem_hint(terms)}")
    elif np.any(~matrix.any(axis=1)):
        problems.append(
            f"restriction {int(np.argmin(matrix.any(axis=1))) + 1} involves no term{_problem_hint(terms)}"
        )
    refuse(subject, problems)
    return LinearHypothesis(matrix, values, labels)


@np.errstate(under="ignore")
def wald_statistic(
    estimate: FloatArray,
    covariance: FloatArray,
    hypothesis: LinearHypothesis,
    df_denom: float | None = None,
) -> tuple[float, int, float]:
    """Wald's statistic of a hypothesis; estimate (k,), covariance (k, k).

    The p-value is that of the chi-squared distribution or, with `df_denom`, of the F distribution.
    """
    _refuse_contradiction(hypothesis)
    used = hypothesis.matrix.any(axis=0)
    rows = hypothesis.matrix[:, used]
    gap = rows @ estimate[used] - hypothesis.values
    spread = rows @ covariance[np.ix_(used, used)] @ rows.T
    if not (np.all(np.isfinite(gap)) and np.all(np.isfinite(spread))):
        return math.nan, int(np.linalg.matrix_rank(rows)), math.nan
    # Relative to the errors of its terms, the variance of a combination that is certain shows as rounding
    # error.
    sizes = np.abs(rows) @ np.sqrt(np.diag(covariance)[used])
    if np.any(sizes == 0.0):
        return math.nan, int(np.linalg.matrix_rank(rows)), math.nan
    values, vectors = linalg.eigh(spread / np.outer(sizes, sizes))
    kept = values > max(_RANK_TOLERANCE * values[-1], _CERTAIN)
    projected = vectors.T @ (gap / sizes)
    df = int(kept.sum())
    if df == 0:
        return math.nan, 0, math.nan
    # A combination without error that differs from the hypothesis refutes it.
    if np.any(np.abs(projected[~kept]) > 1e-6 * max(1.0, float(np.max(np.abs(projected))))):
        return math.inf, df, -math.inf
    statistic = float(np.sum(projected[kept] ** 2 / values[kept]))
    if df_denom is not None:
        return statistic, df, log_f_tail(statistic / df, df, df_denom)
    return statistic, df, log_chi2_tail(statistic, df)


def _refuse_contradiction(hypothesis: LinearHypothesis) -> None:
    size = np.linalg.norm(hypothesis.matrix, axis=1, keepdims=True)
    rows, values = hypothesis.matrix / size, hypothesis.values / size[:, 0]
    solved = np.linalg.lstsq(rows, values, rcond=None)[0]
    if np.any(np.abs(rows @ solved - values) > 1e-8 * max(1.0, float(np.max(np.abs(values))))):
        shown = ", ".join(hypothesis.labels)
        raise ParameterError("wald_test", [f"the restrictions contradict each other: {shown}"])


@np.errstate(under="ignore")
def linear_test(
    estimate: FloatArray,
    covariance: FloatArray,
    hypothesis: LinearHypothesis,
    notes: tuple[str, ...] = (),
    freedom: FloatArray | None = None,
    contrast_of: Callable[[int, int], Estimates] | None = None,
) -> LinearTest:
    """Separate tests of linear combinations; estimate (k,), covariance (k, k), freedom (k,).

    Tests are normal or, if the terms have degrees of freedom, use Student's t with the smallest degrees of
    freedom of the terms involved. Differences between two terms have their own distribution if `contrast_of`
    provides it; joint inference then uses the correlations of the terms.
    """
    size = len(hypothesis.labels)
    effect, std_error = np.zeros(size), np.zeros(size)
    for row, weights in enumerate(hypothesis.matrix):
        used = weights != 0.0
        effect[row] = weights[used] @ estimate[used]
        variance = weights[used] @ covariance[np.ix_(used, used)] @ weights[used]
        scale = np.abs(weights[used]) @ np.sqrt(np.diag(covariance)[used])
        certain = len(weights[used]) > 1 and variance <= _CERTAIN * scale**2
        std_error[row] = math.sqrt(variance) if variance >= 0.0 and not certain else math.nan
    used = hypothesis.matrix.any(axis=0)
    rows = hypothesis.matrix[:, used]
    spread = rows @ covariance[np.ix_(used, used)] @ rows.T
    distance = effect - hypothesis.values
    reference: Reference = NormalReference(distance, std_error)
    if freedom is not None:
        fewest = [float(freedom[row != 0.0].min()) for row in hypothesis.matrix]
        reference = StudentReference(distance, std_error, np.array(fewest))
    found = LinearTest(hypothesis.labels, effect, std_error, hypothesis.values, reference, notes, spread)
    if contrast_of is None:
        return found
    own = {row: pair for row, line in enumerate(hypothesis.matrix) if (pair := _pair_of(line)) is not None}
    return _with_contrasts(found, {row: (contrast_of(*pair[1:]), pair[0]) for row, pair in own.items()})


def _pair_of(weights: FloatArray) -> tuple[float, int, int] | None:
    """For a multiple of a difference, the factor and the two terms; None for other combinations."""
    used = np.flatnonzero(weights)
    if len(used) != 2 or weights[used[0]] != -weights[used[1]]:
        return None
    first, second = used if weights[used[0]] > 0.0 else used[::-1]
    return float(weights[first]), int(first), int(second)


def _with_contrasts(test: LinearTest, own: Mapping[int, tuple[Estimates, float]]) -> LinearTest:
    """The tests, with the contrasts' own distributions in rows that are multiples of contrasts."""
    if not own:
        return test
    effect, std_error = test.effect.copy(), test.std_error.copy()
    parts: list[Reference] = []
    law = test.reference
    for row in range(len(effect)):
        if row in own:
            contrast, factor = own[row]
            effect[row] = factor * contrast.estimate[0]
            std_error[row] = factor * contrast.std_error[0]
            parts.append(recoded(contrast.reference, -float(test.value[row]), factor))
            continue
        single = np.array([effect[row] - test.value[row]]), std_error[row : row + 1]
        if isinstance(law, StudentReference):
            parts.append(StudentReference(*single, law.df[row : row + 1]))
        else:
            parts.append(NormalReference(*single))
    assert test.covariance is not None
    scale = np.sqrt(np.diag(test.covariance))
    scale = np.divide(std_error, scale, out=np.ones_like(scale), where=scale > 0.0)
    told = [note for contrast, _ in own.values() for note in contrast.cautions]
    return replace(
        test,
        effect=effect,
        std_error=std_error,
        reference=joined(parts, effect - test.value, std_error),
        notes=tuple(dict.fromkeys((*test.notes, *told))),
        covariance=test.covariance * np.outer(scale, scale),
    )


def _is_strings(restriction: Any) -> bool:
    return (
        isinstance(restriction, (list, tuple))
        and len(restriction) > 0
        and all(isinstance(part, str) for part in restriction)
    )


def _problem_hint(terms: Sequence[str]) -> str:
    quoted = [f"`{term}`" for term in terms if not _PLAIN_NAME.fullmatch(term)]
    example = f", as in {' - '.join(quoted[:2])} = 0" if quoted else ""
    if any("`" in term for term in terms):
        example += "; a term that contains a backtick must be given in a dict of terms and numbers"
    return (
        f"; the terms are {', '.join(map(repr, terms))} (put a name between backticks if it is a number or "
        f"has spaces, '=' or other signs{example})"
    )


def _from_text(
    subject: str, restriction: Any, terms: Sequence[str]
) -> tuple[FloatArray, FloatArray, tuple[str, ...]]:
    from formulaic.errors import FormulaicError
    from formulaic.utils.constraints import LinearConstraints

    if isinstance(restriction, dict):
        unknown = [name for name in restriction if name not in terms]
        wrong = [
            repr(value)
            for value in restriction.values()
            if isinstance(value, bool) or not isinstance(value, Real)
        ]
        if unknown or wrong or not restriction:
            found = "no term" if not restriction else ", ".join([*map(repr, unknown), *wrong])
            near = "".join(did_you_mean(name, terms) for name in unknown[:1])
            raise ParameterError(
                subject, [f"cannot use {found}: map terms to numbers{_problem_hint(terms)}{near}"]
            )
        matrix = np.array([[float(term == name) for term in terms] for name in restriction])
        values = np.array([float(value) for value in restriction.values()])
        return matrix, values, _labels(matrix, values, terms)
    texts = [restriction] if isinstance(restriction, str) else list(restriction)
    try:
        parsed = LinearConstraints.from_spec([_as_read(x) for x in texts], variable_names=list(terms))
    except (FormulaicError, *_UNREADABLE) as error:
        problem = f"unknown term {error}" if isinstance(error, KeyError) else "it is not a linear equation"
        raise ParameterError(
            subject, [f"cannot read the restriction {restriction!r}: {problem}{_problem_hint(terms)}"]
        ) from None
    chained = [part for text in texts for part in _OUTSIDE.sub("", text).split(",") if part.count("=") > 1]
    if chained:
        problem = (
            f"each equation must have a single equals sign: write 'a = 0, b = 0' for {chained[0].strip()!r}"
        )
        raise ParameterError(subject, [problem])
    matrix = np.atleast_2d(np.asarray(parsed.constraint_matrix, dtype=np.float64))
    values = np.atleast_1d(np.asarray(parsed.constraint_values, dtype=np.float64))
    return matrix, values, _labels(matrix, values, terms)


def _as_read(text: str) -> str:
    """A restriction rewritten for formulaic, without signs after "=" and without exponents in numbers."""
    outside = text.split("`")
    for place, part in enumerate(outside[::2]):
        plain = _EXPONENT.sub(lambda found: np.format_float_positional(float(found[0])), part)
        outside[2 * place] = _SIGN_AFTER_EQUALS.sub(r"= 0 \1", plain)
    return "`".join(outside)


def _from_arrays(
    subject: str, restriction: Any, terms: Sequence[str]
) -> tuple[FloatArray, FloatArray, tuple[str, ...]]:
    right: Any = 0.0
    if isinstance(restriction, tuple) and len(restriction) == 2 and np.ndim(restriction[0]) >= 1:
        restriction, right = restriction
    if isinstance(restriction, pd.Series):
        restriction = restriction.to_frame().T
    if isinstance(restriction, pd.DataFrame):
        if sorted(map(str, restriction.columns)) != sorted(terms):
            problem = f"the columns of the restriction are not the terms{_problem_hint(terms)}"
            raise ParameterError(subject, [problem])
        restriction = restriction.set_axis(restriction.columns.map(str), axis=1)[list(terms)]
    try:
        matrix = np.atleast_2d(np.asarray(restriction, dtype=np.float64))
        values = np.broadcast_to(np.asarray(right, dtype=np.float64), (len(matrix),)).copy()
    except (TypeError, ValueError):
        problem = (
            "restriction must be equations, or a matrix with one column per term and its right-hand sides"
        )
        raise ParameterError(subject, [problem]) from None
    if matrix.ndim != 2 or matrix.shape[1] != len(terms) or len(matrix) == 0:
        problem = f"restriction must have shape (q, {len(terms)}), one column per term, got {matrix.shape}"
        raise ParameterError(subject, [problem])
    return matrix, values, _labels(matrix, values, terms)


def _labels(matrix: FloatArray, values: FloatArray, terms: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{_combination(row, terms)} = {value:g}" for row, value in zip(matrix, values, strict=True))


def _combination(row: FloatArray, terms: Sequence[str]) -> str:
    """A combination as a user could write it, with positive terms first."""
    used = [(weight, term) for weight, term in zip(row, terms, strict=True) if weight != 0.0]
    text = ""
    for weight, term in sorted(used, key=lambda one: one[0] < 0.0):
        name = term if _PLAIN_NAME.fullmatch(term) else f"`{term}`"
        size = "" if abs(weight) == 1.0 else f"{abs(weight):g} * "
        sign = ("-" if weight < 0 else "") if not text else (" - " if weight < 0 else " + ")
        text += f"{sign}{size}{name}"
    return text
