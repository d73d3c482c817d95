"""The calls of the service: answers, problems with their codes, and nothing that quotes data."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from httpx2 import Response
from served import Served, serving, trial_at

import adaptinf as ai
from adaptinf.service import gate, writer
from adaptinf.service.problems import PROBLEMS
from adaptinf.trial.migration import versions


def code(response: Response, status: int) -> Any:
    """The code of a problem, whose form and text are checked."""
    told = response.json()
    assert response.status_code == status == told["status"]
    assert response.headers["content-type"] == "application/problem+json"
    assert (told["type"], told["title"]) == (
        f"urn:adaptinf:problem:{told['code']}",
        PROBLEMS[told["code"]][1],
    )
    return told["code"]


def test_assign_and_record_as_promised(served: Served) -> None:
    first = served.assign({"unit": "p1", "context": None}, "k1")
    assert first.status_code == 200
    assert first.headers["cache-control"] == "no-store"
    assert {**first.json(), "arm": "A"} == {"id": 1, "arm": "A", "round": 1}
    assert served.assign({"unit": "p1"}, "k1").json() == first.json()
    assert served.assign({"unit": "p1"}, "k1b").json() == first.json()
    told = served.record({"decision": 1, "reward": 1.0}, "k2")
    assert (told.status_code, told.json()) == (200, {"id": 1, "reward": 1.0, "in_time": True})
    assert served.record({"decision": 1, "reward": 1}, "k2").json() == told.json()
    assert served.assign({"unit": "p2"}, "k3").json()["id"] == 2
    assert served.record({"decision": 2, "reward": None}, "k4").json() == {
        "id": 2,
        "reward": None,
        "in_time": False,
    }
    log = served.trial.log(missing="drop")
    assert (log.n_rounds, served.trial.status().pending) == (2, 0)


def test_the_type_of_a_body_need_not_be_stated(served: Served) -> None:
    headers = {**served.headers("assigner", "k"), "content-type": "application/x-www-form-urlencoded"}
    response = served.client.post("/v1/assignments", content=b'{"unit": 7}', headers=headers)
    assert response.json()["round"] == 1


def test_lists_are_answered_one_by_one(served: Served) -> None:
    answer = served.assign([{"unit": "p1"}, {"unit": "P1 "}, {"unit": "p2"}], "k").json()
    assert [one.get("id") for one in answer] == [1, None, 2]
    assert (answer[1]["code"], answer[1]["status"]) == ("unit-looks-alike", 409)
    assert served.assign([{"unit": "p1"}, {"unit": "P1 "}, {"unit": "p2"}], "k").json() == answer
    rewards = [{"decision": 1, "reward": 1.0}, {"decision": 9, "reward": 1.0}, {"decision": 2, "reward": 7.0}]
    told = served.record(rewards, "r").json()
    assert [one.get("code") for one in told] == [None, "unknown-decision", "does-not-fit"]
    assert served.trial.status().pending == 1


CASES: list[tuple[str, int, str, Any, str | None]] = [
    ("key-missing", 400, "assign", {"unit": "new"}, None),
    ("key-missing", 400, "assign", {"unit": "new"}, " "),
    ("key-missing", 400, "assign", {"unit": "new"}, "k" * 181),
    ("key-reused", 409, "assign", {"unit": "new"}, "k1"),
    ("key-reused", 409, "assign", {"unit": "new"}, "r1"),
    ("key-reused", 409, "record", {"decision": 2, "reward": 1.0}, "r1"),
    ("unit-looks-alike", 409, "assign", {"unit": "P1"}, "n"),
    ("does-not-fit", 422, "assign", {"unit": 7}, "n"),
    ("does-not-fit", 422, "assign", {"unit": "new", "context": "young"}, "n"),
    ("outcome-differs", 409, "record", {"decision": 1, "reward": 0.5}, "n"),
    ("unknown-decision", 404, "record", {"decision": 9, "reward": 0.5}, "n"),
    ("does-not-fit", 422, "record", {"decision": 2, "reward": 1.5}, "n"),
    ("invalid-body", 422, "record", {"decision": 2}, "n"),
    ("invalid-body", 422, "record", {"decision": 2, "reward": True}, "n"),
    ("invalid-body", 422, "record", {"decision": 0, "reward": 1.0}, "n"),
    ("invalid-body", 422, "record", {"decision": "2", "reward": 1.0}, "n"),
    ("invalid-body", 422, "record", [], "n"),
    ("invalid-body", 422, "record", None, "n"),
    ("invalid-body", 422, "assign", {"unit": "new", "arm": "A"}, "n"),
    ("invalid-body", 422, "assign", {"unit": " \x1c"}, "n"),
    ("invalid-body", 422, "assign", {"unit": "u" * 201}, "n"),
    ("invalid-body", 422, "assign", {"unit": 2**53 + 1}, "n"),
    ("invalid-body", 422, "assign", {"unit": True}, "n"),
    ("invalid-body", 422, "assign", {"unit": "new", "context": {"a": 1}}, "n"),
    ("invalid-body", 422, "assign", [{"unit": f"u{n}"} for n in range(501)], "n"),
]


@pytest.mark.parametrize(("expected", "status", "call", "body", "key"), CASES)
def test_each_refusal_has_its_code_and_changes_nothing(
    served: Served, expected: str, status: int, call: str, body: Any, key: str | None
) -> None:
    served.assign([{"unit": "p1"}, {"unit": "p2"}], "a")
    served.assign({"unit": "p1"}, "k1")
    served.record({"decision": 1, "reward": 1.0}, "r1")
    before = served.trial.status()
    assert code(getattr(served, call)(body, key), status) == expected
    assert served.trial.status() == before


RAW = [
    b"",
    b"{",
    b'{"unit": "\xff"}',
    b'{"unit": "\\ud800"}',
    b"[" * 100_000,
    b'{"unit": "x", "context": NaN}',
    b'{"unit": "x", "context": [1e999]}',
    b'{"unit": 1' + b"0" * 5_000 + b"}",
    b"\x00\x01",
]


@pytest.mark.parametrize("body", RAW, ids=[repr(body[:20]) for body in RAW])
def test_what_is_no_json_is_refused(served: Served, body: bytes) -> None:
    response = served.client.post("/v1/assignments", content=body, headers=served.headers("assigner", "k"))
    assert code(response, 422) == "invalid-body"
    assert served.trial.status().rounds == 0


HOSTILE = [
    "'; DROP TABLE journal; --",
    "<script>alert(1)</script>",
    "../../etc/passwd",
    "\x00",
    "%s%n{}",
    "\u202eevil",
    "💥" * 100,
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_are_names(served: Served, text: str) -> None:
    assert served.assign({"unit": text}, "k").status_code == 200
    assert served.trial.verify().rounds == 1
    assert not any(text in line for line in served.log)


def test_contexts(contextual: Served) -> None:
    assert contextual.assign({"unit": "p1", "context": "young"}, "k1").status_code == 200
    assert code(contextual.assign({"unit": "p1", "context": "old"}, "k2"), 409) == "unit-context-differs"
    assert code(contextual.assign({"unit": "p2", "context": "mid"}, "k2"), 422) == "does-not-fit"
    assert code(contextual.assign({"unit": "p2"}, "k2"), 422) == "does-not-fit"
    assert code(contextual.assign({"unit": "p1", "context": "old"}, "k1"), 409) == "key-reused"


def test_a_design_that_waits_for_outcomes_says_so(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ai.errors.AdaptinfWarning)
        trial = ai.Trial.create(path, ai.designs.SuccessiveElimination(), ["A", "B"], horizon=2)
    for served in serving(trial):
        answers = [served.assign({"unit": f"p{n}"}, f"k{n}") for n in range(2)]
        last = [one.status_code for one in answers]
        if last == [200, 409]:
            assert code(answers[1], 409) == "outcome-needed"
        served.record({"decision": 1, "reward": 1.0}, "r")
        served.assign({"unit": "p1"}, "k1")
        assert code(served.assign({"unit": "p9"}, "k9"), 409) == "horizon-reached"


def test_states_of_the_trial(served: Served) -> None:
    served.assign({"unit": "p1"}, "k1")
    turn = {"state": "paused", "reason": "arm A: two seizures", "by": "Dr. Ames"}

    def turned(body: dict[str, str]) -> Response:
        return served.client.post("/v1/state", json=body, headers=served.headers("operator"))

    assert turned(turn).json() == {"state": "paused"}
    assert code(served.assign({"unit": "p2"}, "k2"), 409) == "paused"
    assert served.assign({"unit": "p1"}, "k1").status_code == 200
    status = served.get("/v1/status").json()
    assert status["state"] == "paused"
    assert not {"reason", "arms", "removed"} & set(status)
    assert turned({**turn, "state": "open"}).json() == {"state": "open"}
    assert code(turned({**turn, "state": "finished"}), 422) == "invalid-body"
    served.trial.erase("p1", key="e", reason="asked", by="office")
    assert code(served.record({"decision": 1, "reward": 1.0}, "r"), 410) == "erased"
    assert code(served.assign({"unit": "p1"}, "k8"), 410) == "erased"
    served.trial.finish("done", by="Dr. Ames")
    assert code(served.assign({"unit": "p3"}, "k3"), 409) == "finished"
    assert code(served.record({"decision": 1, "reward": 1.0}, "r"), 409) == "finished"
    assert code(turned(turn), 409) == "finished"


def test_unblinding_leaves_a_row(served: Served) -> None:
    arm = served.assign({"unit": "p1"}, "k1").json()["arm"]
    body = {"unit": "p1", "reason": "a seizure", "by": "the ward"}
    headers = served.headers("unblinder")
    assert served.client.post("/v1/unblindings", json=body, headers=headers).json() == {
        "id": 1,
        "arm": arm,
        "round": 1,
    }
    assert served.trial.history()[-1].kind == "unblind"
    response = served.client.post("/v1/unblindings", json={**body, "unit": "p2"}, headers=headers)
    assert code(response, 404) == "unknown-unit"
    served.trial.erase("p1", key="e", reason="asked", by="office")
    response = served.client.post("/v1/unblindings", json=body, headers=headers)
    assert code(response, 410) == "erased"


def test_a_copy_is_read_and_nothing_else(path: Path, tmp_path: Path) -> None:
    with trial_at(path) as trial:
        tokens = {
            role: trial.add_token(role).text for role in ("assigner", "recorder", "operator", "monitor")
        }
        trial.assign("p1", key="k1")
        trial.backup(tmp_path / "copy.db")
    from starlette.testclient import TestClient

    from adaptinf.service.api import service

    copy = ai.Trial.open(tmp_path / "copy.db")
    with TestClient(service(copy, lambda _: True)) as client:
        served = Served(client, copy, tokens)
        assert served.get("/v1/status").json()["copied"] is True
        assert code(served.assign({"unit": "p2"}, "k2"), 409) == "copy"
        assert code(served.record({"decision": 1, "reward": 1.0}, "r"), 409) == "copy"
        body = {"state": "paused", "reason": "a", "by": "b"}
        response = client.post("/v1/state", json=body, headers=served.headers("operator"))
        assert code(response, 409) == "copy"
    copy.close()


def test_a_trial_in_which_another_version_decides_is_read_and_nothing_else(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.assign({"unit": "p1"}, "k1")
    place = served.trial._requests.journal.path
    monkeypatch.setattr(versions, "__version__", "0.2.0")
    ai.Trial.migrate(place, reason="version 0.2", by="the office")
    monkeypatch.setattr(versions, "__version__", ai.__version__)
    assert served.get("/v1/status").json()["version"] == "0.2.0"
    assert served.assign({"unit": "p1"}, "k1").json()["id"] == 1  # an answer that was given stands
    assert code(served.assign({"unit": "p2"}, "k2"), 409) == "other-version"
    assert code(served.record({"decision": 1, "reward": 1.0}, "r"), 409) == "other-version"
    found = served.get("/v1/events", "operator").json()["events"][-1]
    assert (found["kind"], found["reason"], found["by"]) == ("migrate", "version 0.2", "the office")
    assert "reason" not in served.get("/v1/events", "monitor").json()["events"][-1]


def test_counts_by_arm_add_up(served: Served) -> None:
    served.assign([{"unit": f"p{n}"} for n in range(20)], "k")
    served.trial.remove_arm("B", key="x", reason="safety", by="board")
    told = served.get("/v1/allocation", "statistician").json()
    assert [one["arm"] for one in told["arms"]] == ["A", "B"]
    log = served.trial.log(missing="worst")
    assert [one["assigned"] for one in told["arms"]] == log.frame["action"].value_counts().reindex(
        ["A", "B"], fill_value=0
    ).tolist()
    assert told["removed"] == ["B"]


def test_open_calls(served: Served) -> None:
    assert served.get("/healthz", None).json() == {"status": "ok"}
    assert served.get("/readyz", None).json() == {"status": "ready"}
    assert "adaptinf_trial_rounds" not in served.get("/metrics", None).text
    served.assign([{"unit": "p1"}, {"unit": "p2"}], "k")
    text = served.get("/metrics").text
    assert "adaptinf_trial_rounds 2.0" in text
    assert 'adaptinf_group_size_bucket{le="2.0"}' in text
    assert served.client.get("/metrics", headers={"authorization": "Bearer x"}).status_code == 401
    for path in ("/docs", "/redoc", "/v1/assignments/", "/%2e%2e/etc/passwd"):
        assert served.client.get(path).status_code == 404, path
    assert code(served.client.put("/v1/status"), 405) == "method-not-allowed"


def test_the_log_has_no_names(served: Served) -> None:
    served.assign({"unit": "Ms Example"}, "visit of Ms Example")
    served.client.get("/Ms%20Example")
    served.client.request("EXAMPLE", "/v1/status")
    lines = [json.loads(line) for line in served.log]
    assert [(line["method"], line["path"], line["status"], line["token"]) for line in lines] == [
        ("POST", "/v1/assignments", 200, 1),
        (None, None, 404, None),
        ("EXAMPLE", "/v1/status", 405, None),
    ]
    assert not any("Example" in line for line in served.log)


def test_large_and_slow_bodies(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    headers = served.headers("assigner", "k")
    response = served.client.post("/v1/assignments", content=b"x" * (gate.BODY + 1), headers=headers)
    assert code(response, 413) == "body-too-large"

    def parts() -> Iterator[bytes]:
        yield from [b"x" * 2**18] * 5

    assert (
        code(served.client.post("/v1/assignments", content=parts(), headers=headers), 413) == "body-too-large"
    )
    assert served.client.post("/v1/assignments", content=b"x" * 100, headers=headers).status_code == 422
    monkeypatch.setattr(writer, "WAITING", 0)
    response = served.assign({"unit": "p"}, "k")
    assert code(response, 503) == "overloaded"
    assert response.headers["retry-after"] == "1"
