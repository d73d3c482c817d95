"""A served trial whose process is killed under 50 clients, on both databases: makes a page.

The server of PostgreSQL is that of the tests: it needs the programs of Debian's package postgresql.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing as mp
import os
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import evidence
import numpy as np

import adaptinf as ai

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests" / "unit" / "trial")]

from postgres_server import server  # noqa: E402

COMMAND = "python docs/evidence/service_kills.py"
SEED, KILLS, RESTARTS, CLIENTS, HORIZON = 20261128, 200, 20, 50, 200_000
QUICK = {"kills": 3, "restarts": 2, "clients": 8}
DESIGN = ai.designs.Thompson(floor=0.1)
LIVES = 0.05, 0.6
"""Seconds from the first answer after a start to the next kill: uniform between these."""
PATIENCE = 300.0
"""Seconds for an answer, or for a start on a machine with other work."""


def serve(address: str, port: int, listening: Any) -> None:
    """The process that is killed."""
    from adaptinf.service.server import serve as served

    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the access log
    with ai.Trial.open(address) as trial:
        served(trial, "127.0.0.1", port, None, None, lambda _: listening.set())


@dataclass
class Client:
    """One client: it sends each request until it is answered, and keeps every answer."""

    port: int
    number: int
    tokens: dict[str, str]
    answers: dict[str, tuple[int, str]] = field(default_factory=dict)
    recorded: set[int] = field(default_factory=set)
    fates: Counter[str] = field(default_factory=Counter)
    stopped: bool = False

    async def run(self) -> None:
        """Assign and record, one participant after another."""
        people = 0
        while not self.stopped:
            unit = f"{self.number} {people}"
            made = await self.sent("assigner", "/v1/assignments", f"a {unit}", {"unit": unit})
            self.answers[unit] = made["id"], made["arm"]
            body = {"decision": made["id"], "reward": float(made["id"] % 2)}
            told = await self.sent("recorder", "/v1/outcomes", f"r {unit}", body)
            self.recorded.add(told["id"])
            people += 1

    async def sent(self, role: str, path: str, key: str, body: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request, which is sent again with its key after any failure."""
        while True:
            try:
                async with asyncio.timeout(PATIENCE):
                    status, answer = await self.once(role, path, key, body)
            except (OSError, EOFError, asyncio.IncompleteReadError):
                self.fates["no answer"] += 1
                await asyncio.sleep(0.1)
                continue
            self.fates[str(status)] += 1
            if status == 200:
                return answer
            if status != 503:
                raise SystemExit(f"OFF: {status} {answer}")
            await asyncio.sleep(0.02)

    async def once(self, role: str, path: str, key: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Status and answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            content = json.dumps(body)
            head = (
                f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                f"Authorization: Bearer {self.tokens[role]}\r\nIdempotency-Key: {key}\r\n"
                f"Connection: close\r\nContent-Length: {len(content)}\r\n\r\n"
            )
            writer.write((head + content).encode())
            told, _, rest = (await reader.read()).partition(b"\r\n\r\n")
            if not told or not rest:
                raise EOFError
            return int(told.split()[1]), json.loads(rest)
        except ValueError:  # an answer that was cut off
            raise EOFError from None
        finally:
            writer.close()


def free_port() -> int:
    """A port that nobody uses."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


async def disturbed(
    address: str, times: int, clients: int, rng: np.random.Generator, restart: Callable[[], None] | None
) -> list[Client]:
    """Clients at work while the process that serves them is killed again and again, or its database."""
    port, context, process = free_port(), mp.get_context("forkserver"), None
    context.set_forkserver_preload(["adaptinf.service.server", "adaptinf.trial.requests", "adaptinf.designs"])
    with ai.Trial.create(address, DESIGN, ["A", "B"], HORIZON) as trial:
        tokens = {role: trial.add_token(role).text for role in ("assigner", "recorder")}
    every = [Client(port, number, tokens) for number in range(clients)]
    tasks = [asyncio.create_task(client.run()) for client in every]
    for life in range(times + 1):
        if process is None or restart is None:
            listening = context.Event()
            process = context.Process(target=serve, args=(address, port, listening))
            process.start()
            if not await asyncio.to_thread(listening.wait, PATIENCE):
                raise SystemExit("OFF: the service did not start")
        await answered(every, tasks)
        if life < times:
            await asyncio.sleep(rng.uniform(*LIVES))
            if restart is None:
                process.kill()
                await asyncio.to_thread(process.join)
            else:
                await asyncio.to_thread(restart)
    for client in every:
        client.stopped = True
    await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)
    process.terminate()
    await asyncio.to_thread(process.join)
    if process.exitcode:
        raise SystemExit(f"OFF: the service ended with {process.exitcode}")
    return every


async def answered(every: list[Client], tasks: list[asyncio.Task[None]]) -> None:
    """Wait until the service has answered once more."""
    before = sum(client.fates["200"] for client in every)
    while sum(client.fates["200"] for client in every) == before:
        await asyncio.sleep(0.005)
        for task in tasks:
            if task.done():
                task.result()


def row(name: str, address: str, times: int, clients: int, restart: Callable[[], None] | None = None) -> str:
    """What became of a trial, after checks that end the script where anything is off."""
    begun, rng = time.perf_counter(), np.random.default_rng(SEED)
    every = asyncio.run(disturbed(address, times, clients, rng, restart))
    took = time.perf_counter() - begun
    fates = sum((client.fates for client in every), Counter[str]())
    answers = {unit: answer for client in every for unit, answer in client.answers.items()}
    lost, twice = 0, len(answers) - len({made for made, _ in answers.values()})
    with ai.Trial.open(address) as trial:
        status = trial.verify()
        for unit, answer in answers.items():
            made = trial.assign(unit, key=f"a {unit}")
            lost += (made.id, made.arm) != answer
        after = trial.status()
    if lost or twice or after.rounds != len(answers) or after.pending or after.rows != status.rows:
        raise SystemExit(f"OFF: {lost} lost, {twice} twice, {after}")
    return (
        f"| {name} | {times} | {len(answers):,} | {fates['200']:,} | {fates['no answer']:,} | "
        f"{fates['503']:,} | {lost} | {twice} | {took:,.0f} |"
    )


def page(sizes: dict[str, int]) -> str:
    """All figures."""
    kills, restarts, clients = sizes["kills"], sizes["restarts"], sizes["clients"]
    with tempfile.TemporaryDirectory() as name:
        rows = [row("SQLite", f"{name}/trial.db", kills, clients)]
        rows.append(row("PostgreSQL", str(server().database()), kills, clients))
        address = str(server().database())
        rows.append(row("PostgreSQL, itself killed", address, restarts, clients, server().kill))
    command = COMMAND if kills == KILLS else f"{COMMAND} --kills {kills}"
    return f"""# A served trial whose process or database is killed

Command: `{command}`. Seed: {SEED}, for the times of the kills; the coins of the trial are new in every run.
Date: {evidence.stamp()}.

{clients} clients assign participants and record their outcomes at the same time, as fast as they are
answered, while the process that serves them is killed (`kill -9`) again and again,
{LIVES[0]:g} to {LIVES[1]:g} seconds after its first answer. A client repeats each request with its key until
it is answered. In the last row, the database's server is killed instead (`pg_ctl stop -m immediate`) and
started again, under one process that continues to serve. At the end, the trial is verified from its first
row, and every assignment is requested again.

| database | kills | participants | answers | broken connections | 503 | answers lost | assigned twice | s |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
{chr(10).join(rows)}

Every participant whose request was answered is in the trial exactly once, with the same arm and outcome, and
the trial contains no one else. The machine has {os.cpu_count()} cores, and its load was
{os.getloadavg()[0]:.1f}.
"""


def main() -> None:
    """Make the page."""
    parser = evidence.parser(__doc__)
    parser.add_argument("--kills", type=int, default=KILLS)
    options = parser.parse_args()
    sizes = QUICK if options.quick else {"kills": options.kills, "restarts": RESTARTS, "clients": CLIENTS}
    evidence.publish(page(sizes), __file__, options)


if __name__ == "__main__":
    main()
