"""A real cluster of worker processes gives the numbers of one process; sums, though a worker is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import joblib
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from sum_rows import NAMES, assert_same_cells, stacked

import adaptinf as ai

ARMS = ai.environments.BernoulliArms([0.4, 0.6])
DESIGN = ai.designs.Thompson(batch_size=20, floor=0.1)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": None, "host": "127.0.0.1"}
    with LocalCluster(n_workers=2, **options) as cluster, Client(cluster) as client:
        yield client


class Killed:
    """Kills the first worker process that comes by, once."""

    def __init__(self, marker: Path) -> None:
        self.marker, self.here = marker, os.getpid()

    def strike(self) -> None:
        if os.getpid() == self.here:
            return
        try:
            self.marker.mkdir()
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)

    def part(self, frame: pd.DataFrame) -> pd.DataFrame:
        self.strike()
        return frame

    def fitted(self, log: ai.AdaptiveLog) -> Any:
        self.strike()
        return means(log)

    def rewards(self, rng: np.random.Generator, horizon: int) -> Any:
        self.strike()
        return (rng.random((horizon, 2)) < [0.4, 0.6]).astype(float)


def means(log: ai.AdaptiveLog) -> Any:
    return ai.ArmMeans(log).fit("aipw")


def workers(client: Client) -> set[int]:
    return set(client.run(os.getpid).values())


@pytest.mark.slow
def test_sums_of_a_frame_whose_worker_is_killed(client: Client, tmp_path: Path) -> None:
    frame, expected = stacked()
    killed, before = Killed(tmp_path / "killed"), workers(client)
    rows = dd.from_pandas(frame, npartitions=6).map_partitions(killed.part, meta=frame[:0])
    found = ai.aggregate(rows, **NAMES, centre=expected.cells.centre)
    assert_same_cells(found, expected)
    client.wait_for_workers(2)
    assert killed.marker.exists()
    assert len(workers(client) - before) == 1


@pytest.mark.parametrize("n_jobs", [2, pytest.param(-1, marks=pytest.mark.slow)])
def test_replications_are_those_of_one_process(client: Client, n_jobs: int) -> None:
    alone = DESIGN.replicate(ARMS, 60, 500, rng=1)
    with joblib.parallel_config("dask"):
        spread = DESIGN.replicate(ARMS, 60, 500, rng=1, n_jobs=n_jobs)
    np.testing.assert_array_equal(spread.means, alone.means)
    np.testing.assert_array_equal(spread.pulls, alone.pulls)


@pytest.mark.slow
def test_coverage_though_a_worker_is_killed(client: Client, tmp_path: Path) -> None:
    killed, before = Killed(tmp_path / "killed"), workers(client)
    alone = ai.audit.coverage(DESIGN, ARMS, means, 40, 512, rng=2)
    with joblib.parallel_config("dask"):
        spread = ai.audit.coverage(DESIGN, ARMS, killed.fitted, 40, 512, rng=2, n_jobs=-1)
    pd.testing.assert_frame_equal(spread.frame, alone.frame, check_exact=True)
    client.wait_for_workers(2)
    assert killed.marker.exists()
    assert len(workers(client) - before) == 1


@pytest.mark.slow
def test_replications_though_a_worker_is_killed(client: Client, tmp_path: Path) -> None:
    killed, before = Killed(tmp_path / "killed"), workers(client)
    arms = ai.environments.FunctionEnvironment(killed.rewards, reward_range=(0.0, 1.0))
    alone = DESIGN.replicate(arms, 60, 500, rng=1)
    with joblib.parallel_config("dask"):
        spread = DESIGN.replicate(arms, 60, 500, rng=1, n_jobs=-1)
    np.testing.assert_array_equal(spread.means, alone.means)
    client.wait_for_workers(2)
    assert killed.marker.exists()
    assert len(workers(client) - before) == 1


@pytest.mark.slow
def test_coverage_is_that_of_one_process(client: Client) -> None:
    alone = ai.audit.coverage(DESIGN, ARMS, means, 40, 256, rng=2)
    with joblib.parallel_config("dask"):
        spread = ai.audit.coverage(DESIGN, ARMS, means, 40, 256, rng=2, n_jobs=-1)
    pd.testing.assert_frame_equal(spread.frame, alone.frame, check_exact=True)


@pytest.mark.slow
def test_a_study_is_that_of_one_process(client: Client, tmp_path: Path) -> None:
    kind: dict[str, Any] = {"analyses": {"means": means}, "horizons": [30, 40], "replications": 300}
    kind |= {"designs": {"thompson": DESIGN}, "environments": {"arms": ARMS}, "rng": 3, "progress": False}
    alone = ai.audit.study(**kind)
    with joblib.parallel_config("dask"):
        spread = ai.audit.study(**kind, path=tmp_path / "study", n_jobs=-1)
    pd.testing.assert_frame_equal(spread.frame, alone.frame, check_exact=True)
