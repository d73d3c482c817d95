"""The cells of the evidence on comparisons, and of what each table is held to: fixed before the first run.

Every design meets every move of the level at both lengths. Rewards, number of arms and gap are dealt out to
these cells so that all pairs of levels of any two factors occur, and of three as many as may be: greedy, each
cell takes what covers most triples that none before it has. Then come the rows of a first table: the cells on
which it was found that means by their own weights tell equal arms apart.

Each question to each cell has a class. *Benign*: nothing moves, shares have a floor, rounds are many, so a
caution would be a nuisance. *Coverable*: what moves is shared by all arms, or there are few rounds; methods
are there that hold. *Contradicted*: the log is not what the table's weights assume. `write` made the lists.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path

import numpy as np

FACTORS: dict[str, tuple[str, ...]] = {
    "design": (
        "coin",
        "hourly shares",
        "Thompson",
        "top-two Thompson",
        "EXP3",
        "softmax",
        "batched Thompson, 4 arms",
        "batched Thompson, 10 arms",
        "contextual Thompson",
        "contextual Thompson, context not in the file",
    ),
    "move": (
        "none",
        "linear",
        "hourly",
        "step",
        "weekend",
        "the effect turns",
        "AR(.5)",
        "an arm joins",
    ),
    "rounds": ("1000", "4000"),
    "rewards": ("normal", "0/1"),
    "arms": ("2", "4", "10"),
    "gap": ("0", ".3 sd"),
}
CROSSED = ("design", "move", "rounds")
SEED = 20261125
LIST = Path(__file__).with_suffix(".csv")
CLASSES = Path(__file__).with_name("comparison_classes.csv")

LEVELS, DIFFERENCE, JOINT = "levels", "t_test of two arms", "joint test of differences"
WINNER, AGAINST, BEST, CONTRASTS = "winner", "winner against A", "best_arms", "contrasts"
VALUES, POLICIES = "policy values", "policy contrast"
COEFFICIENTS, GROUPS = "coefficients", "effects by group"
OF_SUMS = (LEVELS, DIFFERENCE, JOINT, WINNER, AGAINST, BEST, CONTRASTS)
QUESTIONS = (*OF_SUMS, VALUES, POLICIES, COEFFICIENTS, GROUPS)
ROWS, SUMS = "rows", "sums"
BENIGN, COVERABLE, CONTRADICTED = "benign", "coverable", "contradicted"
ENOUGH = 50
"""Rounds that an arm has at least, by the floor of its share, where there are enough."""
FIRST_ROW = 1000
"""Number of the first cell of the first table."""


@dataclass(frozen=True)
class Cell:
    """One level of each factor; the size of the move is in standard deviations."""

    number: int
    design: str
    move: str
    rounds: str
    rewards: str
    arms: str
    gap: str
    size: str = "1"

    @property
    def n_rounds(self) -> int:
        return int(self.rounds)

    @property
    def n_arms(self) -> int:
        return int(self.arms)

    @property
    def moved_by(self) -> float:
        return float(self.size)

    @property
    def binary(self) -> bool:
        return self.rewards == "0/1"

    @property
    def batched(self) -> bool:
        return self.design.startswith("batched")

    @property
    def by_context(self) -> bool:
        return self.design.startswith("contextual")

    @property
    def hidden(self) -> bool:
        return self.design.endswith("not in the file")

    @property
    def adapts(self) -> bool:
        return self.design not in ("coin", "hourly shares")

    @property
    def by_hour(self) -> bool:
        """Whether shares move by the hour."""
        return self.design == "hourly shares" or (self.move == "hourly" and self.adapts)

    @property
    def floor(self) -> float:
        """Least share of an arm where all can be chosen; of shares by the hour and by a coin their least."""
        if self.design == "coin":
            return 1.0 / self.n_arms
        if self.design == "hourly shares":
            return 0.3 / self.n_arms
        if self.design == "EXP3":
            return 0.2 / self.n_arms
        if self.design == "softmax":
            return 0.0
        if self.design == "epsilon-greedy":
            return 0.2 / self.n_arms
        return {4: 0.025, 10: 0.02}.get(self.n_arms, 0.05) if self.batched else 0.05

    @property
    def in_first_table(self) -> bool:
        return self.number >= FIRST_ROW


def possible(levels: dict[str, str]) -> bool:
    """Whether levels go together."""
    arms, design = levels["arms"], levels["design"]
    if design.startswith("batched"):
        return arms == design.split()[-2]
    if arms == "10":
        return False
    # Two arms by top-two sampling are a coin, and of two arms none can join a comparison.
    return arms == "4" or (design != "top-two Thompson" and levels["move"] != "an arm joins")


def tuples(levels: dict[str, str], size: int) -> set[tuple[str, ...]]:
    """Pairs or triples of levels, each with its factor."""
    named = [f"{factor}: {level}" for factor, level in levels.items()]
    return set(combinations(named, size))


def every(size: int) -> set[tuple[str, ...]]:
    """All pairs or triples that can occur together."""
    combined = (dict(zip(FACTORS, levels, strict=True)) for levels in product(*FACTORS.values()))
    return set[tuple[str, ...]]().union(*(tuples(levels, size) for levels in combined if possible(levels)))


def grid() -> list[dict[str, str]]:
    """One cell for each design, move and length."""
    rng = np.random.default_rng(SEED)
    crossed = list(product(*(FACTORS[name] for name in CROSSED)))
    dealt = list(product(*(levels for name, levels in FACTORS.items() if name not in CROSSED)))
    found, seen = dict[int, dict[str, str]](), set[tuple[str, ...]]()
    for place in rng.permutation(len(crossed)):
        choices = [dict(zip(FACTORS, (*crossed[place], *rest), strict=True)) for rest in dealt]
        choices = [levels for levels in choices if possible(levels)]
        new = np.array([len(tuples(levels, 3) - seen) for levels in choices])
        best = choices[int(rng.choice(np.flatnonzero(new == new.max())))]
        found[int(place)] = best
        seen |= tuples(best, 3)
    return [found[place] for place in range(len(crossed))]


def first_table() -> list[dict[str, str]]:
    """The rows of the first table; equal arms, normal rewards."""
    rows = [
        ("Thompson", "linear", "1000", "2", "1"),
        ("Thompson", "linear", "2000", "2", "1"),
        ("Thompson", "linear", "2000", "3", "1"),
        ("hourly shares", "hourly", "960", "2", "0.5"),
        ("hourly shares", "hourly", "2400", "2", "1"),
        ("batched Thompson, 2 arms", "hourly", "2400", "2", "1"),
        ("batched Thompson, 4 arms", "linear", "1000", "4", "0.5"),
        ("epsilon-greedy", "linear", "1000", "2", "1"),
    ]
    return [
        {
            "design": design,
            "move": move,
            "rounds": rounds,
            "rewards": "normal",
            "arms": arms,
            "gap": "0",
            "size": size,
        }
        for design, move, rounds, arms, size in rows
    ]


# Classes


def asked(cell: Cell) -> Iterator[tuple[str, str]]:
    """What is asked of a log, each with where it is asked: of rows, of sums."""
    for question in QUESTIONS:
        if question != GROUPS or not cell.hidden:
            yield question, ROWS
    for question in OF_SUMS:
        yield question, SUMS


def class_of(cell: Cell, question: str, source: str) -> tuple[str, str]:
    """The class of a question to a cell, with its reason."""
    plain = question in (VALUES, POLICIES)
    if source == SUMS and cell.by_context:
        return CONTRADICTED, "a context moved shares and effects within a batch, of which sums keep the mean"
    if cell.hidden and not plain:
        return CONTRADICTED, "a context moved shares and effects, and is not in the file"
    if cell.move == "the effect turns":
        if question == VALUES:
            return COVERABLE, "uniform weights: the period's mean whatever moves"
        if cell.adapts:
            return (
                CONTRADICTED,
                "the effect turns while shares follow it: the answer hangs on the weights",
            )
        return COVERABLE, "the effect turns, and shares do not follow it"
    if source == SUMS and cell.adapts and not cell.batched:
        # The mean share leans on the batch's own rewards: by log(B) / sqrt(B) errors or so with B batches.
        return COVERABLE, "shares follow rewards within a batch, less so the more batches there have been"
    if cell.move == "an arm joins":
        return COVERABLE, "a level shared by all arms; those compared have rounds in common"
    if cell.move != "none":
        return COVERABLE, "a level shared by all arms moves"
    if cell.hidden:
        return COVERABLE, "scores are right whatever moved the shares; weights by earlier rounds"
    if cell.floor == 0.0:
        return COVERABLE, "nothing moves; shares without a floor"
    rounds = cell.n_rounds / 2.0 if question == GROUPS or cell.by_context else cell.n_rounds
    if cell.floor * rounds < ENOUGH:
        return COVERABLE, "nothing moves; few rounds of an arm"
    return BENIGN, "nothing moves; a floor, and enough rounds"


# Lists


def read() -> list[Cell]:
    """The committed list."""
    with LIST.open(encoding="utf-8", newline="") as file:
        return [Cell(int(row.pop("number")), **row) for row in csv.DictReader(file)]


def read_classes() -> dict[tuple[int, str, str], tuple[str, str]]:
    """The committed class and reason, by cell, question and source."""
    with CLASSES.open(encoding="utf-8", newline="") as file:
        return {
            (int(row["cell"]), question, row["source"]): (row["class"], row["reason"])
            for row in csv.DictReader(file)
            for question in row["questions"].split("; ")
        }


def cells() -> list[Cell]:
    """The cells again."""
    numbered = [*enumerate(grid()), *enumerate(first_table(), FIRST_ROW)]
    return [Cell(number, **levels) for number, levels in numbered]


def write() -> None:
    """Make the lists again, as they were before the first run."""
    with LIST.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["number", *FACTORS, "size"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(vars(cell) for cell in cells())
    with CLASSES.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(["cell", "source", "class", "reason", "questions"])
        for cell in cells():
            together: dict[tuple[str, str, str], list[str]] = {}
            for question, source in asked(cell):
                together.setdefault((source, *class_of(cell, question, source)), []).append(question)
            lines.writerows([cell.number, *key, "; ".join(questions)] for key, questions in together.items())
