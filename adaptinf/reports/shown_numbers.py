"""The numbers in a report: one interval and one p-value per term, wherever they appear."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from adaptinf.claims.reports import answer as claims
from adaptinf.inference.results.multiplicity import ADJUSTMENTS, AT_ONCE, adjusted_logs, simultaneous_law
from adaptinf.inference.results.tables import (
    format_number,
    format_pvalue,
    format_statistic,
    interval_text,
    limit_heads,
    p_head,
)
from adaptinf.inference.sequences.tracks import SequenceReference
from adaptinf.plots.interval_rows import ESTIMANDS, MEANS, term_label
from adaptinf.texts import arm_label, level_text

if TYPE_CHECKING:
    from adaptinf.inference.results.explanation import Explanation
    from adaptinf.inference.results.fit_results import Results
    from adaptinf.typing import FloatArray

_MOST = 10
"""Number of rows in the first plot."""


@dataclass(frozen=True)
class Shown:
    """The part of a result that is shown, with the same adjustment as in its table."""

    results: Results
    alpha: float
    adjust: str | None

    @cached_property
    def adjustment(self) -> str | None:
        """As in the table, except that Holm's method replaces max-t if a correction is needed."""
        return self.results._allowed(self.adjust)

    @cached_property
    def corrected(self) -> bool:
        """Whether numbers corrected for adaptive assignment are shown, if these are informative."""
        return self.results._is_corrected(self.alpha)

    @property
    def level(self) -> str:
        """Such as 95%."""
        return level_text(self.alpha)

    @cached_property
    def limits(self) -> pd.DataFrame:
        """Columns low and high, one row per term."""
        return self.results._shown_limits(self.alpha, self.adjustment)

    @cached_property
    def log_pvalues(self) -> FloatArray:
        """Natural logarithm of one p-value for each term, of shape (k,)."""
        results = self.results
        if self.adjustment == AT_ONCE:
            with np.errstate(divide="ignore"):
                return np.asarray(np.log(results.pvalues_simultaneous().to_numpy()))
        logs = results.log_pvalues_corrected if self.corrected else results.log_pvalues
        found = np.asarray(logs, dtype=np.float64)
        return found if self.adjustment is None else adjusted_logs(found, self.adjustment)

    @property
    def count(self) -> int:
        """Number of terms that are compared, that is, of terms with a p-value."""
        known = np.isfinite(self.results.pvalues.to_numpy())
        if self.adjustment == AT_ONCE:
            known &= ~self.results._without_information
        return int(known.sum())

    @property
    def named(self) -> str:
        """A phrase that describes the intervals."""
        results, several = self.results, len(self.results.terms) > 1
        if self.corrected:
            return claims.CORRECTED(level=self.level)
        if results.validity == "not valid":
            return claims.NAIVE(level=self.level)
        if self.adjustment == AT_ONCE and several:
            return claims.AT_ONCE(level=self.level, count=self.count)
        if isinstance(results.reference, SequenceReference):
            return claims.SEQUENCE(level=self.level)
        return (claims.EACH if several else claims.SINGLE)(level=self.level)

    @property
    def multiplicity(self) -> str:
        """The statement on several terms; empty for one."""
        if len(self.results.terms) < 2:
            return ""
        law = simultaneous_law(self.results.covariance is not None)
        terms = claims.COMPARISONS(count=self.count)
        return claims.MULTIPLICITY[self.adjustment or ""](terms=terms, law=law)

    @property
    def target(self) -> str:
        """Description of the estimates."""
        kinds = {ESTIMANDS.get(one.kind, "estimate") for one in self.results.estimands}
        return kinds.pop() if len(kinds) == 1 else "estimate"

    @property
    def is_of_means(self) -> bool:
        """Whether there is no value to test against."""
        return {one.kind for one in self.results.estimands} <= MEANS | {"ratio"}

    @property
    def control(self) -> Any:
        """The arm with which every term is compared; None if there is none."""
        found = {str(one.control): one.control for one in self.results.estimands}
        return next(iter(found.values())) if len(found) == 1 and not self.is_of_means else None

    @property
    def heading(self) -> str:
        """The target, and the arm of comparison."""
        control = "" if self.control is None else f", compared with {arm_label(self.control)}"
        return f"{self.target[:1].upper()}{self.target[1:]}{control}"

    @property
    def chosen(self) -> tuple[int, ...]:
        """Positions of the terms in the first plot, from top to bottom."""
        count = len(self.results.terms)
        if count <= _MOST:
            return tuple(range(count))
        by = -self.results.estimate if self.is_of_means else self.results.log_pvalues.to_numpy()
        order = np.argsort(np.where(np.isnan(by), np.inf, by), kind="stable")[:_MOST]
        return tuple(order.tolist()) if self.is_of_means else tuple(sorted(order.tolist()))

    @property
    def which(self) -> str:
        """A phrase that identifies the terms; empty if all are included."""
        count = len(self.results.terms)
        if count <= _MOST:
            return ""
        return (claims.HIGHEST if self.is_of_means else claims.CLEAREST)(shown=_MOST, count=count)

    def row_name(self, place: int) -> str:
        """The name of a row: with a common control, only its arm."""
        one = self.results.estimands[place]
        alone = self.control is not None and one.treatment is not None and one.group is None
        return arm_label(one.treatment) if alone else term_label(self.results, self.results.terms[place])

    def cells(self, place: int) -> tuple[str, str, str, str]:
        """Estimate, both ends and the p-value of a term, as printed in its table."""
        low, high = self.limits.iloc[place]
        p = format_pvalue(float(self.log_pvalues[place]))
        bounds = self.results._bounds or (self.results.estimate,)
        at = " to ".join(format_number(ends[place]) for ends in bounds)
        return at, format_number(low), format_number(high), p

    @property
    def columns(self) -> tuple[list[str], list[list[str]]]:
        """Headers and rows of the table: one interval and one p-value for every term."""
        results, law = self.results, self.results.reference
        bounded = results._bounds is not None
        test = p_head(law)
        if self.corrected:
            test = f"{test} corrected"
        if self.adjustment is not None:
            test = "P at once" if self.adjustment == AT_ONCE else f"P {ADJUSTMENTS[self.adjustment]}"
        rows = []
        for place, term in enumerate(results.terms):
            at, low, high, p = self.cells(place)
            error, statistic = float(results.std_error[place]), float(results.tvalues.iloc[place])
            cells = [at] if bounded else [at, format_number(error), format_statistic(statistic)]
            rows.append([str(term), *cells, p, low, high])
        heads = ["bounds"] if bounded else ["coef", "std err", law.statistic]
        return ["term", *heads, test, *limit_heads(self.alpha)], rows

    @property
    def sentence(self) -> str:
        """The finding, with the numbers shown."""
        return self.results.sentence(alpha=self.alpha, adjust=self.adjustment)

    @cached_property
    def reasons(self) -> Explanation:
        """The basis of the numbers."""
        return self.results.explain(self.alpha, self.adjustment)

    def said(self, place: int) -> str:
        """Estimate and interval on one line."""
        low, high = self.limits.iloc[place]
        return f"{self.cells(place)[0]} ({interval_text(f'{self.level} interval', low, high)})"
