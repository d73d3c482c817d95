"""Claims as they are shown: clauses joined, with the marks between and after them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from adaptinf.claims.claim import Claim, Part, said

_OPENING = "Assumes: "


def sentence(clauses: Iterable[str]) -> str:
    """Clauses in one line, as in a cell of a table; without a full stop."""
    return "; ".join(clause for clause in clauses if clause)


def assumptions(clauses: Iterable[str]) -> list[str]:
    """The note under a table that lists what it assumes; none where that is nothing."""
    told = sentence(clauses)
    return [f"{_OPENING}{told}."] if told else []


def also_assumed(notes: Sequence[str], clauses: Sequence[str]) -> tuple[str, ...]:
    """Notes under a table with what more it assumes, in the note that lists it; said once."""
    more = [clause for clause in clauses if not any(clause in note for note in notes)]
    if not more:
        return tuple(notes)
    place = next((place for place, note in enumerate(notes) if note.startswith(_OPENING)), None)
    if place is None:
        return (*notes, *assumptions(more))
    listed = notes[place].removeprefix(_OPENING).removesuffix(".")
    return (*notes[:place], *assumptions([listed, *more]), *notes[place + 1 :])


def under_table(claims: Iterable[Claim | Part], facts: Any) -> tuple[list[str], list[str]]:
    """What a list says under a table: what is assumed in one note, then notes and advice; and cautions."""
    listed = tuple(claims)
    notes = assumptions(said(listed, facts, "assumes", "target")) + said(listed, facts, "note", "advice")
    return notes, said(listed, facts, "caution")
