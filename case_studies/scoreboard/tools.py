"""The tools (`tools.toml`): versions, environments, the cells of each, and what its authors promise."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from case_studies.scoreboard.cells import INFORMATION, TARGETS, Cell, read_cells

HERE = Path(__file__).parent
WORLDS_OF_ZEROS_AND_ONES = ("equal", "better", "drift", "rare", "units", "delay", "tenth", "leaves")


@dataclass(frozen=True)
class Tool:
    """A tool.

    `environment` is "here", the name of a file under `requirements`, or "R". `targets`, `information` and
    `designs` (all if empty) are those to which its documentation speaks; `arms` is the largest number of arms
    it takes, and `binary` says that it takes only zeros and ones. `promise` is what the authors promise in
    our words, `adaptive` whether they promise it for outcomes that chose the arms ("yes", "no", or under
    which condition), `source` where.
    """

    name: str
    version: str
    environment: str
    promise: str
    adaptive: str
    source: str
    targets: tuple[str, ...] = TARGETS
    information: tuple[str, ...] = INFORMATION
    designs: tuple[str, ...] = ()
    arms: int = 99
    binary: bool = False
    snapshot: str = ""


def read_tools(path: Path = HERE / "tools.toml") -> dict[str, Tool]:
    """All tools that are run, by name."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    listed = [
        {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
        for entry in content["tool"]
    ]
    return {entry["name"]: Tool(**entry) for entry in listed}


def left_out(path: Path = HERE / "tools.toml") -> dict[str, str]:
    """Tools that are not run, and why."""
    return {
        entry["name"]: entry["reason"]
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["left_out"]
    }


def speaks_to(tool: Tool, cell: Cell) -> bool:
    """Whether a tool is run on a cell."""
    return (
        cell.target in tool.targets
        and cell.information in tool.information
        and (not tool.designs or cell.design in tool.designs)
        and cell.arms <= tool.arms
        and (not tool.binary or cell.world in WORLDS_OF_ZEROS_AND_ONES)
    )


def cells_of(tool: Tool) -> list[Cell]:
    """The cells of a tool, in their order."""
    return [cell for cell in read_cells() if speaks_to(tool, cell)]
