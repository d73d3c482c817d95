"""Summaries in other forms: LaTeX with caption and label, HTML with its sides, Markdown, and Great Tables."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from adaptinf import designs
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.inference.results.comparison import compare
from adaptinf.inference.results.fit_results import Results
from adaptinf.inference.results.summary import ResultSummary
from adaptinf.inference.results.tables import escape_latex, plain_table
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.simulation.environments import BernoulliArms

ARMS = BernoulliArms([0.4, 0.6, 0.5])
NASTY = "a_1 & 50% <b>*x*</b>{{m}}"


@pytest.fixture(scope="module")
def private() -> Results:
    return ArmMeans(designs.PrivateUCB(epsilon=0.05).run(ARMS, 2000, rng=0)).fit("sample-mean")


@pytest.fixture(scope="module")
def table() -> ResultSummary:
    log = designs.Uniform().run(ARMS, 200, rng=0)
    return compare({"means": ArmMeans(log).fit("alee"), "naive": ArmMeans(log).fit("sample-mean")}).summary()


def test_latex_is_a_float_with_its_title_for_a_caption(table: ResultSummary) -> None:
    lines = table.as_latex().splitlines()
    assert lines[:3] == [r"\begin{table}[htbp]", r"\centering", r"\caption{Comparison}"]
    assert lines[-1] == r"\end{table}"
    assert not any(r"\label" in line for line in lines)
    begun = [re.match(r"\\begin\{(\w+)\}", line) for line in lines]
    assert [found[1] for found in begun if found] == ["table", "tabular", "minipage"]
    rules = [line for line in lines if line in (r"\toprule", r"\midrule", r"\bottomrule")]
    assert rules == [r"\toprule", r"\midrule", r"\midrule", r"\bottomrule"]


def test_caption_and_label_of_latex_are_taken_as_they_are(table: ResultSummary) -> None:
    lines = table.as_latex(caption=r"Means, $n = 200$", label="tab:means").splitlines()
    assert lines[2:4] == [r"\caption{Means, $n = 200$}", r"\label{tab:means}"]


def test_notes_of_latex_are_below_in_small_print(table: ResultSummary) -> None:
    text = table.as_latex()
    below = text[text.index(r"\end{tabular}") :]
    assert r"\footnotesize" in below
    said = [*table.notes, *(said for _, said in getattr(table, "lines", ()))]
    assert said
    for note in said:
        assert rf"{escape_latex(note)}\par" in below


def test_a_tabular_alone_has_no_float(table: ResultSummary) -> None:
    text = table.tables[-1].as_latex_tabular(center=False)
    assert text.startswith(r"\begin{tabular}{lrr}")
    assert text.endswith(r"\end{tabular}")
    assert r"\textbf{}" not in text


def test_html_has_numbers_on_the_right_and_names_on_the_left(table: ResultSummary) -> None:
    cells = re.findall(r'<(t[dh]) style="text-align: (\w+); padding-left: 1em">([^<]*)<', table.as_html())
    assert ("td", "right", "200") in cells
    assert ("th", "left", "Rounds") in cells
    assert ("th", "right", "naive") in cells
    assert "<td></td>" in table.as_html()  # what has no name is no head


def test_markdown_has_one_row_of_heads(private: Results) -> None:
    lines = private.summary().as_markdown().splitlines()
    places = [place for place, line in enumerate(lines) if line.startswith("| --- |")]
    assert "| corrected P exact |" in "".join(lines[place - 1] for place in places)


def great() -> Any:
    return pytest.importorskip("great_tables")


def test_a_great_table_of_a_result(private: Results) -> None:
    great()
    summary = private.summary()
    page = summary.to_gt().as_raw_html()
    page = page[page.index("<table") :]
    assert "ArmMeans Results" in page
    shown = re.findall(r"<td[^>]*>([^<]*)</td>", page)
    for value in [*private.estimate, *private.conf_int_corrected().to_numpy().ravel()]:
        assert f"{value:.4f}" in shown
    heads = re.findall(r"<th[^>]*>(.*?)</th>", page, flags=re.DOTALL)
    assert any("corrected" in head for head in heads)
    assert "Estimator: sample-mean" in page


def test_a_great_table_of_a_comparison(table: ResultSummary) -> None:
    great()
    page = table.to_gt().as_raw_html()
    page = page[page.index("<table") :]
    heads = " ".join(re.findall(r">([^<>]+)</(?:th|span)>", page))
    for text in ("means", "naive", "Rounds", "Estimator"):
        assert text in heads
    assert "[" in page
    assert page.count("border-bottom: 1px solid #000000") == 3  # the rule above what the columns are made of


def test_a_great_table_is_literal() -> None:
    great()
    arrays = LogArrays(action=np.arange(40) % 2, reward=np.arange(40) % 3 / 2.0)
    log = AdaptiveLog.from_arrays(arrays, arms=(NASTY, "b"), design=designs.Uniform().record())
    contrast = Contrast(log, treatment=NASTY, control="b").fit("sample-mean")
    compared = compare({NASTY: contrast}).summary()
    for summary in (contrast.summary(), compared):
        page = summary.to_gt().as_raw_html()
        page = page[page.index("<table") :]
        assert "<b>" not in page
        assert "&lt;b&gt;*x*&lt;/b&gt;{{m}}" in page.replace("&#123;", "{")
    heads = compared.to_gt().as_raw_html().partition("<tbody")[0]
    assert "&lt;b&gt;*x*&lt;/b&gt;{{m}}" in heads.replace("&#123;", "{")


def test_a_great_table_sets_tables_of_the_same_rows_side_by_side() -> None:
    great()
    own = plain_table([["a", "1.0"], ["b", "2.0"]], ["", "mean"], "lr")
    more = plain_table([["a", "0.9"], ["b", "1.9"]], ["", "at once\nlow"], "lr")
    page = ResultSummary("Both", [own, more], []).to_gt().as_raw_html()
    rows = re.findall(r"<tr>(.*?)</tr>", page[page.index("<tbody") :], flags=re.DOTALL)
    assert [re.findall(r">([^<>\s]+)<", row) for row in rows] == [["a", "1.0", "0.9"], ["b", "2.0", "1.9"]]
    assert "at once" in page


def test_a_great_table_has_the_facts_of_tables_without_heads() -> None:
    great()
    facts = plain_table([["Design:", "Thompson", "Rounds:", "20"], ["Unit:", "", "", ""]], None, "llll")
    body = plain_table([["a", "1.0"]], ["arm", "mean"], "lr")
    page = ResultSummary("Facts", [facts, body], ["A note."]).to_gt().as_raw_html()
    assert "Design: Thompson; Rounds: 20; Unit:" in page
    assert "A note." in page
