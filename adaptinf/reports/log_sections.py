"""Sections of a report on the log behind a result: its checks, its assumptions, how it was collected."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from adaptinf.claims import Said
from adaptinf.claims.reports import page as claims
from adaptinf.claims.views import Assumed
from adaptinf.errors import InvalidForLog
from adaptinf.inference.diagnostics import diagnose
from adaptinf.inference.results.tables import format_pvalue
from adaptinf.markup import table
from adaptinf.reports.collection_facts import arm_rows, log_facts
from adaptinf.reports.report_page import (
    defined,
    folded,
    listed,
    paragraph,
    stacked,
    summary_parts,
    summary_tables,
)

if TYPE_CHECKING:
    from adaptinf.inference.diagnostics import Diagnosis
    from adaptinf.inference.recommend import Recommendation
    from adaptinf.inference.results.fit_results import Results
    from adaptinf.log import AdaptiveLog
    from adaptinf.reports.shown_numbers import Shown
    from adaptinf.sums import Sums

_CHECKED = {"checked": claims.CHECKED, "contradicted": claims.CONTRADICTED, "": claims.UNCHECKED}


def diagnosis_of(log: AdaptiveLog | Sums | None, alpha: float) -> tuple[Diagnosis | None, str]:
    """The checks of a log, or why there are none."""
    if log is None:
        return None, claims.NEEDS_LOG()
    try:
        return diagnose(log, alpha=alpha), ""
    except InvalidForLog as error:
        return None, str(error)


def diagnosed(found: Diagnosis | None, why: str) -> str:
    """Checks that failed, with what to do about them; all others are folded."""
    if found is None:
        return paragraph(why)
    failed = found.concerns
    every = folded(claims.ALL_CHECKS(count=len(found.checks)), summary_parts(found.summary(), "check"))
    if not failed:
        return f"{paragraph(claims.NO_CONCERN())}\n{every}"
    told: dict[tuple[str, str, str], list[str]] = {}
    for one in failed:
        p = "" if math.isnan(one.log_adjusted) else f" (Holm P {format_pvalue(one.log_adjusted)})"
        told.setdefault((one.name, one.verdict, one.advice), []).append(f"{one.term}{p}")
    items = [
        (f"{name[:1].upper()}{name[1:]}: {verdict}", f"{', '.join(terms)}. {advice[:1].upper()}{advice[1:]}.")
        for (name, verdict, advice), terms in told.items()
    ]
    caption = claims.FAILED(failed=len(failed), count=len(found.checks))
    return "\n".join([paragraph(f"{caption}."), stacked(items), every])


def assumed(results: Results) -> tuple[list[str], list[str]]:
    """What a result takes for granted, and of what it is an average."""
    clauses = [one for note in results.notes if isinstance(note, Assumed) for one in note.clauses]
    targets: list[str] = [one for one in clauses if isinstance(one, Said) and one.claim.kind == "target"]
    return [one for one in clauses if one not in targets], targets


def assumptions(results: Results) -> str:
    """What is assumed, and whether the log was asked about it."""
    clauses, targets = assumed(results)
    rows = [[one, _CHECKED[one.status if isinstance(one, Said) else ""]()] for one in clauses]
    told = [paragraph(f"{one[:1].upper()}{one[1:]}.") for one in targets]
    if not rows:
        return "\n".join([paragraph(claims.NOTHING_ASSUMED()), *told])
    return "\n".join([table(("assumption", "was it checked?"), rows, "Assumptions"), *told])


def collected(log: AdaptiveLog | Sums | None) -> str:
    """What the log says of itself, and its arms."""
    if log is None:
        return paragraph(claims.NEEDS_LOG())
    headers, rows = arm_rows(log, means=False)
    return f"{defined(log_facts(log))}\n{table(headers, rows, 'Arms')}"


def numbers(shown: Shown | None, why: str, notes: Sequence[str]) -> str:
    """The table of a result, how valid it is, and how it was made."""
    if shown is None:
        return paragraph(why)
    results = shown.results
    more = "" if results.correction is None else claims.CORRECTED_VALID()
    summary = results.summary(shown.alpha, shown.adjust)
    *facts, table_of_terms = summary_tables(summary, "term")
    made = "\n".join([*facts, listed(notes)])
    parts = [table_of_terms, paragraph(claims.VALID[results.validity](more=more))]
    return "\n".join([*parts, folded(claims.HOW_MADE(), made)])


def valid_methods(found: Recommendation | None, why: str) -> str:
    """Which other methods there are; folded."""
    if found is None:
        return paragraph(why or claims.NEEDS_LOG())
    count = claims.METHODS_RANKED(count=len(found.methods))
    return folded(count, summary_parts(found.summary(), "rank"))
