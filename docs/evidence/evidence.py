"""What scripts of the evidence share: command line, the stamp of a page, the check of a headline figure.

A full run writes the page beside its script. A quick one prints a small version, writes nothing, and ends
with an error where a figure of the committed page is further off than four standard errors of both allow.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ERRORS = 4.0  # a normal error lies beyond in 6 of 100,000 runs
MARKS = re.compile(r"\*\*|\s*\[\d+%\]")
"""What stands beside a figure: bold, and a share in brackets."""
MEASURED = re.compile(r"([-+]?[\d,]*\.?\d+)(%?)(?: ?(?:± ?|\()([\d,]*\.?\d+)\)?)?")


def parser(description: str | None) -> argparse.ArgumentParser:
    """Command line with --quick and --output."""
    found = argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)
    found.add_argument(
        "--quick",
        action="store_true",
        help="a small version: printed, not kept, with a figure compared with the committed page",
    )
    found.add_argument(
        "--output",
        type=Path,
        help="where to write the page; by default the committed one, in quick runs none",
    )
    return found


def stamp() -> str:
    """Date and commit of what is measured now; a tree with changes of its own says so."""
    pages = [f":(top,exclude)docs/evidence/{kind}" for kind in ("*.md", "*_counts.csv")]  # written by scripts
    found = [
        _git("rev-parse", "--short=7", "HEAD"),
        _git("status", "--porcelain", "-uno", "--", ":/", *pages),
    ]
    changed = " with changes" if found[1] else ""
    return f"{date.today().isoformat()}, commit {found[0] or 'unknown'}{changed}"


def publish(
    page: str,
    script: str,
    options: argparse.Namespace,
    part: str = "",
    between: tuple[str, str] | None = None,
) -> None:
    """Write a page, or a part with a name of its own, beside its script or to --output; print a quick one.

    Of a page that several scripts write each replaces what is between its two marks.
    """
    path = options.output or (None if options.quick else Path(script).with_suffix(".md"))
    if path is None:
        print(page)
        return
    if part:
        path = path.with_stem(f"{path.stem}_{part}")
    path.parent.mkdir(parents=True, exist_ok=True)
    if between is not None and path.is_file():
        begin, end = between
        old = path.read_text(encoding="utf-8")
        own = page[page.index(begin) : page.index(end)]
        page = old.partition(begin)[0] + own + end + old.partition(end)[2]
    path.write_text(page, encoding="utf-8")
    print(f"written to {path}")


@contextlib.contextmanager
def folder(given: Path | None, script: str, quick: bool) -> Iterator[Path]:
    """Folder for parts that a stopped run goes on from: as given, else build/NAME, or one that is removed."""
    if given is not None or not quick:
        yield given or Path("build") / Path(script).stem
        return
    with tempfile.TemporaryDirectory() as place:
        yield Path(place)


def committed(script: str, row: str, column: str) -> str:
    """Cell of the committed page of a script."""
    return cell(Path(script).with_suffix(".md").read_text(encoding="utf-8"), row, column)


def cell(page: str, row: str, column: str) -> str:
    """Cell of the first table of a page that has the column, and a row that begins with these cells."""
    head: list[str] = []
    for line in page.splitlines():
        cells = [part.strip() for part in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            head = []
        elif not head:
            head = cells
        elif column in head and line.startswith(f"| {row} |"):
            return MARKS.sub("", cells[head.index(column)])
    raise SystemExit(f"no table of the page has a column {column!r} and a row {row!r}")


def measured(text: str, runs: int | None = None) -> tuple[float, float]:
    """Figure of a cell, and how far one standard error and half of a last digit reach.

    The error is in the cell, as in "3.1 ± 0.2", "3.1 (0.2)" or "1.0014(16)", or is that of a share of runs.
    """
    match = MEASURED.match(text)
    if match is None:
        raise SystemExit(f"{text!r} is no figure")
    value, percent, error = match.groups()
    unit = 10.0 ** -len(value.partition(".")[2])
    found, spread = float(value.replace(",", "")), 0.0
    if error:
        rounded = 10.0 ** -len(error.partition(".")[2]) / 2.0  # an error of 0 is below half of its last digit
        short = re.match(r"[-+.,\d]+\(\d+\)", text)  # in units of the last digits
        spread = (float(error.replace(",", "")) + rounded) * (unit if short else 1.0)
    if percent:
        found, spread, unit = found / 100.0, spread / 100.0, unit / 100.0
    if runs is not None:
        share = (found * runs + 2.0) / (runs + 4.0)
        spread = math.sqrt(share * (1.0 - share) / runs)
    return found, math.hypot(spread, unit / math.sqrt(12.0))


def hold(what: str, now: tuple[float, float], then: tuple[float, float]) -> None:
    """End with an error where two figures, each with its standard error, are too far apart."""
    allowed = ERRORS * math.hypot(now[1], then[1])
    told = (
        f"{what}: now {now[0]:.6g}, on the committed page {then[0]:.6g}; up to {allowed:.2g} apart is error"
    )
    if not abs(now[0] - then[0]) <= allowed:
        raise SystemExit(f"OFF: {told}")
    print(f"headline holds: {told}")


def hold_cell(page: str, script: str, row: str, column: str, runs: tuple[int, int] | None = None) -> None:
    """Hold a cell against the committed page; shares have the runs of this page and of that one."""
    fewer, more = runs or (None, None)
    then = measured(committed(script, row, column), more)
    hold(f"{row}, {column}", measured(cell(page, row, column), fewer), then)


def alone(script: str, library: Path | None, *words: str) -> Any:
    """What a script says in JSON to `--one` and words: of this library, or of another checkout."""
    variables = dict(os.environ)
    if library is not None:
        variables["PYTHONPATH"] = str(library.resolve())
    command = [sys.executable, script, "--one", *words]
    return json.loads(
        subprocess.run(command, env=variables, capture_output=True, text=True, check=True).stdout
    )


def commit_of(library: Path | None) -> str:
    """Commit of another checkout; empty if there is none."""
    return "" if library is None else _git("rev-parse", "--short=7", "HEAD", place=library)


def _git(*words: str, place: Path = HERE) -> str:
    try:
        done = subprocess.run(["git", "-C", str(place), *words], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
