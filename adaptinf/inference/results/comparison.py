"""Several results side by side, with one column for each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from adaptinf.claims import Claim, Said, tables, units
from adaptinf.claims.data import covariates
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.results.explanation import MORE, full_sentence
from adaptinf.inference.results.fit_results import Results
from adaptinf.inference.results.multiplicity import AT_ONCE, adjusted_logs, check_adjustment, probabilities
from adaptinf.inference.results.tables import format_number, format_pvalue, said_of
from adaptinf.parameters import BOOLEAN, OneOf, check_alpha, refuse
from adaptinf.texts import shown
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from adaptinf.inference.results.summary import ResultSummary

_Term = tuple[str, int]
_NOTES = 3
_BELOW = ("interval", "std_error", "p_value")


def _corrected_label(result: Results) -> str:
    if result.correction is None:
        return ""
    return "exact" if result.reference.exact else "asymptotic"


def _target(estimand: Estimand) -> str:
    over = "" if estimand.treatment is None else f" of {estimand.treatment!r} over {estimand.control!r}"
    return f"{estimand.kind}{over}"


def _listed(names: list[str]) -> str:
    return ", ".join(names)


def _numbered(terms: Sequence[str]) -> list[_Term]:
    """Terms, each with its number of earlier occurrences, because labels such as 1 and "1" look alike."""
    return [(term, terms[:place].count(term)) for place, term in enumerate(terms)]


def _factor(term: str, factors: Sequence[str]) -> str | None:
    """The factor of which a coefficient is a level; None if it is an interaction, or of no such factor."""
    alone = term.endswith("]") and ":" not in term
    return next((factor for factor in factors if alone and term.startswith(f"{factor}[")), None)


def _noted(result: Results, value: str, *kinds: Claim) -> str:
    """A value in a note under a table, found through the note's claim; empty if there is no such note."""
    found = [note for note in result.notes if isinstance(note, Said) and note.claim in kinds]
    return f"{found[0].values[value]}" if found else ""


def _rounds(result: Results) -> str:
    return f"{getattr(result, 'nobs', result.facts.n_rounds):,}"


def _errors(result: Results) -> str:
    """The type of standard errors; for a regression, the type of its covariance."""
    kind = getattr(result, "covariance_type", "")
    return kind or ("by unit" if _noted(result, "units", units.ERRORS) else "")


_FOOT: Mapping[str, Callable[[Results], str]] = {
    "Model": lambda result: result.model,
    "Outcome": lambda result: result.facts.outcome,
    "Design": lambda result: result.facts.design or "unknown",
    "Rounds": _rounds,
    "Units": lambda result: _noted(result, "units", units.ERRORS),
    "Estimator": lambda result: result.estimator,
    "Weights": lambda result: result.weights or "",
    "Adjustment": lambda result: getattr(result, "adjustment", ""),
    "Covariates": lambda result: _noted(result, "names", covariates.ADJUSTED, covariates.VARIANCE),
    "Std. errors": _errors,
    "Null": lambda result: f"{result.null:g}" if result.null else "",
    "Corrected rows": _corrected_label,
}
"""The lines below the estimates, and what each shows of a result; lines without entries are left out."""
_IF_DIFFERENT = ("Model", "Outcome", "Design")
_STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))


def _adjusted(result: Results, adjust: str | None) -> FloatArray:
    """Logs of a result's p-values, shape (k,), adjusted for the number of terms if requested."""
    method = result._allowed(adjust)
    if method == AT_ONCE:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(result.pvalues_simultaneous().to_numpy()))
    logs = np.asarray(result.log_pvalues, dtype=np.float64)
    return logs if method is None else adjusted_logs(logs, method)


