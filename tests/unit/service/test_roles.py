"""Every role at every call, and every way to have no valid token."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest
from served import Served

from adaptinf.service import gate
from adaptinf.service.roles import BY_NAME, CALLS, OPEN, ROLES, Call, table
from adaptinf.trial import served_rows

BODIES: dict[str, Any] = {
    "assign": {"unit": "p9"},
    "record": {"decision": 1, "reward": 1.0},
    "amend": {"decision": 1, "reward": 0.5, "reason": "a", "by": "b"},
    "amend_plan": {"looks": [10, 20], "reason": "a", "by": "b"},
    "state": {"state": "paused", "reason": "a", "by": "b"},
    "unblind": {"unit": "p1", "reason": "a", "by": "b"},
    "add_site": {"site": "Basel", "by": "b"},
    "add_kits": {"site": "Basel", "kits": [{"kit": "1234", "arm": "A"}], "by": "b"},
    "retire_kit": {"kit": "1234", "reason": "a", "by": "b"},
}
REFUSED = {"add_site": 409, "add_kits": 409, "retire_kit": 404, "looks": 409, "look": 409, "amend_plan": 409}
"""Calls that a trial without kits or plan refuses whoever may use them; `test_sites` has one with kits."""
EXPECTED = {
    "assign": {"assigner"},
    "record": {"recorder"},
    "status": set(ROLES),
    "allocation": {"statistician", "unblinder"},
    "amend": {"recorder"},
    "events": {"monitor", "statistician", "operator"},
    "alarms": {"monitor", "statistician", "operator", "unblinder"},
    "looks": {"monitor", "statistician", "operator"},
    "look": {"statistician", "operator"},
    "amend_plan": {"operator"},
    "state": {"operator"},
    "unblind": {"unblinder"},
    "add_site": {"operator"},
    "add_kits": {"operator"},
    "retire_kit": {"operator"},
    "stock": {"monitor", "statistician", "operator", "unblinder"},
}


def sent(served: Served, call: Call, headers: dict[str, str]) -> Any:
    if call.method == "GET":
        return served.client.get(call.path, headers=headers)
    return served.client.post(
        call.path, json=BODIES.get(call.name), headers={**headers, "idempotency-key": "k"}
    )


def test_the_table_is_what_was_decided() -> None:
    assert {call.name: set(call.roles) for call in CALLS} == EXPECTED


@pytest.mark.parametrize(("call", "role"), list(product(EXPECTED, ROLES)))
def test_each_cell(served: Served, call: str, role: str) -> None:
    served.assign({"unit": "p1"}, "first")
    if call == "amend":
        served.record({"decision": 1, "reward": 1.0}, "told")
    before = served.trial.status().rows
    response = sent(served, BY_NAME[call], served.headers(role))
    if role in EXPECTED[call]:
        assert response.status_code == REFUSED.get(call, 200)
    else:
        assert (response.status_code, response.json()["code"]) == (403, "forbidden")
        assert served.trial.status().rows == before


@pytest.mark.parametrize("call", EXPECTED)
def test_without_a_valid_token_nothing_is_answered(served: Served, call: str) -> None:
    served.assign({"unit": "p1"}, "first")
    (role, *_) = EXPECTED[call]
    token, before = served.tokens[role], served.trial.status().rows
    wrong = ("", "Bearer", "Bearer ", f"Bearer {token}x", f"Bearer {token[:-1]}", f"Basic {token}", token)
    for text in wrong:
        response = sent(served, BY_NAME[call], {"authorization": text})
        assert (response.status_code, response.json()["code"]) == (401, "unauthorized"), text
        assert response.headers["www-authenticate"] == "Bearer"
    assert sent(served, BY_NAME[call], {}).status_code == 401
    assert served.trial.status().rows == before


def test_the_token_comes_before_the_body(served: Served) -> None:
    assert served.client.post("/v1/assignments", content=b"{").status_code == 401
    assert served.client.post("/v1/assignments", content=b"x" * 2**21).status_code == 401


def test_tokens_issued_and_revoked_while_the_service_runs(served: Served) -> None:
    token = served.trial.add_token("assigner")
    headers = {"authorization": f"Bearer {token.text}", "idempotency-key": "k"}
    assert served.client.post("/v1/assignments", json={"unit": "p1"}, headers=headers).status_code == 200
    served.trial.revoke_token(token.id)
    # The service has not read the row yet: the transaction itself refuses.
    response = served.client.post("/v1/assignments", json={"unit": "p2"}, headers=headers)
    assert (response.status_code, response.json()["code"]) == (401, "unauthorized")
    assert served.client.get("/v1/status", headers=headers).status_code == 401
    assert served.trial.status().rounds == 1


def test_expired_tokens_are_refused(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime.now(UTC) + timedelta(days=days)

    monkeypatch.setattr(served_rows, "datetime", Later)
    for days, status in ((364, 200), (366, 401)):  # noqa: B007
        assert served.get("/v1/status").status_code == status


def test_failures_are_limited_and_valid_tokens_are_not(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1_000.0]
    monkeypatch.setattr(gate.time, "monotonic", lambda: clock[0])
    bad = {"authorization": "Bearer bad"}
    assert served.get("/v1/status").status_code == 200
    assert [served.client.get("/v1/status", headers=bad).status_code for _ in range(101)] == [401] * 100 + [
        429
    ]
    response = served.client.get("/v1/status", headers=bad)
    assert (response.json()["code"], response.headers["retry-after"]) == ("too-many-failures", "1")
    assert served.get("/v1/status").status_code == 200
    clock[0] += 1.0
    assert [served.client.get("/v1/status", headers=bad).status_code for _ in range(2)] == [401, 429]


def test_the_document_lists_all_calls_with_their_roles(served: Served) -> None:
    paths = served.get("/openapi.json", None).json()["paths"]
    assert set(paths) == {call.path for call in CALLS} | set(OPEN) - {"/openapi.json"}
    for call in CALLS:
        told = paths[call.path][call.method.lower()]
        assert told["summary"] == call.what.capitalize()
        assert (told["x-roles"], told["security"]) == (list(call.roles), [{"token": []}])
        assert {"401", "403", "503"} <= set(told["responses"])
        keyed = any(
            one["name"] == "Idempotency-Key" and one["required"] for one in told.get("parameters", [])
        )
        assert keyed == call.keyed


def test_the_table_in_words() -> None:
    lines = table().splitlines()
    assert lines[2] == "| `POST /v1/assignments` | assign arms to participants | yes |  |  |  |  |  |"
    assert len(lines) == 2 + len(CALLS)
