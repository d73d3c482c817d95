"""Files of a trial are for their owner alone from the first byte on, whatever the umask; others are not."""

from __future__ import annotations

import os
import re
import shlex
import sqlite3
import stat
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import adaptinf as ai
from adaptinf.cli import main
from adaptinf.designs import Mixture, PrivateUCB, Thompson
from adaptinf.errors import AdaptinfWarning, FileError
from adaptinf.trial import Trial, requests

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
DESIGN = Mixture(PrivateUCB(epsilon=1.0), exploration=0.2)
WHY: dict[str, Any] = {"reason": "the disk broke", "by": "Dr. Ames"}


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture
def first_modes(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Modes that files were made with in Python, before anything was written to them."""
    seen: dict[str, int] = {}
    whole = os.open

    def opened(path: Any, flags: int, mode: int = 0o777, **more: Any) -> int:
        handle = whole(path, flags, mode, **more)
        if flags & os.O_CREAT and not os.fstat(handle).st_size:
            seen[os.path.basename(os.fspath(path))] = stat.S_IMODE(os.fstat(handle).st_mode)
        return handle

    monkeypatch.setattr(os, "open", opened)
    return seen


def modes(folder: Path) -> dict[str, int]:
    return {place.name: stat.S_IMODE(place.stat().st_mode) for place in folder.iterdir() if place.is_file()}


def filled(path: Path, people: int = 9) -> Trial:
    trial = Trial.create(path, DESIGN, ["a", "b"], horizon=20, outcome_window=0)
    for number in range(people):
        decision = trial.assign(f"person {number}", key=f"a{number}")
        trial.record(decision.id, float(number % 2), key=f"r{number}")
    return trial


def test_every_file_beside_an_open_trial_is_for_its_owner_alone(
    tmp_path: Path, umask: int, first_modes: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "EVERY", 6)
    with filled(tmp_path / "trial.db") as trial:
        trial.backup(tmp_path / "copy.db")
        trial.erase("person 2", key="e", **WHY)
        log = trial.log()
        log.to_parquet(tmp_path / "log.parquet")
        log.to_csv(tmp_path / "log.csv")
        ai.report(log, tmp_path / "log.html")
        ai.report(ai.ArmMeans(log).fit(), tmp_path / "result.html")
        found = modes(tmp_path)
        assert {"trial.db", "trial.db-wal", "trial.db-shm", "copy.db", "log.csv.json"} < set(found)
        assert set(found.values()) == {0o600}
    with Trial.open(tmp_path / "copy.db") as copy:
        copy.restore(**WHY)
        copy.assign("person 9", key="a9")
        assert set(modes(tmp_path).values()) == {0o600}
    # Temporary files and the database as they were made, before they had a name or anything in them.
    assert len(first_modes) >= 7
    assert set(first_modes.values()) == {0o600}
    assert "trial.db" in first_modes


def test_a_rollback_journal_has_the_mode_of_its_database(tmp_path: Path, umask: int) -> None:
    path = tmp_path / "trial.db"
    filled(path, 1).close()
    with sqlite3.connect(path) as file:
        file.execute("PRAGMA journal_mode = DELETE")
        file.execute("BEGIN IMMEDIATE")
        file.execute("CREATE TABLE further (number)")
        assert modes(tmp_path)["trial.db-journal"] == 0o600
        file.rollback()
    file.close()


def test_the_public_part_and_other_logs_follow_the_umask(tmp_path: Path, umask: int) -> None:
    usual = 0o666 & ~umask
    with filled(tmp_path / "trial.db") as trial:
        public = trial.log().public()
    (tmp_path / "public").mkdir()
    public.to_csv(tmp_path / "public" / "public.csv")
    public.to_parquet(tmp_path / "public" / "public.parquet")
    log = Thompson(floor=0.1).run(ai.environments.BernoulliArms([0.4, 0.6]), horizon=60, rng=0)
    log.to_csv(tmp_path / "public" / "log.csv")
    ai.report(log, tmp_path / "public" / "log.html")
    assert set(modes(tmp_path / "public").values()) == {usual}


def test_what_is_read_from_an_owners_file_is_written_as_such(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with filled(tmp_path / "trial.db") as trial:
            trial.log().to_parquet(tmp_path / "log.parquet")
        log = ai.read_log(tmp_path / "log.parquet")
        (tmp_path / "open.csv").touch()
        assert modes(tmp_path)["open.csv"] == 0o644
        log.to_csv(tmp_path / "open.csv")
        given = ["analyze", str(tmp_path / "log.parquet"), "--treatment", "a", "--control", "b"]
        more = ["--report", str(tmp_path / "page.html"), "--output", str(tmp_path / "table.txt")]
        assert main([*given, *more]) == 0
        assert set(modes(tmp_path).values()) == {0o600}
    finally:
        os.umask(before)


def test_the_command_line_exports_for_the_owner_alone(tmp_path: Path, umask: int) -> None:
    path = tmp_path / "trial.db"
    filled(path).close()
    assert main(["trial", "export", str(path), str(tmp_path / "log.parquet")]) == 0
    assert main(["trial", "backup", str(path), str(tmp_path / "copy.db")]) == 0
    assert set(modes(tmp_path).values()) == {0o600}


def test_a_file_that_is_more_open_is_told_with_the_command_that_mends_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a trial.db"
    with filled(path, 2) as trial:
        for place in tmp_path.iterdir():
            place.chmod(0o644)
        with pytest.warns(
            AdaptinfWarning, match=r"users other than the owner can open.*: run chmod 600 "
        ) as caught:
            Trial.open(path).close()
        named = shlex.split(str(caught[0].message).partition("chmod 600 ")[2])
        assert named == [f"{path}", f"{path}-wal", f"{path}-shm"]
        assert caught[0].filename == __file__
        for name in named:
            Path(name).chmod(0o600)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            Trial.open(path).close()
        assert trial.status().rounds == 2
    path.chmod(0o640)
    capsys.readouterr()
    assert main(["trial", "status", str(path)]) == 0
    told = capsys.readouterr().err
    assert re.fullmatch(
        r"adaptinf trial: users other than the owner can open.*chmod 600 '.*a trial.db'.*\n", told
    )


def test_create_follows_no_link_and_takes_no_file_that_others_may_read(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "elsewhere.db")
    with pytest.raises(FileError, match=r"link\.db cannot be written"):
        filled(tmp_path / "link.db")
    assert not (tmp_path / "elsewhere.db").exists()
    for mode in (0o644, 0o600):
        (tmp_path / "empty.db").touch()
        (tmp_path / "empty.db").chmod(mode)
        if mode == 0o644:
            with pytest.raises(FileError, match="other users can open it: remove it"):
                filled(tmp_path / "empty.db")
    filled(tmp_path / "empty.db", 1).close()


def contents(folder: Path) -> bytes:
    return b"".join(place.read_bytes() for place in folder.glob("trial.db*"))


def test_snapshots_hold_no_name_key_context_or_reason_in_clear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "EVERY", 6)
    path, traces = tmp_path / "trial.db", (b"Ms Example", b"visit of", b"form of", b"a slip of")
    options: dict[str, Any] = {"horizon": 40, "features": ["f", "m"]}
    with Trial.create(path, Thompson(floor=0.1), ["a", "b"], **options) as trial:
        for number in range(20):
            trial.assign(f"Ms Example {number}", "f", key=f"visit of {number}")
            trial.record(number + 1, 1.0, key=f"form of {number}")
            trial.amend(number + 1, 0.0, key=number, reason=f"a slip of {number}", by="a monitor")
        before = trial.log(missing="drop")
        with closing(sqlite3.connect(path)) as file:
            assert file.execute("SELECT count(*) FROM snapshot_parts").fetchone()[0] > 5
        assert not [trace for trace in traces if trace in contents(tmp_path)]
        with closing(sqlite3.connect(path)) as file:
            old = file.execute("SELECT number, content FROM snapshot_state").fetchone()
    with Trial.open(path) as trial:
        assert trial.verify().rows == 61
        assert trial.log(missing="drop").equals(before)
        assert opened(trial, *old)
        trial.erase("Ms Example 3", key="e", **WHY)
        # What was left of snapshots, on the disk or in a page, has lost its secret.
        with pytest.raises(ai.errors.JournalError, match="does not match its secret"):
            opened(trial, *old)
        trial.assign_many([f"more {n}" for n in range(9)], ["m"] * 9, keys=[f"m{n}" for n in range(9)])
    with Trial.open(path) as trial:
        trial.verify()


def opened(trial: Trial, number: int, content: bytes) -> bytes | None:
    sealing = trial._requests.sealing
    return trial._requests.read(lambda _: sealing.opened_snapshot(content, f"state {number}"))
