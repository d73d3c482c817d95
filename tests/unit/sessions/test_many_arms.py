"""Arms by the hundred thousand: memory in proportion to their number, or one clear error."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaptinf.designs import Thompson
from adaptinf.errors import ParameterError
from adaptinf.trial import Trial


@pytest.mark.slow
def test_a_trial_of_very_many_arms_is_made(tmp_path: Path) -> None:
    """It was a MemoryError: a table of arms by arms, of 75 GiB."""
    with Trial.create(tmp_path / "trial.db", Thompson(floor=1e-7), arms=100_000, horizon=3) as trial:
        assert len(trial.arms) == 100_000
        assert trial.assign("somebody", key=1).id == 1
        assert trial.record(1, 1.0, key=2).in_time


def test_what_no_memory_holds_is_said(tmp_path: Path) -> None:
    path = tmp_path / "trial.db"
    with pytest.raises(
        ParameterError, match=r"10,000,000 rounds of 100,000 arms require more memory.*GiB"
    ) as told:
        Trial.create(path, Thompson(floor=1e-7), arms=100_000, horizon=10_000_000)
    assert told.value.__context__ is None
    assert not path.exists()
