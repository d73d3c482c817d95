"""Every method for a target, the valid ones first, as a table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adaptinf.claims import assumptions, contradictions, sentence, with_status
from adaptinf.claims.recommendations import LENGTHS
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.recommend.rows import Method
from adaptinf.texts import absent

if TYPE_CHECKING:
    import pandas as pd

    from adaptinf.inference.results.fit_results import Results
    from adaptinf.inference.results.summary import ResultSummary


@dataclass(frozen=True, slots=True, eq=False)
class Recommendation:
    """Every method for a target, the valid ones first; made by `recommend`.

    Attributes
    ----------
    target : str
        What is to be estimated.
    methods : tuple of Method
        In order.
    facts : tuple of (str, str)
        What was read from the log.
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
        """One row per method: method, label, length, call, reason, assumes and warning.

        The length is the expected length of 95% intervals, relative to the first method; it is computed from
        counts, propensities, and the mean and variance of all rewards together, never of a single arm.
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
        """Expected lengths relative to the first method; NaN if unknown."""
        first = self.methods[0].verdict.length
        known = math.isfinite(first) and first > 0.0
        return [one.verdict.length / first if known else math.nan for one in self.methods]

    def fit(self, method: str | None = None) -> Results:
        """Run a method.

        Parameters
        ----------
        method : str, optional
            Its name in the frame; by default the best.

        Returns
        -------
        Results
            Of the call in the frame.

        Raises
        ------
        ParameterError
            If there is no such method.
        InvalidForLog
            If it is not valid for the log.
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
        """The table, with numbered notes that methods may share: as text, Markdown, LaTeX or HTML."""
        from adaptinf.inference.results.summary import ResultSummary
        from adaptinf.inference.results.tables import plain_table

        notes: list[str] = list(dict.fromkeys(map(_note, self.methods)))
        rows = [
            [
                str(place),
                one.verdict.name,
                one.verdict.label,
                "" if math.isnan(length) else f"{length:.2f}",
                f"[{notes.index(_note(one)) + 1}]",
            ]
            for place, (one, length) in enumerate(zip(self.methods, self._lengths(), strict=True), start=1)
        ]
        first = self.methods[0]
        chosen = first.call if first.verdict.valid else "none is valid"
        facts = plain_table([*map(list, self.facts), ["First choice", chosen]], None, "ll")
        table = plain_table(rows, ["", "method", "label", "length", "note"], "rllrl")
        if any(row[3] for row in rows):
            notes.append(LENGTHS())
        return ResultSummary(f"Methods for {self.target}", [facts, table], notes)

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
    """Evidence against a method: first the assumptions that the log contradicts, then the rest."""
    return sentence([*contradictions(method.verdict.assumes), method.verdict.warning])
