"""``adaptinf trial``: requests as flags and as lines, answers as JSON, refusals in one sentence."""

from __future__ import annotations

import io
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import adaptinf as ai
from adaptinf.cli import main


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "trial.db")


def told(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Any:
    """The JSON of a command's last line; the text of an error where it fails."""
    assert main(["trial", *arguments]) == code
    captured = capsys.readouterr()
    if code and not captured.out:
        return captured.err.strip()
    return json.loads(captured.out.splitlines()[-1])


def created(capsys: pytest.CaptureFixture[str], path: str, *more: str) -> Any:
    arms = "--arm", "a", "--arm", "b", "--horizon", "20"
    return told(
        capsys, "create", path, "--design", "Thompson", "--parameters", '{"floor": 0.1}', *arms, *more
    )


def test_a_trial_from_create_to_a_table(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    status = created(capsys, path)
    assert (status["design"], status["arms"], status["state"], status["rows"]) == (
        "Thompson",
        ["a", "b"],
        "open",
        1,
    )
    first = told(capsys, "assign", path, "--unit", "p 0", "--key", "k 0")
    assert (first["id"], first["round"]) == (1, 1)
    assert told(capsys, "assign", path, "--unit", "p 0", "--key", "k 0") == first
    answer = told(capsys, "record", path, "--decision", "1", "--reward", "1", "--key", "r 0")
    assert answer == {"id": 1, "reward": 1.0, "in_time": True}
    lines = "\n".join(json.dumps({"unit": f"p {n}", "key": f"k {n}"}) for n in range(1, 20))
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{lines}\n\n"))
    assert told(capsys, "assign", path)["round"] == 20
    rewards = [{"decision": n, "reward": n % 2 if n < 20 else "lost", "key": f"r {n}"} for n in range(2, 21)]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(map(json.dumps, rewards))))
    assert told(capsys, "record", path) == {"id": 20, "reward": None, "in_time": False}
    right = "--decision", "1", "--reward", "0", "--key", "a 0", "--reason", "a slip", "--by", "a monitor"
    assert told(capsys, "amend", path, *right) == {"id": 1, "reward": 0.0, "in_time": False}
    act = told(capsys, "history", path)
    assert (act["kind"], act["decision"], act["reward"], act["by"]) == ("amend", 1, 0.0, "a monitor")
    asked = "--unit", "p 0", "--reason", "a seizure", "--by", "the ward"
    assert told(capsys, "unblind", path, *asked) == first
    assert told(capsys, "history", path)["kind"] == "unblind"
    assert "by is required" in told(capsys, "amend", path, *right[:-2], code=2)
    head = told(capsys, "finish", path, "--reason", "all are in", "--by", "the sponsor")["head"]
    assert told(capsys, "verify", path, "--head", head)["rows"] == 44
    assert told(capsys, "status", path)["state"] == "finished"
    told(capsys, "backup", path, str(tmp_path / "copy.db"))
    assert told(capsys, "verify", str(tmp_path / "copy.db"), "--head", head)["head"] == head
    output = tmp_path / "log.parquet"
    told(capsys, "export", path, str(output), "--missing", "drop")
    log = ai.read_log(output)
    assert log.n_rounds == 20
    with ai.Trial.open(path) as trial:
        assert log.frame.equals(trial.log(missing="drop").frame)
        first = trial.log("drop", amended=False).frame
    told(capsys, "export", path, str(tmp_path / "told.parquet"), "--missing", "drop", "--as-told")
    assert ai.read_log(tmp_path / "told.parquet").frame.equals(first)
    assert (log.frame["reward"][0], first["reward"][0]) == (0.0, 1.0)


def test_refused_lines_are_answered_in_their_place(
    path: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    created(capsys, path)
    lines = [
        '{"unit": "p", "key": 1}',
        "{",
        '{"unit": "q"}',
        '{"unit": "q", "key": 1}',
        '{"unit": "q", "key": 2}',
    ]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines)))
    assert main(["trial", "assign", path]) == 2
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [answer.get("round") for answer in answers] == [1, None, None, None, 2]
    assert "not JSON" in answers[1]["error"]
    assert answers[2]["error"] == "a request: key is required"
    assert "another request" in answers[3]["error"]


