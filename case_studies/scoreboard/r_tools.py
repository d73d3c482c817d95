"""Tools in R: the logs of a cell as a table of rows, one process of R a cell."""

from __future__ import annotations

import subprocess
import tempfile
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from case_studies.scoreboard.cells import Cell
from case_studies.scoreboard.logs import Log, read
from case_studies.scoreboard.work import add, empty

HERE = Path(__file__).parent
ROWS = 2_000_000  # that are handed over at once


def table(logs: list[Log], target: str) -> pd.DataFrame:
    """Rows of several logs, numbered; the policy by arm where it is asked for."""
    parts = []
    for number, log in enumerate(logs):
        part = log.frame().assign(log=number, about=log.arm)
        if target == "policy":
            for arm in range(log.n_arms):
                part[f"policy{arm}"] = log.policy[:, arm]
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def run(tool: str, cell: Cell, path: Path, budget: float, most: int, snapshots: Path) -> dict[str, Any]:
    """A tool's intervals in one cell, as `work.run` gives them.

    Raises
    ------
    RuntimeError
        If R ends with an error outside the adapter: the last line that it printed.
    """
    logs = list(islice(read(cell, path), min(most, max(1, ROWS // cell.rounds))))
    with tempfile.TemporaryDirectory() as folder:
        rows, out = Path(folder, "rows.csv"), Path(folder, "out.csv")
        table(logs, cell.target).to_csv(rows, index=False)
        asked = [rows, out, cell.target, cell.arms, budget, len(logs), snapshots]
        done = subprocess.run(
            [
                "Rscript",
                "--vanilla",
                str(HERE / "work.R"),
                str(HERE / "adapters" / f"{tool}.R"),
                *map(str, asked),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{tool}: {done.stderr.strip().splitlines()[-1]}")
        answers = pd.read_csv(out, keep_default_na=False, na_values={"low": ["", "NA"], "high": ["", "NA"]})
    found, refusals = empty(), Counter(answers["refused"][answers["refused"] != ""])
    for log, one in zip(logs, answers.itertuples(), strict=False):
        answer = None if np.isnan(one.low) or np.isnan(one.high) else (one.low, one.high)
        add(found, cell, log, answer, float(one.seconds), one.warned in (True, "TRUE"))
    return {"found": found, "refusals": dict(refusals.most_common(3))}
