"""Coverage of every default, and of every method that `recommend` labels valid, on logs of plain simulators.

    python docs/evidence/defaults.py                     # all cells, 2,000 runs each: many hours, goes on
    python docs/evidence/defaults.py --minutes 60        # stops after an hour, and writes what there is
    python docs/evidence/defaults.py --quick             # some cells, few runs, printed

Cells and their list: `default_cells.csv`, fixed before the first run. A run simulates a file, reads it as a
user would, asks `recommend` for arm means, the contrast of B and A and, where the file has groups, for the
effects by group, and fits every method that is labelled valid. Blocks of runs are kept in a folder; the same
numbers whatever the number of workers.
"""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import evidence
import numpy as np
import pandas as pd
from default_cells import read
from default_logs import Cell, Runs, arm_name, simulate

SEED, RUNS, BLOCK = 20261124, 2_000, 100
QUICK_CELLS, QUICK_RUNS = 24, 10
ALPHA, LEAST, NOMINAL, NUISANCE = 0.05, 0.93, 0.95, 0.05
STRICT = ("exact", "anytime")
DEFAULT = "default"


@dataclass
class Tally:
    """Intervals of one method for one target in one cell."""

    label: str
    logs: int = 0
    cautioned: int = 0
    refused: int = 0
    intervals: int = 0
    covered: int = 0
    clean: int = 0
    clean_covered: int = 0
    methods: dict[str, int] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        for name in ("logs", "cautioned", "refused", "intervals", "covered", "clean", "clean_covered"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name, count in other.methods.items():
            self.methods[name] = self.methods.get(name, 0) + count


Tallies = dict[str, Tally]  # by "target | method"


def log_of(cell: Cell, frame: pd.DataFrame) -> Any:
    """The log that a user would make of the file."""
    import adaptinf as ai

    given: dict[str, Any] = {"action": "arm", "reward": "reward"}
    if cell.told == "every propensity":
        given["propensities"] = {arm_name(k): f"p_{arm_name(k)}" for k in range(cell.n_arms)}
    elif cell.told != "none":
        given["propensity"] = "p"
    if cell.told == "none":
        given["arms"] = [arm_name(k) for k in range(cell.n_arms)]
    if cell.n_units:
        given["unit"] = "person"
    if cell.contexts_told:
        given["context"] = "group"
    if cell.design.startswith("batched"):
        given["batch"] = "batch"
    if cell.binary:
        given["reward_range"] = (0.0, 1.0)
    return ai.AdaptiveLog(frame, **given)


def questions(cell: Cell, runs: Runs) -> dict[str, tuple[dict[str, Any], dict[str, float]]]:
    """What is asked of each log, and the truth by the name of a term; every effect is the gap."""
    effect = float(runs.truth[1] - runs.truth[0])
    pair = {"treatment": "B", "control": "A"}
    means = {arm_name(k): float(runs.truth_where_possible[k]) for k in range(2)}
    asked: dict[str, tuple[dict[str, Any], dict[str, float]]] = {
        "arm-means": ({}, means),
        "contrast": (pair, {"": effect}),
    }
    if cell.contexts_told:
        asked["cate"] = ({"by": "group", **pair}, {"": effect})
    return asked


def score(result: Any, truth: dict[str, float], tally: Tally) -> None:
    """Count the intervals of one result."""
    limits = result.conf_int(ALPHA)
    cautioned = bool(result.cautions)
    tally.logs += 1
    tally.cautioned += cautioned
    for place, term in enumerate(result.terms):
        value = truth.get(term, truth.get(""))
        if value is None:
            continue
        low, high = (float(limit) for limit in limits.iloc[place])
        if math.isnan(low) or math.isnan(high):
            continue
        inside = low <= value <= high
        tally.intervals += 1
        tally.covered += inside
        tally.clean += not cautioned
        tally.clean_covered += inside and not cautioned


def measure(cell: Cell, log: Any, runs: Runs, run: int) -> Tallies:
    """Every method that is labelled valid for one log."""
    import adaptinf as ai

    found: Tallies = {}
    for target, (asked, truth) in questions(cell, runs).items():
        rows = [row for row in ai.recommend(log, target, **asked).methods if row.verdict.valid]
        for place, row in enumerate(rows):
            name, label = row.verdict.name, row.verdict.label
            own = Tally(label)
            sequence = row.call.startswith("ConfidenceSequence") and target == "arm-means"
            logged = {arm_name(k): float(runs.logged_truth[run, k]) for k in range(2)}
            try:
                score(row.run(), logged if sequence else truth, own)
            except ai.errors.InvalidForLog:
                own.logs = own.refused = 1
            found[f"{target} | {name}"] = own
            if place == 0:
                first = Tally(label, methods={name: 1})
                first.add(own)
                found[f"{target} | {DEFAULT}"] = first
        if not rows:
            found[f"{target} | {DEFAULT}"] = Tally("none valid", logs=1, refused=1, methods={"none": 1})
    return found


def block(cell: Cell, number: int, runs: int) -> Tallies:
    """Some runs of a cell."""
    rng = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(cell.number, number)))
    simulated, total = simulate(cell, runs, rng), Tallies()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for run, frame in enumerate(simulated.frames()):
            gather(total, measure(cell, log_of(cell, frame), simulated, run))
    return total


