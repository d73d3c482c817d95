"""Kill a study at random points, again and again, and compare its tables with those of an uninterrupted run.

Makes docs/evidence/study.md.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import evidence
import numpy as np

import adaptinf as ai
from adaptinf.audit import Study, study

SEED = 20262
COMMAND = "python docs/evidence/study.py"
MODES = ("all processes", "the main process alone", "one worker")


def analyses() -> dict[str, object]:
    """What is fitted to each log; the second is not valid for UCB."""
    return {
        "sample means": lambda log: ai.ArmMeans(log).fit(estimator="sample-mean"),
        "AIPW": lambda log: ai.Contrast(log, treatment=1, control=0).fit(estimator="aipw"),
    }


def run(folder: Path, n_jobs: int, replications: int) -> Study:
    """The study, from wherever it is."""
    return study(
        designs={
            "epsilon-greedy": ai.designs.EpsilonGreedy(exploration=0.2),
            "UCB": ai.designs.UCB(),
            "private UCB": ai.designs.PrivateUCB(epsilon=1.0),
        },
        environments={
            "no signal": ai.environments.BernoulliArms([0.5, 0.5]),
            "signal": ai.environments.BernoulliArms([0.4, 0.6]),
        },
        analyses=analyses(),
        horizons=[50, 200],
        replications=replications,
        rng=SEED,
        path=folder,
        n_jobs=n_jobs,
        keep="estimates",
        progress=False,
    )


def digests(folder: Path) -> dict[str, str]:
    """Hash of every final table, and of what it prints as."""
    files = sorted([*(folder / "cells").glob("*"), *(folder / "estimates").rglob("*.parquet")])
    found = {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    tables = Study.load(folder)
    found["markdown"] = hashlib.sha256(tables.to_markdown().encode()).hexdigest()
    found["csv"] = hashlib.sha256(tables.frame.to_csv(index=False).encode()).hexdigest()
    return found


@dataclass(frozen=True)
class Kill:
    """One kill: its mode, processes, and what was on disk."""

    mode: str
    n_jobs: int
    moment: str
    half_written: bool


def children(pid: int) -> list[int]:
    """Worker processes of a process, from /proc."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*"):
        for child in (task / "children").read_text().split():
            command = Path(f"/proc/{child}/cmdline").read_bytes()
            if b"popen_loky" in command:
                found.append(int(child))
    return found


def moment(folder: Path, n_cells: int) -> str:
    """Where a study stands, by its files."""
    if not (folder / "manifest.json").exists():
        return "before its manifest"
    cells = len(list((folder / "cells").glob("[0-9]*")))
    shards = len(list((folder / "shards").rglob("[0-9]*.parquet")))
    if cells == n_cells:
        return "all cells done"
    return "no shard yet" if cells == shards == 0 else "among the shards"


def strike(child: subprocess.Popen[bytes], mode: str, rng: np.random.Generator) -> str | None:
    """SIGKILL; returns what was killed, None if the study had ended."""
    if child.poll() is not None:
        return None
    if mode == "one worker":
        try:
            workers = children(child.pid)
        except OSError:
            workers = []
        if workers:
            os.kill(int(rng.choice(workers)), signal.SIGKILL)
            child.wait()
            return mode
        mode = MODES[0]
    if mode == MODES[0]:
        os.killpg(child.pid, signal.SIGKILL)
    else:
        child.kill()
    child.wait()
    return mode


