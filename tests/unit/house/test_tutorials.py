"""The tutorials run from top to bottom, and what their sentences say is what they print."""

from __future__ import annotations

import ast
import contextlib
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from claims_said import says

from adaptinf.claims.data import availability
from adaptinf.claims.logs.coverage import REWARD
from adaptinf.claims.privacy.guarantees import COVERS_RELEASES

TUTORIALS = Path(__file__).parents[3] / "docs" / "tutorials"
CELL = re.compile(r"^```\{code-cell\} python\n(?:---\n.*?^---\n)?(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = sorted(path.stem for path in TUTORIALS.glob("*.md"))
Names = dict[str, Any]


def run(page: str) -> tuple[Names, str]:
    """Names that the cells of a page leave behind, and what they print; the value of a last line is shown."""
    names: Names = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for cell in CELL.findall((TUTORIALS / f"{page}.md").read_text(encoding="utf-8")):
            *statements, last = ast.parse(cell).body
            if not isinstance(last, ast.Expr):
                statements.append(last)
            exec(compile(ast.Module(statements, []), page, "exec"), names)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), page, "eval"), names)
                shown = value._repr_html_() if hasattr(value, "_repr_html_") else value
                printed.write(f"{shown}\n")
    return names, printed.getvalue()


def answer(page: str) -> str:
    """What a page says before its first heading."""
    return " ".join((TUTORIALS / f"{page}.md").read_text(encoding="utf-8").split("\n## ")[0].split())


def trial_statistician(names: Names, printed: str) -> None:
    assert names["urn"].pvalue == pytest.approx(2 / 39, abs=1e-12)
    assert names["fisher"] == pytest.approx(1 / 12, abs=1e-12)
    assert names["exact"].pvalue < names["fisher"]
    rows = names["rows"]
    thompson, equal = rows["Thompson, floor 0.1"], rows["43 on each arm"]
    assert thompson["Wald, type I error"] > 0.15
    assert max(thompson["exact, type I error"], equal["exact, type I error"]) <= 0.05
    assert thompson["on the better arm"] > equal["on the better arm"] == pytest.approx(43.0)
    assert thompson["exact, power"] < equal["exact, power"]  # power is the price
    control = names["log"].frame.query("action == 0")["reward"]
    assert control.sum() == 4  # "four patients responded"
    low, high = names["wald"].conf_int().to_numpy()[0]
    assert high - low > 0.9
    assert "weighted Poisson counts" in " ".join(str(names["wald"].explain()).split())
    assert names["test"].pvalue < 0.05
    assert names["drift_proof"].pvalue < 0.05
    assert "| risk difference |" in printed
    first = answer("trial_statistician")
    assert f"has P = {names['exact'].pvalue:.3f}.".replace(" 0.", " .") in first
    assert f"has P = {names['fisher']:.3f}.".replace(" 0.", " .") in first
    effect = names["interval"].to_frame().set_index("scale").loc["difference"]
    assert f"rises by {100 * effect['estimate']:.0f} percentage points" in first
    assert f"from {100 * effect['low']:.0f} to {100 * effect['high']:.0f}." in first
    assert f"was given to {(names['log'].frame['action'] == 1).sum()} of the patients" in first


def product_analyst(names: Names, printed: str) -> None:
    rates = names["visits"].groupby("page")["bought"].mean()
    assert 1.2 < rates["short"] / rates["current"] < 1.3  # "a quarter more"
    assert "drift over time: current" in printed
    differences, lifts = names["differences"], names["lifts"]
    truth = {"green - current": 0.001, "short - current": 0.006}
    low, high = differences.conf_int_simultaneous().to_numpy().T
    growth = np.array([1.0, 1.25])  # what sales of the first and of the last week have on the rates
    for term, bottom, top in zip(differences.terms, low, high, strict=True):
        assert bottom < truth[term] * growth[1]
        assert top > truth[term] * growth[0]
    assert lifts.conf_int_simultaneous().loc["short / current - 1", "low"] > 0.0
    assert lifts.params["short / current - 1"] < rates["short"] / rates["current"] - 1.0
    assert says(differences.notes, availability.LEFT_OUT, left="24000", arm="short or current")
    first = answer("product_analyst")
    short = lifts.params.iloc[1]
    low, high = lifts.conf_int_simultaneous().to_numpy()[1]
    assert (
        f"sells {short:.0%} more than `current`, with a 95% interval from {low:.0%} to {high:.0%}." in first
    )
    assert f"Plain rates suggest {rates['short'] / rates['current'] - 1:.0%}" in first
    low, high = lifts.conf_int_simultaneous().to_numpy()[0]
    assert f"its interval extends from {low:.0%} to {high:.0%}." in first
    assert names["best"].winner == "short"
    assert names["best"].low > 0.0
    gap = (names["by_rows"].params - differences.params).abs()
    assert (gap < 0.05 * differences.bse).all()


