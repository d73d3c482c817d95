"""The demo: its numbers against the library's own, its text, its report, and when a browser opens."""

from __future__ import annotations

import io
import math
import re
from pathlib import Path

import numpy as np
import pytest
from conftest import Run
from scipy import stats

from adaptinf.cli import demonstration as shown
from adaptinf.cli.demonstration import Answer, Pair, Tally, demonstration
from adaptinf.designs import Thompson
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.inference.winners import Winner
from adaptinf.simulation.environments import BernoulliArms
from adaptinf.sums import Sums

PAGES = Path(__file__).parents[3] / "docs"
NUMBERS = re.compile(r"^(textbook|adaptinf)\D*? +(-?\S+) +(-?\S+) to (-?\S+) +(-?\S+)", re.M)


@pytest.fixture(scope="module")
def text() -> str:
    return demonstration(rng=0, trials=6)


def test_the_textbook_of_the_bandit_is_welchs_t_interval() -> None:
    [log] = Thompson(floor=0.05).logs(BernoulliArms([0.5, 0.5]), 1_000, 1, rng=3)
    [pair] = shown.bandit_trials(3, 1)
    reward, second = log.arrays.reward, log.arrays.action == 1
    welch = stats.ttest_ind(reward[second], reward[~second], equal_var=False).confidence_interval()
    assert (pair.textbook.low, pair.textbook.high) == pytest.approx(welch, abs=1e-12)
    default = Contrast(log, treatment=1, control=0).fit()
    assert pair.adaptinf == Answer.of(default, 0.0)
    assert default.validity == "asymptotic"


def two_proportions(sums: Sums, first: str, second: str) -> tuple[float, float]:
    """The usual interval for a difference of proportions of large samples."""
    totals = sums.frame.groupby("arm")[["n", "sum"]].sum()
    rate = totals["sum"] / totals["n"]
    error = math.sqrt(sum(rate[arm] * (1 - rate[arm]) / totals["n"][arm] for arm in (first, second)))
    half = float(stats.norm.isf(0.025)) * error
    return rate[first] - rate[second] - half, rate[first] - rate[second] + half


def test_the_textbook_of_the_late_page_pools_the_weeks() -> None:
    [generator] = shown._generators(0, 1, 1)
    sums = shown.late_page(generator)
    [pair] = shown.late_trials(0, 1)
    expected = two_proportions(sums, "new", "old")
    assert (pair.textbook.low, pair.textbook.high) == pytest.approx(expected, abs=1e-6)
    assert (pair.textbook.truth, pair.adaptinf.truth) == (-0.005, -0.005)
    assert Contrast(sums, treatment="new", control="old").fit("sample-mean").validity == "not valid"
    weeks = sums.frame.groupby(["batch", "arm"])["n"].sum().unstack()
    assert weeks.sum(axis=1).tolist() == [20_000] * 6
    assert (weeks["new"] > 0).tolist() == [False, False, True, True, True, True]


def test_the_winner_is_the_highest_mean_and_its_truth_that_of_the_line() -> None:
    [generator] = shown._generators(0, 2, 1)
    sums = shown.mailing(generator)
    [pair] = shown.winner_trials(0, 1)
    totals = sums.frame.groupby("arm")[["n", "sum"]].sum()
    means = totals["sum"] / totals["n"]
    assert pair.textbook.estimate == pytest.approx(means.max(), abs=1e-12)
    assert pair.textbook.truth == shown.LINES[str(means.idxmax())]
    best = Winner(sums).fit()
    assert pair.adaptinf == Answer.of(best, shown.LINES[best.winner])
    assert ArmMeans(sums).fit("sample-mean").validity == "not valid"
    first, second = (sums.frame[sums.frame["batch"] == morning] for morning in (0, 1))
    preferred = first.assign(rate=first["sum"] / first["n"]).nlargest(5, "rate")["arm"]
    assert set(second.loc[second["propensity"] == 0.16, "arm"]) == set(preferred)


def test_the_textbook_loses_where_it_should() -> None:
    pairs = list(shown.late_trials(1, 40))
    assert sum(pair.textbook.misses for pair in pairs) == 40
    assert sum(pair.adaptinf.misses for pair in pairs) <= 6  # more in 1 of 70 runs of 40 at 5%
    overstated = [pair.textbook.estimate - pair.textbook.truth for pair in shown.winner_trials(1, 40)]
    assert 0.006 < np.mean(overstated) < 0.013


def test_a_tally_has_its_errors() -> None:
    answers = [Answer(0.02, -0.02, 0.06, 0.0), Answer(0.05, 0.01, 0.09, 0.0), Answer(-0.01, -0.05, 0.03, 0.0)]
    tally = Tally.of([*answers, Answer(0.04, 0.0, 0.08, 0.0)])
    assert (tally.trials, tally.missed) == (4, 1)
    assert tally.median == pytest.approx(0.03)
    assert tally.spread == pytest.approx(np.std([0.02, 0.05, -0.01, 0.04]))
    # A third of four trials after adding one of each kind; the median of a normal sample.
    share = 100 * math.sqrt(1 / 3 * 2 / 3 / 4)
    median = 100 * math.sqrt(math.pi / 8) * tally.spread
    assert tally.cells() == (f"25.0% ± {share:.1f}", f"+3.00 ± {median:.2f}")
    assert Tally(200, 200, 0.0, 0.0).cells()[0] == "100.0% ± 0.5"


