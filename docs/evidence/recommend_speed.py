"""What the newer rows of `recommend` cost: makes docs/evidence/recommend_speed.md.

The library and an older checkout, which has no intervals for the winner, no comparisons of all arms with a
control, no exact intervals and no mixture sequences, take turns in processes of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import evidence
import numpy as np

SEED, TURNS, REPEATS, AIM = 20261125, 5, 5, 1.20
COMMAND = "python docs/evidence/recommend_speed.py --before CHECKOUT"
CELLS = ((10_000, 2), (100_000, 2), (100_000, 3), (100_000, 20), (100_000, 80))
BOTH = ("arm-means", "contrast")
NEW = ("contrasts", "winner")
Times = dict[str, dict[str, float]]
"""Seconds by cell and target."""


def log_of(rounds: int, arms: int) -> Any:
    """0/1 rewards of a batched design with a propensity for every arm."""
    import pandas as pd

    import adaptinf as ai

    rng = np.random.default_rng(SEED)
    shares = 0.5 * rng.dirichlet(np.full(arms, 3.0), 20) + 0.5 / arms
    batch = np.arange(rounds) * 20 // rounds
    arm = (rng.random(rounds)[:, None] > np.cumsum(shares, axis=1)[batch, :-1]).sum(axis=1)
    columns = {"action": arm, "reward": (rng.random(rounds) < 0.3).astype(float), "batch": batch}
    frame = pd.DataFrame(columns | {f"propensity_{k}": shares[batch, k] for k in range(arms)})
    return ai.AdaptiveLog(frame, action="action", reward="reward", batch="batch", arms=list(range(arms)))


def measure(rounds: int, arms: int, targets: tuple[str, ...]) -> dict[str, float]:
    """Median processor seconds of each target, of a new log each time."""
    import adaptinf as ai

    found = {}
    options = {"contrast": {"treatment": 1, "control": 0}, "contrasts": {"control": 0}}
    for target in targets:
        taken = []
        for turn in range(REPEATS + 1):  # the first one loads what it needs
            log = log_of(rounds, arms)
            began = time.process_time()
            ai.recommend(log, target, **options.get(target, {}))
            taken += [time.process_time() - began] * (turn > 0)
        found[target] = float(np.median(taken))
    return found


def alone(library: Path | None, cells: tuple[tuple[int, int], ...]) -> Times:
    """`measure` of all cells in a process of its own, of this library or of another checkout."""
    targets = BOTH if library is not None else BOTH + NEW
    return dict(evidence.alone(__file__, library, json.dumps([cells, targets])))


def label(rounds: int, arms: int) -> str:
    return f"{rounds:,} x {arms}"


def median(runs: list[Times], cell: str, target: str) -> float:
    return float(np.median([run[cell][target] for run in runs]))


def page(now: list[Times], before: list[Times], commit: str) -> tuple[str, float]:
    """The page, and the largest ratio to the older checkout."""
    load = ", ".join(f"{one:.2f}" for one in os.getloadavg())
    lines, most = [], 0.0
    for cell in now[0]:
        parts = []
        for target in BOTH:
            own = median(now, cell, target)
            if before:
                then = median(before, cell, target)
                most = max(most, own / then)
                parts.append(f"{then * 1_000:.0f} | {own * 1_000:.0f} | {own / then:.2f}")
            else:
                parts.append(f"- | {own * 1_000:.0f} | -")
        parts += [f"{median(now, cell, target) * 1_000:.0f}" for target in NEW]
        lines.append(f"| {cell} | {' | '.join(parts)} |")
    table = "\n".join(lines)
    text = f"""# What the newer rows of recommend cost

Command: `{COMMAND}`. Seed: {SEED}. Date: {evidence.stamp()}.
Times are processor milliseconds on a machine with two cores; its load when the page was written: {load}.

`recommend` is applied to logs with 0/1 rewards and 20 batches, after a first call in the process. *Before* is
the library at commit {commit or "-"}, which has no intervals for the winner, no comparisons of all arms with
a control, no exact intervals and no mixture sequences. Both versions took turns, with {len(now)} processes
each and {REPEATS} new logs per process; the figures are medians. *Contrasts* and *winner* are separate
targets, which cost nothing if they are not requested. The other targets may take up to {AIM - 1.0:.0%} longer
than before; the largest ratio is {most:.2f}.

| rounds x arms | arm means, before | now | ratio | contrast, before | now | ratio | contrasts | winner |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
{table}
"""
    return text, most


def main() -> None:
    parser = evidence.parser(__doc__)
    parser.add_argument("--before", type=Path, help="another checkout of the library, to compare with")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        cells, targets = json.loads(options.one)
        print(json.dumps({label(*cell): measure(*cell, tuple(targets)) for cell in cells}))
        return
    cells, turns = (CELLS[:1], 1) if options.quick else (CELLS, TURNS)
    now, before = [], []
    for _ in range(turns):
        before += [alone(options.before, cells)] if options.before else []
        now.append(alone(None, cells))
    evidence.publish(page(now, before, evidence.commit_of(options.before))[0], __file__, options)


if __name__ == "__main__":
    main()
