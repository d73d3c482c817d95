"""Trials behind their services, whose files are for their owner alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from served import Served, serving, trial_at

import adaptinf as ai


@pytest.fixture(autouse=True)
def owners_files() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trial.db"


@pytest.fixture
def served(path: Path) -> Iterator[Served]:
    yield from serving(trial_at(path))


@pytest.fixture
def contextual(path: Path) -> Iterator[Served]:
    design = ai.designs.EpsilonGreedy(batch_size=7)
    yield from serving(ai.Trial.create(path, design, ["A", "B"], horizon=50, features=["young", "old"]))
