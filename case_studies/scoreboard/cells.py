"""The cells: what was fixed before the first run (`cells.csv`), and what is true in each."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from case_studies.scoreboard.worlds import LEAF_MEANS, LEAVES, World, world

HERE = Path(__file__).parent
TARGETS = ("arm", "contrast", "leader", "lowest", "policy", "ratio", "stopped")
INFORMATION = ("all", "chosen", "none", "sums")
LEAF_POLICY = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])


@dataclass(frozen=True)
class Cell:
    """Logs of a design in a world, how much of them a tool is shown, and what it is asked."""

    cell: str
    design: str
    world: str
    arms: int
    rounds: int
    information: str
    target: str

    @property
    def logs(self) -> str:
        """Name of the logs, which cells share."""
        return f"{self.design}-{self.world}-{self.arms}"


def read_cells(path: Path = HERE / "cells.csv") -> list[Cell]:
    """All cells in their order."""
    with path.open(encoding="utf-8") as file:
        return [
            Cell(**{**row, "arms": int(row["arms"]), "rounds": int(row["rounds"])})
            for row in csv.DictReader(file)
        ]


def policy(cell: Cell) -> np.ndarray:
    """The policy of the target `policy`: a row of chances a leaf, all alike but under `tree_thompson`."""
    if cell.design == "tree_thompson":
        return LEAF_POLICY
    row = np.full(cell.arms, 0.75 / (cell.arms - 1))
    row[0] = 0.25
    return np.tile(row, (LEAVES, 1))


def law(cell: Cell) -> World:
    """Means and deviations of a cell's arms."""
    return world(cell.world, 1, cell.rounds, cell.arms, np.random.default_rng(0))


def truth(cell: Cell, arm: int) -> float:
    """The number to be covered; `arm` is the one that an interval of a selected arm is about."""
    means = law(cell).means
    if cell.target == "contrast":
        return float(means[1] - means[0])
    if cell.target == "ratio":
        return float(means[1] / means[0])
    if cell.target == "policy":
        by_leaf = LEAF_MEANS if cell.world == "leaves" else np.tile(means, (LEAVES, 1))
        return float((policy(cell) * by_leaf).sum(axis=1).mean())
    return float(means[arm])


def oracle_error(cell: Cell, counts: np.ndarray, agreeing: float, arm: int) -> float:
    """Standard error of means of as many outcomes, drawn without adapting, with the true deviations.

    `counts` are the log's rounds by arm, `agreeing` those of which the arm is the one of a policy without
    chance.
    """
    told = law(cell)
    variances = told.deviations**2 / np.maximum(counts, 1)
    means = told.means
    if cell.target == "contrast":
        return float(np.sqrt(variances[0] + variances[1]))
    if cell.target == "ratio":
        return float(np.sqrt(variances[1] / means[0] ** 2 + variances[0] * means[1] ** 2 / means[0] ** 4))
    if cell.target == "policy":
        if cell.design == "tree_thompson":
            return float(told.deviations[0] / np.sqrt(max(agreeing, 1)))
        return float(np.sqrt((policy(cell)[0] ** 2 * variances).sum()))
    return float(np.sqrt(variances[arm]))
