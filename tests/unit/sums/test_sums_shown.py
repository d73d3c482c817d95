"""Sums in `recommend`, in `compare` and on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims.arms import arm_fits
from adaptinf.claims.data import sums as claims
from adaptinf.claims.logs.rows import NEEDS_ROWS
from adaptinf.cli.entry import main
from adaptinf.errors import InvalidForLog

NAMES = {
    "batch": "week",
    "arm": "arm",
    "n": "users",
    "sum": "buyers",
    "sum_squares": "buyers",
    "propensity": "share",
}
FLAGS = [
    *("--action", "arm", "--batch", "week", "--n", "users", "--sum", "buyers", "--sum-squares", "buyers"),
    *("--propensity", "share"),
]


def table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "week": [1, 1, 2, 2],
            "arm": ["a", "b", "a", "b"],
            "users": [510, 490, 380, 620],
            "buyers": [50, 74, 41, 88],
            "share": [0.5, 0.5, 0.4, 0.6],
        }
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    table().to_csv(tmp_path / "sums.csv", index=False)
    return tmp_path / "sums.csv"


def test_recommend_lists_what_sums_allow_and_runs_the_first() -> None:
    sums = ai.Sums(table(), **NAMES)
    found = ai.recommend(sums, target="contrast", treatment="b", control="a")
    assert str(found.best).startswith("Contrast(sums, treatment='b', control='a').fit(estimator='aipw'")
    by_name = found.frame.set_index("method")
    assert by_name.loc["aipw with combined weights", "label"] == "asymptotic"
    assert by_name.loc["batched", "label"] == "asymptotic"
    two_point = claims.BY_ROUND()
    for method, reason in {"alee": NEEDS_ROWS(), "aipw with two-point weights": two_point}.items():
        assert by_name.loc[method, "label"] == "not valid"
        assert reason in by_name.loc[method, "reason"]
    first = found.fit()
    default = ai.Contrast(sums, treatment="b", control="a").fit()
    assert first.conf_int().equals(default.conf_int())
    assert says(default.notes, arm_fits.CHOSEN, data="sums")
    assert "Batches 2" in " ".join(str(found).split())
    assert "compar" in str(ai.compare({"one": first, "other": default})).lower()
    with pytest.raises(InvalidForLog, match=rf"recommend .*{NEEDS_ROWS()}"):
        ai.recommend(sums, target="policy-value", policy="a")


def test_the_command_line_reads_a_table_of_sums(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = ["--treatment", "b", "--control", "a", "--format", "json"]
    assert main(["analyze", str(file), *FLAGS, *pair]) == 0
    found = json.loads(capsys.readouterr().out)
    wanted = ai.Contrast(ai.Sums(table(), **NAMES), treatment="b", control="a").fit()
    assert found["results"][0]["conf_low"] == pytest.approx(wanted.conf_int()["low"].iloc[0])
    assert main(["analyze", str(file), *FLAGS, "--estimator", "sample-mean", "--epsilon", "0.05"]) == 0
    assert "corrected" in capsys.readouterr().out
    assert main(["validate", str(file), *FLAGS]) == 0
    told = capsys.readouterr().out
    assert "is a valid table of sums" in told
    assert "0.1022" in told  # 91 buyers of 890 users


def test_the_command_line_reads_sums_that_were_written(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = file.with_name("sums.parquet")
    ai.Sums(table(), **NAMES).to_parquet(written)
    assert main(["validate", str(written)]) == 0
    assert "Sums: 2,000 rounds in 2 batches" in capsys.readouterr().out
    assert main(["analyze", str(written), "--explain"]) == 0
    read = claims.READ(rounds=2000, batches=2, by="arm")
    assert read in " ".join(capsys.readouterr().out.split())


def test_what_the_command_line_cannot_use_is_one_error(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", str(file), "--n", "users", "--reward", "buyers"]) == 2
    told = capsys.readouterr().err
    assert "--sum is required with --n" in told
    assert "--reward applies to rows" in told
    broken = table().assign(users=[510, 490, 380, -1])
    broken.to_csv(file, index=False)
    assert main(["analyze", str(file), *FLAGS]) == 2
    assert "n must be at least 0 [line 5]" in capsys.readouterr().err
