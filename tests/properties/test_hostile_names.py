"""Hostile names in every role of a log, through every output: nothing runs, nothing stands unescaped."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.cbook import is_math_text
from matplotlib.text import Text

import adaptinf as ai
from adaptinf.cli.entry import main
from adaptinf.errors import AdaptinfError
from adaptinf.inference.inputs.formulas import name_in_formula
from adaptinf.inference.results import Results
from adaptinf.log import DesignRecord
from adaptinf.texts import spreadsheet_cell, visible

RUNS = "__import__('os').mkdir('CANARY')"
NAMES = {
    "backticks": f"x`+{{str({RUNS}).__len__()}}+`x",
    "call": RUNS,
    "braces": f"{{{RUNS}}}",
    "transform": f"C(x, levels={RUNS})",
    "state key": f'"]+{RUNS}+["',
    "quoted": f"Q('''{RUNS}''')",
    "a backtick": "a`b",
    "a space": "age y",
    "a dot": "centre.no",
    "a sum": "1+1",
    "an interaction": "x:y*z^2",
    "a number": "-1",
    "an equation": "a = b, c = 0",
    "format": "%s %d {0} {x.__class__}",
    "script": "<script>alert(1)</script>",
    "image": "<img src=x onerror=alert(1)>",
    "entities": "&lt;b&gt; \"q\" 'p'",
    "link": "*[b](javascript:alert(1))*",
    "pipes": "|a|b|---|",
    "latex": r"\input{/etc/passwd}",
    "mathematics": "$x_1^2$ 50% #1 ~",
    "row end": "[10cm]",
    "colour": "\x1b[31mred\x1b[0m",
    "title": "\x1b]0;owned\x07",
    "control sequence": "\x9b31mred",
    "command": "=cmd|' /C calc'!A0",
    "plus": "+1+cmd|' /C calc'!A0",
    "minus": "-2+3+cmd|' /C calc'!A0",
    "at": "@SUM(A1)",
    "tab": "\t=1+1",
    "return": "\r=1+1",
    "NUL": "nul\x00byte",
    "lines": "one\ntwo\r\n  - three",
    "direction": "\u202egpj.exe\u2066",
    "unseen": "\ufeff\u200b\u2060x",
    "long": "x" * 800,
    "underscores": "__class__",
}
JOINERS = "\u200c\u200d"


@pytest.fixture(autouse=True)
def nothing_ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a test in which the code of a name was run."""
    monkeypatch.chdir(tmp_path)
    yield
    assert not (tmp_path / "CANARY").exists()


