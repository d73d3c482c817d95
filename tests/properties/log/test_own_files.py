"""Files that adaptinf wrote: a bit flipped, the writer killed, the disk full.

The page docs/evidence/own_files.md has the counts of larger runs of the same functions.
"""

from __future__ import annotations

import itertools
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import adaptinf as ai
from adaptinf.audit.simulation import study_folder as shards
from adaptinf.audit.simulation.simulated_power import PlanTable
from adaptinf.cli import main
from adaptinf.errors import AdaptinfError, FileError
from adaptinf.log import AdaptiveLog, DesignRecord, LogArrays

STEPS = ("open", "write", "flush", "close", "fsync", "chmod", "chown", "replace", "unlink")
REFUSED = 3


class Writer(NamedTuple):
    """How content 0 or 1 is written into a folder, and the names that come to hold it."""

    write: Callable[[int, Path], Any]
    names: tuple[str, ...]


def _output(number: int, folder: Path) -> None:
    source = folder / "source.parquet"
    if not source.exists():
        sample(0).to_parquet(source)
    alpha = (0.05, 0.1)[number]
    if main(["analyze", str(source), "--alpha", str(alpha), "--output", str(folder / "table.txt")]):
        os._exit(REFUSED)


def _figure(number: int, folder: Path) -> None:
    drawing = plt.figure(figsize=(1, 1))
    drawing.text(0.1, 0.5, f"content {number}")
    ai.plots.save(drawing, folder / "figure", dpi=30)
    plt.close(drawing)


def _table(number: int) -> pd.DataFrame:
    return pd.DataFrame({"x": np.arange(500.0) + number})


def _study(number: int, folder: Path) -> None:
    shards.write_json(folder / "manifest.json", {"number": number, "list": [1] * 2000})
    shards.write_parquet(folder / "shard.parquet", pa.table(_table(number)), {"fingerprint": "f"})


WRITERS = {
    "Parquet": Writer(
        lambda number, folder: sample(number).to_parquet(folder / "log.parquet"), ("log.parquet",)
    ),
    "CSV": Writer(lambda number, folder: sample(number).to_csv(folder / "log.csv"), ("log.csv",)),
    "--output": Writer(_output, ("table.txt",)),
    "figure": Writer(_figure, ("figure.png", "figure.svg")),
    "table": Writer(lambda n, folder: ai.plots.save_table(_table(n), folder / "t"), ("t.csv", "t.md")),
    "plan": Writer(
        lambda n, folder: PlanTable(_table(n), 0.05, "UCB", 10).to_csv(folder / "plan.csv"), ("plan.csv",)
    ),
    "study": Writer(_study, ("manifest.json", "shard.parquet")),
}


