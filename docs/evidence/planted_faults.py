"""Faults planted in sessions, kernels and outputs, and what audits say: docs/evidence/planted_faults.md.

Chosen before measuring: the faults of a registry, tests/unit/audit/planted_building.py or, with --faults
NAME, planted_NAME.py beside it, which were written down by somebody who knew none of the code; the functions
of `AUDITS` with their defaults, and the designs of the registry. Each fault is planted in the library itself.
It is caught where a function refutes the promise, or finds anything wrong with the noise. With --first no
further function is asked about a fault that one has caught. What is done is kept in a folder: a run that was
stopped goes on. With --quick the faults of `QUICK`, by the function that catches them on the committed page.
Ends with 1 if a quick run misses what the page says is caught.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import evidence

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "unit" / "audit"))

from planted_runs import fair_trial
from planting import Fault

from adaptinf.audit import coupled, epsilon_lower_bound
from adaptinf.errors import ParameterError

SEED = 20_261_126
QUICK = ("arms in the order of their last success", "noise that follows from the trial's name")
"""Of the first registry: seconds each, by functions that need no compilation of their own."""
CAUGHT, NOT_CAUGHT, REFUSED, NO_TRIAL, NOT_ASKED = "caught", "not caught", "refused", "no trial", "not asked"
BROKE = "broke off"
"""An error of the function's own, which says nothing of the design."""
_LONGEST = 160


def bounded(fault: Fault) -> str:
    """Simulations, and the live path beside them."""
    return _told_of_bound(epsilon_lower_bound(fault.design(), rng=SEED))


def bounded_live(fault: Fault) -> str:
    """Sessions and trials alone."""
    return _told_of_bound(epsilon_lower_bound(fault.design(), backend="release", rng=SEED))


def _told_of_bound(found: Any) -> str:
    if not found.refuted:
        return ""
    words = [finding.text for finding in found.findings]
    if found.epsilon > found.promised.epsilon:
        words.insert(0, f"epsilon is at least {found.epsilon:.3g}, promised {found.promised.epsilon:g}")
    return words[0]


def aligned(fault: Fault) -> str:
    """Neighbouring sessions and trials."""
    found = coupled(fault.design(), rng=SEED)
    if not found.refuted:
        return ""
    return found.disagreement or f"the cost is {found.cost:.3g} at {found.share:.3g} of the promise"


def tested(fault: Fault) -> str:
    """The noise of a trial, by itself and beside a trial of the same name elsewhere."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as files:
        places = [Path(folder) / name for name in ("one", "two")]
        for place in places:
            place.mkdir()
        one, two = (
            files.enter_context(fair_trial(place / "trial.db", fault.design(), fault.trial, SEED))
            for place in places
        )
        alone = one.audit_noise().findings
        found = alone or one.audit_noise([two]).findings
        return f"{found[0]}{'' if alone else ' (beside a second file)'}" if found else ""


AUDITS: dict[str, Callable[[Fault], str]] = {
    "Trial.audit_noise()": tested,
    "coupled(design)": aligned,
    "epsilon_lower_bound(design)": bounded,
    'epsilon_lower_bound(design, backend="release")': bounded_live,
}
"""In the order in which they are asked: what takes less time first."""


def outcome(fault: Fault, audit: str) -> tuple[str, str]:
    """What an audit says of a fault, in a word and in a sentence."""
    if audit == "Trial.audit_noise()" and "horizon" not in fault.trial:
        return NO_TRIAL, ""
    with fault.plant():
        try:
            found = AUDITS[audit](fault)
        except ParameterError as error:
            return REFUSED, " ".join(str(error).split())
        except (KeyError, IndexError, TypeError, ValueError) as error:
            return BROKE, repr(error)
    return (CAUGHT, found) if found else (NOT_CAUGHT, "")


def place_of(folder: Path, name: str, audit: str) -> Path:
    """Where it is kept what an audit says of a fault."""
    words = "_".join((name, audit))
    return folder / f"{''.join(letter if letter.isalnum() else '-' for letter in words)}.json"


def kept(folder: Path, name: str, fault: Fault, audit: str) -> list[str]:
    """What an audit says of a fault, and at which commit: from a file, or now."""
    place = place_of(folder, name, audit)
    if not place.exists():
        began = time.perf_counter()
        found = [*outcome(fault, audit), evidence.stamp().partition("commit ")[2]]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(found))
        took = f"{time.perf_counter() - began:.0f} s"
        print(f"{name}, {audit}: {found[0]}, {took}; {short(found[1])}", flush=True)
    told: list[str] = json.loads(place.read_text())
    return told


def asked(folder: Path, name: str, fault: Fault, audits: list[str], first: bool) -> dict[str, list[str]]:
    """What audits say of a fault, one after another; with `first` no further than one that catches it."""
    cells: dict[str, list[str]] = {}
    for audit in audits:
        if not (first and any(word == CAUGHT for word, *_ in cells.values())):
            cells[audit] = kept(folder, name, fault, audit)
    return cells


PAGE = """# Planted faults of the live path