def make_log(name: str, n: int = 160) -> ai.AdaptiveLog:
    """A log with the name in every role, told apart by an ending."""
    rng = np.random.default_rng(3)
    action = rng.integers(0, 2, n)
    site = rng.integers(0, 2, n)
    batch = np.repeat([0, 1], n // 2)
    columns: dict[str, Any] = {
        f"{name} action": np.array([f"{name} A", f"{name} B"], dtype=object)[action],
        f"{name} reward": rng.normal(0.3 * action + 0.2 * site, 1.0),
        f"{name} number": rng.normal(size=n),
        f"{name} site": np.array([f"{name} s", f"{name} t"], dtype=object)[site],
        f"{name} batch": batch,
        f"{name} unit": np.array([f"{name} {i}" for i in range(n)], dtype=object),
        f"{name} phase": np.array([f"{name} p", f"{name} q"], dtype=object)[batch],
        f"{name} pa": np.full(n, 0.5),
        f"{name} pb": np.full(n, 0.5),
    }
    frame = pd.DataFrame({key: pd.Series(value) for key, value in columns.items()})
    return ai.AdaptiveLog(
        frame,
        action=f"{name} action",
        reward=f"{name} reward",
        context=[f"{name} number", f"{name} site"],
        batch=f"{name} batch",
        unit=f"{name} unit",
        propensities={f"{name} A": f"{name} pa", f"{name} B": f"{name} pb"},
        columns={"phase": f"{name} phase"},
        about={"design": DesignRecord(f"{name} design", {f"{name} parameter": 1.0})},
    )


def results(name: str, log: ai.AdaptiveLog) -> Iterator[Any]:
    """What can be said of the log."""
    pair = {"treatment": f"{name} B", "control": f"{name} A"}
    means = ai.ArmMeans(log).fit("aipw")
    yield means
    groups = ai.CATE(log, by=f"{name} site", **pair, rounds=np.full(log.n_rounds, True)).fit()
    yield groups
    yield ai.AdaptiveOLS(log).fit("none")
    yield ai.compare({f"{name} 1": means, f"{name} 2": ai.ArmMeans(log).fit("sample-mean")})
    yield ai.diagnose(log)
    yield ai.recommend(log)
    formula = " + ".join(name_in_formula(f"{name} {kind}") for kind in ("number", "site"))
    if name.startswith("__"):  # formulaic would leave the column of such a label out
        with pytest.raises(AdaptinfError, match="labels that begin with two underscores"):
            ai.CATE.from_formula(formula, log, **pair)
        formula = name_in_formula(f"{name} number")
    yield ai.CATE.from_formula(formula, log, **pair).fit()


def texts(name: str, log: ai.AdaptiveLog) -> Iterator[str]:
    """Everything that is plain text."""
    yield repr(log)
    ols = ai.AdaptiveOLS(log).fit("none")
    yield str(ols.wald_test({ols.terms[1]: 0.0, ols.terms[2]: 0.5}))
    yield str(ols.t_test({ols.terms[2]: 0.0}))
    rounds = np.full(log.n_rounds, True)
    yield str(ai.CATE(log, by=f"{name} site", rounds=rounds).fit().heterogeneity())
    for refused in (
        lambda: ai.AdaptiveOLS(log, covariates=["absent"]),
        lambda: ai.AdaptiveOLS(log, arm="absent"),
        lambda: ai.AdaptiveOLS.from_formula(f"absent ~ {name}", log),
        lambda: ai.CATE(log, by="absent"),
        lambda: ai.CATE.from_formula("absent", log),
        lambda: ai.Contrast(log, treatment="absent", control=name),
        lambda: ols.t_test("absent = 0"),
        lambda: ai.AdaptiveLog(log.frame, action="absent", reward=name),
    ):
        with pytest.raises(AdaptinfError) as caught:
            refused()
        yield str(caught.value)


def assert_visible(text: str, keep: str = "\n") -> None:
    """No control code, mark of direction, half a character or other unseen one."""
    bad = {
        char
        for char in text
        if char not in keep + JOINERS and unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
    }
    assert not bad, sorted(map(ascii, bad))


class Tags(HTMLParser):
    """Tags and texts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def assert_html(page: str) -> None:
    tags = Tags()
    tags.feed(page)
    assert tags.found <= {
        "p",
        "strong",
        "ol",
        "li",
        "table",
        "tr",
        "td",
        "th",
        "thead",
        "tbody",
        "ul",
        "dl",
        "dt",
        "dd",
    }
    assert tags.attributes <= {"class", "border", "style"}
    assert_visible("".join(tags.texts))


def assert_latex(page: str) -> None:
    assert_visible(page)
    assert not re.search(r"(?<!\\)[$#%_^~]", page)
    assert not re.search(r"\\(input|write|immediate|def|catcode)", page)
    assert not re.search(r"\\\\\s*[\[*](?!0\.5ex\])", page), (
        "a cell would be read as an argument of the row's end"
    )
    plain = re.sub(r"\\[\\{}]", "", page)
    assert plain.count("{") == plain.count("}")


def assert_markdown(page: str) -> None:
    assert_visible(page)
    for block in page.split("\n\n"):
        rows = [row for row in block.split("\n") if row.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) <= 1
    assert not re.search(r"(?<!\\)[<$`]", page)


def assert_csv(page: str) -> None:
    for row in csv.reader(io.StringIO(page)):
        for cell in row:
            assert_visible(cell)
            assert _harmless(cell), cell[:60]


def _harmless(cell: str) -> bool:
    if not cell.lstrip().startswith(("=", "+", "-", "@")) and not cell.startswith(("\t", "\r")):
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("kind", NAMES)
def test_names_in_every_role_through_every_table(kind: str) -> None:
    name = NAMES[kind]
    log = make_log(name)
    for result in results(name, log):
        summary = result.summary()
        assert_visible(summary.as_text())
        assert_html(summary.as_html())
        assert_latex(summary.as_latex())
        assert_markdown(summary.as_markdown())
        assert_csv(summary.as_csv())
        if isinstance(result, Results):
            explanation = result.explain()
            assert_visible(str(explanation))
            assert_html(explanation._repr_html_())
            assert_visible(result.sentence())


@pytest.mark.parametrize("kind", NAMES)
def test_names_in_every_role_through_every_text_and_error(kind: str) -> None:
    name = NAMES[kind]
    log = make_log(name)
    for text in texts(name, log):
        assert_visible(text)


@pytest.mark.parametrize("kind", ["a backtick", "a space", "a dot", "backticks", "underscores", "long"])
def test_regressions_on_such_contexts_are_those_on_plain_names(kind: str) -> None:
    name = NAMES[kind]
    hostile, plain = (ai.AdaptiveOLS(make_log(one)).fit("none") for one in (name, "plain"))
    np.testing.assert_array_equal(hostile.estimate, plain.estimate)
    assert [term.replace(name, "plain") for term in hostile.terms] == list(plain.terms)
    assert plain.terms == ("Intercept", "plain number", "plain site[T.plain t]")
    quoted = name_in_formula(f"{name} number")
    by_formula = ai.AdaptiveOLS.from_formula(f"reward ~ {quoted}", make_log(name)).fit("none")
    alone = ai.AdaptiveOLS(make_log("plain"), covariates=["plain number"]).fit("none")
    np.testing.assert_allclose(by_formula.estimate, alone.estimate, rtol=1e-12)


@pytest.mark.parametrize("kind", ["mathematics", "NUL", "direction"])
def test_names_on_pictures_are_drawn_as_they_are(kind: str) -> None:
    name = NAMES[kind]
    log = make_log(name)
    means = ai.ArmMeans(log).fit("aipw")
    pictures = [
        ai.plots.forest({f"{name} 1": means}),
        ai.plots.allocation(log),
        ai.plots.propensities(log),
    ]
    for axes in pictures:
        picture = axes.get_figure()
        picture.draw_without_rendering()
        for text in picture.findobj(Text):
            assert_visible(text.get_text())
            assert kind != "mathematics" or not any(
                is_math_text(line) for line in text.get_text().split("\n") if "%" in line
            )


@pytest.mark.parametrize("kind", ["script", "colour", "command", "lines"])
@pytest.mark.parametrize("form", ["text", "markdown", "latex", "html", "csv", "json"])
def test_names_on_the_command_line(
    kind: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = NAMES[kind]
    rng = np.random.default_rng(1)
    arm = rng.integers(0, 2, 60)
    frame = pd.DataFrame(
        {f"{name} a": np.array([f"{name} A", f"{name} B"])[arm], f"{name} y": rng.normal(size=60)}
    )
    frame[f"{name} unused"] = 1
    file = tmp_path / "log.csv"
    frame.to_csv(file, index=False)
    given = [str(file), f"--action={name} a", f"--reward={name} y"]
    assert main(["analyze", *given, "--estimator", "sample-mean", "--format", form]) == 0
    shown = capsys.readouterr().out
    assert_visible(shown)
    check = {"html": assert_html, "latex": assert_latex, "markdown": assert_markdown}
    check |= {"csv": assert_csv}
    check.get(form, assert_visible)(shown)
    if form == "text":
        assert main(["validate", *given]) == 0
        assert main(["analyze", str(file), "--action", "absent", "--reward", f"{name} y"]) == 2
        said = capsys.readouterr()
        assert_visible(said.out + said.err)


def test_half_characters_are_shown_as_escapes() -> None:
    assert visible("\ud800x") == "\\ud800x"
    assert visible("naïve \u200cب") == "naïve \u200cب"
    assert spreadsheet_cell(" =1+1") == "' =1+1"
    assert [spreadsheet_cell(x) for x in ("-0.5", "-inf", "1e-9", "a=b", "")] == [
        "-0.5",
        "-inf",
        "1e-9",
        "a=b",
        "",
    ]


def test_tables_of_plans_and_pictures_are_safe_in_a_spreadsheet(tmp_path: Path) -> None:
    name = NAMES["command"]
    env = ai.environments.BernoulliArms([0.3, 0.6])
    plan = ai.audit.operating_characteristics(ai.designs.Uniform(), {name: env}, 50, 4, rng=1)
    plan.to_csv(tmp_path / "plan.csv")
    assert_csv((tmp_path / "plan.csv").read_text())
    assert f"'{name}" in (tmp_path / "plan.csv").read_text()
    frame = pd.DataFrame({"arm": [name, "b"], "mean": [-0.5, 0.25]})
    file, _ = ai.plots.save_table(frame, tmp_path / "means")
    assert file.read_text() == f"arm,mean\n'{name},-0.5\nb,0.25\n"
