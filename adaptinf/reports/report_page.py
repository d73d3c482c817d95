"""The parts of a page: escaped text, lists, tables with scopes, pictures, and the page around them."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf import plots
from adaptinf.claims.reports import page as claims
from adaptinf.log import AdaptiveLog
from adaptinf.markup import escaped, table
from adaptinf.plots.picture_files import drawn
from adaptinf.plots.style import pyplot
from adaptinf.reports.collection_facts import shown_limits

if TYPE_CHECKING:
    from adaptinf.inference.results.base import Results
    from adaptinf.inference.results.summary import ResultSummary
    from adaptinf.sums import Sums


_STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem 1rem 3rem; background: #fff; color: #1a1a1a;
  font: 1rem/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 .6rem; padding-top: .6rem; border-top: 1px solid #767676; }
p, li, dd { max-width: 46rem; }
a { color: #004b87; }
nav ul { padding-left: 1.2rem; columns: 16rem; }
dl { display: grid; grid-template-columns: minmax(7rem, max-content) 1fr; gap: .2rem 1rem; margin: .6rem 0; }
dt { font-weight: 600; }
dd { margin: 0; min-width: 0; }
.wide { overflow-x: auto; margin: .8rem 0; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding-bottom: .3rem; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #c8c8c8; text-align: left; vertical-align: top;
  overflow-wrap: normal; }
thead th { border-bottom: 2px solid #1a1a1a; vertical-align: bottom; }
th[scope=row] { font-weight: 600; }
.number { text-align: right; white-space: nowrap; }
.fill table { width: 100%; table-layout: fixed; }
.fill th:nth-child(1) { width: 3.2rem; }
.fill th:nth-child(2) { width: 6rem; }
.fill th[scope=col]:nth-child(3) { width: 36%; }
.halves th:nth-child(1) { width: 40%; }
.halves th:nth-child(2) { width: auto; }
.fill td, .fill th { padding: .25rem .3rem; overflow-wrap: anywhere; }
.fill th[scope=row] { font-weight: 400; }
figure { margin: 1rem 0; }
figure img { width: 100%; max-width: 34rem; height: auto; display: block; }
figcaption { font-size: .9rem; max-width: 46rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #f3f3f3; padding: .6rem .8rem;
  font-size: .85rem; }
.box { border: 2px solid #8a1c1c; padding: .6rem .8rem; font-weight: 600; }
.ask { background: #fff3cd; color: #1a1a1a; padding: 0 .25rem; }
.notes { font-size: .9rem; padding-left: 1.6rem; }
@media (max-width: 40rem) { .fill table { font-size: .8rem; }
  .fill thead th { font-size: .66rem; } .fill th:nth-child(1) { width: 2.2rem; }
  .fill th:nth-child(2) { width: 4.4rem; } .fill th[scope=col]:nth-child(3) { width: 33%; }
  .halves th:nth-child(1) { width: 40%; } .halves th:nth-child(2) { width: auto; }
  dl { grid-template-columns: 1fr; gap: 0; } dd { margin: 0 0 .5rem; } }
@media print { body { max-width: none; padding: 0; font-size: 10pt; } nav { display: none; }
  .wide { overflow: visible; } h2 { break-after: avoid; } figure, tr { break-inside: avoid; } }
"""


def paragraph(text: str) -> str:
    """A paragraph of plain text."""
    return f"<p>{escaped(text)}</p>"


def listed(items: Iterable[str], kind: str = "ul") -> str:
    """A list of plain texts; nothing where there are none."""
    inner = "\n".join(f"<li>{escaped(item)}</li>" for item in items)
    return f'<{kind} class="notes">\n{inner}\n</{kind}>' if inner else ""


def defined(pairs: Iterable[tuple[str, Any]]) -> str:
    """Names with what they stand for."""
    inner = "\n".join(f"<dt>{escaped(name)}</dt><dd>{escaped(value)}</dd>" for name, value in pairs)
    return f"<dl>\n{inner}\n</dl>" if inner else ""


def code(text: str) -> str:
    """A call as it is typed."""
    return f"<pre><code>{escaped(text)}</code></pre>"


