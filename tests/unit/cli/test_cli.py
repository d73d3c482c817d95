"""The command line: exit codes, formats, what it refuses, and what it leaves alone."""

from __future__ import annotations

import csv
import html
import io
import json
import math
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from claims_said import says, wording

import adaptinf as ai
from adaptinf.claims.arms import arm_fits
from adaptinf.claims.logs.readings import UNUSED_COLUMNS
from adaptinf.claims.logs.rows import COPIES
from adaptinf.claims.propensities import NOT_FOLLOWED
from adaptinf.cli.entry import main

UNUSED = UNUSED_COLUMNS(names="pa, pb, number, site, coin")
COLUMNS = ["--action", "arm", "--reward", "y"]
KNOWN = [*COLUMNS, "--propensity", "p"]


def sample(n: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    share = rng.uniform(0.3, 0.7, n)
    treated = rng.random(n) < share
    return pd.DataFrame(
        {
            "arm": np.where(treated, "b & 50%_#1", "a<x>"),
            "y": (rng.random(n) < 0.4 + 0.2 * treated).astype(int),
            "p": np.where(treated, share, 1 - share),
            "pa": 1 - share,
            "pb": share,
            "number": treated.astype(int),
            "site": rng.integers(0, 3, n),
            "coin": True,
        }
    )


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "log.csv"
    sample().to_csv(file, index=False)
    return str(file)


Run = Callable[..., tuple[int, str, str]]


def log_of(frame: pd.DataFrame, **options: object) -> ai.AdaptiveLog:
    return ai.AdaptiveLog(frame, **{"action": "arm", "reward": "y", **options})  # type: ignore[arg-type]


def test_version(run: Run) -> None:
    assert run("--version") == (0, f"adaptinf {ai.__version__}\n", "")


def test_analyze_prints_the_summary_of_the_library(run: Run, path: str) -> None:
    result = ai.ArmMeans(log_of(sample(), propensity="p")).fit()
    noted = replace(result, notes=(*result.notes, UNUSED))
    text = noted.summary(alpha=0.1).as_text().replace("result.explain()", "the same command with --explain")
    found = textwrap.fill(noted.sentence(alpha=0.1), 80, break_on_hyphens=False)
    table = f"{found}\n\n{text}"
    assert run("analyze", path, *KNOWN, "--alpha", "0.1") == (0, f"{table}\n", "")
    both = f"{table}\n\n{noted.explain(0.1)}\n"
    assert run("analyze", path, *KNOWN, "--alpha", "0.1", "--explain") == (0, both, "")
    code, out, err = run("analyze", path, *KNOWN, "--explain", "--format", "csv")
    assert (code, out) == (2, "")
    assert "--explain applies only to --format text" in err


def test_columns_that_were_not_used_are_named(run: Run, path: str, tmp_path: Path) -> None:
    def notes(*arguments: str) -> list[str]:
        code, out, _ = run("analyze", *arguments, "--format", "json")
        assert code == 0
        return [str(claim["text"]) for claim in json.loads(out)["claims"]]

    named = ["--propensities", "a<x>=pa,b & 50%_#1=pb", "--propensity", "p", "--context", "site"]
    assert UNUSED_COLUMNS(names="number, coin") in notes(path, *COLUMNS, *named)
    sample().drop(columns=["pa", "pb", "number", "site", "coin"]).to_csv(tmp_path / "all.csv", index=False)
    opening = UNUSED.partition(":")[0]
    assert not any(note.startswith(opening) for note in notes(str(tmp_path / "all.csv"), *KNOWN))
    wide = sample().assign(**{f"x{i}": 0 for i in range(20)})
    wide.to_csv(tmp_path / "wide.csv", index=False)
    shown = "pa, pb, number, site, coin, x0, x1, x2, x3, x4, x5, x6 and 13 more"
    assert UNUSED_COLUMNS(names=shown) in notes(str(tmp_path / "wide.csv"), *KNOWN)


def test_markdown_and_every_estimator(run: Run, path: str) -> None:
    code, out, _ = run("analyze", path, *KNOWN, "--format", "markdown", "--estimator", "alee")
    assert (code, out.startswith("**ArmMeans Results**")) == (0, True)
    assert "- **Advice:** Columns not used: pa, pb, number, site, coin." in out.replace("\\", "")
    _, text, _ = run("analyze", "--help")
    assert {"alee", "batched", "markdown"} <= set(re.findall(r"[a-z]+", text))


@pytest.mark.parametrize("module", ["adaptinf", "adaptinf.cli"])
def test_run_as_a_module(module: str) -> None:
    command = [sys.executable, "-m", module]
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"adaptinf {ai.__version__}\n", "")
    assert b"examples:" in subprocess.run(command, capture_output=True, timeout=120, check=True).stdout


