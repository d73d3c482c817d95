"""What `results.csv` says: which tools are valid where, and which of them is the narrowest."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from case_studies.scoreboard.tools import cells_of, read_tools

HERE = Path(__file__).parent
RESULTS = HERE / "results.csv"
LEVEL = 0.95
TIE = 1.02  # widths closer than this are the same
ANSWERS = 0.5  # share of the logs that a tool must answer to be compared with others
BY = ["design", "arms", "target"]


def read_results(path: Path = RESULTS) -> pd.DataFrame:
    """Rows with what their cells are, and whether each covers.

    `valid` allows for two simulation errors; `near`, which several worlds must all satisfy, for three.
    """
    rows = pd.read_csv(path)
    rows[["design", "world", "arms", "information"]] = rows["cell"].str.split("/", expand=True)
    error = np.sqrt(LEVEL * (1 - LEVEL) / rows["answered"].clip(lower=1))
    rows["valid"] = (rows["answered"] > 0) & (rows["coverage"] >= LEVEL - 2 * error)
    rows["near"] = (rows["answered"] > 0) & (rows["coverage"] >= LEVEL - 3 * error)
    rows["refused"] = 1 - rows["answered"] / rows["runs"]
    return rows


def by_tool(rows: pd.DataFrame) -> pd.DataFrame:
    """A row a tool: its cells, in how many it answers, covers and is the narrowest of those that cover."""
    answered = rows[rows["answered"] > 0]
    best = narrowest(rows)
    table = pd.DataFrame(
        {
            "cells": rows.groupby("tool", sort=False).size(),
            "answered in": answered.groupby("tool").size(),
            "covers in": answered.groupby("tool")["valid"].sum(),
            "lowest coverage": answered.groupby("tool")["coverage"].min(),
            "median width": answered.groupby("tool")["width"].median(),
            "narrowest in": best.groupby("tool").size(),
            "median seconds": answered.groupby("tool")["seconds"].median(),
        }
    )
    table = table.fillna({"answered in": 0, "covers in": 0, "narrowest in": 0})
    counts = ["cells", "answered in", "covers in", "narrowest in"]
    return table.astype(dict.fromkeys(counts, int)).loc[rows["tool"].drop_duplicates()].reset_index()


def narrowest(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows that cover in their cell, answer half of its logs, and are no wider than any other, up to 2%."""
    valid = rows[rows["valid"] & (rows["refused"] <= 1 - ANSWERS)]
    least = valid.groupby(["cell", "target"])["width"].transform("min")
    return valid[valid["width"] <= TIE * least]


def everywhere(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of tools that cover in every world of the row's design, number of arms and target.

    An analyst knows these and not the world. A tool that was not run yet in all worlds of its documentation
    is left out.
    """
    answered = rows[rows["answered"] > 0]
    asked = pd.Series(_spoken(), dtype=float)
    run = rows.groupby(["tool", *BY])["cell"].nunique()
    complete = run >= asked.reindex(run.index).fillna(0)
    known = complete.loc[list(zip(*(answered[name] for name in ("tool", *BY)), strict=True))].to_numpy()
    return answered[answered.groupby(["tool", *BY])["near"].transform("all") & known]


def _spoken() -> dict[tuple[str, str, str, str], int]:
    """Cells to which a tool's documentation speaks, by tool, design, number of arms and target."""
    found: Counter[tuple[str, str, str, str]] = Counter()
    for name, tool in read_tools().items():
        found.update((name, cell.design, str(cell.arms), cell.target) for cell in cells_of(tool))
    return dict(found)


def _why(own: pd.Series, narrower: bool, everywhere_too: bool) -> str:
    """The reason in a few words."""
    if own["answered"] == 0:
        return "refused in every log"
    if not own["valid"]:
        return "does not cover"
    if narrower and everywhere_too:
        return "wider, and the other covers in every world that was run"
    return "wider; the other misses in another world of this design"


def not_narrowest(rows: pd.DataFrame, tool: str = "adaptinf") -> pd.DataFrame:
    """Cells in which another tool that covers is narrower, or ours does not cover or answer, and why.

    `elsewhere` is the narrower tool's lowest coverage in any world of the same design, arms and target.
    """
    ours = rows[rows["tool"] == tool].set_index(["cell", "target"])
    answered = rows[rows["answered"] > 0]
    lowest = answered.groupby(["tool", *BY])["coverage"].min()
    everywhere_too = answered.groupby(["tool", *BY])["near"].all()
    others = rows[rows["valid"] & (rows["refused"] <= 1 - ANSWERS) & (rows["tool"] != tool)]
    found = []
    for (cell, target), own in ours.iterrows():
        here = others[(others["cell"] == cell) & (others["target"] == target)]
        other = here.loc[here["width"].idxmin()] if len(here) else None
        narrower = other is not None and not (own["valid"] and own["width"] <= TIE * other["width"])
        if own["valid"] and not narrower:
            continue
        found.append(
            {
                "cell": cell,
                "target": target,
                "runs": own["runs"],
                "refused": round(own["refused"], 3),
                "coverage": own["coverage"],
                "width": own["width"],
                "narrower": other["tool"] if narrower else "",
                "its coverage": other["coverage"] if narrower else np.nan,
                "its width": other["width"] if narrower else np.nan,
                "elsewhere": lowest[tuple(other[["tool", *BY]])] if narrower else np.nan,
                "why": _why(own, narrower, narrower and everywhere_too[tuple(other[["tool", *BY]])]),
            }
        )
    return pd.DataFrame(found)


def causes(rows: pd.DataFrame, tool: str = "adaptinf") -> pd.DataFrame:
    """The cells of `not_narrowest` in groups, by what the width is the price of.

    `cells` counts them; `wider` is the median of our width over that of the narrowest.
    """
    found = not_narrowest(rows, tool)
    if found.empty:
        return pd.DataFrame(columns=["cause", "cells", "wider", "lowest elsewhere"])
    found["cause"] = [_cause(row) for _, row in found.iterrows()]
    found["wider"] = found["width"] / found["its width"]
    groups = found.groupby("cause")
    table = pd.DataFrame(
        {
            "cells": groups.size(),
            "wider": groups["wider"].median(),
            "lowest elsewhere": groups["elsewhere"].min(),
        }
    )
    return table.sort_values("cells", ascending=False, kind="stable").reset_index()


def _cause(row: pd.Series) -> str:
    """The group of a cell."""
    _, world, _, information = row["cell"].split("/")
    if row["why"] in ("refused in every log", "does not cover"):
        return row["why"]
    if "misses" in row["why"]:
        return "the other misses in another world of this design"
    if row["target"] in ("leader", "lowest"):
        return "the interval allows for the choice of the arm by its outcomes; the other does not"
    if information == "none":
        return "no chances are logged, so the interval must hold for many ways of choosing"
    if world in ("rare", "skewed", "units"):
        return "rare, skewed or repeated outcomes: exact, corrected or clustered"
    return "the interval does not assume that chances settle; in the worlds that were run, they do"


def share_narrowest(rows: pd.DataFrame, tool: str = "adaptinf") -> dict[str, float]:
    """Share of a tool's answered cells in which it is the narrowest of those that cover."""
    cells = rows[(rows["tool"] == tool) & (rows["answered"] > 0)]
    shares = {}
    for name, among in (("in the cell", rows), ("in every world", everywhere(rows))):
        best = narrowest(among)
        shares[name] = float((best["tool"] == tool).sum() / len(cells))
    return shares
