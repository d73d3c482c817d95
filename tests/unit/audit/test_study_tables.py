from __future__ import annotations

import io
import math
import re

import numpy as np
import pandas as pd
import pytest
from claims_said import wording

from adaptinf import plots
from adaptinf.audit import AnalysisError, coverage, study
from adaptinf.audit.simulation.measures import BlockSums, Gap, Key, add_runs, table_rows
from adaptinf.claims.data.availability import NEVER_TOGETHER
from adaptinf.designs import UCB, EpsilonGreedy, Uniform
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.simulation.environments import BernoulliArms, FiniteContext

SIGNAL = BernoulliArms([0.3, 0.6])
FINITE = FiniteContext([0.5, 0.3, 0.2], means=[[0.4, 0.7], [0.6, 0.3], [0.3, 0.65]], rewards="bernoulli")


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
    assert (
        r"\caption{100 replications per cell, nominal coverage 0.95; environment signal, horizon 30}" in text
    )
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
    assert re.search(r"\] not valid: " + wording(NEVER_TOGETHER), text)
    with pytest.raises(
        ParameterError,
        match="to_latex: there is no column 'power'; available: 'design', ",
    ):
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


def choosy(log):
    """An analysis that fails, is refused, lacks a row or says nothing in trials that can be told."""
    first = int(log.arrays.reward[:5].sum())
    if first == 0:
        raise ValueError(f"no root in {log.arrays.reward.sum():.0f} steps")
    if first == 1:
        raise InvalidForLog("choosy", "one success", [])
    return {"a": means(log)} if first == 2 else {"a": means(log), "b": aipw(log)}


def test_every_trial_is_counted_and_the_reasons_with_it():
    tables = small(analyses={"choosy": choosy}, on_error="count")
    first = np.array([log.arrays.reward[:5].sum() for log in Uniform().logs(SIGNAL, 30, 100, 5)])
    for row in tables.frame.to_dict("records"):
        assert row["failed"] == np.sum(first == 0)
        assert row["invalid"] == np.sum(first == 1)
        assert row["absent"] == (np.sum(first == 2) if row["analysis"] == "choosy: b" else 0)
        assert sum(row[name] for name in ("runs", "missing", "invalid", "failed", "absent")) == 100
        assert (
            f"not valid in {row['invalid']} runs: one success; failed in {row['failed']} runs: "
            in row["note"]
        )
        assert "ValueError: no root in " in row["note"]
    assert (first == 0).sum() > 1
    assert "(or with other numbers)" in tables.frame["note"].iloc[0]
    reasons: dict[str, int] = {}
    for log in Uniform().logs(SIGNAL, 30, 100, 5):
        rewards = [log.arrays.reward[log.arrays.action == arm] for arm in (0, 1)]
        if log.arrays.reward[:5].sum() > 1 and min(rewards[0].sum(), (1 - rewards[0]).sum()) < 5:
            reasons["few"] = reasons.get("few", 0) + 1
    row = tables.cell(analysis="choosy: a", term="0").iloc[0]
    few = "fewer than 5 outcomes of an arm differ from its most common one"
    assert f"no interval in {reasons['few']} runs: {few}" in row["note"]
    assert row["missing"] == reasons["few"]
    with pytest.raises(AnalysisError, match="ValueError: no root"):
        small(analyses={"choosy": choosy})


def test_a_stopped_study_goes_on_with_its_failures_counted(tmp_path):
    with pytest.raises(AnalysisError):
        small(analyses={"choosy": choosy}, path=tmp_path / "s")
    found = small(analyses={"choosy": choosy}, path=tmp_path / "s", on_error="count", n_jobs=2)
    assert found.frame.equals(small(analyses={"choosy": choosy}, on_error="count").frame)


def test_an_analysis_that_never_works_has_a_row():
    def never(log):
        raise np.linalg.LinAlgError("singular " * 50)

    row = small(analyses={"never": never}, on_error="count").frame.iloc[0]
    assert (row["analysis"], row["term"], row["failed"], row["runs"]) == ("never", "", 100, 0)
    assert row["note"].startswith("failed: LinAlgError: singular singular")
    assert len(row["note"]) < 130


