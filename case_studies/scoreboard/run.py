"""Tools' own intervals on logs of adaptive experiments: the first figures again, and what `results.csv` says.

The long run is `python -m case_studies.scoreboard`; here a part of it is repeated, on the same logs.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from case_studies.outcome import Outcome, Settings
from case_studies.scoreboard import compare, pictures, score, work
from case_studies.scoreboard.adapters import adaptinf, evidential, growthbook, statsmodels
from case_studies.scoreboard.cells import Cell, read_cells
from case_studies.scoreboard.logs import store

BUDGET = 1e9  # seconds: all logs are used
ARMS = (2, 5, 10, 20)
ADAPTERS = {
    "adaptinf": adaptinf,
    "statsmodels": statsmodels,
    "growthbook": growthbook,
    "evidential": evidential,
}
AGAIN = (
    ("adaptinf", "thompson_floor/equal/2/all", "contrast"),
    ("adaptinf", "thompson/equal/2/none", "leader"),
    ("adaptinf", "track_and_stop/equal/3/none", "stopped"),
    ("statsmodels", "thompson/equal/2/all", "lowest"),
    ("statsmodels", "ucb/equal/2/none", "arm"),
)


def measured(tool: str, cell: str, target: str, logs: int, cache: Path) -> float:
    """Coverage of a tool in a cell."""
    one: Cell = next(each for each in read_cells() if (each.cell, each.target) == (cell, target))
    found = work.run(ADAPTERS[tool], one, store(one, cache, logs), BUDGET, logs)["found"]
    return float(score.row(cell, tool, target, found)["coverage"])


def first_figures(settings: Settings, cache: Path) -> pd.DataFrame:
    """Coverage of the platforms' intervals of the leading and the lowest of equal arms."""
    logs = settings.runs(500, 100)
    rows = []
    for arms in ARMS:
        for tool, cell in (
            ("growthbook", f"top_two/tenth/{arms}/sums"),
            ("evidential", f"beta_thompson/tenth/{arms}/none"),
        ):
            covered = {target: measured(tool, cell, target, logs, cache) for target in ("leader", "lowest")}
            rows.append({"tool": tool, "arms": arms, **covered, "logs": logs})
    return pd.DataFrame(rows).sort_values("tool", ascending=False, kind="stable").reset_index(drop=True)


def run(settings: Settings) -> Outcome:
    """Repeat the first figures and some cells, and draw what the long run found."""
    cache = settings.cache / ("scoreboard-quick" if settings.quick else "scoreboard")
    first = first_figures(settings, cache)
    figures = {
        f"{row['tool']}_{target}_{row['arms']}": row[target]
        for _, row in first.iterrows()
        for target in ("leader", "lowest")
    }
    logs = settings.runs(250, 100)
    for tool, cell, target in AGAIN:
        figures[f"{tool}_{cell.split('/')[0]}_{target}"] = measured(tool, cell, target, logs, cache)
    rows = compare.read_results()
    tables = {
        "first_figures": first,
        "tools": compare.by_tool(rows),
        "not_narrowest": compare.not_narrowest(rows),
    }
    return Outcome(figures, tables, {"scoreboard": pictures.scoreboard(rows)})