def gather(total: Tallies, found: Tallies) -> None:
    for key, tally in found.items():
        total.setdefault(key, Tally(tally.label)).add(tally)


def kept(path: Path, cell: Cell, number: int, runs: int) -> str:
    """Run a block unless its file is there; returns its path."""
    if not path.exists():
        found = {key: vars(tally) for key, tally in block(cell, number, runs).items()}
        part = path.with_suffix(".part")
        part.write_text(json.dumps(found), encoding="utf-8")
        part.rename(path)
    return str(path)


def work(cells: Sequence[Cell], runs: int, folder: Path, minutes: float, workers: int) -> None:
    """All blocks, the first of every cell before the second of any, until the time is over."""
    folder.mkdir(parents=True, exist_ok=True)
    size = min(runs, BLOCK)
    jobs = [
        (folder / f"{cell.number:03d}-{number:03d}-{size}.json", cell, number, size)
        for number in range(runs // size)
        for cell in cells
    ]
    began = time.monotonic()
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(kept, *job) for job in jobs}
        for done in as_completed(waiting):
            done.result()
            if time.monotonic() - began > 60.0 * minutes:
                pool.shutdown(wait=True, cancel_futures=True)
                return


def collected(cells: Sequence[Cell], folder: Path) -> dict[int, Tallies]:
    """What the folder holds, by cell."""
    found: dict[int, Tallies] = {}
    for cell in cells:
        total = found.setdefault(cell.number, {})
        for path in sorted(folder.glob(f"{cell.number:03d}-*.json")):
            gather(total, {key: Tally(**part) for key, part in json.loads(path.read_text("utf-8")).items()})
    return found


# The page


def verdict(tally: Tally) -> str:
    """Whether the method keeps its promise: where it is not cautioned, or with everything counted."""
    least = NOMINAL if tally.label in STRICT else LEAST
    best = max(
        (good / of + 3.0 * math.sqrt(least * (1.0 - least) / of) - least if of else math.inf)
        for good, of in ((tally.clean_covered, tally.clean), (tally.covered, tally.intervals))
    )
    return "held" if best >= 0.0 else "**short**"


def share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "-"


def rows(cell: Cell, tallies: Tallies, *, default: bool) -> Iterable[str]:
    for key, tally in sorted(tallies.items()):
        target, name = key.split(" | ")
        if (name == DEFAULT) is not default:
            continue
        taken = ", ".join(sorted(tally.methods, key=lambda one: -tally.methods[one])) if default else name
        cells = [
            str(cell.number),
            target,
            taken,
            tally.label,
            f"{tally.logs:,}",
            share(tally.covered, tally.intervals),
            share(tally.clean_covered, tally.clean),
            share(tally.cautioned, tally.logs),
            share(tally.refused, tally.logs),
            verdict(tally),
        ]
        yield f"| {' | '.join(cells)} |"


