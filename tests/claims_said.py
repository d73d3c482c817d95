"""Whether texts say a claim: tests ask for the claim, and leave its wording to tests/unit/claims."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from string import Formatter
from typing import Any

from adaptinf.claims import Claim, Said
from adaptinf.claims.views import Assumed


def says(texts: Iterable[str] | str, claim: Claim, **values: Any) -> bool:
    """Whether a claim is among the texts with these values, or stands within one of them."""
    return any(one_says(text, claim, values) for text in ([texts] if isinstance(texts, str) else texts))


def one_says(text: str, claim: Claim, values: dict[str, Any]) -> bool:
    told = [one for one in within(text) if one.claim is claim]
    if told:
        return any(all(one.values.get(name) == value for name, value in values.items()) for one in told)
    return re.search(wording(claim, **values), str(text)) is not None


def within(text: object) -> Iterator[Said]:
    """What a text was said as, and what its values were; and the clauses of a note on assumptions."""
    if isinstance(text, Assumed):
        for clause in text.clauses:
            yield from within(clause)
    if isinstance(text, Said):
        yield text
        for value in text.values.values():
            yield from within(value)


def wording(claim: Claim, **values: Any) -> str:
    """A pattern of a claim's sentence: with some of its values, whatever the others."""
    parts = []
    for words, name, form, conversion in Formatter().parse(claim.sentence):
        parts.append(re.escape(words))
        if name in values:
            shown = Formatter().convert_field(values[name], conversion)
            parts.append(re.escape(format(shown, form or "")))
        elif name is not None:
            parts.append(r"(?:.|\n)*?")
    return "".join(parts)
