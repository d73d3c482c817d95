"""Keys of trials on the command line: made, given to every action, exchanged; the chain needs none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from adaptinf.cli.trial_commands import _SAID

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def trial(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A trial with a key, and another key; the environment names none."""
    for name in ("ADAPTINF_KEY_FILE", "ADAPTINF_KEY_COMMAND"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    for name in ("old.key", "new.key"):
        code, out, err = run("trial", "key", name)
        assert (code, json.loads(out), err) == (0, {"key_file": name}, "")
    options = ("--design", "Thompson", "--parameters", '{"floor": 0.1}', "--arm", "a", "--arm", "b")
    assert run("trial", "create", "t.db", *options, "--horizon", "9", "--key-file", "old.key")[0] == 0
    return "t.db"


def test_a_key_is_not_written_over(run: Run, trial: str, tmp_path: Path) -> None:
    before = (tmp_path / "old.key").read_bytes()
    assert len(before) == 32
    assert (tmp_path / "old.key").stat().st_mode & 0o777 == 0o600
    code, out, err = run("trial", "key", "old.key")
    assert (code, out) == (2, "")
    assert err == "adaptinf trial key: old.key cannot be written: File exists\n"
    assert (tmp_path / "old.key").read_bytes() == before


def test_every_action_on_a_trial_takes_its_key(run: Run, trial: str) -> None:
    for action in _SAID:
        assert ("--key-file FILE" in run("trial", action, "--help")[1]) == (
            action not in ("key", "verify-trail")
        ), action


def test_actions_work_with_the_key_alone(run: Run, trial: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("trial", "assign", trial, "--unit", "p", "--key", "k")
    code, out, err = run(*asked)
    assert (code, out) == (2, "")
    assert err == (
        "adaptinf trial assign: the trial was created with a key: give --key-file, or set ADAPTINF_KEY_FILE "
        "or ADAPTINF_KEY_COMMAND in the environment\n"
    )
    assert json.loads(run(*asked, "--key-file", "old.key")[1])["id"] == 1
    told = "adaptinf trial assign: the key does not open the trial"
    assert run(*asked, "--key-file", "new.key")[2].startswith(told)
    monkeypatch.setenv("ADAPTINF_KEY_FILE", "old.key")
    assert json.loads(run("trial", "status", trial)[1])["rounds"] == 1
    assert json.loads(run("trial", "backup", trial, "copy.db")[1])["rows"] == 2
    assert json.loads(run("trial", "status", "copy.db")[1])["copied"]
    assert run("trial", "token", trial, "--role", "assigner")[0] == 0


def test_a_key_is_exchanged(run: Run, trial: str) -> None:
    keys = ("--key-file", "old.key", "--new-key-file", "new.key")
    code, out, _ = run("trial", "rekey", trial, *keys, "--reason", "a year is over", "--by", "the office")
    assert (code, json.loads(out)["rows"]) == (0, 2)
    assert run("trial", "status", trial, "--key-file", "old.key")[0] == 2
    (line,) = run("trial", "history", trial, "--key-file", "new.key")[1].splitlines()
    act = json.loads(line)
    assert (act["kind"], act["reason"], act["by"]) == ("rekey", "a year is over", "the office")


def test_the_chain_is_checked_without_a_key(run: Run, trial: str) -> None:
    head = json.loads(run("trial", "status", trial, "--key-file", "old.key")[1])["head"]
    assert run("trial", "pause", trial, "--reason", "night", "--key-file", "old.key")[0] == 0
    code, out, _ = run("trial", "verify", trial, "--chain", "--head", head)
    assert (code, json.loads(out)["rows"]) == (0, 2)
    code, out, err = run("trial", "verify", trial, "--chain", "--head", "dead")
    assert (code, out) == (1, "")
    assert err == (
        "adaptinf trial verify: t.db is damaged: no row has the head dead: rows were lost or changed\n"
    )


def test_noise_of_trials_with_one_key_is_compared(run: Run, trial: str) -> None:
    for name in ("one.db", "two.db"):
        options = ("--design", "PrivateUCB", "--parameters", '{"epsilon": 1.0}', "--arm", "a", "--arm", "b")
        more = ("--horizon", "9", "--outcome-window", "0", "--key-file", "old.key")
        assert run("trial", "create", name, *options, *more)[0] == 0
        for number in range(3):
            run("trial", "assign", name, "--unit", f"{number}", "--key", f"{number}", "--key-file", "old.key")
    code, out, _ = run("trial", "audit-noise", "one.db", "--other", "two.db", "--key-file", "old.key")
    assert (code, json.loads(out.splitlines()[-1])["trials"]) == (0, ["one.db", "two.db"])
