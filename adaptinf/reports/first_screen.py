"""The first screen of a report: the finding in a sentence, its plot with the numbers, and cautions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from adaptinf.claims.reports import answer as claims
from adaptinf.markup import escaped
from adaptinf.reports.forest_rows import forest
from adaptinf.reports.report_page import linked, paragraph

if TYPE_CHECKING:
    from adaptinf.inference.results.log_facts import LogFacts
    from adaptinf.reports.data_digest import Source
    from adaptinf.reports.shown_numbers import Shown


_LONG = 140
"""Length of a sentence, in characters, above which its font is smaller."""


def lead(sentence: str, cautions: Sequence[str]) -> str:
    """The sentence, and whether further text follows."""
    kind = "lead long" if len(sentence) > _LONG else "lead"
    told = f'<p class="{kind}">{escaped(sentence)}</p>'
    if not cautions:
        return told
    count = "1 caution" if len(cautions) == 1 else f"{len(cautions)} cautions"
    more = claims.CAUTIONED(cautions=count)
    return f'{told}\n<p class="meta"><a href="#cautions">{escaped(more)}</a></p>'


def picture(shown: Shown, all_rows: str = "results") -> str:
    """The forest plot; if there are many rows, the important ones, with a link to the rest."""
    caption = f"{shown.heading}: {shown.named}."
    parts = [forest(shown, caption)]
    if shown.which:
        more = f"All {len(shown.results.terms)} rows"
        link = f" {linked(all_rows, more)}." if all_rows else ""
        parts.append(f'<p class="meta">{escaped(shown.which)}{link}</p>')
    if shown.multiplicity:
        parts.append(f'<p class="meta">{escaped(shown.multiplicity)}</p>')
    return "\n".join(parts)


def warnings(cautions: Sequence[str]) -> str:
    """Every caution, in full."""
    told = [f"{one.rstrip('.')}." for one in cautions]
    inner = "\n".join(f'<p class="caution"><strong>Caution:</strong> {escaped(one)}</p>' for one in told)
    return f'<div role="note" id="cautions">\n{inner}\n</div>' if inner else ""


def origin(facts: LogFacts, data: Sequence[Source], date: str, version: str) -> str:
    """The data that were analysed, the date, and the version."""
    rounds: str = claims.ROUNDS(rounds=facts.n_rounds, design=facts.design or "an unnamed design")
    if facts.stopping is not None and facts.stopping.said is not None:
        rounds += f", stopping {facts.stopping.told}"
    known = f" Data: {'; '.join(one.short for one in data)}." if data else ""
    return f'<div class="meta">{paragraph(f"{rounds}.{known} {date}, {version}.")}</div>'
