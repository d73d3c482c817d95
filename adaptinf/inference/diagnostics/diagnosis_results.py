"""The table of the checks that `diagnose` performs on a log, and the facts for the notes under it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from adaptinf.claims import sentence
from adaptinf.inference.results.multiplicity import adjusted_logs
from adaptinf.inference.results.tables import format_number, format_pvalue
from adaptinf.parameters import OneOf, refuse

if TYPE_CHECKING:
    import pandas as pd

    from adaptinf.inference.results.summary import ResultSummary
    from adaptinf.inference.validity.profile import LogProfile
    from adaptinf.typing import FloatArray


NO_EVIDENCE, AGAINST = "no evidence against", "evidence against"
FINE, CAUTION, NOT_APPLICABLE = "fine", "caution", "not applicable"


@dataclass(frozen=True, slots=True)
class Check:
    """A row of a diagnosis.

    The claims of a row state the finding and its consequences, or the reason why the check does not apply.
    """

    name: str
    term: str
    measure: str = ""
    statistic: float = math.nan
    log_pvalue: float = math.nan
    verdict: str = NOT_APPLICABLE
    claims: tuple[str, ...] = ()
    log_adjusted: float = math.nan

    @property
    def advice(self) -> str:
        """The claims in one line."""
        return sentence(self.claims)


def tests_among(checks: Sequence[Check]) -> int:
    """Number of checks with a p-value."""
    return sum(not math.isnan(check.log_pvalue) for check in checks)


def judged(checks: Sequence[Check], alpha: float) -> tuple[Check, ...]:
    """The checks with Holm-adjusted p-values over all tests, and with the verdicts of the tests."""
    adjusted = adjusted_logs(np.array([check.log_pvalue for check in checks], dtype=np.float64), "holm")
    found = []
    for check, log_p in zip(checks, adjusted.tolist(), strict=True):
        if math.isnan(log_p):
            found.append(check)
        elif log_p <= math.log(alpha):
            found.append(replace(check, log_adjusted=log_p, verdict=AGAINST))
        else:
            found.append(replace(check, log_adjusted=log_p, verdict=NO_EVIDENCE, claims=()))
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Evidence on the assumptions of an analysis, from the propensities and rewards of a log.

    Attributes
    ----------
    checks : tuple of Check
        The rows, one for each check and arm.
    questions : mapping of str to str
        The question that each check answers, keyed by the name of the check.
    alpha : float
        Joint level of all tests in the table, by Holm's method.
    tables : mapping of str to DataFrame
        Tables on which the checks are based, if available: "calibration" (choices by bins of propensity),
        "decay" (smallest propensities over time), "drift" (slopes, and detectable drift) and "arms" (pulls,
        effective sample sizes, estimates).
    notes : tuple of str
        Information needed to interpret the tests.
    """

    checks: tuple[Check, ...]
    questions: Mapping[str, str]
    alpha: float
    tables: Mapping[str, pd.DataFrame]
    notes: tuple[str, ...]

    @property
    def concerns(self) -> tuple[Check, ...]:
        """Checks with a verdict of "evidence against" or "caution"."""
        return tuple(check for check in self.checks if check.verdict in (AGAINST, CAUTION))

    def check(self, name: str, term: Any = None) -> tuple[Check, ...]:
        """Return the rows for a check.

        Parameters
        ----------
        name : str
            Name of the check.
        term : label, optional
            An arm, or another entry of the table.

        Returns
        -------
        tuple of Check
            The rows; empty if the log has none for this check, or the check has none for this term.

        Raises
        ------
        ParameterError
            If there is no check with this name, or no check has a row for this term.
        """
        problems = OneOf(*self.questions)("name", name)
        terms = tuple(dict.fromkeys(row.term for row in self.checks))
        wanted = None if term is None else str(term)
        if wanted is not None:
            problems += OneOf(*terms)("term", wanted)
        refuse("Diagnosis.check", problems)
        return tuple(row for row in self.checks if row.name == name and wanted in (None, row.term))

    def to_frame(self) -> pd.DataFrame:
        """Return the checks as a frame with one row for each check and arm.

        Returns
        -------
        DataFrame
            Columns check, term, asks, measure, statistic, p_value, p_holm, verdict and advice.
        """
        return pd.DataFrame(
            {
                "check": [check.name for check in self.checks],
                "term": [check.term for check in self.checks],
                "asks": [self.questions[check.name] for check in self.checks],
                "measure": [check.measure for check in self.checks],
                "statistic": [check.statistic for check in self.checks],
                "p_value": np.exp([check.log_pvalue for check in self.checks]),
                "p_holm": np.exp([check.log_adjusted for check in self.checks]),
                "verdict": [check.verdict for check in self.checks],
                "advice": [check.advice for check in self.checks],
            }
        )

    def summary(self) -> ResultSummary:
        """The table, which can be text, Markdown, LaTeX, HTML or CSV, with advice among its notes."""
        from adaptinf.inference.results.summary import ResultSummary
        from adaptinf.inference.results.tables import plain_table

        before = ["", *(check.name for check in self.checks)]
        rows = [_row(check, name) for check, name in zip(self.checks, before[:-1], strict=True)]
        heads = ["", "of", "measure", "value", "P", "Holm", "verdict"]
        table = plain_table(rows, heads, "lllrrrl", over=True)
        return ResultSummary("Diagnosis of the Log", [table], [*self._advice(), *self.notes])

    def _advice(self) -> list[str]:
        """Each piece of advice or reason, stated once with the checks to which it refers."""
        about: dict[str, dict[str, None]] = {}
        for check in self.checks:
            if check.advice:
                about.setdefault(check.advice, {})[check.name] = None
        named = [(", ".join(names), advice) for advice, names in about.items()]
        return [f"{names[0].upper()}{names[1:]}: {advice}." for names, advice in named]

    def __str__(self) -> str:
        return self.summary().as_text()

    def _repr_html_(self) -> str:
        return self.summary().as_html()