def methodologist(names: Names, printed: str) -> None:
    mean = names["by_analysis"][["bias", "rmse", "coverage"]].mean()
    close, apart = mean.loc["close"], mean.loc["apart"]
    assert close["rmse"].idxmin() == "shrunken"
    assert apart["bias"].abs().idxmax() == "shrunken"
    assert apart.loc["shrunken", "coverage"] < min(0.9, apart.loc["AIPW", "coverage"])
    first = answer("methodologist")
    errors = [f"{close.loc[name, 'rmse']:.3f}".lstrip("0") for name in ("shrunken", "sample mean", "AIPW")]
    assert "error is {}, compared with {} for sample means and {} for AIPW.".format(*errors) in first
    assert f"95% intervals have coverage of {apart.loc['shrunken', 'coverage']:.0%}." in first
    assert names["log"].arrays.propensities.min() >= 0.05  # half of the floor's share of .1
    assert 0.0 < names["test"].pvalue <= 1.0
    assert r"\begin{tabular}" in printed
    assert len(names["figure"].axes) == 2


def data_protection_officer(names: Names, printed: str) -> None:
    assert (names["promise"].epsilon, names["promise"].unit, names["promise"].notion) == (
        1.0,
        "record",
        "standard",
    )
    assert np.exp(1.0) == pytest.approx(2.7, abs=0.05)
    assert not names["audit"].refuted
    assert 0.5 < names["audit"].epsilon < 1.0
    assert names["broken"].refuted
    assert 1.0 < names["broken"].epsilon <= 2.0
    low, high = names["covered"].conf_int().iloc[0]
    assert low < 0.15 < high
    first = answer("data_protection_officer")
    estimate = names["covered"].params.iloc[0]
    assert f"releases: {100 * estimate:.0f} percentage points" in first
    assert f"with a 95% interval from {100 * low:.0f} to {100 * high:.0f}." in first
    widths = [float(found) for found in re.findall(r"(?:releases|raw log): (\S+) wide", printed)]
    assert 1.8 < widths[0] / widths[1] < 2.2  # "twice as wide"
    assert f"reward: {REWARD()}" in printed
    assert says(names["covered"].explain().texts, COVERS_RELEASES)
    assert "covers this table" in " ".join(printed.split())


def protocol_to_report(names: Names, printed: str) -> None:
    """The trial draws its own coins, so that only what holds in every run is said."""
    plan, log, result = names["plan"], names["log"], names["result"]
    table = names["appendix"].found.frame.set_index("scenario")
    assert table.loc["no difference", "family_error"] <= 0.05
    assert table.loc["long is better", "rejected_best"] > 0.9
    look = plan.changed(delay=0).look(log)
    assert f"Look {look.stage} of 4, after {result.rounds:,} participants" in printed
    assert (look.decision, look.rejected) == (result.decision, result.rejected)
    assert result.decision in {"reject", "futility", "no rejection"}
    assert log.stopping == "planned"
    assert log.n_rounds == min(result.rounds + 60, 600)
    assert result.sentence() in printed
    assert f"later rounds not used: {log.n_rounds - result.rounds}" in printed or result.rounds == 600


CHECKS: dict[str, Callable[[Names, str], None]] = {
    "data_protection_officer": data_protection_officer,
    "methodologist": methodologist,
    "product_analyst": product_analyst,
    "protocol_to_report": protocol_to_report,
    "trial_statistician": trial_statistician,
}


def test_every_tutorial_is_checked() -> None:
    assert sorted(CHECKS) == PAGES


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_a_tutorial_says_what_it_finds(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    try:
        CHECKS[page](*run(page))
    finally:
        plt.close("all")
    assert any(path.suffix == ".html" for path in tmp_path.iterdir()) or page == "methodologist"
