"""The page of the evidence on planted violations, from its counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from default_counts import Counts, Key, Tallies, of_cell
from violation_fits import ALL, LIT, PLANTED, TWIN, Named
from violation_fits import CLEAN as OF_CLEAN
from violation_kinds import CLEAN, SEEN, STATED, Kind
from violation_speed import Timed

COSTS, NAMED_AT_LEAST = 0.03, 0.80
EACH_OF_1000, TOGETHER = 3, 0.04
ADDED = {10_000: 0.10, 10_000_000: 0.20}
"""What the slowest check may add to a fit, by rounds."""
HEADLINE, NAMED = "0", "named"
"""The row and the column of the figure that quick runs hold."""


@dataclass(frozen=True)
class Table:
    """A kind, and all its counts."""

    kind: Kind
    counts: Tallies

    def of(self, target: str, method: str, label: str = "") -> Named:
        found = self.counts.get(Key(target, method, label), Named())
        assert isinstance(found, Named)
        return found

    @property
    def planted(self) -> Named:
        return self.of(PLANTED, self.kind.fitted)

    @property
    def twin(self) -> Named:
        return self.of(TWIN, self.kind.fitted)

    @property
    def lost(self) -> float:
        """Coverage that is lost; NaN if nothing was answered."""
        return covered(self.twin) - covered(self.planted)

    @property
    def possible(self) -> str:
        """Power of a test for the very violation, if there is one; a twin's is its level."""
        planted = self.planted
        return shown(share(planted.possible, planted.logs)) if self.kind.violation == "lost rows" else "-"

    @property
    def caught(self) -> float:
        """Share of planted logs that are refused, or whose table names what is planted."""
        return share(self.planted.caught, self.planted.logs)


def tables(kinds: Sequence[Kind], counts: Counts) -> list[Table]:
    return [Table(kind, of_cell(counts, kind.number)) for kind in kinds]


