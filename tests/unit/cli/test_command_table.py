"""Each command with nothing, a wrong column, a wrong file, a closed pipe, and files of each ending."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import adaptinf as ai
from adaptinf.cli.entry import main
from adaptinf.cli.refusals import in_flags

Run = Callable[..., tuple[int, str, str]]
COLUMNS = ["--action", "arm", "--reward", "y", "--propensity", "p"]
READING = ("validate", "diagnose", "recommend", "analyze", "report", "convert")
TABLES = ("validate", "diagnose", "recommend", "analyze", "power")
PLAN = ["--means", "0.2", "0.7", "--horizon", "40", "--replications", "20"]


def rows(n: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(11)
    arm = rng.permutation(np.repeat(["A", "B"], n // 2))
    return pd.DataFrame({"arm": arm, "y": (rng.random(n) < 0.3).astype(int), "p": 0.5})


@pytest.fixture
def path(tmp_path: Path) -> str:
    rows().to_csv(tmp_path / "log.csv", index=False)
    return str(tmp_path / "log.csv")


def given(command: str, path: str) -> list[str]:
    """A whole call that writes to standard output, or of `report` and `convert` to a file."""
    if command == "power":
        return [command, *PLAN]
    ends = {"report": ["--output", f"{path}.html"], "convert": ["--output", f"{path}.parquet"]}
    return [command, path, *COLUMNS, *ends.get(command, [])]


@pytest.mark.parametrize("command", [*READING, "power", "trial", "qualify", "demo"])
def test_help_opens_with_what_it_does_and_an_example(
    run: Run, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = run(command, "--help")
    opening, examples, usage, *_ = out.split("\n\n")
    assert (code, err) == (0, "")
    assert opening[0].isupper()
    assert opening.endswith(".")
    assert examples.startswith(f"examples:\n  adaptinf {command}")
    assert usage.startswith(f"usage: adaptinf {command}")
    assert "Exit codes: 0 success; 1 a problem found" in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("action", ["create", "assign", "record", "unblind", "erase", "export", "restore"])
def test_help_of_actions(run: Run, action: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run("trial", action, "--help")
    assert code == 0
    assert out.split("\n\n")[1].startswith(f"examples:\n  adaptinf trial {action} ")
    assert max(map(len, out.splitlines())) <= 80


def test_without_a_command_all_are_listed(run: Run) -> None:
    code, out, err = run()
    assert (code, err) == (0, "")
    listed = re.findall(r"^  ([a-z]+)  ", out, re.MULTILINE)
    assert listed == [*READING[:4], "power", *READING[4:], "trial", "qualify", "demo"]
    code, out, err = run("trial")
    assert (code, err) == (0, "")
    assert "  audit-noise  " in out


@pytest.mark.parametrize(
    ("command", "told"),
    [
        *((name, f"adaptinf {name}: FILE is required, as in adaptinf {name} ") for name in READING[:4]),
        ("report", "adaptinf report: FILE, --output are required, as in adaptinf report "),
        (
            "convert",
            "adaptinf convert: FILE, --output are required, as in adaptinf convert visits.csv --action ",
        ),
        ("power", "adaptinf power: --means is required, as in adaptinf power --means 0.25 0.45 --horizon"),
    ],
)
def test_no_arguments(run: Run, command: str, told: str) -> None:
    code, out, err = run(command)
    assert (code, out) == (2, "")
    assert err.startswith(told)
    assert err.endswith(f"\nMore examples: adaptinf {command} --help\n")


@pytest.mark.parametrize("command", READING)
def test_a_wrong_column_and_a_wrong_file(run: Run, path: str, command: str, tmp_path: Path) -> None:
    call = given(command, path)
    wrong = ["yy" if word == "y" else word for word in call]
    code, out, err = run(*wrong)
    assert (code, out) == (2, "")
    assert err.splitlines()[0].startswith(f"adaptinf {command}: the log in {path} has 1 problem")
    assert err.splitlines()[1] == "  - there is no column 'yy' for reward; did you mean 'y'?"
    nowhere = str(tmp_path / "nowhere.csv")
    code, out, err = run(*(nowhere if word == path else word for word in call))
    assert (code, out, err) == (2, "", f"adaptinf {command}: file {nowhere} does not exist\n")
    code, out, err = run(*(str(tmp_path / "no*.csv") if word == path else word for word in call))
    assert (code, out, err) == (2, "", f"adaptinf {command}: there is no file {tmp_path / 'no*.csv'}\n")
    assert [file.name for file in tmp_path.iterdir()] == ["log.csv"]


class Closed(io.StringIO):
    """A pipe whose reader is gone."""

    def __init__(self, handle: int) -> None:
        super().__init__()
        self._handle = handle

    def write(self, text: str) -> int:
        raise BrokenPipeError

    def fileno(self) -> int:
        return self._handle


@pytest.mark.parametrize("command", [*TABLES, ""])
def test_a_closed_pipe_is_quiet(
    path: str,
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with monkeypatch.context() as patch, (tmp_path / "pipe").open("w") as file:
        patch.setattr(sys, "stdout", Closed(file.fileno()))
        assert main(given(command, path) if command else []) == 0
    assert capsys.readouterr().err == ""


FORMS = {".txt": "text", ".md": "markdown", ".tex": "latex", ".html": "html", ".htm": "html"}
FORMS |= {".csv": "csv", ".json": "json"}
OPENINGS = {
    ".md": "|",
    ".tex": r"\begin{tabular}",
    ".html": "<table",
    ".htm": "<table",
}


@pytest.mark.parametrize("command", TABLES)
def test_a_file_is_what_its_name_says(run: Run, path: str, command: str, tmp_path: Path) -> None:
    printed = {form: run(*given(command, path), "--format", form)[1] for form in ("text", "csv", "json")}
    for ending in FORMS:
        place = tmp_path / f"answer{ending}"
        code, out, err = run(*given(command, path), "--output", str(place))
        form = FORMS[ending]
        assert (code, out, err) == (0, "", f"adaptinf {command}: wrote {place} ({form})\n")
        text = place.read_text(encoding="utf-8")
        if form in printed:
            assert text == printed[form]
        assert OPENINGS.get(ending, "") in text
    assert len(list(csv.reader(io.StringIO(printed["csv"])))) > 1
    assert json.loads(printed["json"])


@pytest.mark.parametrize("command", TABLES)
def test_a_file_of_another_name_is_refused(run: Run, path: str, command: str, tmp_path: Path) -> None:
    code, out, err = run(*given(command, path), "--output", str(tmp_path / "x.parquet"))
    endings = ".txt, .md, .tex, .html, .htm, .csv, .json"
    told = f"--output {tmp_path / 'x.parquet'}: its extension must be one of {endings}; without an extension,"
    assert (code, out, err) == (2, "", f"adaptinf {command}: {told} --format determines the format\n")
    code, out, err = run(*given(command, path), "--output", str(tmp_path / "x.csv"), "--format", "json")
    assert (code, out) == (2, "")
    assert err == (
        f"adaptinf {command}: --output {tmp_path / 'x.csv'} implies csv, but --format is json: omit "
        "--format, or use another file name\n"
    )
    assert not list(tmp_path.glob("x.*"))
    assert run(*given(command, path), "--output", "-") == run(*given(command, path))


@pytest.mark.parametrize(
    ("command", "told"),
    [("report", "--output {}x.txt must end in .html"), ("convert", "--output {}x.txt must end in one of")],
)
def test_pages_and_logs_have_their_endings(
    run: Run, path: str, command: str, told: str, tmp_path: Path
) -> None:
    code, out, err = run(command, path, *COLUMNS, "--output", str(tmp_path / "x.txt"))
    assert (code, out) == (2, "")
    assert err.startswith(f"adaptinf {command}: {told.format(f'{tmp_path}/')}")
    code, out, err = run(command, path, *COLUMNS, "--output", path)
    assert (code, "would overwrite" in err) == (2, True)


def test_diagnose_and_recommend_have_the_numbers_of_the_library(run: Run, path: str) -> None:
    log = ai.AdaptiveLog(rows(), action="arm", reward="y", propensity="p")
    code, out, _ = run("diagnose", path, *COLUMNS, "--expected", "A=0.5,B=0.5", "--format", "csv")
    expected = ai.diagnose(log, expected={"A": 0.5, "B": 0.5}).to_frame()
    found = pd.read_csv(io.StringIO(out), keep_default_na=False, na_values={"p_value": [""]})
    assert code == 0
    assert found["verdict"].tolist() == expected["verdict"].tolist()
    np.testing.assert_allclose(found["p_value"], expected["p_value"], rtol=1e-12)
    code, out, _ = run("recommend", path, *COLUMNS, "--treatment", "B", "--control", "A", "--format", "json")
    table = ai.recommend(log, "contrast", treatment="B", control="A").frame
    record = json.loads(out)
    assert (code, record["target"]) == (0, "contrast")
    assert [row["call"] for row in record["methods"]] == table["call"].tolist()
    for asked, target in (
        (["--control", "A"], "contrasts"),
        (["--winner"], "winner"),
        ([], "arm-means"),
        (["--treatment", "B", "--control", "A", "--lift"], "contrasts"),
    ):
        out = run("recommend", path, *COLUMNS, *asked, "--format", "json")[1]
        assert json.loads(out)["target"] == target


def test_strict_says_by_its_exit_code_what_the_log_says(run: Run, path: str, tmp_path: Path) -> None:
    uneven = pd.concat([rows(), rows()[rows()["arm"] == "A"]])
    uneven.to_csv(tmp_path / "uneven.csv", index=False)
    for command in ("validate", "analyze", "diagnose"):
        assert run(command, str(tmp_path / "uneven.csv"), *COLUMNS)[0] == 0
        assert run(command, str(tmp_path / "uneven.csv"), *COLUMNS, "--strict")[0] == 1
        assert run(command, path, *COLUMNS, "--strict")[0] == 0
    assert run("recommend", path, *COLUMNS, "--strict")[0] == 0
    stopped = ["--stopping", "data-chosen", "--denominator", "z"]
    rows().assign(z=1.0).to_csv(tmp_path / "ratio.csv", index=False)
    assert run("recommend", str(tmp_path / "ratio.csv"), *COLUMNS, *stopped)[0] == 0
    assert run("recommend", str(tmp_path / "ratio.csv"), *COLUMNS, *stopped, "--strict")[0] == 1


def test_power_has_the_numbers_of_the_library(run: Run) -> None:
    plan = ["--design", "EpsilonGreedy", "--parameters", '{"exploration": 0.4}', "--replications", "64"]
    plan += ["--means", "0.3", "0.3", "--means", "0.3", "0.8", "--rng", "5", "--estimator", "aipw"]
    code, out, err = run("power", *plan, "--horizon", "60", "80", "--format", "csv")
    arms = {"0.3 0.3": ai.environments.BernoulliArms([0.3, 0.3])}
    arms["0.3 0.8"] = ai.environments.BernoulliArms([0.3, 0.8])

    def fit(log: ai.AdaptiveLog) -> object:
        return ai.Contrast(log, treatment=1, control=0).fit("aipw")

    design = ai.designs.EpsilonGreedy(exploration=0.4)
    expected = ai.audit.power(design, arms, fit, [60, 80], 64, 5).frame
    found = pd.read_csv(io.StringIO(out), keep_default_na=False)
    assert (code, err) == (0, "")
    assert found["scenario"].tolist() == ["0.3 0.3"] * 2 + ["0.3 0.8"] * 2
    assert found["rejection"].tolist() == expected["rejection"].tolist()
    code, out, _ = run("power", *plan, "--horizon", "60", "--characteristics", "--format", "json")
    table = ai.audit.operating_characteristics(design, arms, [60], 64, 5, fit=fit).frame
    assert code == 0
    assert [row["value"] for row in json.loads(out)["rows"]][:8] == table["value"].tolist()[:8]
    normal = ["--means", "0", "1", "--sd", "1", "--replications", "64", "--power", "0.8", "--format", "json"]
    found = json.loads(run("power", *normal)[1])
    sizes = ai.audit.sample_size(
        ai.designs.Uniform(),
        ai.environments.NormalArms([0, 1]),
        lambda log: ai.Contrast(log, treatment=1, control=0).fit(),
        replications=64,
        rng=0,
    )
    assert [row["horizon"] for row in found["rows"]] == sizes.frame["horizon"].tolist()


def test_a_plan_that_makes_no_sense(run: Run) -> None:
    code, _, err = run("power", "--means", "0.3", "0.5")
    assert (code, "one of the arguments --horizon --power is required" in err) == (2, True)
    twice = ["--means", "0.3", "0.5", "--means", "0.3", "0.6", "--power", "0.8"]
    told = "--power examines one scenario: give --means once, without --characteristics"
    assert run("power", *twice) == (2, "", f"adaptinf power: {told}\n")
    code, _, err = run("power", *PLAN, "--design", "Thomson")
    assert (code, err.endswith("did you mean 'Thompson'?\n")) == (2, True)
    code, _, err = run("power", *PLAN, "--design", "Thompson", "--parameters", '{"flor": 0.1}')
    assert (code, err.endswith("did you mean 'floor'?\n")) == (2, True)
    code, _, err = run("power", *PLAN, "--design", "PrivateUCB", "--parameters", '{"batch": 1}')
    assert code == 2
    assert "2 problems\n  - there is no parameter 'batch'; PrivateUCB has 'epsilon'" in err
    assert "\n  - PrivateUCB requires epsilon" in err


def test_report_and_convert_write_what_the_library_writes(run: Run, path: str, tmp_path: Path) -> None:
    page, stored = tmp_path / "page.html", tmp_path / "log.parquet"
    code, out, err = run("convert", path, *COLUMNS, "--output", str(stored))
    assert (code, out, err) == (0, "", f"adaptinf convert: wrote {stored} (a log of 200 rounds)\n")
    log = ai.read_log(path, action="arm", reward="y", propensity="p")
    pd.testing.assert_frame_equal(ai.read_log(stored).frame, log.frame)
    code, out, err = run("report", str(stored), "--output", str(page), "--title", "A & B")
    assert (code, out, err) == (0, "", f"adaptinf report: wrote {page} (a report)\n")
    assert "<h1>A &amp; B</h1>" in page.read_text(encoding="utf-8")
    asked = ["--treatment", "B", "--control", "A"]
    assert run("report", str(stored), *asked, "--output", str(page))[0] == 0
    estimate = ai.Contrast(log, treatment="B", control="A").fit().params.iloc[0]
    assert f"{estimate:.4f}" in page.read_text(encoding="utf-8")
    code, _, err = run("convert", path, *COLUMNS, "--affinities", "--output", str(stored))
    assert (code, "--affinities: applies to dsjson files and Open Bandit folders, not to a table" in err) == (
        2,
        True,
    )


def test_nothing_is_mixed_into_the_answer_where_standard_error_is_closed(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", None)
        assert main(["convert", path, *COLUMNS, "--output", str(tmp_path / "log.parquet")]) == 0
        assert main(["validate", "nowhere.csv", *COLUMNS]) == 2
    assert capsys.readouterr() == ("", "")


def test_the_public_part_of_a_log_has_a_report_and_no_rows(run: Run, tmp_path: Path) -> None:
    arms = ai.environments.BernoulliArms([0.3, 0.6])
    log = ai.designs.PrivateUCB(epsilon=1.0).run(arms, horizon=200, rng=0)
    log.public().to_parquet(tmp_path / "public.parquet")
    public, page = str(tmp_path / "public.parquet"), tmp_path / "page.html"
    code, out, err = run("report", public, "--output", str(page))
    assert (code, out, err) == (0, "", f"adaptinf report: wrote {page} (a report)\n")
    assert "What may be published, and what is left out" in page.read_text(encoding="utf-8")
    for command in ("validate", "diagnose", "recommend"):
        code, out, err = run(command, public)
        told = f"adaptinf {command}: {public}: it is the public part of a log, without rows: use adaptinf "
        assert (code, out) == (2, "")
        assert err.startswith(told)


def test_messages_speak_of_options() -> None:
    flags = {"--sort", "--round", "--propensities", "--success", "--covariate-sum-squares"}
    for told, expected in (
        ("'sort' needs round= or batch=", "--sort needs --round or batch="),
        ("propensities='p{arm}' finds none", "--propensities 'p{arm}' finds none"),
        ("covariate= needs 'covariate_sum_squares'", "covariate= needs --covariate-sum-squares"),
        ("set 'sort' to True (--sort on the command line) here", "give --sort here"),
        (
            "set 'success' to the label that counts as 1, such as 'Y' (--success Y on the command line)",
            "set --success to the label that counts as 1, such as --success Y",
        ),
        ("there is no column 'success'", "there is no column 'success'"),
        ("there is no arm 'round=1'", "there is no arm 'round=1'"),
    ):
        assert in_flags(told, flags) == expected


def completions(line: str, folder: Path) -> set[str]:
    """What a shell is offered behind a line."""
    place = folder / "offered"
    told = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)), "IFS": "\013"}
    told |= {"_ARGCOMPLETE_STDOUT_FILENAME": str(place), "_ARGCOMPLETE_SUPPRESS_SPACE": "1"}
    code = "from adaptinf.cli import main; main([])"
    subprocess.run([sys.executable, "-c", code], env=os.environ | told, cwd=folder, check=True, timeout=120)
    return {word.replace("\\", "") for word in place.read_text(encoding="utf-8").split("\013")}


def test_the_shell_completes_commands_options_and_columns(path: str, tmp_path: Path) -> None:
    pytest.importorskip("argcomplete")
    assert completions("adaptinf re", tmp_path) == {"recommend", "report"}
    assert "--propensities" in completions("adaptinf diagnose log.csv --prop", tmp_path)
    assert completions("adaptinf analyze log.csv --action ", tmp_path) >= {"arm", "y", "p"}
    assert completions("adaptinf trial au", tmp_path) == {"audit-noise"}
