"""Noise of trials held against its law: right trials pass, faults in files and between them are found."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from crashes import entries

from adaptinf.cli.entry import main
from adaptinf.designs import DPConSE, Mixture, PrivateUCB, Thompson
from adaptinf.errors import ParameterError
from adaptinf.trial import NoiseAudit, Trial
from adaptinf.trial import trial_noise as nodes

WHY: dict[str, Any] = {"reason": "the disk broke", "by": "Dr. Ames"}
DESIGN = Mixture(PrivateUCB(epsilon=1.0), exploration=0.2)
PEOPLE = 40


def filled(trial: Trial, start: int, stop: int) -> None:
    """Outcomes of so many participants."""
    for number in range(start, stop):
        decision = trial.assign(f"unit {number}", key=f"assign {number}")
        trial.record(decision.id, float(number % 2), key=f"record {number}")


def made(path: Path, design: Any = DESIGN, people: int = PEOPLE) -> Path:
    with Trial.create(path, design, ["a", "b"], horizon=people, outcome_window=0) as trial:
        filled(trial, 0, people)
    return path


def audit(*paths: Path) -> NoiseAudit:
    trials = [Trial.open(path) for path in paths]
    try:
        return trials[0].audit_noise(trials[1:])
    finally:
        for trial in trials:
            trial.close()


def constant(units: int) -> Callable[[str, float], int]:
    return lambda name, scale: units


def seeded(*parts: Any) -> Callable[[str, float], int]:
    """Noise that is a function of a node's name."""

    def draw(name: str, scale: float) -> int:
        seed = [ord(letter) for letter in name]
        return round(np.random.default_rng([*seed, *parts]).laplace(scale=scale))

    return draw


def test_right_trials_pass_and_their_rows_are_counted(tmp_path: Path) -> None:
    first, second = made(tmp_path / "one.db"), made(tmp_path / "two.db")
    found = audit(first, second)
    rows = [row for path in (first, second) for row in entries(path) if row["kind"] == "node"]
    assert (found.nodes, found.findings, found.trials) == (len(rows), (), ("one.db", "two.db"))
    assert found.not_covered.startswith("Not covered by the guarantee: these tests read the noise itself")
    frame = found.to_frame()
    assert frame.columns.tolist() == ["test", "tests", "log_chance", "finding"]
    assert (frame["finding"] == "").all()
    assert (frame["log_chance"] <= 0.0).all()
    assert set(frame["test"]) >= {"law", "scale", "tails", "zeros", "lattices", "repeats", "lags"}


def test_a_design_with_few_nodes(tmp_path: Path) -> None:
    path = made(tmp_path / "trial.db", DPConSE(epsilon=1.0), people=8)
    with Trial.open(path) as trial:
        trial.finish("all came")
    assert audit(path).findings == ()


def test_no_noise_is_found_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "draw_node", constant(0))
    found = audit(made(tmp_path / "trial.db", people=6))
    assert any("are smaller than their stated scale implies" in told for told in found.findings)
    assert "NOT as specified" in str(found)


def test_noise_by_name_is_seen_between_files_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "draw_node", seeded())
    first, second = (made(tmp_path / f"{name}.db") for name in ("one", "two"))
    assert audit(first).findings == ()
    (told, *_) = [told for told in audit(first, second).findings if "occurred before" in told]
    assert "in the previous run" in told or "of one.db" in told


def test_noise_of_another_epsilon_is_seen_in_units_of_its_scale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, "draw_node", seeded())
    first = made(tmp_path / "one.db")
    second = made(tmp_path / "two.db", Mixture(PrivateUCB(epsilon=0.5), exploration=0.2))
    assert any("in units of their scales" in told for told in audit(first, second).findings)


def test_rows_that_a_copy_has_in_common_are_no_repeats(tmp_path: Path) -> None:
    path, copy = tmp_path / "trial.db", tmp_path / "copy.db"
    with Trial.create(path, DESIGN, ["a", "b"], horizon=PEOPLE, outcome_window=0) as trial:
        filled(trial, 0, 20)
        trial.backup(copy)
        filled(trial, 20, PEOPLE)
    with Trial.open(copy) as restored:
        restored.restore(**WHY)
        filled(restored, 20, PEOPLE)
    found = audit(path, copy)
    rows = [
        {(row["node"], row["units"]) for row in entries(one) if row["kind"] == "node"} for one in (path, copy)
    ]
    assert found.nodes == len(rows[0] | rows[1])
    assert len(rows[0] & rows[1]) == 19
    assert found.findings == ()


def test_a_restored_copy_that_repeats_the_lost_file_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, copy = tmp_path / "trial.db", tmp_path / "copy.db"
    monkeypatch.setattr(nodes, "draw_node", seeded(1))
    with Trial.create(path, DESIGN, ["a", "b"], horizon=PEOPLE, outcome_window=0) as trial:
        filled(trial, 0, 20)
        trial.backup(copy)
        filled(trial, 20, PEOPLE)
    with Trial.open(copy) as restored:
        restored.restore(**WHY)
        filled(restored, 20, PEOPLE)
    assert any("occurred before" in told for told in audit(path, copy).findings)


@pytest.mark.parametrize(
    ("design", "others", "problem"),
    [
        (Thompson(floor=0.1), [], "Thompson draws no noise"),
        (DESIGN, [], "no noise has been drawn yet"),
        (DESIGN, ["other.db"], "others must be a list of open trials, got \\['other.db'\\]"),
    ],
)
def test_what_cannot_be_audited_is_refused(design: Any, others: Any, problem: str, tmp_path: Path) -> None:
    window = 0 if design is DESIGN else None
    trial = Trial.create(tmp_path / "trial.db", design, 2, horizon=5, outcome_window=window)
    with trial, pytest.raises(ParameterError, match=problem):
        trial.audit_noise(others)


def test_the_table_says_what_is_not_covered(tmp_path: Path) -> None:
    found = audit(made(tmp_path / "trial.db", people=6))
    text, page = str(found), found._repr_html_()
    assert text.startswith("Noise of trial.db: 5 nodes, nothing found\n")
    assert "chance below" in text
    assert text.endswith(found.not_covered)
    assert "Not covered by the guarantee" in page
    assert isinstance(found.to_frame(), pd.DataFrame)


def test_the_command_prints_a_line_for_each_test(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = made(tmp_path / "one.db", people=6), made(tmp_path / "two.db", people=6)
    assert main(["trial", "audit-noise", str(first), "--other", str(second)]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {"law", "repeats"} <= {line["test"] for line in lines[:-1]}
    assert lines[-1] == {
        "trials": ["one.db", "two.db"],
        "nodes": 10,
        "findings": [],
        "not_covered": lines[-1]["not_covered"],
    }
    numbers = itertools.count()
    monkeypatch.setattr(nodes, "draw_node", lambda name, scale: next(numbers) // 2 * 2)
    faulty = made(tmp_path / "three.db", people=12)
    assert main(["trial", "audit-noise", str(faulty)]) == 1
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["findings"]
