"""A claim: a sentence that may be stated about a log, the fact on which it depends, and its purpose."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, ClassVar, Literal, get_args

Kind = Literal[
    "needs", "reason", "assumes", "caution", "missing", "note", "privacy", "target", "advice", "phrase"
]
"""The purpose of a claim.

needs
    Why a method cannot be used: it is refused, and its row of `recommend` is not valid.
reason
    Why a method is valid.
assumes
    An assumption of a method; `check` names its test on a log, and is empty if no log can test it.
caution
    Why numbers may be less reliable than their label suggests.
missing
    Why a number is missing.
note
    How a number was computed.
privacy
    What a guarantee covers.
target
    What is estimated.
advice
    What to do.
phrase
    Words that are part of another claim or of a table cell, and never stand alone.
"""

KINDS: frozenset[Kind] = frozenset(get_args(Kind))


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of checking an assumption on one log; a log that cannot be checked has none."""

    cautions: tuple[str, ...] = ()
    """Evidence against the assumption, with its cause, or why the check is not enough; empty if none."""
    untested: bool = False
    """Whether the log cannot show that the assumption fails, although the cautions give cause for doubt."""

    @property
    def contradicted(self) -> bool:
        """Whether there is evidence against the assumption."""
        return bool(self.cautions) and not self.untested


class Said(str):
    """A claim as stated about one log: its text, its values, and the finding for an assumption."""

    __slots__ = ("claim", "found", "values")
    claim: Claim
    values: Mapping[str, Any]
    found: Finding | None

    def __new__(
        cls, text: str, claim: Claim, values: Mapping[str, Any], found: Finding | None = None
    ) -> Said:
        """Create the text together with its sources."""
        made = super().__new__(cls, text)
        made.claim, made.values, made.found = claim, values, found
        return made

    def __reduce__(self) -> tuple[type[Said], tuple[str, Claim, Mapping[str, Any], Finding | None]]:
        return Said, (str(self), self.claim, self.values, self.found)

    @property
    def status(self) -> str:
        """For an assumption: "checked", "contradicted", or empty if this log cannot test it."""
        if self.found is None or self.found.untested:
            return ""
        return "contradicted" if self.found.contradicted else "checked"

    @property
    def scope(self) -> str:
        """For an assumption that was checked and not contradicted: what the check can see, if not all."""
        return f" {self.claim.scope}" if self.claim.scope and self.status == "checked" else ""

    @property
    def short(self) -> str:
        """A short version; empty if the claim has none."""
        return self.claim.short.format_map(self.values)


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence that may be stated about a log.

    Examples
    --------
    >>> from adaptinf.claims import Claim
    >>> few = Claim("inference.validity.rare.without_interval", "{arm}: only {n:d} events", "caution")
    >>> text = few(arm="b", n=3)
    >>> text, text.claim.kind
    ('b: only 3 events', 'caution')
    """

    fact: str
    """What decides whether the claim is stated: a property of the facts, or a function of the package.

    For a claim in a list that `said` or `first` evaluates, it is a property of the facts of that list,
    possibly dotted (``"data.adaptive"``): its value decides whether the claim is stated, and fills in the
    sentence. For any other claim, it is the dotted path of the function or property that decides and states
    it (``"inference.validity.rare.without_interval"``): it tells readers where to look, and is not evaluated.
    """
    sentence: str
    """The text, with placeholders as in `str.format`."""
    kind: Kind
    check: str = ""
    """For an assumption: a property of the same facts that gives the `Finding` of its check, or None."""
    short: str = field(default="", compare=False)
    """A short version for the lines under a table, with the same values."""
    scope: str = field(default="", compare=False)
    """For an assumption: what its check can see, and what it cannot, after the word "checked"."""
    phrases: Mapping[str, Claim] = field(default_factory=dict, repr=False, compare=False)
    """Phrases that always occur in the sentence, by the names of their placeholders."""
    ask: Callable[[Any], Any] = field(init=False, repr=False, compare=False)
    """Reads the fact from the facts of a list; cached, because lists are evaluated in every fit."""
    look: Callable[[Any], Finding | None] | None = field(init=False, repr=False, compare=False)
    """Reads the finding of the check from the same facts; None if no log can test it."""
    constant: Said | None = field(init=False, repr=False, compare=False)
    """The text if it is always the same, because there is nothing to fill in or to check."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "ask", attrgetter(self.fact))
        object.__setattr__(self, "look", attrgetter(self.check) if self.check else None)
        fixed = not self.check and "{" not in self.sentence
        object.__setattr__(self, "constant", Said(self.sentence, self, {}) if fixed else None)

    def __call__(self, **values: Any) -> Said:
        """The sentence with values filled in; raises KeyError if one is missing."""
        if self.constant is not None and not values:
            return self.constant
        return self.filled(values)

    def of(self, facts: Any, values: Mapping[str, Any]) -> Said:
        """The sentence with values filled in, and with the finding for an assumption."""
        return self.filled(values, None if self.look is None else self.look(facts))

    def filled(self, values: Mapping[str, Any], found: Finding | None = None) -> Said:
        """The sentence with values and its own phrases filled in, and the finding of a check."""
        if self.phrases:
            values = {**{place: phrase() for place, phrase in self.phrases.items()}, **values}
        return Said(self.sentence.format_map(values), self, values, found)


@dataclass(frozen=True, slots=True)
class Part:
    """Statements already made by other claims, at this position in a list: a property with sentences."""

    fact: str
    kind: Kind
    ask: Callable[[Any], Any] = field(init=False, repr=False, compare=False)
    look: ClassVar[None] = None
    """None, because the assumptions of a part have already been checked."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "ask", attrgetter(self.fact))


Answer = tuple[Claim | Part, Any, Finding | None]
"""A claim or part whose fact is true, the fact, and the finding for an assumption."""


def answers(claims: Iterable[Claim | Part], facts: Any, kinds: Container[Kind]) -> list[Answer]:
    """The true facts of an ordered list, evaluated before anything is stated."""
    return [
        (claim, value, None if claim.look is None else claim.look(facts))
        for claim in claims
        if claim.kind in kinds and (value := claim.ask(facts))
    ]


def sentences(answer: Answer) -> Sequence[str]:
    """The sentences of one claim whose fact is true.

    If the fact is True, the sentence is given once; a mapping fills it in, and a sequence of mappings gives
    it once for each.
    """
    claim, value, found = answer
    if isinstance(claim, Part):
        return (value,) if isinstance(value, str) else value
    if value is True:
        return (claim.constant or claim.filled({}, found),)
    several = (value,) if isinstance(value, dict) else value
    return [claim.filled(one, found) for one in several]


def said(claims: Iterable[Claim | Part], facts: Any, *kinds: Kind) -> list[str]:
    """The statements in an ordered list whose facts are true; of all kinds unless some are named.

    Facts that are false, empty or None produce nothing.
    """
    asked = answers(claims, facts, kinds or KINDS)
    return [text for answer in asked for text in sentences(answer)]


def first(claims: Iterable[Claim | Part], facts: Any) -> str:
    """The first true statement, because refusals are stated one at a time; empty if none is true."""
    for claim in claims:
        if (value := claim.ask(facts)) and (found := sentences((claim, value, None))):
            return found[0]
    return ""
