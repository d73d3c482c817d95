"""The page of the evidence on comparisons, from its counts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from comparison_cells import BENIGN, CONTRADICTED, COVERABLE, LEVELS, OF_SUMS, QUESTIONS, ROWS, SUMS, Cell
from comparison_fits import DEFAULT, DIFFERENCE, PRICED, SAME, STATIONARY, Compared
from default_counts import Counts, Key, Tally, of_cell
from default_page import how_much

LEAST, NUISANCE, TOLD_AT_LEAST, PRICE = 0.93, 0.05, 0.90, 1.3
HELD, REFUSED = "held", "refused"
TOLD, UNTOLD = "refused or cautioned", "held without a caution"
SHORT, NEEDLESS, SILENT = "**short**", "**cautioned without need**", "**no answer**"
FAILED = (SHORT, NEEDLESS, SILENT)
VERDICTS = {
    BENIGN: (HELD, SHORT, NEEDLESS, SILENT),
    COVERABLE: (HELD, REFUSED, SHORT),
    CONTRADICTED: (TOLD, UNTOLD, SHORT),
}
Classes = dict[tuple[int, str, str], tuple[str, str]]
Found = dict[int, dict[Key, Tally]]
Judged = tuple[Cell, str, str, str, Compared, str]
"""Cell, question, source, class, counts and verdict."""


def verdict(standard: str, tally: Compared) -> str:
    """Whether a table keeps what its class is held to."""
    if standard == CONTRADICTED:
        told = tally.refused + tally.cautioned >= TOLD_AT_LEAST * tally.logs
        if told or not tally.intervals:
            return TOLD
        return UNTOLD if _reaches(tally) else SHORT
    if standard == BENIGN and tally.asked - tally.intervals > NUISANCE * tally.asked:
        return SILENT
    if not tally.intervals:
        return REFUSED
    if not _reaches(tally):
        return SHORT
    return NEEDLESS if standard == BENIGN and tally.cautioned > NUISANCE * tally.logs else HELD


def _reaches(tally: Compared) -> bool:
    """Coverage of at least .93 less three errors, those of as many intervals as there are logs with any."""
    answered = tally.logs - tally.refused
    return tally.covered / tally.intervals >= LEAST - 3.0 * math.sqrt(LEAST * (1.0 - LEAST) / answered)


def price(usual: Compared, own: Compared) -> float:
    """Mean length over that by own weights; NaN if one has none."""
    if not usual.intervals or not own.intervals:
        return math.nan
    return (usual.length / usual.intervals) / (own.length / own.intervals)


def of(found: Found, number: int, question: str, method: str, source: str) -> Compared:
    """Counts of a cell, empty if there are none."""
    tally = found[number].get(Key(question, method, source), Compared())
    assert isinstance(tally, Compared)
    return tally


def judged(cells: Iterable[Cell], classes: Classes, found: Found) -> list[Judged]:
    """All questions to some cells; rows of the first table are to hold without a caution."""
    every = list[Judged]()
    for cell in cells:
        for (number, question, source), (standard, _) in classes.items():
            tally = of(found, number, question, DEFAULT, source) if number == cell.number else Compared()
            if tally.logs:
                held_to = BENIGN if cell.in_first_table else standard
                every.append((cell, question, source, standard, tally, verdict(held_to, tally)))
    return every


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "-"


def _figure(tally: Compared, found: str) -> str:
    """Coverage, and what share of logs is cautioned and refused where that is more than nothing."""
    if not tally.logs:
        return ""
    told = [
        f"{count / tally.logs:.0%}{mark}"
        for count, mark in ((tally.cautioned, ""), (tally.refused, " refused"))
        if count and tally.refused < tally.logs
    ]
    text = _share(tally.covered, tally.intervals) if tally.intervals else "refused"
    shown = f"{text} [{', '.join(told)}]" if told else text
    return f"**{shown}**" if found in FAILED else shown


def row_name(cell: Cell) -> str:
    """A row of the first table."""
    size = "" if cell.size == "1" else f", {cell.size} sd"
    return f"{cell.design}, {cell.move}{size}, T = {cell.n_rounds:,}, {cell.arms} arms"


def _matrix(cells: Iterable[Cell], entries: Sequence[Judged], source: str, *, named: bool) -> str:
    """A row for each cell, a column for each question; named as rows of the first table are."""
    questions = QUESTIONS if source == ROWS else OF_SUMS
    first = "design" if named else "cell | design | move | T | rewards | arms | gap"
    text = [
        f"| {first} | {' | '.join(questions)} |",
        f"| {' | '.join(['---'] * (first.count('|') + 1 + len(questions)))} |",
    ]
    shown = {
        (cell.number, question): _figure(tally, kept)
        for cell, question, place, _, tally, kept in entries
        if place == source
    }
    for cell in cells:
        factors = (cell.number, cell.design, cell.move, cell.rounds, cell.rewards, cell.arms, cell.gap)
        begin = row_name(cell) if named else " | ".join(map(str, factors))
        figures = [shown.get((cell.number, question), "") for question in questions]
        text.append(f"| {begin} | {' | '.join(figures)} |")
    return "\n".join(text)


def _counted(entries: Iterable[Judged]) -> str:
    """How many tables of each class keep what they are held to, in lines."""
    seen = Counter((standard, kept) for _, _, _, standard, _, kept in entries)
    lines = []
    for standard, kinds in VERDICTS.items():
        numbers = ", ".join(f"{seen[standard, kind]:,} {kind}" for kind in kinds)
        total = sum(number for (one, _), number in seen.items() if one == standard)
        lines.append(f"- *{standard.capitalize()}*, {total:,}: {numbers}.")
    return "\n".join(lines)


def _failures(entries: Iterable[Judged], classes: Classes) -> str:
    """Tables that are not as they should be."""
    lines = [
        "| cell | design | move | question | of | class | reason | logs | coverage | cautioned | refused | |",
        "| ---: | --- | --- | --- | --- | --- | --- | ---: | ---: | ---: | ---: | --- |",
    ]
    for cell, question, source, standard, tally, kept in entries:
        if kept in FAILED:
            cells = [
                str(cell.number),
                cell.design,
                cell.move,
                question,
                source,
                standard,
                classes[cell.number, question, source][1],
                f"{tally.logs:,}",
                _share(tally.covered, tally.intervals),
                _share(tally.cautioned, tally.logs),
                _share(tally.refused, tally.logs),
                kept,
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines if len(lines) > 2 else [*lines, "| none | | | | | | | | | | | |"])


def _prices(cells: Iterable[Cell], classes: Classes, found: Found) -> tuple[str, str]:
    """A line of what the lengths of cells without drift come to, and their table."""
    lines = [
        f"| cell | design | T | rewards | arms | gap | {' | '.join(PRICED)} | cautioned |",
        "| ---: | --- | ---: | --- | ---: | --- |" + " ---: |" * (len(PRICED) + 1),
    ]
    seen = list[float]()
    for cell in cells:
        levels = of(found, cell.number, LEVELS, DEFAULT, ROWS)
        contradicted = classes[cell.number, LEVELS, ROWS][0] == CONTRADICTED
        if cell.move != "none" or contradicted or not levels.logs:
            continue
        ratios = [
            price(*(of(found, cell.number, question, method, ROWS) for method in (DEFAULT, STATIONARY)))
            for question in PRICED
        ]
        seen += [ratio for ratio in ratios if not math.isnan(ratio)]
        shown = [f"{ratio:.3f}" if not math.isnan(ratio) else "-" for ratio in ratios]
        factors = (cell.number, cell.design, cell.rounds, cell.rewards, cell.arms, cell.gap)
        begin = " | ".join(map(str, factors))
        lines.append(f"| {begin} | {' | '.join(shown)} | {_share(levels.cautioned, levels.logs)} |")
    within = sum(ratio <= PRICE for ratio in seen)
    most = f"; the largest is {max(seen):.3f}" if seen else ""
    return f"{within} of {len(seen)} ratios are at most {PRICE:g}{most}", "\n".join(lines)


def _same(cells: Iterable[Cell], found: Found) -> str:
    """In how many logs the t_test of two arms is what `Contrast` says."""
    total = Compared()
    for cell in cells:
        for source in (ROWS, SUMS):
            total.add(of(found, cell.number, DIFFERENCE, SAME, source))
    return f"{total.covered:,} of {total.intervals:,}"


def page(cells: Sequence[Cell], classes: Classes, counts: Counts, command: str) -> str:
    """The whole page."""
    found: Found = {cell.number: of_cell(counts, cell.number) for cell in cells}
    grid = [cell for cell in cells if not cell.in_first_table]
    first = [cell for cell in cells if cell.in_first_table]
    entries, rows = judged(grid, classes, found), judged(first, classes, found)
    short, short_rows = _failures(entries, classes), sum(kept in FAILED for *_, kept in rows)
    told, prices = _prices(grid, classes, found)

    def once_a_log(key: Key) -> bool:
        return key == Key(LEVELS, DEFAULT, ROWS)

    much = how_much([cell.number for cell in cells], counts, once_a_log)
    return f"""# Where arms are compared

