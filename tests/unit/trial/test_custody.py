"""How long names are kept, and the whole trail: exported, signed, and verified without the trial."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import zipfile
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from crashes import Place, both

import adaptinf as ai
from adaptinf.cli.entry import main
from adaptinf.errors import FileError, JournalError, ParameterError
from adaptinf.trial.custody import retention, trail
from adaptinf.trial.custody.trail import archive

WHY = {"reason": "protocol, section 9", "by": "the sponsor"}
DESIGN = ai.designs.Thompson(floor=0.1)
PEOPLE = 12


def begun(path: Place, design: Any = DESIGN, **options: Any) -> ai.Trial:
    return ai.Trial.create(path, design, ["a", "b"], horizon=100, **options)


def peopled(trial: ai.Trial, contexts: list[Any] | None = None) -> None:
    units = [f"Ms Example {number}" for number in range(PEOPLE)]
    trial.assign_many(units, contexts, keys=[f"visit {number}" for number in range(PEOPLE)])
    trial.record_many(
        range(1, PEOPLE + 1),  # type: ignore[arg-type]
        [float(number % 2) for number in range(PEOPLE)],
        keys=[f"form {number}" for number in range(PEOPLE)],
    )


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two pairs of keys, made by OpenSSL as the documentation has it."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("own", "other"):
        private, public = folder / f"{name}.pem", folder / f"{name}.public.pem"
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", private], check=True)
        private.chmod(0o600)
        subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", public], check=True)
    return folder


@pytest.mark.filterwarnings("ignore:expire. the secret was overwritten:adaptinf.errors.AdaptinfWarning")
@both
def test_names_are_kept_until_they_are_due_and_then_destroyed(
    path: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = begun(path)
    peopled(trial)
    trial.erase("Ms Example 3", key="letter 1", reason="asked", by="the office")
    assert (trial.retention().days, trial.retention().left, trial.retention().erased) == (None, 11, 1)
    with pytest.raises(ParameterError, match="expire: no retention period was declared"):
        trial.expire(by="the office")
    trial.set_retention(400, **WHY)
    trial.set_retention(30, **WHY)
    with pytest.raises(ParameterError, match="expire: the trial is not finished"):
        trial.expire(by="the office")
    trial.finish("all are in", by="the sponsor")
    kept = trial.retention()
    assert kept.finished is not None
    due = datetime.fromisoformat(kept.finished) + timedelta(days=30)
    assert (kept.days, kept.due, kept.left) == (30, due.isoformat(timespec="seconds"), 11)
    with pytest.raises(ParameterError, match=f"the names must be kept until {kept.due[:19]}"):
        trial.expire(by="the office")
    before, rows = trial.log(erased="keep"), trial.status().rows

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return due + timedelta(seconds=1)

    monkeypatch.setattr(retention, "datetime", Later)
    done = trial.expire(by="the office")
    assert (done.left, done.erased, trial.status().rows) == (0, 12, rows + 11)
    assert "they can still identify a participant" in done.remains
    assert trial.expire(by="the office") == done
    assert trial.status().rows == rows + 11
    trial.close()
    trial = ai.Trial.open(path)
    assert trial.verify().erased == PEOPLE
    after = trial.log(erased="keep")
    assert after.units is not None
    assert sorted(after.units) == sorted(f"erased {number}" for number in range(1, PEOPLE + 1))
    assert after.frame.drop(columns="unit_id").equals(before.frame.drop(columns="unit_id"))
    kinds = [act.kind for act in trial.history()]
    assert kinds == ["erase", "retention", "retention", "finish", *["erase"] * 11]
    act = trial.history()[-1]
    assert (act.reason, act.by) == ("kept for 30 days after the end, as declared", "the office")
    assert trial.history()[2].days == 30
    trial.close()


def test_no_file_contains_a_name_afterwards(path: Path) -> None:
    with begun(path) as trial:
        peopled(trial)
        trial.set_retention(0, **WHY)
        trial.finish("all are in", by="the sponsor")
        with closing(sqlite3.connect(path)) as file:
            before = dict(file.execute("SELECT number, secret FROM secrets"))
        trial.expire(by="the office")
    with closing(sqlite3.connect(path)) as file:
        after = dict(file.execute("SELECT number, secret FROM secrets"))
    assert {after[number] for number in range(PEOPLE + 1)} == {bytes(32)}
    content = b"".join(one.read_bytes() for one in path.parent.iterdir())
    assert not [number for number, secret in before.items() if number and secret in content]


def test_a_design_with_contexts_expires_too(path: Path) -> None:
    with begun(path, ai.designs.Mixture(ai.designs.LinUCB()), dimension=2, per_arm=True) as trial:
        peopled(trial, [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]] * (PEOPLE // 2))
        trial.set_retention(0, **WHY)
        trial.finish("all are in", by="the sponsor")
        assert trial.expire(by="the office").left == 0
        assert trial.verify().unrepeatable == PEOPLE
    with ai.Trial.open(path) as trial:
        assert trial.verify().erased == PEOPLE
        assert trial.log(erased="keep").n_rounds == PEOPLE


def test_a_period_is_a_number_of_days(path: Path) -> None:
    with begun(path) as trial:
        for days in (-1, 36_501, 1.5, "30", True, None):
            with pytest.raises(ParameterError, match="days must be a whole number from 0 to 36,500"):
                trial.set_retention(days, **WHY)  # type: ignore[arg-type]
        with pytest.raises(ParameterError) as caught:
            trial.set_retention(-1, reason="", by=" ")
        assert len(caught.value.problems) == 3
        trial.backup(path.with_name("copy.db"))
        assert trial.status().rows == 1
    with ai.Trial.open(path.with_name("copy.db")) as copy:
        with pytest.raises(ParameterError, match="the file is a copy"):
            copy.set_retention(1, **WHY)
        assert copy.retention().days is None


@both
def test_a_trail_is_verified_without_the_trial(path: Place, keys: Path, tmp_path: Path) -> None:
    file = tmp_path / "trail.zip"
    with begun(path) as trial:
        peopled(trial)
        early = trial.status().head
        trial.unblind("Ms Example 2", reason="a seizure", by="the ward")
        trial.erase("Ms Example 3", key="letter 1", reason="asked", by="the office")
        token = trial.add_token("monitor")
        made = trial.export_trail(file, sign=keys / "own.pem")
        status = trial.status()
        assert (made.rows, made.head, made.design) == (status.rows, status.head, "Thompson")
        assert trial.assign("after", key="after").id == PEOPLE + 1
    public = keys / "own.public.pem"
    assert ai.Trial.verify_trail(file, public_key=public) == made
    assert ai.Trial.verify_trail(file, public_key=public, head=early) == made
    assert file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(JournalError, match="no row has the head 00"):
        ai.Trial.verify_trail(file, public_key=public, head="00")
    with pytest.raises(JournalError, match="it was not signed with the key in"):
        ai.Trial.verify_trail(file, public_key=keys / "other.public.pem")
    with zipfile.ZipFile(file) as members:
        events = [json.loads(line) for line in members.read("events.jsonl").splitlines()]
        text = members.read("events.jsonl").decode()
    assert len(events) == made.rows
    by_kind = {
        kind: [one for one in events if one["kind"] == kind] for kind in ("assign", "unblind", "token")
    }
    names = [one.get("unit") for one in by_kind["assign"]]
    assert names == [None if number == 3 else f"Ms Example {number}" for number in range(PEOPLE)]
    assert by_kind["assign"][3]["erased"] is True
    assert "Ms Example 3" not in text
    assert by_kind["unblind"][0]["by"] == "the ward"
    assert "seed" not in events[0]
    assert token.text not in text
    assert "digest" not in by_kind["token"][0]


def test_a_trial_with_a_key_has_a_trail_and_a_period(path: Path, keys: Path, tmp_path: Path) -> None:
    secret, file, public = tmp_path / "key", tmp_path / "trail.zip", keys / "own.public.pem"
    ai.Trial.make_key(secret)
    with begun(path, key_file=secret) as trial:
        peopled(trial)
        trial.set_retention(0, **WHY)
        trial.finish("all are in", by="the sponsor")
        made = trial.export_trail(file, sign=keys / "own.pem")
        assert ai.Trial.verify_trail(file, public_key=public, head=trial.status().head) == made
        with zipfile.ZipFile(file) as members:
            assert b"Ms Example 1" not in members.read("rows.jsonl")
            assert b"Ms Example 1" in members.read("events.jsonl")
            assert b"seed" not in members.read("events.jsonl")
        assert trial.expire(by="the office").left == 0
    with ai.Trial.open(path, key_file=secret) as trial:
        assert trial.verify().erased == PEOPLE


def changed(file: Path, name: str, change: Any) -> Path:
    """The same trail with another member."""
    with zipfile.ZipFile(file) as members:
        content = {each: members.read(each) for each in members.namelist()}
    content[name] = change(content[name])
    spoilt = file.with_name("spoilt.zip")
    spoilt.write_bytes(archive(content))
    return spoilt


def test_a_trail_that_was_changed_is_refused(path: Path, keys: Path, tmp_path: Path) -> None:
    file, public = tmp_path / "trail.zip", keys / "own.public.pem"
    with begun(path) as trial:
        peopled(trial)
        trial.export_trail(file, sign=keys / "own.pem")
    for name in (trail.ROWS, trail.EVENTS):
        with pytest.raises(JournalError, match=f"{name} differs from the file that was signed"):
            ai.Trial.verify_trail(changed(file, name, lambda text: text[:-2] + b"\n"), public_key=public)
    with pytest.raises(JournalError, match="was not signed with the key"):
        ai.Trial.verify_trail(
            changed(file, trail.MANIFEST, lambda text: text.replace(b"Thompson", b"Uniform")),
            public_key=public,
        )
    with pytest.raises(JournalError, match="was not signed with the key"):
        ai.Trial.verify_trail(changed(file, trail.SIGNATURE, lambda _: b"0" * 64), public_key=public)
    content = file.read_bytes()
    for number in range(0, len(content), max(1, len(content) // 60)):
        bad = tmp_path / "bad.zip"
        bad.write_bytes(content[:number] + bytes([content[number] ^ 16]) + content[number + 1 :])
        try:
            found = ai.Trial.verify_trail(bad, public_key=public)
        except (JournalError, FileError):
            continue
        assert found.rows == 1 + 2 * PEOPLE  # a bit that no reader of the archive looks at
    bad.write_bytes(b"not a trail")
    with pytest.raises(FileError, match="it is not a trail written by export_trail"):
        ai.Trial.verify_trail(bad, public_key=public)


def test_rows_that_were_dropped_before_signing_are_missed_by_their_head(
    path: Path, keys: Path, tmp_path: Path
) -> None:
    """Who has the private key can sign anything; a head that was kept elsewhere shows what is missing."""
    with begun(path) as trial:
        peopled(trial)
        head = trial.status().head
        facts, members = trial._requests.read_again(trial._trail, set())
    lines = members[trail.ROWS].splitlines(keepends=True)
    members[trail.ROWS] = b"".join(lines[:-1])
    facts |= {"rows": len(lines) - 1, "head": json.loads(lines[-2])[2]}
    manifest = trail.manifest_of(facts, members)
    from adaptinf.trial.custody.signing import signature

    signed, _ = signature(keys / "own.pem", manifest)
    file = tmp_path / "short.zip"
    file.write_bytes(archive({**members, trail.MANIFEST: manifest, trail.SIGNATURE: signed}))
    public = keys / "own.public.pem"
    assert ai.Trial.verify_trail(file, public_key=public).rows == len(lines) - 1
    with pytest.raises(JournalError, match="no row has the head"):
        ai.Trial.verify_trail(file, public_key=public, head=head)


def test_keys_that_are_none_are_refused(path: Path, keys: Path, tmp_path: Path) -> None:
    file = tmp_path / "trail.zip"
    loose = tmp_path / "loose.pem"
    loose.write_bytes((keys / "own.pem").read_bytes())
    loose.chmod(0o644)
    (tmp_path / "text.pem").write_text("no key")
    (tmp_path / "text.pem").chmod(0o600)
    rsa = tmp_path / "rsa.pem"
    subprocess.run(["openssl", "genrsa", "-out", rsa, "2048"], check=True, capture_output=True)
    rsa.chmod(0o600)
    with begun(path) as trial:
        with pytest.raises(FileError, match="other users can read this private key: run chmod 600"):
            trial.export_trail(file, sign=loose)
        for key in (tmp_path / "text.pem", rsa, keys / "own.public.pem"):
            key.chmod(0o600)
            with pytest.raises(FileError, match="it does not contain an unencrypted Ed25519 private key"):
                trial.export_trail(file, sign=key)
        assert not file.exists()
        trial.export_trail(file, sign=keys / "own.pem")
        with pytest.raises(FileError, match="a file of that name already exists"):
            trial.export_trail(file, sign=keys / "own.pem")
    for key in (keys / "own.pem", rsa, tmp_path / "text.pem"):
        with pytest.raises(FileError, match="it does not contain an Ed25519 public key"):
            ai.Trial.verify_trail(file, public_key=key)


def test_the_command_line(path: Path, keys: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def told(*arguments: object, code: int = 0) -> Any:
        assert main(["trial", *map(str, arguments)]) == code
        captured = capsys.readouterr()
        return captured.err.strip() if code else json.loads(captured.out.splitlines()[-1])

    file, public = path.with_name("trail.zip"), keys / "own.public.pem"
    with begun(path) as trial:
        peopled(trial)
    assert told("retention", path)["days"] is None
    assert told("retention", path, "--days", 0, "--reason", "protocol", "--by", "me")["days"] == 0
    assert "reason must be" in told("retention", path, "--days", 0, code=2)
    assert "the trial is not finished" in told("expire", path, "--by", "me", code=2)
    told("finish", path, "--reason", "all are in")
    made = told("export-trail", path, file, "--sign", keys / "own.pem")
    assert told("verify-trail", file, "--public-key", public, "--head", made["head"]) == made
    assert "no row has the head 11" in told(
        "verify-trail", file, "--public-key", public, "--head", 11, code=1
    )
    assert told("expire", path, "--by", "me")["left"] == 0
    assert datetime.now(UTC) > datetime.fromisoformat(told("retention", path)["due"])
