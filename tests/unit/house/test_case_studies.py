"""How case studies are judged; the studies themselves run by `python -m case_studies`."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path

import pytest

import case_studies
from case_studies.expected import judge, read_expected

ROOT = Path(__file__).parents[3]
ROWS = """
title = "A study"
source = "Author (2020)"

[[figure]]
name = "bias"
what = "mean bias"
ours = 0.02
tolerance = 0.001
quick_tolerance = 0.01
paper = 0.07
paper_tolerance = 0.001
reason = "the paper does not state its width"

[[figure]]
name = "power"
what = "power"
ours = 0.8
tolerance = 0.01
quick_tolerance = 0.05
paper = 0.8
paper_tolerance = 0.005
"""


@pytest.fixture
def expected_file(tmp_path: Path) -> Path:
    path = tmp_path / "expected.toml"
    path.write_text(ROWS)
    return path


def test_figures_within_their_tolerance_pass(expected_file: Path) -> None:
    expected = read_expected(expected_file)
    full = judge(expected, {"bias": 0.0209, "power": 0.792}, quick=False)
    assert [verdict.problem for verdict in full] == ["", ""]
    assert full[0].against_paper == "differs: the paper does not state its width"
    assert full[1].against_paper == "agrees"
    quick = judge(expected, {"bias": 0.029, "power": 0.76}, quick=True)
    assert [verdict.problem for verdict in quick] == ["", ""]


def test_a_figure_outside_its_tolerance_or_missing_fails(expected_file: Path) -> None:
    expected = read_expected(expected_file)
    off, missing = judge(expected, {"bias": 0.0211}, quick=False)
    assert off.problem == "is 0.0211, not 0.02 within 0.001"
    assert missing.problem == "was not measured"
    assert judge(expected, {"bias": math.nan, "power": 0.8}, quick=True)[0].problem == "was not measured"
    with pytest.raises(ValueError, match=r"no row in expected\.toml for: size"):
        judge(expected, {"bias": 0.02, "power": 0.8, "size": 1.0}, quick=True)


def test_a_difference_from_the_paper_needs_a_reason(expected_file: Path) -> None:
    text = ROWS.replace('reason = "the paper does not state its width"\n', "colour = 1\n")
    expected_file.write_text(text.replace("ours = 0.8", 'ours = "high"').replace('title = "A study"', ""))
    with pytest.raises(ValueError, match=r"expected\.toml") as error:
        read_expected(expected_file)
    assert str(error.value).splitlines()[1:] == [
        "- title is missing",
        "- figure 1 (bias): colour is not a known key",
        "- figure 2 (power): ours must be a number, got 'high'",
    ]
    expected_file.write_text(text.replace("colour = 1\n", ""))
    with pytest.raises(ValueError, match="figure bias: ours is not the paper's, and there is no reason"):
        read_expected(expected_file)


def test_every_study_of_the_repository_can_be_read() -> None:
    for path in (ROOT / "case_studies").glob("*/run.py"):
        expected = read_expected(path.with_name("expected.toml"))
        assert expected.rows
        assert path.with_name("README.md").read_text().startswith("# ")


def claims_of(page: str) -> list[list[str]]:
    """Cells of a page's table of claims: what, the paper's figure, ours, the verdict."""
    lines = page.partition("| claim | paper | ours | verdict |\n")[2].split("\n")[1:]
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines)
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


@pytest.mark.parametrize(
    ("study", "least"),
    [
        ("best_arm", 69),
        ("bias_of_bandits", 35),
        ("conse_frontier", 73),
        ("false_discovery", 35),
        ("llm_arena", 20),
        ("local_privacy", 83),
        ("max_information", 26),
        ("private_elimination", 7),
    ],
)
def test_pages_claim_what_is_expected(study: str, least: int) -> None:
    folder = Path(case_studies.__file__).parent / study
    rows = list(read_expected(folder / "expected.toml").rows)
    known = 0
    for what, paper, ours, verdict in claims_of((folder / "README.md").read_text(encoding="utf-8")):
        place = next((place for place, row in enumerate(rows) if row.what == what), None)
        if place is None:
            continue
        row = rows.pop(place)
        known += 1
        assert float(ours.replace(",", "")) == pytest.approx(row.ours, rel=6e-4, abs=1e-12), what
        assert (paper == "") == (row.paper is None), what
        assert paper == "" or float(paper.replace(",", "")) == pytest.approx(row.paper, rel=6e-4), what
        told = {None: "", True: "agrees", False: f"differs: {row.reason}"}[row.agrees]
        assert verdict == told, what
    assert known >= least


def test_pages_say_how_many_figures_agree_with_those_of_the_papers() -> None:
    files = (ROOT / "case_studies").glob("*/expected.toml")
    rows = [row for file in files for row in read_expected(file).rows]
    agreeing = sum(row.agrees is True for row in rows)
    differing = sum(row.agrees is False for row in rows)
    parts = []
    for page in ("README.md", "docs/gallery.md", "docs/evidence/case_studies.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        plain = " ".join(text.replace("*", "").split())
        assert f"{agreeing} agree and {differing} differ" in plain, page
        assert f" {agreeing + differing}" in plain, page
        # README says nothing of runs that repeat our own figures: that belongs to the pages of the studies
        assert (f"{len(rows)} of {len(rows)}" in plain) is (page != "README.md"), page
        parts.append(
            [int(number) for number in re.findall(r"^\| (\d+) \| [^|]+ \| [a-z]", text, re.MULTILINE)]
        )
    assert parts[1] == parts[2]
    assert sum(parts[1]) == differing
