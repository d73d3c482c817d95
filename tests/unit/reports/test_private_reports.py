"""Reports of private trials: what the guarantee does not cover stands in a frame, and nowhere else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from read_pages import outside

import adaptinf as ai
from adaptinf.claims.reports.answer import NEEDS_LOG_TO_PUBLISH, PUBLISH
from adaptinf.reports.report_texts import versions

PAIR = ai.environments.BernoulliArms([0.3, 0.5])
NUMBER = re.compile(r"\d+(?:[.,]\d+)*(?:e[+-]?\d+)?")


def trial() -> ai.AdaptiveLog:
    return ai.designs.DPConSE(epsilon=1.0, contrast_share=1).run(PAIR, 4_000, rng=2)


def numbers(text: str) -> set[str]:
    return set(NUMBER.findall(text))


def page_of(data: Any, folder: Path, **options: Any) -> str:
    ai.report(data, folder / "r.html", **options)
    return (folder / "r.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("brief", [False, True])
def test_no_number_outside_the_frame_is_of_the_rows(brief: bool, tmp_path: Path) -> None:
    log = trial()
    result = ai.Contrast(log, treatment=1, control=0).fit("aipw")
    text, boxes = outside(page_of(result, tmp_path, log=log, brief=brief, title="A trial"))
    assert boxes == 1
    public = log.public()
    known = numbers(public.statement + public.releases.tail(100).to_csv(sep=" ") + versions())
    known |= {"100", f"{len(public.releases):,}"}
    assert numbers(text) <= known
    assert (PUBLISH() in text) == brief
    assert ("Left out:" in text) != brief


def test_without_its_log_a_private_result_says_how_to_publish(tmp_path: Path) -> None:
    result = ai.Contrast(trial(), treatment=1, control=0).fit("aipw")
    text, boxes = outside(page_of(result, tmp_path))
    assert boxes == 1
    assert text.split() == f"Report of an adaptive experiment {NEEDS_LOG_TO_PUBLISH()}".split()


def test_covered_numbers_stand_outside_and_the_rows_behind_them_inside(tmp_path: Path) -> None:
    log = trial()
    result = ai.Contrast(log.public(), treatment=1, control=0).fit()
    page = page_of(result, tmp_path, log=log)
    text, boxes = outside(page)
    assert boxes == 1
    low, high = result.conf_int().iloc[0]
    assert f"{low:.4f} to {high:.4f}" in text
    counts = log.frame.groupby("action").size()
    assert not numbers(text) & {f"{count:,}" for count in counts}
    assert all(f"{count:,}" in page for count in counts)
    assert "SHA-256" not in text
    assert "SHA-256" not in page or "SHA-256" in page[page.index('class="box"') :]
