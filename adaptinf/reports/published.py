"""The report of a log's public part: its statement, its releases, and the table that they answer."""

from __future__ import annotations

from adaptinf.claims.reports import page as claims
from adaptinf.errors import InvalidForLog
from adaptinf.inference.arms import Contrast
from adaptinf.inference.effects import CATE
from adaptinf.inference.inputs.published import answered_by
from adaptinf.inference.released import BinMeans
from adaptinf.inference.results.base import Results
from adaptinf.inference.results.facts import LogFacts
from adaptinf.log import PublicLog
from adaptinf.markup import table
from adaptinf.reports.collection import guarantee_facts
from adaptinf.reports.methods import methods_told, versions
from adaptinf.reports.page import code, defined, listed, page, paragraph, summary_parts

_SHOWN = 100


def answer_of(public: PublicLog) -> tuple[Results | None, str]:
    """The table that the releases answer without a further choice; None, and why, where there is none."""
    ways = answered_by(public)
    if not ways:
        return None, claims.UNREAD()
    treatment, control = public.arms[-1], public.arms[0]
    try:
        if ways[0].startswith("BinMeans"):
            return BinMeans(public).fit(), ""
        if public.n_arms > 2:
            return None, claims.SEVERAL_PAIRS(arms=public.n_arms)
        if public.facts["contexts"]:
            return CATE(public, by=public.facts["contexts"][0]).fit(), ""
        return Contrast(public, treatment=treatment, control=control).fit(), ""
    except InvalidForLog as error:
        return None, str(error)


def published_page(public: PublicLog, alpha: float, title: str, call: str | None) -> str:
    """The whole page."""
    results, why = answer_of(public)
    facts = LogFacts.released(public)
    lead = claims.PUBLISHED(
        rounds=public.n_rounds,
        design=facts.design or "an unnamed design",
        version=versions().partition(" (")[0],
    )
    answer = paragraph(why) if results is None else summary_parts(results.summary(alpha), "term")
    sections = [
        ("published", "What is published, and what is left out", code(public.statement)),
        ("results", "Results", answer),
        ("releases", "Releases", _releases(public)),
        ("guarantee", "Privacy guarantee", defined(guarantee_facts(None, facts, released=True))),
    ]
    if results is not None:
        told, references = methods_told(results, None, alpha)
        sections.append(("methods", "Methods, ready to paste", f"{paragraph(told)}\n{listed(references)}"))
    exact = [code(call)] if call else []
    sections.append(("call", "Call and versions", "\n".join([*exact, paragraph(versions())])))
    return page(title, lead, sections)


def _releases(public: PublicLog) -> str:
    """The last rows of the releases."""
    rows = public.releases.tail(_SHOWN)
    if rows.empty:
        return paragraph("There are none.")
    texts = [[str(cell) for cell in row] for row in rows.itertuples(index=False, name=None)]
    many = len(public.releases)
    caption = f"The last {len(rows)} of {many:,} releases" if many > len(rows) else f"All {many} releases"
    return table([str(name) for name in rows], texts, caption)