def share(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


def covered(tally: Named) -> float:
    return share(tally.covered, tally.intervals)


def shown(value: float, form: str = ".3f") -> str:
    return "-" if math.isnan(value) else format(value, form)


def planted_rows(entries: Sequence[Table]) -> str:
    """A row for each kind of violation."""
    lines = [
        "| no. | violation | class | design | arms | rewards | T | size | fit | of | coverage | lost | "
        f"{NAMED} | any caution | refused | named in the twin | logs |",
        "| ---: | --- | --- | --- | ---: | --- | ---: | ---: | --- | --- | ---: | ---: "
        "| ---: | ---: | ---: | ---: | ---: |",
    ]
    for entry in entries:
        kind, planted, twin = entry.kind, entry.planted, entry.twin
        if kind.standard == CLEAN or not planted.logs:
            continue
        cells = [
            kind.number,
            kind.kind,
            kind.standard,
            kind.design,
            kind.arms,
            kind.rewards,
            f"{kind.rounds:,}",
            f"{kind.size:g}",
            kind.fitted,
            kind.door,
            shown(covered(planted)),
            shown(entry.lost),
            shown(share(planted.named, planted.logs)),
            shown(share(planted.cautioned, planted.logs)),
            shown(share(planted.refused, planted.logs)),
            shown(share(twin.named, twin.logs)),
            f"{planted.logs:,}",
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def verdicts(entries: Sequence[Table]) -> str:
    """How many kinds keep what is promised, and those that do not."""
    held_to = [entry for entry in entries if entry.kind.standard in (SEEN, STATED) and entry.planted.logs]
    costly = [entry for entry in held_to if math.isnan(entry.lost) or entry.lost >= COSTS]
    named = [entry for entry in costly if entry.caught >= NAMED_AT_LEAST]
    lines = [
        f"Of {len(held_to)} kinds that can be detected or are stated, {len(costly)} reduce coverage by at "
        f"least {COSTS:g} or are refused. In {len(named)} of these, the violation is stated or the log is "
        f"refused in at least {NAMED_AT_LEAST:.0%} of the logs. The others:",
        "",
        "| no. | violation | lost | named or refused | possible | what there is to see |",
        "| ---: | --- | ---: | ---: | ---: | --- |",
    ]
    others = [entry for entry in held_to if entry not in named]
    lines += [
        f"| {entry.kind.number} | {entry.kind.kind} | {shown(entry.lost)} | {shown(entry.caught)} "
        f"| {entry.possible} | {entry.kind.reason} |"
        for entry in others
    ]
    return "\n".join(lines if others else [*lines, "| | none | | | | |"])


def claims_of(entries: Sequence[Table]) -> str:
    """The claim that has to name each kind, and what else is often said of it."""
    lines = ["| no. | claim | other cautions, in 5% of the planted logs or more |", "| ---: | --- | --- |"]
    for entry in entries:
        kind, logs = entry.kind, entry.planted.logs
        if kind.standard == CLEAN or not logs:
            continue
        said = {
            key.label: tally.logs
            for key, tally in entry.counts.items()
            if key.target == f"{LIT}, {PLANTED}" and tally.logs >= 0.05 * logs and key.label not in kind.names
        }
        often = sorted(said.items(), key=lambda pair: (-pair[1], pair[0]))
        others = "; ".join(f"{code(name)} {count / logs:.0%}" for name, count in often)
        lines.append(f"| {kind.number} | {', '.join(map(code, kind.names)) or '-'} | {others or '-'} |")
    return "\n".join(lines)


def code(name: str) -> str:
    return f"`{name}`"


def clean_rows(entries: Sequence[Table]) -> str:
    """A row for each clean design and fit."""
    lines = [
        "| design | arms | rewards | T | fit | coverage | cautioned | refused | logs |",
        "| --- | ---: | --- | ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    for entry in entries:
        kind = entry.kind
        fits = [key for key in entry.counts if key.target == OF_CLEAN]
        for key in sorted(fits, key=lambda key: (key.method == ALL, key.method)):
            tally = entry.of(*key)
            figures = [covered(tally), share(tally.cautioned, tally.logs), share(tally.refused, tally.logs)]
            cells = [kind.design, kind.arms, kind.rewards, f"{kind.rounds:,}", key.method]
            row = " | ".join([*map(str, cells), *map(shown, figures), f"{tally.logs:,}"])
            lines.append(f"| {row} |")
    return "\n".join(lines)


def lit_rows(entries: Sequence[Table]) -> str:
    """A row for each caution that is said of clean logs, by design: in how many logs of how many."""
    clean = [entry for entry in entries if entry.kind.standard == CLEAN and entry.counts]
    names = sorted({key.label for entry in clean for key in entry.counts if key[:2] == (LIT, ALL)})
    heads = [entry.kind.design for entry in clean]
    lines = [
        f"| caution | {' | '.join(heads)} | most in 1,000 |",
        "| --- |" + " ---: |" * (len(heads) + 1),
    ]
    for name in names:
        counts = [entry.of(LIT, ALL, name).logs for entry in clean]
        logs = [entry.of(OF_CLEAN, ALL).logs for entry in clean]
        most = max(1000.0 * share(*pair) for pair in zip(counts, logs, strict=True))
        numbers = " | ".join(f"{count} of {of:,}" for count, of in zip(counts, logs, strict=True))
        lines.append(f"| {code(name)} | {numbers} | {most:.1f} |")
    return "\n".join(lines if names else [*lines, f"| none |{' |' * (len(heads) + 1)}"])


def speed_rows(times: Sequence[Timed]) -> str:
    """A row for each check, fit and length."""
    lines = [
        "| rounds | fit | check | seconds with | without | added | target | pairs |",
        "| ---: | --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for one in times:
        lines.append(
            f"| {one.rounds:,} | {one.model} | {one.check} | {one.with_it:.4f} | {one.without:.4f} "
            f"| {one.added:+.1%} | {ADDED[one.rounds]:.0%} | {one.pairs} |"
        )
    return "\n".join(lines if times else [*lines, "| not timed | | | | | | | |"])


def page(entries: Sequence[Table], times: Sequence[Timed], command: str) -> str:
    """The whole page."""
    return f"""# Planted violations

{command}

The kinds of violation, each with its design, its size, the fit and the claim that has to state it, are in a
[list](violation_kinds.csv); simulators are in plain NumPy (`violation_logs.py`). The list and the simulators
were written without looking at the cautions of the library, and sizes were set only according to the loss of
coverage. The assignment of each kind to the claim that has to state it was completed afterwards, before the
first run. The check of neighbouring rows, `logs.rows.ALIKE` of kind 29, was added after the first run, and
its level and windows were set before kind 29 was examined again.

{verdicts(entries)}

*Coverage* is that of the nominal 95% intervals of the fit in logs with the violation. *Lost* is the amount by
which coverage is higher in the same number of clean twins, that is, logs that differ only in not having the
violation. *Named* is the share of logs with the violation in which the claim in the list appears, in a
caution or a refusal; *named in the twin* is the same for the twins. *Seen*: the log contains evidence against
the assumption. *Stated*: the log itself states it. *Handled*: the log states the violation, and intervals
allow for it. *Cannot be seen*: the log does not differ from one without the violation. *Possible* is the
power of the score test for exactly this violation, lost rows of a known arm, at a level of {EACH_OF_1000} in
1,000: about as much as any check can detect.

The sizes of a drift, a step, an effect that changes sign, or a covariate are in units of the standard
deviation of normal rewards or, for rewards of 0 and 1, of half a standard deviation, that is, .25. The sizes
of *lag* are numbers of rounds; those of lost, missing and repeated rows are shares of the rows that could be
affected; that of a stop is the number of rounds between two looks; and those of units are numbers of rows per
unit.

## All kinds

{planted_rows(entries)}

## Claims

{claims_of(entries)}

## Clean logs

Each fit is applied to each of the same logs. *ALEE* and *sequence* are given `stationary=True`, and sample
means `adaptive=False`, which are true statements; without them, their tables carry a caution in every log.
The target is a caution in at most {EACH_OF_1000} of 1,000 logs for each check, and in at most {TOGETHER:.0%}
for all checks together.

{clean_rows([entry for entry in entries if entry.kind.standard == CLEAN])}

The table shows the cautions given for clean logs by any fit, and the number of logs in which each appears:

{lit_rows(entries)}

## Time

The table shows the median processor seconds of a fit with a check and without it, alternating in one process,
on clean logs of two arms whose propensities change in every round. For the latter, the check is switched off.
With 10,000,000 rounds, a fit takes one of two times, depending on the memory that it is allotted, so that
single checks appear to add or save up to a quarter of the time, although most of them do nothing there; the
time of all checks together is an upper limit for each.

{speed_rows(times)}
"""
