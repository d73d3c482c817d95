"""Options of the command line for missing rewards, assigned arms and late outcomes."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import adaptinf as ai
from adaptinf.claims.data.received_arms import EFFECT
from adaptinf.claims.logs import readings as claims
from adaptinf.cli.entry import main


@pytest.fixture
def table(tmp_path: Path) -> Path:
    frame = pd.DataFrame(
        {"arm": ["a", "b"] * 20, "got": ["a", "b", "a", "a"] * 10, "y": [0.0, 1.0, 0.5, 0.25, 1.0] * 8}
    )
    frame = frame.assign(p=0.5, late=range(3, 43))
    frame.loc[[3, 8, 20], "y"] = None
    frame.to_csv(tmp_path / "trial.csv", index=False)
    return tmp_path / "trial.csv"


COLUMNS = ["--action", "got", "--assigned", "arm", "--reward", "y", "--propensity", "p"]


def test_both_ends(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bounds = ["--missing", "worst", "--reward-range", "0", "1", "--estimator", "aipw", "--format", "json"]
    assert main(["analyze", str(table), *COLUMNS, *bounds]) == 0
    found = json.loads(capsys.readouterr().out)
    frame = pd.read_csv(table)
    roles = {"action": "got", "assigned": "arm", "reward": "y", "propensity": "p"}
    log = ai.AdaptiveLog(frame, missing="worst", reward_range=(0, 1), **roles)
    wanted = ai.ArmMeans(log).fit(estimator="aipw")
    assert [row["conf_high"] for row in found["results"]] == pytest.approx(wanted.conf_int()["high"].tolist())


def test_received_effect_and_late_outcomes(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    filled = pd.read_csv(table).fillna(0.5)
    filled.to_csv(table, index=False)
    pair = ["--treatment", "b", "--control", "a", "--received", "--outcome-round", "late"]
    assert main(["analyze", str(table), *COLUMNS, *pair, "--explain"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert EFFECT.sentence.partition(",")[0].format(treatment="b", control="a") in told
    assert any(claims.LATE(late=late).rstrip(".") in told for late in range(1, len(filled)))
    assert main(["analyze", str(table), *COLUMNS, "--received"]) == 2
    assert "requires --treatment and --control" in capsys.readouterr().err


def test_validation_counts_what_is_missing(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(table), *COLUMNS, "--missing", "drop"]) == 0
    told = capsys.readouterr().out
    assert "3 missing (missing='drop')" in told
    assert "rewards missing" in told
