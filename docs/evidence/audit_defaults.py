"""What an audit's defaults find: makes the last section of docs/evidence/privacy_audits.md.

Chosen before measuring: epsilon = 1 for the faults, those of tests/unit/audit/test_planted_faults.py; .1, 1
and 4 for what is right. `epsilon_lower_bound` is given what it audits and a seed, nothing else. The runs of a
replay and of the tests of noise (512; of a stopping rule 20,000), and their false alarms of 1e-6, are its own
and do not depend on `runs`. With --quick the faults for which little is compiled, and counters, in fewer
runs; printed. Ends with 1 if a fault is not found, by what must find it and in the words that name it, or
what is right is refuted.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import evidence

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests" / "unit" / "audit"))

import test_planted_faults as planted  # noqa: E402

from adaptinf import designs  # noqa: E402
from adaptinf.audit import EpsilonLowerBound, epsilon_lower_bound  # noqa: E402
from adaptinf.privacy import Counter  # noqa: E402

SEED = 20_711
EPSILONS = (0.1, 1.0, 4.0)
QUICK_RUNS = 20_000
MARK = "## What the defaults find\n"

SECTION = (
    MARK
    + """
Command: `python docs/evidence/audit_defaults.py`. Seed: {seed}. Date: {stamp}.
{minutes:.0f} minutes of processor time.

`epsilon_lower_bound` examines releases and actions, replays decisions from the releases, and tests the noise
of every release, all in one call ([how](../auditing.md)). It is called with a target and a seed; the number
of runs on each data set in each view is {runs}. The faults have epsilon = 1; a bound above 1, or a finding,
refutes the guarantee. {caught} of {number} faults are found.

{faults}

For correct designs, the table shows the bound and the number of findings. {refuted} of {audits} audits refute
a guarantee.

{right}
"""
)

RIGHT: dict[str, tuple[Any, dict[str, Any]]] = {
    "Counter, hybrid": (Counter, {}),
    "Counter, binary, horizon 2,000": (Counter, planted.LONG),
    "Counter, three coordinates": (Counter, {"dimension": 3}),
    "PrivateUCB, hybrid counter": (designs.PrivateUCB, {}),
    "PrivateUCB, binary counter": (designs.PrivateUCB, {"counter": "binary"}),
    "LinPriv, Laplace": (designs.LinPriv, {}),
    "LinPriv, normal": (designs.LinPriv, {"delta": 1e-3, "noise": "gaussian"}),
    "PrivateSuccessiveElimination": (designs.PrivateSuccessiveElimination, planted.EPOCHS),
    "DPBAI": (designs.DPBAI, planted.PHASES),
    "DPOD": (designs.DPOD, {"features": planted.PHASES["features"]}),
    "DPConSE": (designs.DPConSE, {}),
    "LDPBandit": (designs.LDPBandit, {}),
    "LDPLinear": (designs.LDPLinear, {}),
    "DPNAS": (designs.DPNAS, planted.STOPPING),
}


def found_by(found: EpsilonLowerBound) -> list[str]:
    """What finds a fault, in the order in which an audit looks."""
    checks = dict.fromkeys(finding.check for finding in found.findings)
    return ["bound"] * (found.promised is not None and found.epsilon > 1.0) + list(checks)


def fault_row(name: str, case: planted.Planted, **given: int) -> tuple[list[str], bool]:
    """A row, and whether the fault was found by what must find it."""
    found = epsilon_lower_bound(case.faulty(epsilon=1.0, **case.settings), rng=SEED, **given)
    by = found_by(found)
    named = [finding for finding in found.findings if finding.check == case.by] or found.findings
    told = [finding.text for finding in named] or [found.event]
    words = told[0].partition(" [")[0].partition(" in run")[0]
    caught = case.by in by and any(case.words in text for text in told)
    return [name, f"{found.epsilon:.4f}", ", ".join(by) or "NOTHING", words], caught


def right_row(name: str, **given: int) -> tuple[list[str], int]:
    """A row, and how many of its audits refute the promise."""
    kind, settings = RIGHT[name]
    cells, refuted = [], 0
    for number, epsilon in enumerate(EPSILONS):
        found = epsilon_lower_bound(kind(epsilon=epsilon, **settings), rng=SEED + number, **given)
        cells.append(f"{found.epsilon:.4f}, {len(found.findings)} found")
        refuted += found.refuted
    return [name, *cells], refuted


def table(head: str, rows: list[list[str]]) -> str:
    """A Markdown table; cells of `head` are separated by bars."""
    columns = head.split("|")
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(cell.strip() for cell in line) + " |" for line in lines)


def chosen(quick: bool) -> Iterator[tuple[str, planted.Planted]]:
    """Faults of a run."""
    return ((name, case) for name, case in planted.FAULTS.items() if case.quick or not quick)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="faults that need little compilation; printed")
    options = parser.parse_args()
    start = time.process_time()
    faults, missed = [], 0
    for name, case in chosen(options.quick):
        row, caught = fault_row(name, case, **({"runs": case.runs} if options.quick else {}))
        faults.append(row)
        missed += not caught
        print(" | ".join(row), flush=True)
    right, refuted = [], 0
    for name in [one for one in RIGHT if not options.quick or RIGHT[one][0] is Counter]:
        row, wrong = right_row(name, **({"runs": QUICK_RUNS} if options.quick else {}))
        right.append(row)
        refuted += wrong
        print(" | ".join(row), flush=True)
    section = SECTION.format(
        seed=SEED,
        stamp=evidence.stamp(),
        minutes=(time.process_time() - start) / 60.0,
        runs="2,000 or more" if options.quick else "the default",
        caught=len(faults) - missed,
        number=len(faults),
        refuted=refuted,
        audits=len(EPSILONS) * len(right),
        faults=table("fault | bound | found by | in words", faults),
        right=table("what is right | epsilon = 0.1 | epsilon = 1 | epsilon = 4", right),
    )
    if options.quick:
        print(section)
    else:
        page = HERE / "privacy_audits.md"
        page.write_text(page.read_text().partition(MARK)[0].rstrip() + "\n\n" + section)
    return 1 if missed or refuted else 0


if __name__ == "__main__":
    sys.exit(main())
