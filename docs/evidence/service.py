"""How many participants a second a served trial assigns and records, beside a service that does nothing."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import evidence
import numpy as np

import adaptinf as ai

COMMAND = "python docs/evidence/service.py"
RATES, SECONDS, CONNECTIONS, COMMITS = (50, 100, 200, 300, 400), 8.0, 64, 400
QUICK_RATES, QUICK_SECONDS = (20,), 2.0
DESIGN = ai.designs.Thompson(floor=0.1)
TICKS = os.sysconf("SC_CLK_TCK")
IDLE = """
import sys
from typing import Annotated, Any
import uvicorn
from fastapi import FastAPI, Header
app = FastAPI()
@app.post("/v1/assignments")
@app.post("/v1/outcomes")
async def nothing(
    body: dict[str, Any], key: Annotated[str, Header(alias="Idempotency-Key")]
) -> dict[str, int]:
    return {"id": 1}
print("http://127.0.0.1:" + sys.argv[1], flush=True)
uvicorn.run(app, port=int(sys.argv[1]), log_level="error", access_log=False)
"""


@dataclass
class Client:
    """Requests over connections that stay open; a request waits while all of them are in use."""

    port: int
    tokens: dict[str, str]
    free: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = field(
        default_factory=asyncio.Queue
    )

    async def connect(self) -> None:
        """Open all connections, after closing earlier ones."""
        while not self.free.empty():
            self.free.get_nowait()[1].close()
        for _ in range(CONNECTIONS):
            self.free.put_nowait(await asyncio.open_connection("127.0.0.1", self.port))

    async def post(self, path: str, role: str, key: str, body: dict[str, object]) -> dict[str, int]:
        """The answer, which must be 200."""
        content = json.dumps(body)
        head = (
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {self.tokens[role]}\r\nIdempotency-Key: {key}\r\n"
            f"Content-Length: {len(content)}\r\n\r\n"
        )
        reader, writer = await self.free.get()
        writer.write((head + content).encode())
        told = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(told.partition("content-length: ")[2].partition("\r\n")[0])
        answer = json.loads(await reader.readexactly(length))
        self.free.put_nowait((reader, writer))
        if not told.startswith("http/1.1 200"):
            raise SystemExit(f"OFF: {told.splitlines()[0]} {answer}")
        return answer


async def paired(client: Client, rate: int, seconds: float, name: str) -> tuple[list[float], float]:
    """Times from when a request was due to its answer, and pairs a second: an open loop."""
    times: list[float] = []

    async def pair(number: int, due: float) -> None:
        unit = f"{name} {number}"
        made = await client.post("/v1/assignments", "assigner", f"a {unit}", {"unit": unit})
        times.append(time.perf_counter() - due)
        due = time.perf_counter()
        await client.post("/v1/outcomes", "recorder", f"r {unit}", {"decision": made["id"], "reward": 1.0})
        times.append(time.perf_counter() - due)

    await client.connect()
    begun, tasks = time.perf_counter(), []
    for number in range(int(rate * seconds)):
        due = begun + number / rate
        if (ahead := due - time.perf_counter()) > 0:
            await asyncio.sleep(ahead)
        tasks.append(asyncio.create_task(pair(number, due)))
    await asyncio.gather(*tasks)
    return times, len(tasks) / (time.perf_counter() - begun)


def processor(process: subprocess.Popen[bytes]) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def started(command: list[str]) -> tuple[subprocess.Popen[bytes], int]:
    """A service and its port."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    return process, int(process.stdout.readline().decode().strip().rpartition(":")[2])


def committed_rows(folder: Path) -> list[float]:
    """Seconds of bare commits of one row."""
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE t (x)")
    times = []
    for _ in range(COMMITS):
        begun = time.perf_counter()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO t VALUES (?)", ("x" * 600,))
        connection.execute("COMMIT")
        times.append(time.perf_counter() - begun)
    connection.close()
    return times


