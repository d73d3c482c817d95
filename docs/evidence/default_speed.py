"""Speed and memory of what a user runs first: recommend, diagnose, and the first table of an interpreter.

Processor time of one process on logs made with plain NumPy; the load of the machine is printed. Memory is the
peak of the resident set above that before the call, with the log in memory.

    python docs/evidence/default_speed.py --plain PYTHON    # 2 minutes and 3 GB; writes the page
    python docs/evidence/default_speed.py --quick           # smaller logs, printed
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import evidence
import numpy as np

from adaptinf.inference.diagnostics.log_checks import diagnose
from adaptinf.inference.recommend.recommendation import recommend
from adaptinf.log import AdaptiveLog, LogArrays

SEED = 20261123
_FIRST_TABLE = """
import numpy as np
import adaptinf as ai
from adaptinf.log import AdaptiveLog, LogArrays

rng = np.random.default_rng({seed})
share = rng.uniform(0.2, 0.8, {rounds})
action = (rng.random({rounds}) < share).astype(np.int64)
every = np.stack([1.0 - share, share], axis=1)
arrays = LogArrays(
    action=action,
    reward=rng.normal(size={rounds}),
    propensity=every[np.arange({rounds}), action],
    propensities=every,
)
log = AdaptiveLog.from_arrays(arrays, arms=("a", "b"))
print(ai.ArmMeans(log).fit())
"""


@dataclass(frozen=True)
class Measured:
    """One row of the page: what was run, on what, target, processor seconds and megabytes above the log."""

    what: str
    log: str
    aim: str
    seconds: float
    megabytes: float


def made(rounds: int, arms: int) -> AdaptiveLog:
    """A log with every arm's propensity, moving from round to round, rewards within bounds, and batches."""
    rng = np.random.default_rng([SEED, rounds, arms])
    every = rng.random((rounds, arms))
    every += 0.2
    every /= every.sum(axis=1, keepdims=True)
    draw, action, total = rng.random(rounds), np.zeros(rounds, dtype=np.int64), np.zeros(rounds)
    for arm in range(arms - 1):
        total += every[:, arm]
        action += draw > total
    arrays = LogArrays(
        action=action,
        reward=rng.random(rounds),
        propensity=every[np.arange(rounds), action],
        propensities=every,
        batch=np.arange(rounds) // 1000,
    )
    return AdaptiveLog.from_arrays(arrays, arms=tuple(range(arms)), reward_range=(0.0, 1.0))


def resident(name: str) -> float:
    """A line of the kernel's account of this process in MB; NaN if there is none."""
    status = Path("/proc/self/status")
    if not status.exists():
        return float("nan")
    lines = [line for line in status.read_text().splitlines() if line.startswith(name)]
    return int(lines[0].split()[1]) / 1024.0


def measure(what: str, log: AdaptiveLog, aim: str, run: Callable[[AdaptiveLog], object]) -> Measured:
    """Processor time and memory of one call on a log that nothing has been asked of."""
    reset = Path("/proc/self/clear_refs")
    if reset.exists():
        reset.write_text("5")  # the peak starts again
    before, start = resident("VmRSS"), time.process_time()
    run(log)
    seconds = time.process_time() - start
    return Measured(what, f"{log.n_rounds:,} x {log.n_arms:,}", aim, seconds, resident("VmHWM") - before)


def elapsed(interpreter: str, text: str) -> float:
    """Seconds of the clock of a fresh interpreter; the least of five, after one that fills the caches."""
    seconds = []
    for _ in range(6):
        start = time.perf_counter()
        subprocess.run([interpreter, "-c", text], check=True, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - start)
    return min(seconds[1:])


def first_table(rounds: int, interpreter: str, where: str) -> Measured:
    """The first table of a fresh interpreter, imports included, with a warm cache."""
    seconds = elapsed(interpreter, _FIRST_TABLE.format(seed=SEED, rounds=rounds)) - elapsed(
        interpreter, "pass"
    )
    return Measured(f"first table, {where}", f"{rounds:,} x 2", "1 s", seconds, float("nan"))


def page(rows: list[Measured]) -> str:
    """The page."""
    load = ", ".join(f"{one:.2f}" for one in os.getloadavg())
    table = "\n".join(
        f"| {row.what} | {row.log} | {row.aim} | {row.seconds:.2f} | "
        f"{'' if np.isnan(row.megabytes) else f'{row.megabytes:.0f}'} |"
        for row in rows
    )
    return f"""# Speed of the default analyses

The figures are processor seconds of one process, and megabytes of memory beyond the log, on a machine with
two cores. Command: `python docs/evidence/default_speed.py --plain PYTHON`. Seed: {SEED}. Date:
{evidence.stamp()}. Python {platform.python_version()}, NumPy {np.__version__}. When the page was written, the
load of the machine was {load}, at nice {os.nice(0)}; an idle machine has a load near 0.

| what | rounds x arms | target | seconds | MB |
| --- | --- | --- | --- | --- |
{table}

`recommend` and `diagnose` are timed after a first call in the process, which loads or compiles their
dependencies. The first table is that of `ArmMeans(log).fit()`, including imports, with Numba's cache on disk;
its times are clock times, and exclude the time of an interpreter that does nothing. The library alone
(`--plain`) has none of the extras; if Polars is installed, statsmodels imports it with its tables.
"""


def main() -> None:
    """Measure and write."""
    parser = evidence.parser(__doc__)
    parser.add_argument("--plain", help="the interpreter of an environment with the library and no extra")
    options = parser.parse_args()
    quick = options.quick
    small = made(2000, 3)
    recommend(small)
    diagnose(small)
    rounds, long = (10_000, 100_000) if quick else (100_000, 5_000_000)
    rows = [
        measure("recommend", made(rounds, 80), "1 s", recommend),
        measure("recommend", made(rounds, 1000), "5 s", recommend),
        measure("diagnose", made(long, 10), "10 s, 600 MB", diagnose),
        first_table(10_000, sys.executable, "all extras installed"),
    ]
    if options.plain:
        rows.append(first_table(10_000, options.plain, "the library alone"))
    evidence.publish(page(rows), __file__, options)


if __name__ == "__main__":
    main()
