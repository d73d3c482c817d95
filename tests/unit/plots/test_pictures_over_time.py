"""Shares as steps and means by day, batch or stretch; names beside lines; contrast sequences; themes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from matplotlib.text import Text

import adaptinf as ai
from adaptinf import plots
from adaptinf.claims.reports.pictures import UNCOVERED
from adaptinf.errors import InvalidForLog, MissingDependencyError, ParameterError
from adaptinf.plots.style import COLOURS, apart, short_names


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    plt.close("all")


def log_of(action: Any, arms: int, reward: Any = None, **columns: Any) -> ai.AdaptiveLog:
    action = np.asarray(action)
    names = [f"v{arm}" for arm in range(arms)]
    frame = pd.DataFrame({"arm": np.array(names)[action], "y": 0.0 if reward is None else reward})
    taken = {"days": "round", "batches": "batch"}
    for name, values in columns.items():
        frame[name] = values
    given = {taken[name]: name for name in columns if name in taken}
    return ai.AdaptiveLog(frame, action="arm", reward="y", arms=names, reward_range=(0, 1), **given)


def random_log(arms: int, rounds: int = 2_000, **columns: Any) -> ai.AdaptiveLog:
    rng = np.random.default_rng(arms)
    weights = np.arange(1.0, arms + 1.0) / np.arange(1.0, arms + 1.0).sum()
    return log_of(rng.choice(arms, rounds, p=weights), arms, rng.integers(0, 2, rounds), **columns)


def named(ax: Any) -> dict[str, str]:
    """Names beside lines, with their colours."""
    return {text.get_text(): to_hex(text.arrow_patch.get_edgecolor()) for text in ax.texts}


def test_steps_are_days_and_a_day_without_rounds_is_a_gap() -> None:
    days = pd.to_datetime(
        ["2026-03-02", "2026-03-02", "2026-03-03", "2026-03-05", "2026-03-06", "2026-03-06"]
    )
    log = log_of([0, 1, 1, 0, 1, 1], 2, days=days)
    frame = plots.allocation.frame(log)
    own = frame[frame["arm"] == "v1"]
    assert own["share"].tolist() == [0.5, 1.0, 0.0, 1.0]
    assert own["start"].dt.day.tolist() == [2, 3, 5, 6]
    assert own["end"].dt.day.tolist() == [3, 4, 6, 7]
    ax = plots.allocation(log)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("date", "share of the day")
    drawn = ax.get_lines()[1].get_ydata()
    np.testing.assert_array_equal(drawn, [0.5] * 3 + [1.0] * 3 + [np.nan] + [0.0] * 3 + [1.0] * 3)


def test_steps_are_the_finest_periods_that_can_be_read() -> None:
    units = {}
    for frequency in ("4s", "1min", "1h", "19h"):
        days = pd.date_range("2026-03-02", periods=2_000, freq=frequency)
        units[frequency] = plots.allocation(random_log(2, days=days)).get_ylabel()
    assert units == {
        "4s": "share of the 100 rounds",
        "1min": "share of the hour",
        "1h": "share of the week",
        "19h": "share of the month",
    }
    log = random_log(2, days=pd.date_range("2026-03-02", periods=2_000, freq="1h"))
    month = plots.allocation.frame(log, every="month")
    assert month["start"].dt.month.unique().tolist() == [3, 4, 5]
    assert month.groupby("start")["pulls"].sum().sum() == 2_000


def test_steps_are_batches_where_there_are_no_dates() -> None:
    log = random_log(3, batches=np.repeat(np.arange(5), 400))
    frame = plots.allocation.frame(log)
    assert frame["start"].unique().tolist() == [0.5, 1.5, 2.5, 3.5, 4.5]
    counts = np.array(
        [np.bincount(log.arrays.action[400 * k : 400 * k + 400], minlength=3) for k in range(5)]
    )
    np.testing.assert_allclose(frame["share"].to_numpy().reshape(3, 5).T, counts / 400)
    ax = plots.allocation(log)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("batch", "share of the batch")
    single = plots.allocation(random_log(3, batches=np.zeros(2_000, dtype=int)))
    assert single.get_xlim() == (0.5, 1.5)


def test_batches_of_dated_logs_begin_at_their_first_date() -> None:
    days = pd.date_range("2026-03-02", periods=2_000, freq="1h")
    frame = plots.allocation.frame(random_log(2, days=days, batches=np.repeat([0, 1], 1_000)), every="batch")
    first = frame[frame["arm"] == "v0"]
    assert first["start"].tolist() == [days[0], days[1_000]]
    assert first["end"].tolist() == [days[1_000], days[1_000] + pd.Timedelta(hours=1_000)]


def test_sums_have_their_batches() -> None:
    rows = {"batch": [1, 1, 2, 2], "arm": ["a", "b"] * 2, "n": [30, 10, 5, 15], "y": [12, 9, 1, 4]}
    sums = ai.Sums(pd.DataFrame(rows), batch="batch", arm="arm", n="n", sum="y", sum_squares="y")
    frame = plots.allocation.frame(sums)
    assert frame["share"].tolist() == [0.75, 0.25, 0.25, 0.75]
    with pytest.raises(ParameterError, match="every must be 'batch' for sums"):
        plots.allocation(sums, every=3)
    flow = plots.flow.frame(sums)
    assert flow[["stage", "rounds"]].to_numpy().tolist() == [
        ["in the log", 60],
        ["assigned", 35],
        ["assigned", 25],
    ]


def test_eight_arms_have_a_colour_and_all_have_their_name() -> None:
    ax = plots.allocation(random_log(20))
    names = named(ax)
    assert sorted(names) == sorted(f"v{arm}" for arm in range(20))
    coloured = {name for name, colour in names.items() if colour.upper() in {one.upper() for one in COLOURS}}
    assert coloured == {f"v{arm}" for arm in range(12, 20)}  # those with the most rounds
    assert len({names[name] for name in coloured}) == 8
    assert {names[name] for name in set(names) - coloured} == {"#6e6e6e"}
    ax.figure.canvas.draw()
    boxes = sorted((Text.get_window_extent(text) for text in ax.texts), key=lambda box: box.y0)
    assert all(low.y1 <= high.y0 + 1.0 for low, high in itertools.pairwise(boxes))
    above = plots.allocation(random_log(20), legend="above").get_legend()
    assert above.get_texts()[-1].get_text() == "12 others"


def test_names_move_apart_as_little_as_may_be() -> None:
    np.testing.assert_allclose(apart(np.array([0.5, 0.5, 0.5]), 0.1), [0.4, 0.5, 0.6])
    np.testing.assert_allclose(apart(np.array([0.0, 0.01, 0.9]), 0.1), [0.0, 0.1, 0.9])
    np.testing.assert_allclose(apart(np.array([0.95, 0.99, 1.0]), 0.1), [0.8, 0.9, 1.0])


def test_long_names_keep_both_ends_and_stay_apart() -> None:
    long = [f"a very long name of some treatment, dose {dose}" for dose in (1, 2)]
    assert short_names(long) == ["a very long nam…, dose 1", "a very long nam…, dose 2"]
    middle = [f"a very long beginning {dose} and a very long ending" for dose in (1, 2)]
    assert short_names(middle) == ["1: a very long beginn…", "2: a very long beginn…"]


def test_means_are_those_of_an_analysis_of_the_step_alone() -> None:
    environment = ai.environments.BernoulliArms([0.3, 0.6])
    log = ai.designs.Thompson(floor=0.2).run(environment, horizon=600, rng=2)
    frame = plots.means.frame(log, every=200, alpha=0.1)
    for place in range(3):
        keep = np.arange(600) // 200 == place
        found = ai.ArmMeans(log, rounds=keep).fit()
        rows = frame[frame["end"] == 200 * (place + 1)]
        np.testing.assert_array_equal(rows["mean"], found.estimate)
        np.testing.assert_array_equal(rows[["low", "high"]], found.conf_int(0.1))
        assert rows["pulls"].tolist() == np.bincount(log.arrays.action[keep], minlength=2).tolist()
        assert set(rows["estimator"]) == {found.estimator}
        assert set(rows["validity"]) == {"asymptotic"}
    blind = ai.AdaptiveLog(
        log.frame[["action", "reward"]], action="action", reward="reward", about={"context_free": False}
    )
    with pytest.raises(InvalidForLog, match="contexts affected assignment"):
        plots.means(blind, every=200)


def test_an_arm_without_rounds_in_a_step_has_no_mean_there() -> None:
    frame = plots.means.frame(log_of([0, 0, 0, 1, 0, 1], 2, [0, 1, 0, 1, 1, 1]), every=3)
    assert frame["pulls"].tolist() == [3, 1, 0, 2]
    assert np.isnan(frame["mean"]).tolist() == [False, False, True, False]


def test_means_of_many_arms_have_a_panel_each() -> None:
    first = plots.means(random_log(5), every=500)
    titles = [ax.get_title(loc="left") for ax in first.figure.axes]
    assert titles == [f"v{arm}" for arm in range(5)]
    assert len({ax.get_ylim() for ax in first.figure.axes}) == 1
    with pytest.raises(ParameterError, match="room for 3 arms, not 5"):
        plots.means(random_log(5), plots.figure()[1])


def test_contrasts_have_the_control_as_axis() -> None:
    design = ai.designs.EpsilonGreedy(exploration=0.5)
    log = design.run(ai.environments.BernoulliArms([0.3, 0.4, 0.5]), horizon=600, rng=1)
    for result in (ai.Contrasts(log, control=1).fit(), ai.Contrasts(log, control=1).fit(lift=True)):
        ax = plots.forest(result)
        assert [label.get_text() for label in ax.get_yticklabels()] == ["arm 0", "arm 2"]
        [name] = [text for text in ax.texts if text.get_text() == "arm 1"]
        assert name.xy == (0.0, 1.0)
        assert ax.get_xlim()[0] < 0.0 < ax.get_xlim()[1]
    mixed = {
        "a": ai.Contrast(log, treatment=2, control=0).fit(),
        "b": ai.Contrast(log, treatment=2, control=1).fit(),
    }
    assert [label.get_text() for label in plots.forest(mixed).get_yticklabels()] == ["2 - 0", "2 - 1"]
    assert len(plots.forest(ai.ArmMeans(log).fit()).texts) == 0


def test_sequences_of_contrasts_are_those_of_single_ones() -> None:
    log = random_log(4, 800)
    every = ai.ConfidenceSequence(log, "contrast", control="v1").fit(method="empirical-bernstein")
    assert every.terms == ("v0 - v1", "v2 - v1", "v3 - v1")
    two = ai.ConfidenceSequence(log, "contrast", treatment=["v3", "v0"], control="v1").fit(
        "empirical-bernstein"
    )
    assert two.terms == ("v3 - v1", "v0 - v1")
    for term in every.terms:
        one = ai.ConfidenceSequence(log, "contrast", treatment=term[:2], control="v1")
        expected = one.fit(method="empirical-bernstein").conf_int().loc[term]
        np.testing.assert_array_equal(every.conf_int().loc[term], expected)
    with pytest.raises(ParameterError, match="treatment must contain at least one arm"):
        ai.ConfidenceSequence(log, "contrast", treatment=[], control="v1")


def test_sequences_of_contrasts_have_a_panel_for_each_arm() -> None:
    log = random_log(4, 800)
    sequence = ai.ConfidenceSequence(log, "contrast", control="v1").fit(method="empirical-bernstein")
    first = plots.confidence_sequence(sequence)
    axes = first.figure.axes
    assert [ax.get_title(loc="left") for ax in axes] == ["v0", "v2", "v3"]
    for ax in axes:
        assert [0.0, 0.0] in [list(line.get_ydata()) for line in ax.get_lines()]
    assert first.figure.get_supylabel() == "difference in mean\nreward, less v1"
    one = plots.confidence_sequence(sequence, terms=["v3 - v1"])
    assert one.get_ylabel() == "difference in mean reward, less v1"


def test_themes_change_the_ground_and_the_width_and_nothing_afterwards() -> None:
    log = random_log(3)
    before = dict(matplotlib.rcParams)
    with plots.theme("dark", width=5.0):
        ax = plots.allocation(log)
        forest = plots.forest(ai.ArmMeans(log).fit(), truth=0.5)
    assert dict(matplotlib.rcParams) == before
    assert ax.figure.get_figwidth() == 5.0
    for own in (ax, forest):
        assert to_hex(own.get_facecolor()) == to_hex(own.figure.get_facecolor()) == "#131416"
        assert to_hex(own.xaxis.label.get_color()) == "#cfd0d0"
    [diamonds] = [line for line in forest.get_lines() if line.get_marker() == "D"]
    assert to_hex(diamonds.get_markeredgecolor()) == "#cfd0d0"
    assert plots.allocation(log).figure.get_figwidth() == 3.4
    with pytest.raises(ParameterError, match="2 problems"), plots.theme("blue", width=0.0):
        pass


def test_a_theme_needs_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError), plots.theme("dark"):
        pass


@pytest.fixture(scope="module")
def private() -> ai.AdaptiveLog:
    design = ai.designs.PrivateSuccessiveElimination(epsilon=1.0)
    return design.run(ai.environments.BernoulliArms([0.9, 0.5, 0.2]), horizon=6_000, rng=0)


def said(ax: Any) -> bool:
    """Whether a picture says that no guarantee covers it."""
    return ax.figure.get_supxlabel() == UNCOVERED() or UNCOVERED() in ax.get_xlabel()


def test_pictures_of_private_trials_say_what_is_not_covered(private: ai.AdaptiveLog) -> None:
    assert said(plots.means(private, every=1_000))
    assert said(plots.forest(ai.ArmMeans(private).fit("sample-mean")))
    assert said(plots.forest(ai.ArmMeans(private).fit("sample-mean"), plots.figure()[1]))
    assert not said(plots.allocation(private))  # actions by round are outputs
    frame = private.frame.assign(t=pd.date_range("2026-03-02", periods=6_000, freq="1h"))
    dated = ai.AdaptiveLog(
        frame, action="action", reward="reward", round="t", guarantee=private.guarantee, reward_range=(0, 1)
    )
    assert said(plots.allocation(dated))
    assert not said(plots.means(random_log(2), every=500))


def test_a_public_part_shows_what_is_covered_alone(private: ai.AdaptiveLog) -> None:
    public = private.public()
    assert plots.allocation.frame(public).equals(plots.allocation.frame(private))
    assert not said(plots.allocation(public))
    flow = plots.flow.frame(public)
    assert set(flow["stage"]) == {"in the log", "assigned"}
    counts = np.bincount(private.arrays.action, minlength=3)
    assert flow.loc[flow["arm"].notna(), "rounds"].tolist() == counts.tolist()
    released = ai.Contrast(public, treatment=0, control=1).fit()
    assert not said(plots.forest(released))
    given: Any = public
    with pytest.raises(ParameterError, match="whose rewards are known by round"):
        plots.means(given)
    groups = ai.environments.FiniteContext([0.5, 0.5], [[0.4, 0.7], [0.6, 0.3]])
    hidden = ai.designs.DPConSE(epsilon=1.0).run(groups, horizon=2_000, rng=0).public()
    with pytest.raises(InvalidForLog, match="own action"):
        plots.allocation(hidden)
    assert plots.flow.frame(hidden)["stage"].tolist() == ["in the log"]
