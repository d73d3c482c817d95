"""Counts of coverage by cell, kept in a file so that a stopped run goes on: of defaults, and of comparisons.

A row is a method for a target in a cell, as measured on one commit, over the blocks of runs that it names.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).with_suffix(".csv")
BLOCK = 100
"""Runs of a block."""


class Key(NamedTuple):
    """What is counted: a target, a method, or the default, and the label that the method has for the log."""

    target: str
    method: str
    label: str


@dataclass
class Tally:
    """Logs, and intervals of one key; a log is cautioned or refused, an interval covers or not."""

    logs: int = 0
    cautioned: int = 0
    refused: int = 0
    intervals: int = 0
    covered: int = 0
    clean: int = 0
    """Intervals without a caution in their table."""
    clean_covered: int = 0
    belied: int = 0
    """Logs of a cell in which what the call states is not so."""
    methods: dict[str, int] = field(default_factory=dict)
    """What the default was, and how often."""

    def add(self, other: Tally) -> None:
        for name in counted(type(self)):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name, count in other.methods.items():
            self.methods[name] = self.methods.get(name, 0) + count


def counted(kind: type[Tally]) -> tuple[str, ...]:
    """Names of the counts of a kind of tally."""
    return tuple(one.name for one in fields(kind) if one.name != "methods")


Tallies = dict[Key, Tally]


@dataclass
class Measured:
    """What one commit gave in a cell, and the numbers of the blocks of runs."""

    blocks: set[int] = field(default_factory=set)
    tallies: Tallies = field(default_factory=dict)


Counts = dict[tuple[int, str], Measured]  # by the number of the cell and the commit


def gather(total: Tallies, found: Tallies) -> None:
    for key, tally in found.items():
        total.setdefault(key, type(tally)()).add(tally)


def of_cell(counts: Counts, number: int) -> Tallies:
    """All commits of a cell together."""
    total: Tallies = {}
    for (cell, _), measured in counts.items():
        if cell == number:
            gather(total, measured.tallies)
    return total


def blocks_of(counts: Counts, number: int) -> set[int]:
    """Numbers of the blocks that a cell has."""
    return set().union(*(measured.blocks for (cell, _), measured in counts.items() if cell == number))


def read(path: Path = FILE, kind: type[Tally] = Tally) -> Counts:
    """What is kept; nothing if there is no file."""
    counts: Counts = {}
    if not path.exists():
        return counts
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            measured = counts.setdefault((int(row["cell"]), row["commit"]), Measured())
            measured.blocks = _numbers(row["blocks"])
            methods = dict(part.rsplit(": ", 1) for part in row["methods"].split("; ") if part)
            measured.tallies[Key(row["target"], row["method"], row["label"])] = kind(
                **{name: int(row[name]) for name in counted(kind)},
                methods={name: int(count) for name, count in methods.items()},
            )
    return counts


def write(counts: Counts, path: Path = FILE, kind: type[Tally] = Tally) -> None:
    """Keep all; the file is whole at any time."""
    part = path.with_suffix(".part")
    with part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["cell", "commit", "blocks", *Key._fields, *counted(kind), "methods"])
        for (cell, commit), measured in sorted(counts.items()):
            blocks = _ranges(measured.blocks)
            for key, tally in sorted(measured.tallies.items()):
                numbers = [getattr(tally, name) for name in counted(kind)]
                methods = "; ".join(f"{name}: {count}" for name, count in sorted(tally.methods.items()))
                writer.writerow([cell, commit, blocks, *key, *numbers, methods])
    part.replace(path)


def _ranges(numbers: Iterable[int]) -> str:
    """Numbers as "0-4 7"."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return " ".join(f"{low}-{high}" if low < high else f"{low}" for low, high in found)


def _numbers(text: str) -> set[int]:
    """The numbers of "0-4 7"."""
    found = set[int]()
    for part in text.split():
        low, _, high = part.partition("-")
        found |= set(range(int(low), int(high or low) + 1))
    return found
