"""HTML for external text: escaped, with tables that screen readers can navigate."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol

from adaptinf.texts import literal, shown

_NUMBERS = frozenset("0123456789.,<>e+-%nafi ")
_FACTS = ("property", "value")


class _Record(Protocol):
    """The name and parameters of a design."""

    @property
    def name(self) -> str: ...
    @property
    def parameters(self) -> Any: ...


class Recorded:
    """Base class of designs and rules, which notebooks show as a table of parameters."""

    def record(self) -> Any:
        """Name and parameters."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        own: _Record = self.record()
        return table(("parameter", "value"), _parameter_rows(own.parameters) or [("none", "")], own.name)


def _parameter_rows(parameters: Mapping[str, Any], within: str = "") -> list[tuple[str, str]]:
    """Parameters keyed by name; for an inner design, the name follows a prefix and a dot."""
    rows: list[tuple[str, str]] = []
    for name, value in parameters.items():
        if isinstance(value, Mapping):
            rows += _parameter_rows(value, f"{within}{name}.")
        else:
            rows.append((f"{within}{name}", shown(value)))
    return rows


def escaped(value: Any) -> str:
    """Text on one visible line, with every character literal in HTML."""
    return html.escape(literal(str(value)))


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    """A table of plain text whose first column names the rows; numeric columns are right-aligned."""
    numeric = [
        place > 0 and any(row[place] for row in rows) and all(set(row[place]) <= _NUMBERS for row in rows)
        for place in range(len(headers))
    ]
    sides = [' class="number"' if number else "" for number in numeric]
    top = "".join(
        f'<th scope="col"{side}>{escaped(name)}</th>' for name, side in zip(headers, sides, strict=True)
    )
    body = "\n".join(
        f'<tr><th scope="row">{escaped(row[0])}</th>'
        + "".join(f"<td{side}>{escaped(cell)}</td>" for cell, side in zip(row[1:], sides[1:], strict=True))
        + "</tr>"
        for row in rows
    )
    return framed(caption, f"<thead><tr>{top}</tr></thead>\n<tbody>\n{body}\n</tbody>")


def framed(caption: str, inner: str, kind: str = "wide") -> str:
    """A table in a separate frame, which scrolls or fills the page if the page is narrow."""
    name = escaped(caption)
    return (
        f'<div class="{kind}" role="region" aria-label="{name}" tabindex="0">\n'
        f"<table>\n<caption>{name}</caption>\n{inner}\n</table>\n</div>"
    )


def described(text: str, arms: Sequence[Any], rounds: Iterable[float], most: int = 30) -> str:
    """Two tables: lines ``name: value`` under a title, and the rounds of each arm."""
    title, *lines = text.split("\n")
    facts = [(name.strip(), value) for name, _, value in (line.partition(": ") for line in lines)]
    counted = [(str(arm), f"{count:,.0f}") for arm, count in islice(zip(arms, rounds, strict=True), most)]
    more = f", the first {most} of {len(arms)}" if len(arms) > most else ""
    name = f"Rounds by arm{more}"
    return f"{table(_FACTS, facts, title)}\n{table(('arm', 'rounds'), counted, name)}"


def numbered_notes(notes: Sequence[str]) -> str:
    """Notes as a numbered list; empty if there are none."""
    inner = "\n".join(f"<li>{escaped(note)}</li>" for note in notes)
    return f"<p>Notes:</p>\n<ol>\n{inner}\n</ol>" if inner else ""
