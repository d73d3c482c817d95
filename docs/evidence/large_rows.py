"""How much time and memory a log of many rows takes, and what is fitted to it.

Each size has a process of its own, in which a small log is read and analysed first. Memory is the peak of
the resident set above that with the frame loaded, in copies of the frame.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import evidence

SIZES = ((10_000_000, 2), (5_000_000, 10))
QUICK_SIZES = ((400_000, 2),)
BATCHES, SEED = 250, 1
AIM = 1.5


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an analysis: its seconds, and the highest number of copies of the data up to its end."""

    rows: int
    n_arms: int
    name: str
    seconds: float
    copies: float


def frame(rows: int, n_arms: int) -> Any:
    """A batched design's log, with every arm's propensity."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(SEED)
    shares = 0.9 * rng.dirichlet(np.full(n_arms, 5.0), BATCHES) + 0.1 / n_arms
    batch, above = np.repeat(np.arange(BATCHES), rows // BATCHES), rng.random(rows)
    limits, action = np.cumsum(shares, axis=1)[:, :-1], np.zeros(rows, dtype=np.int64)
    for limit in limits.T:
        action += above > limit[batch]
    columns = {"action": action, "reward": rng.normal(size=rows), "batch": batch}
    return pd.DataFrame(columns | {f"propensity_{k}": shares[batch, k] for k in range(n_arms)})


def resident(what: str) -> int:
    """Bytes of this process, as Linux counts them."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(what):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {what}")


def measure(rows: int, n_arms: int) -> list[Step]:
    """Reading the log, arm means and a contrast; the log is kept, as users keep it."""
    import adaptinf as ai

    def read(table: Any) -> Any:
        return ai.AdaptiveLog(table, action="action", reward="reward", batch="batch")

    steps = {
        "log": lambda log: log,
        "arm means": lambda log: ai.ArmMeans(log).fit(),
        "contrast": lambda log: ai.Contrast(log, treatment=1, control=0).fit(),
    }
    table = frame(rows, n_arms)
    copy = int(table.memory_usage(index=False).sum())
    small = read(table.iloc[:: max(1, rows // 400_000)])
    for call in steps.values():
        call(small)
    del small
    found: list[Step] = []
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak starts again
    before, log = resident("VmRSS"), None
    for name, call in steps.items():
        start = time.perf_counter()
        if log is None:
            log = read(table)
        call(log)
        seconds = time.perf_counter() - start
        found.append(Step(rows, n_arms, name, seconds, (resident("VmHWM") - before) / copy))
    return found


def alone(rows: int, n_arms: int, library: Path | None) -> list[Step]:
    """`measure` in a process of its own, of this library or of another checkout of it."""
    return [Step(**step) for step in evidence.alone(__file__, library, str(rows), str(n_arms))]


def page(steps: list[Step], before: list[Step], commit: str) -> str:
    """The page."""
    load = ", ".join(f"{one:.2f}" for one in os.getloadavg())
    lines = []
    for place, step in enumerate(steps):
        other = before[place] if before else None
        then = f"{other.seconds:.2f} | {other.copies:.2f}" if other else "- | -"
        now = f"{step.seconds:.2f} | {step.copies:.2f}"
        lines.append(f"| {step.rows:,} x {step.n_arms} | {step.name} | {then} | {now} |")
    table = "\n".join(lines)
    return f"""# Time and memory of many rows

Command: `python docs/evidence/large_rows.py --before CHECKOUT`. Seed: {SEED}. Date: {evidence.stamp()}.
Times are clock times on a machine with two cores; its load when the page was written: {load}.

A frame of actions, rewards, batches and the propensity of every arm is read as an `AdaptiveLog`, and arm
means and a contrast are fitted with their defaults. *Copies* is the peak of memory up to that point, above
the memory used with the frame loaded, as a multiple of the frame; the log itself is one copy, plus the chosen
arm's propensity. The target is {AIM}. *Before* is the library at commit {commit or "-"}.

| rows x arms | step | before, s | before, copies | s | copies |
| --- | --- | --- | --- | --- | --- |
{table}
"""


def main() -> None:
    """Measure and write."""
    parser = evidence.parser(__doc__)
    parser.add_argument("--before", type=Path, help="another checkout of the library, to compare with")
    parser.add_argument("--one", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps([asdict(step) for step in measure(*options.one)]))
        return
    sizes = QUICK_SIZES if options.quick else SIZES
    steps = [step for size in sizes for step in alone(*size, None)]
    before = [step for size in sizes for step in alone(*size, options.before)] if options.before else []
    evidence.publish(page(steps, before, evidence.commit_of(options.before)), __file__, options)


if __name__ == "__main__":
    main()
