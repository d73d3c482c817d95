"""Sections of a report on the log behind a result: checks, assumptions, collection, and plots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf import plots
from adaptinf.claims import Said
from adaptinf.claims.reports import page as claims
from adaptinf.claims.tables import CHECKS
from adaptinf.errors import InvalidForLog, MissingDependencyError, ParameterError
from adaptinf.inference.diagnostics import diagnose
from adaptinf.inference.results.summary import facts_of
from adaptinf.inference.results.tables import format_pvalue
from adaptinf.log import AdaptiveLog
from adaptinf.markup import table
from adaptinf.plots.picture_files import drawn
from adaptinf.plots.style import pyplot
from adaptinf.reports.collection_facts import arm_rows, log_facts
from adaptinf.reports.report_page import (
    defined,
    folded,
    listed,
    paragraph,
    picture,
    stacked,
    summary_parts,
)
from adaptinf.texts import arm_label

if TYPE_CHECKING:
    from adaptinf.inference.diagnostics import Diagnosis
    from adaptinf.inference.recommend import Recommendation
    from adaptinf.reports.shown_numbers import Shown
    from adaptinf.sums import Sums

_CHECKED = {
    CHECKS["checked"]: claims.CHECKED,
    CHECKS["contradicted"]: claims.CONTRADICTED,
    CHECKS[""]: claims.UNCHECKED,
}


def diagnosis_of(log: AdaptiveLog | Sums | None, alpha: float) -> tuple[Diagnosis | None, str]:
    """The checks of a log, or the reason why there are none."""
    if log is None:
        return None, claims.NEEDS_LOG()
    try:
        return diagnose(log, alpha=alpha), ""
    except InvalidForLog as error:
        return None, str(error)


def diagnosed(found: Diagnosis | None, why: str) -> str:
    """Failed checks, with advice; all others are folded."""
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


def assumptions(shown: Shown) -> str:
    """The assumptions, whether they were checked on the log, and the estimated averages."""
    rows = []
    for one in shown.reasons.of("assumes"):
        scope = one.text.scope if isinstance(one.text, Said) else ""
        told = claims.CHECKED_IN_PART(scope=scope) if scope else _CHECKED[one.check]()
        rows.append([one.text, told])
    targets = [paragraph(f"{one.text[:1].upper()}{one.text[1:]}.") for one in shown.reasons.of("target")]
    if not rows:
        return "\n".join([paragraph(claims.NOTHING_ASSUMED()), *targets])
    return "\n".join([table(("assumption", "was it checked?"), rows, "Assumptions"), *targets])


def collected(log: AdaptiveLog | Sums | None) -> str:
    """The log's statements about itself, and its arms."""
    if log is None:
        return paragraph(claims.NEEDS_LOG())
    headers, rows = arm_rows(log, means=False)
    return f"{defined(log_facts(log))}\n{table(headers, rows, 'Arms')}"


def numbers(shown: Shown | None, why: str, notes: Sequence[str]) -> str:
    """The table of a result with the intervals of the plot, its validity, and how it was computed."""
    if shown is None:
        return paragraph(why)
    results = shown.results
    headers, rows = shown.columns
    more = "" if results.correction is None else claims.CORRECTED_VALID()
    short, long = facts_of(results, shown.alpha)
    facts = defined((name.rstrip(":"), value) for name, value in [*short, *long])
    parts = [table(headers, rows, f"{results.model} Results: {shown.named}")]
    parts.append(paragraph(claims.VALID[results.validity](more=more)))
    return "\n".join([*parts, folded(claims.HOW_MADE(), f"{facts}\n{listed(notes)}")])


def valid_methods(found: Recommendation | None, why: str) -> str:
    """The other methods available, in folded form."""
    if found is None:
        return paragraph(why or claims.NEEDS_LOG())
    count = claims.METHODS_RANKED(count=len(found.methods))
    return folded(count, summary_parts(found.explain(), "rank"))


_MOST = 8
"""Number of arms in a plot over rounds: more are not legible."""


def allocation_pictures(log: AdaptiveLog | Sums | None) -> str:
    """Shares and propensities over the rounds, or the reason why there are none."""
    if log is None:
        return paragraph(claims.NEEDS_LOG())
    try:
        return "\n".join(_pictures(log))
    except (MissingDependencyError, ParameterError) as error:
        return paragraph(str(error))


def _pictures(log: AdaptiveLog | Sums) -> list[str]:
    counts = log._rounds_by_arm()
    order = sorted(np.argsort(-counts, kind="stable")[:_MOST].tolist())
    arms = [log.arms[place] for place in order]
    few = claims.MOST_ASSIGNED(shown=_MOST, arms=log.n_arms) if log.n_arms > _MOST else ""
    shares = ", ".join(f"{arm_label(log.arms[place])} {counts[place] / log.n_rounds:.1%}" for place in order)
    told = f"{claims.SHARES_TEXT(shares=shares)} {few}".strip()
    parts = [_shown(plots.allocation(log, arms=arms), claims.SHARES(), told)]
    if isinstance(log, AdaptiveLog) and log.arrays.propensity is not None:
        told = claims.PROPENSITIES_TEXT(smallest=float(log.arrays.propensity.min()))
        picture_of = plots.propensities(log, arms=arms)
        parts.append(_shown(picture_of, claims.PROPENSITIES(), f"{told} {few}".strip()))
    return parts


def _shown(axes: Any, alt: str, caption: str) -> str:
    """A plot within the page; its figure is closed."""
    figure = axes.get_figure(root=True)
    try:
        return picture(drawn(figure, "svg"), alt, caption)
    finally:
        pyplot("report").close(figure)
