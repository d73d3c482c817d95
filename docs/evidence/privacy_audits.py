"""Audits of every private design and mechanism: makes docs/evidence/privacy_audits.md.

Chosen before measuring: confidence 99.9%, the designs of `DESIGNS` with two arms where they have a choice, on
the neighbouring trials that they supply themselves, the faults of `simulated_faults`; 1,000,000 runs on each
side, 300,000 or more for a fault, 10,000,000 for the published LinPriv at epsilon = .1. With --quick 40,000
runs, and the faults as in a full run. Every audit of a full run is kept in a folder as soon as it is done: a
run that was stopped goes on. Ends with 1 if a bound exceeds what is promised, is less tight than
`LEAST_TIGHT` asks (full runs), or a planted fault goes unnoticed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from simulated_faults import Fault, faults

from adaptinf import designs
from adaptinf.audit import EpsilonLowerBound, epsilon_lower_bound
from adaptinf.audit.privacy.designs import neighbouring_trials
from adaptinf.privacy import Counter, Laplace

HERE = Path(__file__).resolve().parent
SEED = 20_707
CONFIDENCE = 0.999
EPSILONS = (0.1, 1.0, 4.0)
FEATURES = np.array([[1.0, 0.0], [0.0, 1.0], [0.7, 0.6]])
DELTA = 1e-3

DESIGNS: dict[str, Callable[[float], Any]] = {
    "PrivateUCB, hybrid counter": lambda epsilon: designs.PrivateUCB(epsilon=epsilon),
    "PrivateUCB, binary counter": lambda epsilon: designs.PrivateUCB(epsilon=epsilon, counter="binary"),
    "LinPriv, Laplace": lambda epsilon: designs.LinPriv(epsilon=epsilon),
    "LinPriv, normal": lambda epsilon: designs.LinPriv(epsilon=epsilon, delta=DELTA, noise="gaussian"),
    "Mixture of PrivateUCB": lambda epsilon: designs.Mixture(
        designs.PrivateUCB(epsilon=epsilon), exploration=0.2
    ),
    "PrivateSuccessiveElimination": lambda epsilon: designs.PrivateSuccessiveElimination(
        epsilon=epsilon, beta=1.0
    ),
    "DPNAS": lambda epsilon: designs.DPNAS(epsilon=epsilon, alpha=0.5, beta=0.2, steps="exponential"),
    "DPBAI": lambda epsilon: designs.DPBAI(epsilon=epsilon, features=FEATURES),
    "DPBAI without MAX-DET": lambda epsilon: designs.DPBAI(epsilon=epsilon, features=FEATURES, max_det=False),
    "DPBAIGauss": lambda epsilon: designs.DPBAIGauss(epsilon=epsilon, delta=DELTA, features=FEATURES),
    "DPOD": lambda epsilon: designs.DPOD(epsilon=epsilon, features=FEATURES),
    "DPConSE": lambda epsilon: designs.DPConSE(epsilon=epsilon),
    "LDPBandit": lambda epsilon: designs.LDPBandit(epsilon=epsilon),
    "LDPLinear": lambda epsilon: designs.LDPLinear(epsilon=epsilon),
}

RECORDS = ("DPConSE", "LDPBandit", "LDPLinear")
"""Designs whose guarantee is for records; what they promise for rewards is audited on the worst pair."""

LEAKY: dict[str, Callable[[float], Any]] = {
    "Laplace": lambda epsilon: Laplace(epsilon=epsilon),
    "Counter, binary": lambda epsilon: Counter(epsilon=epsilon, mechanism="binary", horizon=31),
}
RELEASE_RUNS = {"Laplace": 50_000, "Counter, binary": 5_000}
"""Whose digits are examined, and how often exact noise is drawn for them."""

LEAST_TIGHT = {
    "PrivateUCB, binary counter": {0.1: 0.4, 1.0: 0.9, 4.0: 0.9},
    "PrivateUCB, hybrid counter": {0.1: 0.4, 1.0: 0.9, 4.0: 0.9},
    "LinPriv, Laplace": {1.0: 0.9, 4.0: 0.9},
    "PrivateSuccessiveElimination": {0.1: 0.85, 1.0: 0.9, 4.0: 0.9},
    "DPBAI": {0.1: 0.85, 1.0: 0.9, 4.0: 0.9},
}
"""Least bound, as a share of epsilon, from the releases of the first neighbours at 1,000,000 runs."""

PUBLISHED: dict[str, tuple[Callable[[float], Any], Callable[[float], float]]] = {
    "PrivateUCB, two arms": (
        lambda epsilon: designs.PrivateUCB(epsilon=epsilon, calibration="published"),
        lambda epsilon: epsilon / 2.0,
    ),
    "LinPriv, two coordinates": (
        lambda epsilon: designs.LinPriv(epsilon=epsilon, calibration="published"),
        lambda epsilon: float(np.sqrt(2.0)) * epsilon,
    ),
}
"""Designs as published, and the epsilon that they really have."""

MORE = 10
"""Times as many runs where .141 has to be told from .1: LinPriv as published at epsilon = .1."""


@dataclass(frozen=True)
class Audit:
    """One row: what is audited, at which epsilon, on which neighbours, in which view."""

    section: str
    name: str
    epsilon: float
    unit: str = ""
    place: int = 0
    view: str = "releases"

    @property
    def key(self) -> str:
        """Name of its file."""
        words = "_".join(
            (self.section, self.name, f"{self.epsilon:g}", self.unit, str(self.place), self.view)
        )
        return "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in words)

    def target(self) -> Any:
        """What is audited."""
        if self.section == "published":
            return PUBLISHED[self.name][0](self.epsilon)
        return DESIGNS[self.name](self.epsilon)

    def bound(self, runs: int, seed: np.random.SeedSequence) -> EpsilonLowerBound:
        """The audit itself."""
        target = self.target()
        settings: dict[str, Any] = {"runs": runs, "confidence": CONFIDENCE, "rng": seed}
        pair = neighbouring_trials(target, self.unit or None)[self.place]
        return epsilon_lower_bound(target, pair, view=self.view, **settings)


def audits() -> Iterator[Audit]:
    """Every audit but those of faults, in the order of the tables."""
    for name, make in DESIGNS.items():
        for unit in ("", "reward") if name in RECORDS else ("",):
            pairs = neighbouring_trials(make(1.0), unit or None)
            for place, pair in enumerate(pairs[:1] if unit else pairs):
                for view in ("releases", "actions"):
                    if view == "actions" and (unit or not _has_actions(pair)):
                        continue
                    for epsilon in EPSILONS:
                        yield Audit("designs", name, epsilon, unit, place, view)
    for name in PUBLISHED:
        for epsilon in EPSILONS:
            yield Audit("published", name, epsilon)


def _has_actions(pair: Any) -> bool:
    """Whether the trial has actions that can tell anything: an arm to choose after the unit that differs."""
    return pair.horizon - len(pair.hidden) > 1


def measure(audit: Audit | Fault, number: int, runs: int, folder: Path) -> None:
    """Audit, and keep what was found, unless that has been done."""
    path = path_of(audit, number, runs, folder)
    runs = runs_of(audit, runs)
    if path.exists():
        return
    start = time.perf_counter()
    root = np.random.SeedSequence(SEED, spawn_key=(number,))
    if isinstance(audit, Audit):
        found: dict[str, Any] = _kept(audit.bound(runs, root))
    else:
        found = {"fault": _kept(audit.faulty(runs, SEED + number))}
        found["right"] = None if audit.right is None else _kept(audit.right(runs, SEED + number))
    found["seconds"] = time.perf_counter() - start
    part = path.with_suffix(".part")
    part.write_text(json.dumps(found))
    part.rename(path)
    print(f"{path.stem}: {found['seconds']:.0f} s", flush=True)


def path_of(audit: Audit | Fault, number: int, runs: int, folder: Path) -> Path:
    """Where an audit is kept."""
    key = audit.key if isinstance(audit, Audit) else f"fault_{number}"
    return folder / f"{key}_{runs_of(audit, runs)}.json"


def runs_of(audit: Audit | Fault, runs: int) -> int:
    """Runs on each side; faults are caught with fewer."""
    if isinstance(audit, Fault):
        return audit.runs
    more = audit.section == "published" and audit.name.startswith("LinPriv") and audit.epsilon < 1.0
    return MORE * runs if more else runs


def _kept(bound: EpsilonLowerBound) -> dict[str, Any]:
    promised = float("nan") if bound.promised is None else bound.promised.epsilon
    return {
        "bound": bound.epsilon,
        "promised": promised,
        "event": bound.event,
        "hits": list(bound.hits),
        "tested": bound.tested,
        "target": bound.target,
    }


# --- the page ---------------------------------------------------------------------------------------------


def read(audit: Audit | Fault, number: int, runs: int, folder: Path) -> dict[str, Any]:
    """What was kept of an audit."""
    found: dict[str, Any] = json.loads(path_of(audit, number, runs, folder).read_text())
    return found


def table(head: str, rows: list[list[str]]) -> str:
    """A Markdown table; cells of `head` are separated by bars."""
    columns = head.split("|")
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(cell.strip() for cell in line) + " |" for line in lines)


def design_rows(found: dict[Audit, dict[str, Any]]) -> list[list[str]]:
    """One row for each design, unit, neighbours and view: bounds at every epsilon, and the share of it."""
    rows: dict[tuple[str, ...], dict[float, dict[str, Any]]] = {}
    for audit, kept in found.items():
        if audit.section == "designs":
            key = (audit.name, audit.unit, str(audit.place), audit.view)
            rows.setdefault(key, {})[audit.epsilon] = kept
    lines = []
    for (name, _, _, view), cells in rows.items():
        first = next(iter(cells.values()))
        line = [name, _differs(first["target"]), view]
        for epsilon in EPSILONS:
            kept = cells[epsilon]
            share = kept["bound"] / kept["promised"]
            line.append(f"{kept['bound']:.4f} of {kept['promised']:.4g} ({share:.2f})")
        lines.append(line)
    return lines


def _differs(target: str) -> str:
    """What differs between the neighbours, from the words for what was audited."""
    return target.partition(" rounds: ")[2] or target.partition(" samples: ")[2]


def published_rows(found: dict[Audit, dict[str, Any]]) -> list[list[str]]:
    """Designs as published: what they claim, what they have, what was found."""
    rows = []
    for audit, kept in found.items():
        if audit.section == "published":
            real = PUBLISHED[audit.name][1](audit.epsilon)
            verdict = "claim refuted" if kept["bound"] > audit.epsilon else "below the claim"
            rows.append([audit.name, f"{audit.epsilon:g}", f"{real:.4g}", f"{kept['bound']:.4f}", verdict])
    return rows


def fault_rows(found: list[tuple[Fault, dict[str, Any]]]) -> list[list[str]]:
    """Faults, and what is right beside them."""
    rows = []
    for fault, kept in found:
        right = "" if kept["right"] is None else f"{kept['right']['bound']:.4f}"
        verdict = "caught" if kept["fault"]["bound"] > fault.epsilon else "NOT CAUGHT"
        rows.append([fault.what, f"{fault.epsilon:g}", f"{kept['fault']['bound']:.4f}", verdict, right])
    return rows


def leak_rows(runs: int) -> list[list[str]]:
    """Digits of released floats: simulated noise, and noise of the release backend."""
    rows = []
    for name, make in LEAKY.items():
        for epsilon in EPSILONS:
            seen = {
                view: epsilon_lower_bound(make(epsilon), view=view, runs=runs, rng=SEED).epsilon
                for view in ("digits", "releases")
            }
            exact: dict[str, Any] = {"target": make(epsilon), "backend": "release"}
            if name != "Laplace":
                exact = {
                    "target": Counter(epsilon=epsilon, mechanism="binary", horizon=31, backend="release")
                }
            few = RELEASE_RUNS[name]
            passed = epsilon_lower_bound(**exact, view="digits", runs=few).epsilon
            rows.append(
                [name, f"{epsilon:g}", f"{seen['digits']:.3f}", f"{seen['releases']:.4f}", f"{passed:.4f}"]
            )
    return rows


def problems_of(
    found: dict[Audit, dict[str, Any]], caught: list[tuple[Fault, dict[str, Any]]], full: bool
) -> list[str]:
    """Everything that is not as it must be."""
    problems = []
    for audit, kept in found.items():
        if kept["bound"] > kept["promised"]:
            problems.append(f"{audit.key}: {kept['bound']:.4f} exceeds the promised {kept['promised']:g}")
        first = audit.section == "designs" and audit.place == 0 and audit.view == "releases"
        least = LEAST_TIGHT.get(audit.name, {}).get(audit.epsilon, 0.0) if full and first else 0.0
        if kept["bound"] < least * audit.epsilon:
            problems.append(f"{audit.key}: {kept['bound']:.4f} is less than {least:g} epsilon")
    for fault, kept in caught:
        if kept["fault"]["bound"] <= fault.epsilon:
            problems.append(f"{fault.what}, epsilon = {fault.epsilon:g}: not caught")
        if kept["right"] is not None and kept["right"]["bound"] > fault.epsilon:
            problems.append(f"{fault.what}, epsilon = {fault.epsilon:g}: the right one is refuted")
    return problems


PAGE = """\
# Audits of privacy

