"""What becomes of odd and damaged tables, whose one right outcome is known as they are made.

The generator is imported from tests/, so the figures are those of the very code that the tests run.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

import evidence

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests" / "properties" / "bad_tables")]

from doors import OUTCOMES  # noqa: E402
from table_runs import DOORS, FAMILIES, SEED, Outcome, run  # noqa: E402

TOTAL, QUICK = 6_000, 300
FAULTS = ("nameless", "good, refused", "traceback", "silent")
PAGE = """\
# Odd and damaged tables

Command: `python docs/evidence/bad_tables.py`. Seed: {seed}. Date: {stamp}. Processor time:
{seconds:.0f} s.

`tests/properties/bad_tables` makes {files:,} files, frames and streams of {kinds} kinds from small
experiments: each kind has one correct outcome, which is known from its construction and does not depend on
the library. Either the input is read, with exactly the values that the rows had before they were written
(every column of a log, and the mean of every arm to 1e-12), or it is refused by one error of the library
whose text states the cause: the column and, for a cell, its line or row; the part of a folder; or the file,
its encoding or its separator. Each input is passed to {doors} of the entry points that accept it, drawn at
random: `read_log` (also of bytes and standard input), `AdaptiveLog`, `aggregate`, `Sums`, and `adaptinf
validate`, followed by `adaptinf analyze` if no problem is found. {uses:,} uses in all.

| family | kinds | files | uses | right | refused | nameless | good, refused | traceback | silent |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
{counts}

- *right*: the values that were read are correct. *Refused*: refused, as it should be, with an error that
  states the cause. *Nameless*: refused with an error that does not state the cause. *Good, refused*: refused,
  although it should be read.
- *traceback*: any other exception, or a warning from another library.
- *silent*: read with incorrect values, or read although it should be refused.

| door | uses | faults |
| --- | ---: | ---: |
{by_door}

## Expectations that were wrong

The expectations were written before the first run. The following expectations were changed afterwards,
because they required information that an entry point cannot have, or one particular wording among several
that state the cause:

- `aggregate` sums in an engine without line numbers. For a value that is missing, infinite or out of range,
  an object of another type, or a missing label, it must state the column and the number of rows, but not a
  line.
- `aggregate` reads propensities as lists and objects only from frames in memory, so it is not given files
  that contain them.
- If a header is repeated in the middle of a file, the error may refer to any of the columns that contain
  numbers.
- If a whole column is missing or there are no rows, `aggregate` need not repeat the name of the file. A
  column that is missing for one arm may be identified by the arm, a part without a header by the columns that
  it lacks, and a text named `.parquet` by the damage.
- If rewards are missing, the means are compared with those of the columns, because no estimator of plain
  means is valid in that case.
- The command line writes an option as `--date-format`, not as `date_format`.
- Tied rows are shuffled only within one day, because batches of days would otherwise recur.
- `aggregate` does not read text in a frame as time stamps, because frames can contain times.

## Faults

{faults}
"""


def counts(outcomes: list[Outcome]) -> str:
    """Rows of the table by family, and in total."""
    lines, every = [], [*FAMILIES, "all"]
    for family in every:
        own = [each for each in outcomes if family in (each.family, "all")]
        found = Counter(each.verdict.outcome for each in own)
        kinds, files = len({(each.family, each.kind) for each in own}), len({each.number for each in own})
        figures = " | ".join(
            f"{value:,}" for value in (kinds, files, len(own), *(found[name] for name in OUTCOMES))
        )
        lines.append(f"| {family} | {figures} |")
    return "\n".join(lines)


def by_door(outcomes: list[Outcome]) -> str:
    """Rows of the table by door."""
    uses = Counter(each.use.door for each in outcomes)
    wrong = Counter(each.use.door for each in outcomes if each.verdict.outcome in FAULTS)
    return "\n".join(f"| {door} | {uses[door]:,} | {wrong[door]:,} |" for door in sorted(uses))


def faults(outcomes: list[Outcome]) -> str:
    """Uses with an outcome that should not be, one line a kind and door."""
    found: dict[tuple[str, ...], list[Outcome]] = {}
    for each in outcomes:
        if each.verdict.outcome in FAULTS:
            key = each.family, each.kind, each.use.door, each.verdict.outcome
            found.setdefault(key, []).append(each)
    lines = [
        f"- {family}, {kind}, {door}: {outcome}, {len(held)} times (such as {held[0].number}): "
        f"`{' '.join(held[0].verdict.told.split()).replace('`', '')[:240]}`"
        for (family, kind, door, outcome), held in found.items()
    ]
    return "\n".join(lines) or "None."


def page(outcomes: list[Outcome], seconds: float) -> str:
    """The page of a run."""
    return PAGE.format(
        seed=SEED,
        stamp=evidence.stamp(),
        seconds=seconds,
        files=len({each.number for each in outcomes}),
        kinds=len({(each.family, each.kind) for each in outcomes}),
        doors=DOORS,
        uses=len(outcomes),
        counts=counts(outcomes),
        by_door=by_door(outcomes),
        faults=faults(outcomes),
    )


def main() -> None:
    options = evidence.parser(__doc__).parse_args()
    begin = time.process_time()
    outcomes = list(run(QUICK if options.quick else TOTAL))
    evidence.publish(page(outcomes, time.process_time() - begin), __file__, options)
    if any(each.verdict.outcome in FAULTS for each in outcomes):
        raise SystemExit("there are faults")


if __name__ == "__main__":
    main()
