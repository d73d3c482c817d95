"""Claims as displayed: clauses joined, with punctuation between and after them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from adaptinf.claims.claim import Claim, Kind, Part, Said, answers, sentences

_STATUS = {"checked": "checked", "contradicted": "contradicted, see the caution"}


def sentence(clauses: Iterable[str]) -> str:
    """Clauses in one line, as in a cell of a table; without a full stop."""
    return "; ".join(filter(None, clauses))


class Assumed(str):
    """The note on a table's assumptions, with its clauses."""

    __slots__ = ("clauses",)
    clauses: tuple[str, ...]

    def __new__(cls, clauses: Iterable[str]) -> Assumed:
        """Tested assumptions come first, with the result; the target comes last."""
        listed = tuple(clauses)
        made = super().__new__(cls, _assumed(listed))
        made.clauses = listed
        return made

    def __reduce__(self) -> tuple[type[Assumed], tuple[tuple[str, ...]]]:
        return Assumed, (self.clauses,)


def assumptions(clauses: Iterable[str]) -> list[str]:
    """The note below a table on its assumptions and its target; empty if there are none."""
    note = Assumed(clauses)
    return [note] if note else []


def also_assumed(notes: Iterable[str], clauses: Iterable[str]) -> tuple[str, ...]:
    """Notes below a table with further assumptions, untestable ones first, without repetition."""
    listed, more = list(notes), list(clauses)
    for place, note in enumerate(listed):
        if isinstance(note, Assumed):
            listed[place] = Assumed(dict.fromkeys([*more, *note.clauses]))
            return tuple(listed)
    return (*listed, *assumptions(more))


def _assumed(clauses: Iterable[str]) -> str:
    asked, unasked, targets = [], [], []
    for clause in clauses:
        if isinstance(clause, Said) and clause.claim.kind == "target":
            targets.append(clause)
        elif status := _status(clause):
            asked.append(f"{clause} ({_STATUS[status]}{_scope(clause)})")
        else:
            unasked.append(clause)
    parts = [f"Assumes: {sentence(asked)}."] if asked else []
    if unasked:
        start = "Cannot be checked from this log" if asked else "Assumes, cannot be checked from this log"
        parts.append(f"{start}: {sentence(unasked)}.")
    parts += [f"{target[:1].upper()}{target[1:]}." for target in targets]
    return " ".join(parts)


def with_status(clauses: Iterable[str]) -> str:
    """Assumptions in one line, with those that were tested on the log marked."""
    return sentence(f"{one} ({status}{_scope(one)})" if (status := _status(one)) else one for one in clauses)


def of_terms(text: str, terms: str) -> str:
    """A claim, or a note on assumptions, or other text, preceded by the terms to which it applies."""
    if isinstance(text, Assumed):
        return Assumed(of_terms(clause, terms) for clause in text.clauses)
    if not isinstance(text, Said):
        return f"{terms}: {text}"
    claim = text.claim
    short = f"{claim.short} ({{_terms}})" if claim.short else ""
    own = replace(claim, sentence=f"{{_terms}}: {claim.sentence}", short=short)
    return own.filled({**text.values, "_terms": terms}, text.found)


def contradictions(clauses: Iterable[str]) -> list[str]:
    """Evidence against the assumptions in some clauses, with each caution once."""
    checked = [one.found for one in clauses if isinstance(one, Said) and one.found is not None]
    return list(dict.fromkeys([caution for found in checked for caution in found.cautions]))


def under_table(claims: Iterable[Claim | Part], facts: Any) -> tuple[list[str], list[str]]:
    """Statements below a table: assumptions in one note, then notes and advice; and cautions.

    Evidence against an assumption comes first among the cautions.
    """
    assumed: list[str] = []
    notes: list[str] = []
    cautions: list[str] = []
    places: dict[Kind, list[str]] = {
        "assumes": assumed,
        "target": assumed,
        "note": notes,
        "missing": notes,
        "advice": notes,
        "caution": cautions,
    }
    for answer in answers(claims, facts, places):
        places[answer[0].kind] += sentences(answer)
    return assumptions(assumed) + notes, list(dict.fromkeys([*contradictions(assumed), *cautions]))


def _scope(clause: str) -> str:
    return clause.scope if isinstance(clause, Said) else ""


def _status(clause: str) -> str:
    return clause.status if isinstance(clause, Said) else ""
