"""Whether texts say a claim: tests ask for the claim, and leave its wording to tests/unit/claims."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from adaptinf.claims import Claim, Said


def says(texts: Iterable[str] | str, claim: Claim, **values: Any) -> bool:
    """Whether a claim is among the texts with these values, or stands within one of them."""
    listed = [texts] if isinstance(texts, str) else list(texts)
    for text in listed:
        if isinstance(text, Said) and text.claim == claim:
            if all(text.values.get(name) == value for name, value in values.items()):
                return True
        elif "{" not in claim.sentence and claim.sentence in text:
            return True
    return False
