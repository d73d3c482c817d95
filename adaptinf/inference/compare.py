"""Several results side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from adaptinf.errors import ParameterError
from adaptinf.inference.results import Results, check_alpha

if TYPE_CHECKING:
    from adaptinf.inference.summary import ResultSummary

__all__ = ["Comparison", "compare", "label_of"]

_NAIVE = "Sample means: not valid"


def label_of(result: Results) -> str:
    """What the intervals of a result are worth.

    Parameters
    ----------
    result : Results
        Any result.

    Returns
    -------
    {"exact", "anytime", "asymptotic", "not valid"}
        Of the uncorrected numbers: naive sample means of an adaptive log are not valid.
    """
    if any(note.startswith(_NAIVE) for note in result.notes):
        return "not valid"
    if not result.reference.exact:
        return "asymptotic"
    return "anytime" if result.model == "ConfidenceSequence" else "exact"


def _corrected_label(result: Results) -> str:
    if result.correction is None:
        return ""
    return "exact" if result.reference.exact else "asymptotic"


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
        """One row a term and result.

        Returns
        -------
        DataFrame
            Columns term, method, label, estimate, std_error, statistic, p_value, conf_low and conf_high; also
            label_corrected, p_value_corrected, conf_low_corrected and conf_high_corrected where a result has
            a correction. Terms in the order in which they first come.
        """
        parts = []
        for name, result in self.results.items():
            part = result.to_frame(self.alpha)
            part.insert(1, "method", name)
            part.insert(2, "label", label_of(result))
            if result.correction is not None:
                place = list(part).index("p_value_corrected")
                part.insert(place, "label_corrected", _corrected_label(result))
            parts.append(part)
        frame = pd.concat(parts, ignore_index=True)
        if "label_corrected" in frame:
            frame["label_corrected"] = frame["label_corrected"].fillna("")
        order = {term: place for place, term in enumerate(dict.fromkeys(frame["term"]))}
        places = frame["term"].map(order).to_numpy()
        return frame.iloc[np.argsort(places, kind="stable")].reset_index(drop=True)

    def summary(self) -> ResultSummary:
        """The table, as text, Markdown, LaTeX, HTML or CSV."""
        from adaptinf.inference.summary import ResultSummary, format_number, format_pvalue
        from adaptinf.inference.tables import plain_table

        frame = self.to_frame()
        corrected = "p_value_corrected" in frame
        headers = ["", "method", "label", "coef", "std err", "P", "low", "high"]
        numbers = ["estimate", "std_error", "p_value", "conf_low", "conf_high"]
        if corrected:
            headers += ["corrected P", "low", "high"]
            numbers += ["p_value_corrected", "conf_low_corrected", "conf_high_corrected"]
        rows = []
        for record in frame.to_dict("records"):
            cells = []
            for name in numbers:
                value = float(record[name])
                if "corrected" in name and not record["label_corrected"]:
                    cells.append("")
                elif name.startswith("p_value"):
                    with np.errstate(divide="ignore"):
                        cells.append(format_pvalue(float(np.log(value))))
                else:
                    cells.append(format_number(value))
            rows.append([str(record["term"]), record["method"], record["label"], *cells])
        table = plain_table(rows, headers, "lll" + "r" * len(numbers))
        notes = [
            f"Intervals at alpha = {self.alpha:g}. The choice between methods must not look at this table."
        ]
        naive = [name for name, result in self.results.items() if label_of(result) == "not valid"]
        if naive:
            notes.append(f"Not valid under adaptivity, as baselines: {', '.join(naive)}.")
        if corrected:
            kinds = {name: _corrected_label(result) for name, result in self.results.items()}
            shown = ", ".join(f"{name} ({kind})" for name, kind in kinds.items() if kind)
            notes.append(f"Corrected for adaptive collection by the log's guarantee: {shown}.")
        return ResultSummary("Comparison", [table], notes)

    def __str__(self) -> str:
        return self.summary().as_text()

    def _repr_html_(self) -> str:
        return self.summary().as_html()


def compare(results: Any, alpha: float = 0.05) -> Comparison:
    """Put several results side by side.

    Parameters
    ----------
    results : mapping of str to Results
        Results by the names that they shall have in the table.
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
    >>> from adaptinf.inference.arms import ArmMeans
    >>> from adaptinf.log import AdaptiveLog, LogArrays
    >>> arrays = LogArrays(action=np.array([0, 1, 0, 1]), reward=np.array([0.1, 0.8, 0.3, 0.6]))
    >>> means = ArmMeans(AdaptiveLog.from_arrays(arrays, arms=("a", "b")))
    >>> table = compare({"naive": means.fit("sample-mean"), "alee": means.fit("alee")})
    >>> table.to_frame()[["term", "method", "label", "estimate"]].round(2)
      term method       label  estimate
    0    a  naive   not valid      0.20
    1    a   alee  asymptotic      0.19
    2    b  naive   not valid      0.70
    3    b   alee  asymptotic      0.71
    """
    check_alpha("compare", alpha)
    problems = []
    if not isinstance(results, Mapping) or not results:
        problems.append(f"give results by name, such as {{'aipw': model.fit('aipw')}}, got {results!r:.60}")
    else:
        problems += [
            f"{name!r} is no result of a fit: {value!r:.60}"
            for name, value in results.items()
            if not isinstance(value, Results)
        ]
        problems += [f"names must be strings, got {name!r}" for name in results if not isinstance(name, str)]
    if problems:
        raise ParameterError("compare", problems)
    return Comparison(dict(results), float(alpha))
