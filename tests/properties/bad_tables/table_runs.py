"""Runs of tables that are odd or damaged: families of kinds, and what became of each use."""

from __future__ import annotations

import itertools
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from cell_kinds import CELLS, FOLDERS, JSON_LINES, LABELS, SUMS
from dialect_kinds import DAMAGED, DIALECTS, STANDARD_INPUT, TEXTS, Kind
from doors import Use, Verdict, judge
from time_kinds import DECISIONS, TIMES
from type_kinds import IDS, LISTS, ONE_HOT, ROUNDED, TYPES

SEED = 20_261_127
DOORS = 2
"""Doors of each file, drawn from all that it has."""
FAMILIES: dict[str, tuple[int, dict[str, Kind]]] = {
    "dialects": (600, DIALECTS),
    "encodings, compressions, names of files": (600, TEXTS),
    "text that is no table": (500, DAMAGED),
    "JSON lines": (700, JSON_LINES),
    "cells": (700, CELLS),
    "labels and missing values": (400, LABELS),
    "types": (700, TYPES),
    "rounded propensities": (300, ROUNDED),
    "propensities as lists or objects": (300, LISTS),
    "arms in columns of 0 and 1": (200, ONE_HOT),
    "ids beyond 2^53": (200, IDS),
    "time stamps": (250, TIMES),
    "repeated decisions": (150, DECISIONS),
    "sums, totals without batches": (150, SUMS),
    "folders of parts": (150, FOLDERS),
    "standard input": (100, STANDARD_INPUT),
}
"""Files of every family in the full run, and its kinds; shorter runs keep the proportions."""


@dataclass(frozen=True)
class Outcome:
    """What became of one use of one file."""

    family: str
    kind: str
    number: int
    use: Use
    verdict: Verdict


def run(total: int, seed: int = SEED) -> Iterator[Outcome]:
    """Outcomes of about so many files, each given to its doors; kinds in a random order, and then again."""
    whole = sum(share for share, _ in FAMILIES.values())
    root = Path(tempfile.mkdtemp(prefix="bad_tables_"))
    rng, number = np.random.default_rng(seed), 0
    try:
        for family, (share, kinds) in FAMILIES.items():
            names = list(kinds)
            order = itertools.chain.from_iterable(rng.permutation(len(names)) for _ in itertools.count())
            for place in itertools.islice(order, max(1, round(share * total / whole))):
                folder = root / str(number)
                folder.mkdir()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of what makes the file
                    uses = kinds[names[place]](np.random.default_rng([seed, number]), folder)
                doors = np.random.default_rng([seed, number, 1]).permutation(len(uses))[:DOORS]
                for use in [uses[door] for door in sorted(doors.tolist())]:
                    yield Outcome(family, names[place], number, use, judge(use))
                shutil.rmtree(folder)
                number += 1
    finally:
        shutil.rmtree(root)
