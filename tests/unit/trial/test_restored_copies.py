"""Copies, made by backup or otherwise: read-only until they take their trial's place, and what that costs."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from crashes import NAMES, arm, entries, in_child

import adaptinf as ai
from adaptinf.cli.entry import main
from adaptinf.designs import Mixture, PrivateUCB, Thompson
from adaptinf.errors import ParameterError
from adaptinf.trial import Trial, requests
from adaptinf.trial.operator_actions import Acts
from adaptinf.trial.trial_places import MARKED, place_of, same_place

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
            with pytest.raises(ParameterError, match=r"is a copy made by backup.*restore"):
                act()
        assert trial.status() == status
    assert copy.read_bytes() == before
    with Trial.open(path) as trial:
        assert (trial.status().copied, trial.status().rounds) == (False, 7)
        with pytest.raises(
            ParameterError, match="is not a copy: it is in the location recorded in its journal"
        ):
            trial.restore(**WHY)
        with pytest.raises(
            ParameterError, match="is in the location recorded in its journal: there is nothing"
        ):
            trial.moved(**WHY)


@pytest.mark.parametrize("private", [True, False])
def test_a_copy_takes_the_trials_place_and_promises_epsilon_once_more(path: Path, private: bool) -> None:
    copy = made(path, private)
    before = {row["node"] for row in entries(path) if row["kind"] == "node"}
    with Trial.open(copy) as trial, Trial.open(copy) as other:
        with pytest.raises(ParameterError, match="reason must be"):
            trial.restore(reason=" ", by="Dr. Ames")
        trial.restore(**WHY, runs=1)
        trial.restore(**WHY, runs=1)  # sent again: as it stands
        with pytest.raises(ParameterError, match="is not a copy"):
            trial.restore(**WHY, runs=0)
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
        assert (log.guarantee.epsilon, log.guarantee_source) == (1.0, "stated")
        assert "the operator states that 1 lost run continued from it" in log.guarantee.reasons[-1]
        assert "stated by the user, not derived" in repr(log)
        # The noise of the same nodes was drawn in both files.
        assert before & {row["node"] for row in entries(copy) if row["kind"] == "node"}
    else:
        assert log.guarantee is None
    with Trial.open(again) as trial:
        trial.restore(**WHY, runs=1)
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


@pytest.mark.slow
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


def epsilons(path: Path) -> tuple[float | None, str | None, tuple[str, ...]]:
    with Trial.open(path) as trial:
        log = trial.log("drop")
    return log.guarantee.epsilon if log.guarantee else None, log.guarantee_source, log.unpromised


def test_the_last_head_of_the_lost_file_shows_that_nothing_is_charged(path: Path) -> None:
    copy = made(path)
    with Trial.open(copy) as trial:
        head = trial.status().head
        trial.erase("unit 3", key="e", **WHY)  # which copies take, and which draws nothing
        trial.restore(**WHY, head=head)
        assert (trial.history()[-1].head, trial.history()[-1].runs) == (head, None)
        trial.verify(head)
    assert epsilons(copy) == (0.5, "design", ())
    with Trial.open(copy) as trial:
        reason = trial.log("drop").guarantee.reasons[-1]  # type: ignore[union-attr]
    assert "the last head that was stored shows that 0 lost runs continued" in reason


def test_a_head_that_is_not_the_copys_says_what_to_do(path: Path) -> None:
    with Trial.create(path.with_name("other.db"), Thompson(), 2, horizon=9) as other:
        foreign = other.status().head
    copy = made(path)
    with Trial.open(path) as trial:
        late = trial.status().head
    with closing(sqlite3.connect(copy)) as file:
        early = file.execute("SELECT digest FROM journal WHERE number = 3").fetchone()[0]
    with Trial.open(copy) as trial:
        before = trial.status()
        for head in (late, foreign):
            with pytest.raises(ParameterError, match=r"so the trial continued after.*set runs="):
                trial.restore(**WHY, head=head)
        with pytest.raises(ParameterError, match=r"rows of the copy come after this head.*set runs="):
            trial.restore(**WHY, head=early)
        with pytest.raises(ParameterError, match="not both"):
            trial.restore(**WHY, head=before.head, runs=0)
        for wrong in (-1, 0.5, True, "2"):
            with pytest.raises(ParameterError, match="runs must be"):
                trial.restore(**WHY, runs=wrong)  # type: ignore[arg-type]
        with pytest.raises(ParameterError, match="head must be"):
            trial.restore(**WHY, head=7)  # type: ignore[arg-type]
        assert trial.status() == before


def test_who_says_neither_gets_no_promise_and_the_reason_wherever_it_is_read(path: Path) -> None:
    copy = made(path)
    with Trial.open(copy) as trial:
        trial.restore(**WHY)
        log = trial.log("drop")
    assert log.guarantee is None
    assert log.reward_guarantee is None
    (reason,) = log.unpromised
    assert "draws made after the copy are unknown" in reason
    assert f"no guarantee: {reason}" in repr(log)
    with pytest.raises(ai.errors.InvalidForLog, match="draws made after the copy are unknown"):
        log.public()
    log.to_parquet(path.with_name("log.parquet"))
    assert ai.read_log(path.with_name("log.parquet")).unpromised == (reason,)


def test_restores_of_the_format_before_promise_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their rows say neither head nor runs, and bring no coins: the decisions behind them stand."""
    copy = made(path)

    def before(self: Acts, said: dict[str, Any]) -> dict[str, Any]:
        entry = {name: said[name] for name in ("kind", "reason", "by")}
        self._take(entry)
        return entry

    with monkeypatch.context() as old:
        old.setattr(Acts, "_taken", before)
        old.setattr(Acts, "copy_of", lambda self, here, marked: MARKED if marked else "")
        with Trial.open(copy) as trial:
            trial.restore(**WHY)
            trial.assign_many(["unit 5", "unit 6"], keys=["a5", "a6"])
    with Trial.open(copy) as trial:
        assert trial.verify().restored == 1
    assert epsilons(copy)[0] is None