class _Column:
    """The cells of a result in a printed comparison."""

    def __init__(self, result: Results, table: Comparison) -> None:
        self.corrected = result.correction is not None
        self._result, self._table = result, table
        self._places = {term: place for place, term in enumerate(_numbered(result.terms))}
        self._logs = {"own": _adjusted(result, table.adjust)}
        own = result._allowed(table.adjust) == AT_ONCE
        limits = result.conf_int_simultaneous(table.alpha) if own else result.conf_int(table.alpha)
        self._limits = {"own": limits.to_numpy()}
        if self.corrected:
            logs = np.asarray(result.log_pvalues_corrected, dtype=np.float64)
            method = result._allowed(table.adjust)
            self._logs["corrected"] = logs if method is None else adjusted_logs(logs, method)
            self._limits["corrected"] = result.conf_int_corrected(table.alpha).to_numpy()

    def estimate(self, term: _Term) -> str:
        """The estimate, with its stars."""
        if term not in self._places:
            return ""
        place = self._places[term]
        valid = self.corrected or self._result.validity != "not valid"
        log_p = self._logs["corrected" if self.corrected else "own"][place]
        earned = (sign for level, sign in _STARS if log_p <= math.log(level))
        stars = next(earned, "") if self._table.stars and valid else ""
        return format_number(self._result.estimate[place]) + stars

    def below(self, term: _Term) -> str:
        """The text on the line below the estimate."""
        if self._table.below == "std_error" and term in self._places:
            return f"({format_number(self._result.std_error[self._places[term]])})"
        return self._inference(term, "own")

    def below_corrected(self, term: _Term) -> str:
        """The text on the line for corrected results, which has an interval if errors are shown above it."""
        return self._inference(term, "corrected") if self.corrected else ""

    def _inference(self, term: _Term, kind: str) -> str:
        if term not in self._places:
            return ""
        place = self._places[term]
        if self._table.below == "p_value":
            return f"({format_pvalue(self._logs[kind][place])})"
        low, high = self._limits[kind][place].tolist()
        return "no interval" if math.isnan(low + high) else f"[{format_number(low)}, {format_number(high)}]"


def _term_rows(term: _Term, columns: Sequence[_Column]) -> list[list[str]]:
    """The rows of the table for a term."""
    rows = [
        [term[0], *(column.estimate(term) for column in columns)],
        ["", *(column.below(term) for column in columns)],
    ]
    corrected = [column.below_corrected(term) for column in columns]
    return [*rows, *([[f"{term[0]}, corrected", *corrected]] if any(corrected) else [])]


