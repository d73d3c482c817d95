"""The list of planted violations, and of clean designs: `violation_kinds.csv`, fixed before the first run.

A row says what is planted, on what design and at what size, what is fitted, what the log is told, and which
claim has to name it. Classes: *seen*, where the log contains evidence against what is assumed; *stated*,
where the log itself says so; *handled*, where it says so and intervals allow for it; *cannot be seen*, where
nothing in the log differs from a log without; *clean*.
"""

from __future__ import annotations

import ast
import csv
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

LIST = Path(__file__).with_suffix(".csv")
SEEN, STATED, HANDLED, UNSEEN, CLEAN = "seen", "stated", "handled", "cannot be seen", "clean"
ROWS, SUMS = "rows", "sums"
EVERY, CHOSEN, NONE = "every", "chosen", "none"


@dataclass(frozen=True)
class Kind:
    """One row of the list."""

    number: int
    kind: str
    standard: str
    violation: str
    design: str
    arms: int
    rewards: str
    rounds: int
    gap: float
    background: str
    """What moves the level with or without the violation."""
    size: float
    model: str
    options: str
    stated: str
    told: str
    door: str
    reason: str
    claim: str

    @property
    def binary(self) -> bool:
        return self.rewards == "0/1"

    @property
    def batched(self) -> bool:
        """Whether propensities stay as they are within a day."""
        return self.design in ("batched Thompson", "UCB by batches")

    @property
    def by_context(self) -> bool:
        """Whether the design looks at the context."""
        return self.design in ("contextual Thompson", "by context")

    @property
    def names(self) -> tuple[str, ...]:
        """The claims of which one has to be said, by module and name within the claims."""
        return tuple(self.claim.split("; ")) if self.claim else ()

    @property
    def fitted(self) -> str:
        """The fit in words of the library."""
        return f"{self.model}, {self.options}" if self.options else self.model


def arguments(text: str) -> dict[str, Any]:
    """Keyword arguments of "name=value; name=value"; what is no literal is text."""
    return {name: _value(value) for name, value in (part.split("=") for part in text.split("; ") if part)}


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except ValueError:
        return text


def read(path: Path = LIST) -> list[Kind]:
    """All rows."""
    kinds = {one.name: one.type for one in fields(Kind)}
    make: dict[Any, Any] = {"int": int, "float": float, "str": str}
    with path.open(encoding="utf-8", newline="") as file:
        rows = [{"standard": row.pop("class"), **row} for row in csv.DictReader(file)]
    return [Kind(**{name: make[kinds[name]](value) for name, value in row.items()}) for row in rows]
