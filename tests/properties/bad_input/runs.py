"""Runs of damaged inputs and their counts."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from cases import in_turn
from judge import Verdict, judge

SEED = 20_261_123
SHARES = {
    "frame": 800,
    "foreign CSV": 800,
    "own CSV": 500,
    "own Parquet": 500,
    "foreign Parquet": 600,
    "dsjson": 700,
    "Open Bandit": 500,
    "ADaM frames": 400,
    "ADaM CSV": 500,
    "ADaM transport": 700,
}
"""Inputs of every format in the full run; shorter ones keep the proportions."""


@dataclass(frozen=True)
class Outcome:
    """What became of one input."""

    fmt: str
    kind: str
    number: int
    verdict: Verdict


def run(total: int, seed: int = SEED) -> Iterator[Outcome]:
    """Outcomes of about so many damaged inputs."""
    counts = {fmt: max(1, round(share * total / sum(SHARES.values()))) for fmt, share in SHARES.items()}
    root = Path(tempfile.mkdtemp(prefix="bad_input_"))
    try:
        for number, (fmt, make) in enumerate(in_turn(np.random.default_rng(seed), counts)):
            folder = root / str(number)
            folder.mkdir()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of pandas and polars, which make the damaged input
                case = make(np.random.default_rng([seed, number]), folder)
            yield Outcome(fmt, case.kind, number, judge(case))
            shutil.rmtree(folder)
    finally:
        shutil.rmtree(root)


def table(outcomes: list[Outcome]) -> dict[str, Counter[str]]:
    """Counts of outcomes by format."""
    counts: dict[str, Counter[str]] = {fmt: Counter() for fmt in SHARES}
    for outcome in outcomes:
        counts[outcome.fmt][outcome.verdict.outcome] += 1
    return counts
