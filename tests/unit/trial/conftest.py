"""Files that these tests copy are for their owner alone, as those of trials are."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def owners_files() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)
