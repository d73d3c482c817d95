"""What becomes of damaged files and frames: makes two pages of evidence from the generator of the tests.

docs/evidence/bad_input.md has the counts, docs/evidence/bad_input_unseen.md every input that cannot be seen.
The generator is imported from tests/, so the figures are those of the very code that the tests run.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from pathlib import Path

import evidence

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "properties" / "bad_input")]

from judge import OUTCOMES, UNSEEN  # noqa: E402
from runs import SEED, SHARES, Outcome, run, table  # noqa: E402

TOTAL, QUICK = 6_000, 500
PAGE = """\
# Damaged input

Command: `python docs/evidence/bad_input.py`. Seed: {seed}. Date: {stamp}. Processor time:
{seconds:.0f} s.

{inputs:,} damaged files and frames of {kinds:,} kinds (a kind combines a format with a type of damage, such
as "foreign CSV, a cell with a trailing blank"), made by `tests/properties/bad_input`: bytes were lost,
flipped, doubled, swapped and overwritten. Other inputs have different encodings, newlines, delimiters or
quotes, or a different format under the same name. Cells, columns, headers and rows were lost, doubled,
swapped, scaled or given other types; frames contained odd values and types of pandas, polars, pyarrow and
NumPy. Raw JSON was inserted into every field of an event, and flags, orders, subjects and records of a trial
were damaged. All kinds are used in turn, with random values; the tests use {first} other inputs.

The correct outcome for an input is determined by slow, literal readers that do not use the library
(`oracle.py`, `foreign_readings.py`): Python's strict CSV parser, strict JSON, a field-by-field reader of
transport files, and the rules for a log, written as sums, comparisons and sets of plain values.

| format | inputs | clear error | right | cannot be seen | nameless | good, refused | traceback | silent |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
{counts}

- *clear error*: an error of the library, or `FileNotFoundError`, that contains the name of the file.
  *Nameless*: an error that does not.
- *right*: the original log, if the damage did not affect anything that a log contains, or the log that a
  harmless variant represents (with other byte-order marks, newlines, quotes, order of columns, ...). A
  refusal of such a variant is *good, refused*.
- *cannot be seen*: a log that differs from the original, but is the log that the damaged input represents
  when read literally.
- *traceback*: any other exception, or a warning from another library.
- *silent*: a log that differs from the input, or a log that was read from an input that must be refused.

## What cannot be detected

{unseen_total:,} inputs represent a different log that is as plausible as the original, and no reader can
detect this. They are listed [one by one](bad_input_unseen.md).

| what is another | {formats} |
| --- | {rules} |
{unseen}

Files written by adaptinf contain a digest of their contents, so damage to them is never of this kind.

## Faults

{faults}
"""

UNSEEN_PAGE = """\
# Undetectable damage to input, one by one

Command: `python docs/evidence/bad_input.py`. Seed: {seed}. Date: {stamp}.

This page lists the {total:,} of {inputs:,} [damaged inputs](bad_input.md) that represent a different log, as
plausible as the original one. Numbers are positions in the run; the values of an input are drawn by
`np.random.default_rng([{seed}, number])`.

| number | format | damage | what is another |
| ---: | --- | --- | --- |
{rows}
"""


def counts(outcomes: list[Outcome]) -> str:
    """Rows of the table by format, and in total."""
    order = ("error", "right", "unseen", "unnamed", "unread", "traceback", "silent")
    assert set(order) == set(OUTCOMES)
    found = table(outcomes)
    found["all"] = sum(found.values(), Counter())
    lines = []
    for fmt, count in found.items():
        figures = " | ".join(f"{count[name]:,}" for name in order)
        lines.append(f"| {fmt} | {count.total():,} | {figures} |")
    return "\n".join(lines)


def unseen(outcomes: list[Outcome]) -> tuple[str, list[str], int]:
    """Rows of the table of what cannot be seen, its columns, and the sum."""
    found = Counter((o.verdict.told, o.fmt) for o in outcomes if o.verdict.outcome == "unseen")
    formats = [fmt for fmt in SHARES if any(name == fmt for _, name in found)]
    lines = [
        f"| {UNSEEN[reason]} | " + " | ".join(str(found[reason, fmt]) for fmt in formats) + " |"
        for reason in UNSEEN
        if any(found[reason, fmt] for fmt in formats)
    ]
    return "\n".join(lines), formats, found.total()


def escaped(text: str) -> str:
    """Any text as the cell of a Markdown table that shows it letter by letter."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return re.sub(r"([\\`*_{}\[\]<>()#+!|~$^&])", r"\\\1", shown)


def unseen_page(outcomes: list[Outcome]) -> str:
    """The page that names every input that cannot be seen."""
    found = [o for o in outcomes if o.verdict.outcome == "unseen"]
    cells = [(str(o.number), o.fmt, escaped(o.kind), UNSEEN[o.verdict.told]) for o in found]
    rows = "\n".join(f"| {' | '.join(row)} |" for row in cells)
    return UNSEEN_PAGE.format(
        seed=SEED, stamp=evidence.stamp(), total=len(found), inputs=len(outcomes), rows=rows
    )


def faults(outcomes: list[Outcome]) -> str:
    """Inputs with an outcome that should not be, one by one."""
    wrong = [o for o in outcomes if o.verdict.outcome in ("unnamed", "unread", "traceback", "silent")]
    if not wrong:
        return "None."
    return "\n".join(
        f"- {o.fmt}, {o.kind} (input {o.number}): {o.verdict.outcome}, {o.verdict.told:.200}" for o in wrong
    )


def page(outcomes: list[Outcome], seconds: float) -> str:
    """The page of a run."""
    rows, formats, total = unseen(outcomes)
    return PAGE.format(
        seed=SEED,
        stamp=evidence.stamp(),
        seconds=seconds,
        inputs=len(outcomes),
        kinds=len({(o.fmt, o.kind) for o in outcomes}),
        first=QUICK,
        counts=counts(outcomes),
        unseen_total=total,
        formats=" | ".join(formats),
        rules=" | ".join(["---:"] * len(formats)),
        unseen=rows,
        faults=faults(outcomes),
    )


def main() -> None:
    options = evidence.parser(__doc__).parse_args()
    begin = time.process_time()
    outcomes = list(run(QUICK if options.quick else TOTAL))
    text = page(outcomes, time.process_time() - begin)
    for part, found in (("", text), ("unseen", unseen_page(outcomes))):
        evidence.publish(found, __file__, options, part)
    if faults(outcomes) != "None.":
        raise SystemExit("there are faults")


if __name__ == "__main__":
    main()
