"""Files as people have them on the command line, from standard input to dialects, and their roles."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

Run = Callable[..., tuple[int, str, str]]
ROLES = ["--action", "arm", "--reward", "y"]
COLUMNS = [*ROLES, "--propensity", "p"]
READING = ("validate", "diagnose", "recommend", "analyze")


def rows(n: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    arm = rng.permutation(np.repeat(["A", "B"], n // 2))
    frame = pd.DataFrame({"arm": arm, "y": (rng.random(n) < 0.4).astype(int), "p": 0.5})
    frame["when"] = pd.date_range("2024-03-01 20:00", periods=n, freq="h", tz="UTC")
    return frame


@pytest.fixture
def path(tmp_path: Path) -> str:
    rows().to_csv(tmp_path / "log.csv", index=False)
    return str(tmp_path / "log.csv")


def read_from(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize("command", READING)
def test_a_dash_is_standard_input(run: Run, path: str, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run(command, path, *COLUMNS, "--format", "csv")
    for data in (Path(path).read_bytes(), gzip.compress(Path(path).read_bytes())):
        read_from(monkeypatch, data)
        assert run(command, "-", *COLUMNS, "--format", "csv") == expected
    assert (expected[0], expected[2]) == (0, "")
    read_from(monkeypatch, Path(path).read_bytes())
    code, out, err = run(command, "-", "--action", "arm", "--reward", "yy")
    assert (code, out) == (2, "")
    assert err.startswith(f"adaptinf {command}: the log in standard input has 1 problem")
    assert "there is no column 'yy' for reward; did you mean 'y'?" in err


def test_several_files_are_one_log_in_their_order(run: Run, path: str, tmp_path: Path) -> None:
    frame = rows()
    frame[:50].to_csv(tmp_path / "b.csv", index=False)
    frame[50:].to_csv(tmp_path / "a.csv", index=False)
    whole = run("analyze", path, *COLUMNS, "--format", "csv")[1]
    parts = [str(tmp_path / "b.csv"), str(tmp_path / "a.csv")]
    assert run("analyze", *parts, *COLUMNS, "--format", "csv") == (0, whole, "")
    _, out, _ = run("validate", *parts, *COLUMNS)
    assert f"{parts[0]} and 1 more file is a valid log." in out
    assert "2 files were read in the order given" in out
    pattern = str(tmp_path / "[ab].csv")
    assert "Read from CSV files a.csv to b.csv: 120 rounds" in run("validate", pattern, *COLUMNS)[1]
    frame.to_parquet(tmp_path / "c.parquet")
    code, _, err = run("validate", *parts, str(tmp_path / "c.parquet"), *COLUMNS)
    told = "the files are of different kinds (.csv, .parquet): give files of the same kind"
    assert (code, err) == (2, f"adaptinf validate: {told}\n")


def test_rows_are_counted_as_the_file_counts(run: Run, tmp_path: Path) -> None:
    frame = rows().astype({"y": object})
    frame.loc[7, "y"] = "n/k"
    frame[:5].to_csv(tmp_path / "a.csv", index=False)
    frame[5:].to_csv(tmp_path / "b.csv", index=False)
    _, _, err = run("validate", str(tmp_path / "a.csv"), str(tmp_path / "b.csv"), *COLUMNS)
    assert "reward column 'y' contains numbers and 'n/k'" in err
    assert f"[line 4 of {tmp_path / 'b.csv'}]" in err
    code, out, _ = run(
        "validate", str(tmp_path / "a.csv"), str(tmp_path / "b.csv"), *COLUMNS, "--missing-values", "n/k",
        "--missing", "drop",
    )  # fmt: skip
    assert code == 0
    assert "120 rounds" in out


def test_options_of_reading_reach_the_reader(run: Run, path: str, tmp_path: Path) -> None:
    expected = run("analyze", path, *COLUMNS, "--format", "csv")
    text = rows().to_csv(index=False, sep="|", decimal=",")
    (tmp_path / "odd.csv").write_text(text, encoding="utf-16-le")
    options = ["--sep", "|", "--decimal", ",", "--encoding", "utf-16-le"]
    odd = str(tmp_path / "odd.csv")
    assert run("analyze", odd, *COLUMNS, *options, "--format", "csv") == expected
    code, _, err = run("analyze", odd, *COLUMNS, *options[:-1], "latin-99")
    assert (code, "latin-99" in err) == (2, True)
    frame = rows()
    frame[::-1].to_csv(tmp_path / "back.csv", index=False)
    back, dated = str(tmp_path / "back.csv"), ["--batch", "when", "--every", "day"]
    code, _, err = run("validate", back, *COLUMNS, *dated)
    assert (code, "give --sort" in err) == (2, True)
    for zone, days in (([], 6), (["--timezone", "Asia/Dubai"], 5)):
        given = [*COLUMNS, *dated, "--sort", *zone, "--format", "json"]
        code, out, _ = run("recommend", back, *given)
        assert code == 0
        assert json.loads(out)["log"]["Batches"] == str(days)


def test_roles_are_columns_numbers_or_several(run: Run, tmp_path: Path) -> None:
    frame = rows()
    frame = frame.assign(A=(frame["arm"] == "A") * 1, B=(frame["arm"] == "B") * 1, w="[0.5, 0.5]")
    frame = frame.assign(q_A=0.3333, q_B=0.6666, r_A=0.5, r_B=0.5, key=np.arange(len(frame)))
    frame.to_csv(tmp_path / "wide.csv", index=False)
    wide = str(tmp_path / "wide.csv")
    expected = run("analyze", wide, *ROLES, "--propensities", "A=r_A,B=r_B", "--format", "csv")
    assert (expected[0], expected[2]) == (0, "")
    for given in (
        [*ROLES, "--propensities", "A=0.5,B=0.5"],
        [*ROLES, "--propensities", "w", "--arms", "A,B"],
        ["--action", "A", "--action", "B", "--reward", "y", "--propensities", "A=0.5,B=0.5"],
        [*ROLES, "--propensities", "A=r_A,B=r_B", "--id", "key"],
    ):
        assert run("analyze", wide, *given, "--format", "csv") == expected
    assert "propensities: exact, every arm" in run("validate", wide, *ROLES, "--propensity", "0.5")[1]
    code, _, err = run("validate", wide, *ROLES, "--propensities", "q_")
    assert code == 2
    assert "but to 0.9999" in err
    assert "give --round-propensities to renormalise the rows" in err
    assert run("validate", wide, *ROLES, "--propensities", "q_", "--round-propensities")[0] == 0
    frame.assign(key=7).to_csv(tmp_path / "ids.csv", index=False)
    assert run("validate", str(tmp_path / "ids.csv"), *COLUMNS, "--id", "key")[0] == 2


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
@pytest.mark.parametrize("command", READING)
def test_answers_from_a_file_of_one_owner_are_for_the_owner(run: Run, path: str, command: str) -> None:
    output = Path(path).with_name("answer.csv")
    Path(path).chmod(0o600)
    before = os.umask(0o022)
    try:
        assert run(command, path, *COLUMNS, "--output", str(output))[0] == 0
        assert output.stat().st_mode & 0o777 == 0o600
        Path(path).chmod(0o644)
        output.unlink()
        assert run(command, path, *COLUMNS, "--output", str(output))[0] == 0
        assert output.stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(before)


def test_one_file_cannot_hold_the_answer_and_the_report(run: Run, path: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)
    page, output = tmp_path / "link" / "x.html", tmp_path / "x.html"
    code, out, err = run("analyze", path, *COLUMNS, "--report", str(page), "--output", str(output))
    assert (code, out) == (2, "")
    assert err == f"adaptinf analyze: --report and --output are both {page}: use two different files\n"
    assert not output.exists()


def test_files_of_another_format_are_converted_one_at_a_time(run: Run, tmp_path: Path) -> None:
    event = {"c": {"_multi": [{"x": 1}, {"x": 2}]}, "a": [1, 2], "p": [0.5, 0.5]}
    event |= {"_label_cost": -1, "_label_probability": 0.5, "_label_Action": 1}
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for file in files:
        file.write_text(json.dumps(event) + "\n")
    output = tmp_path / "log.parquet"
    code, out, err = run("convert", *map(str, files), "--output", str(output))
    assert (code, out) == (2, "")
    told = "files in any other format must be in one folder, which is read as one log: pass the folder"
    assert err == f"adaptinf convert: {files[1]}: {told}\n"
    assert not output.exists()
    code, _, err = run("convert", str(files[0]), "--output", str(output))
    assert (code, err) == (0, f"adaptinf convert: wrote {output} (1 rows)\n")