def line(kind: str, rate: int, found: tuple[list[float], float], used: float) -> str:
    """A row of the table."""
    times, pairs = np.array(found[0]) * 1e3, found[1]
    p50, p99 = np.quantile(times, [0.5, 0.99])
    return (
        f"| {kind} | {rate} | {pairs:.0f} | {p50:.1f} | {p99:.1f} | {times.max():.0f} | "
        f"{1e3 * used / len(times):.2f} |"
    )


async def measured(folder: Path, rates: tuple[int, ...], seconds: float) -> list[str]:
    """Rows of the table: each rate at both services, one after the other."""
    path = folder / "trial.db"
    with ai.Trial.create(path, DESIGN, ["A", "B"], horizon=1_000 + int(sum(rates) * seconds)) as trial:
        tokens = {role: trial.add_token(role).text for role in ("assigner", "recorder")}
    served = [sys.executable, "-m", "adaptinf", "trial", "serve", str(path), "--port", "0"]
    kinds = {"trial": started(served), "nothing": started([sys.executable, "-c", IDLE, "8097"])}
    lines = []
    clients = {kind: Client(port, tokens) for kind, (_, port) in kinds.items()}
    await asyncio.sleep(3.0)
    try:
        for kind, client in clients.items():
            await paired(client, 20, 2.0, f"warm {kind}")
        for rate in rates:
            for kind, client in clients.items():
                before = processor(kinds[kind][0])
                found = await paired(client, rate, seconds, f"{kind} {rate}")
                lines.append(line(kind, rate, found, processor(kinds[kind][0]) - before))
    finally:
        for process, _ in kinds.values():
            process.terminate()
            process.wait(60)
    with ai.Trial.open(path) as trial:
        status = trial.verify()
    people = sum(int(rate * seconds) for rate in rates) + 40
    if (status.rounds, status.pending, status.rows) != (people, 0, 3 + 2 * people):
        raise SystemExit(f"OFF: {status}")
    return lines


def page(rates: tuple[int, ...], seconds: float) -> str:
    """All figures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bare = np.array(committed_rows(folder)) * 1e3
        lines = asyncio.run(measured(folder, rates, seconds))
    p50, p99 = np.quantile(bare, [0.5, 0.99])
    load = os.getloadavg()
    best = [row.split("|") for row in lines if row.startswith("| trial")]
    kept = [
        int(cells[2]) for cells in best if float(cells[3]) > 0.95 * int(cells[2]) and float(cells[5]) < 100
    ]
    return f"""# A trial over HTTP: participants a second

Command: `{COMMAND}`. Seed: none, because the coins of trials are new in every run. Date: {evidence.stamp()}.

One process serves a trial with {type(DESIGN).__name__}(floor=0.1) in SQLite. Another process requests an
assignment for each participant and then sends the outcome, at a constant rate for {seconds:g} s, whether or
not earlier requests have been answered, over {CONNECTIONS} connections; response times are measured from the
time at which a request was due. *Nothing* is a FastAPI service that answers without doing anything, measured
in turn. Processor times are those of the service alone.

| service | pairs a second, sent | answered | p50, ms | p99, ms | longest, ms | processor, ms a request |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
{chr(10).join(lines)}

The largest number of pairs per second with a p99 below 100 ms is **{max(kept, default=0)}**; the target is
200 on an idle machine. A single commit of one row to SQLite took {p50:.2f} ms (p99 {p99:.2f}). The machine
has {os.cpu_count()} cores, which the client, the service and other programs shared: the load was
{load[0]:.1f}. Afterwards, the trial was verified from its first row: every participant was assigned once, and
every outcome was recorded once.
"""


def main() -> None:
    """Make the page."""
    options = evidence.parser(__doc__).parse_args()
    rates, seconds = (QUICK_RATES, QUICK_SECONDS) if options.quick else (RATES, SECONDS)
    evidence.publish(page(rates, seconds), __file__, options)


if __name__ == "__main__":
    main()
