"""Trials whose key is kept outside: nothing opens without it, rows keep their place, and keys change."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import shutil
import signal
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from crashes import NAMES, Place, arm, both, in_child, named_noise, whole
from postgres_server import Database

from adaptinf.designs import DPConSE, Mixture, PrivateUCB, Thompson
from adaptinf.errors import AdaptinfWarning, FileError, JournalError, ParameterError
from adaptinf.trial import Trial, requests, trial_noise
from adaptinf.trial.databases.libraries import AESGCM
from adaptinf.trial.keys import data_key, outside_key
from adaptinf.trial.keys.wrapping import NEEDLESS, NEVER, NO_KEY, WRONG
from adaptinf.trial.replay import Replay

WHY: dict[str, Any] = {"reason": "a year is over", "by": "Dr. Ames"}
PRIVATE = Mixture(PrivateUCB(epsilon=1.0), exploration=0.2)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return key_at(tmp_path / "key")


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (outside_key.BY_FILE, outside_key.BY_COMMAND):
        monkeypatch.delenv(name, raising=False)


def key_at(path: Path) -> Path:
    Trial.make_key(path)
    return path


def made(path: Place, key: Path | None, people: int = 6) -> Trial:
    trial = Trial.create(path, Thompson(floor=0.1), ["a", "b"], horizon=200, key_file=key)
    for number in range(people):
        decision = trial.assign(f"unit {number}", key=f"a{number}")
        trial.record(decision.id, float(number % 2), key=f"r{number}")
    return trial


def rows_of(path: Path) -> list[tuple[int, str, str]]:
    with closing(sqlite3.connect(path)) as file:
        return file.execute("SELECT number, entry, digest FROM journal ORDER BY number").fetchall()


def rewritten(path: Path, texts: list[str]) -> None:
    """Let the rows have these texts, with all digests made anew, as anybody can who may write."""
    before = ""
    with closing(sqlite3.connect(path)) as file:
        file.execute("DELETE FROM journal")
        for number, text in enumerate(texts, start=1):
            before = hashlib.sha256(f"{before}{text}".encode()).hexdigest()
            file.execute("INSERT INTO journal VALUES (?, ?, ?)", (number, text, before))
        file.commit()


@both
def test_a_trial_opens_with_its_key_alone(path: Place, key: Path, tmp_path: Path) -> None:
    with made(path, key) as trial:
        before, log = trial.status(), trial.log()
        assert (before.rounds, before.rows) == (6, 13)
        assert trial.verify(before.head) == before
    with Trial.open(path, key_file=key) as trial:
        assert trial.verify(before.head) == before
        assert trial.log().equals(log)
        assert trial.assign("unit 2", key="a2").id == 3
    with pytest.raises(ParameterError) as refused:
        Trial.open(path)
    assert refused.value.problems == (NO_KEY,)
    with pytest.raises(ParameterError) as refused:
        Trial.open(path, key_file=key_at(tmp_path / "other"))
    assert refused.value.problems == (WRONG,)


@both
def test_a_trial_without_a_key_has_the_tables_that_it_had_and_refuses_one(path: Place, key: Path) -> None:
    made(path, None).close()
    with pytest.raises(ParameterError) as refused:
        Trial.open(path, key_file=key)
    assert refused.value.problems == (NEEDLESS,)
    if isinstance(path, Path):
        with closing(sqlite3.connect(path)) as file:
            found = file.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
        assert [name for name, _ in found] == ["journal", "secrets"]
        assert rows_of(path)[1][1].startswith('{"kind":"assign","time":"20')


def test_the_environment_names_a_file_or_a_command(
    path: Path, key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADAPTINF_KEY_FILE", str(key))
    made(path, None).close()
    Trial.open(path).close()
    monkeypatch.setenv("ADAPTINF_KEY_COMMAND", "echo 00")
    with pytest.raises(ParameterError, match="ADAPTINF_KEY_FILE and ADAPTINF_KEY_COMMAND are both set"):
        Trial.open(path)
    Trial.open(path, key_file=key).close()
    monkeypatch.delenv("ADAPTINF_KEY_FILE")
    with pytest.raises(FileError, match="ADAPTINF_KEY_COMMAND cannot be read: it is not a key"):
        Trial.open(path)
    monkeypatch.setenv("ADAPTINF_KEY_COMMAND", f"echo ' {key.read_bytes().hex()}'")
    Trial.open(path).close()
    for command, told in (
        ("false", "the command failed with exit code 1"),
        ("/no/such/program s3cret", "the command cannot be started: No such file or directory"),
        ("echo 's3cret", "the command cannot be started: a quotation mark is not closed"),
    ):
        monkeypatch.setenv("ADAPTINF_KEY_COMMAND", command)
        with pytest.raises(FileError) as failed:
            Trial.open(path)
        assert failed.value.reason == told
        assert failed.value.__cause__ is None
        assert failed.value.__context__ is None
    monkeypatch.setattr(outside_key, "_PATIENCE", 0.1)
    monkeypatch.setenv("ADAPTINF_KEY_COMMAND", "sleep 5")
    with pytest.raises(FileError, match=r"the command did not finish within 0\.1 s"):
        Trial.open(path)


def test_a_key_is_made_once_for_its_owner_alone(tmp_path: Path, path: Path) -> None:
    umask = os.umask(0)
    try:
        first = key_at(tmp_path / "first")
    finally:
        os.umask(umask)
    assert stat.S_IMODE(first.stat().st_mode) == 0o600
    assert len(first.read_bytes()) == 32
    assert first.read_bytes() != key_at(tmp_path / "second").read_bytes()
    with pytest.raises(FileError, match="first cannot be written: File exists"):
        Trial.make_key(first)
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    with pytest.raises(FileError, match="link cannot be written: File exists"):
        Trial.make_key(tmp_path / "link")
    first.chmod(0o640)
    with pytest.raises(FileError, match=f"users other than the owner can read it: run chmod 600 {first}"):
        made(path, first)
    assert not path.exists()


@pytest.mark.parametrize("content", [b"", b"k" * 31, b"k" * 33, b"g" * 64, b"0" * 63, b"1 " * 32])
def test_other_contents_are_no_keys(tmp_path: Path, path: Path, content: bytes) -> None:
    place = tmp_path / "key"
    place.write_bytes(content)
    place.chmod(0o600)
    with pytest.raises(FileError) as failed:
        made(path, place)
    told = "it is not a key (32 bytes, or 64 hexadecimal digits): make one with adaptinf trial key"
    assert failed.value.reason == told
    assert failed.value.__context__ is None
    assert not path.exists()


@both
@pytest.mark.filterwarnings("ignore:rekey. the earlier key still opens:adaptinf.errors.AdaptinfWarning")
def test_another_key_opens_the_trial_and_the_old_one_no_longer(
    path: Place, key: Path, tmp_path: Path
) -> None:
    new = key_at(tmp_path / "new")
    trial = made(path, key)
    other = Trial.open(path, key_file=key)
    before, rows = trial.status(), [] if isinstance(path, Database) else rows_of(path)
    with pytest.raises(ParameterError, match="the trial already has this key"):
        trial.rekey(key, **WHY)
    with pytest.raises(ParameterError, match="reason must be a string"):
        trial.rekey(new, reason="", by="Dr. Ames")
    assert trial.status() == before
    old = wrapped(path)
    trial.rekey(new, **WHY)
    if isinstance(path, Path):
        assert wrapped(path) not in (old, b"")
        assert old not in whole(path)
        assert rows_of(path)[:-1] == rows
    act = trial.history()[-1]
    assert (act.kind, act.reason, act.by, act.row) == ("rekey", *WHY.values(), before.rows + 1)
    assert other.assign("unit 7", key="a7").id == 7
    trial.close()
    other.close()
    with pytest.raises(ParameterError) as refused:
        Trial.open(path, key_file=key)
    assert refused.value.problems == (WRONG,)
    with Trial.open(path, key_file=new) as trial:
        assert trial.verify(before.head).rounds == 7


def wrapped(path: Place) -> bytes:
    if isinstance(path, Database):
        return b""
    with closing(sqlite3.connect(path)) as file:
        (found,) = file.execute("SELECT content FROM wrapped_key").fetchone()
    return bytes(found)


def test_a_trial_without_a_key_gets_none_later(path: Path, key: Path) -> None:
    with made(path, None) as trial, pytest.raises(ParameterError) as refused:
        trial.rekey(key, **WHY)
    assert refused.value.problems == (NEVER,)


def test_a_server_warns_of_what_it_keeps_of_the_old_key(
    path: Path, key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with made(path, key) as trial:
        monkeypatch.setattr(type(trial._requests.journal.store), "remains", "somewhere")
        with pytest.warns(AdaptinfWarning, match="in dead rows of the table wrapped_key .* destroy that key"):
            trial.rekey(key_at(tmp_path / "new"), **WHY)


def test_rows_keep_their_place_and_their_past(path: Path, key: Path, tmp_path: Path) -> None:
    with made(path, key) as trial:
        trial.backup(tmp_path / "copy.db")
    branch = tmp_path / "branch.db"
    shutil.copy(tmp_path / "copy.db", branch)
    for place, unit in ((tmp_path / "copy.db", "one"), (branch, "two")):
        with Trial.open(place, key_file=key) as copy:
            copy.restore(**WHY, runs=1)
            copy.assign(unit, key=unit)
    texts, ours, theirs = (
        [text for _, text, _ in rows_of(at)] for at in (path, tmp_path / "copy.db", branch)
    )
    exchanged = [*texts[:3], texts[4], texts[3], *texts[5:]]
    for forged, row in ((exchanged, 4), ([*ours[:-1], theirs[-1]], 15), (texts[:4] + texts[5:], 5)):
        rewritten(path, forged)
        with pytest.raises(JournalError) as found:
            Trial.open(path, key_file=key)
        assert found.value.reason == f"row {row} was not sealed with the trial's key for this position"
        assert Trial.verify_chain(path)[0] == len(forged)
    rewritten(path, [*texts[:4], "AAAA", *texts[5:]])
    with pytest.raises(JournalError, match="row 5 has the wrong layout"):
        Trial.open(path, key_file=key)
    rewritten(path, texts)
    with Trial.open(path, key_file=key) as trial:
        assert trial.verify().rounds == 6


def test_secrets_keep_their_place(path: Path, key: Path) -> None:
    trial = made(path, key)
    with closing(sqlite3.connect(path)) as file:
        ones = dict(file.execute("SELECT number, secret FROM secrets").fetchall())
        file.execute("UPDATE secrets SET secret = ? WHERE number = 3", (ones[4],))
        file.commit()
    with pytest.raises(JournalError) as found:
        trial._requests.sealing.secret(3)
    trial.close()
    assert (
        found.value.reason == "the secret of number 3 was not sealed with the trial's key for this position"
    )
    with pytest.raises(JournalError, match="the sealed fields of row 6 do not match their secret"):
        Trial.open(path, key_file=key)


def test_a_wrapped_key_that_was_removed_is_seen(path: Path, key: Path) -> None:
    made(path, key).close()
    with closing(sqlite3.connect(path)) as file:
        file.execute("DELETE FROM wrapped_key")
        file.commit()
    with pytest.raises(JournalError, match="its wrapped key is missing or damaged"):
        Trial.open(path, key_file=key)


@both
def test_the_chain_is_checked_without_a_key(path: Place, key: Path) -> None:
    with made(path, key) as trial:
        before = trial.status()
        trial.pause("for the night")
        after = trial.status()
    assert Trial.verify_chain(path) == (after.rows, after.head)
    assert Trial.verify_chain(path, before.head) == (after.rows, after.head)
    with pytest.raises(JournalError, match="no row has the head dead: rows were lost or changed"):
        Trial.verify_chain(path, "dead")
    if isinstance(path, Path):
        with closing(sqlite3.connect(path)) as file:
            file.execute("UPDATE journal SET entry = 'x' || substr(entry, 2) WHERE number = 9")
            file.commit()
        with pytest.raises(JournalError, match="row 9 does not follow from the rows before it"):
            Trial.verify_chain(path)
        with pytest.raises(FileError, match="the file does not exist"):
            Trial.verify_chain(path.with_name("none.db"))


def test_backups_moved_files_and_restored_ones_have_the_key(path: Path, key: Path, tmp_path: Path) -> None:
    with made(path, key) as trial:
        trial.backup(tmp_path / "copy.db")
        head = trial.status().head
    assert Trial.verify_chain(tmp_path / "copy.db", head) == (13, head)
    with pytest.raises(ParameterError, match="the trial was created with a key"):
        Trial.open(tmp_path / "copy.db")
    with Trial.open(tmp_path / "copy.db", key_file=key) as copy:
        assert copy.status().copied
        copy.erase("unit 3", key="letter", reason="asked", by="the office")
        copy.rekey(key_at(tmp_path / "new"), **WHY)
        copy.restore(**WHY, head=head)
        assert copy.assign("unit 9", key="a9").id == 7
        assert copy.verify(head).erased == 1
    shutil.move(path, tmp_path / "moved.db")
    shutil.copy(tmp_path / "moved.db", tmp_path / "elsewhere.db")
    with Trial.open(tmp_path / "elsewhere.db", key_file=key) as trial:
        assert trial.status().copied
        trial.moved(**WHY)
        assert trial.assign("unit 9", key="a9").id == 7
        assert trial.verify(head).rounds == 7


def test_snapshots_are_used_and_have_whole_pages(
    path: Path, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "EVERY", 20)
    with made(path, key, 30) as trial:
        log = trial.log()
        trial.verify()
    with closing(sqlite3.connect(path)) as file:
        sizes = {size for (size,) in file.execute("SELECT length(content) FROM snapshot_parts")}
        sizes |= {size for (size,) in file.execute("SELECT length(content) FROM snapshot_state")}
    assert sizes == {8 + 12 + 2**16 + 16}
    resumed, resume = [], Replay.resume
    monkeypatch.setattr(Replay, "resume", lambda self, snapshot: resumed.append(resume(self, snapshot)))
    with Trial.open(path, key_file=key) as trial:
        assert trial.log().equals(log)
    assert resumed == [None]


@pytest.mark.parametrize("design", [PRIVATE, DPConSE(epsilon=2.0)], ids=["PrivateUCB", "DPConSE"])
def test_a_private_trial_with_a_key_releases_what_it_releases_without(
    tmp_path: Path, key: Path, design: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adaptinf.trial.trial_setup.fresh_seed", lambda: bytes(32))
    monkeypatch.setattr(trial_noise, "draw_node", named_noise)
    options: dict[str, Any] = {"features": ["f", "m"]} if design.traits.uses_context else {}
    public, nodes = [], []
    for name, held in (("with.db", key), ("without.db", None)):
        place = tmp_path / name
        with Trial.create(place, design, ["a", "b"], 40, outcome_window=2, key_file=held, **options) as trial:
            for number in range(40):
                context = "fm"[number % 2] if options else None
                decision = trial.assign(f"unit {number}", context, key=f"a{number}")
                trial.record(decision.id, float(number % 3 == 0), key=f"r{number}")
            trial.finish("all are in")
        with Trial.open(place, key_file=held) as trial:
            assert trial.verify().rounds == 40
            public.append(trial.log().public())
            nodes.append(trial.audit_noise().nodes)
    assert nodes[0] == nodes[1] > 0
    assert public[0].releases.equals(public[1].releases)
    assert str(public[0]) == str(public[1])


def test_no_node_has_two_rows(path: Path, key: Path) -> None:
    with Trial.create(path, PRIVATE, 2, 20, outcome_window=0, key_file=key) as trial:
        for number in range(4):
            trial.record(trial.assign(number, key=f"a{number}").id, 1.0, key=f"r{number}")
        journal = trial._requests.journal
        journal.begin(write=False)
        _, entry, _ = journal.nodes()[0]
        journal.rollback()
        journal.begin()
        journal.append(entry)
        with pytest.raises(FileError, match="SQLITE_CONSTRAINT"):
            journal.commit()
        journal.rollback()
        assert trial.verify().rounds == 4


def test_equal_random_bytes_give_equal_ciphertexts_of_equal_texts_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(data_key.secrets, "token_bytes", bytes)
    cipher = data_key.Cipher(bytes(32), bytes(16))
    texts = [
        (b"text", "row 1"),
        (b"texu", "row 1"),
        (b"text", "row 2"),
        (b"1text", "row "),
        (b"text", "row 1"),
    ]
    closed = [cipher.closed(*one) for one in texts]
    assert closed[0] == closed[-1]
    assert len({one[:24] for one in closed[:-1]}) == 4
    assert [cipher.opened(one, place) for one, (_, place) in zip(closed, texts, strict=True)] == [
        text for text, _ in texts
    ]


def opened(secret: bytes, scope: bytes, content: bytes, place: str) -> bytes:
    """A text by the definition in docs/theory/trial_file.md."""
    nonce, sealed = content[:24], content[24:]
    keys = hmac.digest(secret, b"adaptinf keys " + scope, "sha256")
    return AESGCM(hmac.digest(keys, nonce, "sha256")).decrypt(nonce[12:], sealed, scope + place.encode())


def test_a_row_opens_by_its_definition(path: Path, key: Path) -> None:
    made(path, key).close()
    with closing(sqlite3.connect(path)) as file:
        scope, content = file.execute("SELECT scope, content FROM wrapped_key").fetchone()
    secret = opened(key.read_bytes(), scope, content, "data key")
    (_, _, before), (_, text, _) = rows_of(path)[:2]
    row = base64.b64decode(text)
    entry = opened(secret, scope, row[18:], f"row 2 after {before} {row[:18].hex()}")
    assert entry.startswith(b'{"kind":"assign","time":"20')
    assert len(entry) == 768


@both
@pytest.mark.parametrize("when", ["before Journal.commit", "after Journal.commit"])
@pytest.mark.filterwarnings("ignore:rekey. the earlier key still opens:adaptinf.errors.AdaptinfWarning")
def test_a_kill_leaves_the_old_key_or_the_new_one(path: Place, key: Path, tmp_path: Path, when: str) -> None:
    new = key_at(tmp_path / "new")
    made(path, key).close()

    def killed() -> None:
        with Trial.open(path, key_file=key) as trial:
            arm(NAMES.index(when), 1)
            trial.rekey(new, **WHY)

    assert os.waitpid(in_child(killed), 0)[1] == signal.SIGKILL
    right, wrong = (key, new) if when.startswith("before") else (new, key)
    with pytest.raises(ParameterError) as refused:
        Trial.open(path, key_file=wrong)
    assert refused.value.problems == (WRONG,)
    with Trial.open(path, key_file=right) as trial:
        assert trial.verify().rows == 13 + (right == new)
