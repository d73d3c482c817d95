from __future__ import annotations

import io
import math

import numpy as np
import pandas as pd
import pytest

from adaptinf.audit import study
from adaptinf.designs import UCB, Uniform
from adaptinf.errors import ParameterError
from adaptinf.inference.arms.models import ArmMeans, Contrast
from adaptinf.simulation.environments import BernoulliArms

SIGNAL = BernoulliArms([0.3, 0.6])


def means(log):
    return ArmMeans(log).fit(estimator="sample-mean", test="normal")


def aipw(log):
    return Contrast(log, treatment=1, control=0).fit(estimator="aipw")


def small(**changed):
    given = {
        "designs": {"uniform": Uniform()},
        "environments": {"signal": SIGNAL},
        "analyses": {"means": means},
        "horizons": [30],
        "replications": 100,
        "rng": 5,
        "progress": False,
    }
    return study(**{**given, **changed})


def cells_of(latex: str) -> list[list[str]]:
    rows = [line for line in latex.splitlines() if " & " in line]
    return [[cell.strip() for cell in row.removesuffix(r"\\").split(" & ")] for row in rows]


def test_latex_holds_every_number_and_escapes_every_name():
    tables = small(
        designs={"5% & $x_1$": Uniform(), "{UCB}^2|~#\\": UCB()}, analyses={"a_b": means, "aipw": aipw}
    )
    text = tables.to_latex(["coverage", "width", "note"], digits=3)
    assert text.count(r"\begin{tabular}") == text.count(r"\toprule") == text.count(r"\bottomrule") == 1
    assert r"\textbf{100 replications a cell, nominal coverage 0.95; environment signal, horizon 30}" in text
    found = cells_of(text)
    assert [cell.removeprefix(r"\textbf{")[:-1] for cell in found[0]] == [
        "design", "analysis", "term", "coverage", "width", "note",
    ]  # fmt: skip
    assert {row[0] for row in found[1:]} == {
        r"\textbf{5\% \& \$x\_1\$}",
        r"\textbf{\{UCB\}\textasciicircum{}2\textbar{}\textasciitilde{}\#\textbackslash{}}",
    }
    assert {row[1] for row in found[1:]} == {r"a\_b", "aipw"}
    for row, cells in zip(tables.frame.to_dict("records"), found[1:], strict=True):
        numbers = [row["coverage"], row["width"]]
        assert cells[3:5] == ["" if math.isnan(x) else f"{x:.3f}" for x in numbers]
    assert "{[1] not valid: arm" in text
    with pytest.raises(ParameterError, match="to_latex: the table has no column 'power'"):
        tables.to_latex(["power"])


def test_a_table_of_one_row_keeps_its_term(tmp_path):
    text = small(analyses={"aipw": aipw}).to_latex(["coverage"], path=tmp_path / "t.tex")
    assert len(cells_of(text)) == 2
    assert cells_of(text)[1][0] == r"\textbf{1 - 0}"
    assert (tmp_path / "t.tex").read_text() == text


def test_csv_is_the_whole_table_and_no_formula(tmp_path):
    tables = small(designs={"=1+1": Uniform(), "U, B": UCB()}, analyses={"means": means, "aipw": aipw})
    text = tables.to_csv(tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == text
    read = pd.read_csv(io.StringIO(text), keep_default_na=True)
    assert read["design"].unique().tolist() == ["'=1+1", "U, B"]
    assert read.columns.tolist() == tables.frame.columns.tolist()
    for name in tables.frame.select_dtypes("number"):
        np.testing.assert_array_equal(read[name], tables.frame[name])
    with pytest.raises(ParameterError, match="to_csv: path must be"):
        tables.to_csv(3)
