"""Options of the command line that say how a file is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from claims_said import says

from adaptinf.claims.arms.alee import UNLESS_NOTHING_ADAPTED
from adaptinf.claims.logs import readings as claims

Run = Callable[..., tuple[int, str, str]]
ROLES = ["--action", "version", "--reward", "answer"]


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Forty visits, newest first, under two versions whose names are codes."""
    rows = [
        f"{28 - day // 2}/04/2024,{'01' if day % 3 else '1'},{'Y' if day % 5 else 'N'},.5,.5"
        for day in range(40)
    ]
    file = tmp_path / "visits.csv"
    file.write_text("day,version,answer,share 01,share 1\n" + "\n".join(rows) + "\n")
    return str(file)


def test_text_outcomes_order_and_patterns(run: Run, path: str) -> None:
    options = ["--success", "Y", "--batch", "day", "--sort", "--propensities", "share {arm}"]
    code, out, err = run("analyze", path, *ROLES, *options, "--format", "json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert [row["term"] for row in found["results"]] == ["01", "1"]
    note = next(one["text"] for one in found["claims"] if "log.report" in one["text"])
    moved = claims.SORTED(role="batch", name="day", newest=" (stored newest first)", moved=40, rows=40)
    assert moved in note
    assert "'Y' counts as 1" in note
    assert "read as day/month/year; dates range from 2024-04-09 to 2024-04-28" in note
    same = [*options[:-1], "share ", "--date-format", "%d/%m/%Y"]
    assert (
        json.loads(run("analyze", path, *ROLES, *same, "--format", "json")[1])["results"] == found["results"]
    )


def test_validate_prints_the_report(run: Run, path: str) -> None:
    code, out, _ = run("validate", path, *ROLES, "--success", "Y=2,N=-1")
    assert code == 0
    assert "Read from CSV file visits.csv: 40 rounds" in out
    plain = " ".join(out.split())
    assert "'N' counts as -1, 'Y' counts as 2" in plain
    assert f" labels: {claims.AS_WRITTEN(name='version', example='01')}" in plain


def test_texts_of_outcomes_may_have_an_equals_sign(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("version,answer\n" + "1,a=b\n2,c\n2,a=b\n1,c\n")
    code, out, err = run("validate", str(file), *ROLES, "--success", "a=b=1,c=0.5")
    assert (code, err) == (0, "")
    assert "'a=b' counts as 1, 'c' counts as 0.5" in " ".join(out.split())


def test_labels_are_those_of_the_file(run: Run, path: str) -> None:
    options = [*ROLES, "--success", "Y", "--propensities", "01=share 01,1=share 1"]
    code, out, _ = run("analyze", path, *options, "--treatment", "1", "--control", "01", "--format", "json")
    assert code == 0
    assert json.loads(out)["results"][0]["term"] == "1 - 01"
    assert "no arm '001'" in run("analyze", path, *options, "--treatment", "001", "--control", "01")[2]


def test_a_number_that_is_written_otherwise_is_no_arm(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("arm,y\n" + "1,0\n2,1\n2,0\n1,1\n" * 10)
    code, _, err = run(
        "analyze", str(file), "--action", "arm", "--reward", "y", "--treatment", "02", "--control", "1"
    )
    assert (code, "there is no arm '02'" in err) == (2, True)


def test_what_a_csv_hides_is_told_here_too(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("arm,y,age\n1.0,1,50.5\n1,0,.\n2,1,40.5\n")
    code, _, err = run("validate", str(file), "--action", "arm", "--reward", "y", "--context", "age")
    assert code == 2
    assert "column 'age' has text among its numbers" in err
    assert "column 'arm' contains '1.0' and '1', which would become one label" in err


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--success", "Y", "--batch", "day"], "give --sort to sort the rows by this column"),
        (["--success", "yes"], "'yes' does not occur in reward column 'answer'"),
        (["--success", "Y", "--propensities", "p_"], "finds no column for '1' (p_1), '01' (p_01)"),
        (["--success", "Y", "--sort"], "--sort requires --round or --batch"),
        (["--success", "Y=a"], "invalid TEXT=NUMBER list value"),
        ([], "set --success to the label that counts as 1, such as --success Y"),
    ],
)
def test_what_is_refused_says_what_to_say(run: Run, path: str, options: list[str], told: str) -> None:
    code, out, err = run("validate", path, *ROLES, *options)
    assert (code, out) == (2, "")
    assert told in err


@pytest.mark.parametrize(
    ("flag", "estimator"), [("--no-adaptive", "sample-mean"), ("--adaptive", "alee"), (None, "alee")]
)
def test_whether_assignment_reacted(run: Run, tmp_path: Path, flag: str | None, estimator: str) -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"arm": rng.choice(["a", "b"], 200), "y": rng.normal(size=200)})
    rows.to_csv(tmp_path / "ab.csv", index=False)
    named = ["--action", "arm", "--reward", "y", *([] if flag is None else [flag])]
    given = [str(tmp_path / "ab.csv"), *named, "--treatment", "b", "--control", "a", "--format", "json"]
    found = json.loads(run("analyze", *given)[1])
    assert found["estimator"] == estimator
    assert says([one["text"] for one in found["claims"]], UNLESS_NOTHING_ADAPTED) is (flag is None)


def test_propensities_from_batches(run: Run, tmp_path: Path) -> None:
    arms = list("AB" * 20 + "ABCC" * 10)
    rows = pd.DataFrame({"arm": arms, "y": np.arange(80.0) % 7, "day": np.repeat([0, 1], 40)})
    rows["p"] = np.where(rows["day"] == 0, 0.5, np.where(rows["arm"] == "C", 0.5, 0.25))
    rows.to_csv(tmp_path / "late.csv", index=False)
    named = ["--action", "arm", "--reward", "y", "--propensity", "p", "--batch", "day"]
    code, out, _ = run("validate", str(tmp_path / "late.csv"), *named, "--propensities", "from batches")
    assert code == 0
    assert "propensities: exact, every arm" in out
