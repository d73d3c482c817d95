"""The part of a report on the public part of a private log: statement, releases, and their answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adaptinf.claims.reports import page as claims
from adaptinf.errors import InvalidForLog
from adaptinf.inference.arms import Contrast
from adaptinf.inference.effects import CATE
from adaptinf.inference.inputs.published import answered_by
from adaptinf.inference.released import BinMeans
from adaptinf.markup import table
from adaptinf.reports.report_page import Section, defined, folded, paragraph

if TYPE_CHECKING:
    from adaptinf.inference.results.fit_results import Results
    from adaptinf.log import PublicLog

_SHOWN = 100


def answer_of(public: PublicLog) -> tuple[Results | None, str]:
    """The table that follows from the releases without further choices; or None, with the reason."""
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


def published_sections(public: PublicLog) -> list[Section]:
    """The published contents, with reasons, and the releases."""
    return [
        ("published", "What may be published, and what is left out", _statement(public)),
        ("releases", "Releases", folded(claims.SEE_RELEASES(), _releases(public))),
    ]


def _statement(public: PublicLog) -> str:
    """The statement, with its two lists."""
    opening = public.statement.partition("Included:")[0].splitlines()
    told = [paragraph(line) for line in opening if line.strip()]
    lists = (("Included:", public.covered), ("Left out:", public.left_out))
    return "\n".join([*told, *(f"{paragraph(name)}\n{defined(parts.items())}" for name, parts in lists)])


def _releases(public: PublicLog) -> str:
    """The last rows of the releases."""
    rows = public.releases.tail(_SHOWN)
    if rows.empty:
        return paragraph("There are none.")
    texts = [[str(cell) for cell in row] for row in rows.itertuples(index=False, name=None)]
    many = len(public.releases)
    caption = f"The last {len(rows)} of {many:,} releases" if many > len(rows) else f"All {many} releases"
    return table([str(name) for name in rows], texts, caption)
