"""The cells of the evidence on defaults, one level of each factor: a list fixed before the first run.

The list covers all pairs of levels. Greedy: each new cell is the one, of many drawn at random, that covers
most pairs of levels that no cell before it has; when all pairs are covered, the next round of covering
begins, until there are 200 cells. Then come the benign ones: a common design that logs every propensity, much
data, and nothing odd. `write` made the list.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path

import numpy as np

FACTORS: dict[str, tuple[str, ...]] = {
    "design": (
        "epsilon-greedy",
        "decaying epsilon-greedy",
        "Thompson, floor .01",
        "Thompson, floor .05",
        "Thompson, floor t^-.7",
        "batched Thompson, 6 arms",
        "UCB",
        "contextual epsilon-greedy",
        "contextual epsilon-greedy, contexts not in the file",
        "contextual Thompson",
        "contextual Thompson, contexts not in the file",
        "urn",
        "sqrt allocation",
    ),
    "outcome": ("normal", "t3", "0/1 at 50%", "0/1 at 10%", "0/1 at 1%", "5% buyers, lognormal value"),
    "drift": ("none", "linear", "weekend"),
    "units": (
        "independent",
        "20, coin a round",
        "40, coin a round",
        "200, coin a round",
        "20, one arm each",
        "40, one arm each",
        "200, one arm each",
    ),
    "arms": ("all the time", "one joins", "one leaves"),
    "rounds": ("200", "1000", "4000", "10000"),
    "told": ("every propensity", "the chosen arm's", "none"),
    "gap": ("0", ".3 sd"),
}
SETTLED = ("epsilon-greedy", "Thompson, floor .05", "batched Thompson, 6 arms", "sqrt allocation")
PLAIN = ("normal", "0/1 at 50%")
"""Designs and outcomes of benign cells."""
CELLS, DRAWN, SEED = 200, 400, 20261123
LIST = Path(__file__).with_suffix(".csv")
Pair = tuple[str, str, str, str]


@dataclass(frozen=True)
class Cell:
    """One level of each factor."""

    number: int
    design: str
    outcome: str
    drift: str
    units: str
    arms: str
    rounds: str
    told: str
    gap: str

    @property
    def n_rounds(self) -> int:
        return int(self.rounds)

    @property
    def by_context(self) -> bool:
        return self.design.startswith("contextual")

    @property
    def contexts_told(self) -> bool:
        return self.by_context and "not in the file" not in self.design

    @property
    def n_arms(self) -> int:
        return (6 if "6 arms" in self.design else 2) + (self.arms != "all the time")

    @property
    def n_units(self) -> int:
        """Units; 0 if every round is another one."""
        return 0 if self.units == "independent" else int(self.units.split(",")[0])

    @property
    def one_arm_each(self) -> bool:
        return self.units.endswith("one arm each")

    @property
    def binary(self) -> bool:
        return self.outcome.startswith("0/1")

    @property
    def benign(self) -> bool:
        """Cells in which a caution would be a nuisance: everything known, common, and enough of it."""
        return (
            self.design in SETTLED
            and self.outcome in PLAIN
            and self.drift == "none"
            and self.units == "independent"
            and self.arms == "all the time"
            and self.n_rounds >= 1000
            and self.told == "every propensity"
        )


def possible(levels: dict[str, str]) -> bool:
    """Whether levels go together: no method can see contexts that are told neither way."""
    hidden = levels.get("design", "").endswith("not in the file")
    if hidden and levels.get("told") == "none":
        return False
    return not (levels.get("design") == "UCB" and levels.get("told", "none") != "none")


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
    """Make the list again, as it was before the first run."""
    with LIST.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["number", *FACTORS], lineterminator="\n")
        writer.writeheader()
        cells = covering() + benign()
        writer.writerows({"number": number, **levels} for number, levels in enumerate(cells))
