"""Pictures of confidence sequences: dates, what is in sight, and at most three bands a panel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.dates import num2date

import adaptinf as ai
from adaptinf import plots
from adaptinf.errors import ParameterError


@pytest.fixture(autouse=True)
def _closed() -> Any:
    yield
    plt.close("all")


def log_of(arms: int, dated: bool = True) -> ai.AdaptiveLog:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"arm": rng.integers(0, arms, 900), "reward": rng.integers(0, 2, 900)})
    if dated:  # most rounds are in the first days
        days = 80.0 * np.linspace(0.0, 1.0, 900) ** 3
        frame["when"] = pd.Timestamp("2026-03-02") + pd.to_timedelta(days + np.arange(900) * 1e-6, unit="D")
    return ai.AdaptiveLog(
        frame, action="arm", reward="reward", round="when" if dated else None, reward_range=(0, 1)
    )


def sequence_of(log: ai.AdaptiveLog, **options: Any) -> Any:
    return ai.ConfidenceSequence(log, **options).fit(method="empirical-bernstein")


def test_dates_are_on_the_axis_where_the_log_has_them() -> None:
    log = log_of(2)
    sequence = sequence_of(log)
    ax = plots.confidence_sequence(sequence, rounds=[10, 300, 900])
    assert ax.get_xlabel() == "date"
    drawn = ax.get_lines()[0].get_xdata()
    np.testing.assert_array_equal(drawn, log.column("when")[[9, 299, 899]])
    for log_scale in (False, True):  # rounds where they are asked for
        ax = plots.confidence_sequence(sequence, rounds=[10, 300, 900], log=log_scale)
        assert ax.get_xlabel() == "round"
        assert ax.get_lines()[0].get_xdata().tolist() == [10, 300, 900]
        assert ax.get_xscale() == ("log" if log_scale else "linear")


def test_rounds_are_even_in_time_between_the_first_date_and_the_last() -> None:
    sequence = sequence_of(log_of(2))
    times = (
        plots.confidence_sequence(sequence).get_lines()[0].get_xdata().astype("datetime64[h]").astype(float)
    )
    gaps = np.diff(times) / 24.0
    assert (times[-1] - times[0]) / 24.0 == pytest.approx(80.0, abs=1.0)
    assert gaps.max() < 80.0 / 47.0 + 0.5
    rounds = plots.confidence_sequence(sequence, log=False).get_lines()[0].get_xdata()
    np.testing.assert_allclose(np.diff(rounds), 899 / 47, atol=1.0)


def test_dates_of_some_rounds_are_theirs() -> None:
    log = log_of(2)
    keep = np.arange(900) % 3 == 0
    ax = plots.confidence_sequence(sequence_of(log, rounds=keep), rounds=[5, 300])
    np.testing.assert_array_equal(ax.get_lines()[0].get_xdata(), log.column("when")[keep][[4, 299]])
    shown = [num2date(tick) for tick in ax.get_xlim()]
    assert shown[0].year == shown[1].year == 2026


def test_axes_end_where_the_intervals_in_sight_do() -> None:
    sequence = sequence_of(log_of(2, dated=False))
    ax = plots.confidence_sequence(sequence, terms=["1"])
    table = sequence.table()
    table = table[table["term"] == "1"]
    width = table["high"] - table["low"]
    near = table[width <= 2.0 * width.iloc[-1]]
    assert 1 < near["t"].iloc[0] < 900
    assert ax.get_xlim() == pytest.approx((near["t"].iloc[0], 900))
    low, high = near["low"].min(), near["high"].max()
    assert ax.get_ylim() == pytest.approx((low - 0.06 * (high - low), high + 0.06 * (high - low)))


@pytest.mark.parametrize(("arms", "panels"), [(3, [3]), (4, [2, 2]), (7, [3, 2, 2])])
def test_no_panel_has_more_than_three_bands(arms: int, panels: list[int]) -> None:
    first = plots.confidence_sequence(sequence_of(log_of(arms)), truth=0.5)
    axes = first.figure.axes
    assert first is axes[0]
    assert [len(ax.collections) for ax in axes] == panels
    named = [text.get_text() for ax in axes for text in ax.get_legend().get_texts()]
    assert [name for name in named if name != "true value"] == [f"arm {arm}" for arm in range(arms)]
    assert len({ax.get_ylim() for ax in axes}) == 1
    assert [ax.get_xlabel() for ax in axes] == [""] * (len(axes) - 1) + ["date"]


def test_axes_that_are_given_take_three_bands() -> None:
    sequence = sequence_of(log_of(4))
    ax = plots.figure()[1]
    with pytest.raises(ParameterError, match="room for 3 bands, not 4"):
        plots.confidence_sequence(sequence, ax)
    assert plots.confidence_sequence(sequence, ax, terms=["0", "2", "3"]) is ax


def test_sequences_of_sums_have_the_ends_of_batches() -> None:
    rows = {"batch": [1, 1, 2, 2], "arm": ["a", "b"] * 2, "n": [300, 300] * 2, "y": [120, 90, 118, 101]}
    named = {"batch": "batch", "arm": "arm", "n": "n", "sum": "y", "sum_squares": "y"}
    sums = ai.Sums(pd.DataFrame(rows), **named, reward_range=(0, 1))
    ax = plots.confidence_sequence(ai.ConfidenceSequence(sums).fit(), log=False)
    assert ax.get_lines()[0].get_xdata().tolist() == [600, 1200]