HEAD = """| cell | target | method | label | logs | coverage | no caution | cautioned | refused | promise |
| ---: | --- | --- | --- | ---: | ---: | ---: | ---: | ---: | --- |"""


def page(cells: Sequence[Cell], found: dict[int, Tallies], command: str) -> str:
    every = [(cell, key, tally) for cell in cells for key, tally in found[cell.number].items()]
    defaults = [(cell, tally) for cell, key, tally in every if key.endswith(DEFAULT)]
    short = sum(verdict(tally) != "held" for _, tally in defaults)
    others = [tally for _, key, tally in every if not key.endswith(DEFAULT)]
    beyond = sum(verdict(tally) != "held" for tally in others)
    least = min((tally.logs for _, tally in defaults), default=0)
    nuisance = [tally for cell, tally in defaults if cell.benign]
    bothered = sum(tally.cautioned > NUISANCE * tally.logs for tally in nuisance)
    factors = "\n".join(
        f"| {cell.number} | {cell.design} | {cell.outcome} | {cell.drift} | {cell.units} | {cell.arms} | "
        f"{cell.rounds} | {cell.told} | {cell.gap} |{' benign' if cell.benign else ''}"
        for cell in cells
    )
    body = "\n".join(line for cell in cells for line in rows(cell, found[cell.number], default=True))
    rest = "\n".join(line for cell in cells for line in rows(cell, found[cell.number], default=False))
    return f"""# Defaults on logs as people bring them

Command: `{command}`. Seed: {SEED}. Date: {evidence.stamp()}.

{len(cells)} cells ([list](default_cells.csv), fixed before the first run) cover all pairs of levels of
design, outcome, drift, units, arms that join or leave, rounds, what is told of propensities, and gap; the
simulators (`default_logs.py`) are plain NumPy. At least {least:,} logs a cell. Of {len(defaults)} defaults
{short} are short of their promise, of {len(others)} methods that `recommend` labels valid {beyond}. Of
{len(nuisance)} defaults in benign cells {bothered} are cautioned in more than {NUISANCE:.0%} of the logs.

*Coverage*: share of nominal 95% intervals that hold the truth; *no caution*: of those whose table carries
none. *Promise*: at least {LEAST:g}, {NOMINAL:g} for methods labelled {" or ".join(STRICT)}, less
three standard errors, over all intervals or over those without a caution. *Refused*: methods that refuse at
the fit, or logs for which none is valid. A mean is that of the rounds in which its arm could be chosen, of
sequences that of the units in the log.

## Defaults

{HEAD}
{body}

## All methods that are labelled valid

{HEAD}
{rest}

## Cells

| cell | design | outcome | drift | units | arms | rounds | told | gap |
| ---: | --- | --- | --- | --- | --- | ---: | --- | --- |
{factors}
"""


def main() -> None:
    parser = evidence.parser(__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="runs a cell, in blocks of 100")
    parser.add_argument("--minutes", type=float, default=math.inf, help="when to stop and to write")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cells", type=int, nargs="+", help="numbers of cells; by default all")
    parser.add_argument("--folder", type=Path, help="where blocks are kept; build/defaults by default")
    options = parser.parse_args()
    cells = read()
    if options.cells:
        cells = [cell for cell in cells if cell.number in options.cells]
    elif options.quick:
        short = [cell for cell in cells if cell.n_rounds <= 1000]
        cells = short[:: max(len(short) // QUICK_CELLS, 1)]
    runs = QUICK_RUNS if options.quick else options.runs
    with evidence.folder(options.folder, __file__, options.quick) as folder:
        work(cells, runs, folder, options.minutes, options.workers)
        found = collected(cells, folder)
    evidence.publish(page(cells, found, "python docs/evidence/defaults.py"), __file__, options)


if __name__ == "__main__":
    main()
