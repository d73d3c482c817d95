"""Parts of a page: escaped text, lists, tables with scopes, plots, and the page around them."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from adaptinf.inference.results.tables import body_of, joined_heads
from adaptinf.markup import escaped, table
from adaptinf.reports.page_style import STYLE

if TYPE_CHECKING:
    from adaptinf.inference.results.summary import ResultSummary

Section = tuple[str, str, str]
"""Anchor, heading and content."""


def paragraph(text: str) -> str:
    """A paragraph of plain text."""
    return f"<p>{escaped(text)}</p>"


def listed(items: Iterable[str], kind: str = "ul") -> str:
    """A list of plain texts; empty if there are none."""
    inner = "\n".join(f"<li>{escaped(item)}</li>" for item in items)
    return f'<{kind} class="notes">\n{inner}\n</{kind}>' if inner else ""


def defined(pairs: Iterable[tuple[str, Any]]) -> str:
    """Names with their values."""
    inner = "\n".join(f"<dt>{escaped(name)}</dt><dd>{escaped(value)}</dd>" for name, value in pairs)
    return f"<dl>\n{inner}\n</dl>" if inner else ""


def stacked(pairs: Iterable[tuple[str, str]]) -> str:
    """Names, with text below each."""
    inner = "\n".join(f"<dt>{escaped(name)}</dt><dd>{escaped(told)}</dd>" for name, told in pairs)
    return f'<dl class="stacked">\n{inner}\n</dl>' if inner else ""


def code(text: str) -> str:
    """A call, as typed."""
    return f"<pre><code>{escaped(text)}</code></pre>"


def linked(anchor: str, text: str) -> str:
    """A link within the page."""
    return f'<a href="#{anchor}">{escaped(text)}</a>'


def folded(title: str, content: str) -> str:
    """Folded content, open in print; empty if there is none."""
    return f"<details>\n<summary>{escaped(title)}</summary>\n{content}\n</details>" if content else ""


def summary_parts(summary: ResultSummary, first: str = "row") -> str:
    """A summary's facts, tables and notes."""
    pairs, parts = [], []
    for one in summary.tables:
        rows, heads = body_of(one), joined_heads(one)
        if heads:
            parts.append(table([first, *heads[1:]], rows, summary.title))
        else:
            pairs += [(row[at].rstrip(":"), row[at + 1]) for at in range(0, len(rows[0]), 2) for row in rows]
    parts.insert(0, defined((name, value) for name, value in pairs if name))
    parts += [f"<p>Notes</p>\n{listed(summary.notes, 'ol')}"] if summary.notes else []
    return "\n".join(part for part in parts if part)


def picture(svg: bytes, alt: str, caption: str) -> str:
    """A plot embedded in the page."""
    data = base64.b64encode(svg).decode("ascii")
    return (
        f'<figure>\n<img src="data:image/svg+xml;base64,{data}" alt="{escaped(alt)}">\n'
        f"<figcaption>{escaped(caption)}</figcaption>\n</figure>"
    )


def contents(sections: Sequence[Section]) -> str:
    """Links to the sections."""
    links = "\n".join(f"<li>{linked(name, heading)}</li>" for name, heading, _ in sections)
    return f'<nav aria-label="Contents">\n<ul>\n{links}\n</ul>\n</nav>'


def divided(sections: Sequence[Section]) -> str:
    """Sections with their headings."""
    return "\n".join(
        f'<section aria-labelledby="{name}">\n<h2 id="{name}">{escaped(heading)}</h2>\n{content}\n</section>'
        for name, heading, content in sections
    )


def boxed(warning: str, content: str) -> str:
    """Content that must not be passed on, in a frame that states this."""
    return f'<div class="box">\n<p role="note" class="warning">{escaped(warning)}</p>\n{content}\n</div>'


def page(title: str, parts: Iterable[str], kind: str = "") -> str:
    """A complete page: title and contents."""
    named = f' class="{kind}"' if kind else ""
    body = "\n".join(part for part in parts if part)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{escaped(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body{named}>\n<main>\n"
        f"<h1>{escaped(title)}</h1>\n{body}\n</main>\n</body>\n</html>\n"
    )
