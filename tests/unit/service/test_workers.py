"""Two processes that serve one trial in PostgreSQL: one trial, one set of visits, one sum of figures."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from test_server import Process
from visitors import form_of

import adaptinf as ai
from adaptinf.cli import main
from adaptinf.service.figures import Figures
from adaptinf.service.writer import Writer

sys.path.append(str(Path(__file__).parents[1] / "trial"))

from postgres_server import Database, programs, server

needs_postgres = pytest.mark.skipif(programs() is None, reason="PostgreSQL is not installed")
ROLES = ("assigner", "recorder", "monitor")


@pytest.fixture
def database() -> Database:
    return server().database()


@pytest.fixture
def tokens(database: Database) -> dict[str, str]:
    with ai.Trial.create(database, ai.designs.Thompson(floor=0.1), ["A", "B"], horizon=500) as trial:
        return {role: trial.add_token(role).text for role in ROLES}


@pytest.fixture
def served(database: Database, tokens: dict[str, str]) -> Iterator[Process]:
    process = Process(database, "--workers", "2")
    yield process
    process.kill()


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[Process, Database, dict[str, str]]]:
    """Two workers, their trial and its tokens, for the tests that kill nothing."""
    database = server().database()
    with ai.Trial.create(database, ai.designs.Thompson(floor=0.1), ["A", "B"], horizon=500) as trial:
        tokens = {role: trial.add_token(role).text for role in ROLES}
    process = Process(database, "--workers", "2")
    yield process, database, tokens
    process.kill()


Shared = tuple[Process, Database, dict[str, str]]


def workers_of(process: Process) -> list[int]:
    """Ids of the processes that answer: the children of the one from which they are started."""
    (loaded,) = [pid for pid in children(process.process.pid) if b"forkserver" in command(pid)]
    return children(loaded)


def children(pid: int) -> list[int]:
    """Processes that a process started."""
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def command(pid: int) -> bytes:
    """How a process was started."""
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def pair(served: Process, tokens: dict[str, str], number: int) -> tuple[int, str]:
    """Assign and record over connections of their own; the answer to the first."""

    def post(path: str, role: str, key: str, body: Any) -> Any:
        sent = {"authorization": f"Bearer {tokens[role]}", "idempotency-key": key}
        until = time.monotonic() + 60.0
        while True:
            try:
                answer = httpx2.post(f"{served.address}{path}", json=body, headers=sent, timeout=60.0)
            except httpx2.TransportError:
                assert time.monotonic() < until
                continue
            assert answer.status_code == 200, answer.text
            return answer.json()

    made = post("/v1/assignments", "assigner", f"a{number}", {"unit": f"p{number}"})
    post("/v1/outcomes", "recorder", f"r{number}", {"decision": made["id"], "reward": float(number % 2)})
    return made["id"], made["arm"]


def figure(text: str, name: str) -> float:
    """The sum of a figure over its labels."""
    return sum(map(float, re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.MULTILINE)))


@pytest.mark.slow
@needs_postgres
def test_a_visitor_is_known_to_both(shared: Shared) -> None:
    served, _, tokens = shared
    cookies: dict[str, str] = {}

    def ask(method: str, path: str, **given: Any) -> Any:
        """A request over a connection of its own."""
        answer = httpx2.request(method, f"{served.address}{path}", cookies=cookies, timeout=60.0, **given)
        cookies.update(dict(answer.cookies.items()))
        return answer

    form = form_of(ask("GET", "/page/sign-in").text)
    sent = {"form": form, "token": tokens["monitor"]}
    assert ask("POST", "/page/sign-in", data=sent).headers["location"] == "/page"
    assert [ask("GET", "/page/downloads").status_code for _ in range(12)] == [200] * 12
    form = form_of(ask("GET", "/page").text)
    assert ask("POST", "/page/sign-out", data={"form": form}).status_code == 200
    assert [ask("GET", "/page").status_code for _ in range(8)] == [303] * 8


@pytest.mark.slow
@needs_postgres
def test_two_workers_are_one_service(shared: Shared) -> None:
    served, database, tokens = shared
    begun = figure(httpx2.get(f"{served.address}/metrics").text, "adaptinf_answers_total") + 1.0
    assert served.line.startswith("serving postgresql://")
    assert len(workers_of(served)) == 2
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda number: pair(served, tokens, number), range(40)))
    assert sorted(number for number, _ in told) == list(range(1, 41))
    seen = set()
    for _ in range(4):  # Each answer has the sum over both workers, and none contains counts of the trial.
        text = httpx2.get(f"{served.address}/metrics").text
        assert "adaptinf_trial" not in text
        seen.add(figure(text, "adaptinf_answers_total"))
        known = {"authorization": f"Bearer {tokens['monitor']}"}
        text = httpx2.get(f"{served.address}/metrics", headers=known).text
        assert figure(text, "adaptinf_trial_rounds") == 40.0
        seen.add(figure(text, "adaptinf_answers_total"))
    assert seen == {begun + answers for answers in range(80, 88)}
    assert served.stop()[0] == 0
    with ai.Trial.open(database) as trial:
        status = trial.verify()
        assert (status.rounds, status.pending, status.rows) == (40, 0, 4 + 80)
        assert [trial.assign(f"p{n}", key=f"a{n}").arm for n in range(40)] == [arm for _, arm in told]


@pytest.mark.slow
@needs_postgres
def test_a_worker_that_was_killed_is_replaced(
    served: Process, database: Database, tokens: dict[str, str]
) -> None:
    before = workers_of(served)
    with ThreadPoolExecutor(4) as pool:
        told = [pool.submit(pair, served, tokens, number) for number in range(30)]
        os.kill(before[0], signal.SIGKILL)
        assert sorted(one.result()[0] for one in told) == list(range(1, 31))
    until = time.monotonic() + 60.0
    while len(after := workers_of(served)) < 2 and time.monotonic() < until:
        time.sleep(0.1)
    assert before[1] in after
    assert len(after) == 2
    pair(served, tokens, 31)
    served.kill()  # The workers end with the process that started them.
    while any(Path(f"/proc/{pid}").exists() for pid in after) and time.monotonic() < until:
        time.sleep(0.1)
    assert [pid for pid in after if Path(f"/proc/{pid}").exists()] == []
    with ai.Trial.open(database) as trial:
        assert trial.verify().rounds == 31


@needs_postgres
def test_an_address_in_use_and_a_wrong_number(
    database: Database, tokens: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["trial", "serve", str(database), "--workers", "2", "--port", port]) == 2
    assert f"127.0.0.1:{port} cannot be used: another program uses it" in capsys.readouterr().err
    assert main(["trial", "serve", str(database), "--workers", "33"]) == 2
    assert "workers must be from 1 to 32, got 33" in capsys.readouterr().err
    path = tmp_path / "trial.db"
    ai.Trial.create(path, ai.designs.Thompson(), ["A", "B"], horizon=5).close()
    assert main(["trial", "serve", str(path), "--workers", "2"]) == 2
    assert "workers must be 1 for a trial in a file: keep it in PostgreSQL" in capsys.readouterr().err


@needs_postgres
def test_a_process_without_requests_reads_the_rows_of_others(database: Database, tokens: dict[str, str]):
    async def waited(writer: Writer, rows: int) -> bool:
        await writer.start()
        try:
            for number in range(5):
                busy.assign(f"p{number}", key=f"a{number}")
            end = time.monotonic() + 20.0
            while writer.trial._requests.journal.rows < rows + 5 and time.monotonic() < end:
                await asyncio.sleep(0.01)
            return writer.trial._requests.journal.rows == rows + 5
        finally:
            await writer.stop()

    with ai.Trial.open(database) as busy, ai.Trial.open(database) as idle:
        assert asyncio.run(waited(Writer(idle, Figures()), busy.status().rows))
