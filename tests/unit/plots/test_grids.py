"""Studies at the width of a page: what stands where, nothing upon anything else, mistakes named."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot

import adaptinf as ai
from adaptinf.errors import InvalidForLog, ParameterError

NAMES = ("sample-mean", "ipw", "aipw")


@pytest.fixture(scope="module")
def table() -> Any:
    designs = {
        "uniform": ai.designs.Uniform(),
        "epsilon-greedy": ai.designs.EpsilonGreedy(exploration=0.2),
        "Thompson sampling, normal prior, floor .1": ai.designs.Thompson(prior="normal", floor=0.1),
        "never arm 1": ai.designs.FunctionDesign(lambda state, context, rng: [1.0, 0.0]),
    }
    worlds = {name: ai.environments.NormalArms(means) for name, means in (("a", [0, 0]), ("b", [0, 1]))}
    analyses = {name: lambda log, name=name: ai.ArmMeans(log).fit(name) for name in NAMES}
    return ai.audit.study(designs, worlds, analyses, [20, 40], 64, rng=0, progress=False)


@pytest.mark.slow
def test_every_row_stands_once_where_it_belongs(table: Any) -> None:
    page = ai.plots.study(table)
    assert [ax.get_title().replace("\n", " ") for ax in page.axes] == table.frame["design"].unique().tolist()
    labels = [text.get_text() for text in page.axes[0].get_yticklabels()]
    places = list(itertools.product("ab", ("20", "40"), ("0", "1")))
    assert [label for label in labels if label.count(",") == 2] == [", ".join(place) for place in places]
    shown = {round(float(x), 9) for line in page.axes[1].lines for x in np.atleast_1d(line.get_xdata())}
    rows = table.frame[(table.frame["design"] == "epsilon-greedy") & (table.frame["runs"] > 0)]
    assert {round(share, 9) for share in rows["coverage"]} <= shown


@pytest.mark.slow
def test_no_text_lies_on_another(table: Any) -> None:
    for page in (ai.plots.study(table), ai.plots.study(table, "regret"), ai.plots.study(table, "bias")):
        page.canvas.draw()
        renderer = page.canvas.get_renderer()  # type: ignore[attr-defined]
        texts = [text for ax in page.axes for text in (ax.title, *ax.get_yticklabels())]
        for ax in page.axes:
            low, high = ax.get_xlim()
            texts += [text for text in ax.get_xticklabels() if low <= text.get_position()[0] <= high]
        texts += page.legends[0].get_texts()
        boxes = [text.get_window_extent(renderer) for text in texts if text.get_text()]
        assert not [pair for pair in itertools.combinations(boxes, 2) if pair[0].overlaps(pair[1])]
        outside = [
            text.get_text()
            for text in (*(ax.title for ax in page.axes), *page.legends[0].get_texts())
            if not 0.0
            <= text.get_window_extent(renderer).x0
            < text.get_window_extent(renderer).x1
            <= page.bbox.x1
        ]
        assert outside == []
        pyplot.close(page)


@pytest.mark.slow
def test_regret_is_one_number_a_cell(table: Any) -> None:
    page = ai.plots.study(table, "regret")
    assert [ax.get_title() for ax in page.axes] == ["a", "b"]
    drawn = sum(len(np.atleast_1d(line.get_xdata())) for ax in page.axes for line in ax.lines)
    assert drawn == 4 * 2 * 2


def test_a_refused_analysis_stands_in_the_rows_of_its_terms() -> None:
    def refused(log: Any) -> Any:
        raise InvalidForLog("mine", "it never is", [])

    study = ai.audit.study(
        {"uniform": ai.designs.Uniform(), "UCB": ai.designs.UCB()},
        {"a": ai.environments.NormalArms([0, 1])},
        {"means": lambda log: ai.ArmMeans(log).fit("sample-mean"), "mine": refused},
        [20],
        64,
        rng=0,
        progress=False,
    )
    page = ai.plots.study(study)
    assert [label.get_text() for label in page.axes[0].get_yticklabels()] == ["0", "1"]
    assert [text.get_text() for ax in page.axes for text in ax.texts] == ["no trial"] * 4


@pytest.mark.slow
def test_rows_can_be_chosen(table: Any) -> None:
    page = ai.plots.study(table, "bias", where={"design": "uniform", "term": "1"}, colour="environment")
    assert len(page.axes) == 1
    assert page.get_figwidth() == pytest.approx(3.4)
    with pytest.raises(ParameterError, match="no design 'x'"):
        ai.plots.study(table, where={"design": "x"})


@pytest.mark.slow
def test_everything_wrong_is_listed(table: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        ai.plots.study(table.frame, "power", panels="arm", width=0.1, alpha=0.9)
    for name in ("measure", "panels", "width", "alpha", "results"):
        assert name in str(caught.value)
    with pytest.raises(ParameterError, match="must differ"):
        ai.plots.study(table, panels="analysis", colour="analysis")