def test_what_is_wrong_is_said_in_one_sentence(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "the file does not exist" in told(capsys, "status", path, code=2)
    arms = "--arm", "a", "--arm", "b", "--horizon", "20"
    for design in ("Session", "nothing", "__doc__", "Design"):
        problem = told(capsys, "create", path, "--design", design, *arms, code=2)
        assert problem.startswith(
            f"adaptinf trial create: --design: there is no design '{design}'; available: 'ABSE', "
        )
    problem = told(capsys, "create", path, "--design", "UCB", "--parameters", '{"depth": 1}', *arms, code=2)
    assert problem == (
        "adaptinf trial create: --parameters: there is no parameter 'depth'; UCB has 'width'; did you mean "
        "'width'?"
    )
    assert "JSON object" in told(
        capsys, "create", path, "--design", "UCB", "--parameters", "3", *arms, code=2
    )
    private = "--design", "PrivateUCB", "--parameters", '{"epsilon": 1.0}'
    assert "outcome_window is required: the number of" in told(
        capsys, "create", path, *private, *arms, code=2
    )
    assert not Path(path).exists()
    created(capsys, path)
    assert "already contains a trial" in told(capsys, "create", path, "--design", "Thompson", *arms, code=2)
    assert "no decision 7" in told(
        capsys, "record", path, "--decision", "7", "--reward", "1", "--key", "r", code=2
    )
    assert "rows were lost" in told(capsys, "verify", path, "--head", "0", code=1)
    with pytest.raises(SystemExit):
        main(["trial", "record", path, "--reward", "much"])


def test_a_mixture_and_the_warning_of_one_that_can_be_foreseen(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arms = "--arm", "a", "--arm", "b", "--horizon", "20"
    inner = '{"design": {"name": "UCB"}, "exploration": 0.2}'
    assert main(["trial", "create", path, "--design", "Mixture", "--parameters", inner, *arms]) == 0
    assert capsys.readouterr().err == ""
    assert told(capsys, "assign", path, "--unit", "p", "--key", "k")["round"] == 1
    assert main(["trial", "create", str(tmp_path / "other.db"), "--design", "UCB", *arms]) == 0
    assert "wrap it in a Mixture" in capsys.readouterr().err


def test_a_trial_is_named_as_an_address_too(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    created(capsys, f"sqlite:///{path}")
    status = told(capsys, "status", path)
    assert told(capsys, "status", "sqlite:///trial.db") == status
    assert sorted(file.name for file in tmp_path.iterdir() if "trial" in file.name)[0] == "trial.db"
    refused = told(capsys, "status", "mysql://host/trial", code=2)
    assert refused == (
        "adaptinf trial status: a trial must be stored in a SQLite file, given by its path, or a PostgreSQL "
        "database, postgresql://user@host/database; got 'mysql'://"
    )


def test_verify_ends_with_1_where_the_file_is_damaged(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    created(capsys, path)
    told(capsys, "assign", path, "--unit", "p", "--key", "k")
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE journal SET digest = 'x' WHERE number = 2")
    problem = told(capsys, "verify", path, code=1)
    assert problem.startswith(f"adaptinf trial verify: {path} is damaged: ")
    assert told(capsys, "status", path, code=2).startswith(f"adaptinf trial status: {path} is damaged: ")


def test_contexts_are_json(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    created(capsys, path, "--feature", "young", "--feature", "old")
    context = "--context", '"young"'
    assert told(capsys, "assign", path, "--unit", "p", "--key", "k", *context)["round"] == 1
    assert "context must be one of" in told(capsys, "assign", path, "--unit", "q", "--key", "l", code=2)


def test_an_arm_is_removed_and_a_participant_erased(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    created(capsys, path, "--feature", "young", "--feature", "old")
    for unit in ("p 1", "p 2", "p 3"):
        told(capsys, "assign", path, "--unit", unit, "--key", unit, "--context", '"old"')
    why = "--reason", "two seizures", "--by", "the board"
    assert told(capsys, "remove-arm", path, "--arm", "a", "--key", "s", *why) == {"left": ["b"]}
    assert "only one left" in told(capsys, "remove-arm", path, "--arm", "b", "--key", "t", *why, code=2)
    assert "by is required" in told(capsys, "erase", path, "--unit", "p 2", "--key", "e", *why[:2], code=2)
    assert told(capsys, "erase", path, "--unit", "p 2", "--key", "e", *why) == {"decision": 2}
    line = json.dumps({"unit": "p 3", "key": "e 3", "reason": "asked for", "by": "the board"})
    monkeypatch.setattr("sys.stdin", io.StringIO(line))
    assert told(capsys, "erase", path) == {"decision": 3}
    status = told(capsys, "verify", path)
    assert (status["removed"], status["erased"], status["unrepeatable"]) == (["a"], 2, 0)
    assert "was erased" in told(capsys, "assign", path, "--unit", "p 2", "--key", "p 2", code=2)
    told(capsys, "record", path, "--decision", "1", "--reward", "1", "--key", "r")
    output = str(tmp_path / "log.parquet")
    assert '--erased "drop"' in told(capsys, "export", path, output, "--missing", "drop", code=2)
    told(capsys, "export", path, output, "--missing", "drop", "--erased", "drop")
    assert ai.read_log(output).n_rounds == 1


def test_names_come_from_standard_input_and_stand_in_no_list_of_processes(
    path: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attack: whoever runs ps reads `--unit "Ms Example"`."""
    created(capsys, path)

    def typed(*lines: str) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))

    why = "--reason", "-", "--by", "-"
    typed("Ms Example", "visit of Ms Example")
    first = told(capsys, "assign", path, "--key", "-", "--unit", "-")
    assert told(capsys, "assign", path, "--unit", "Ms Example", "--key", "visit of Ms Example") == first
    typed("form of Ms Example")
    told(capsys, "record", path, "--decision", "1", "--reward", "1", "--key", "-")
    typed("Ms Example", "she fainted", "Dr. Ames")
    assert told(capsys, "unblind", path, "--unit", "-", *why)["arm"] == first["arm"]
    typed("a slip", "Dr. Ames")
    told(capsys, "amend", path, "--decision", "1", "--reward", "0", "--key", "m", *why)
    typed("Ms Example", "a letter", "the office")
    assert told(capsys, "erase", path, "--unit", "-", "--key", "e", *why) == {"decision": 1}
    typed("for the night")
    assert told(capsys, "pause", path, "--reason", "-")["reason"] == "for the night"
    acts = {act.kind: act.reason for act in ai.Trial.open(path).history()}
    assert acts == {"unblind": None, "amend": None, "erase": "a letter", "pause": "for the night"}
    typed()
    problem = told(capsys, "erase", path, "--unit", "-", "--key", "e", code=2)
    assert problem == "adaptinf trial erase: --unit: it is -, but standard input has no line for it"


def test_looks_are_taken_and_listed(
    path: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adaptinf.trial.trial_setup.fresh_seed", lambda: bytes(range(32)))
    plan = {"treatment": "b", "control": "a", "looks": [10, 20], "least": 0, "spending": "lan-demets-pocock"}
    status = created(capsys, path, "--plan", json.dumps(plan))
    assert (status["horizon"], status["next_look"]) == (20, 10)
    first = told(capsys, "look", path)
    assert (first["stage"], first["decision"], first["planned"]) == (0, "continue", [10, 20])
    with ai.Trial.open(path) as trial:
        for number in range(20):
            decision = trial.assign(number, key=f"a {number}")
            if number == 9:
                assert "(decision 10)" in told(capsys, "look", path, code=2)
            reward = float(number % 16 != 5 if decision.arm == "b" else number % 16 == 5)
            trial.record(decision.id, reward, key=f"r {number}")
            if trial.status().next_look == number + 1:
                assert told(capsys, "look", path)["decision"] in ("continue", "no rejection")
    assert told(capsys, "looks", path)["decision"] == "no rejection"
    status = told(capsys, "status", path)
    assert (status["state"], status["next_look"]) == ("paused", None)
    assert told(capsys, "history", path)["kind"] == "look"
    assert told(capsys, "finish", path)["reason"] == status["reason"]
    output = str(tmp_path / "log.parquet")
    told(capsys, "export", path, output)
    assert main(["analyze", output]) == 0
    shown = capsys.readouterr().out
    assert "Plan Results" in shown
    assert "b - a" in shown
    assert main(["recommend", output]) == 0
    assert "First choice  Plan.of(log).analyse(log)" in capsys.readouterr().out


def test_a_plan_is_changed(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    plan = {"treatment": "b", "control": "a", "looks": [10, 20]}
    assert created(capsys, path, "--plan", json.dumps(plan))["next_look"] == 10
    why = "--reason", "more sites", "--by", "the sponsor"
    change = "amend-plan", path, "--looks", "[4, 16]", *why
    assert told(capsys, *change) == {"looks": [4, 16], "next_look": 4}
    with ai.Trial.open(path) as trial:
        for number in range(4):
            trial.record(trial.assign(number, key=f"a {number}").id, 0.0, key=f"r {number}")
    told(capsys, "look", path)
    change = "amend-plan", path, "--looks", "[4, 12]", *why
    assert "--blinded is required" in told(capsys, *change, code=2)
    assert told(capsys, *change, "--blinded", "--changes", '{"futility": 0.1}')["next_look"] == 12
    act = told(capsys, "history", path)
    assert (act["kind"], act["reason"], act["looks"]) == ("amend_plan", "more sites", [4, 12])
    problem = told(capsys, *change, "--blinded", "--changes", '{"alpha": 0.5}', code=2)
    assert problem.endswith("alpha cannot be changed")
    problem = told(capsys, *change, "--blinded", "--changes", '{"by": "me"}', code=2)
    assert problem.endswith("it must be a JSON object with arguments of the plan except looks")


def test_what_is_wrong_with_a_plan_is_said_at_once(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    arms = "--design", "Uniform", "--arm", "a", "--arm", "b", "--horizon", "20"
    problem = told(capsys, "create", path, *arms, "--plan", '{"treatment": "b", "look": [10, 20]}', code=2)
    assert "'look'" in problem
    assert "Plan requires control" in problem
    assert "Plan requires looks" in problem
    problem = told(capsys, "create", path, *arms, "--plan", "[10, 20]", code=2)
    assert "it must be a JSON object, such as" in problem
    created(capsys, path)
    problem = told(capsys, "look", path, code=2)
    assert problem.endswith("the trial has no plan: create it with Trial.create(path, plan)")


def test_a_blinded_trial_with_sites(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    created(capsys, path, "--blinded")
    who = "--by", "the office"
    row = told(capsys, "add-site", path, "--site", "Basel", "--key", "s", *who)
    assert row == {"site": "Basel", "in_stock": 0, "given": 0, "retired": 0, "low": True}
    (tmp_path / "kits.json").write_text('{"4711": "a", "1174": "b", "7411": "b", "1147": "a"}')
    kits = "--site", "Basel", "--kits", str(tmp_path / "kits.json"), *who
    assert told(capsys, "add-kits", path, *kits, "--key", "d")["in_stock"] == 4
    first = told(capsys, "assign", path, "--unit", "p 0", "--key", "k 0", "--site", "Basel")
    assert sorted(first) == ["id", "kit", "round"]
    monkeypatch.setattr("sys.stdin", io.StringIO('{"unit": "p 1", "key": "k 1", "site": "Basel"}'))
    assert told(capsys, "assign", path)["id"] == 2
    revealed = told(capsys, "unblind", path, "--unit", "Basel/p 0", "--reason", "a seizure", *who)
    assert revealed["kit"] == first["kit"]
    assert revealed["arm"] in ("a", "b")
    rows = told(capsys, "stock", path, "--by-arm")
    assert (rows["arm"], rows["site"]) == ("b", "Basel")
    with ai.Trial.open(path) as trial:
        left = trial.kits().query("state == 'in stock'")["kit"].iloc[0]
    lost = "--reason", "broken seal", *who, "--key", "l"
    assert told(capsys, "retire-kit", path, "--kit", left, *lost)["retired"] == 1
    assert "there is no kit '0815'" in told(
        capsys, "retire-kit", path, "--kit", "0815", *who, *lost[:2], "--key", "m", code=2
    )
    monkeypatch.setattr("sys.stdin", io.StringIO('{"4712": "a", "4712": "b"}'))
    twice = told(capsys, "add-kits", path, "--site", "Basel", "--kits", "-", *who, "--key", "e", code=2)
    assert "a code occurs twice" in twice
    monkeypatch.setattr("sys.stdin", io.StringIO("{4712"))
    assert "JSON" in told(
        capsys, "add-kits", path, "--site", "Basel", "--kits", "-", *who, "--key", "e", code=2
    )
    assert main(["trial", "token", path, "--role", "assigner", "--site", "Basel"]) == 0
    out, err = capsys.readouterr()
    assert len(out.strip()) == 43
    assert err.startswith("token 1: assigner at Basel, until ")
    assert told(capsys, "token", path)["site"] == "Basel"


def test_an_arm_that_joins(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    created(capsys, path)
    why = "--reason", "amendment 2", "--by", "the sponsor"
    assert "begin with the arm" in told(capsys, "add-arm", path, "--arm", "c", "--key", "c", *why, code=2)
    told(capsys, "assign", path, "--unit", "p 0", "--key", "k 0")
    for _ in range(2):
        assert told(capsys, "add-arm", path, "--arm", "c", "--key", "c", *why) == {"arms": ["a", "b", "c"]}
    assert told(capsys, "status", path)["arms"] == ["a", "b", "c"]
    act = told(capsys, "history", path)
    assert (act["kind"], act["arm"], act["reason"]) == ("add_arm", "c", "amendment 2")
