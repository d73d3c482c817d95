"""Run tools on the cells, write `results.csv`, and fill the tables of the page from it.

    python -m case_studies.scoreboard
        every tool on its cells: at most eight hours on two cores
    python -m case_studies.scoreboard --tools statsmodels ville
    python -m case_studies.scoreboard --cells 'thompson*'
        cells whose name and target fit a pattern
    python -m case_studies.scoreboard --hours 1 --most 400 --seconds 5

What was run stays in the cache, a file a tool and cell: a run that was broken off goes on from there.
Repositories that are read from a snapshot (see `tools.toml`) are expected under --snapshots, a folder each.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import math
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd

from case_studies.scoreboard import compare, environments, page, r_tools, score
from case_studies.scoreboard.cells import Cell, read_cells
from case_studies.scoreboard.logs import LOGS, store
from case_studies.scoreboard.tools import Tool, cells_of, read_tools
from case_studies.scoreboard.work import place, save

HERE = Path(__file__).parent


def gather(cache: Path) -> pd.DataFrame:
    """Rows of everything that was run, in the order of the cells and the tools."""
    tools = read_tools()
    rows = []
    for cell in read_cells():
        for tool in tools:
            path = place(cache, tool, cell)
            if path.exists():
                found = json.loads(path.read_text(encoding="utf-8"))["found"]
                rows.append(score.row(cell.cell, tool, cell.target, found))
    return pd.DataFrame(rows, columns=list(score.COLUMNS))


def run_r(tool: Tool, cells: list[Cell], options: argparse.Namespace) -> None:
    """Cells of a tool in R."""
    environments.r_has(tool, options.snapshots)
    for cell in cells:
        path = place(options.cache, tool.name, cell)
        if path.exists() or time.time() > options.until:
            continue
        logs = options.cache / "logs" / f"{cell.logs}.parquet"
        save(path, r_tools.run(tool.name, cell, logs, options.seconds, options.most, options.snapshots))
        print(f"{tool.name} {cell.cell} {cell.target}", flush=True)


def run_python(tool: Tool, cells: list[Cell], options: argparse.Namespace) -> None:
    """Cells of a tool in Python, in one process of its environment."""
    python = environments.python_of(tool, options.cache)
    command = [str(python), "-m", "case_studies.scoreboard.work", tool.name, "--cache", str(options.cache)]
    for name in ("seconds", "most", "until"):
        command += [f"--{name}", str(getattr(options, name))]
    names = [f"{cell.cell}/{cell.target}" for cell in cells]
    there = os.environ | {"PYTHONPATH": str(HERE.parents[1])}
    subprocess.run([*command, "--cells", *names], env=there, check=True)


def run_tool(tool: Tool, cells: list[Cell], options: argparse.Namespace) -> None:
    """Cells of a tool; why, where it cannot be run."""
    try:
        (run_r if tool.environment == "R" else run_python)(tool, cells, options)
    except (environments.Missing, subprocess.CalledProcessError, RuntimeError) as error:
        print(f"{tool.name} was not run to the end: {error}", flush=True)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m case_studies.scoreboard",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--tools", nargs="*", default=list(read_tools()))
    parser.add_argument("--cells", default="*", help="pattern of cell/target")
    parser.add_argument("--hours", type=float, default=8.0, help="after which no cell is begun")
    parser.add_argument("--most", type=int, default=LOGS, help="logs of a cell")
    parser.add_argument("--seconds", type=float, default=1_200, help="for a cell, where a fit is slow")
    parser.add_argument("--jobs", type=int, default=2, help="tools that run at once")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "adaptinf" / "scoreboard")
    parser.add_argument("--snapshots", type=Path, help="folder of repositories (default: in the cache)")
    parser.add_argument("--output", type=Path, default=compare.RESULTS)
    options = parser.parse_args(arguments)
    options.snapshots = options.snapshots or options.cache / "snapshots"
    options.until = time.time() + 3600 * options.hours if math.isfinite(options.hours) else math.inf
    known = read_tools()
    if unknown := sorted(set(options.tools) - set(known)):
        parser.error(f"no such tool: {', '.join(unknown)}; available: {', '.join(known)}")
    wanted = {
        name: [
            cell
            for cell in cells_of(known[name])
            if fnmatch.fnmatch(f"{cell.cell}/{cell.target}", options.cells)
        ]
        for name in options.tools
    }
    for cell in {cell.logs: cell for cells in wanted.values() for cell in cells}.values():
        store(cell, options.cache, options.most)
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda name: run_tool(known[name], wanted[name], options), options.tools))
    found = gather(options.cache)
    found.to_csv(options.output, index=False)
    if options.output == compare.RESULTS:
        text = page.PAGE.read_text(encoding="utf-8")
        page.PAGE.write_text(page.filled(text, compare.read_results()), encoding="utf-8")
    print(f"{len(found)} rows in {options.output}")


if __name__ == "__main__":
    sys.exit(main())
