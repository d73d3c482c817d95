"""A table of all methods for a target, with valid methods first."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adaptinf.claims import assumptions, contradictions, sentence, with_status
from adaptinf.claims.recommendations import LENGTHS, LENGTHS_BRIEFLY
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.recommend.rows import Method
from adaptinf.texts import absent

if TYPE_CHECKING:
    import pandas as pd
    from statsmodels.iolib.table import SimpleTable

    from adaptinf.inference.results.fit_results import Results
    from adaptinf.inference.results.summary import ResultSummary


@dataclass(frozen=True, slots=True, eq=False)
class Recommendation:
    """All methods for a target, with valid methods first; created by `recommend`.

    Attributes
    ----------
    target : str
        The target that is to be estimated.
    methods : tuple of Method
        The methods in order.
    facts : tuple of (str, str)
        Facts read from the log.
    """

    target: str
    methods: tuple[Method, ...]
    facts: tuple[tuple[str, str], ...]

    @property
    def best(self) -> Method:
        """The first method.

        Raises
        ------
        InvalidForLog
            If none is valid.
        """
        first = self.methods[0]
        if not first.verdict.valid:
            reasons = dict.fromkeys(method.verdict.reason for method in self.methods)
            ways = ["recommend with another target="] if self.target != "cate" else []
            raise InvalidForLog(f"any method for {self.target}", "; ".join(reasons), ways)
        return first

    @property
    def frame(self) -> pd.DataFrame:
        """A frame with one row for each method.

        The columns are method, label, length, call, reason, assumes and warning.

        The length is the expected length of 95% intervals relative to the first length that is known. It is
        computed from counts, propensities, and the pooled mean and variance of all rewards, never from the
        rewards of a single arm.
        """
        import pandas as pd

        return pd.DataFrame(
            {
                "method": [one.verdict.name for one in self.methods],
                "label": [one.verdict.label for one in self.methods],
                "length": self._lengths(),
                "call": [one.call for one in self.methods],
                "reason": [one.verdict.reason for one in self.methods],
                "assumes": [with_status(one.verdict.assumes) for one in self.methods],
                "warning": [_warning(one) for one in self.methods],
            }
        )

    def _lengths(self) -> list[float]:
        """Expected lengths relative to the first length that is known; unknown lengths are NaN."""
        lengths = [one.verdict.length for one in self.methods]
        first = next((one for one in lengths if math.isfinite(one) and one > 0.0), math.nan)
        return [length / first for length in lengths]

    def fit(self, method: str | None = None) -> Results:
        """Run a method.

        Parameters
        ----------
        method : str, optional
            The name of the method in the frame; by default, the best method.

        Returns
        -------
        Results
            The results of the method's call in the frame.

        Raises
        ------
        ParameterError
            If there is no such method.
        InvalidForLog
            If the method is not valid for the log.
        """
        if method is None:
            return self.best.run()
        found = {one.verdict.name: one for one in self.methods}
        if method not in found:
            raise ParameterError("Recommendation.fit", [absent("method", method, found)])
        chosen = found[method]
        if not chosen.verdict.valid:
            ways = [one.verdict.name for one in self.methods if one.verdict.valid][:3]
            raise InvalidForLog(method, chosen.verdict.reason, ways)
        return chosen.run()

    def summary(self) -> ResultSummary:
        """The table as text, Markdown, LaTeX or HTML, with a few lines on the first method.

        `explain` gives the reasons for every method.
        """
        from adaptinf.inference.results.summary import ResultSummary

        rows = self._rows()
        tables = self._tables(rows, ["", "method", "label", "length"])
        return ResultSummary(self._title, tables, lines=self._lines(any(row[3] for row in rows)))

    def explain(self) -> ResultSummary:
        """The table, with numbered notes that explain why each method is valid or not.

        Returns
        -------
        ResultSummary
            The table prints as text; ``as_markdown()``, ``as_latex()`` and ``as_html()`` give the other
            forms.

        Examples
        --------
        >>> import adaptinf as ai
        >>> log = ai.designs.UCB().run(ai.environments.BernoulliArms([0.4, 0.6]), horizon=50, rng=0)
        >>> ai.recommend(log).explain().notes[0].partition(",")[0]
        'Propensities are not required'
        """
        from adaptinf.inference.results.summary import ResultSummary

        notes: list[str] = list(dict.fromkeys(map(_note, self.methods)))
        places = [f"[{notes.index(_note(one)) + 1}]" for one in self.methods]
        rows = [[*row, place] for row, place in zip(self._rows(), places, strict=True)]
        tables = self._tables(rows, ["", "method", "label", "length", "note"])
        if any(row[3] for row in rows):
            notes.append(LENGTHS())
        return ResultSummary(self._title, tables, notes)

    @property
    def _title(self) -> str:
        return f"Methods for {self.target}"

    def _rows(self) -> list[list[str]]:
        """The position, name, label and relative length of each method."""
        return [
            [str(place), one.verdict.name, one.verdict.label, "" if math.isnan(length) else f"{length:.2f}"]
            for place, (one, length) in enumerate(zip(self.methods, self._lengths(), strict=True), start=1)
        ]

    def _tables(self, rows: list[list[str]], heads: list[str]) -> list[SimpleTable]:
        """A table of facts read from the log, with the first method, and a table of the methods."""
        from adaptinf.inference.results.tables import plain_table

        first = self.methods[0]
        chosen = first.call if first.verdict.valid else "none is valid"
        facts = plain_table([*map(list, self.facts), ["First choice", chosen]], None, "ll")
        return [facts, plain_table(rows, heads, "rllrl"[: len(heads)])]

    def _lines(self, lengths: bool) -> list[tuple[str, str]]:
        """Lines on the first method: its cautions, and at most six lines on why it comes first."""
        from adaptinf.inference.results.explanation import (
            Explanation,
            assumed_briefly,
            full_sentence,
            joined_clauses,
            reasons_of,
        )

        first = self.methods[0].verdict
        assumed = [one for text in first.assumes for one in reasons_of(text, "assumes")]
        cautions = [("Caution", full_sentence(warning))] if (warning := _warning(self.methods[0])) else []
        told = [
            ("First" if first.valid else "Reason", joined_clauses(first.reason.split("; "), 2)),
            ("Assumes", assumed_briefly(Explanation(self._title, tuple(assumed)), 2)),
            ("Length", LENGTHS_BRIEFLY() if lengths else ""),
            ("More", "recommend(...).explain()"),
        ]
        return [*cautions, *((label, text) for label, text in told if text)]

    def __str__(self) -> str:
        return self.summary().as_text()

    def __repr__(self) -> str:
        valid = [one for one in self.methods if one.verdict.valid]
        first = repr(valid[0]) if valid else "none is valid"
        return f"<Recommendation for {self.target}: {len(valid)} of {len(self.methods)} valid; {first}>"

    def _repr_html_(self) -> str:
        return self.summary().as_html()


def _note(method: Method) -> str:
    verdict = method.verdict
    parts = [f"{verdict.reason[:1].upper()}{verdict.reason[1:]}."]
    parts += assumptions(verdict.assumes)
    parts += [f"Caution: {warning}."] if (warning := _warning(method)) else []
    return " ".join(parts)


def _warning(method: Method) -> str:
    """Evidence against a method, starting with assumptions that the log contradicts."""
    return sentence([*contradictions(method.verdict.assumes), method.verdict.warning])
