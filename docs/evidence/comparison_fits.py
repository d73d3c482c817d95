"""What is asked of a log of the evidence on comparisons, and whether the answers hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from comparison_cells import (
    AGAINST,
    BEST,
    COEFFICIENTS,
    CONTRASTS,
    DIFFERENCE,
    GROUPS,
    JOINT,
    LEVELS,
    OF_SUMS,
    POLICIES,
    ROWS,
    SUMS,
    VALUES,
    WINNER,
    Cell,
    asked,
)
from comparison_logs import Runs, effects_by_context
from default_counts import Key, Tallies, Tally
from default_logs import Array, arm_name
from numpy.typing import NDArray

from adaptinf.log.validation import nested_options

ALPHA = 0.05
DEFAULT, STATIONARY, SAME = "default", "stationary=True", "as Contrast"
"""Fits by default; those that lengths are compared with; whether the t_test is what `Contrast` says."""
PRICED = (LEVELS, DIFFERENCE, CONTRASTS)
MILLIONTH = 1e-6
CLOSE = 1e-12


@dataclass
class Compared(Tally):
    """Also the intervals that were requested, and the summed length of those that there are, in millionths.

    Whole numbers, so sums do not hang on the order of the blocks.
    """

    asked: int = 0
    length: int = 0


@dataclass(frozen=True)
class Answer:
    """Whether each interval, or test, holds the truth, its length, NaN if there is none; shape (m,)."""

    holds: NDArray[np.bool_]
    length: Array
    cautioned: bool


def of_limits(limits: Any, truth: Any, cautions: Any) -> Answer:
    """An answer by intervals; limits (m, 2), truth (m,)."""
    low, high = np.asarray(limits, dtype=np.float64).reshape(-1, 2).T
    value = np.asarray(truth, dtype=np.float64)
    length = np.where(np.isfinite(high - low), high - low, np.nan)
    return Answer((low <= value) & (value <= high), length, bool(cautions))


def of_decision(right: bool, cautions: Any) -> Answer:
    """An answer by a test, or a set: whether it is right."""
    return Answer(np.array([right]), np.zeros(1), bool(cautions))


def policies(n_arms: int) -> tuple[Array, Array]:
    """Two policies that were fixed in advance: mostly A, and mostly the last arm."""
    first = np.full(n_arms, 0.2 / (n_arms - 1))
    first[0] = 0.8
    return first, first[::-1].copy()


class Asked:
    """A log, as a user would make it of the file, and what is asked of it; truth (K,)."""

    def __init__(self, cell: Cell, frame: pd.DataFrame, truth: Array) -> None:
        self.cell, self.frame, self.truth = cell, frame, truth
        self.names = [arm_name(k) for k in range(cell.n_arms)]
        self.first, self.last = self.names[0], self.names[-1]
        self.lead = truth - truth[0]
        """Means of the arms less that of A."""

    def _log(self, **told: Any) -> Any:
        import adaptinf as ai

        if self.cell.binary:
            told["reward_range"] = (0.0, 1.0)
        names = {name: f"p_{name}" for name in self.names}
        return ai.AdaptiveLog(
            self.frame, action="arm", reward="reward", propensities=names, **nested_options(told)
        )

    @property
    def _batches(self) -> dict[str, str]:
        return {"batch": "day"} if self.cell.batched else {}

    @cached_property
    def rows(self) -> Any:
        """With the context where the design looked at it, unless it is not in the file."""
        if self.cell.by_context and not self.cell.hidden:
            return self._log(context="x", **self._batches)
        return self._log(**self._batches)

    @cached_property
    def covariates(self) -> Any:
        """With the context in any case, and that the design did not look at it where it did not."""
        if self.cell.by_context:
            return self.rows
        return self._log(context="x", context_free=True, **self._batches)

    @cached_property
    def sums(self) -> Any:
        """Sums by day, or by hour where shares move with it."""
        import adaptinf as ai

        return ai.Sums.of_log(self._log(batch="hour" if self.cell.by_hour else "day"))

    def answer(self, question: str, source: str) -> Answer:
        """What the library says where nothing else is requested."""
        own = self.from_rows() if question not in OF_SUMS else self.from_either(source, {})
        return own[question]()

    def by_own_weights(self, question: str) -> Answer:
        """The same where the user says that nothing moves."""
        return self.from_either(ROWS, {"stationary": True})[question]()

    def from_either(self, source: str, how: dict[str, Any]) -> dict[str, Callable[[], Answer]]:
        """What rows and sums are both asked."""
        import adaptinf as ai

        def log() -> Any:
            return self.sums if source == SUMS else self.rows

        def means() -> Any:
            return self._once((LEVELS, source, *how), lambda: ai.ArmMeans(log()).fit(**how))

        def contest() -> Any:
            return self._once((WINNER, source, *how), lambda: ai.Winner(log()).fit(**how))

        def levels() -> Answer:
            found = means()
            return of_limits(found.conf_int(ALPHA), self.truth, found.cautions)

        def difference() -> Answer:
            found = means()
            limits = found.t_test(f"`{self.last}` - `{self.first}`").conf_int(ALPHA)
            return of_limits(limits, self.lead[-1:], found.cautions)

        def joint() -> Answer:
            found = means()
            less_first = np.column_stack([-np.ones(len(self.names) - 1), np.eye(len(self.names) - 1)])
            test = found.wald_test((less_first, self.lead[1:]))
            return of_decision(bool(test.pvalue > ALPHA), found.cautions)

        def winner() -> Answer:
            found = contest()
            truth = self.truth[[self.names.index(found.winner)]]
            return of_limits(found.conf_int(ALPHA), truth, found.cautions)

        def against() -> Answer:
            found = ai.Winner(log(), control=self.first).fit(**how)
            truth = self.lead[[self.names.index(found.winner)]]
            return of_limits(found.conf_int(ALPHA), truth, found.cautions)

        def best() -> Answer:
            found = contest()
            return of_decision(bool(found.best_arms(ALPHA)["in_set"][self.first]), found.cautions)

        def contrasts() -> Answer:
            found = ai.Contrasts(log(), control=self.first).fit(**how)
            return of_limits(found.conf_int(ALPHA), self.lead[1:], found.cautions)

        return {
            LEVELS: levels,
            DIFFERENCE: difference,
            JOINT: joint,
            WINNER: winner,
            AGAINST: against,
            BEST: best,
            CONTRASTS: contrasts,
        }

    def from_rows(self) -> dict[str, Callable[[], Answer]]:
        """What rows alone are asked."""
        import adaptinf as ai

        one, other = policies(self.cell.n_arms)
        by_context = effects_by_context(self.cell)

        def values() -> Answer:
            found = ai.PolicyValue(self.rows, [one, other]).fit()
            return of_limits(found.conf_int(ALPHA), [one @ self.truth, other @ self.truth], found.cautions)

        def contrast() -> Answer:
            found = ai.PolicyContrast(self.rows, other, baseline=one).fit()
            return of_limits(found.conf_int(ALPHA), [(other - one) @ self.truth], found.cautions)

        def coefficients() -> Answer:
            hidden, log = self.cell.hidden, self.rows if self.cell.hidden else self.covariates
            formula = "reward ~ C(action)" if hidden else "reward ~ C(action) * x"
            found = ai.AdaptiveOLS.from_formula(formula, log).fit()
            truth = {f"C(action)[T.{name}]": self.lead[k] for k, name in enumerate(self.names)}
            truth |= {f"{term}:x": by_context[0] - by_context[1] for term in truth}
            terms = [term for term in found.terms if term in truth]
            assert len(terms) == (1 if hidden else 2) * (len(self.names) - 1), found.terms
            limits = found.conf_int(ALPHA).loc[terms]
            return of_limits(limits, [truth[term] for term in terms], found.cautions)

        def groups() -> Answer:
            found = ai.CATE(self.covariates, by="x", treatment=self.last, control=self.first).fit()
            assert list(found.terms) == ["x=-0.5", "x=0.5"], found.terms
            return of_limits(found.conf_int(ALPHA), self.lead[-1] - np.array(by_context), found.cautions)

        return {VALUES: values, POLICIES: contrast, COEFFICIENTS: coefficients, GROUPS: groups}

    def as_contrast(self, source: str) -> Answer:
        """Whether the t_test of two arms is what `Contrast` says of them."""
        import adaptinf as ai

        log = self.sums if source == SUMS else self.rows
        means = self._once((LEVELS, source), lambda: ai.ArmMeans(log).fit())
        test = means.t_test(f"`{self.last}` - `{self.first}`").conf_int(ALPHA)
        alone = ai.Contrast(log, treatment=self.last, control=self.first).fit()
        both = np.asarray(test, dtype=np.float64).ravel(), alone.conf_int(ALPHA).to_numpy().ravel()
        same = np.allclose(*both, rtol=CLOSE, atol=CLOSE, equal_nan=True)
        return of_decision(bool(same), alone.cautions)

    def _once(self, name: tuple[str, ...], fit: Callable[[], Any]) -> Any:
        """What a fit gave, or the refusal with which it ended: the same for all questions to it."""
        import adaptinf as ai

        kept: dict[tuple[str, ...], Any] = self.__dict__.setdefault("fitted", {})
        if name not in kept:
            try:
                kept[name] = fit()
            except ai.errors.InvalidForLog as error:
                kept[name] = error
        if isinstance(kept[name], Exception):
            raise kept[name]
        return kept[name]


def number_of(question: str, cell: Cell) -> int:
    """How many intervals, or decisions, a question asks for."""
    others = cell.n_arms - 1
    return {
        LEVELS: cell.n_arms,
        CONTRASTS: others,
        VALUES: 2,
        COEFFICIENTS: others if cell.hidden else 2 * others,
        GROUPS: 2,
    }.get(question, 1)


def tally(answer: Callable[[], Answer], number: int) -> Compared:
    """Counts of one answer; a refusal counts as one."""
    import adaptinf as ai

    try:
        found = answer()
    except ai.errors.InvalidForLog:
        return Compared(logs=1, refused=1, asked=number)
    assert len(found.holds) == number
    there = np.isfinite(found.length)
    covered, clean = int(found.holds[there].sum()), not found.cautioned
    return Compared(
        logs=1,
        cautioned=int(found.cautioned),
        intervals=int(there.sum()),
        covered=covered,
        clean=int(there.sum()) * clean,
        clean_covered=covered * clean,
        asked=number,
        length=round(float(found.length[there].sum()) / MILLIONTH),
    )


def measure(runs: Runs, run: int, frame: pd.DataFrame) -> Tallies:
    """All that is asked of one log."""
    cell = runs.cell
    one = Asked(cell, frame, runs.truth[run])
    found: Tallies = {}
    for question, source in asked(cell):
        number = number_of(question, cell)
        found[Key(question, DEFAULT, source)] = tally(lambda q=question, s=source: one.answer(q, s), number)
    for source in (ROWS, SUMS):
        found[Key(DIFFERENCE, SAME, source)] = tally(lambda s=source: one.as_contrast(s), 1)
    if cell.move == "none":
        for question in PRICED:
            number = number_of(question, cell)
            found[Key(question, STATIONARY, ROWS)] = tally(lambda q=question: one.by_own_weights(q), number)
    return found