def summary_parts(summary: ResultSummary, first: str = "row") -> str:
    """A summary's tables and notes: a table without headers as names with what they stand for."""
    parts = []
    for one in summary.tables:
        rows = [[str(cell) for cell in row] for row in one.data]
        heads = [row for row, cells in zip(rows, one, strict=True) if _is_header(cells)]
        if heads:
            names = [" ".join(part for part in column if part) for column in zip(*heads, strict=True)]
            parts.append(table([first, *names[1:]], rows[len(heads) :], summary.title))
        else:
            pairs = [(row[at], row[at + 1]) for at in range(0, len(rows[0]), 2) for row in rows]
            parts.append(defined((name.rstrip(":"), value) for name, value in pairs))
    if summary.notes:
        parts.append(f"<p>Notes</p>\n{listed(summary.notes, 'ol')}")
    return "\n".join(parts)


def _is_header(cells: Iterable[Any]) -> bool:
    return any(cell.datatype == "header" for cell in cells)


def picture(svg: bytes, alt: str, caption: str) -> str:
    """A picture that the page carries itself."""
    data = base64.b64encode(svg).decode("ascii")
    return (
        f'<figure>\n<img src="data:image/svg+xml;base64,{data}" alt="{escaped(alt)}">\n'
        f"<figcaption>{escaped(caption)}</figcaption>\n</figure>"
    )


def page(
    title: str, lead: str, sections: Sequence[tuple[str, str, str]], warnings: Sequence[str] = ()
) -> str:
    """A whole page: title, lead, what to know before reading on, and sections (anchor, heading, content)."""
    box = "".join(f'<p role="note" class="box">{escaped(one)}</p>\n' for one in warnings)
    links = "\n".join(f'<li><a href="#{name}">{escaped(heading)}</a></li>' for name, heading, _ in sections)
    body = "\n".join(
        f'<section aria-labelledby="{name}">\n<h2 id="{name}">{escaped(heading)}</h2>\n{content}\n</section>'
        for name, heading, content in sections
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{escaped(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{escaped(title)}</h1>\n{paragraph(lead)}\n{box}"
        f'<nav aria-label="Contents">\n<ul>\n{links}\n</ul>\n</nav>\n{body}\n</main>\n</body>\n</html>\n'
    )


# Rows of a forest plot, and arms of a picture over the rounds: more are not legible.
_MOST = 40


def pictures(results: Results | None, log: AdaptiveLog | Sums | None, alpha: float) -> str:
    """Allocation and propensities over the rounds, and estimates with their intervals."""
    parts = []
    if isinstance(log, AdaptiveLog) and log.n_arms <= _MOST:
        counts = np.bincount(log.arrays.action, minlength=log.n_arms)
        shares = ", ".join(
            f"{arm} {share:.1%}" for arm, share in zip(log.arms, counts / log.n_rounds, strict=True)
        )
        alt = claims.SHARES_TEXT(shares=shares)
        parts.append(_shown(plots.allocation(log), alt, claims.SHARES()))
        if log.arrays.propensity is not None:
            smallest = float(log.arrays.propensity.min())
            alt = claims.PROPENSITIES_TEXT(smallest=smallest)
            parts.append(_shown(plots.propensities(log), alt, claims.PROPENSITIES()))
    if results is not None and len(results.terms) <= _MOST:
        level = f"{100.0 * (1.0 - alpha):g}%"
        limits = shown_limits(results, alpha)
        ends = zip(results.terms, results.estimate, limits["low"], limits["high"], strict=True)
        told = "; ".join(f"{term}: {at:.4g}, {low:.4g} to {high:.4g}" for term, at, low, high in ends)
        both = "" if results.correction is None else ", naive and corrected"
        caption = f"Estimates with {level} intervals{both}."
        parts.append(_shown(plots.forest(results, alpha=alpha), f"{caption} {told}", caption))
    return "\n".join(parts)


def _shown(axes: Any, alt: str, caption: str) -> str:
    """A picture in the page; its figure is closed."""
    figure = axes.get_figure(root=True)
    try:
        return picture(drawn(figure, "svg"), alt, caption)
    finally:
        pyplot("report").close(figure)
