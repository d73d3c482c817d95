"""The table of checks that `diagnose` makes on a log, and the inputs to the notes under it."""

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
    """One row of a diagnosis.

    Its claims state the finding and its consequences, or the reason why the check does not apply.
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
    """Checks with Holm's p-values over all of them, and the tests' verdicts."""
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
    """Evidence from a log's propensities and rewards on the assumptions of its analysis.

    Attributes
    ----------
    checks : tuple of Check
        One row per check and arm.
    questions : mapping of str to str
        The question that each check answers, by its name.
    alpha : float
        Level of all tests in the table together, by Holm's method.
    tables : mapping of str to DataFrame
        Tables behind the checks, where available: "calibration" (choices by bins of propensity), "decay"
        (smallest propensities over time), "drift" (slopes, and detectable drift) and "arms" (pulls, effective
        sample sizes, estimates).
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
        """Rows for a check.

        Parameters
        ----------
        name : str
            Name of the check.
        term : label, optional
            An arm, or another entry of the table.

        Returns
        -------
        tuple of Check
            Empty if this log has no row for that check, or the check has none for that term.

        Raises
        ------
        ParameterError
            If there is no check with that name, or no row for that term in any check.
        """
        problems = OneOf(*self.questions)("name", name)
        terms = tuple(dict.fromkeys(row.term for row in self.checks))
        wanted = None if term is None else str(term)
        if wanted is not None:
            problems += OneOf(*terms)("term", wanted)
        refuse("Diagnosis.check", problems)
        return tuple(row for row in self.checks if row.name == name and wanted in (None, row.term))

    def to_frame(self) -> pd.DataFrame:
        """Frame with one row per check and arm.

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
        """The table, as text, Markdown, LaTeX, HTML or CSV; advice appears among the notes."""
        from adaptinf.inference.results.summary import ResultSummary
        from adaptinf.inference.results.tables import plain_table

        before = ["", *(check.name for check in self.checks)]
        rows = [_row(check, name) for check, name in zip(self.checks, before[:-1], strict=True)]
        heads = ["", "of", "measure", "value", "P", "Holm", "verdict"]
        table = plain_table(rows, heads, "lllrrrl", over=True)
        return ResultSummary("Diagnosis of the Log", [table], [*self._advice(), *self.notes])

    def _advice(self) -> list[str]:
        """Advice and reasons, each stated once, with the checks to which they refer."""
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
    """Cells of a check; its name is omitted if it is the same as in the previous row."""
    whole = not math.isnan(check.statistic) and check.statistic == round(check.statistic)
    figure = f"{check.statistic:,.0f}" if whole else format_number(check.statistic)
    pvalues = [
        "" if math.isnan(log_p) else format_pvalue(log_p) for log_p in (check.log_pvalue, check.log_adjusted)
    ]
    value = "" if math.isnan(check.statistic) else figure
    name = "" if check.name == before else check.name
    return [name, check.term, check.measure, value, *pvalues, check.verdict]


class NotesFacts:
    """Checks that were performed, and the tables behind them."""

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
        """Number of tests, and their joint level."""
        return {"tests": self._tests, "alpha": self.alpha} if self._tests else {}

    @property
    def _missed(self) -> FloatArray:
        """Detectable drift, for each arm and for all; empty without such tests."""
        frame = self.tables.get("drift")
        least = np.zeros(0) if frame is None else frame["could_be_missed"].to_numpy()
        return least if np.isfinite(least).any() else np.zeros(0)

    @property
    def missed(self) -> dict[str, Any]:
        """The smallest detectable drift, for all arms together or for the only one."""
        drift = "common drift" if len(self._missed) > 1 else "drift"
        return {"drift": drift, "least": self._missed[-1]} if len(self._missed) else {}

    @property
    def missed_alone(self) -> dict[str, float]:
        """The smallest detectable drift for a single arm, if there are several."""
        return {"least": np.nanmin(self._missed[:-1])} if len(self._missed) > 1 else {}
