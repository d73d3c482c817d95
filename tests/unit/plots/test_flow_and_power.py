"""Flow diagrams count what a log knows; power curves draw what a plan found."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

import adaptinf as ai
from adaptinf import plots
from adaptinf.audit.simulation.simulated_power import Power
from adaptinf.errors import ParameterError


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    plt.close("all")


def trial(missing: str = "drop") -> ai.AdaptiveLog:
    frame = pd.DataFrame(
        {
            "assigned": ["a", "a", "a", "b", "b", "b", "b", "b"],
            "got": ["a", "b", "a", "b", "b", "b", "a", "b"],
            "y": [1, 0, None, 1, None, None, 0, 1],
            "who": [1, 1, 2, 3, 4, 5, 5, 5],
        }
    )
    return ai.AdaptiveLog(
        frame,
        action="got",
        assigned="assigned",
        reward="y",
        unit="who",
        propensity=0.5,
        missing=missing,
        reward_range=(0, 1),
    )


def counts(table: Any) -> dict[str, list[int]]:
    return {str(stage): part["rounds"].tolist() for stage, part in table.groupby("stage", sort=False)}


def test_stages_count_what_the_log_knows() -> None:
    table = plots.flow.frame(trial())
    assert counts(table) == {
        "in the log": [8],
        "assigned": [3, 5],
        "received as assigned": [2, 4],
        "received another arm": [1, 1],
        "outcome recorded": [2, 3],
        "outcome missing": [1, 2],
        "analysed": [2, 3],
    }
    assert table["units"].tolist()[:3] == [5, 2, 3]
    assert counts(plots.flow.frame(trial("worst")))["analysed"] == [3, 5]
    some = counts(plots.flow.frame(trial(), rounds=np.arange(8) < 5))
    assert (some["assigned"], some["analysed"]) == ([3, 5], [2, 1])


def test_stages_that_are_not_known_are_left_out() -> None:
    log = ai.designs.Uniform().run(ai.environments.BernoulliArms([0.3, 0.6]), horizon=50, rng=0)
    assert set(plots.flow.frame(log)["stage"]) == {"in the log", "assigned", "analysed"}


def test_boxes_have_the_numbers_and_do_not_overlap() -> None:
    ax = plots.flow(trial())
    texts = [text.get_text() for text in ax.texts if text.get_text()]
    assert texts[0] == "In the log\nn = 8 (5 participants)"
    assert texts[1:3] == ["a\nassigned\nn = 3 (2 participants)", "b\nassigned\nn = 5 (3 participants)"]
    assert texts[3] == "received it\nn = 2 (2 participants)\n(received another arm: 1)".replace(
        " (2 participants)", ""
    )
    assert texts[-1] == "analysed\nn = 3 (2 participants)"
    ax.figure.canvas.draw()
    boxes = [text.get_bbox_patch().get_window_extent() for text in ax.texts if text.get_text()]
    assert not [pair for pair in itertools.combinations(boxes, 2) if pair[0].overlaps(pair[1])]


def test_many_arms_are_a_table() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"arm": rng.integers(0, 12, 500), "y": rng.random(500)})
    log = ai.AdaptiveLog(frame, action="arm", reward="y")
    texts = [text.get_text() for text in plots.flow(log).texts]
    pulls = np.bincount(frame["arm"], minlength=12)
    assert texts[:3] == ["In the log: n = 500", "assigned", "analysed"]
    assert texts[3:6] == ["arm 0", f"{pulls[0]}", f"{pulls[0]}"]


def test_rounds_belong_to_logs_alone() -> None:
    rows = {"arm": ["a", "b"], "n": [30, 10], "y": [12, 9]}
    sums = ai.Sums(pd.DataFrame(rows), arm="arm", n="n", sum="y", sum_squares="y")
    with pytest.raises(ParameterError, match="rounds must be omitted"):
        plots.flow(sums, rounds=[True])


def plan(sizes: tuple[int, ...] = (100, 200), alpha: float = 0.05) -> Power:
    rows = []
    for (name, truth, first), size in itertools.product((("equal", 0.0, 0.05), ("better", 0.2, 0.3)), sizes):
        share = first * size / 100 if truth else first
        rows.append(
            {"scenario": name, "horizon": size, "analysis": "", "term": "1 - 0", "truth": truth, "null": 0.0}
            | {"kind": "power" if truth else "type-I error", "rejection": share}
            | {"rejection_low": share - 0.03, "rejection_high": share + 0.04}
        )
    return Power(pd.DataFrame(rows), alpha, "a design", 500)


def test_power_is_a_curve_for_each_scenario() -> None:
    ax = plots.power(plan())
    equal, better = ax.get_lines()[:2]
    assert equal.get_xydata().tolist() == [[100, 0.05], [200, 0.05]]
    assert better.get_xydata().tolist() == [[100, 0.3], [200, 0.6]]
    assert equal.get_linestyle() != better.get_linestyle() == "-"
    corners = ax.collections[1].get_paths()[0].vertices
    assert {0.27, 0.34, 0.57, 0.64} <= {round(float(y), 9) for y in corners[:, 1]}
    assert [text.get_text() for text in ax.texts] == ["level 0.05", "equal", "better"]
    assert ax.get_xlabel() == "rounds"


def test_one_size_is_drawn_over_the_effects() -> None:
    frame = plots.power.frame(plan((100,)))
    assert frame[["name", "x", "rejected"]].to_numpy().tolist() == [["power", 0.0, 0.05], ["power", 0.2, 0.3]]
    assert plots.power(plan((100,))).get_xlabel() == "true effect less the null"
    several = plots.power.frame(plan(), over="effect")
    assert several["name"].unique().tolist() == ["100 rounds", "200 rounds"]


def test_a_sample_size_has_its_target_and_what_was_found() -> None:
    found = ai.audit.sample_size(
        ai.designs.Uniform(), ai.environments.BernoulliArms([0.2, 0.8]), "conditional"
    )
    ax = plots.power(found)
    frame = plots.power.frame(found)
    own = frame[frame["kind"] == "power"]
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), own["rejected"])
    np.testing.assert_array_equal(own["rejected"], found.frame["power"])
    assert [text.get_text() for text in ax.texts][:2] == ["level 0.05", "power 0.8"]
    assert [found.horizon, found.horizon] in [list(line.get_xdata()) for line in ax.get_lines()]


def test_what_is_no_plan_is_refused() -> None:
    given: Any = pd.DataFrame()
    with pytest.raises(ParameterError, match="2 problems"):
        plots.power(given, over="time")
    unknown = plan()
    unknown.frame["kind"] = "no test"
    with pytest.raises(ParameterError, match="no shares of rejections to draw over the rounds"):
        plots.power(unknown)