def sample(seed: int, n_rounds: int = 40) -> AdaptiveLog:
    """A log with every kind of column, releases and metadata."""
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(3), n_rounds)
    action = rng.integers(0, 3, n_rounds)
    arrays = LogArrays(
        action=action,
        reward=rng.standard_normal(n_rounds),
        propensity=table[np.arange(n_rounds), action],
        propensities=table,
        batch=np.arange(n_rounds) // 10,
        phase=(np.arange(n_rounds) >= n_rounds // 2).astype(np.int64),
        randomised=rng.random(n_rounds) < 0.5,
        context={
            "age": rng.integers(0, 90, n_rounds),
            "town": rng.choice(np.array(["Åre", "b", 'c "quoted", \n'], dtype=object), n_rounds),
            "weight": rng.random(n_rounds),
        },
    )
    releases = {
        "round": np.arange(1, 6),
        "name": ["noisy_sum"] * 5,
        "group": ["a", 2, None, ("b", 1), 0.5],
        "value": rng.standard_normal(5),
        "mechanism": ["laplace"] * 5,
        "scale": [1.0, 2.0, np.inf, np.nan, 0.0],
    }
    return AdaptiveLog.from_arrays(
        arrays,
        arms=("a", "b", "né"),
        phases=("learning", "estimation"),
        reward_range=(-100.0, 100.0),
        guarantee=ai.PrivacyGuarantee(1.0, 1e-6, reasons=("a reason",)),
        design=DesignRecord("UCB", {"width": 2.0, "steps": (1, 2)}, ai.designs.Thompson(floor=0.1).traits),
        noise="simulation",
        releases=releases,
        feedback_rounds=n_rounds - 1,
        recommended="b",
    )


def flips(folder: Path, count: int, seed: int) -> dict[str, Counter[str]]:
    """Outcomes of reading files of which one bit was flipped, by kind of file."""
    log, rng = sample(0), np.random.default_rng(seed)
    log.to_parquet(folder / "log.parquet")
    log.to_csv(folder / "log.csv")
    kinds = {"Parquet": "log.parquet", "CSV": "log.csv", "sidecar": "log.csv.json"}
    outcomes: dict[str, Counter[str]] = {kind: Counter() for kind in kinds}
    for number in range(count):
        kind = list(kinds)[number % len(kinds)]
        path = folder / kinds[kind]
        whole = path.read_bytes()
        damaged = bytearray(whole)
        damaged[int(rng.integers(len(whole)))] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        outcomes[kind][outcome(path.with_suffix("") if kind == "sidecar" else path, log)] += 1
        path.write_bytes(whole)
    return outcomes


def outcome(path: Path, log: AdaptiveLog) -> str:
    """What reading a file came to: an equal log, an error that names the file, or what must not be."""
    try:
        found = ai.read_log(path)
    except AdaptinfError as error:
        return "refused" if str(path) in str(error) else f"no file named: {error!r:.200}"
    except Exception as error:
        return f"traceback: {error!r:.200}"
    return "equal" if found.equals(log) else "another log"


def test_a_flipped_bit_is_refused_or_changes_nothing(tmp_path: Path) -> None:
    for counts in flips(tmp_path, 300, seed=17).values():
        assert set(counts) <= {"refused", "equal"}
        assert counts["refused"] > 50


class Killer:
    """A process of its own that writes in forks of itself, and kills them or fills their disk."""

    def __init__(self) -> None:
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "agg"}
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def ask(self, writer: str, number: int, folder: Path, **how: float) -> int:
        """Exit status of a fork that writes this content, stopped at a step, after a delay or at a size."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        question = {"writer": writer, "number": number, "folder": str(folder), "how": how}
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def close(self) -> None:
        self.process.communicate("")


def serve() -> None:
    """Answer what a `Killer` asks."""
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            os._exit(_written(asked["writer"], asked["number"], Path(asked["folder"]), asked["how"]))
        if "delay" in asked["how"]:
            time.sleep(asked["how"]["delay"])
            os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        sys.stdout.write(f"{status}\n")
        sys.stdout.flush()


def _written(writer: str, number: int, folder: Path, how: dict[str, int]) -> int:
    """0, or what a writer that was refused comes to."""
    seen = 0

    def count(frame: Any, event: str, called: Any) -> None:
        nonlocal seen
        if event in ("c_call", "c_return") and called.__name__ in STEPS:
            seen += 1
            if seen == how["step"]:
                os.kill(os.getpid(), signal.SIGKILL)

    if "size" in how:
        resource.setrlimit(resource.RLIMIT_FSIZE, (how["size"], how["size"]))
    if "step" in how:
        sys.setprofile(count)
    try:
        with open(os.devnull, "w") as nowhere:
            sys.stderr = nowhere
            WRITERS[writer].write(number, folder)
    except FileError as error:
        return REFUSED if "cannot be written: File too large" in str(error) else REFUSED + 1
    finally:
        sys.setprofile(None)
    return min(seen, 200) if "count" in how else 0


def held(folder: Path, name: str) -> Any:
    """What a name holds; of a log what `read_log` makes of it."""
    path = folder / name
    if name.startswith("log."):
        try:
            found = ai.read_log(path)
        except FileNotFoundError:
            return None
        return next((number for number in (0, 1) if found.equals(sample(number))), "another log")
    return path.read_bytes() if path.exists() else None


def stopped(
    killer: Killer, writer: str, folder: Path, kills: int, disks: int, seed: int
) -> tuple[Counter[str], Counter[str]]:
    """Outcomes of kills and of full disks: each name must hold the old content or the new one."""
    rng = np.random.default_rng(seed)
    whole = []
    for number in (0, 1):
        (folder / str(number)).mkdir(parents=True)
        status = killer.ask(writer, number, folder / str(number), step=0, count=1)
        whole.append([held(folder / str(number), name) for name in WRITERS[writer].names])
    place = folder / "place"
    place.mkdir()
    steps = status
    started = time.perf_counter()
    assert killer.ask(writer, 0, place) == 0
    seconds = time.perf_counter() - started
    killed, full = Counter[str](), Counter[str]()
    for turn in itertools.count():
        if killed["killed"] == kills:
            break
        for path in list(place.iterdir()) if turn % 5 == 4 else []:  # nothing was there before
            path.unlink()
        before = [held(place, name) for name in WRITERS[writer].names]
        if turn % 4 == 3:
            how: dict[str, float] = {"delay": rng.uniform(0.0, seconds)}
        else:
            how = {"step": 1 + (turn * steps // kills + int(rng.integers(0, 2))) % steps}
        status = killer.ask(writer, turn % 2, place, **how)
        killed["killed" if status == -signal.SIGKILL else f"ended with {status}"] += 1
        killed[_which(place, writer, before, whole[turn % 2])] += 1
    written = [path for path in (folder / "1").iterdir() if path.name != "source.parquet"]
    largest = max(path.stat().st_size for path in written)
    assert killer.ask(writer, 0, place) == 0
    for leftover in place.glob(".*.tmp"):
        leftover.unlink()
    for _ in range(disks):
        before = [held(place, name) for name in WRITERS[writer].names]
        status = killer.ask(writer, 1, place, size=int(rng.integers(0, largest)))
        full["refused" if status == REFUSED else f"ended with {status}"] += 1
        full[_which(place, writer, before, whole[1])] += 1
        full["leftovers"] += len(list(place.glob(".*.tmp")))
        assert killer.ask(writer, 0, place) == 0
    return killed, full


def _which(place: Path, writer: str, before: list[Any], new: list[Any]) -> str:
    """Whether each name holds what it held before or the new content."""
    found = [held(place, name) for name in WRITERS[writer].names]
    if found == new:
        return "new"
    if found == before:
        return "old"
    apart = all(one in (old, other) for one, old, other in zip(found, before, new, strict=True))
    return "each old or new" if apart else "neither"


@pytest.fixture(scope="module")
def killer() -> Any:
    process = Killer()
    yield process
    process.close()


@pytest.mark.parametrize(
    "writer", [pytest.param(name, marks=[pytest.mark.slow] * (name != "CSV")) for name in WRITERS]
)
def test_a_stopped_writer_leaves_the_old_content_or_the_new(
    tmp_path: Path, killer: Killer, writer: str
) -> None:
    killed, full = stopped(killer, writer, tmp_path, kills=20, disks=3, seed=5)
    assert killed["killed"] == 20
    assert killed["neither"] == 0
    assert killed["old"] > 0
    assert full["refused"] + full["ended with 0"] == 3
    assert full["neither"] == full["leftovers"] == 0


if __name__ == "__main__":
    mpl.use("agg")
    for each in WRITERS:  # whatever is imported when it is first used
        with tempfile.TemporaryDirectory() as folder:
            _written(each, 0, Path(folder), {})
    serve()
