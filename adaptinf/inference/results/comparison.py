"""Several results side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from adaptinf.claims import tables
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.results.fit_results import Results
from adaptinf.inference.results.tables import format_number, format_pvalue
from adaptinf.parameters import check_alpha, refuse

if TYPE_CHECKING:
    from adaptinf.inference.results.summary import ResultSummary

_NOTES = 3


def _corrected_label(result: Results) -> str:
    if result.correction is None:
        return ""
    return "exact" if result.reference.exact else "asymptotic"


def _target(estimand: Estimand) -> str:
    over = "" if estimand.treatment is None else f" of {estimand.treatment!r} over {estimand.control!r}"
    return f"{estimand.kind}{over}"


def _listed(names: list[str]) -> str:
    return ", ".join(names)


@dataclass(frozen=True, eq=False)
class Comparison:
    """A table of results; made by `compare`.

    Attributes
    ----------
    results : mapping of str to Results
        What is compared.
    alpha : float
        One minus the level of the intervals.
    """

    results: Mapping[str, Results]
    alpha: float

    def to_frame(self) -> pd.DataFrame:
        """One row per term and result.

        Returns
        -------
        DataFrame
            Columns term, method, label, estimate, std_error, statistic, p_value, conf_low and conf_high; also
            label_corrected, p_value_corrected, conf_low_corrected and conf_high_corrected where a result has
            a correction. Terms in the order in which they first come.
        """
        frame = self._with_logs()
        return frame.drop(
            columns=[name for name in ("log_p_value", "log_p_value_corrected") if name in frame]
        )

    def _with_logs(self) -> pd.DataFrame:
        """The frame, with the logs of the p-values, which do not underflow."""
        parts = []
        for name, result in self.results.items():
            part = result.to_frame(self.alpha)
            part.insert(1, "method", name)
            part.insert(2, "label", result.validity)
            part["log_p_value"] = result.log_pvalues.to_numpy()
            if result.correction is not None:
                place = list(part).index("p_value_corrected")
                part.insert(place, "label_corrected", _corrected_label(result))
                part["log_p_value_corrected"] = result.log_pvalues_corrected.to_numpy()
            parts.append(part)
        frame = pd.concat(parts, ignore_index=True)
        if "label_corrected" in frame:
            frame["label_corrected"] = frame["label_corrected"].fillna("")
        order = {term: place for place, term in enumerate(dict.fromkeys(frame["term"]))}
        places = frame["term"].map(order).to_numpy()
        return frame.iloc[np.argsort(places, kind="stable")].reset_index(drop=True)

    def summary(self) -> ResultSummary:
        """The table, as text, Markdown, LaTeX, HTML or CSV."""
        from adaptinf.inference.results.summary import ResultSummary
        from adaptinf.inference.results.tables import plain_table

        frame = self._with_logs()
        headers = ["", "method", "label", "coef", "std err", "P", "low", "high"]
        columns = ["estimate", "std_error", "log_p_value", "conf_low", "conf_high"]
        if "label_corrected" in frame:
            headers += ["corrected", "corrected P", "low", "high"]
            columns += [
                "label_corrected",
                "log_p_value_corrected",
                "conf_low_corrected",
                "conf_high_corrected",
            ]
        rows = []
        for record in frame.to_dict("records"):
            cells = []
            for name in columns:
                value = record[name]
                if "corrected" in name and not record["label_corrected"]:
                    cells.append("")
                elif name == "label_corrected":
                    cells.append(value)
                else:
                    cells.append((format_pvalue if name.startswith("log_") else format_number)(float(value)))
            rows.append([str(record["term"]), record["method"], record["label"], *cells])
        aligns = "lll" + "".join("l" if name == "label_corrected" else "r" for name in columns)
        table = plain_table(rows, headers, aligns)
        notes = [
            tables.COMPARED(alpha=self.alpha, nulls=self._nulls()),
            *self._logs(),
            *self._targets(),
            *self._validity(),
        ]
        return ResultSummary("Comparison", [table], notes)

    def _nulls(self) -> str:
        """The values that the p-values are against, and whose they are where they differ."""
        found: dict[float, list[str]] = {}
        for name, result in self.results.items():
            found.setdefault(result.null, []).append(name)
        if len(found) == 1:
            return f"{next(iter(found)):g}"
        parts = [f"{null:g} ({', '.join(names)})" for null, names in found.items()]
        return tables.NULLS_DIFFER(nulls=f"{', '.join(parts[:-1])} and {parts[-1]}")

    def _logs(self) -> list[str]:
        """Whose data differ, as far as the results tell."""
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
        """Terms of one name that estimate different things."""
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
        """Whose numbers are not valid, and how valid corrected ones are."""
        naive = [name for name, result in self.results.items() if result.validity == "not valid"]
        kinds = {name: _corrected_label(result) for name, result in self.results.items()}
        notes: list[str] = []
        bare = [name for name in naive if not kinds[name]]
        if bare:
            notes.append(tables.BASELINES(results=", ".join(bare)))
        for kind in ("exact", "asymptotic"):
            names = [name for name in kinds if kinds[name] == kind]
            if names:
                notes.append(tables.CORRECTED_COLUMNS_VALID(results=", ".join(names), label=kind))
        return notes

    def __str__(self) -> str:
        return self.summary().as_text()

    def _repr_html_(self) -> str:
        return self.summary().as_html()


def compare(*results: Any, alpha: float = 0.05) -> Comparison:
    """Put several results side by side.

    Parameters
    ----------
    *results : Results, or one mapping of str to Results
        Results, which are then called by their model, estimator and weights; or by the names that they shall
        have in the table.
    alpha : float
        One minus the level of the intervals, between 0 and 0.5.

    Returns
    -------
    Comparison
        Prints as text; ``to_frame()`` has full precision, and ``summary()`` the other forms.

    Raises
    ------
    ParameterError
        If there are no results, something else is among them, or alpha is out of range.

    Notes
    -----
    A table of several methods shows how much the choice matters. Choosing by it, such as the shortest
    interval, would spoil the level: `recommend` chooses before the estimates are seen.

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
    problems = []
    given: Mapping[Any, Any] = {}
    if len(results) == 1 and isinstance(results[0], Mapping):
        given = results[0]
    elif results and all(isinstance(one, Results) for one in results):
        given = _named(results)
    if not given:
        shown = ", ".join(_kind(one) for one in results[:5]) or "nothing"
        problems.append(
            "give results by name, such as {'aipw': model.fit('aipw')}, or one after another, as in "
            f"compare(first, second); got {shown}"
        )
    for name, value in given.items():
        if not isinstance(value, Results):
            problems.append(f"{name!r:.60} is no result of a fit, but {_kind(value)}")
        if not isinstance(name, str):
            problems.append(f"names must be strings, got {name!r:.60}")
    refuse("compare", problems)
    return Comparison(dict(given), float(alpha))


def _kind(value: Any) -> str:
    """What was given, without its content: a result or an array may fill pages."""
    return (
        repr(value)
        if isinstance(value, (int, float, str)) and len(repr(value)) <= 60
        else (f"{'an' if type(value).__name__[0] in 'AEIOUaeiou' else 'a'} {type(value).__name__}")
    )


def _named(results: Sequence[Results]) -> dict[str, Results]:
    """Results by estimator and weights, with their model where there are several, and numbers if need be."""
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