@dataclass(frozen=True, eq=False)
class Comparison:
    """A table of results, created by `compare`.

    Attributes
    ----------
    results : mapping of str to Results
        The results to compare.
    alpha : float
        One minus the confidence level of the intervals.
    below : {"interval", "std_error", "p_value"}
        Type of the line below each estimate in the printed table.
    stars : bool
        Whether estimates have stars.
    fixed_effects : tuple of str
        Factors whose coefficients are replaced with one line of the printed table.
    adjust : {"max-t", "holm", "bh"} or None
        How p-values (with ``"max-t"``, also intervals) are adjusted for the number of terms of a result.
    """

    results: Mapping[str, Results]
    alpha: float
    below: str = "interval"
    stars: bool = False
    fixed_effects: tuple[str, ...] = ()
    adjust: str | None = None

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with one row for each term and result.

        Returns
        -------
        DataFrame
            Columns term, method, label, estimate, std_error, statistic, p_value, conf_low and conf_high. If a
            result has a correction, there are also label_corrected, p_value_corrected, conf_low_corrected and
            conf_high_corrected. With `adjust`, there is p_value_adjusted and, for max-t,
            conf_low_simultaneous and conf_high_simultaneous. Terms are in the order in which they first
            appear.
        """
        parts = []
        for name, result in self.results.items():
            part = result.to_frame(self.alpha)
            part.insert(1, "method", name)
            part.insert(2, "label", result.validity)
            if result.correction is not None:
                place = list(part).index("p_value_corrected")
                part.insert(place, "label_corrected", _corrected_label(result))
            parts.append(part.assign(**self._adjusted_columns(result)))
        frame = pd.concat(parts, ignore_index=True)
        if "label_corrected" in frame:
            frame["label_corrected"] = frame["label_corrected"].fillna("")
        order = {term: place for place, term in enumerate(dict.fromkeys(frame["term"]))}
        places = frame["term"].map(order).to_numpy()
        return frame.iloc[np.argsort(places, kind="stable")].reset_index(drop=True)

    def _adjusted_columns(self, result: Results) -> dict[str, FloatArray]:
        """The columns that are adjusted for the number of terms, if they are requested."""
        if self.adjust is None:
            return {}
        found = {"p_value_adjusted": probabilities(_adjusted(result, self.adjust))}
        if self.adjust == AT_ONCE and result.correction is None:
            limits = result.conf_int_simultaneous(self.alpha)
            found |= {f"conf_{end}_simultaneous": limits[end].to_numpy() for end in ("low", "high")}
        return found

    def summary(self) -> ResultSummary:
        """The table with one column for each result, as text, Markdown, LaTeX, HTML, CSV or a Great Table."""
        from adaptinf.inference.results.summary import ResultSummary
        from adaptinf.inference.results.tables import plain_table

        columns = [_Column(result, self) for result in self.results.values()]
        rows = [cells for term in self._shown_terms() for cells in _term_rows(term, columns)]
        foot = [[name, *cells] for name, cells in self._foot().items()]
        heads = ["", *(f"{name}\n({result.validity})" for name, result in self.results.items())]
        aligns = "l" + "r" * len(columns)
        table = plain_table([*rows, *foot], heads, aligns, folds=1, ruled=(len(rows) + 1,))
        return ResultSummary("Comparison", [table], lines=[*self._cautions(), *self._reading()])

    def _shown_terms(self) -> list[_Term]:
        """Terms in the order in which they first appear, except those of fixed effects."""
        found = dict.fromkeys(term for result in self.results.values() for term in _numbered(result.terms))
        return [term for term in found if _factor(term[0], self.fixed_effects) is None]

    def _foot(self) -> dict[str, list[str]]:
        """How each result was obtained, with one line for each property that applies to any result."""
        results = list(self.results.values())
        lines: dict[str, list[str]] = {
            factor: ["yes" if any(_factor(x, (factor,)) for x in one.terms) else "no" for one in results]
            for factor in self.fixed_effects
        }
        for name, read in _FOOT.items():
            cells = [read(result) for result in results]
            # A line that is equal for all results and stated elsewhere, such as the model, is omitted.
            if any(cells) and (name not in _IF_DIFFERENT or len(set(cells)) > 1):
                lines[name] = cells
        return lines

    def _cautions(self) -> list[tuple[str, str]]:
        """Cautions: evidence against the results, or against comparing them."""
        results = list(self.results.values())
        own = said_of(list(self.results), results, lambda one: [*map(full_sentence, one.cautions)])
        return [("Caution", text) for text in (*self._validity(), *self._logs(), *self._targets(), *own)]

    def _reading(self) -> list[tuple[str, str]]:
        """Lines on how to interpret the table."""
        starred = [("Stars", tables.STARRED(nulls=self._nulls()))] if self.stars else []
        adjusted = []
        if self.adjust is not None:
            adjusted = [("Note", tables.ADJUSTED[self.adjust](terms=tables.TERMS_OF_COLUMN()))]
        told = ("Note", tables.COMPARED(below=self._below(self.below)))
        return [told, *adjusted, *starred, ("More", MORE)]

    def _below(self, kind: str) -> str:
        """The description of the line below an estimate."""
        if kind == "std_error":
            return tables.STD_ERRORS()
        if kind == "p_value":
            return tables.P_VALUES(nulls=self._nulls())
        return tables.INTERVALS(level=100.0 * (1.0 - self.alpha))

    def _nulls(self) -> str:
        """The null values of the p-values, with the results to which each applies if they differ."""
        found: dict[float, list[str]] = {}
        for name, result in self.results.items():
            found.setdefault(result.null, []).append(name)
        if len(found) == 1:
            return f"{next(iter(found)):g}"
        parts = [f"{null:g} ({', '.join(names)})" for null, names in found.items()]
        return tables.NULLS_DIFFER(nulls=f"{', '.join(parts[:-1])} and {parts[-1]}")

    def _logs(self) -> list[str]:
        """Statements on results that are based on different data, as far as this can be determined."""
        found: dict[tuple[int, str], list[str]] = {}
        for name, result in self.results.items():
            found.setdefault((result.facts.n_rounds, result.facts.design or "unknown"), []).append(name)
        if len(found) < 2:
            return []
        parts = [
            f"{_listed(names)} ({rounds} rounds, design {design})"
            for (rounds, design), names in found.items()
        ]
        return [tables.LOGS_DIFFER(results="; ".join(parts))]

    def _targets(self) -> list[str]:
        """Statements on terms that have the same name but different estimands."""
        found: dict[str, dict[Estimand, list[str]]] = {}
        for name, result in self.results.items():
            for term, estimand in zip(result.terms, result.estimands, strict=True):
                found.setdefault(term, {}).setdefault(estimand, []).append(name)
        notes: list[str] = [
            tables.TARGETS_DIFFER(
                term=term,
                targets="; ".join(f"{_target(one)} in {_listed(names)}" for one, names in targets.items()),
            )
            for term, targets in found.items()
            if len(targets) > 1
        ]
        return notes[:_NOTES]

    def _validity(self) -> list[str]:
        """Statements on results that are not valid, and on the validity of corrected results."""
        naive = [name for name, result in self.results.items() if result.validity == "not valid"]
        kinds = {name: _corrected_label(result) for name, result in self.results.items()}
        notes: list[str] = []
        bare = [name for name in naive if not kinds[name]]
        if bare:
            notes.append(tables.BASELINES(results=_listed(bare)))
        for kind in ("exact", "asymptotic"):
            names = [name for name in kinds if kinds[name] == kind]
            if names:
                what = self._below("p_value" if self.below == "p_value" else "interval")
                notes.append(tables.CORRECTED_ROWS_VALID(results=_listed(names), what=what, label=kind))
        return notes

    def __str__(self) -> str:
        return self.summary().as_text()

    def _repr_html_(self) -> str:
        return self.summary().as_html()


def compare(
    *results: Any,
    alpha: float = 0.05,
    below: str = "interval",
    stars: bool = False,
    fixed_effects: Sequence[str] = (),
    adjust: str | None = None,
) -> Comparison:
    """Show several results side by side, with one column for each.

    Parameters
    ----------
    *results : Results, or one mapping of str to Results
        The results, which are named after their model, estimator and weights; or a mapping from the names
        that should appear in the table to the results.
    alpha : float
        One minus the confidence level of the intervals, between 0 and 0.5.
    below : {"interval", "std_error", "p_value"}
        What is shown on the line below each estimate.
    stars : bool
        Whether to mark estimates with one, two or three stars for p-values of at most .05, .01 or .001.
        Corrected p-values are used if available, and columns that are not valid have no stars.
    fixed_effects : sequence of str
        Factors in formulas, such as ``"C(day)"``, whose coefficients are replaced with a line that shows
        which results include them.
    adjust : {"max-t", "holm", "bh"}, optional
        Adjustment of each result's p-values for the number of its terms; with ``"max-t"``, intervals are
        adjusted as well.

    Returns
    -------
    Comparison
        A comparison that is printed as text. ``to_frame()`` has one row for each term and result with full
        precision, and ``summary()`` provides the other formats.

    Raises
    ------
    ParameterError
        If there are no results, if something else is among them, or if an argument is invalid.

    Notes
    -----
    A table of several methods shows how much the choice of a method matters. Choosing a method by this table,
    for example the method with the shortest interval, would invalidate the confidence level; `recommend`
    makes the choice before the estimates are seen.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import numpy as np
    >>> from adaptinf.log import LogArrays
    >>> arrays = LogArrays(action=np.array([0, 1, 0, 1]), reward=np.array([0.1, 0.8, 0.3, 0.6]))
    >>> means = ai.ArmMeans(ai.AdaptiveLog.from_arrays(arrays, arms=("a", "b")))
    >>> table = ai.compare({"naive": means.fit("sample-mean"), "alee": means.fit("alee")})
    >>> table.to_frame()[["term", "method", "label", "estimate"]].round(2)
      term method       label  estimate
    0    a  naive   not valid      0.20
    1    a   alee  asymptotic      0.19
    2    b  naive   not valid      0.70
    3    b   alee  asymptotic      0.71
    """
    check_alpha("compare", alpha)
    if adjust is not None:
        check_adjustment("compare", adjust, AT_ONCE)
    problems = []
    given: Mapping[Any, Any] = {}
    if len(results) == 1 and isinstance(results[0], Mapping):
        given = results[0]
    elif results and all(isinstance(one, Results) for one in results):
        given = named_results(results)
    if not given:
        found = ", ".join(_kind(one) for one in results[:5]) or "nothing"
        problems.append(
            "pass results by name, such as {'aipw': model.fit('aipw')}, or one after another, as in "
            f"compare(first, second); got {found}"
        )
    for name, value in given.items():
        if not isinstance(value, Results):
            problems.append(f"{name!r:.60} must be a result of a fit, not {_kind(value)}")
        if not isinstance(name, str):
            problems.append(f"names must be strings, got {name!r:.60}")
    factors = (fixed_effects,) if isinstance(fixed_effects, str) else tuple(fixed_effects)
    terms = [term for one in given.values() if isinstance(one, Results) for term in one.terms]
    problems += [
        f"fixed_effects: no result has coefficients of {shown(factor)}, such as {factor}[...]"
        for factor in factors
        if not any(_factor(term, (str(factor),)) for term in terms)
    ]
    refuse("compare", [*problems, *OneOf(*_BELOW)("below", below), *BOOLEAN("stars", stars)])
    return Comparison(dict(given), float(alpha), below, stars, factors, adjust)


def _kind(value: Any) -> str:
    """The type of a value, without its contents, because a result or an array may fill pages."""
    return (
        repr(value)
        if isinstance(value, (int, float, str)) and len(repr(value)) <= 60
        else (f"{'an' if type(value).__name__[0] in 'AEIOUaeiou' else 'a'} {type(value).__name__}")
    )


def named_results(results: Sequence[Results]) -> dict[str, Results]:
    """Results named by estimator and weights, and by model or number if needed to distinguish them."""
    models = len({one.model for one in results}) > 1
    names = [
        " ".join(
            part
            for part in (
                one.model if models else "",
                one.estimator,
                f"({one.weights})" if one.weights else "",
            )
            if part
        )
        for one in results
    ]
    found: dict[str, Results] = {}
    for place, (name, one) in enumerate(zip(names, results, strict=True), start=1):
        found[name if names.count(name) == 1 else f"{name} #{place}"] = one
    return found
