"""The database's server is killed in the middle of requests, and the process that serves goes on."""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest
from test_server import Process, headers
from test_workers import database, needs_postgres, tokens

from adaptinf import Trial

__all__ = ["database", "tokens"]
CLIENTS, RESTARTS = 6, 3


@pytest.mark.slow
@needs_postgres
@pytest.mark.parametrize("options", [(), ("--workers", "2")], ids=["one", "two"])
def test_a_database_that_is_killed_loses_nothing(
    database: Any, tokens: dict[str, str], options: tuple[str, ...]
) -> None:
    served, done, fates = Process(database, *options), threading.Event(), Counter[int]()
    client = httpx2.Client(base_url=served.address, timeout=60.0)

    def until_answered(path: str, role: str, key: str, body: Any) -> Any:
        while True:
            answer = client.post(path, json=body, headers=headers(tokens, role, key))
            fates[answer.status_code] += 1
            if answer.status_code == 200:
                return answer.json()
            assert (answer.status_code, answer.json()["code"]) == (503, "not-stored")
            time.sleep(0.05)

    def pairs(number: int) -> dict[str, tuple[int, str]]:
        told, people = {}, 0
        while not done.is_set():
            unit = f"{number} {people}"
            made = until_answered("/v1/assignments", "assigner", f"a {unit}", {"unit": unit})
            body = {"decision": made["id"], "reward": 1.0}
            until_answered("/v1/outcomes", "recorder", f"r {unit}", body)
            told[unit], people = (made["id"], made["arm"]), people + 1
        return told

    with ThreadPoolExecutor(CLIENTS) as pool:
        works = [pool.submit(pairs, number) for number in range(CLIENTS)]
        for _ in range(RESTARTS):
            before = fates[200]
            while fates[200] < before + CLIENTS:
                assert not [work.result() for work in works if work.done()]
                time.sleep(0.01)
            database.server.kill()
        done.set()
        answers = {unit: told for work in works for unit, told in work.result().items()}
    client.close()
    assert served.stop()[0] == 0
    assert fates[503] > 0
    with Trial.open(database) as trial:
        status = trial.verify()
        assert (status.rounds, status.pending) == (len(answers), 0)
        assert status.rows == 1 + len(tokens) + 2 * len(answers)
        again = {unit: trial.assign(unit, key=f"a {unit}") for unit in answers}
    assert {unit: (made.id, made.arm) for unit, made in again.items()} == answers
