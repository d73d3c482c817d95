"""Faults planted in sessions, kernels and outputs, and what audits say: docs/evidence/planted_faults.md.

Chosen before measuring: the faults of a registry, tests/unit/audit/planted_building.py or, with --faults
NAME, planted_NAME.py beside it, written down by somebody who knew none of the code; the functions of `AUDITS`
with their defaults and the designs of the registry. Each fault is planted in the library itself, and a fault
is caught where a function refutes the promise or finds anything wrong with the noise. Every design is
audited without a fault too: nothing may be found. What is done is kept in a folder: a run that was stopped
goes on. With --quick the faults of `QUICK`, by the function that catches them on the committed page. Ends
with 1 where a design without a fault is refuted, or a quick run misses what the page says is caught.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import evidence
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "unit" / "audit"))

from planting import Fault

from adaptinf import Trial
from adaptinf.audit import coupled, epsilon_lower_bound
from adaptinf.errors import AdaptinfWarning, ParameterError

SEED = 20_261_126
QUICK = ("arms in the order of their last success", "noise that follows from the trial's name")
"""Of the first registry: seconds each, by functions that need no compilation of their own."""
NOT_CAUGHT, REFUSED, NO_TRIAL = "not caught", "refused", "no trial"
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
        one, two = (files.enter_context(_trial(fault, place / "trial.db")) for place in places)
        alone = one.audit_noise().findings
        found = alone or one.audit_noise([two]).findings
        return f"{found[0]}{'' if alone else ' (beside a second file)'}" if found else ""


def _trial(fault: Fault, place: Path) -> Trial:
    """A trial to whose participants outcomes come by fair coins."""
    terms, rng = dict(fault.trial), np.random.default_rng(SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptinfWarning)  # designs without coins of their own
        trial = Trial.create(place, fault.design(), **terms)
    n, features = terms["horizon"], terms.get("features")
    contexts: list[Any] = [None] * n
    if features is not None:
        contexts = [features[code] for code in rng.integers(0, len(features), n)]
    elif "dimension" in terms:
        shape = (n, terms["arms"], terms["dimension"])
        contexts = list(rng.uniform(-1.0, 1.0, shape) / np.sqrt(terms["dimension"]))
    units = [f"unit {step}" for step in range(n)]
    made = []
    for start in range(0, n, 50):
        part = slice(start, start + 50)
        made = trial.assign_many(units[part], contexts[part], keys=[f"assign {unit}" for unit in units[part]])
        rewards = (rng.random(len(made)) < 0.5).astype(float).tolist()
        keys = [f"record {unit}" for unit in units[part]]
        trial.record_many([decision.id for decision in made], rewards, keys=keys)
    return trial


AUDITS: dict[str, Callable[[Fault], str]] = {
    "epsilon_lower_bound(design)": bounded,
    'epsilon_lower_bound(design, backend="release")': bounded_live,
    "coupled(design)": aligned,
    "Trial.audit_noise()": tested,
}


def outcome(fault: Fault, name: str, planted: bool) -> tuple[str, str]:
    """What an audit says of a fault, in a word and in a sentence; or of the same design without it."""
    if name == "Trial.audit_noise()" and "horizon" not in fault.trial:
        return NO_TRIAL, ""
    with fault.plant() if planted else nullcontext():
        try:
            found = AUDITS[name](fault)
        except ParameterError as error:
            return REFUSED, " ".join(str(error).split())
    return ("caught", found) if found else (NOT_CAUGHT, "")


def kept(place: Path, work: Callable[[], tuple[str, str]]) -> tuple[str, str]:
    """What was found, from a file or now."""
    if not place.exists():
        began = time.perf_counter()
        word, told = work()
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps([word, told, time.perf_counter() - began]))
        print(f"{place.stem}: {word}, {time.perf_counter() - began:.0f} s; {told[:_LONGEST]}", flush=True)
    word, told, _ = json.loads(place.read_text())
    return word, told


def name_of(*words: str) -> str:
    """A name of a file."""
    return "".join(letter if letter.isalnum() else "-" for letter in "_".join(words))


def right(faults: dict[str, Fault]) -> Iterator[tuple[str, Fault]]:
    """Each design once, with the longest trial that there is of it."""
    designs: dict[str, Fault] = {}
    for fault in faults.values():
        name = repr(fault.design())
        if name not in designs or (fault.trial and not designs[name].trial):
            designs[name] = fault
    yield from designs.items()


def row(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join([row(head), row(["---"] * len(head)), *map(row, rows)])


PAGE = """# Planted faults of the live path

Command: `python docs/evidence/planted_faults.py{command}`. Seed: {seed}. Date: {stamp}.

