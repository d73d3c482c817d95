"""The study of a leaderboard's winner: literal intervals, a simulation, and how its table is fetched."""

from __future__ import annotations

import urllib.error
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from adaptinf import winner_interval
from case_studies.llm_arena import data
from case_studies.llm_arena.intervals import coverage, hybrid_on_a_grid, locally_simultaneous, ours

RATES = np.array([0.50, 0.59, 0.57, 0.31])
ERRORS = np.array([0.03, 0.02, 0.025, 0.02])


@pytest.mark.parametrize("alpha", [0.05, 0.1])
def test_the_hybrid_interval_is_that_of_its_definition(alpha: float) -> None:
    found = winner_interval(RATES, np.diag(ERRORS**2), alpha=alpha)
    assert hybrid_on_a_grid(RATES, ERRORS, alpha) == pytest.approx((found.low, found.high), abs=2e-5)
    table = ours(RATES, ERRORS, alpha).set_index("method")
    assert table.loc["usual"].tolist() == pytest.approx(norm.interval(1 - alpha, 0.59, 0.02), rel=1e-9)
    assert table.loc["hybrid"].tolist() == [found.low, found.high]


def test_locally_simultaneous_intervals_adjust_for_those_that_may_be_best() -> None:
    low, high = locally_simultaneous(RATES, ERRORS, 0.05)
    half = norm.isf(0.045 / 6) * 0.02  # three of the four may be
    assert (low, high) == pytest.approx((0.59 - half, 0.59 + half), rel=1e-9)


def test_the_usual_interval_of_a_winner_of_many_equals_undercovers() -> None:
    table = coverage(np.full(20, 0.4), np.full(20, 0.02), 0.05, 400, 1).set_index("method")
    assert table.loc["usual", "coverage"] < 0.75
    assert table.loc["hybrid", "coverage"] > 0.92
    assert table.loc["usual", "bias"] == pytest.approx(1.867 * 0.02, abs=0.003)  # mean of the largest of 20


def test_another_table_is_refused_and_a_missing_one_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(*_: Any, **__: Any) -> None:
        raise urllib.error.URLError("no network")

    monkeypatch.setattr(data.urllib.request, "urlopen", absent)
    with pytest.raises(data.DataMissingError, match=r"could not be fetched: .*no network.*\nPut https://raw"):
        data.table(tmp_path)
    (tmp_path / data.TABLE).write_text("LLM,win_rate,sigma\na,0.5,0.1\n")
    with pytest.raises(data.DataMissingError, match=f"not {data.SHA256}: delete it"):
        data.table(tmp_path)
