"""The walk from a CSV file to a table, pictures and a report, in a fresh environment, with a clock.

    python docs/first_hour.py

Three commands of a shell, then the same from Python in five lines. Both must give the same numbers, those of
the table must stand in the report, and the report must hold its pictures. Prints a row for every step.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import adaptinf as ai

ROOT = Path(__file__).resolve().parents[1]
ROUNDS, SEED = 5_000, 2026
COLUMNS = {"action": "page", "reward": "bought", "propensity": "p"}
ANALYZE = (
    "env/bin/adaptinf analyze visits.csv --action page --reward bought --propensity p "
    "--treatment B --control A --report report.html"
)
LINES = """import adaptinf as ai
log = ai.read_log("visits.csv", action="page", reward="bought", propensity="p")
result = ai.Contrast(log, treatment="B", control="A").fit()
print(result.summary())
ai.report(result, "from_python.html", log=log)
"""
_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")


def visits(folder: Path) -> None:
    """A file as a shop would have it: page, whether it was bought, the probability of the page."""
    arms = ai.environments.BernoulliArms([0.10, 0.13])
    log = ai.designs.Thompson(floor=0.1).run(arms, horizon=ROUNDS, rng=SEED)
    frame = log.frame.assign(page=lambda rows: rows["action"].map({0: "A", 1: "B"}))
    frame = frame.rename(columns={"reward": "bought", "propensity": "p"})
    frame[["page", "bought", "p"]].to_csv(folder / "visits.csv", index=False)


def timed(folder: Path, command: list[str]) -> tuple[float, str]:
    """Seconds, and what was printed; an error ends the walk."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return seconds, done.stdout


def row_of(table: str) -> list[str]:
    """The numbers of the row of the difference."""
    [line] = [line for line in table.splitlines() if line.startswith("B - A")]
    return _NUMBER.findall(line)


def main() -> None:
    """Walk, check, print."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        visits(folder)
        steps = {
            "`python -m venv env`": [sys.executable, "-m", "venv", "env"],
            '`env/bin/pip install ".[plots]"`': ["env/bin/pip", "install", "-q", f"{ROOT}[plots]"],
            f"`{ANALYZE}`": ANALYZE.split(),
            "the same again": ANALYZE.split(),
            "the five lines of Python": ["env/bin/python", "-c", LINES],
        }
        told = {name: timed(folder, command) for name, command in steps.items()}
        shell, python = row_of(told[f"`{ANALYZE}`"][1]), row_of(told["the five lines of Python"][1])
        assert shell == python, (shell, python)
        for name in ("report.html", "from_python.html"):
            page = (folder / name).read_text(encoding="utf-8")
            assert all(f">{number}<" in page for number in shell), name
            assert page.count("<img ") == 3, name
        size = (folder / "report.html").stat().st_size
    print("| step | seconds |\n| --- | ---: |")
    for name, (seconds, _) in told.items():
        print(f"| {name} | {seconds:.1f} |")
    print(
        f"\nThe row of the table, from the shell and from Python: {', '.join(shell)}; report {size:,} bytes."
    )


if __name__ == "__main__":
    main()
