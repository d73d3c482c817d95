"""The cells of the evidence on defaults: a list that covers all pairs of levels, fixed before the first run.

Greedy: each new cell is the one, of many drawn at random, that covers most pairs of levels that no cell
before it has; when all pairs are covered, the next round of covering begins, until there are 200 cells. Then
come the benign ones: a common design that logs every propensity, much data, and nothing odd. `write` made
the list.
"""

from __future__ import annotations

import csv
from itertools import combinations, product
from pathlib import Path

import numpy as np
from default_logs import FACTORS, PLAIN, SETTLED, Cell, possible

CELLS, DRAWN, SEED = 200, 400, 20261123
LIST = Path(__file__).with_suffix(".csv")
Pair = tuple[str, str, str, str]


def pairs(levels: dict[str, str]) -> set[Pair]:
    """Pairs of levels, each a factor and a level twice."""
    return {(a, levels[a], b, levels[b]) for a, b in combinations(FACTORS, 2)}


def every_pair() -> set[Pair]:
    """All pairs that can occur together."""
    found = set[Pair]()
    for a, b in combinations(FACTORS, 2):
        for first, second in product(FACTORS[a], FACTORS[b]):
            if possible({a: first, b: second}):
                found.add((a, first, b, second))
    return found


def drawn(rng: np.random.Generator) -> dict[str, str]:
    """Levels at random that go together."""
    while True:
        levels = {name: str(rng.choice(choices)) for name, choices in FACTORS.items()}
        if possible(levels):
            return levels


def seeded(pair: Pair, rng: np.random.Generator) -> dict[str, str]:
    """Levels at random that contain a pair."""
    while True:
        levels = {**drawn(rng), pair[0]: pair[1], pair[2]: pair[3]}
        if possible(levels):
            return levels


def covering() -> list[dict[str, str]]:
    """Cells that cover all pairs."""
    rng = np.random.default_rng(SEED)
    found = list[dict[str, str]]()
    missing = everything = every_pair()
    while len(found) < CELLS or not everything <= set[Pair]().union(*map(pairs, found)):
        missing = missing or everything
        wanted = sorted(missing)
        tries = [seeded(wanted[int(rng.integers(len(wanted)))], rng) for _ in range(DRAWN)]
        best = max(tries, key=lambda levels: len(pairs(levels) & missing))
        found.append(best)
        missing = missing - pairs(best)
    return found


def benign() -> list[dict[str, str]]:
    """Cells in which hardly any log should be cautioned."""
    usual = {name: levels[0] for name, levels in FACTORS.items()}
    return [
        {**usual, "design": design, "outcome": outcome, "rounds": rounds}
        for design, outcome, rounds in product(SETTLED, PLAIN, ("1000", "4000"))
    ]


def read() -> list[Cell]:
    """The committed list."""
    with LIST.open(encoding="utf-8", newline="") as file:
        return [Cell(int(row.pop("number")), **row) for row in csv.DictReader(file)]


def write() -> None:
    """Make the list anew, as it was before the first run."""
    with LIST.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["number", *FACTORS], lineterminator="\n")
        writer.writeheader()
        cells = covering() + benign()
        writer.writerows({"number": number, **levels} for number, levels in enumerate(cells))