Command: `python docs/evidence/privacy_audits.py`. Seed: {seed}. Date: {today}. {runs:,} runs on each of two
neighbouring data sets, confidence 99.9%; {minutes:.0f} minutes of processor time.

A bound is a lower confidence limit on the epsilon of the outputs: see [the
method](../theory/privacy_audits.md). "0.9855 of 1 (0.99)" means a bound of .9855 for a guarantee of 1. A
bound above the guarantee would refute it; a bound below the guarantee cannot prove it, but the closer the
bound is, the smaller are the violations that would have been detected. Mechanisms and counters have [a
separate page](privacy_mechanisms.md).

{verdict}

## Designs, corrected

The neighbouring trials are those that each design supplies; *releases* uses everything that the guarantee
covers, and *actions* only the arms; for a stopping rule, these are the stopping time and the estimate, and
the stopping time alone. The second number is the guarantee for the part that differs.

{designs}

## As published

The bounds are compared with the epsilon stated in the paper, with ten times as many runs for LinPriv at
epsilon = .1. The page on [privacy](../privacy.md) describes the guarantees that these designs actually have.
DP-ConSE as published is among the faults.

{published}

## Faults

The faults are either planted in a copy of a correct design or taken from the paper. The last column is the
same audit for the correct design.

{faults}