def test_every_propensity_lets_arms_share_weights(run: Run, path: str) -> None:
    named = "a<x>=pa,b & 50%_#1=pb"
    code, out, _ = run("analyze", path, *COLUMNS, "--propensities", named, "--format", "csv")
    log = log_of(sample(), propensities={"a<x>": "pa", "b & 50%_#1": "pb"})
    result = ai.ArmMeans(log).fit()
    assert (code, result.weights) == (0, "joint")
    pd.testing.assert_frame_equal(pd.read_csv(io.StringIO(out)), result.to_frame())


@pytest.mark.parametrize("named", [["0=pa,1=pb"], ["0=pa", "1=pb"]])
def test_arms_that_are_numbers(run: Run, path: str, named: list[str]) -> None:
    columns = ["--action", "number", "--reward", "y"]
    given = [part for pair in named for part in ("--propensities", pair)]
    arms = ["--treatment", "1", "--control", "0"]
    code, out, err = run("analyze", path, *columns, *given, *arms, "--format", "json")
    assert (code, err) == (0, "")
    log = log_of(sample(), action="number", propensities={0: "pa", 1: "pb"})
    expected = ai.Contrast(log, treatment=1, control=0).fit()
    [row] = json.loads(out)["results"]
    assert (row["term"], row["estimate"]) == ("1 - 0", expected.params.iloc[0])


@pytest.mark.parametrize("lift", [False, True])
def test_all_arms_against_a_control(run: Run, path: str, lift: bool) -> None:
    given = ["--action", "number", "--reward", "y", "--propensities", "0=pa,1=pb", "--control", "0"]
    code, out, err = run("analyze", path, *given, *(["--lift"] * lift), "--format", "csv")
    assert (code, err) == (0, "")
    log = log_of(sample(), action="number", propensities={0: "pa", 1: "pb"})
    expected = ai.Contrasts(log, control=0).fit(lift=lift)
    found = pd.read_csv(io.StringIO(out))
    pd.testing.assert_frame_equal(found, expected.to_frame(), check_exact=False, rtol=1e-12)
    assert list(found)[-1] == "conf_high_simultaneous"
    code, _, err = run("analyze", path, *given[:-2], "--lift")
    assert (code, "--lift requires --control" in err) == (2, True)


def test_an_arm_that_nobody_chose_can_be_named(run: Run, tmp_path: Path) -> None:
    frame = sample().assign(pc=0.25, pa=0.5, pb=0.25, p=lambda x: np.where(x["number"] == 1, 0.25, 0.5))
    frame.to_csv(tmp_path / "three.csv", index=False)
    code, out, _ = run(
        "validate", str(tmp_path / "three.csv"), "--action", "number", "--reward", "y", "--propensities",
        "0=pa,1=pb,2=pc",
    )  # fmt: skip
    assert code == 0
    assert "3 arms (0, 1, 2)" in out
    assert re.search(r"^2 +0 +- +-$", out, re.MULTILINE)


