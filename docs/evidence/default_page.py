"""The pages of the evidence on defaults, from their counts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from default_cells import Cell
from default_counts import Counts, Key, Tallies, Tally, of_cell

DEFAULT = "default"
"""Stands in place of a method's name where the first row is counted, whatever it was."""
LEAST, NOMINAL, NUISANCE = 0.93, 0.95, 0.05
STRICT = ("exact", "anytime")
HELD, CLEAN, WARNED, REFUSED, SHORT = "held", "held if not cautioned", "all cautioned", "refused", "**short**"
BELIED = "states what is not so"

HEAD = """| cell | target | method | label | logs | coverage | no caution | cautioned | refused | promise |
| ---: | --- | --- | --- | ---: | ---: | ---: | ---: | ---: | --- |"""


def verdict(label: str, tally: Tally) -> str:
    """Whether a method keeps its promise, and how."""
    if not tally.intervals:
        return REFUSED
    if tally.belied:
        return BELIED
    least = NOMINAL if label in STRICT else LEAST
    if _reaches(tally.covered, tally.intervals, least):
        return HELD
    if label in STRICT:
        return SHORT
    if not tally.clean:
        return WARNED
    return CLEAN if _reaches(tally.clean_covered, tally.clean, least) else SHORT


def _reaches(good: int, of: int, least: float) -> bool:
    return good / of >= least - 3.0 * math.sqrt(least * (1.0 - least) / of)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "-"


def _rows(cell: Cell, tallies: Tallies, *, default: bool) -> Iterable[str]:
    for key, tally in sorted(tallies.items()):
        if (key.method == DEFAULT) is not default:
            continue
        taken = ", ".join(sorted(tally.methods, key=lambda one: -tally.methods[one])) or key.method
        cells = [
            str(cell.number),
            key.target,
            taken,
            key.label,
            f"{tally.logs:,}",
            _share(tally.covered, tally.intervals),
            _share(tally.clean_covered, tally.clean),
            _share(tally.cautioned, tally.logs),
            _share(tally.refused, tally.logs),
            verdict(key.label, tally),
        ]
        yield f"| {' | '.join(cells)} |"


def _promises(entries: Iterable[tuple[Cell, Key, Tally]]) -> str:
    """How many keep their promise, in words."""
    seen = Counter(verdict(key.label, tally) for _, key, tally in entries)
    kinds = [f"{seen[kind]:,} {kind}" for kind in (HELD, CLEAN, WARNED, REFUSED, BELIED)]
    return f"{', '.join(kinds)}, **{seen[SHORT]:,} short**"


def _below(entries: Iterable[tuple[Cell, Key, Tally]]) -> str:
    """How many of what held measured less than promised, within simulation error."""
    shares = [
        tally.covered / tally.intervals
        for _, key, tally in entries
        if key.label not in STRICT and verdict(key.label, tally) == HELD
    ]
    low = [share for share in shares if share < LEAST]
    lowest = f"; the lowest is {min(low):.3f}" if low else ""
    return f"{len(low)} had measured coverage below {LEAST:g}, within three standard errors{lowest}"


def _listed(title: str, lines: Sequence[str]) -> str:
    body = "\n".join(lines) if lines else "| none | | | | | | | | | |"
    return f"## {title}\n\n{KEY}\n\n{HEAD}\n{body}\n"


KEY = "The numbers of the cells are explained under [cells](defaults.md#cells)."

EXPLAINED = f"""*Coverage*: share of nominal 95% intervals that contain the truth; *no caution*: the same for
tables without a caution. *Promise*: coverage of at least {LEAST:g}, or {NOMINAL:g} for methods labelled
{" or ".join(STRICT)}, minus three standard errors, over all intervals (*held*) or over those without a
caution (*{CLEAN}*; not for {" and ".join(STRICT)}). *Refused*: methods that refuse at the fit, or logs for
which none is valid. *{BELIED.capitalize()}*: the recommended call declares `stationary=True` although means
change, either through drift or, for methods based on an arm's own pulls, through contexts. Without this
declaration, the table carries a caution, as it does for defaults. A mean refers to the rounds in which its
arm could be chosen; for sequences, it refers to the units in the log."""


def _once_a_log(key: Key) -> bool:
    """Whether a key is counted once for each log of a cell."""
    return key.method == DEFAULT and key.target == "contrast"


def how_much(numbers: Iterable[int], counts: Counts, once_a_log: Callable[[Key], bool] = _once_a_log) -> str:
    """How many logs the cells of some numbers have, by commit."""

    def logs_of(tallies: Tallies) -> int:
        return sum(tally.logs for key, tally in tallies.items() if once_a_log(key))

    logs = {number: logs_of(of_cell(counts, number)) for number in numbers}
    commits = Counter[str]()
    for (number, commit), measured in counts.items():
        if number in logs:
            commits[commit] += logs_of(measured.tallies)
    told = ", ".join(f"{number:,} at {commit}" for commit, number in commits.items() if commit)
    return (
        f"{sum(logs.values()):,} logs, {min(logs.values()):,} to {max(logs.values()):,} a cell"
        f"{f' ({told})' if told else ''}"
    )


def page(cells: Sequence[Cell], counts: Counts, command: str) -> str:
    """The page of the defaults, and of what is short."""
    found = {cell.number: of_cell(counts, cell.number) for cell in cells}
    every = [(cell, key, tally) for cell in cells for key, tally in found[cell.number].items()]
    defaults = [one for one in every if one[1].method == DEFAULT]
    others = [one for one in every if one[1].method != DEFAULT]
    calm = [tally for cell, key, tally in every if cell.benign and key.method == DEFAULT]
    bothered = sum(tally.cautioned > NUISANCE * tally.logs for tally in calm)
    short = [
        line
        for cell in cells
        for default in (True, False)
        for line in _rows(cell, found[cell.number], default=default)
        if SHORT in line
    ]
    listed = [line for cell in cells for line in _rows(cell, found[cell.number], default=True)]
    factors = "\n".join(
        f"| {cell.number} | {cell.design} | {cell.outcome} | {cell.drift} | {cell.units} | {cell.arms} | "
        f"{cell.rounds} | {cell.told} | {cell.gap} |{' benign' if cell.benign else ''} |"
        for cell in cells
    )
    return f"""# Defaults on logs as people bring them

{command}

{len(cells)} cells ([list](default_cells.csv), fixed before the first run) cover all pairs of levels of the
following factors: design, outcome, drift, units, arms that join or leave, rounds, information on
propensities, and gap. The simulators (`default_logs.py`) are plain NumPy.
{how_much([cell.number for cell in cells], counts)}.

- Defaults, by cell and target: {_promises(defaults)}.
- [All methods](defaults_methods.md) that `recommend` labels valid, by cell and target: {_promises(others)}.
- Of the defaults that held, {_below(defaults)}.
- In benign cells, {bothered} of {len(calm)} defaults are cautioned in more than {NUISANCE:.0%} of the logs.

{EXPLAINED}

{_listed("What is short", short)}
{_listed("Defaults", listed)}
## Cells

| cell | design | outcome | drift | units | arms | rounds | told | gap | |
| ---: | --- | --- | --- | --- | --- | ---: | --- | --- | --- |
{factors}
"""


def methods_page(cells: Sequence[Cell], counts: Counts, command: str) -> str:
    """The page of all methods."""
    listed = [line for cell in cells for line in _rows(cell, of_cell(counts, cell.number), default=False)]
    return f"""# All valid methods on logs as people bring them

{command}

[Cells and what their columns mean](defaults.md).

{EXPLAINED}

{_listed("Methods", listed)}"""
