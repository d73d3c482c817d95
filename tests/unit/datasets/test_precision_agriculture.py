"""The farmer trial: its file is not shipped; one of its form has the published counts over fourteen days."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import adaptinf as ai
from adaptinf.errors import LogValidationError, ParameterError
from adaptinf.log import AdaptiveLog

SUCCESSES = (139, 624, 324, 48, 166, 222)
CALLS = (867, 3188, 1766, 334, 987, 1258)


def write(path: Path) -> Path:
    rng = np.random.default_rng(5)
    arms = np.repeat(np.arange(1, 7), CALLS)
    outcome = np.concatenate(
        [np.arange(calls) < wins for calls, wins in zip(CALLS, SUCCESSES, strict=True)]
    ).astype(int)
    order = rng.permutation(len(arms))
    days = [30, 28, 26, 24, 22, 20, 18, 15, 13, 11, 9, 7, 5, 3]
    dates = [f"{'06' if day == 30 else '6'}/{day}/2019" for day in np.repeat(days, 600)]
    table = pd.DataFrame({"treatment": arms[order], "outcome": outcome[order], "date": dates})
    table.to_csv(path, index=False)
    return path


def test_in_the_order_of_the_file_it_is_refused_and_sorted_it_gives_the_published_ranking(
    tmp_path: Path,
) -> None:
    frame = ai.datasets.farmer_trial(write(tmp_path / "combined_outcomes.csv"))
    roles = {"action": "treatment", "reward": "outcome", "batch": "date"}
    with pytest.raises(LogValidationError, match=r"batch column 'date' decreases: .* set 'sort' to True"):
        AdaptiveLog(frame, **roles)
    log = AdaptiveLog(frame, **roles, reading={"sort": True})
    assert log.arrays.batch is not None
    assert np.bincount(log.arrays.batch).tolist() == [600] * 14
    means = ai.ArmMeans(log).fit("sample-mean").params
    assert means.sort_values(ascending=False).index.tolist() == ["2", "3", "6", "5", "1", "4"]
    np.testing.assert_allclose(means["2"], 624 / 3188, rtol=1e-12)


def test_other_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"download data/combined_outcomes\.csv of the public repository"
    ):
        ai.datasets.farmer_trial(tmp_path / "nowhere.csv")
    path = tmp_path / "x.csv"
    path.write_text("arm,outcome\n1,0\n")
    with pytest.raises(ParameterError, match="must have the columns"):
        ai.datasets.farmer_trial(path)
    path.write_text("treatment,outcome,date\n1,0,6/3/2019\n7,2,6/3/2019\n")
    with pytest.raises(ParameterError) as caught:
        ai.datasets.farmer_trial(path)
    assert len(caught.value.problems) == 2
