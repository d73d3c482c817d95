"""What a study must find: the paper's figure, ours, the tolerance, and the reason for any difference."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

__all__ = ["Expected", "Row", "Verdict", "judge", "read_expected"]


@dataclass(frozen=True)
class Row:
    """One figure.

    Attributes
    ----------
    name : str
        As in `Outcome.figures`.
    what : str
        In words, with units.
    ours : float
        Of the full run.
    tolerance, quick_tolerance : float
        How far a full and a quick run may be from `ours`: from the Monte Carlo errors of both.
    paper : float or None
        As printed; None where the paper has no such figure.
    paper_tolerance : float
        How far ours may be from the paper's: from its rounding and the Monte Carlo errors of both.
    where : str
        Place in the paper.
    reason : str
        Why ours differs from the paper's.
    """

    name: str
    what: str
    ours: float
    tolerance: float
    quick_tolerance: float
    paper: float | None = None
    paper_tolerance: float = 0.0
    where: str = ""
    reason: str = ""

    @property
    def agrees(self) -> bool | None:
        """Whether ours is the paper's figure; None where there is none."""
        return None if self.paper is None else abs(self.ours - self.paper) <= self.paper_tolerance


@dataclass(frozen=True)
class Expected:
    """The rows of a study, with its title and source."""

    title: str
    source: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Verdict:
    """A row, what was measured now, and what is wrong; nothing where `problem` is empty."""

    row: Row
    measured: float
    problem: str

    @property
    def against_paper(self) -> str:
        """How ours compares with the paper's figure."""
        if self.row.agrees is None:
            return ""
        return "agrees" if self.row.agrees else f"differs: {self.row.reason}"


def read_expected(path: Path) -> Expected:
    """Read an ``expected.toml``, or raise a ValueError that lists all that is found wrong with it."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    problems = [f"{key} is missing" for key in ("title", "source") if not content.get(key)]
    known = {entry.name for entry in fields(Row)}
    rows = []
    for number, entry in enumerate(content.get("figure", []), start=1):
        found = _entry_problems(entry, known)
        problems += [f"figure {number} ({entry.get('name', 'no name')}): {problem}" for problem in found]
        if not found:
            rows.append(Row(**entry))
    names = [row.name for row in rows]
    problems += [f"figure {name} stands there twice" for name in sorted(set(names)) if names.count(name) > 1]
    problems += [
        f"figure {row.name}: ours is not the paper's, and there is no reason"
        for row in rows
        if row.agrees is False and not row.reason
    ]
    if problems:
        raise ValueError(f"{path}:\n" + "\n".join(f"- {problem}" for problem in problems))
    return Expected(content["title"], content["source"], tuple(rows))


def _entry_problems(entry: Mapping[str, Any], known: set[str]) -> list[str]:
    needed = ("name", "what", "ours", "tolerance", "quick_tolerance")
    problems = [f"{key} is missing" for key in needed if key not in entry]
    problems += [f"{key} is not a known key" for key in entry if key not in known]
    for key in ("ours", "tolerance", "quick_tolerance", "paper", "paper_tolerance"):
        if key in entry and (isinstance(entry[key], bool) or not isinstance(entry[key], int | float)):
            problems.append(f"{key} must be a number, got {entry[key]!r}")
    return problems


def judge(expected: Expected, measured: Mapping[str, float], quick: bool) -> list[Verdict]:
    """Hold what was measured against every row.

    Raises
    ------
    ValueError
        If a figure was measured that has no row.
    """
    names = {row.name for row in expected.rows}
    extra = sorted(set(measured) - names)
    if extra:
        raise ValueError(f"no row in expected.toml for: {', '.join(extra)}")
    return [_verdict(row, measured.get(row.name, math.nan), quick) for row in expected.rows]


def _verdict(row: Row, measured: float, quick: bool) -> Verdict:
    tolerance = row.quick_tolerance if quick else row.tolerance
    if math.isnan(measured):
        return Verdict(row, measured, "" if math.isnan(row.ours) else "was not measured")
    if measured == row.ours or abs(measured - row.ours) <= tolerance:
        return Verdict(row, measured, "")
    return Verdict(row, measured, f"is {measured:.6g}, not {row.ours:.6g} within {tolerance:g}")