Command: `python docs/evidence/planted_faults.py{command}`. Seed: {seed}. Date: {stamp}.

{number} faults were described by someone who knew what audits examine and what their published limits are,
but had not seen the code. Each was then planted in the library itself, one at a time: in the sampler, in the
way in which sessions and trials count and sum, in compiled kernels, or in what is published. The audits are
the shipped functions with their defaults. {caught} of {number} faults are detected, including {caught_live}
of the {live} that concern live sessions, trials and what they publish. Functions are tried in the order of
the columns{until}. `Trial.audit_noise()` uses a separate trial for each fault and, if that detects nothing, a
second trial together with the first. {note}{commits}

The pages on [all audits](privacy_audits.md), and those produced by `docs/evidence/coupled.py` and
`docs/evidence/live_noise.py`, show that correct designs are not refuted.

{faults}

## What was found

{found}
"""


def short(told: str) -> str:
    return told if len(told) <= _LONGEST else f"{told[: _LONGEST - 3].rstrip()}..."


def row(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join([row(head), row(["---"] * len(head)), *map(row, rows)])


def page(
    faults: dict[str, Fault], found: dict[str, dict[str, list[str]]], command: str, first: bool, note: str
) -> str:
    """Both tables, and what they come to."""
    rows, words, caught = [], [], []
    for number, (name, fault) in enumerate(faults.items(), 1):
        cells = found[name]
        by = [audit for audit in cells if cells[audit][0] == CAUGHT]
        caught += [name] * bool(by)
        told = [cells[audit][0] if audit in cells else NOT_ASKED for audit in AUDITS]
        rows.append([str(number), name, fault.kind, "live" if fault.live else "simulation", *told])
        told_by = f"`{by[0]}`: {short(cells[by[0]][1])}" if by else "**not caught**"
        words.append([str(number), fault.does, fault.leaks, told_by])
    live = [name for name, fault in faults.items() if fault.live]
    commits = {told[2].split()[0]: None for cells in found.values() for told in cells.values()}
    return PAGE.format(
        command=command,
        seed=SEED,
        stamp=evidence.stamp(),
        number=len(faults),
        caught=len(caught),
        live=len(live),
        caught_live=sum(name in caught for name in live),
        note=note,
        until=" until one detects the fault" if first else "",
        commits=f" The faults were run at {', '.join(commits)}, one after another."
        if len(commits) > 1
        else "",
        faults=table(["", "fault", "class", "where", *(f"`{audit}`" for audit in AUDITS)], rows),
        found=table(["", "what it does", "why it leaks", "caught by"], words),
    )


def quick(faults: dict[str, Fault], script: Path) -> int:
    """Hold a few faults against the committed page."""
    missed = 0
    for name in [name for name in QUICK if name in faults] or list(faults)[:2]:
        number = f"{list(faults).index(name) + 1} | {name}"
        then = {audit: evidence.committed(str(script), number, f"`{audit}`") for audit in AUDITS}
        audit = next((audit for audit in AUDITS if then[audit] == CAUGHT), next(iter(AUDITS)))
        word = outcome(faults[name], audit)[0]
        missed += word != then[audit]
        print(f"headline {'holds' if word == then[audit] else 'is OFF'}: {name}: {word} by {audit}")
    return int(missed > 0)


def main() -> int:
    parser = evidence.parser(__doc__)
    parser.add_argument("--faults", default="building", help="NAME of tests/unit/audit/planted_NAME.py")
    parser.add_argument("--folder", type=Path, help="where what is done is kept: a stopped run goes on")
    parser.add_argument("--first", action="store_true", help="ask no further than the first that catches")
    parser.add_argument("--kept", action="store_true", help="ask nothing: the page of what the folder has")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of faults: kept, and no page is made")
    parser.add_argument("--by", type=int, nargs="*", help="numbers of functions, likewise")
    options = parser.parse_args()
    registry = importlib.import_module(f"planted_{options.faults}")
    faults: dict[str, Fault] = registry.FAULTS
    part = "" if options.faults == "building" else options.faults
    if options.quick:
        own = Path(__file__)
        return quick(faults, own.with_stem(f"{own.stem}_{part}") if part else own)
    audits = [list(AUDITS)[number - 1] for number in options.by or range(1, len(AUDITS) + 1)]

    def known(name: str, folder: Path) -> list[str]:
        return [audit for audit in audits if place_of(folder, name, audit).exists()]

    with evidence.folder(options.folder, f"planted_faults_{options.faults}", False) as folder:
        found = {
            name: asked(folder, name, fault, known(name, folder) if options.kept else audits, options.first)
            for number, (name, fault) in enumerate(faults.items(), 1)
            if not options.only or number in options.only
        }
    if options.only is None and options.by is None:
        flags = f" --faults {part}" * bool(part) + " --first" * options.first + " --kept" * options.kept
        note = getattr(registry, "NOTE", "")
        evidence.publish(page(faults, found, flags, options.first, note), __file__, options, part)
    return 0


if __name__ == "__main__":
    sys.exit(main())