def _row(check: Check, before: str) -> list[str]:
    """The cells of a row; the name of the check is omitted if the previous row has the same name."""
    whole = not math.isnan(check.statistic) and check.statistic == round(check.statistic)
    figure = f"{check.statistic:,.0f}" if whole else format_number(check.statistic)
    pvalues = [
        "" if math.isnan(log_p) else format_pvalue(log_p) for log_p in (check.log_pvalue, check.log_adjusted)
    ]
    value = "" if math.isnan(check.statistic) else figure
    name = "" if check.name == before else check.name
    return [name, check.term, check.measure, value, *pvalues, check.verdict]


class NotesFacts:
    """Facts about the checks that were performed, and about the tables on which they are based."""

    def __init__(
        self,
        profile: LogProfile,
        checks: Sequence[Check],
        tables: Mapping[str, pd.DataFrame],
        alpha: float,
    ) -> None:
        self.profile, self.tables, self.alpha = profile, tables, alpha
        self._tests = tests_among(checks)

    @property
    def tests(self) -> dict[str, Any]:
        """The number of tests and their joint level."""
        return {"tests": self._tests, "alpha": self.alpha} if self._tests else {}

    @property
    def _missed(self) -> FloatArray:
        """Detectable drift for each arm and for all arms together; empty if there are no tests of drift."""
        frame = self.tables.get("drift")
        least = np.zeros(0) if frame is None else frame["could_be_missed"].to_numpy()
        return least if np.isfinite(least).any() else np.zeros(0)

    @property
    def missed(self) -> dict[str, Any]:
        """The smallest detectable common drift, or the smallest detectable drift of the only arm."""
        drift = "common drift" if len(self._missed) > 1 else "drift"
        return {"drift": drift, "least": self._missed[-1]} if len(self._missed) else {}

    @property
    def missed_alone(self) -> dict[str, float]:
        """The smallest detectable drift for a single arm, if there are several."""
        return {"least": np.nanmin(self._missed[:-1])} if len(self._missed) > 1 else {}