## The digits of simulated noise

The table shows bounds on epsilon for an observer of all digits of the released floats, and for an observer of
nine decimals. The release backend draws exact integers (50,000 runs of a Laplace variable, 5,000 of a
counter).

{leak}
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="40,000 runs a side; printed")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("build/privacy_audits"))
    parser.add_argument("--output", type=Path, default=None)
    options = parser.parse_args()
    runs = 40_000 if options.quick else 1_000_000
    folder = options.folder / ("quick" if options.quick else "full")
    if options.quick and folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tasks = all_tasks()
    Parallel(n_jobs=options.jobs)(delayed(measure_task)(number, runs, folder) for number in range(len(tasks)))
    kept = [read(task, number, runs, folder) for number, task in enumerate(tasks)]
    found = {task: one for task, one in zip(tasks, kept, strict=True) if isinstance(task, Audit)}
    caught = [(task, one) for task, one in zip(tasks, kept, strict=True) if isinstance(task, Fault)]
    problems = problems_of(found, caught, full=not options.quick)
    if problems:
        print("\n".join(problems))
    verdict = (
        f"In {len(found)} audits of correct designs, no bound exceeds its guarantee. In {len(caught)} audits "
        f"of planted faults, all faults are detected."
    )
    page = PAGE.format(
        seed=SEED,
        today=date.today().isoformat(),
        runs=runs,
        minutes=sum(one["seconds"] for one in kept) / 60.0,
        verdict="Not as it must be:\n\n- " + "\n- ".join(problems) if problems else verdict,
        designs=table(
            "| ".join(["design", "neighbours", "view", *(f"epsilon = {epsilon:g}" for epsilon in EPSILONS)]),
            design_rows(found),
        ),
        published=table("design | stated | real | bound | verdict", published_rows(found)),
        faults=table("fault | promised | bound | verdict | bound where right", fault_rows(caught)),
        leak=table(
            "noise | epsilon | simulated: digits | simulated: nine decimals | exact: digits",
            leak_rows(min(runs, 300_000)),
        ),
    )
    if options.output is not None:
        options.output.write_text(page)
    elif options.quick:
        print(page)
    else:
        kept = HERE / "privacy_audits.md"
        # the last section is made by audit_defaults.py
        _, mark, defaults = kept.read_text().partition("## What the defaults find\n")
        kept.write_text(f"{page}\n{mark}{defaults}" if mark else page)
    return 1 if problems else 0


def measure_task(number: int, runs: int, folder: Path) -> None:
    """One audit, by its number: the audits themselves cannot be sent to another process."""
    measure(all_tasks()[number], number, runs, folder)


def all_tasks() -> list[Audit | Fault]:
    """Every audit and every fault."""
    return [*audits(), *faults()]


if __name__ == "__main__":
    sys.exit(main())
