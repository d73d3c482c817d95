"""Files that adaptinf wrote, damaged, and their writers stopped: makes docs/evidence/own_files.md.

The functions are those of tests/properties/log/test_own_files.py, so the counts are of the code that the
tests run.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import evidence

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "properties" / "log"))

import test_own_files as own  # noqa: E402

SEED = 20261123
PAGE = """\
# User files, damaged and interrupted

Command: `python docs/evidence/own_files.py`. Seed: {seed}. Date: {stamp}. Python {python},
Linux. `tests/properties/log/test_own_files.py` runs the same functions with smaller numbers.

## Flipped bits

A log of 40 rounds with every kind of column, releases, guarantee and traits is written as Parquet and as CSV
with its sidecar. One randomly drawn bit of one of the three files is flipped, and the log is read; this is
repeated {flips:,} times.

{flip_table}

"Equal" means that the log equals the one that was written: the bit is in a part of the Parquet file that does
not affect the log, such as statistics that the reader does not use, or in white space of the sidecar.

## Writers that are killed

In a separate process that receives SIGKILL, each writer replaces one content with another: three times in
four, the signal arrives at a system call (opening, writing, syncing, renaming, in turn from the first to the
last), otherwise after a random time. Every fifth run begins without an old file, and leftovers are not
removed before the next run, until {kills} processes of each writer have been killed before they finished. A
name then has the old content, the new one, or neither; for a log, the content is the result of `read_log`.
"Each" counts the cases in which one of the two files written by one call was old and the other new.

{kill_table}

Processes that "ended with 0" had finished before the random time, or before the step was reached.

## Full disks

The same writers run while no file may grow beyond a random size below that of the largest file
(RLIMIT_FSIZE), with {disks} runs for each writer. "Refused" means a `FileError` that names the file; in the
other runs, the output fitted, or a file above the limit was replaced by a smaller one. No temporary file may
remain.

{disk_table}
"""


def table(rows: Mapping[str, Counter[str]], columns: Sequence[str], head: str) -> str:
    lines = [f"| {head} | {' | '.join(columns)} |", f"| --- |{' ---: |' * len(columns)}"]
    unexpected = {name for counts in rows.values() for name in counts} - set(columns)
    assert not unexpected, unexpected
    for name, counts in rows.items():
        lines.append(f"| {name} | {' | '.join(str(counts[column]) for column in columns)} |")
    return "\n".join(lines)


def main() -> None:
    options = evidence.parser(__doc__).parse_args()
    share = 10 if options.quick else 1
    flips, kills, disks = 2000 // share, 200 // share, 20 // share
    with tempfile.TemporaryDirectory() as folder:
        flipped = own.flips(Path(folder), flips, SEED)
    killed, full = {}, {}
    killer = own.Killer()
    for writer in own.WRITERS:
        with tempfile.TemporaryDirectory() as folder:
            killed[writer], full[writer] = own.stopped(killer, writer, Path(folder), kills, disks, SEED)
    killer.close()
    page = PAGE.format(
        seed=SEED,
        stamp=evidence.stamp(),
        python=".".join(map(str, sys.version_info[:2])),
        flips=flips,
        kills=kills,
        disks=disks,
        flip_table=table(flipped, ("refused", "equal", "another log", "traceback"), "flipped in"),
        kill_table=table(
            killed, ("killed", "ended with 0", "old", "new", "each old or new", "neither"), "writer"
        ),
        disk_table=table(
            full,
            ("refused", "ended with 0", "old", "new", "each old or new", "neither", "leftovers"),
            "writer",
        ),
    )
    evidence.publish(page, __file__, options)
    bad = ("another log", "traceback", "neither", "leftovers")
    found = [counts for rows in (flipped, killed, full) for counts in rows.values()]
    if any(counts[column] for counts in found for column in bad):
        raise SystemExit("a file was lost, or read as another log")


if __name__ == "__main__":
    main()
