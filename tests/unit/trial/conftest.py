"""What tests of trials share: a place on each database, and files for their owner alone, as trials' are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def owners_files() -> Iterator[None]:
    """Files that these tests copy are for their owner alone."""
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.fixture
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where a trial may be created: a file, or a database for a test marked by `both` or `on_a_server`."""
    if getattr(request, "param", "file") == "file":
        return tmp_path / "trial.db"
    pytest.importorskip("psycopg")
    from postgres_server import programs, server

    if programs() is None:
        pytest.skip("PostgreSQL is not installed")
    return server().database()