def test_tallies_made_beforehand_are_those_of_the_page() -> None:
    page = (PAGES / "from_statsmodels.md").read_text(encoding="utf-8")
    assert "Thompson(floor=0.05).logs(equal, 1_000, 500, rng=3)" in page
    textbook, adaptinf = shown.EXPERIMENTS[0].recorded
    printed = f"{{'t test': '{textbook.missed / 500:.3f}', 'Contrast': '{adaptinf.missed / 500:.3f}'}}"
    assert printed in page


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(one, marks=pytest.mark.slow if one.title == "Two equal pages" else pytest.mark.long)
        for one in shown.EXPERIMENTS
    ],
    ids=lambda one: one.title,
)
def test_tallies_made_beforehand_come_out_again(one: shown.Experiment) -> None:
    pairs = list(one.simulated(3, shown.RECORDED))
    for kept, kind in zip(one.recorded, ("textbook", "adaptinf"), strict=True):
        found = Tally.of(getattr(pair, kind) for pair in pairs)
        assert (found.trials, found.missed) == (kept.trials, kept.missed)
        assert found.median == pytest.approx(kept.median, abs=5e-6)
        assert found.spread == pytest.approx(kept.spread, abs=5e-5)


def rounded(answer: Answer) -> tuple[str, ...]:
    numbers = (answer.estimate, answer.low, answer.high, answer.truth)
    return tuple(f"{100 * number:.1f}" for number in numbers)


def test_the_text_shows_the_numbers_of_the_trials(text: str) -> None:
    pairs: list[list[Pair]] = [list(one.simulated(0, 6)) for one in shown.EXPERIMENTS]
    expected = [rounded(getattr(found[0], kind)) for found in pairs for kind in ("textbook", "adaptinf")]
    assert [row[1:] for row in NUMBERS.findall(text)] == expected
    for found in pairs:
        for kind in ("textbook", "adaptinf"):
            share, error = Tally.of(getattr(pair, kind) for pair in found).cells()
            assert re.search(rf"{re.escape(share)} +{re.escape(error)}$", text, re.M)
    assert "run in advance" not in text


def test_the_text_says_which_trials_were_run_beforehand() -> None:
    text = demonstration(rng=0)
    assert text.count("500 trials, run in advance") == 3
    assert re.search(r"textbook.* 6\.6% ± 1\.1  \+0\.21 ± 0\.32$", text, re.M)
    assert re.search(r"adaptinf.* 3\.8% ± 0\.9  \+0\.05 ± 0\.29$", text, re.M)
    assert text.endswith("again: adaptinf demo --rng 3 --trials 500")


def test_the_text_has_80_columns(text: str) -> None:
    assert max(map(len, text.splitlines())) <= 80
    assert all(line == line.rstrip() for line in text.splitlines())
    assert len(text.splitlines()) < 60


def test_the_seed_decides_the_numbers(text: str) -> None:
    assert demonstration(rng=0, trials=6) == text
    assert NUMBERS.findall(demonstration(rng=1, trials=1)) != NUMBERS.findall(text)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_shows_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    demonstration(0, 1)
    assert capsys.readouterr() == ("", "")
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    demonstration(0, 1)
    assert "  0%|" in terminal.getvalue()


def test_the_report_is_of_the_first_trial(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "late.html"
    code, out, err = run("demo", "--trials", "1", "--report", str(page))
    assert (code, err) == (0, "")
    assert out.endswith(f"\nThe report: {page}\n")
    assert "<h1>A page that came late</h1>" in page.read_text(encoding="utf-8")
    [pair] = shown.late_trials(3, 1)
    assert f"{pair.adaptinf.estimate:.4f}" in out


def test_without_a_name_the_report_is_in_a_folder_of_its_own(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code, out, _ = run("demo", "--trials", "1", "--no-open")
    [page] = tmp_path.glob("adaptinf-demo-*/late_page.html")
    assert (code, out.splitlines()[-1]) == (0, f"The report: {page}")


def test_a_report_without_pictures_says_what_they_need(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adaptinf.cli.demo_command.find_spec", lambda name: None)
    _, out, _ = run("demo", "--trials", "1", "--report", str(tmp_path / "late.html"))
    assert out.endswith('Its pictures require matplotlib, which is installed by: pip install -e ".[plots]"\n')


def test_wrong_arguments_are_listed_before_anything_runs(run: Run, tmp_path: Path) -> None:
    code, out, err = run("demo", "--trials", "0", "--report", str(tmp_path / "late.pdf"))
    assert (code, out) == (2, "")
    assert "late.pdf must end in .html" in err
    assert "--trials must be a whole number of at least 1, got 0" in err


@pytest.mark.parametrize(
    ("options", "terminal", "display", "opened"),
    [
        ([], True, True, True),
        (["--no-open"], True, True, False),
        ([], False, True, False),
        ([], True, False, False),
    ],
)
def test_a_browser_opens_on_a_terminal_with_windows_only(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    terminal: bool,
    display: bool,
    opened: bool,
) -> None:
    from adaptinf.cli.entry import main

    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("DISPLAY", raising=False)
    if display:
        monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr("sys.stdout", Terminal() if terminal else io.StringIO())
    seen: list[str] = []
    monkeypatch.setattr("webbrowser.open", seen.append)
    page = tmp_path / "late page.html"
    assert main(["demo", "--trials", "1", "--report", str(page), *options]) == 0
    assert seen == [page.as_uri()] * opened
