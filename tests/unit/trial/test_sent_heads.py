"""Heads are sent to a file or a command after each write, no request waits, and failures are told once."""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

from adaptinf.cli.entry import main
from adaptinf.designs import Thompson
from adaptinf.errors import AdaptinfWarning, ParameterError
from adaptinf.trial import Trial
from adaptinf.trial.keys import sent_heads

DESIGN = Thompson(floor=0.1)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_file_has_the_head_after_each_write(path: Path, tmp_path: Path) -> None:
    heads, known = tmp_path / "heads", []
    with Trial.create(path, DESIGN, ["a", "b"], 50, heads=heads) as trial:
        known.append(trial.status())
        for number in range(20):
            trial.assign(f"unit {number}", key=f"a{number}")
            known.append(trial.status())
        trial.assign("unit 3", key="a3")
    said = lines(heads)
    assert [(one["rows"], one["head"]) for one in said] == [(one.rows, one.head) for one in known]
    assert [one["time"] for one in said] == sorted(one["time"] for one in said)
    assert all(one["time"].endswith("+00:00") for one in said)
    with Trial.open(path, heads=str(heads)) as trial:
        trial.pause("for the night")
    assert [one["rows"] for one in lines(heads)] == [*range(1, 22), 21, 22]
    for one in lines(heads):
        assert Trial.verify_chain(path, one["head"])[0] == 22


def test_a_command_reads_the_latest_head(path: Path, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-c",
        f"import sys; open({str(tmp_path / 'last')!r}, 'w').write(sys.stdin.read())",
    ]
    with Trial.create(path, DESIGN, ["a", "b"], 50, heads=command) as trial:
        trial.assign("unit", key="a")
        head = trial.status().head
    assert lines(tmp_path / "last") == [
        {"time": lines(tmp_path / "last")[0]["time"], "rows": 2, "head": head}
    ]


@pytest.mark.slow
def test_no_request_waits_for_a_command(path: Path) -> None:
    with Trial.create(path, DESIGN, ["a", "b"], 50, heads=["sleep", "3"]) as trial:
        trial.assign("unit", key="a")
        begun = time.monotonic()
        trial.assign("unit 2", key="b")
        assert time.monotonic() - begun < 2.0


@pytest.mark.parametrize(
    ("heads", "told"),
    [
        (["false"], "heads were not sent: the command failed with exit code 1"),
        (["/no/such/program", "s3cret"], "heads were not sent: the command: No such file or directory"),
        ("/no/such/folder/heads", "heads were not sent: /no/such/folder/heads: No such file or directory"),
    ],
)
def test_a_failure_is_told_and_stops_nothing(path: Path, heads: Any, told: str) -> None:
    options: dict[str, Any] = {"arms": ["a", "b"], "horizon": 50, "heads": heads}
    with pytest.warns(AdaptinfWarning) as caught, Trial.create(path, DESIGN, **options) as trial:
        assert trial.assign("unit", key="a").id == 1
    assert {str(one.message) for one in caught} == {told}
    with Trial.open(path) as trial:
        assert trial.status().rounds == 1


def test_a_command_that_does_not_end_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sent_heads, "_PATIENCE", 0.1)
    with pytest.warns(AdaptinfWarning, match=r"the command did not finish within 0\.1 s"):
        Trial.create(path, DESIGN, ["a", "b"], 50, heads=["sleep", "5"]).close()


@pytest.mark.parametrize("heads", [[], ["cat", 3]])
def test_a_command_is_a_list_of_strings(path: Path, heads: Any) -> None:
    with pytest.raises(ParameterError, match="heads must be a file, or a command as a list of strings"):
        Trial.create(path, DESIGN, ["a", "b"], 50, heads=heads)
    assert not path.exists()


def test_heads_on_the_command_line(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        create = ["trial", "create", str(path), "--design", "Thompson", "--parameters", '{"floor": 0.1}']
        heads = ["--heads", str(tmp_path / "heads")]
        assert main([*create, "--arm", "a", "--arm", "b", "--horizon", "9", *heads]) == 0
        command = ["--heads-command", f"tee {tmp_path / 'last'}"]
        assert main(["trial", "assign", str(path), "--unit", "p", "--key", "k", *command]) == 0
    capsys.readouterr()
    assert [one["rows"] for one in lines(tmp_path / "heads")] == [1]
    assert [one["rows"] for one in lines(tmp_path / "last")] == [2]