def test_epsilon_brings_corrected_columns(run: Run, path: str) -> None:
    arms = ["--treatment", "b & 50%_#1", "--control", "a<x>"]
    code, out, _ = run("analyze", path, *COLUMNS, *arms, "--epsilon", "0.05", "--format", "json")
    guarantee = ai.PrivacyGuarantee(epsilon=0.05, unit="reward")
    expected = ai.Contrast(log_of(sample(), guarantee=guarantee), treatment=arms[1], control=arms[3]).fit()
    record = json.loads(out)
    assert code == 0
    assert record["guarantee"] == guarantee.to_dict()
    assert record["correction"] == {"epsilon": 0.05, "n": 300, "chosen_from": "actions"}
    assert record["guarantee_stated"]
    assert not record["covered"]
    [row] = record["results"]
    assert row["p_value_corrected"] == pytest.approx(expected.pvalues_corrected.iloc[0], rel=1e-12)
    assert row["conf_high_corrected"] > row["conf_high"]


def test_groups(run: Run, path: str) -> None:
    groups = ["--by", "site", "--estimator", "aipw", "--alpha", "0.2"]
    code, out, _ = run("analyze", path, *KNOWN, *groups, "--format", "json")
    expected = ai.CATE(log_of(sample(), propensity="p", context="site"), by="site").fit("aipw")
    record = json.loads(out)
    assert (code, record["model"]) == (0, "CATE")
    assert [row["term"] for row in record["results"]] == ["site=0", "site=1", "site=2"]
    assert [row["estimate"] for row in record["results"]] == expected.params.tolist()
    assert [row["conf_low"] for row in record["results"]] == expected.conf_int(0.2)["low"].tolist()
    assert record["alpha"] == 0.2
    code, out, _ = run("analyze", path, *COLUMNS, "--randomised", "coin", "--by", "site", "--format", "csv")
    assert code == 0
    assert len(out.splitlines()) == 4