def attempt(folder: Path, n_jobs: int, replications: int) -> subprocess.Popen[bytes]:
    """The study in a process group of its own."""
    command = [sys.executable, __file__, "--child", str(folder), "--jobs", str(n_jobs)]
    command += ["--replications", str(replications)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(command, start_new_session=True, **quiet)


def end_group(group: int) -> None:
    """End workers whose main process was killed."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def torment(
    base: Path, kills: int, replications: int, n_cells: int, longest: float
) -> tuple[list[Kill], list[dict[str, str]]]:
    """Kill studies until enough kills have hit; each study goes on until it is finished."""
    rng = np.random.default_rng(SEED)
    hits: list[Kill] = []
    finished = []
    while len(hits) < kills:
        folder = base / f"killed-{len(finished)}"
        groups = []
        done = False
        while not done:
            n_jobs = int(rng.integers(1, 3))
            child = attempt(folder, n_jobs, replications)
            groups.append(child.pid)
            try:
                if len(hits) < kills:
                    child.wait(timeout=rng.uniform(0.0, longest / 2.0))
                else:
                    child.wait()
            except subprocess.TimeoutExpired:
                mode = strike(child, str(rng.choice(MODES, p=[0.6, 0.2, 0.2])), rng)
                if mode is not None:
                    torn = any(folder.rglob(".*.tmp")) if folder.exists() else False
                    hits.append(Kill(mode, n_jobs, moment(folder, n_cells), torn))
                    print(len(hits), hits[-1], flush=True)
                    continue
            done = child.returncode == 0
            if not done and child.returncode is not None and child.returncode > 0:
                raise SystemExit(f"the study in {folder} ended with an error of its own")
        for group in groups:
            end_group(group)
        finished.append(digests(folder))
    return hits, finished


PAGE = """\
# Studies that are killed

Command: `{command}`. Seed: {seed} (the times of the kills depend on the machine). Date: {today}.

A study of 3 designs, 2 environments, 2 horizons and 2 analyses ({cells} cells of {replications} replications,
with the estimates of every run kept) is started in a separate process and killed by SIGKILL at a time that is
uniformly distributed over half of the {seconds:.0f} seconds that an undisturbed run with one process takes;
it is then started again in the same folder, with one or two processes at random, until it is finished. After
that, a new study is begun, until {kills} kills have occurred. The following were killed: {modes}.

{kills} kills affected {studies} studies. Of their {files} final files each (tables of the cells, estimates of
the runs, and the whole table as Markdown and as CSV), {same} are identical, byte for byte, to those of the
undisturbed run with one process. The files of an undisturbed run with two processes are {two}.

| state of the study when it was killed | kills |
| --- | --- |
{moments}

{torn} kills left a half-written file, which has a different name from a finished one and is removed.
"""


def main() -> None:
    parser = evidence.parser(__doc__)
    parser.add_argument("--child", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--kills", type=int, help="by default 50, in quick runs 1")
    parser.add_argument("--replications", type=int, help="by default 640, in quick runs 24")
    parser.add_argument("--folder", type=Path, help="build/study by default; what is there is removed")
    options = parser.parse_args()
    options.kills = options.kills or (1 if options.quick else 50)
    options.replications = options.replications or (24 if options.quick else 640)
    if options.child is not None:
        run(options.child, options.jobs, options.replications)
        return
    with evidence.folder(options.folder, __file__, options.quick) as folder:
        options.folder = folder
        measure(options)


def measure(options: argparse.Namespace) -> None:
    """Kill studies, and make the page."""
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    run(options.folder / "warm-up", 1, min(64, options.replications))
    began = time.perf_counter()
    attempt(options.folder / "one", 1, options.replications).wait()
    longest = time.perf_counter() - began
    attempt(options.folder / "two", 2, options.replications).wait()
    expected = digests(options.folder / "one")
    two = digests(options.folder / "two")
    n_cells = len(list((options.folder / "one" / "cells").glob("*")))
    kills, finished = torment(options.folder, options.kills, options.replications, n_cells, longest)
    same = sum(found.get(name) == digest for found in finished for name, digest in expected.items())
    names_agree = all(set(found) == set(expected) for found in finished)
    total = len(expected) * len(finished)
    modes = Counter(f"{kill.mode} ({kill.n_jobs} process{'es' * (kill.n_jobs > 1)})" for kill in kills)
    moments = Counter(kill.moment for kill in kills)
    page = PAGE.format(
        command=COMMAND + " --quick" * options.quick,
        seed=SEED,
        today=evidence.stamp(),
        cells=n_cells,
        replications=f"{options.replications:,}",
        seconds=longest,
        kills=len(kills),
        modes=", ".join(f"{name}: {count}" for name, count in sorted(modes.items())),
        studies=len(finished),
        files=len(expected),
        same=f"all {total:,}" if same == total and names_agree else f"only {same:,} of {total:,}",
        two="identical to them" if two == expected else "NOT identical to them",
        moments="\n".join(f"| {name} | {count} |" for name, count in moments.most_common()),
        torn=sum(kill.half_written for kill in kills),
    )
    evidence.publish(page, __file__, options)
    if same != total or not names_agree or two != expected:
        raise SystemExit("the tables differ")


if __name__ == "__main__":
    main()
