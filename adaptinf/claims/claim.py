"""A claim: a sentence that may be said of a log, the fact that it states, and what it is for."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, ClassVar, Literal, get_args

Kind = Literal[
    "needs", "reason", "assumes", "caution", "missing", "note", "privacy", "target", "advice", "phrase"
]
"""What a claim is for.

needs
    Why a method does not serve: it is refused, and its row of `recommend` is not valid.
reason
    Why a method is valid.
assumes
    What a method takes for granted; `check` names what a log is asked about it, or is empty where no log
    can tell.
caution
    Why numbers may be worth less than their label says.
missing
    Why there is no number.
note
    How a number was made.
privacy
    What a guarantee covers.
target
    What is estimated.
advice
    What to do.
phrase
    Words that stand within another claim, or in a cell of a table, and never by themselves.
"""

KINDS: frozenset[Kind] = frozenset(get_args(Kind))


@dataclass(frozen=True, slots=True)
class Finding:
    """What the check of an assumption found on one log; a log on which it cannot be made has none."""

    cautions: tuple[str, ...] = ()
    """What speaks against the assumption, each naming its cause; empty where nothing does."""

    @property
    def contradicted(self) -> bool:
        """Whether something speaks against the assumption."""
        return bool(self.cautions)


class Said(str):
    """A claim as it was said of one log: its text, its values, and what the check of an assumption found."""

    __slots__ = ("claim", "found", "values")
    claim: Claim
    values: Mapping[str, Any]
    found: Finding | None

    def __new__(
        cls, text: str, claim: Claim, values: Mapping[str, Any], found: Finding | None = None
    ) -> Said:
        """Keep the text with what it was made from."""
        made = super().__new__(cls, text)
        made.claim, made.values, made.found = claim, values, found
        return made

    def __reduce__(self) -> tuple[type[Said], tuple[str, Claim, Mapping[str, Any], Finding | None]]:
        return Said, (str(self), self.claim, self.values, self.found)

    @property
    def status(self) -> str:
        """Of an assumption: "checked", "contradicted", or empty where this log cannot tell."""
        if self.found is None:
            return ""
        return "contradicted" if self.found.cautions else "checked"

    @property
    def short(self) -> str:
        """The same in a few words; empty where the claim has none."""
        return self.claim.short.format_map(self.values)


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence that may be said of a log.

    Examples
    --------
    >>> from adaptinf.claims import Claim
    >>> few = Claim("inference.validity.rare.without_interval", "{arm}: only {n:d} events", "caution")
    >>> text = few(arm="b", n=3)
    >>> text, text.claim.kind
    ('b: only 3 events', 'caution')
    """

    fact: str
    """A property of the facts that a method record's list is read with, or the function that decides."""
    sentence: str
    """Words, with values as in `str.format`."""
    kind: Kind
    check: str = ""
    """Of an assumption: a property of the same facts that gives the `Finding` of its check, or None."""
    short: str = field(default="", compare=False)
    """The same in a few words, for the lines under a table, with the same values."""
    phrases: Mapping[str, Claim] = field(default_factory=dict, repr=False, compare=False)
    """Phrases that always stand in the sentence, by the names of their places."""
    ask: Callable[[Any], Any] = field(init=False, repr=False, compare=False)
    """Reads the fact off the facts of a list; kept, as lists are read at every fit."""
    look: Callable[[Any], Finding | None] | None = field(init=False, repr=False, compare=False)
    """Reads the finding of the check off the same facts; None where no log can tell."""
    constant: Said | None = field(init=False, repr=False, compare=False)
    """What is said where nothing is to be filled in or checked: always the same."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "ask", attrgetter(self.fact))
        object.__setattr__(self, "look", attrgetter(self.check) if self.check else None)
        fixed = not self.check and "{" not in self.sentence
        object.__setattr__(self, "constant", Said(self.sentence, self, {}) if fixed else None)

    def __call__(self, **values: Any) -> Said:
        """The sentence with values in place; KeyError where one is missing."""
        if self.constant is not None and not values:
            return self.constant
        return self.filled(values)

    def of(self, facts: Any, values: Mapping[str, Any]) -> Said:
        """The same, with what the check of an assumption finds."""
        return self.filled(values, None if self.look is None else self.look(facts))

    def filled(self, values: Mapping[str, Any], found: Finding | None = None) -> Said:
        """The sentence with values and its own phrases in place, and what a check found."""
        if self.phrases:
            values = {**{place: phrase() for place, phrase in self.phrases.items()}, **values}
        return Said(self.sentence.format_map(values), self, values, found)


@dataclass(frozen=True, slots=True)
class Part:
    """What other claims have said already, at this place of a list: a property that holds their sentences."""

    fact: str
    kind: Kind
    ask: Callable[[Any], Any] = field(init=False, repr=False, compare=False)
    look: ClassVar[None] = None
    """What they assume was checked by them."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "ask", attrgetter(self.fact))


Answer = tuple[Claim | Part, Any, Finding | None]
"""A claim or place whose fact is so, the fact, and what the check of an assumption found."""


def answers(claims: Iterable[Claim | Part], facts: Any, kinds: Container[Kind]) -> list[Answer]:
    """The facts of an ordered list that are so, asked before anything is said."""
    return [
        (claim, value, None if claim.look is None else claim.look(facts))
        for claim in claims
        if claim.kind in kinds and (value := claim.ask(facts))
    ]


def sentences(answer: Answer) -> Sequence[str]:
    """What one claim says of a fact that is so.

    True says the sentence; a mapping fills it, and a sequence of mappings says it once for each.
    """
    claim, value, found = answer
    if isinstance(claim, Part):
        return (value,) if isinstance(value, str) else value
    if value is True:
        return (claim.constant or claim.filled({}, found),)
    several = (value,) if isinstance(value, dict) else value
    return [claim.filled(one, found) for one in several]


def said(claims: Iterable[Claim | Part], facts: Any, *kinds: Kind) -> list[str]:
    """What an ordered list says where its facts are so; of all kinds unless some are named.

    A fact that is false, empty or None is silent.
    """
    asked = answers(claims, facts, kinds or KINDS)
    return [text for answer in asked for text in sentences(answer)]


def first(claims: Iterable[Claim | Part], facts: Any) -> str:
    """The first that is so, as refusals are told one at a time; empty where none is."""
    for claim in claims:
        if (value := claim.ask(facts)) and (found := sentences((claim, value, None))):
            return found[0]
    return ""
