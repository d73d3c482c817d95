"""Quick forms of the evidence's scripts: all that changed lately, and a rotating part of the others.

    python docs/evidence/run.py                  # the rule of CI
    python docs/evidence/run.py --seconds 240    # the same, but what would begin later is left out, and named
    python docs/evidence/run.py linear bias      # these

*Changed*: the script, or a module of the evidence, the benchmarks, the tests or the case studies that it
imports, directly or not, differs from the last commit, or was changed by a commit of the last --hours before
the newest. *Rotation*: all scripts in the order of the alphabet are dealt into --groups; the number of
commits, modulo the groups, says whose turn it is. Two scripts run at a time. Ends with 1 if a script fails,
or a headline figure is off, and prints what it said. Nothing is written.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
APART = {"calibration", "privacy_audits"}  # steps of their own in .ci/run
IMPORT = re.compile(r"^(?:from ([\w.]+) import ([\w, ]+)|import ([\w.]+))", re.MULTILINE)
LONGEST = 300  # seconds


def scripts() -> list[str]:
    """Names of the scripts, in the order of the alphabet; modules that scripts share are none."""
    found = [path.stem for path in HERE.glob("*.py") if '__name__ == "__main__"' in path.read_text("utf-8")]
    return sorted(set(found) - APART - {Path(__file__).stem})


@functools.cache
def places() -> tuple[Path, ...]:
    """Folders from which scripts import, but for the package."""
    rooms = {path.parent for path in (ROOT / "tests").glob("*/**/*.py")}
    return (HERE, ROOT, *sorted(rooms))


@functools.cache
def files_of(part: str) -> frozenset[Path]:
    """Files that an import of a module may mean, outside the package."""
    if part.split("/")[0] == "adaptinf":
        return frozenset()
    return frozenset(file for place in places() if (file := place / f"{part}.py").is_file())


@functools.cache
def imports_of(path: Path) -> frozenset[Path]:
    """Files that a file imports."""
    found = set[Path]()
    for module, names, whole in IMPORT.findall(path.read_text(encoding="utf-8")):
        base = (module or whole).replace(".", "/")
        for part in [base, *(f"{base}/{part.strip()}" for part in names.split(","))]:
            found |= files_of(part)
    return frozenset(found)


def sources(name: str) -> set[Path]:
    """Files that a script consists of."""
    waiting, found = [HERE / f"{name}.py"], set[Path]()
    while waiting:
        found.add(path := waiting.pop())
        waiting += imports_of(path) - found
    return found


def changed(hours: float) -> set[Path]:
    """Files that differ from the last commit, or that commits of the last hours before it changed."""
    newest = git("log", "-1", "--format=%ct")
    if not newest:
        return set()
    since = datetime.fromtimestamp(int(newest), UTC) - timedelta(hours=hours)
    lines = git("log", f"--since={since.isoformat()}", "--name-only", "--format=").splitlines()
    lines += git("diff", "--name-only", "HEAD").splitlines()
    return {ROOT / line for line in lines if line}


def turn(names: list[str], groups: int, count: int) -> list[str]:
    """The group whose turn it is."""
    return names[count % groups :: groups]


def chosen(hours: float, groups: int) -> tuple[list[str], list[str]]:
    """Scripts that changed, and those whose turn it is."""
    files, names = changed(hours), scripts()
    first = [name for name in names if sources(name) & files]
    count = git("rev-list", "--count", "HEAD")
    day = datetime.now(UTC).timetuple().tm_yday
    return first, [name for name in turn(names, groups, int(count or day)) if name not in first]


def git(*words: str) -> str:
    """What git says, or nothing if there is no repository."""
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def run(name: str) -> bool:
    """Run the quick form of a script, and print its last line, or all of what a failure said."""
    began = time.perf_counter()
    environment = {"OPENBLAS_NUM_THREADS": "1", **os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(HERE / f"{name}.py"), "--quick"]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LONGEST, check=False
        )
    except subprocess.TimeoutExpired:
        print(f"{name}: FAILED, longer than {LONGEST} s", flush=True)
        return False
    told = (done.stdout + done.stderr).strip()
    if done.returncode == 0:
        lines = [line for line in done.stdout.splitlines() if line.startswith("headline")]
        said = "; ".join(lines) or "no headline"
        print(f"{name}: {time.perf_counter() - began:.0f} s; {said}", flush=True)
    else:
        print(f"{name}: FAILED with {done.returncode}\n{told}", flush=True)
    return done.returncode == 0


def in_time(name: str, until: float) -> bool | None:
    """Run the quick form of a script unless it is too late to begin; None if it is."""
    return run(name) if time.monotonic() < until else None


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scripts", nargs="*", help="names; by default what changed and whose turn it is")
    parser.add_argument("--hours", type=float, default=6.0)
    parser.add_argument("--groups", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args()
    unknown = sorted(set(options.scripts) - set(scripts()))
    if unknown:
        parser.error(f"no such script: {', '.join(unknown)}; available: {', '.join(scripts())}")
    first, others = (options.scripts, []) if options.scripts else chosen(options.hours, options.groups)
    print(
        f"changed or named: {', '.join(first) or 'none'}; in turn: {', '.join(others) or 'none'}", flush=True
    )
    names, until = [*first, *others], time.monotonic() + options.seconds
    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(names, pool.map(in_time, names, [until] * len(names)), strict=True))
    failed = [name for name, well in found.items() if well is False]
    if late := [name for name, well in found.items() if well is None]:
        print(f"left out after {options.seconds:.0f} s: {', '.join(late)}")
    if failed:
        print(f"FAILED: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