def test_one_backup_restored_twice_repeats_neither_arms_nor_noise(path: Path) -> None:
    """Attack: a copy that went on with the lost file's coins had its arms, 60 of 60."""
    with Trial.create(
        path, Mixture(PrivateUCB(epsilon=0.5), exploration=0.9), ["a", "b"], horizon=70, outcome_window=0
    ) as trial:
        trial.assign_many(range(5), keys=range(5))
        trial.backup(path.with_name("copy.db"))
        lost = [one.arm for one in trial.assign_many(range(5, 65), keys=range(5, 65))]
    seen = [lost]
    for number in (1, 2):
        place = path.with_name(f"{number}.db")
        shutil.copy(path.with_name("copy.db"), place)
        with Trial.open(place) as trial:
            trial.restore(**WHY, runs=number)
            seen.append([one.arm for one in trial.assign_many(range(5, 65), keys=range(5, 65))])
            trial.verify()
        with Trial.open(place) as trial:  # the coins are in the row
            trial.assign(65, key=65)
            assert trial.verify().restored == 1
        assert epsilons(place)[0] == 0.5 * (1 + number)
    agreed = [sum(map(str.__eq__, one, other)) for one, other in itertools.combinations(seen, 2)]
    assert max(agreed) < 53  # of 60 at .55 or less, exceeded with a probability of 6e-8
    nodes = [
        {row["node"]: row["units"] for row in entries(place) if row["kind"] == "node"}
        for place in (path, path.with_name("1.db"), path.with_name("2.db"))
    ]
    for one, other in itertools.combinations(nodes, 2):
        both = [name for name in one if name in other]
        assert len(both) > 20
        old = sum(one[name] == other[name] for name in both)
        assert old == 4  # of the rows before the backup
        assert old < len(both) - 20


def test_coins_of_a_restore_are_in_its_snapshot_too(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "EVERY", 6)
    copy = made(path, private=False)
    with Trial.open(copy) as trial:
        trial.restore(**WHY)
        for number in range(9):
            trial.assign(f"more {number}", key=f"m{number}")
    with closing(sqlite3.connect(copy)) as file:
        assert file.execute("SELECT number FROM snapshot_state").fetchone()[0] > 10
    with Trial.open(copy) as trial:
        trial.assign("last", key="last")
        trial.verify()
        assert trial.status().copied is False