{number} faults were written down by somebody who knew what audits look at, the limits that are published, and
none of the code; then each was planted in the library itself, one at a time: in the sampler, in how sessions
and trials count and add up, in compiled kernels, in what is published. The audits are the shipped functions
with their defaults. {caught} of {number} are caught; of the {live} of live sessions, trials and what they
publish, {caught_live}. Without a fault the same functions look at {designs} designs {clean}.

## Faults

{faults}

## What was found

{found}

## Without a fault

{rights}
"""


def short(told: str) -> str:
    return told if len(told) <= _LONGEST else f"{told[: _LONGEST - 3].rstrip()}..."


def page(faults: dict[str, Fault], of_fault: Any, of_right: Any, command: str) -> tuple[str, bool]:
    """The page, and whether nothing was found where there is no fault."""
    names = list(AUDITS)
    rows, found, caught = [], [], {}
    for number, (fault_name, fault) in enumerate(faults.items(), 1):
        cells = {name: of_fault(fault_name, name) for name in names}
        by = [name for name in names if cells[name][0] == "caught"]
        caught[fault_name] = bool(by)
        words = [cells[name][0] for name in names]
        rows.append([str(number), fault_name, fault.kind, "live" if fault.live else "simulation", *words])
        told = f"`{by[0]}`: {short(cells[by[0]][1])}" if by else "**not caught**"
        found.append([str(number), fault.does, fault.leaks, told])
    rights = [[design, *(of_right(design, name)[0] for name in names)] for design, _ in right(faults)]
    clean = not any("caught" in cells[1:] for cells in rights)
    live = [name for name, fault in faults.items() if fault.live]
    text = PAGE.format(
        command=command,
        seed=SEED,
        stamp=evidence.stamp(),
        number=len(faults),
        caught=sum(caught.values()),
        live=len(live),
        caught_live=sum(caught[name] for name in live),
        designs=len(rights),
        clean="and find nothing" if clean else "and **find something that is not there**",
        faults=table(["", "fault", "class", "where", *(f"`{name}`" for name in names)], rows),
        found=table(["", "what it does", "why it leaks", "caught by"], found),
        rights=table(["design", *(f"`{name}`" for name in names)], rights),
    )
    return text, clean


def quick(faults: dict[str, Fault]) -> int:
    """Hold a few faults against the committed page."""
    missed = 0
    for name in [name for name in QUICK if name in faults] or list(faults)[:2]:
        number = list(faults).index(name) + 1
        then = {audit: evidence.committed(__file__, f"{number} | {name}", f"`{audit}`") for audit in AUDITS}
        cheapest = next((audit for audit in reversed(AUDITS) if then[audit] == "caught"), "")
        word = outcome(faults[name], cheapest, True)[0] if cheapest else NOT_CAUGHT
        missed += word != (then[cheapest] if cheapest else NOT_CAUGHT)
        print(f"headline {'holds' if not missed else 'is OFF'}: {name}: {word} by {cheapest or 'nothing'}")
    return int(missed > 0)


def main() -> int:
    parser = evidence.parser(__doc__)
    parser.add_argument("--faults", default="building", help="NAME of tests/unit/audit/planted_NAME.py")
    parser.add_argument("--folder", type=Path, help="where what is done is kept: a stopped run goes on")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of faults: kept, and no page is made")
    parser.add_argument("--by", type=int, nargs="*", help="numbers of functions, likewise")
    options = parser.parse_args()
    faults: dict[str, Fault] = importlib.import_module(f"planted_{options.faults}").FAULTS
    if options.quick:
        return quick(faults)
    with evidence.folder(options.folder, f"planted_faults_{options.faults}", False) as folder:

        def of_fault(fault: str, audit: str) -> tuple[str, str]:
            return kept(folder / f"{name_of(fault, audit)}.json", lambda: outcome(faults[fault], audit, True))

        def of_right(design: str, audit: str) -> tuple[str, str]:
            fault = dict(right(faults))[design]
            place = folder / f"{name_of('right', design, audit)}.json"
            return kept(place, lambda: outcome(fault, audit, False))

        if options.only is not None or options.by is not None:
            names = [list(AUDITS)[number - 1] for number in options.by or range(1, len(AUDITS) + 1)]
            for number, fault in enumerate(faults, 1):
                if not options.only or number in options.only:
                    for audit in names:
                        of_fault(fault, audit)
            return 0
        command = "" if options.faults == "building" else f" --faults {options.faults}"
        text, clean = page(faults, of_fault, of_right, command)
    part = "" if options.faults == "building" else options.faults
    evidence.publish(text, __file__, options, part)
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