class Balance(HTMLParser):
    """Depth of open tags, and the text between them."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_html_parses_and_keeps_names_literal(run: Run, path: str) -> None:
    code, out, _ = run("analyze", path, *KNOWN, "--format", "html")
    parser = Balance()
    parser.feed(out)
    parser.close()
    assert (code, parser.open) == (0, [])
    assert "a<x>" in parser.text
    assert "b & 50%_#1" in parser.text


def test_latex_is_balanced_and_escaped(run: Run, path: str) -> None:
    code, out, _ = run("analyze", path, *KNOWN, "--format", "latex")
    assert code == 0
    assert out.count(r"\begin{tabular}") == out.count(r"\end{tabular}") == 3
    bare = re.sub(r"\\[{}]", "", out)
    assert bare.count("{") == bare.count("}")
    assert r"b \& 50\%\_\#1" in out
    assert re.search(r"(?<!\\)[%#_]", out) is None


def test_csv_has_the_columns_of_to_frame(run: Run, path: str) -> None:
    code, out, _ = run("analyze", path, *KNOWN, "--format", "csv", "--alpha", "0.2")
    rows = list(csv.reader(io.StringIO(out)))
    expected = ai.ArmMeans(log_of(sample(), propensity="p")).fit().to_frame(alpha=0.2)
    assert code == 0
    assert rows[0] == list(expected.columns)
    assert [row[0] for row in rows[1:]] == ["a<x>", "b & 50%_#1"]
    numbers = [[float(cell) for cell in row[1:]] for row in rows[1:]]
    assert numbers == expected.drop(columns="term").to_numpy().tolist()


def test_json_has_null_where_a_number_is_missing(run: Run, tmp_path: Path) -> None:
    pd.DataFrame({"arm": ["a", "a", "b"], "y": [0.5, 0.25, 0.75]}).to_csv(tmp_path / "few.csv", index=False)

    def refuse(name: str) -> None:
        raise AssertionError(name)

    code, out, _ = run("analyze", str(tmp_path / "few.csv"), *COLUMNS, "--format", "json", "--epsilon", "inf")
    record = json.loads(out, parse_constant=refuse)
    assert code == 0
    assert record["results"][1]["estimate"] == 0.75
    assert record["results"][1]["std_error"] is None
    assert record["guarantee"]["epsilon"] == "inf"
    assert says([one["text"] for one in record["claims"]], arm_fits.CHOSEN_ONCE)
    assert {one["kind"] for one in record["claims"]} >= {"missing", "note", "privacy"}


@pytest.mark.parametrize("name", ["log.csv", "log.parquet"])
@pytest.mark.parametrize("way", ["name", "relative", "soft", "hard", "sidecar", "waiting", "through"])
def test_output_never_goes_into_what_is_read(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, way: str
) -> None:
    if way in ("sidecar", "waiting") and name == "log.parquet":
        return
    source, target = tmp_path / name, tmp_path / "link"
    log = log_of(sample())
    log.to_csv(source) if name == "log.csv" else log.to_parquet(source)
    if way == "soft":
        target.symlink_to(source)
    elif way == "hard":
        target.hardlink_to(source)
    elif way == "through":  # the input is the link
        target, source = source, target.with_suffix(source.suffix)
        source.symlink_to(target)
    else:
        endings = {"name": "", "relative": "", "sidecar": ".json", "waiting": ".json.new"}
        target = tmp_path / f"{name}{endings[way]}"
    monkeypatch.chdir(tmp_path)
    output = target.name if way == "relative" else str(target)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    code, out, err = run("analyze", str(source), "--output", output)
    assert (code, out) == (2, "")
    assert f"the output {output} would overwrite {tmp_path}" in err
    assert "an input: choose another file" in err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_output_into_a_sidecar_to_be_is_refused_and_to_a_pipe_is_not(
    run: Run, path: str, tmp_path: Path
) -> None:
    """A JSON beside a CSV of that name would make it a log of adaptinf, and a damaged one."""
    code, _, err = run("analyze", path, *KNOWN, "--format", "json", "--output", f"{path}.json")
    assert (code, Path(f"{path}.json").exists()) == (2, False)
    assert "would overwrite" in err
    code, _, err = run("analyze", path, *KNOWN, "--alpha", "2", "--output", path)
    assert code == 2
    assert "alpha must be between" in err
    assert "would overwrite" in err
    command = [sys.executable, "-m", "adaptinf", "analyze", path, *KNOWN, "--output", "/dev/stdout"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout == run("analyze", path, *KNOWN)[1]
    folder = tmp_path / "folder"
    folder.mkdir()
    assert "cannot be written: it is a directory" in run("analyze", path, *KNOWN, "--output", str(folder))[2]


def test_output_goes_to_a_file(run: Run, path: str, tmp_path: Path) -> None:
    _, printed, _ = run("analyze", path, *KNOWN)
    target = tmp_path / "table.txt"
    wrote = f"adaptinf analyze: wrote {target} (text)\n"
    assert run("analyze", path, *KNOWN, "--output", str(target)) == (0, "", wrote)
    assert target.read_text(encoding="utf-8") == printed


@pytest.mark.parametrize("name", ["own.parquet", "own.csv"])
def test_a_file_of_our_own_needs_no_columns_and_refuses_them(run: Run, tmp_path: Path, name: str) -> None:
    environment = ai.environments.FiniteContext([0.5, 0.5], [[0.4, 0.7], [0.6, 0.3]])
    log = ai.designs.DPConSE(epsilon=1.0, alpha=0.2).run(environment, horizon=5_000, rng=0)
    file = tmp_path / name
    (log.to_parquet if name.endswith("parquet") else log.to_csv)(file)
    code, out, _ = run("analyze", str(file), "--by", "feature", "--estimator", "released", "--format", "csv")
    assert code == 0
    expected = ai.CATE(log, by="feature").fit("released").to_frame()
    read = pd.read_csv(io.StringIO(out))
    pd.testing.assert_frame_equal(read, expected)
    code, out, err = run(
        "analyze", str(file), "--action", "arm", "--reward-range", "0", "1", "--epsilon", "1"
    )
    assert (code, out) == (2, "")
    assert "omit --action, --epsilon, --reward-range" in err


def test_parquet_of_other_origin(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "log.parquet"
    sample().to_parquet(file)
    code, out, _ = run("validate", str(file), *KNOWN, "--context", "site", "--context", "pa")
    assert code == 0
    assert "300 rounds" in out


def test_validate_describes_each_arm(run: Run, path: str) -> None:
    code, out, err = run("validate", path, *KNOWN, "--reward-range", "-1", "1")
    assert (code, err) == (0, "")
    assert f"{path} is a valid log." in out
    frame = sample()
    for arm, rows in frame.groupby("arm"):
        line = next(line for line in out.splitlines() if line.strip().startswith(str(arm)))
        count, mean, smallest = line.split()[-3:]
        assert int(count) == len(rows)
        assert float(mean) == pytest.approx(rows["y"].mean(), rel=1e-3)
        assert float(smallest) == pytest.approx(rows["p"].min(), rel=1e-3)


def damaged(path: Path) -> None:
    frame = sample().astype({"y": float})
    frame.loc[3, "y"] = math.nan
    frame.loc[5, "p"] = 1.5
    frame.loc[9, "arm"] = None
    frame.to_csv(path, index=False)


@pytest.mark.parametrize("command", ["validate", "analyze"])
def test_a_bad_log_lists_every_problem(run: Run, tmp_path: Path, command: str) -> None:
    damaged(tmp_path / "bad.csv")
    code, out, err = run(command, str(tmp_path / "bad.csv"), *KNOWN, "--context", "sit")
    assert (code, out) == (2, "")
    assert err.startswith(f"adaptinf {command}: the log in {tmp_path / 'bad.csv'} has 4 problems")
    assert len(re.findall("^  - ", err, re.MULTILINE)) == 4
    for part in ("'sit' for context; did you mean 'site'?", "[line 5]", "[line 7]", "[line 11]"):
        assert part in err


def test_arguments_and_file_are_told_together(run: Run, path: str) -> None:
    given = ["--action", "arm", "--reward", "yy", "--estimator", "apiw", "--alpha", "0.7", "--epsilon", "-1"]
    code, out, err = run("analyze", path, *given, "--weights", "squareroot")
    assert (code, out) == (2, "")
    for part in ("5 problems", "alpha must", "epsilon must", "estimator must", "weights must", "'yy'"):
        assert part in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "2 problems\n  - --action is required"),
        (["--action", "arm"], "--reward is required: the name of its column"),
        (
            [*COLUMNS, "--treatment", "a<x>"],
            "give --treatment and --control; the log has 'a<x>', 'b & 50%_#1'",
        ),
        ([*COLUMNS, "--treatment", "c", "--control", "a<x>"], "there is no arm 'c'"),
        ([*COLUMNS, "--alpha", "0.5"], "alpha must be between 0 and 0.5"),
        ([*COLUMNS, "--epsilon", "-1"], "epsilon must be 0 or more"),
        ([*COLUMNS, "--reward-range", "0", "0.5"], "rewards outside reward_range [0, 0.5]"),
        ([*COLUMNS, "--estimator", "ipw"], "ipw is not valid for this log"),
        ([*COLUMNS, "--estimator", "ols"], "estimator must be one of 'sample-mean', 'ipw', 'aipw'"),
        ([*COLUMNS, "--by", "site"], "difference-in-means is not valid for this log"),
        ([*COLUMNS, "--propensities", "a<x>=pa", "--propensities", "a<x>=pb"], "arm 'a<x>' is given twice"),
        (
            [*COLUMNS, "--propensities", "pa"],
            "--propensities 'pa' is a column that contains neither lists nor JSON objects",
        ),
        (
            [*COLUMNS, "--propensities", "p_{arm}", "--propensities", "a=p"],
            "matches all columns: it must be the only entry",
        ),
        ([*COLUMNS, "--success", "Y=x"], "invalid TEXT=NUMBER list value"),
        ([*COLUMNS, "--propensities", "a=pa,a=pb"], "invalid ARM=COLUMN list value"),
        ([*COLUMNS, "--format", "xml"], "--format must be one of 'text', 'markdown', 'latex', 'html', 'csv'"),
        ([*COLUMNS, "--alpha", "x"], "invalid float value: 'x'"),
        ([*COLUMNS, "--output", "/nowhere/at/all"], "No such file or directory"),
    ],
)
def test_what_is_refused(run: Run, path: str, arguments: list[str], message: str) -> None:
    code, out, err = run("analyze", path, *arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_files_that_cannot_be_read(run: Run, tmp_path: Path) -> None:
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 is not enough")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "log.txt").write_text("arm,y\na,1\n")
    for name in ("nowhere.csv", "broken.parquet", "empty.csv", "log.txt"):
        code, out, err = run("validate", str(tmp_path / name), *COLUMNS)
        assert (code, out) == (2, ""), name
        assert err.startswith("adaptinf validate: "), name
        assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["analyse"], "adaptinf: there is no command 'analyse'; available: 'validate', "),
        (["demo", "--rng", "-1"], "adaptinf demo: argument --rng: invalid seed value: '-1'\n"),
        (["demo", "--rng", "x"], "adaptinf demo: argument --rng: invalid seed value: 'x'\n"),
        (["demo", "--rgn", "1"], "adaptinf demo: there is no option --rgn; did you mean '--rng'?\n"),
        (["demo", "x"], "adaptinf demo: 'x' is not understood here: files come first, and a value follows"),
    ],
)
def test_bad_usage(run: Run, arguments: list[str], told: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith(told)
    assert err.endswith("--help\n")


def test_a_command_that_is_misspelt_is_guessed(run: Run) -> None:
    assert "did you mean 'analyze'?" in run("analyse")[2]
    assert "there is no action 'asign'" in run("trial", "asign", "trial.db")[2]
    assert "did you mean 'assign'?" in run("trial", "asign", "trial.db")[2]


def loaded_after(*arguments: str) -> set[str]:
    """Packages that a command imports, in a process of its own."""
    code = (
        "import contextlib, io, sys\nfrom adaptinf.cli.entry import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        f"    main({list(arguments)!r})\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return set(done.stdout.split())


def test_help_imports_nothing_heavy() -> None:
    assert not loaded_after("--help") & {
        "numpy",
        "pandas",
        "scipy",
        "numba",
        "statsmodels",
        "pyarrow",
        "tqdm",
    }


def test_analyze_does_not_import_the_compiler(path: str) -> None:
    loaded = loaded_after("analyze", path, *KNOWN)
    assert "pandas" in loaded
    assert not loaded & {"numba", "llvmlite", "joblib", "tqdm", "matplotlib", "narwhals", "duckdb"}


@pytest.mark.slow
def test_a_reader_that_stops_early_is_no_error(path: str) -> None:
    command = [sys.executable, "-c", "import sys; from adaptinf.cli.entry import main; sys.exit(main())"]
    with subprocess.Popen(
        [*command, "analyze", path, *KNOWN], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read()
        assert (process.wait(timeout=120), errors) == (0, "")


# Encodings and odd paths


@pytest.mark.parametrize("form", ["text", "json", "csv", "html"])
def test_what_an_encoding_does_not_hold_is_an_escape(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = sample(60)[["arm", "y"]].replace({"b & 50%_#1": "größer €"})
    frame.to_csv(tmp_path / "log.csv", index=False)
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict") for _ in range(2))
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    given = [str(tmp_path / "log.csv"), *COLUMNS]
    assert main(["analyze", *given, "--estimator", "sample-mean", "--format", form]) == 0
    assert main(["validate", *given]) == 0
    assert main(["analyze", *given, "--treatment", "größer €", "--control", "œ"]) == 2
    said = [stream.buffer.getvalue().decode("ascii") for stream in (out, err) if stream.flush() is None]
    assert all(r"gr\xf6\xdfer \u20ac" in text for text in said)


@pytest.mark.parametrize("option", ["file", "--output"])
def test_names_of_files_cannot_hold_nul(option: str, path: str, run: Run) -> None:
    given = ["a\0.csv", *COLUMNS] if option == "file" else [path, *COLUMNS, "--output", "a\0.txt"]
    code, out, err = run("analyze", *given)
    assert (code, out) == (2, "")
    assert "the name of a file cannot contain NUL" in err


def mismatched(path: Path) -> Path:
    """A file of 5,300 rounds of A and 4,700 of B, where both had even odds."""
    arm = np.random.default_rng(0).permutation(["A"] * 5300 + ["B"] * 4700)
    frame = pd.DataFrame(
        {"arm": arm, "y": np.arange(10_000) % 10 == 0, "propensity_A": 0.5, "propensity_B": 0.5}
    )
    frame.astype({"y": int}).to_csv(path, index=False)
    return path


def test_what_speaks_against_the_log_is_in_the_first_lines(run: Run, tmp_path: Path) -> None:
    file = str(mismatched(tmp_path / "srm.csv"))
    code, out, _ = run("validate", file, *COLUMNS)
    first, *second = out.partition("\n\n")[0].splitlines()
    assert code == 0
    assert "valid" not in first
    assert says(" ".join(map(str.strip, second)), NOT_FOLLOWED, where="overall")
    code, out, _ = run("analyze", file, *COLUMNS, "--treatment", "B", "--control", "A")
    assert code == 0
    assert len(re.findall(wording(NOT_FOLLOWED), " ".join(out.split()), re.IGNORECASE)) == 1
    page = tmp_path / "page.html"
    code, out, err = run("analyze", file, *COLUMNS, "--format", "json", "--report", str(page))
    assert code == 0
    assert json.loads(out)["results"]
    assert says(err, NOT_FOLLOWED)
    lead, _, _ = page.read_text(encoding="utf-8").partition("<nav")
    assert says(html.unescape(lead), NOT_FOLLOWED)


def test_rows_that_stand_in_a_file_twice_are_told(path: str, run: Run, tmp_path: Path) -> None:
    once = pd.read_csv(path)
    file = tmp_path / "twice.csv"
    pd.concat([once, once]).to_csv(file, index=False)
    code, out, _ = run("validate", str(file), *KNOWN)
    first, *second = out.partition("\n\n")[0].splitlines()
    assert code == 0
    assert "valid" not in first
    assert says(" ".join(map(str.strip, second)), COPIES, n=len(once), rows=2 * len(once))
    page = tmp_path / "page.html"
    code, out, _ = run("analyze", str(file), *KNOWN, "--report", str(page))
    assert code == 0
    assert len(re.findall(wording(COPIES), " ".join(out.split()), re.IGNORECASE)) == 1
    lead, _, _ = page.read_text(encoding="utf-8").partition("<nav")
    assert len(re.findall(wording(COPIES), html.unescape(lead))) == 1
    code, out, _ = run("validate", path, *KNOWN)
    assert not says(out, COPIES)


def test_the_sentence_of_two_arms_says_once_that_there_are_cautions(run: Run, tmp_path: Path) -> None:
    file = str(mismatched(tmp_path / "srm.csv"))
    plain = " ".join(run("analyze", file, *COLUMNS)[1].split())
    assert plain.startswith(
        "It is undecided whether B or A has the higher mean y: difference 0.0040 (95% interval "
    )
    assert plain.count("Read the cautions first.") == 1
    found = json.loads(run("analyze", file, *COLUMNS, "--format", "json")[1])["sentence"]
    assert plain.startswith(found)


def test_sums_of_such_a_log_say_it_too(run: Run, tmp_path: Path) -> None:
    frame = pd.read_csv(mismatched(tmp_path / "srm.csv")).assign(batch=0)
    sums = ai.aggregate(frame, action="arm", reward="y", batch="batch", propensities="propensity_{arm}")
    sums.to_parquet(tmp_path / "sums.parquet")
    for command in ("validate", "analyze"):
        code, out, _ = run(command, str(tmp_path / "sums.parquet"))
        assert code == 0
        assert len(re.findall(wording(NOT_FOLLOWED), " ".join(out.split()), re.IGNORECASE)) == 1


def test_nothing_is_said_of_a_log_that_its_rows_do_not_contradict(run: Run, path: str) -> None:
    code, out, err = run("validate", path, *KNOWN)
    assert (code, err) == (0, "")
    assert out.splitlines()[0].endswith(" is a valid log.")
    code, out, err = run("analyze", path, *KNOWN)
    assert not says(out, NOT_FOLLOWED)