@pytest.mark.parametrize("how", ["copied", "in its place", "over it", "link", "renamed"])
def test_a_file_elsewhere_is_a_copy_and_a_renamed_one_is_not(path: Path, how: str) -> None:
    made(path)
    other = path.with_name("elsewhere.db")
    if how == "copied":
        shutil.copy2(path, other)
    elif how == "in its place":  # the inode is given again at once, as ext4 does it
        shutil.copy2(path, other)
        path.unlink()
        shutil.copy2(other, path)
        other = path
    elif how == "over it":  # renamed onto the trial's name
        shutil.copy2(path, other)
        other.replace(path)
        other = path
    elif how == "link":
        other.symlink_to(path)
    else:
        path.rename(other)
    copied = how not in ("link", "renamed")
    with Trial.open(other) as trial:
        assert trial.status().copied == copied
        assert trial.verify().rounds == 7
        assert trial.assign("unit 4", key="a4").id == 5
        assert trial.log("drop").n_rounds == 7
        if not copied:
            assert trial.assign("new", key="n").id == 8
            return
        before = trial.status()
        for act in (
            lambda: trial.assign("new", key="n"),
            lambda: trial.record(4, 1.0, key="r3"),
            lambda: trial.finish("the end"),
        ):
            with pytest.raises(
                ParameterError, match=r"differs from the one recorded in its journal.*restore.*moved"
            ):
                act()
        assert trial.status() == before
        trial.moved(reason="a new disk", by="Dr. Ames")
        trial.moved(reason="a new disk", by="Dr. Ames")  # sent again
        assert trial.assign("new", key="n").id == 8
        assert (trial.verify().copied, trial.status().restored) == (False, 0)
        assert [act.kind for act in trial.history()] == ["moved"]
    assert epsilons(other)[:2] == (0.5, "stated")
    with Trial.open(other) as trial:
        assert trial.assign("newer", key="o").id == 9


def test_a_copy_of_any_kind_is_restored_and_one_of_backup_was_not_moved(path: Path) -> None:
    copy = made(path)
    with Trial.open(copy) as trial, pytest.raises(ParameterError, match="is a copy made by backup"):
        trial.moved(**WHY)
    other = path.with_name("elsewhere.db")
    shutil.copy(path, other)
    with Trial.open(other) as trial:
        head = trial.status().head
        trial.restore(**WHY, head=head)
        assert trial.assign("new", key="n").id == 8
    assert epsilons(other) == (0.5, "design", ())


def test_a_running_file_of_the_format_before_learns_its_place(path: Path) -> None:
    with closing(sqlite3.connect(old_format(path))) as file:
        assert "place" not in file.execute("SELECT entry FROM journal").fetchone()[0]
    with Trial.open(path) as trial:
        assert trial.status().copied is False
        trial.assign("x", key=1)
        trial.assign("y", key=2)
        assert trial.verify().rows == 4
    shutil.copy(path, path.with_name("elsewhere.db"))
    with Trial.open(path.with_name("elsewhere.db")) as trial:
        assert trial.verify().copied
        assert trial.history() == ()


def old_format(path: Path) -> Path:
    """A trial whose first row does not say where its file is."""
    Trial.create(path, Thompson(), ["a", "b"], horizon=9).close()
    with closing(sqlite3.connect(path)) as file:
        entry = json.loads(file.execute("SELECT entry FROM journal").fetchone()[0])
        text = json.dumps({**{name: entry[name] for name in entry if name != "place"}, "format": 2})
        digest = hashlib.sha256(text.encode()).hexdigest()
        file.execute("UPDATE journal SET entry = ?, digest = ?", (text, digest))
        file.commit()
    return path


def test_places_without_birth_times_are_told_by_their_device(path: Path) -> None:
    path.touch()
    place = place_of(path)
    assert place["born"] is None or abs(place["born"] / 1e9 - path.stat().st_mtime) < 5.0
    bare = {**place, "born": None}
    assert same_place(place, bare)
    assert not same_place({**bare, "device": bare["device"] + 1}, place)
    assert not same_place({**place, "inode": 0}, place)
    if place["born"] is not None:  # numbers of devices may change when the machine starts again
        assert same_place({**place, "device": 0}, place)
        assert not same_place({**place, "born": place["born"] + 1}, place)


def test_the_command_line_restores(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = made(path)
    capsys.readouterr()
    why = ["--reason", "the disk broke", "--by", "Dr. Ames"]
    assert main(["trial", "restore", str(copy), *why, "--head", "0" * 64]) == 2
    assert "no row of the copy has this head" in capsys.readouterr().err
    assert main(["trial", "restore", str(copy), *why, "--runs", "2"]) == 0
    told = capsys.readouterr().out
    assert '"restored": 1' in told
    assert '"copied": false' in told
    assert epsilons(copy)[0] == 1.5
    assert main(["trial", "history", str(copy)]) == 0
    assert '"runs": 2' in capsys.readouterr().out
    other = str(shutil.copy(copy, path.with_name("elsewhere.db")))
    assert main(["trial", "assign", other, "--unit", "new", "--key", "n"]) == 2
    assert "differs from the one recorded in its journal" in capsys.readouterr().err
    assert main(["trial", "moved", other, *why]) == 0
    assert '"copied": false' in capsys.readouterr().out