def test_widths_of_all_blocks_are_kept():
    key, blocks = Key("a", "t", 0.0, None), [BlockSums(), BlockSums()]
    for block, half in zip(blocks, (1.0, 3.0), strict=True):
        add_runs(block, [key], np.zeros((2, 1)), np.full((2, 1), -half), np.full((2, 1), half))
    blocks[0].merge(blocks[1])
    assert np.concatenate(blocks[0].widths[key]).tolist() == [2.0, 2.0, 6.0, 6.0]


def test_many_reasons_are_cut_to_the_most_frequent():
    names = ["x", "x", "y", "y", "y", "z", "z", "z", "z", "u", "v"]
    sums = BlockSums()
    for name in names:
        sums.add_gap(Gap("failed", "a"), name)
    assert table_rows(sums)[0]["note"] == "failed: z (4); y (3); x (2); 2 other reasons (2)"


@pytest.mark.slow
@pytest.mark.parametrize("design", [EpsilonGreedy(exploration=0.2), UCB()])
def test_regret_is_that_of_the_replications(design):
    envs = {"arms": BernoulliArms([0.2, 0.5, 0.6]), "contexts": FINITE}
    tables = small(designs={"d": design}, environments=envs, replications=300)
    for name, env in envs.items():
        regret = design.replicate(env, 30, 300, 5, by_rounds=True).regret
        literal = []
        for log in design.logs(env, 30, 300, 5):
            gaps = env.means.max(axis=1, keepdims=True) - env.means
            codes = log.arrays.context["feature"] if env.features else np.zeros(30, dtype=int)
            literal.append(gaps[codes, log.arrays.action].sum())
        np.testing.assert_allclose(regret, literal, rtol=1e-12)
        rows = tables.cell(environment=name)
        np.testing.assert_allclose(rows["regret"], np.mean(literal), rtol=1e-12)
        np.testing.assert_allclose(rows["regret_se"], np.std(literal) / math.sqrt(300), rtol=1e-12)


def test_coverage_knows_the_regret():
    found = coverage(Uniform(), SIGNAL, means, 30, 100, rng=5).frame
    assert found["regret"].tolist() == small().frame["regret"].tolist()


def test_tables_have_at_most_80_columns():
    tables = small(
        designs={"uniform": Uniform(), "optimistic": UCB()}, analyses={"means": means, "aipw": aipw}
    )
    text = str(tables)
    assert max(map(len, text.splitlines())) <= 80
    for value in tables.frame[["coverage", "bias", "width", "regret"]].dropna().to_numpy().ravel():
        assert f"{value:.4f}" in text
    found = coverage(Uniform(), SIGNAL, means, 30, 64, rng=0)
    assert max(map(len, str(found).splitlines())) <= 80
    assert all(f"{value:.4f}" in str(found) for value in found.frame["coverage"])


def test_the_median_width_is_that_of_the_kept_intervals(tmp_path):
    tables = small(path=tmp_path / "study", keep="estimates", replications=300)
    kept = tables.estimates("uniform", "signal", 30)
    for row in tables.frame.itertuples():
        own = kept[kept["term"] == row.term]
        widths = (own["high"] - own["low"]).dropna()
        assert row.width_median == widths.median()
        assert row.width == pytest.approx(widths.mean(), rel=1e-12)
        assert row.width_se == pytest.approx(widths.std(ddof=0) / math.sqrt(len(widths)), rel=1e-12)
    drawn = plots.study.frame(tables, "width")
    assert (drawn["low"] < drawn["value"]).all()
    assert (drawn["value"] < drawn["high"]).all()
    unknown = plots.study.frame(tables, "sd")
    assert unknown[["low", "high"]].isna().all(axis=None)


def test_a_folder_of_another_study_says_how_to_read_it(tmp_path):
    small(path=tmp_path / "study")
    with pytest.raises(ParameterError, match="to resume") as caught:
        small(path=tmp_path / "study", horizons=[31])
    assert f"to read what is stored, use audit.Study.load({str(tmp_path / 'study')!r})" in str(caught.value)
