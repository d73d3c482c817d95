"""A report has one number for one question: picture, table, paragraph and checklist agree."""

from __future__ import annotations

import functools
import html
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says
from read_pages import forest_rows, plain, table_rows

import adaptinf as ai
from adaptinf.claims.reports import answer, answers
from adaptinf.inference.results.tables import format_number
from adaptinf.reports.checklist import FOR_AUTHORS
from adaptinf.reports.shown_numbers import Shown


def _thompson() -> ai.AdaptiveLog:
    arms = ai.environments.BernoulliArms([0.2, 0.25, 0.3, 0.45])
    return ai.designs.Thompson(floor=0.1).run(arms, horizon=1_500, rng=1)


def _batched() -> ai.AdaptiveLog:
    arms = ai.environments.BernoulliArms([0.3, 0.4, 0.5])
    return ai.designs.EpsilonGreedy(exploration=0.4, batch_size=300).run(arms, horizon=1_500, rng=2)


def _grouped() -> ai.AdaptiveLog:
    rng = np.random.default_rng(3)
    arm, region, x = rng.choice(["a", "b"], 900), rng.choice(["n", "s"], 900), rng.normal(size=900)
    y = rng.normal(size=900) + 0.4 * (arm == "b") + 0.3 * x
    frame = pd.DataFrame({"arm": arm, "y": y, "region": region, "x": x, "p": 0.5})
    return ai.AdaptiveLog(
        frame, action="arm", reward="y", propensity="p", context=["region", "x"], adaptive=False
    )


def _private() -> ai.AdaptiveLog:
    arms = ai.environments.BernoulliArms([0.2, 0.7])
    return ai.designs.PrivateUCB(epsilon=0.02).run(arms, horizon=3_000, rng=4)


def _many() -> ai.AdaptiveLog:
    arms = ai.environments.BernoulliArms(np.linspace(0.2, 0.5, 14).tolist())
    return ai.designs.EpsilonGreedy(exploration=0.8).run(arms, horizon=4_000, rng=5)


Fit = Callable[[ai.AdaptiveLog], Any]
MEANS: list[Fit] = [
    lambda log, name=name: ai.ArmMeans(log).fit(name) for name in ("sample-mean", "ipw", "aipw", "alee")
]
CASES: list[tuple[Callable[[], ai.AdaptiveLog], list[Fit], tuple[Any, ...]]] = [
    (_thompson, MEANS, (None, "max-t", "holm")),
    (
        _batched,
        [MEANS[2], lambda log: ai.Contrast(log, treatment=2, control=0).fit("batched")],
        (None, "max-t", "bh"),
    ),
    (
        _thompson,
        [
            lambda log: ai.Contrast(log, treatment=3, control=0).fit(),
            lambda log: ai.Contrasts(log, control=0).fit(lift=True),
            lambda log: ai.Contrast(log, treatment=3, control=0).fit(null=0.1),
            lambda log: ai.Winner(log).fit(),
            lambda log: ai.ConfidenceSequence(log).fit(),
        ],
        (None, "own"),
    ),
    (_thompson, [lambda log: ai.Contrasts(log, control=0).fit()], ("own", None, "holm")),
    (_many, [lambda log: ai.Contrasts(log, control=0).fit(), MEANS[2]], ("own", "max-t")),
    (
        _grouped,
        [
            lambda log: ai.CATE(log, by="region").fit(),
            lambda log: ai.Contrast(log, treatment="b", control="a").fit("aipw", covariate="x"),
            lambda log: ai.AdaptiveOLS(log, ["x"]).fit(),
        ],
        (None, "holm"),
    ),
    (_private, [lambda log: ai.ArmMeans(log).fit("sample-mean")], (None, "holm")),
]
FITS = [(make, fit, adjust) for make, fits, adjustments in CASES for fit in fits for adjust in adjustments]
made = functools.cache(lambda make: make())


def test_there_are_forty_fits() -> None:
    assert len(FITS) >= 40


@pytest.mark.parametrize("place", range(len(FITS)))
def test_picture_table_paragraph_and_checklist_agree(place: int, tmp_path: Path) -> None:
    make, fit, adjust = FITS[place]
    log = made(make)
    result = fit(log)
    adjust = result._adjustment if adjust == "own" else adjust
    ai.report(result, tmp_path / "r.html", adjust=adjust, checklist="consort")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    shown = Shown(result, 0.05, adjust)
    rows, limits = forest_rows(page), shown.limits
    assert len(rows) == min(10, len(result.terms))
    head, table = table_rows(page, "results")
    columns = [head.index(end) - 1 for end in ("[0.025", "0.975]")]
    summary = [
        str(cell)
        for one in result.summary(adjust=shown.adjustment).tables
        for row in one.data
        for cell in row
    ]
    listed = html.unescape(plain(page[page.index('id="consort"') :]))
    for row, at in zip(rows, shown.chosen, strict=True):
        term = str(result.terms[at])
        low, high = limits.iloc[at]
        cells = [format_number(x) for x in (result.estimate[at], low, high)]
        assert [table[term][0], *(table[term][column] for column in columns)] == cells
        assert set(cells) <= set(summary)
        missing = np.isnan(low) or np.isnan(high)
        assert (row.estimate, row.interval) == (
            cells[0],
            "no interval" if missing else f"{cells[1]} to {cells[2]}",
        )
        drawn = np.array([row.at, *((row.low, row.high) if np.isfinite([low, high]).all() else ())])
        told = np.array([result.estimate[at], low, high])[: drawn.size]
        size = np.ptp([one.high for one in rows] + [one.low for one in rows])
        assert np.allclose(drawn, told, rtol=0, atol=2e-3 * max(float(size), 1e-9), equal_nan=True)
    if result.validity == "not valid" and result.correction is None:
        assert answers.NO_INTERVALS(for_authors=FOR_AUTHORS) in listed
    else:
        first = np.flatnonzero(np.isfinite(result.estimate))[0]
        assert f"{result.terms[first]}: {shown.said(first)}" in listed
    methods = page[page.index('id="methods"') :]
    paragraph = plain(methods[: methods.index("</p>")])
    assert "95%" in paragraph
    said = [claim for claim in answer.MULTIPLICITY.values() if says(paragraph, claim)]
    assert said == ([] if len(result.terms) == 1 else [answer.MULTIPLICITY[shown.adjustment or ""]])
    for claim in said:
        assert says(plain(page[: page.index("<nav")]), claim)
        assert says(listed, claim)
