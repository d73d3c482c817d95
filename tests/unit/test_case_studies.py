"""How case studies are judged; the studies themselves run by `python -m case_studies`."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from case_studies.expected import judge, read_expected

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
    root = Path(__file__).parents[2] / "case_studies"
    for path in root.glob("*/run.py"):
        expected = read_expected(path.with_name("expected.toml"))
        assert expected.rows
        assert path.with_name("README.md").read_text().startswith("# ")
