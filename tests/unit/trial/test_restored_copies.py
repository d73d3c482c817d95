"""Copies that backup made: read-only until they take their trial's place, which costs epsilon once more."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from crashes import NAMES, arm, entries, in_child

from adaptinf.cli.entry import main
from adaptinf.designs import Mixture, PrivateUCB, Thompson
from adaptinf.errors import ParameterError
from adaptinf.trial import Trial

WHY: dict[str, Any] = {"reason": "the disk broke", "by": "Dr. Ames"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trial.db"


def made(path: Path, private: bool = True) -> Path:
    """A trial of five participants that went on with two after a backup, and the copy."""
    design = Mixture(PrivateUCB(epsilon=0.5), exploration=0.2) if private else Thompson(floor=0.1)
    window = {"outcome_window": 1} if private else {}
    copy = path.with_name("copy.db")
    with Trial.create(path, design, ["a", "b"], horizon=40, **window) as trial:
        trial.assign_many([f"unit {n}" for n in range(5)], keys=[f"a{n}" for n in range(5)])
        trial.record_many([1, 2, 3], [1.0, 0.0, 0.5], keys=["r0", "r1", "r2"])
        trial.backup(copy)
        trial.assign_many(["unit 5", "unit 6"], keys=["a5", "a6"])
    return copy


def test_a_copy_is_read_and_changes_nothing(path: Path) -> None:
    copy = made(path)
    before = copy.read_bytes()
    with Trial.open(copy) as trial:
        status = trial.verify()
        assert (status.copied, status.restored, status.rounds, status.pending) == (True, 0, 5, 2)
        assert trial.log("drop").n_rounds == 5
        # Requests that had their answers before have them still.
        assert trial.assign("unit 4", key="a4").id == 5
        assert trial.record(3, 0.5, key="r2").reward == 0.5
        acts: list[Callable[[], object]] = [
            lambda: trial.assign("unit 5", key="a5"),
            lambda: trial.assign_many(["unit 5", "unit 6"], keys=["a5", "a6"]),
            lambda: trial.record(4, 1.0, key="r3"),
            lambda: trial.amend(1, 0.0, key="m", **WHY),
            lambda: trial.remove_arm("a", key="x", **WHY),
            lambda: trial.unblind("unit 1", **WHY),
            lambda: trial.pause("for the night"),
            lambda: trial.finish("the end"),
        ]
        for act in acts:
            with pytest.raises(ParameterError, match=r"is a copy that backup made.*restore it"):
                act()
        assert trial.status() == status
    assert copy.read_bytes() == before
    with Trial.open(path) as trial:
        assert (trial.status().copied, trial.status().rounds) == (False, 7)
        with pytest.raises(ParameterError, match="is no copy that backup made"):
            trial.restore(**WHY)


@pytest.mark.parametrize("private", [True, False])
def test_a_copy_takes_the_trials_place_and_promises_epsilon_once_more(path: Path, private: bool) -> None:
    copy = made(path, private)
    before = {row["node"] for row in entries(path) if row["kind"] == "node"}
    with Trial.open(copy) as trial, Trial.open(copy) as other:
        with pytest.raises(ParameterError, match="reason must be"):
            trial.restore(reason=" ", by="Dr. Ames")
        trial.restore(**WHY)
        trial.restore(**WHY)  # sent again: as it stands
        assert other.assign("unit 5", key="a5").id == 6
        assert trial.record(4, 1.0, key="r3").in_time is not None
        trial.assign("unit 6", key="a6")
        acts = trial.history()
        assert [(act.kind, act.reason, act.by) for act in acts] == [("restore", *WHY.values())]
        assert (trial.verify().restored, trial.status().copied) == (1, False)
        log = trial.log("drop")
        again = copy.with_name("again.db")
        trial.backup(again)
    if private:
        assert log.guarantee is not None
        assert log.guarantee.epsilon == 1.0
        # The noise of the same nodes was drawn in both files.
        assert before & {row["node"] for row in entries(copy) if row["kind"] == "node"}
    else:
        assert log.guarantee is None
    with Trial.open(again) as trial:
        trial.restore(**WHY)
        assert trial.verify().restored == 2
        if private:
            assert trial.log("drop").guarantee.epsilon == 1.5  # type: ignore[union-attr]
            assert trial.log("drop").frame["action"].tolist() == log.frame["action"].tolist()


def test_participants_are_erased_from_copies_too(path: Path) -> None:
    copy = made(path, private=False)
    with Trial.open(copy) as trial:
        assert trial.erase("unit 3", key="e", **WHY) == 4
        assert (trial.verify().copied, trial.status().erased) == (True, 1)


def test_a_finished_trial_is_not_taken_up(path: Path) -> None:
    made(path)
    with Trial.open(path) as trial:
        trial.finish("all are in")
        trial.backup(path.with_name("last.db"))
    with Trial.open(path.with_name("last.db")) as copy:
        with pytest.raises(ParameterError, match="the trial is finished: all are in"):
            copy.restore(**WHY)
        assert copy.verify().state == "finished"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_a_kill_while_a_copy_is_restored_leaves_a_copy_or_a_trial(path: Path) -> None:
    copy, kills = made(path), 0
    for point, name in enumerate(NAMES):
        if not name.endswith(("Requests.change", "Journal.begin", "Journal.append", "Journal.commit")):
            continue
        place = path.with_name(f"{point}.db")
        shutil.copyfile(copy, place)

        def work(place: Path = place, point: int = point) -> None:
            with Trial.open(place) as trial:
                arm(point, 1)
                trial.restore(**WHY)

        kills += os.waitpid(in_child(work), 0)[1] != 0
        with Trial.open(place) as trial:
            status = trial.verify()
            assert status.copied == (status.restored == 0)
            trial.restore(**WHY)
            assert (trial.verify().copied, trial.verify().restored) == (False, 1)
            trial.assign("unit 5", key="a5")
    assert kills == 8


def test_the_command_line_restores(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = made(path)
    capsys.readouterr()
    assert main(["trial", "restore", str(copy), "--reason", "the disk broke", "--by", "Dr. Ames"]) == 0
    told = capsys.readouterr().out
    assert '"restored": 1' in told
    assert '"copied": false' in told
