"""Requests that arrive together share one transaction, and each stands or falls alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from httpx2 import Response
from served import Served

import adaptinf as ai
from adaptinf.errors import FileError
from adaptinf.trial.journal import Journal


def together(served: Served, requests: list[Callable[[], Response]], monkeypatch: Any) -> list[Response]:
    """Answers to requests that all wait while a transaction is under way, sent in order."""
    begun, go, whole = threading.Event(), threading.Event(), Journal.begin

    def held(journal: Journal, write: bool = True) -> None:
        if not begun.is_set():
            begun.set()
            assert go.wait(30.0)
        whole(journal, write)

    writer = served.writer
    with ThreadPoolExecutor(len(requests) + 1) as pool:
        monkeypatch.setattr(Journal, "begin", held)
        first = pool.submit(lambda: served.get("/readyz", None))
        assert begun.wait(30.0)
        sent = []
        for number, request in enumerate(requests):
            sent.append(pool.submit(request))
            while writer._waiting < number + 2:
                pass
        go.set()
        assert first.result().status_code == 200
        answers = [one.result() for one in sent]
    monkeypatch.setattr(Journal, "begin", whole)
    return answers


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    rows: list[int] = []
    whole = Journal.commit

    def counted(journal: Journal) -> None:
        whole(journal)
        rows.append(journal.rows)

    monkeypatch.setattr(Journal, "commit", counted)
    return rows


def test_one_write_in_order_of_arrival(
    served: Served, commits: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = served.trial.status().rows
    commits.clear()
    requests = [lambda n=n: served.assign({"unit": f"p{n}"}, f"k{n}") for n in range(12)]
    answers = together(
        served, [*requests, lambda: served.record({"decision": 3, "reward": 1.0}, "r")], monkeypatch
    )
    assert [one.json()["id"] for one in answers] == [*range(1, 13), 3]
    assert commits == [before + 13]
    served.trial.verify()


def test_the_same_key_twice_and_refusals(
    served: Served, commits: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = served.trial.status().rows
    commits.clear()
    bodies = [("p1", "k1"), ("p1", "k1"), ("p2", "k1"), ("P1", "k3"), ("p1", "k4"), ("p2", "k5")]
    answers = together(
        served, [lambda u=unit, k=key: served.assign({"unit": u}, k) for unit, key in bodies], monkeypatch
    )
    assert [one.status_code for one in answers] == [200, 200, 409, 409, 200, 200]
    assert [one.json().get("code") for one in answers[2:4]] == ["key-reused", "unit-looks-alike"]
    assert [answers[place].json()["id"] for place in (0, 1, 4, 5)] == [1, 1, 1, 2]
    assert commits == [before + 3]  # p1 has a second key, k4, which is a row of its own
    assert served.trial.verify().rounds == 2


def test_a_failed_commit_answers_all_and_loses_nothing(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, failing = Journal.commit, [True]

    def commit(journal: Journal) -> None:
        if failing[0]:
            raise FileError("trial.db", "written", "the disk is full")
        whole(journal)

    monkeypatch.setattr(Journal, "commit", commit)
    requests = [lambda n=n: served.assign({"unit": f"p{n}"}, f"k{n}") for n in range(5)]
    answers = together(served, requests, monkeypatch)
    assert [(one.status_code, one.json()["code"]) for one in answers] == [(503, "not-stored")] * 5
    assert 'adaptinf_failures_total{kind="FileError"} 1.0' in served.get("/metrics", None).text
    failing[0] = False
    assert served.trial.status().rounds == 0
    assert [one().json()["id"] for one in requests] == [1, 2, 3, 4, 5]
    assert served.trial.verify().rounds == 5


def test_a_damaged_file_is_no_answer(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(journal: Journal) -> Any:
        raise ai.errors.JournalError("trial.db", "row 3 says p1 had arm A")

    monkeypatch.setattr(Journal, "news", broken)
    for response in (served.assign({"unit": "p"}, "k"), served.get("/readyz", None)):
        assert (response.status_code, response.json()["code"]) == (503, "not-stored")
        assert "row 3" not in response.text
    assert served.get("/healthz", None).status_code == 200


def test_many_threads_at_once(served: Served, commits: list[int], path: Path) -> None:
    def pair(number: int) -> tuple[int, int]:
        decision = served.assign({"unit": f"p{number}"}, f"k{number}").json()["id"]
        return decision, served.record({"decision": decision, "reward": 1.0}, f"r{number}").status_code

    commits.clear()
    with ThreadPoolExecutor(16) as pool:
        told = list(pool.map(pair, range(50)))
    assert sorted(decision for decision, _ in told) == list(range(1, 51))
    assert {status for _, status in told} == {200}
    assert len(commits) < 100
    status = served.trial.verify()
    assert (status.rounds, status.pending) == (50, 0)
