"""The demo: its true answers, its numbers against the library's own, its text, its silence in a pipe."""

from __future__ import annotations

import io
import math
import re

import numpy as np
import pandas as pd
import pytest
from statsmodels.datasets import randhie

from adaptinf.cli.demonstration import contrast_trial, full_data_effects, group_trial, run_demo
from adaptinf.datasets import rand_hie
from adaptinf.inference.arms import Contrast
from adaptinf.inference.effects.cate import CATE
from adaptinf.inference.results.tables import format_pvalue

SMALL = (20_000, 2_000)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return rand_hie()


@pytest.fixture(scope="module")
def report() -> str:
    return run_demo(rng=0, horizons=SMALL)


def direct_effect(rows: pd.DataFrame) -> float:
    """From the file of statsmodels, in its own terms."""
    free = (rows["lncoins"] == 0) & (rows["idp"] == 0)
    return float((rows.loc[free, "mdvis"] > 0).mean() - (rows.loc[~free, "mdvis"] > 0).mean())


def test_full_data_answer_is_that_of_the_file(frame: pd.DataFrame) -> None:
    source = randhie.load_pandas().data
    unwell = (source["hlthf"] == 1) | (source["hlthp"] == 1)
    well = source["hlthg"] == 1
    effects = full_data_effects(frame, "group")
    assert effects["good"] == pytest.approx(direct_effect(source[well]), abs=1e-12)
    assert effects["fair-or-poor"] == pytest.approx(direct_effect(source[unwell]), abs=1e-12)
    assert effects["excellent"] == pytest.approx(direct_effect(source[~well & ~unwell]), abs=1e-12)
    assert full_data_effects(frame)["all"] == pytest.approx(direct_effect(source), abs=1e-12)


def test_group_trial_hands_on_what_the_library_computes(frame: pd.DataFrame) -> None:
    trial = group_trial(frame, 20_000, np.random.SeedSequence(1))
    assert trial.log.n_rounds == 20_000
    assert trial.log.guarantee is not None
    assert (trial.log.guarantee.epsilon, trial.log.guarantee.unit) == (1.0, "record")
    rows = trial.log.frame.query("group == 'good'")
    naive = rows.groupby("action")["reward"].mean()
    expected = naive["free care"] - naive["cost sharing"]
    assert trial.naive.params["group=good"] == pytest.approx(expected, abs=1e-12)
    coins = rows[rows["randomised"] & (rows["phase"] == "estimation")].groupby("action")["reward"].mean()
    expected = coins["free care"] - coins["cost sharing"]
    assert trial.difference.params["group=good"] == pytest.approx(expected, abs=1e-12)
    released = CATE(trial.log, by="group", treatment="free care", control="cost sharing").fit("released")
    assert trial.released.params.equals(released.params)
    assert trial.released.private
    assert trial.aipw.estimator == "aipw"


def test_contrast_trial_has_a_correction_that_widens_and_does_not_kill(frame: pd.DataFrame) -> None:
    trial = contrast_trial(frame, 20_190, np.random.SeedSequence(0))
    assert trial.full_data == pytest.approx(direct_effect(randhie.load_pandas().data), abs=1e-12)
    naive, corrected = trial.result.conf_int().iloc[0], trial.result.conf_int_corrected().iloc[0]
    assert corrected["low"] < naive["low"] < naive["high"] < corrected["high"]
    assert corrected["low"] > 0.0
    assert trial.result.correction is not None
    assert trial.result.correction.epsilon == 0.02
    means = trial.log.frame.groupby("action")["reward"].mean()
    assert trial.result.params.iloc[0] == pytest.approx(means["free care"] - means["cost sharing"], abs=1e-12)


def test_report_shows_the_numbers_of_the_trials(frame: pd.DataFrame, report: str) -> None:
    first, second = np.random.SeedSequence(0).spawn(2)
    groups = group_trial(frame, SMALL[0], first)
    table = re.findall(
        r"^(\S+)? +(full data|released|difference in means|AIPW|naive difference) +(-?\d\.\d{4})",
        report,
        re.M,
    )
    shown = {
        name: [row[2] for row in table if row[1] == name][:3] for name in ("released", "AIPW", "full data")
    }
    order = [f"group={group}" for group in ("excellent", "good", "fair-or-poor")]
    assert shown["released"] == [f"{x:.4f}" for x in groups.released.params[order]]
    assert shown["AIPW"] == [f"{x:.4f}" for x in groups.aipw.params[order]]
    assert shown["full data"] == ["0.1451", "0.1459", "0.1130"]
    contrast = contrast_trial(frame, SMALL[1], second)
    for kind, p, interval in (
        ("naive", contrast.result.pvalues, contrast.result.conf_int()),
        ("corrected", contrast.result.pvalues_corrected, contrast.result.conf_int_corrected()),
    ):
        low, high = interval.to_numpy()[0]
        line = next(line for line in report.splitlines() if line.startswith(f"{kind} "))
        assert line.split()[2:5] == [format_pvalue(math.log(p.iloc[0])), f"{low:.4f}", f"{high:.4f}"]
    assert str(groups.released) in report


def test_report_says_what_is_protected_and_what_is_not(report: str) -> None:
    text = " ".join(report.split())
    assert "epsilon = 1, pure, per record, central, anticipating." in text
    assert "a person-year, with its health" in text
    assert "epsilon = 0.02, pure, per reward, central, standard." in text
    assert "a person-year again, not a person" in text
    assert "Do not publish releases of a simulation as private." in text


def test_report_is_narrower_than_100_columns(report: str) -> None:
    assert max(map(len, report.splitlines())) < 100
    assert all(line == line.rstrip() for line in report.splitlines())


def test_a_trial_too_small_for_an_answer_says_so() -> None:
    report = run_demo(rng=0, horizons=(60, 60))
    assert re.search(r"released +nan +nan +nan", report)


def test_seed_decides_the_numbers(report: str) -> None:
    assert run_demo(rng=0, horizons=SMALL) == report
    assert run_demo(rng=1, horizons=SMALL) != report


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_shows_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_demo(horizons=(60, 60))
    assert capsys.readouterr() == ("", "")
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    run_demo(horizons=(60, 60))
    assert "trial 2" in terminal.getvalue()


def test_contrast_of_the_demo_is_the_default_fit(frame: pd.DataFrame) -> None:
    trial = contrast_trial(frame, 500, np.random.SeedSequence(0))
    default = Contrast(trial.log, treatment="free care", control="cost sharing").fit()
    assert default.conf_int().equals(trial.result.conf_int())
