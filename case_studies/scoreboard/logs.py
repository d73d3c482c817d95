"""Logs: simulated once, kept as Parquet outside the repository, and shown as far as a cell grants."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from case_studies.scoreboard.cells import Cell, policy

if TYPE_CHECKING:
    import pandas as pd

SEED = 2026
LOGS = 2_000
BLOCK = 100  # logs that are drawn together
PERIODS = 20


@dataclass(frozen=True)
class Log:
    """What a tool is shown.

    `arms`, `rewards`, `units`, `leaves`, `periods` and `policy` have a row a round; `shares`, every arm's
    chance, has one only where the cell grants them, and `chosen` is that of the chosen arm. `n`, `sums` and
    `squares` are (periods, arms), and all that is shown of a cell of sums, with a row of `shares` a period.
    `arm` is the arm that is asked about: the first one, or the one with the highest or lowest mean.
    `adaptive` says whether outcomes were used in choosing, and `data_chosen` whether they ended the log.
    """

    n_arms: int
    arm: int
    n: np.ndarray
    sums: np.ndarray
    squares: np.ndarray
    adaptive: bool
    data_chosen: bool
    rounds: int
    arms: np.ndarray | None = None
    rewards: np.ndarray | None = None
    shares: np.ndarray | None = None
    chosen: np.ndarray | None = None
    periods: np.ndarray | None = None
    units: np.ndarray | None = None
    leaves: np.ndarray | None = None
    policy: np.ndarray | None = None
    agreeing: float = 0.0

    def of(self, arm: int) -> np.ndarray:
        """Outcomes of an arm, in order."""
        return self.rewards[self.arms == arm]

    def reversed(self) -> Log:
        """The same log with outcomes 1 - y, whose highest mean is the lowest of this one."""
        told = {"sums": self.n - self.sums, "squares": self.n - 2 * self.sums + self.squares}
        return replace(self, **told, rewards=None if self.rewards is None else 1 - self.rewards)

    def frame(self) -> pd.DataFrame:
        """A row a round, or a row a period and arm."""
        import pandas as pd

        if self.arms is None:
            place = np.indices(self.n.shape)
            columns = {"period": place[0], "arm": place[1], "n": self.n, "sum": self.sums,
                       "squares": self.squares, "share": self.shares}  # fmt: skip
            return pd.DataFrame({name: column.ravel() for name, column in columns.items()})
        columns = {"arm": self.arms, "reward": self.rewards, "chosen": self.chosen, "period": self.periods,
                   "unit": self.units, "leaf": self.leaves}  # fmt: skip
        if self.shares is not None:
            columns |= {f"p{arm}": self.shares[:, arm] for arm in range(self.n_arms)}
        return pd.DataFrame({name: column for name, column in columns.items() if column is not None})


def simulate(cell: Cell, block: int) -> dict[str, list[np.ndarray]]:
    """Logs of one block; each block has its own seed, so a short run has the first logs of a long one."""
    from case_studies.scoreboard.designs import DESIGNS
    from case_studies.scoreboard.worlds import with_leaves, world

    rng = np.random.default_rng([SEED, zlib.crc32(cell.logs.encode()), block])
    drawn = world(cell.world, BLOCK, cell.rounds, cell.arms, rng)
    if cell.design == "tree_thompson":
        drawn = with_leaves(drawn, rng)
    coins = rng.random((BLOCK, cell.rounds))
    arms, shares, ends = DESIGNS[cell.design](drawn, coins, rng)
    ends = np.full(BLOCK, cell.rounds) if ends is None else ends
    rewards = np.take_along_axis(drawn.outcomes, arms[:, :, None], axis=2)[:, :, 0]
    columns: dict[str, list[np.ndarray]] = {
        "arms": [row[:end].astype(np.int8) for row, end in zip(arms, ends, strict=True)],
        "rewards": [row[:end] for row, end in zip(rewards, ends, strict=True)],
    }
    if shares is not None:
        columns["shares"] = [row.ravel() for row in shares]
    if drawn.leaves is not None:
        columns["leaves"] = [row.astype(np.int8) for row in drawn.leaves]
    return columns


def store(cell: Cell, cache: Path, logs: int = LOGS) -> Path:
    """The file of a cell's logs, which is written if it holds fewer than `logs`."""
    path = cache / "logs" / f"{cell.logs}.parquet"
    if path.exists() and pq.ParquetFile(path).metadata.num_rows >= logs:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}")
    writer = None
    for block in range(-(-logs // BLOCK)):
        table = pa.table(simulate(cell, block))
        writer = writer or pq.ParquetWriter(part, table.schema, compression="zstd")
        writer.write_table(table)
    writer.close()
    part.replace(path)
    return path


def read(cell: Cell, path: Path) -> Iterator[Log]:
    """The logs of a file, one after another, with what the cell grants."""
    file = pq.ParquetFile(path)
    for group in range(file.num_row_groups):
        table = file.read_row_group(group)
        for row in range(table.num_rows):
            columns = {name: table[name][row].values.to_numpy() for name in table.column_names}
            yield shown(cell, **columns)


def shown(
    cell: Cell,
    arms: np.ndarray,
    rewards: np.ndarray,
    shares: np.ndarray | None = None,
    leaves: np.ndarray | None = None,
) -> Log:
    """A log with what a cell grants of it."""
    from case_studies.scoreboard.worlds import UNITS

    rounds = len(arms)
    periods = np.arange(rounds) * PERIODS // rounds
    place = periods * cell.arms + arms
    n, sums, squares = (
        np.bincount(place, weights, minlength=PERIODS * cell.arms).reshape(PERIODS, cell.arms)
        for weights in (np.ones(rounds), rewards, rewards**2)
    )
    means = sums.sum(axis=0) / np.maximum(n.sum(axis=0), 1)
    pulled = n.sum(axis=0) > 0
    arm = 0
    if cell.target in ("leader", "stopped"):
        arm = int(np.argmax(np.where(pulled, means, -np.inf)))
    elif cell.target == "lowest":
        arm = int(np.argmin(np.where(pulled, means, np.inf)))
    data_chosen = cell.design == "track_and_stop"
    told = {"n_arms": cell.arms, "arm": arm, "n": n, "sums": sums, "squares": squares, "rounds": rounds,
            "adaptive": cell.design != "coin", "data_chosen": data_chosen}  # fmt: skip
    chances = None if shares is None else shares.reshape(-1, cell.arms)
    if cell.information == "sums":
        return Log(**told, shares=chances if len(chances) == PERIODS else np.full(n.shape, 1 / cell.arms))
    rules = policy(cell)
    told |= {"arms": arms.astype(int), "rewards": rewards, "leaves": leaves}
    told["policy"] = rules[np.zeros(rounds, dtype=int) if leaves is None else leaves]
    told["agreeing"] = float(told["policy"][np.arange(rounds), told["arms"]].sum())
    told["units"] = np.arange(rounds) % UNITS if cell.world == "units" else None
    if cell.information != "none" and chances is not None:
        by_round = np.repeat(chances, rounds // len(chances), axis=0)
        told["chosen"] = by_round[np.arange(rounds), told["arms"]]
        told["shares"] = by_round if cell.information == "all" else None
        told["periods"] = periods if len(chances) == PERIODS else None
    return Log(**told)
