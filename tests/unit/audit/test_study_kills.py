"""Studies whose processes are killed at random moments: the tables must not differ."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

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
        replications=1_500,
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
    for n_jobs in (1, 2, 1, 2):
        process, before = begin("killed", n_jobs), shards(folder)
        while process.poll() is None and shards(folder) <= before:
            time.sleep(0.005)
        time.sleep(rng.uniform(0.0, 0.1))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            hits += process.wait() == -signal.SIGKILL
    assert hits >= 3
    assert begin("killed", 2).wait() == 0
    assert contents(folder) == contents(tmp_path / "whole")
    assert len(contents(folder)) == 2 + 2 * 6
    assert str(Study.load(folder)) == str(Study.load(tmp_path / "whole"))
