"""Studies whose processes are killed at random moments: the tables must not differ."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from adaptinf.audit import Study

SCRIPT = """
import sys
import adaptinf as ai
from adaptinf.audit import study

if __name__ == "__main__":
    study(
        designs={"uniform": ai.designs.Uniform()},
        environments={"signal": ai.environments.BernoulliArms([0.3, 0.6])},
        analyses={"means": lambda log: ai.ArmMeans(log).fit(estimator="sample-mean", test="normal")},
        horizons=[40, 50],
        replications=600,
        rng=1,
        path=sys.argv[1],
        n_jobs=int(sys.argv[2]),
        keep="estimates",
        progress=False,
    )
"""


def contents(folder):
    files = [*(folder / "cells").glob("*"), *(folder / "estimates").rglob("*.parquet")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def shards(folder):
    return len(list(folder.rglob("[0-9]*.parquet")))


@pytest.mark.slow
def test_tables_of_a_killed_study_are_byte_identical(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)

    def begin(folder, n_jobs):
        command = [sys.executable, str(script), str(tmp_path / folder), str(n_jobs)]
        return subprocess.Popen(command, start_new_session=True)

    assert begin("whole", 1).wait() == 0
    rng = np.random.default_rng(7)
    folder, hits = tmp_path / "killed", 0
    for n_jobs in (1, 2, 1):
        process, before = begin("killed", n_jobs), shards(folder)
        while process.poll() is None and shards(folder) <= before:
            time.sleep(0.005)
        time.sleep(rng.uniform(0.0, 0.1))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            hits += process.wait() == -signal.SIGKILL
    assert hits >= 2
    assert begin("killed", 2).wait() == 0
    assert contents(folder) == contents(tmp_path / "whole")
    assert len(contents(folder)) == 2 + 2 * 3  # shards of 256 runs
    assert str(Study.load(folder)) == str(Study.load(tmp_path / "whole"))


def group(leader):
    """Processes of a session that was started with its leader."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile
            fields = (place / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader and fields[0] != "Z":
                found.append(int(place.name))
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are listed by Linux")
def test_workers_end_with_a_study_that_is_told_to_stop(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("600", "100_000"))
    folder = tmp_path / "stopped"
    process = subprocess.Popen([sys.executable, str(script), str(folder), "2"], start_new_session=True)
    while shards(folder) == 0:
        assert process.poll() is None
        time.sleep(0.05)
    assert len(group(process.pid)) >= 3
    process.terminate()
    assert process.wait(30) == 128 + signal.SIGTERM
    until = time.monotonic() + 10
    while group(process.pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert group(process.pid) == []
