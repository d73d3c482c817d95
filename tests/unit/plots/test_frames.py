"""Every picture draws the numbers of its own frame, which needs no matplotlib and describes its columns."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.dates import date2num
from matplotlib.patches import Rectangle, StepPatch

import adaptinf as ai
from adaptinf import plots
from adaptinf.audit.privacy.lower_bound import EpsilonLowerBound
from adaptinf.audit.simulation.simulated_coverage import Coverage
from adaptinf.audit.simulation.simulated_power import Power
from adaptinf.audit.simulation.study_tables import Study
from adaptinf.errors import ParameterError

WITH_FRAMES = [name for name in plots.__all__ if name not in ("figure", "save", "save_table", "theme")]


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def log() -> ai.AdaptiveLog:
    design = ai.designs.EpsilonGreedy(exploration=0.5)
    frame = design.run(ai.environments.BernoulliArms([0.3, 0.35, 0.6]), horizon=900, rng=2).frame
    frame = frame.assign(t=pd.date_range("2026-03-02", periods=900, freq="47min"))
    return ai.AdaptiveLog(
        frame,
        action="action",
        reward="reward",
        round="t",
        propensities="propensity_{arm}",
        reward_range=(0, 1),
    )


def study() -> Study:
    rows = {"analysis": ["x", "y"], "term": ["a", "a"], "coverage": [0.95, 0.8], "rejected": [0.05, 0.4]}
    rows |= {"runs": [200, 100], "missing": [0, 25], "missing_share": [0.0, 0.2], "note": ["", ""]}
    rows |= {"design": ["u", "u"], "environment": ["e", "e"], "horizon": [100, 100]}
    rows |= {name: [0, 0] for name in ("invalid", "failed", "absent")}
    return Study(pd.DataFrame(rows), pd.DataFrame(), {"alpha": 0.05})


def plan() -> Power:
    rows = [
        {"scenario": name, "horizon": size, "analysis": "", "term": "1 - 0", "truth": truth, "null": 0.0}
        | {"kind": kind, "rejection": share, "rejection_low": share - 0.03, "rejection_high": share + 0.04}
        for name, truth, kind, shares in (
            ("equal", 0.0, "type-I error", (0.05, 0.04)),
            ("better", 0.2, "power", (0.3, 0.7)),
        )
        for size, share in zip((100, 200), shares, strict=True)
    ]
    return Power(pd.DataFrame(rows), 0.05, "a design", 500)


def cases(log: ai.AdaptiveLog) -> dict[str, tuple[Any, dict[str, Any], tuple[str, ...]]]:
    """What each picture takes, and the columns whose numbers must be seen in it."""
    spent = {100: [9.0, 12.0, 15.0], 10: [1.0, 2.0, 6.0]}
    bound = EpsilonLowerBound(0.8, 0.95, 0.0, 200, 100, (50, 20), "an event", "a", ai.PrivacyGuarantee(1.0))
    points = pd.DataFrame({"regret": [30.0, 50.0], "error": [0.02, 0.01], "error_se": [0.001, 0.002]})
    local = ai.designs.LDPBandit(epsilon=8.0, check_every=50).run(
        ai.environments.SmoothArms(), horizon=20_000, rng=0
    )
    runs = ai.designs.UCB().replicate(ai.environments.BernoulliArms([0.3, 0.6]), 100, 64, rng=0)
    contrasts = ai.Contrasts(log, control=0).fit()
    sequence = ai.ConfidenceSequence(log).fit(method="empirical-bernstein")
    interval = ("estimate", "low", "high")
    return {
        "allocation": (log, {}, ("share", "start", "end")),
        "bias": (runs, {}, ("bias", "low", "high")),
        "confidence_sequence": (sequence, {"truth": 0.4}, ("estimate", "date", "truth")),
        "coverage": (Coverage(study().frame, 0.1, "d", "e", 9, 9), {}, ("share", "low", "high", "nominal")),
        "flow": (log, {}, ("rounds",)),
        "forest": (contrasts, {"simultaneous": True, "truth": 0.1}, (*interval, "truth", "null")),
        "frontier": (points, {}, ("regret", "error", "error_low", "error_high")),
        "means": (log, {"every": "week"}, ("mean", "low", "high")),
        "partition": (local, {}, ("low_x1",)),
        "power": (plan(), {}, ("x", "rejected", "low", "high")),
        "privacy": ([bound], {}, ("measured", "promised")),
        "propensities": (log, {"log_scale": False, "floor": 0.1}, ("round", "propensity")),
        "pvalues": (np.linspace(0.0, 0.9, 40), {"bins": 4}, ("share", "uniform", "band_low", "start")),
        "regret": (spent, {}, ("round", "regret", "low", "high")),
        "study": (study(), {}, ("value", "low", "high", "reference")),
        "winner": (ai.Winner(log).fit(), {"limits": (-9.0, 9.0)}, interval),
    }


def numbers(page: Any) -> Any:
    """All numbers that stand in the artists of a figure, dates as matplotlib counts them."""
    found: list[Any] = []
    for ax in page.axes:
        for line in ax.get_lines():
            found += [_plain(line.get_xdata()), _plain(line.get_ydata())]
        for collection in ax.collections:
            found += [np.ravel(path.vertices) for path in collection.get_paths()]
        for patch in ax.patches:
            if isinstance(patch, StepPatch):
                found += [patch.get_data().values, patch.get_data().edges]
            elif isinstance(patch, Rectangle):
                found.append(np.array(patch.get_bbox().extents))
        told = " ".join(text.get_text() for text in ax.texts)
        found.append(np.array([float(part.replace(",", "")) for part in re.findall(r"\d[\d,]*", told)]))
    every = np.concatenate([np.asarray(part, dtype=float).ravel() for part in found])
    return every[np.isfinite(every)]


def _plain(values: Any) -> Any:
    given = np.asarray(values)
    return date2num(given) if given.dtype.kind == "M" else given


def test_every_picture_has_a_frame_and_a_case(log: ai.AdaptiveLog) -> None:
    assert sorted(cases(log)) == sorted(WITH_FRAMES)


@pytest.mark.parametrize("name", WITH_FRAMES)
def test_pictures_draw_the_numbers_of_their_frames(name: str, log: ai.AdaptiveLog) -> None:
    given, options, columns = cases(log)[name]
    picture = getattr(plots, name)
    own = {key: value for key, value in options.items() if key in inspect.signature(picture.frame).parameters}
    frame = picture.frame(given, **own)
    drawn = picture(given, **options)
    shown = numbers(drawn if name == "study" else drawn.figure)
    for column in columns:
        values = _plain(frame[column].to_numpy())
        values = np.unique(np.asarray(values, dtype=float)[np.isfinite(np.asarray(values, dtype=float))])
        assert values.size
        gap = np.abs(shown[:, None] - values[None, :]).min(axis=0)
        assert gap.max() <= 1e-6 * max(1.0, float(np.abs(values).max())), (column, values[gap > 1e-6])


@pytest.mark.parametrize("name", WITH_FRAMES)
def test_frames_say_what_their_columns_are(name: str, log: ai.AdaptiveLog) -> None:
    picture = getattr(plots, name)
    frame: Callable[..., pd.DataFrame] = picture.frame
    assert (frame.__name__, frame.__qualname__) == ("frame", f"{name}.frame")
    taken = inspect.signature(frame).parameters
    assert "problems" not in taken
    assert set(taken) < set(inspect.signature(picture).parameters)
    given, options, _ = cases(log)[name]
    columns = frame(given, **{key: value for key, value in options.items() if key in taken}).columns
    text = inspect.getdoc(frame) or ""
    assert [column for column in columns if f"`{column}`" not in text] == []
    assert text.partition(">>> ")[2].startswith("import adaptinf as ai")
    assert f"{name}.frame" in (inspect.getdoc(picture) or "")


@pytest.mark.parametrize("name", WITH_FRAMES)
def test_frames_need_no_matplotlib(name: str, log: ai.AdaptiveLog, monkeypatch: pytest.MonkeyPatch) -> None:
    given, options, _ = cases(log)[name]
    frame = getattr(plots, name).frame
    own = {key: value for key, value in options.items() if key in inspect.signature(frame).parameters}
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert len(frame(given, **own))


@pytest.mark.parametrize("name", WITH_FRAMES)
def test_frames_refuse_what_their_pictures_refuse(name: str) -> None:
    given: Any = "nothing"
    with pytest.raises(ParameterError, match=f"^plots.{name}: "):
        getattr(plots, name).frame(given)
