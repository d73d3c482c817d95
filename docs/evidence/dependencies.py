"""Quick tests with the oldest and the newest dependencies, and with one at a time at its oldest.

    python docs/evidence/dependencies.py                # all rows
    python docs/evidence/dependencies.py --caches       # compiled code on disk, under each Numba
    python docs/evidence/dependencies.py lowest numba   # these, printed

Each row has its own environment, from ``uv``, with the dependencies but no extras, and with what the tests of
``.ci/quick_tests`` import; and its own compiled code. With --quick the versions are only resolved.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import evidence
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
CACHE = "tests/unit/house/test_compilation_cache.py"
NUMBAS = ("0.61.2", "0.62.1", "0.63.1", "0.64.0", "0.65.1", "0.66.0", "0.67.0", "0.68.1")
"""The last of each series."""
MARKS = {name: (f"<!-- {name} -->", f"<!-- end of {name} -->") for name in ("versions", "caches")}
SWAPPED = ("numba", "pandas", "numpy", "scipy", "statsmodels", "pyarrow")
TOOLS = ("pytest", "pytest-xdist", "hypothesis", "mpmath", "polars")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DIRECT = {Requirement(one).name: Requirement(one) for one in PROJECT["dependencies"]}
TESTED = [one for one in PROJECT["optional-dependencies"]["test"] if Requirement(one).name in TOOLS]


class Row(NamedTuple):
    """One set of versions: a name, what it is of, and what uv is told."""

    name: str
    about: str
    options: tuple[str, ...]
    file: str = ""
    """The tests, all of them; without it the quick tests."""


def oldest(name: str) -> str:
    """The lower bound of a dependency."""
    [bound] = [part.version for part in DIRECT[name].specifier if part.operator == ">="]
    return bound


ROWS = (
    Row("lowest", "all direct ones at their oldest", ("--resolution", "lowest-direct")),
    Row("newest", "all at their newest", ()),
    *(Row(name, f"{name} {oldest(name)}, others newest", (f"{name}=={oldest(name)}",)) for name in SWAPPED),
)
CACHES = tuple(
    Row(f"cache-{one}", f"numba {one}, others newest", (f"numba=={one}",), CACHE) for one in NUMBAS
)


def uv(*words: str) -> str:
    """What uv answers; SystemExit with its own words if it cannot do it."""
    done = subprocess.run(
        [sys.executable, "-m", "uv", "--quiet", *words], capture_output=True, text=True, check=False, cwd=ROOT
    )
    if done.returncode:
        raise SystemExit(f"uv {' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout


def files() -> list[str]:
    """Files of the quick tests."""
    return (ROOT / ".ci" / "quick_tests").read_text(encoding="utf-8").split()


def versions(listed: str) -> dict[str, str]:
    """Versions by name, from lines such as numpy==2.4.6."""
    return dict(re.findall(r"^([\w.-]+)==(\S+)", listed, re.MULTILINE))


def resolved(row: Row) -> dict[str, str]:
    """Versions that uv would install."""
    wanted = [*map(str, DIRECT.values()), *TESTED, *(one for one in row.options if "==" in one)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "wanted.in")
        file.write_text("\n".join(wanted) + "\n", encoding="utf-8")
        options = [one for one in row.options if "==" not in one]
        return versions(uv("pip", "compile", "--python", sys.executable, *options, str(file)))


def tested(row: Row, before: Sequence[tuple[dict[str, str], str]]) -> tuple[dict[str, str], str]:
    """Versions installed, and the last line of the tests; SystemExit if one fails.

    Versions that are those of a row before are not tested again.
    """
    with tempfile.TemporaryDirectory() as folder:
        python = str(Path(folder, "venv", "bin", "python"))
        uv("venv", "--python", sys.executable, str(Path(folder, "venv")))
        uv("pip", "install", "--python", python, *map(str, DIRECT.values()), *TESTED, *row.options)
        found = versions(uv("pip", "freeze", "--python", python))
        if known := [told for other, told in before if other == found]:
            return found, known[0]
        environment = {
            **os.environ,
            "OPENBLAS_NUM_THREADS": "1",
            "NUMBA_CACHE_DIR": str(Path(folder, "cache")),
            "PYTHONPATH": str(ROOT),
        }
        command = [python, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
        command += ["-m", "", row.file] if row.file else files()
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    last = (done.stdout.strip().splitlines() or [""])[-1]
    if done.returncode:
        raise SystemExit(f"{row.name}: {done.stdout[-10_000:]}{done.stderr}")
    return found, re.sub(r" in .*", "", last)


def table(lines: list[str]) -> str:
    return "\n".join(
        [f"| versions | {' | '.join(SWAPPED)} | tests |", f"| --- |{' --- |' * (len(SWAPPED) + 1)}", *lines]
    )


def versions_page(lines: list[str]) -> str:
    """The part of the evidence with the quick tests."""
    begin, end = MARKS["versions"]
    listed = "\n".join(f"- `{file}`" for file in files())
    return f"""{begin}

Command: `python docs/evidence/dependencies.py`. The seeds are those of the tests.
Date: {evidence.stamp()}. Python {sys.version.split()[0]}.

Each row is a separate environment with the dependencies but without extras, and with separately compiled
code. The following test files were run in it:

{listed}

{len(lines)} of {len(ROWS)} sets of versions pass all tests.

{table(lines)}

statsmodels 0.15.0 is both the oldest allowed version and the newest one, so it was tested only once. The
following versions are not allowed:

- numba 0.61.0 and earlier require a NumPy version before 2.2; numba 0.69 has not been released.
- pandas 2.3 does not use copy-on-write by default: a change to the frame returned by a log would change the
  log. Two tests in these files fail for this reason.

{end}
"""


def caches_page(lines: list[str]) -> str:
    """The part with the disk cache of compiled code."""
    begin, end = MARKS["caches"]
    return f"""{begin}

Command: `python docs/evidence/dependencies.py --caches`. There are no random numbers but fixed seeds.
Date: {evidence.stamp()}. Python {sys.version.split()[0]}.

`{CACHE}` was run under each series of Numba, with the slow tests: an edit in any
file that a kernel can use recompiles it, two processes compile at once, damaged files and full disks are
survived, and a read-only home directory gives one warning.

{len(lines)} of {len(CACHES)} series of Numba pass all tests.

{table(lines)}

{end}
"""


def main() -> None:
    parser = evidence.parser(__doc__)
    parser.add_argument(
        "rows", nargs="*", help="rows that are tested and printed; by default all, for the page"
    )
    parser.add_argument("--caches", action="store_true", help="the disk cache under each series of Numba")
    options: argparse.Namespace = parser.parse_args()
    wanted = CACHES if options.caches else ROWS
    unknown = sorted(set(options.rows) - {row.name for row in wanted})
    if unknown:
        parser.error(f"no such row: {', '.join(unknown)}; available: {', '.join(row.name for row in wanted)}")
    done: list[tuple[dict[str, str], str]] = []
    lines = []
    for row in wanted:
        if options.rows and row.name not in options.rows:
            continue
        found, told = (resolved(row), "resolved") if options.quick else tested(row, done)
        done.append((found, told))
        lines.append(f"| {row.about} | {' | '.join(found[name] for name in SWAPPED)} | {told} |")
        print(lines[-1], flush=True)
    if options.quick:
        print(f"headline: {len(lines)} of {len(wanted)} sets of versions can be installed")
    if not options.rows:
        made, part = (caches_page, "caches") if options.caches else (versions_page, "versions")
        evidence.publish(made(lines), __file__, options, between=MARKS[part])


if __name__ == "__main__":
    main()