{command}

{len(grid)} cells ([list](comparison_cells.csv)) combine every design with every drift of the level at two
lengths; rewards, numbers of arms and gaps are distributed over the cells. Every table in every cell is
assigned to a class, with a reason ([list](comparison_classes.csv)). Cells, classes and simulators
(`comparison_logs.py`, plain NumPy) were fixed before the first run. {much}.

The following counts are by class; a table is one question about the logs in one cell, answered from rows or
from sums:

{_counted(entries)}

Rows of the first table: {len(rows) - short_rows:,} of {len(rows):,} tables have sufficient coverage and are
cautioned in at most {NUISANCE:.0%} of logs.

Lengths: {told}.

`t_test` of two arms agrees with `Contrast` to 1e-12 in {_same(cells, found)} logs.

*Benign*: the coverage of nominal 95% intervals over all logs must be at least {LEAST:g}, minus three Monte
Carlo errors; apart from standing assumptions, at most {NUISANCE:.0%} of the logs may carry a caution; and all
but {NUISANCE:.0%} must have an interval. *Coverable*: the same coverage is required over all logs, cautioned
or not; a table that is refused is counted separately. *Contradicted*: the log must be refused, or at least
{TOLD_AT_LEAST:.0%} of the logs must be cautioned; a table that has sufficient coverage without a caution is
counted separately. A Monte Carlo error is based on as many intervals as there are logs.

