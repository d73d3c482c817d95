"""What the command line takes before it answers, in ratios to interpreters that do nothing else.

Each command and its measure run in turn, A B A B ..., each a process of its own, after one run of both that
is not counted; the processor time of a process is what the kernel says of it when it has ended. A ratio is
the median of the ratios of neighbouring runs.

    python docs/evidence/shell.py            # a minute; writes the page
    python docs/evidence/shell.py --quick    # fewer runs, printed
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import evidence
import numpy as np
import pandas as pd

SEED = 20261127
ROUNDS = 10_000
COMMAND = [sys.executable, "-m", "adaptinf"]
ROLES = ["--action", "arm", "--reward", "y", "--propensity", "p"]
PARTS = "import pandas, scipy.special, scipy.linalg, pyarrow.parquet, statsmodels.iolib.table"


@dataclass(frozen=True)
class Compared:
    """A command, what it is measured by, the target, and processor seconds of both, run by run."""

    what: str
    by: str
    aim: str
    seconds: tuple[float, ...]
    measure: tuple[float, ...]

    @property
    def row(self) -> str:
        """Row of the page."""
        ratio = statistics.median(a / b for a, b in zip(self.seconds, self.measure, strict=True))
        more = statistics.median(a - b for a, b in zip(self.seconds, self.measure, strict=True))
        cells = (f"{statistics.median(each):.3f}" for each in (self.seconds, self.measure))
        return f"| {self.what} | {self.by} | {' | '.join(cells)} | {ratio:.2f} | {more:.3f} | {self.aim} |"


def spent(command: list[str], folder: Path) -> float:
    """Processor seconds of a process, by the kernel's account."""
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def compared(what: str, words: list[str], by: str, code: str, aim: str, runs: int, folder: Path) -> Compared:
    """A command and its measure by turns."""
    commands = [*COMMAND, *words], [sys.executable, "-c", code]
    pairs = [[spent(each, folder) for each in commands] for _ in range(runs + 1)]
    first, second = zip(*pairs[1:], strict=True)
    return Compared(what, by, aim, first, second)


def rows(runs: int, folder: Path) -> list[Compared]:
    """All comparisons."""
    rng = np.random.default_rng(SEED)
    arm = rng.integers(0, 2, ROUNDS)
    reward = (rng.random(ROUNDS) < 0.3 + 0.1 * arm).astype(int)
    frame = pd.DataFrame({"arm": np.where(arm, "B", "A"), "y": reward, "p": 0.5})
    frame.to_csv(folder / "log.csv", index=False)
    analyze = ["analyze", "log.csv", *ROLES]
    own = "`pandas` and the parts of SciPy, PyArrow and statsmodels that it loads"
    return [
        compared("`--version`", ["--version"], "`pass`", "pass", "at most .1 s more", runs, folder),
        compared("`analyze --help`", ["analyze", "--help"], "`pass`", "pass", "", runs, folder),
        compared(
            *("`analyze`", analyze, "`pandas` and `scipy.stats`", "import pandas, scipy.stats"),
            *("at most 1.2 times", runs, folder),
        ),
        compared("`analyze`", analyze, own, PARTS, "", runs, folder),
    ]


def page(found: list[Compared], runs: int) -> str:
    """The page."""
    load = ", ".join(f"{one:.2f}" for one in os.getloadavg())
    table = "\n".join(each.row for each in found)
    return f"""# What the command line takes before it answers

The figures are processor seconds of whole processes, medians of {runs} runs, which alternate with runs of an
interpreter on the code shown next to them; ratios and differences are medians over neighbouring runs.
Command: `python docs/evidence/shell.py`. Seed: {SEED}. Date: {evidence.stamp()}. Python
{platform.python_version()}, NumPy {np.__version__}, pandas {pd.__version__}. Load of the machine: {load}.

| `adaptinf` | measured by | seconds | its seconds | ratio | difference | target |
| --- | --- | ---: | ---: | ---: | ---: | --- |
{table}

`analyze` reads a CSV of {ROUNDS:,} rows and prints its table. If Polars is installed, statsmodels loads it
together with its tables, both in `analyze` and in the last row.
"""


def main() -> None:
    """Measure and write."""
    options = evidence.parser(__doc__).parse_args()
    runs = 2 if options.quick else 9
    with tempfile.TemporaryDirectory() as folder:
        found = rows(runs, Path(folder))
    evidence.publish(page(found, runs), __file__, options)


if __name__ == "__main__":
    main()