A test is correct if it does not reject the true value at the 5% level: the *t_test* compares the last arm
with the first, and the *joint test* concerns all differences, each at its true value. *best_arms* is correct
if arm A, which is a best arm, remains in the set at 5%. The *winner*'s interval must contain the mean of the
arm that won; for *against A*, it must contain the difference between the best of the others and A. *Levels*
are means over all rounds, or over those in which all arms could be chosen; *contrasts* compare all arms with
A, *policy values* are those of two fixed policies, one mostly choosing A and one mostly the last arm, and a
*policy contrast* is their difference. *Coefficients* are those of arms, and of arms times the context, in
`reward ~ C(action) * x`, without x if it is not in the file; *effects by group* compare the last arm with A
by context. *From sums*: batches are days, or hours if shares vary by the hour.

Batched Thompson has ten batches, given as `batch`; Thompson's floors are .05 per arm, .025 for four arms and
.02 for ten arms in batches; EXP3 explores in 20% of rounds; softmax has no floor. If the level changes by the
hour, so do the shares of all designs except the coin, down to half of the floor. Arms are equal except for a
gap of arm A. The level of all arms increases linearly by 1 sd, or in one step at half time, or at weekends,
or oscillates by 1 sd within each of ten days, or is an autoregression with sd 1. An arm joins after 30% of
the rounds, while the level increases linearly. An effect that changes sign is that of arm A; it changes from
.3 sd to -.3 sd, or from .6 to -.6 if there are 1,000 rounds. For rewards of 0 and 1, a size of 1 sd is .25,
half of a standard deviation. The true policy contrast is then the mean over the period; the weighted mean,
which the table names, is that of [moving effects](moving_effects.md). All arms' propensities are known.

## Failures

{short}

## The rows of the first table

The arms are equal and rewards are normal. The figures are coverage and, in parentheses, the share of logs
that are cautioned or refused; figures are bold if coverage is too low, or if a caution is unnecessary.

{_matrix(first, rows, ROWS, named=True)}

From sums:

{_matrix(first, rows, SUMS, named=True)}

## Lengths without drift

Mean lengths are divided by those with `stationary=True`; the last column is the share of logs whose levels
carry a caution.

{prices}

## All cells, from rows

The figures are coverage and, in parentheses, the share of logs that are cautioned or refused; bold type is
used as above.

{_matrix(grid, entries, ROWS, named=False)}

## All cells, from sums

{_matrix(grid, entries, SUMS, named=False)}
"""
